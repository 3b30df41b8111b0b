/** The operator's command line, run as an operator runs it: built, in a process of its own, on a server's data folder. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { PUBLIC_URL } from "./world.ts";

const ADMIN = fileURLToPath(new URL("../../../dist/admin.js", import.meta.url));

export interface AdminRun {
  /** The exit code. */
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

const environment = (dataDir: string) => ({ PATH: process.env["PATH"], DATA_DIR: dataDir, PUBLIC_URL });

/** Begins a command, for a test that ends it before its time. */
export function startAdmin(dataDir: string, ...args: string[]): ChildProcess {
  return spawn(process.execPath, [ADMIN, ...args], { env: environment(dataDir), stdio: "ignore" });
}

/** Runs a command to its end, good or bad. */
export function admin(dataDir: string, ...args: string[]): Promise<AdminRun> {
  return new Promise((resolve) => {
    execFile(process.execPath, [ADMIN, ...args], { env: environment(dataDir) }, (error, out, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, errors });
    });
  });
}
