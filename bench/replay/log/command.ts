/** `npm run replay -- --log FILE`: replays a log, shows how far it is, and prints what it found. */
import { Progress } from "../../support/progress.ts";
import { grouped, printHead, printResult } from "../../support/report.ts";
import { Difference } from "./difference.ts";
import { LogReplay, type ReplayResult } from "./log-replay.ts";
import { openLogSource } from "./source.ts";

/** Returns the exit code. @throws BrokenLog if the file can't be read */
export function replayLog(path: string): number {
  const source = openLogSource(path);
  printHead("replay", `the log ${path}`);
  const start = performance.now();
  const replay = new LogReplay(source.bodies, source.opening);
  const progress = new Progress(source.unit, source.total);
  let batches = 0;
  try {
    for (let records = replay.step(); records !== null; records = replay.step()) {
      progress.update(source.done(++batches), `${grouped(records)} records`);
    }
  } catch (error) {
    if (!(error instanceof Difference)) throw error;
    progress.end();
    printDifference(error);
    return 1;
  } finally {
    source.close();
  }
  progress.end();
  print(replay.result(), (performance.now() - start) / 1_000);
  return 0;
}

function print(result: ReplayResult, seconds: number): void {
  const { batches, events, levels, orders, fills, starts, interrupted, first, last, eventsHash, lastHash } = result;
  console.log(`  ${grouped(batches)} batches, ${first} to ${last}, with ${starts} starts; the hash chain holds`);
  console.log(`  ${grouped(events)} events and ${grouped(levels)} levels, byte for byte the same`);
  console.log(`  ${grouped(orders)} orders, ${grouped(fills)} fills`);
  if (interrupted > 0) console.log(`  ${interrupted} commands interrupted, by a crash or the end of the log`);
  console.log(`  SHA-256 of the events ${eventsHash}`);
  console.log(`  SHA-256 of batch ${last} ${lastHash}`);
  console.log(`  ${grouped((events + levels) / seconds)} events/s in ${seconds.toFixed(1)} s`);
  printResult({
    equal: true,
    ...{ batches, first, last, starts, interrupted, events, levels, orders, fills },
    events_sha256: eventsHash,
    last_sha256: lastHash,
    seconds: Number(seconds.toFixed(3)),
    events_per_s: Math.round((events + levels) / seconds),
  });
}

function printDifference({ batch, record, message, logged, replayed }: Difference): void {
  const place = record === null ? `batch ${batch}` : `batch ${batch}, record ${record}`;
  console.log(`  DIFFERENCE in ${place}: ${message}`);
  if (logged !== null) console.log(`    the log:    ${logged}`);
  if (replayed !== null) console.log(`    the engine: ${replayed}`);
  printResult({ equal: false, batch, record, message, logged, replayed });
}
