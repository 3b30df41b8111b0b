/** Runs worlds one after the other from one seed, and reports where one failed. */
import { Random } from "../support/random.ts";
import { Disk } from "./disk.ts";
import { Hash } from "./hash.ts";
import type { Tally } from "./tally.ts";
import { World } from "./world.ts";

/** A world's files and histories grow with its steps, and so does the cost of a full comparison. */
const STEPS_OF_WORLD = 12_000;

/** A difference between the exchange and its references, with its time and place and the last actions. */
export class Simulated extends Error {}

/** @param onProgress called now and then with the number of steps so far @throws Simulated */
export async function runWorlds(
  seed: number,
  steps: number,
  tally: Tally,
  onProgress: (steps: number) => void = () => {},
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
    onProgress(done);
  }
  return { hash: hash.value, worlds };
}
