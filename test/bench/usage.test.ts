/** Commands that were called wrongly say so in one line, and do nothing. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const SIMULATE = "test/simulation/simulate-run";
const CRASH = "test/crash/crash-run";
const FUZZ = "test/attack/fuzz-run";
const BENCH = "bench/run";

const CALLS: readonly (readonly [command: string, ...args: string[]])[] = [
  ...[SIMULATE, CRASH, FUZZ, BENCH].map((command) => [command, "--nonsense"] as const),
  ...[SIMULATE, CRASH, FUZZ].map((command) => [command, "--seed", "x"] as const),
  [SIMULATE, "--steps", "0"],
  [CRASH, "--kills", "1.5"],
  [CRASH, "--threads", "4"],
  [CRASH, "--signal", "HUP"],
  [FUZZ, "--seconds", "-1"],
  [FUZZ, "--only", "udp"],
  [FUZZ, "--case", "first"],
  [FUZZ, "http"],
  [BENCH, "--smoke=5"],
];

test.each(CALLS)("%s %s %s", async (command, ...args) => {
  const file = fileURLToPath(new URL(`../../dist/${command}.js`, import.meta.url));
  // Not vitest's: the crash run takes its expectations from there, and would think that it were under test.
  const env = { PATH: process.env["PATH"] };
  const failure = await run(process.execPath, [file, ...args], { env }).catch(
    (error: { code: number; stderr: string; stdout: string }) => error,
  );
  expect(failure).toMatchObject({ code: 2, stdout: "" });
  expect(failure.stderr.trim().split("\n")).toHaveLength(1);
  expect(failure.stderr).toContain(`; ${command.replace(/.*\/(\w+)-run$/, "$1").replace("bench/run", "bench")} [--`);
});
