/** The simulation from a fresh seed, which is printed; and the same seed makes the same run. */
import { expect, test } from "vitest";
import { Random } from "../support/random.ts";
import { FIXED_SEED, STEPS, simulate } from "./command.ts";

test("no difference to the references from a fresh seed", { timeout: 240_000 }, async () => {
  const { seed } = Random.printed("simulation");
  expect(await simulate(seed, STEPS)).toContain("without a difference");
});

test("the same seed makes the same run", { timeout: 120_000 }, async () => {
  const reports = [await simulate(FIXED_SEED, 8_000), await simulate(FIXED_SEED, 8_000)];
  const [first, second] = reports.map((report) => report.replace(/^.*steps a minute.*$/m, ""));
  expect(first).toMatch(/hash [0-9a-f]+/);
  expect(second).toBe(first);
});
