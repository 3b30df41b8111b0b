/**
 * Starts another script of this program in its own process and ends it together with this one. Ends only processes that
 * it started, by id.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ROOT } from "./root.ts";

const START_DEADLINE_MS = 120_000;
/** The environment variables that a child inherits. */
const PASSED_ON = ["PATH", "NODE_OPTIONS", "TMPDIR"];

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export class Child {
  readonly process: ChildProcess;
  /** Resolves with a description once the process has ended. */
  readonly ended: Promise<string>;
  private readonly name: string;
  private errors = "";

  /** @param script a path below dist/ @param nodeOptions options of Node itself */
  constructor(
    name: string,
    script: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    nodeOptions: readonly string[] = [],
  ) {
    this.name = name;
    const path = fileURLToPath(new URL(`dist/${script}`, ROOT));
    for (const name of PASSED_ON) if (process.env[name] !== undefined) env[name] = process.env[name];
    this.process = spawn(process.execPath, [...nodeOptions, path, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    running.add(this.process);
    this.process.stderr!.on("data", (chunk: Buffer) => {
      this.errors = (this.errors + chunk.toString()).slice(-4_000);
    });
    this.ended = new Promise((resolve) => {
      this.process.once("close", (code, signal) => {
        running.delete(this.process);
        resolve(`${name} ended (${signal ?? `exit code ${code}`}) ${this.errors.trim()}`.trim());
      });
    });
  }

  get pid(): number {
    return this.process.pid!;
  }

  /** The first result of `find` for a line of output. Rejects if the process ends before that. */
  async line<T>(find: (line: string) => T | undefined): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const found = new Promise<T>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`${this.name} is not ready after two minutes`)), START_DEADLINE_MS);
      // Keep reading, so that the pipe doesn't fill up.
      createInterface({ input: this.process.stdout! }).on("line", (line) => {
        const result = find(line);
        if (result !== undefined) resolve(result);
      });
      void this.ended.then((how) => reject(new Error(how)));
    });
    try {
      return await found;
    } finally {
      clearTimeout(timer);
    }
  }
}
