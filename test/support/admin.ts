/** Runs the operator's command line as an operator does: the built program, as a process, on a server's data folder. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { builtScript } from "../../bench/support/root.ts";
import { PUBLIC_URL } from "./world.ts";

export const ADMIN = fileURLToPath(builtScript("admin.js"));

export interface AdminRun {
  /** The exit code. */
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

export const environmentOf = (dataDir: string): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"],
  DATA_DIR: dataDir,
  PUBLIC_URL,
});

/** `log` prints much. */
const MAX_OUTPUT = 2 ** 28;

/** Starts a command, for a test that kills it. */
export function startAdmin(dataDir: string, ...args: string[]): ChildProcess {
  return spawn(process.execPath, [ADMIN, ...args], { env: environmentOf(dataDir), stdio: "ignore" });
}

/** Runs a command to its end, whatever its exit code. */
export function admin(dataDir: string, ...args: string[]): Promise<AdminRun> {
  return adminUnder([], dataDir, ...args);
}

/** Runs a command through another program such as `prlimit`. */
export function adminUnder(wrapper: readonly string[], dataDir: string, ...args: string[]): Promise<AdminRun> {
  const [program, ...rest] = [...wrapper, process.execPath, ADMIN, ...args];
  return new Promise((resolve) => {
    execFile(program!, rest, { env: environmentOf(dataDir), maxBuffer: MAX_OUTPUT }, (error, out, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, errors });
    });
  });
}
