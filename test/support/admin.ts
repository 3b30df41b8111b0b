/** The operator's command line, run as an operator runs it: built, in a process of its own, on a server's data folder. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { PUBLIC_URL } from "./world.ts";

export const ADMIN = fileURLToPath(new URL("../../dist/admin.js", import.meta.url));

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

/** Begins a command, for a test that ends it before its time. */
export function startAdmin(dataDir: string, ...args: string[]): ChildProcess {
  return spawn(process.execPath, [ADMIN, ...args], { env: environmentOf(dataDir), stdio: "ignore" });
}

/** Runs a command to its end, good or bad. */
export function admin(dataDir: string, ...args: string[]): Promise<AdminRun> {
  return adminUnder([], dataDir, ...args);
}

/** The same, started by another program such as `prlimit`. */
export function adminUnder(wrapper: readonly string[], dataDir: string, ...args: string[]): Promise<AdminRun> {
  const [program, ...rest] = [...wrapper, process.execPath, ADMIN, ...args];
  return new Promise((resolve) => {
    execFile(program!, rest, { env: environmentOf(dataDir) }, (error, out, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, errors });
    });
  });
}
