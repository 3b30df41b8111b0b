/** Runs worlds one after the other from one seed, and says where one failed. */
import { Random } from "../support/random.ts";
import { Hash } from "./clients.ts";
import { Disk } from "./disk.ts";
import type { Tally } from "./tally.ts";
import { World } from "./world.ts";

/** A world's files and histories grow with its steps, and with them what a look at all of it costs. */
const STEPS_OF_WORLD = 12_000;

/** A difference between the exchange and its references: when and where, and what was done last. */
export class Simulated extends Error {}

/** @param told called now and then with the steps done so far @throws Simulated */
export async function runWorlds(
  seed: number,
  steps: number,
  tally: Tally,
  told: (steps: number) => void = () => {},
): Promise<{ readonly hash: number; readonly worlds: number }> {
  const template = Disk.template();
  const seeds = new Random(seed);
  const hash = new Hash();
  let worlds = 0;
  for (let done = 0; done < steps; worlds++) {
    const world = new World(seeds.integer(0, 2 ** 31), template, tally);
    try {
      await world.run(Math.min(STEPS_OF_WORLD, steps - done));
    } catch (error) {
      const at = `seed ${seed}, step ${done + world.steps} (step ${world.steps} of world ${worlds + 1})`;
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      throw new Simulated(`${at}: ${text}\nlast steps: ${world.latest.join(", ")}`, { cause: error });
    }
    done += world.steps;
    hash.add(world.hash.value);
    told(done);
  }
  return { hash: hash.value, worlds };
}
