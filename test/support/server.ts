/**
 * Runs the built server as a child process: start on a free port with a seed and a folder of its own, wait for the
 * `ready` line, stop by SIGTERM, kill -9, start again on the same folder. Knows the process and its log, not the API.
 * Ends only processes that it started, by their id; removes its folders when the test file ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { asksToBegin, beginExchange } from "../../bench/support/first-start.ts";
import { builtScript } from "../../bench/support/root.ts";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { keyFolder } from "../../server/util/data-folder.ts";
import { atFileEnd } from "./file-end.ts";

const MAIN = fileURLToPath(builtScript("main.js"));
const START_DEADLINE_MS = 30_000;
/** The contract's limit between SIGTERM and exit. */
const STOP_DEADLINE_MS = 10_000;

const running = new Set<ChildProcess>();
const folders = new Set<string>();
function cleanUp(): void {
  for (const child of running) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
if (process.env["VITEST"] === undefined) process.once("exit", cleanUp);
else atFileEnd(cleanUp);

/** Creates a folder under the system's temporary one. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "exchange-test-"));
  folders.add(folder);
  return folder;
}

/** Gives a new server the key that test/build.ts made. */
function giveKey(dataDir: string): void {
  const keys = process.env["TEST_KEYS"];
  if (keys !== undefined) cpSync(keys, keyFolder(dataDir), { recursive: true });
}

export type LogLine = { readonly level: number; readonly msg: string } & Readonly<Record<string, unknown>>;

export interface ServerOptions {
  readonly seed?: Seed;
  /** A temporary folder by default. */
  readonly dataDir?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Makes a signing key of its own instead of the one that the servers of all tests begin with. */
  readonly hasOwnKey?: boolean;
  /** Runs it as another user; only root may. */
  readonly uid?: number;
  /** Its limit of open files; needs the prlimit command (util-linux). */
  readonly openFiles?: number;
}

function environment(options: ServerOptions, dataDir: string): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    PATH: process.env["PATH"],
    HOST: "127.0.0.1",
    PORT: "0",
    DATA_DIR: dataDir,
    RATE_LIMITS: "off",
    MAX_SOCKETS_PER_ADDRESS: "100000",
    // With TEST_ENGINE_THREADS=3, tests that don't set the number of threads run on three.
    ENGINE_THREADS: process.env["TEST_ENGINE_THREADS"] ?? "1",
  };
  if (options.seed !== undefined) {
    env["SEED_FILE"] = join(dataDir, "seed.json");
    writeFileSync(env["SEED_FILE"], JSON.stringify(options.seed));
  }
  return { ...env, ...options.env };
}

export class TestServer {
  readonly dataDir: string;
  readonly log: LogLine[] = [];
  /** The server's stderr so far. */
  errors = "";
  port = 0;
  private readonly options: ServerOptions;
  private readonly child: ChildProcess;
  private readonly exited: Promise<number | null>;
  private watchers: (() => void)[] = [];

  private constructor(options: ServerOptions) {
    this.options = options;
    this.dataDir = options.dataDir ?? temporaryFolder();
    if (options.dataDir === undefined && options.hasOwnKey !== true) giveKey(this.dataDir);
    const { openFiles } = options;
    const limited = openFiles === undefined ? [] : ["prlimit", `--nofile=${openFiles}:${openFiles}`];
    const [command = "", ...args] = [...limited, process.execPath, MAIN];
    this.child = spawn(command, args, {
      env: environment(options, this.dataDir),
      stdio: ["ignore", "pipe", "pipe"],
      ...(options.uid !== undefined && { uid: options.uid }),
    });
    running.add(this.child);
    this.exited = new Promise((resolve) => {
      this.child.once("close", (code) => {
        running.delete(this.child);
        resolve(code);
        this.changed();
      });
    });
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      this.log.push(JSON.parse(line) as LogLine);
      this.changed();
    });
    this.child.stderr!.on("data", (chunk: Buffer) => {
      this.errors += chunk.toString();
    });
  }

  /** Starts a server without waiting. */
  static spawn(options: ServerOptions): TestServer {
    return new TestServer(options);
  }

  /** Starts a server and waits until it logs that it is ready. */
  static async start(options: ServerOptions = {}): Promise<TestServer> {
    const server = new TestServer(options);
    await server.ready();
    return server;
  }

  /** Starts a server that must refuse to start; returns its exit code and its stderr. */
  static async refuse(options: ServerOptions): Promise<{ code: number | null; errors: string }> {
    const server = new TestServer(options);
    const ready = server.logged((line) => line.msg === "ready", START_DEADLINE_MS).catch(() => null);
    if ((await Promise.race([ready, server.exited.then(() => null)])) !== null) {
      await server.kill();
      throw new Error("the server started");
    }
    return { code: await server.exited, errors: server.errors };
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** The process's resident memory in bytes. */
  get residentBytes(): number {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, "utf8"))!;
    return Number(kilobytes) * 1_024;
  }

  /** Without the version prefix. */
  get root(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get alive(): boolean {
    return running.has(this.child);
  }

  /** Resolves when the server logs that it is ready. */
  async ready(): Promise<void> {
    const isReady = ({ msg }: LogLine): boolean => msg === "ready";
    const first = await this.logged((line) => isReady(line) || asksToBegin(line.msg), START_DEADLINE_MS);
    if (asksToBegin(first.msg)) await beginExchange(this.dataDir);
    const ready = await this.logged(isReady, START_DEADLINE_MS);
    this.port = Number(ready["port"]);
  }

  /** The first matching log line, past or future. Rejects if the process ends first. */
  async logged(fits: (line: LogLine) => boolean, deadlineMs = 10_000): Promise<LogLine> {
    const deadline = Date.now() + deadlineMs;
    for (;;) {
      const found = this.log.find(fits);
      if (found !== undefined) return found;
      if (!this.alive) throw new Error(`the server ended: ${this.errors}${this.logText()}`);
      const changed = new Promise<void>((resolve) => this.watchers.push(resolve));
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`no such log line in ${deadlineMs} ms: ${this.errors}${this.logText()}`);
      await within(changed, left);
    }
  }

  /** Sends SIGTERM and expects exit code 0 in time. */
  async stop(): Promise<void> {
    this.child.kill("SIGTERM");
    const code = await this.exit(STOP_DEADLINE_MS);
    if (code !== 0) throw new Error(`exit code ${code} after SIGTERM: ${this.errors}${this.logText()}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** The exit code; null if a signal ended the process. Kills the process and fails if it doesn't end in time. */
  async exit(deadlineMs: number): Promise<number | null> {
    const code = await within(this.exited, deadlineMs);
    if (code !== undefined) return code;
    await this.kill();
    throw new Error(`still running after ${deadlineMs} ms: ${this.errors}${this.logText()}`);
  }

  /** Sends kill -9 and waits for the end of the process. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.exited;
  }

  /** A new server on the same folder, which must be free. */
  restart(env: Readonly<Record<string, string>> = {}): Promise<TestServer> {
    const options = { ...this.options, dataDir: this.dataDir, env: { ...this.options.env, ...env } };
    return TestServer.start(options);
  }

  private logText(): string {
    return this.log.map((line) => JSON.stringify(line)).join("\n");
  }

  private changed(): void {
    const { watchers } = this;
    this.watchers = [];
    for (const watcher of watchers) watcher();
  }
}

/** The value, or undefined if the promise doesn't resolve in time. */
export async function within<T>(value: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([value, late]);
  } finally {
    clearTimeout(timer);
  }
}
