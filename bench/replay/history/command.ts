/** `npm run replay -- --history FILE`: trades a day's book history again, and prints whether the trades are the same. */
import { grouped, printHead, printResult } from "../../support/report.ts";
import { HistoryReplay } from "./history-replay.ts";
import { commitsOf, readHistory } from "./lines.ts";

/** Differences that are printed. */
const SHOWN = 10;

/** Returns the exit code. @throws FolderError if the file can't be read */
export function replayHistory(path: string): number {
  const lines = readHistory(path);
  printHead("replay", `the book history ${path}`);
  const start = performance.now();
  const replay = new HistoryReplay(lines);
  for (const commit of commitsOf(lines)) replay.apply(commit);
  const seconds = (performance.now() - start) / 1_000;
  const { commits, trades, volume, byType, crossed, differences } = replay;
  const types = [...byType].map(([type, count]) => `${grouped(count)} ${type}`).join(", ");
  console.log(`  ${grouped(lines.length)} rows in ${grouped(commits)} commits`);
  console.log(`  ${grouped(trades)} trades of ${grouped(volume)} shares: ${types === "" ? "none" : types}`);
  for (const { outcome, bid, ask } of replay.best())
    console.log(`  outcome ${outcome}: bid ${bid ?? "-"}, ask ${ask ?? "-"}`);
  if (crossed > 0) console.log(`  FAULT: the book was crossed after ${grouped(crossed)} commits`);
  for (const { seq, expected, made } of differences.slice(0, SHOWN)) {
    console.log(`  DIFFERENCE in row ${seq}: the file has ${expected}, the engine made ${made}`);
  }
  const equal = differences.length === 0 && crossed === 0;
  if (equal) console.log("  the engine made the same trades, and no book was crossed");
  printResult({
    ...{ equal, rows: lines.length, commits, trades, volume, matches: Object.fromEntries(byType) },
    ...{ different: differences.length, crossed, seconds: Number(seconds.toFixed(3)) },
  });
  return equal ? 0 : 1;
}
