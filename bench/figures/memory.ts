/**
 * The cost of 10,000 idle binary markets: resident memory of an exchange with them less that of one with the sample
 * markets, after the first start (including the remains of creating the markets) and after a restart on the same
 * database. Each runs in its own process, measured once it is idle.
 */
import { assert } from "../../engine/util/assert.ts";
import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { grouped, printHead, printResult } from "../support/report.ts";

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

/** Resident bytes of an exchange on a fresh folder, then of the next one on it; `probe` is a market that both serve. */
async function measure(probe: string, seed?: object): Promise<{ first: number; restarted: number }> {
  const dataDir = makeFolder("bench-memory");
  const bytes: number[] = [];
  for (const options of [seed === undefined ? { dataDir } : { dataDir, seed }, { dataDir }]) {
    const exchange = await ExchangeProcess.start(options);
    const answer = await fetch(`${exchange.url}/api/v1/markets/${probe}`);
    assert(answer.status === 200, `the exchange serves ${probe}`);
    await exchange.quiet();
    bytes.push(exchange.residentBytes());
    await exchange.stop();
  }
  removeFolder(dataDir);
  return { first: itemAt(bytes, 0), restarted: itemAt(bytes, 1) };
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

printHead("memory", `${grouped(MARKETS)} idle binary markets, resident memory of the whole process`);
const sample = await measure("1");
const full = await measure(`idle-${MARKETS}`, { markets });
for (const [when, without, with_] of [
  ["first started", sample.first, full.first],
  ["restarted", sample.restarted, full.restarted],
] as const) {
  const grown = megabytes(with_ - without);
  console.log(`  ${when}: ${grown} more (${megabytes(without)} with the samples, ${megabytes(with_)} with these)`);
}
console.log(`  needed: less than ${megabytes(NEEDED_BYTES)}`);
printResult({
  bench: "memory",
  markets: MARKETS,
  needed_bytes: NEEDED_BYTES,
  grown_bytes: { first: full.first - sample.first, restarted: full.restarted - sample.restarted },
  sample_bytes: sample,
  full_bytes: full,
});
