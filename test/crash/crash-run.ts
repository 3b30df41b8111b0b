/** `npm run crash`: kills a real server under load as often as asked, and holds it to what it had answered. */
import { parseArgs } from "node:util";
import { Random } from "../server/support/random.ts";
import { describeKills, type KillsOptions, runKills } from "./kills.ts";

const USAGE = "npm run crash -- [--seed N] [--kills N] [--threads 1|2|3] [--signal KILL|TERM|mixed]";
const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Date.now() % 1_000_000_007) },
    kills: { type: "string", default: "50" },
    threads: { type: "string" },
    signal: { type: "string", default: "mixed" },
  },
});
const [seed, kills] = [Number(values.seed), Number(values.kills)];
const threads = values.threads === undefined ? undefined : Number(values.threads);
const isCount = (value: number, max: number): boolean => Number.isSafeInteger(value) && value >= 1 && value <= max;
if (!Number.isSafeInteger(seed) || !isCount(kills, 1e6) || !isCount(threads ?? 1, 3) || !isSignal(values.signal)) {
  process.stderr.write(`${USAGE}\n`);
  process.exit(2);
}

process.stdout.write(`seed ${seed}\n`);
const report = await runKills({ random: new Random(seed), kills, threads, signal: values.signal });
process.stdout.write(`${describeKills(report)}\n`);
process.stdout.write(
  "after each: the database is sound, both sides of each match are there, no client order id is there twice, " +
    "and the next start kept every answer\n",
);

function isSignal(text: string): text is KillsOptions["signal"] {
  return ["KILL", "TERM", "mixed"].includes(text);
}
