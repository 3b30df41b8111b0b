/** `npm run crash`: kills a real server under load as often as asked, and holds it to what it had answered. */
import { parseArgs } from "node:util";
import { orUsage, wholeNumber } from "../../bench/support/usage.ts";
import { freshSeed, Random } from "../support/random.ts";
import { describeKills, type KillsOptions, runKills } from "./kill-loop.ts";

const SIGNALS = ["KILL", "TERM", "mixed"] as const;
const USAGE = `crash [--seed N] [--kills N] [--threads 1|2|3] [--signal ${SIGNALS.join("|")}]`;

function readArguments(): Pick<KillsOptions, "kills" | "threads" | "signal"> & { seed: number } {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ options: { seed: text, kills: text, threads: text, signal: text } });
  const signal = SIGNALS.find((name) => name === (values.signal ?? "mixed"));
  if (signal === undefined) throw new Error(`--signal ${values.signal}: one of ${SIGNALS.join(", ")}`);
  return {
    seed: wholeNumber("seed", values.seed ?? String(freshSeed()), 0, 2 ** 31),
    kills: wholeNumber("kills", values.kills ?? "50", 1, 1e6),
    threads: values.threads === undefined ? undefined : wholeNumber("threads", values.threads, 1, 3),
    signal,
  };
}

const { seed, ...options } = orUsage(USAGE, readArguments);
process.stdout.write(`seed ${seed}\n`);
const report = await runKills({ random: new Random(seed), ...options });
process.stdout.write(`${describeKills(report)}\n`);
process.stdout.write(
  "after each: the database is sound, both sides of each match are there, no client order id is there twice, " +
    "and the next start kept every answer\n",
);
