/** Commands with wrong arguments report the usage on stderr, exit with 2, and do nothing. */
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
  oracle: "bench/oracle",
  replay: "bench/replay",
};
const OK = 0;
const WRONG_ARGUMENTS = 2;

const CALLS: readonly (readonly [name: string, ...args: string[]])[] = [
  ["simulate", "--nonsense"],
  ["simulate", "--seed", "x"],
  ["simulate", "--steps", "0"],
  ["crash", "--nonsense"],
  ["crash", "--seed", "x"],
  ["crash", "--kills", "1.5"],
  ["crash", "--threads", "4"],
  ["crash", "--signal", "HUP"],
  ["crash", "--rounds", "3"],
  ["crash", "--standby", "--kills", "3"],
  ["crash", "--standby", "--rounds", "0"],
  ["fuzz", "--nonsense"],
  ["fuzz", "--seed", "x"],
  ["fuzz", "--seconds", "-1"],
  ["fuzz", "--only", "udp"],
  ["fuzz", "--case", "first"],
  ["fuzz", "http"],
  ["bench", "--nonsense"],
  ["bench", "--smoke=5"],
  ["bench", "nosuch"],
  ["bench", "--smoke", "--record"],
  ["demo", "--nonsense"],
  ["demo", "--seed", "x"],
  ["demo", "--fresh=5"],
  ["demo", "fresh"],
  ["oracle"],
  ["oracle", "--nonsense"],
  ["oracle", "a.csv", "b.csv"],
  ["oracle", "a.csv", "--reports"],
  ["replay"],
  ["replay", "--nonsense"],
  ["replay", "a", "b"],
  ["replay", "a", "--log", "b"],
  ["replay", "a", "--connections", "0"],
  ["replay", "a", "--url", "localhost:80"],
  ["replay", "a", "--url", "http://localhost:80", "--write-seed", "b"],
];

test.each(
  Object.keys(FILES).flatMap(
    (name) =>
      [
        [name, "--help"],
        [name, "-h"],
      ] as const,
  ),
)("%s %s prints the usage and exits with 0", async (name, option) => {
  const { code, stdout, stderr } = await command(FILES[name]!, [option]);
  expect([code, stderr]).toEqual([OK, ""]);
  expect(stdout).toContain(name);
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function command(file: string, args: readonly string[]): Promise<Ended> {
  const path = fileURLToPath(new URL(`../../dist/${file}.js`, import.meta.url));
  // Without VITEST, which would make the crash run behave as if a test ran it.
  const env = { PATH: process.env["PATH"] };
  const ended = run(process.execPath, [path, ...args], { env }).then((output) => ({ code: OK, ...output }));
  return ended.catch((error: Ended) => error);
}

test.each(CALLS.map((call) => [call.join(" "), ...call] as const))("%s", async (_, name, ...args) => {
  const { code, stdout, stderr } = await command(FILES[name]!, args);
  expect([code, stdout], stderr).toEqual([WRONG_ARGUMENTS, ""]);
  expect(stderr.trim().split("\n")).toHaveLength(1);
  expect(stderr).toMatch(new RegExp(`; ${name} (\\[--|FILE|DIR)`));
});

test.each(["nonsense", "verify --nonsense", "user nonsense"])("admin %s", async (args) => {
  const { code, stdout, stderr } = await command("admin", args.split(" "));
  expect([code, stdout], stderr).toEqual([WRONG_ARGUMENTS, ""]);
  expect(stderr).toContain("Usage: npm run admin -- COMMAND");
});
