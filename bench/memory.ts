/**
 * What 10,000 idle binary markets cost: resident memory of an exchange that serves them, restarted on its database,
 * less that of one with the sample markets. Each is a process of its own, measured once it is quiet.
 */
import { check } from "../engine/check.ts";
import { grouped, printHead, printResult } from "./report.ts";
import { ExchangeProcess } from "./support/exchange-process.ts";
import { makeFolder, removeFolder } from "./support/folder.ts";

const smoke = process.argv.includes("--smoke");
const MARKETS = smoke ? 500 : 10_000;
const NEEDED_BYTES = 100e6;

const markets = Array.from({ length: MARKETS }, (_, i) => ({
  slug: `idle-${i + 1}`,
  question: `Will the ${i + 1}th of the things that might happen this year happen?`,
  description: "Pays on Yes if it does, on No if it doesn't.",
  category: "bench",
  outcomes: ["Yes", "No"],
}));

/** Resident memory after a restart, when nothing of the seeding is left in it. */
async function residentBytes(seed?: object): Promise<number> {
  const dataDir = makeFolder("bench-memory");
  const first = await ExchangeProcess.start(seed === undefined ? { dataDir } : { dataDir, seed });
  await first.stop();
  const exchange = await ExchangeProcess.start({ dataDir });
  if (seed !== undefined) {
    const answer = await fetch(`${exchange.url}/api/v1/markets/idle-${MARKETS}`);
    check(answer.status === 200, "the last market is served");
  }
  await exchange.quiet();
  const bytes = exchange.residentBytes();
  await exchange.stop();
  removeFolder(dataDir);
  return bytes;
}

const empty = await residentBytes();
const full = await residentBytes({ markets });
const grown = full - empty;
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
printHead("memory", `${grouped(MARKETS)} idle binary markets, resident memory of the whole process`);
console.log(`  ${megabytes(empty)} with the samples, ${megabytes(full)} with them: ${megabytes(grown)} more`);
console.log(`  needed: less than ${megabytes(NEEDED_BYTES)}`);
printResult({ bench: "memory", markets: MARKETS, empty_bytes: empty, full_bytes: full, grown_bytes: grown });
