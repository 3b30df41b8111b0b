/**
 * kill -9 of one exchange again and again, at every moment of its life and under every kind of load: it keeps what it
 * acknowledged, the database satisfies its invariants, nothing happens twice, and trading goes on.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { builtScript } from "../../bench/support/root.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { describeKills, runKills } from "./kill-loop.ts";

const KILLS = 5 * EFFORT;
const DEADLINE_MS = 240_000;

test(`kill -9, ${KILLS} times`, { timeout: DEADLINE_MS }, async () => {
  const report = await runKills({ random: Random.printed("kill -9"), kills: KILLS, signal: "mixed" });
  process.stdout.write(`${describeKills(report)}\n`);
  for (const end of ["load", "start", "shutdown"] as const) expect(report.ends.get(end), end).toBeGreaterThan(0);
  expect(report.retried).toBeGreaterThan(0);
});

test("the command runs as it was built", { timeout: DEADLINE_MS }, async () => {
  const command = fileURLToPath(builtScript("test/crash/crash-run.js"));
  const { stdout } = await promisify(execFile)(process.execPath, [command, "--kills", "1", "--threads", "1"]);
  expect(stdout).toContain("after each: the database is sound");
});
