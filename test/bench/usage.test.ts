/** Commands that were called wrongly say so in one line, and do nothing. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const FILES: Readonly<Record<string, string>> = {
  simulate: "test/simulation/simulate-run",
  crash: "test/crash/crash-run",
  fuzz: "test/attack/fuzz-run",
  bench: "bench/run",
  demo: "bench/demo",
};

const CALLS: readonly (readonly [name: string, ...args: string[]])[] = [
  ["simulate", "--nonsense"],
  ["simulate", "--seed", "x"],
  ["simulate", "--steps", "0"],
  ["crash", "--nonsense"],
  ["crash", "--seed", "x"],
  ["crash", "--kills", "1.5"],
  ["crash", "--threads", "4"],
  ["crash", "--signal", "HUP"],
  ["fuzz", "--nonsense"],
  ["fuzz", "--seed", "x"],
  ["fuzz", "--seconds", "-1"],
  ["fuzz", "--only", "udp"],
  ["fuzz", "--case", "first"],
  ["fuzz", "http"],
  ["bench", "--nonsense"],
  ["bench", "--smoke=5"],
  ["demo", "--nonsense"],
  ["demo", "--seed", "x"],
  ["demo", "--fresh=5"],
  ["demo", "fresh"],
];

test.each(CALLS)("%s %s %s", async (name, ...args) => {
  const file = fileURLToPath(new URL(`../../dist/${FILES[name]}.js`, import.meta.url));
  // Not vitest's: the crash run takes its expectations from there, and would think that it were under test.
  const env = { PATH: process.env["PATH"] };
  const failure = await run(process.execPath, [file, ...args], { env }).catch(
    (error: { code: number; stderr: string; stdout: string }) => error,
  );
  expect(failure).toMatchObject({ code: 2, stdout: "" });
  expect(failure.stderr.trim().split("\n")).toHaveLength(1);
  expect(failure.stderr).toContain(`; ${name} [--`);
});
