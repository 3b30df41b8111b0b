/**
 * `npm run simulate -- --seed N --steps M`: worlds one after the other, each with its own seed derived from the first
 * one, for a total number of steps. Prints what was covered. Exit codes: 1 at the first difference between the exchange
 * and its references, printed with the seed and steps that repeat it; 2 for wrong arguments.
 */
import { parseArgs } from "node:util";
import { Progress } from "../../bench/support/progress.ts";
import { orUsage, wholeNumber } from "../../bench/support/usage.ts";
import { freshSeed } from "../support/random.ts";
import { runWorlds, Simulated } from "./run.ts";
import { Tally } from "./tally.ts";

const DEFAULT_STEPS = 1_000_000;

function readArguments(): { seed: number; steps: number } {
  const { values } = parseArgs({ options: { seed: { type: "string" }, steps: { type: "string" } } });
  const seed = wholeNumber("seed", values.seed ?? String(freshSeed()), 0, 2 ** 31);
  return { seed, steps: wholeNumber("steps", values.steps ?? String(DEFAULT_STEPS), 1, 2 ** 31) };
}

async function main(): Promise<void> {
  const { seed, steps } = orUsage("simulate [--seed N] [--steps M]", readArguments);
  process.stdout.write(`seed ${seed}, ${steps} steps\n`);
  const tally = new Tally();
  const progress = new Progress("steps", steps);
  const [began, used] = [performance.now(), process.cpuUsage()];
  try {
    const { hash, worlds } = await runWorlds(seed, steps, tally, (done) => progress.update(done));
    progress.end();
    const { user, system } = process.cpuUsage(used);
    const rate = (ms: number): string => `${Math.round((steps / ms) * 60_000).toLocaleString("en")} steps a minute`;
    for (const line of tally.lines()) process.stdout.write(`  ${line}\n`);
    process.stdout.write(`${worlds} worlds without a difference, hash ${hash.toString(16)}\n`);
    process.stdout.write(`${rate(performance.now() - began)}, ${rate((user + system) / 1_000)} of processor time\n`);
  } catch (error) {
    progress.end();
    const found = error instanceof Simulated ? error.message : String((error as Error).stack);
    process.stdout.write(`${found}\nagain: npm run simulate -- --seed ${seed} --steps ${steps}\n`);
    process.exit(1);
  }
}

await main();
