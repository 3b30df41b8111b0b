/**
 * `npm run crash`: kills a real server under load as often as asked, and holds it to what it had answered. With `--standby` a
 * pair of boxes and their nodes, which are also cut off, stopped, hung, and left without a disk.
 */
import { parseArgs } from "node:util";
import { orUsage, wholeNumber } from "../../bench/support/usage.ts";
import { freshSeed, Random } from "../support/random.ts";
import { describeKills, type KillsOptions, runKills } from "./kill-loop.ts";
import { describePair, type PairOptions, runPair } from "./pair-loop.ts";

const SIGNALS = ["KILL", "TERM", "mixed"] as const;
const USAGE = `crash [--seed N] [--kills N] [--threads 1|2|3] [--signal ${SIGNALS.join("|")}] | --standby [--seed N] [--rounds N]`;

type Arguments =
  | { readonly seed: number; readonly standby: true; readonly rounds: number }
  | ({ readonly seed: number; readonly standby: false } & Pick<KillsOptions, "kills" | "threads" | "signal">);

function readArguments(): Arguments {
  const text = { type: "string" } as const;
  const options = { seed: text, kills: text, threads: text, signal: text, rounds: text, standby: { type: "boolean" } };
  const { values } = parseArgs({ options: options as typeof options & { standby: { type: "boolean" } } });
  const seed = wholeNumber("seed", values.seed ?? String(freshSeed()), 0, 2 ** 31);
  const { kills, threads, rounds } = values;
  if (values.standby === true) {
    if (kills !== undefined || threads !== undefined || values.signal !== undefined) {
      throw new Error("--standby goes with --seed and --rounds alone");
    }
    return { seed, standby: true, rounds: wholeNumber("rounds", rounds ?? "200", 1, 1e6) };
  }
  if (rounds !== undefined) throw new Error("--rounds goes with --standby");
  const signal = SIGNALS.find((name) => name === (values.signal ?? "mixed"));
  if (signal === undefined) throw new Error(`--signal ${values.signal}: one of ${SIGNALS.join(", ")}`);
  return {
    seed,
    standby: false,
    kills: wholeNumber("kills", kills ?? "50", 1, 1e6),
    threads: threads === undefined ? undefined : wholeNumber("threads", threads, 1, 3),
    signal,
  };
}

const given = orUsage(USAGE, readArguments);
const random = new Random(given.seed);
process.stdout.write(`seed ${given.seed}\n`);
if (given.standby) {
  const onRound: PairOptions["onRound"] = (round, kind, ms) => {
    process.stdout.write(`${round}: ${kind}${ms === null ? "" : `, nobody active for ${ms} ms`}\n`);
  };
  const report = await runPair({ random, rounds: given.rounds, onRound });
  process.stdout.write(`${describePair(report)}\n`);
  process.stdout.write(
    "after each: every answer is there once, whichever box gave it; in the end both have the same log and tables\n",
  );
} else {
  const report = await runKills({ random, ...given });
  process.stdout.write(`${describeKills(report)}\n`);
  process.stdout.write(
    "after each: the database is sound, both sides of each match are there, no client order id is there twice, " +
      "and the next start kept every answer\n",
  );
}
