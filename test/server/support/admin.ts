/** The operator's command line, run as an operator runs it: built, in a process of its own, on a server's data folder. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { PUBLIC_URL } from "./world.ts";

const ADMIN = fileURLToPath(new URL("../../../dist/admin.js", import.meta.url));

export interface AdminRun {
  /** The exit code. */
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

/** Runs a command to its end, good or bad. */
export function admin(dataDir: string, ...args: string[]): Promise<AdminRun> {
  const env = { PATH: process.env["PATH"], DATA_DIR: dataDir, PUBLIC_URL };
  return new Promise((resolve) => {
    execFile(process.execPath, [ADMIN, ...args], { env }, (error, out, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, errors });
    });
  });
}
