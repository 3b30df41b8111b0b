/** Runs the built exchange as a process of its own on a free port of 127.0.0.1, with a data folder that it is given. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "./child.ts";

const STOP_DEADLINE_MS = 15_000;

export interface ExchangeOptions {
  readonly dataDir: string;
  /** As SEED_FILE holds it; without one the exchange takes its sample markets. */
  readonly seed?: object;
  /** Of its environment, beside what this process has. */
  readonly settings?: Readonly<Partial<Record<Setting, string>>>;
  /** Options of Node itself. */
  readonly nodeOptions?: readonly string[];
}

/** From this level on a line of the log tells of trouble. */
const ERROR_LEVEL = 50;

const SETTINGS = ["ENGINE_THREADS", "DURABILITY"] as const;
type Setting = (typeof SETTINGS)[number];
/** How long it must be quiet; what `--smoke` measures doesn't count. */
const QUIET_MS = process.argv.includes("--smoke") ? 30 : 300;
/** Clock ticks a second, as /proc counts them (USER_HZ). */
const TICKS_PER_SECOND = 100;

/** The line of its log that says that it trades. */
interface Ready {
  readonly level: number;
  readonly msg: string;
  readonly port: number;
  readonly restored: number;
}

export class ExchangeProcess {
  readonly url: string;
  /** Live orders that it found in its data folder. */
  readonly restored: number;
  /** From its start until it traded. */
  readonly readyMs: number;
  /** Lines of its log that tell of errors. */
  readonly trouble: readonly string[];
  private readonly child: Child;

  private constructor(child: Child, { port, restored }: Ready, readyMs: number, trouble: readonly string[]) {
    this.child = child;
    this.trouble = trouble;
    this.url = `http://127.0.0.1:${port}`;
    this.restored = restored;
    this.readyMs = readyMs;
  }

  /**
   * Resolves when it trades. Rate limits are off; ENGINE_THREADS and DURABILITY are as the options or this process's
   * environment have them, else FULL. @throws Error that says why it doesn't
   */
  static async start({ dataDir, seed, settings = {}, nodeOptions = [] }: ExchangeOptions): Promise<ExchangeProcess> {
    const env: NodeJS.ProcessEnv = { HOST: "127.0.0.1", PORT: "0", DATA_DIR: dataDir, RATE_LIMITS: "off" };
    env["MAX_SOCKETS_PER_ADDRESS"] = "100000";
    for (const name of SETTINGS) {
      const value = settings[name] ?? process.env[name];
      if (value !== undefined) env[name] = value;
    }
    if (seed !== undefined) {
      env["SEED_FILE"] = join(dataDir, "seed.json");
      writeFileSync(env["SEED_FILE"], JSON.stringify(seed), { mode: 0o600 });
    }
    const start = performance.now();
    const child = new Child("the exchange", "main.js", [], env, nodeOptions);
    const trouble: string[] = [];
    const ready = await child.line((line) => {
      const entry = JSON.parse(line) as Ready;
      if (entry.level >= ERROR_LEVEL) trouble.push(line);
      return entry.msg === "ready" ? entry : undefined;
    });
    return new ExchangeProcess(child, ready, performance.now() - start, trouble);
  }

  /** Resolves when the process has ended, in words that say how. */
  get ended(): Promise<string> {
    return this.child.ended;
  }

  /** Resident memory of the whole process, bytes. */
  residentBytes(): number {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.child.pid}/status`, "utf8"));
    if (line === null) throw new Error("VmRSS is missing in /proc");
    return Number(line[1]) * 1024;
  }

  /** Processor time, user and system, that the process has used so far: other processes disturb it less than a rate. */
  processorSeconds(): number {
    return this.processorTicks() / TICKS_PER_SECOND;
  }

  /** The same of its main thread, which is the gateway, and of all others together. */
  threadSeconds(): { main: number; others: number } {
    const { pid } = this.child;
    const main = readTicks(`/proc/${pid}/task/${pid}/stat`) / TICKS_PER_SECOND;
    return { main, others: this.processorSeconds() - main };
  }

  private processorTicks(): number {
    return readTicks(`/proc/${this.child.pid}/stat`);
  }

  /** Resolves when the exchange has nothing left to do (or after 10 s): what comes next is measured without it. */
  async quiet(): Promise<void> {
    for (let i = 0, before = this.processorTicks(); i < 33; i++) {
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
      const now = this.processorTicks();
      if (now - before <= 2) return;
      before = now;
    }
  }

  /** Asks it to end as an operator would. @throws Error where it doesn't end, or not with exit code 0 */
  async stop(): Promise<void> {
    const { process } = this.child;
    process.kill("SIGTERM");
    const timer = setTimeout(() => process.kill("SIGKILL"), STOP_DEADLINE_MS);
    const how = await this.ended;
    clearTimeout(timer);
    if (process.exitCode !== 0) throw new Error(how);
  }

  /** Ends it as a crash would, with nothing finished. */
  async kill(): Promise<void> {
    this.child.process.kill("SIGKILL");
    await this.ended;
  }
}

/** User and system time that a stat file of /proc tells. */
function readTicks(path: string): number {
  const fields = readFileSync(path, "utf8").split(") ")[1]!.split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
