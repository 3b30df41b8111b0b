/**
 * kill -9 of one exchange again and again, at every moment of its life and under every kind of load: it keeps what it
 * acknowledged, the database satisfies its invariants, nothing happens twice, and trading goes on.
 */
import { expect, test } from "vitest";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { describeKills, runKills } from "./kills.ts";

const KILLS = 5 * EFFORT;
const DEADLINE_MS = 240_000;

test(`kill -9, ${KILLS} times`, { timeout: DEADLINE_MS }, async () => {
  const report = await runKills({ random: Random.printed("kill -9"), kills: KILLS, signal: "mixed" });
  process.stdout.write(`${describeKills(report)}\n`);
  for (const end of ["load", "start", "shutdown"] as const) expect(report.ends.get(end), end).toBeGreaterThan(0);
  expect(report.retried).toBeGreaterThan(0);
});
