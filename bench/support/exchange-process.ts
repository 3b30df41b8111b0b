/** Runs the built exchange in its own process, on a free port of 127.0.0.1, with a given data folder. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "./child.ts";
import { asksToBegin, beginExchange } from "./first-start.ts";
import { START_OPTIONS } from "./start-options.ts";

const STOP_DEADLINE_MS = 15_000;

export interface ExchangeOptions {
  readonly dataDir: string;
  /** In the format of SEED_FILE; without it the exchange creates its sample markets. */
  readonly seed?: object;
  /** Environment variables, besides those of this process. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Options of Node itself, beside those of `npm start`. */
  readonly nodeOptions?: readonly string[];
}

/** Log lines from this level on are errors. */
const ERROR_LEVEL = 50;

const SETTINGS = ["ENGINE_THREADS", "DURABILITY"] as const;
/** How long the process must be idle; shorter for `--smoke`, whose figures don't count. */
const QUIET_MS = process.argv.includes("--smoke") ? 30 : 300;
/** Clock ticks per second in /proc (USER_HZ). */
const TICKS_PER_SECOND = 100;

/** The log line that says that the exchange is operational. */
interface Ready {
  readonly level: number;
  readonly msg: string;
  readonly port: number;
  readonly restored: number;
}

export class ExchangeProcess {
  readonly url: string;
  /** Live orders restored from the data folder. */
  readonly restored: number;
  /** Time from start to operational. */
  readonly readyMs: number;
  /** The log's error lines. */
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
   * Resolves once the exchange is operational. Rate limits are off; ENGINE_THREADS and DURABILITY come from the options
   * or this process's environment, FULL by default. @throws Error with the reason if it doesn't start
   */
  static async start({ dataDir, seed, settings = {}, nodeOptions = [] }: ExchangeOptions): Promise<ExchangeProcess> {
    const env: NodeJS.ProcessEnv = { HOST: "127.0.0.1", PORT: "0", DATA_DIR: dataDir, RATE_LIMITS: "off" };
    env["MAX_SOCKETS_PER_ADDRESS"] = "100000";
    for (const name of SETTINGS) {
      const value = process.env[name];
      if (value !== undefined) env[name] = value;
    }
    Object.assign(env, settings);
    if (seed !== undefined) {
      env["SEED_FILE"] = join(dataDir, "seed.json");
      writeFileSync(env["SEED_FILE"], JSON.stringify(seed), { mode: 0o600 });
    }
    const start = performance.now();
    const child = new Child("the exchange", "main.js", [], env, [...START_OPTIONS, ...nodeOptions]);
    const trouble: string[] = [];
    const ready = await child.line((line) => {
      const entry = JSON.parse(line) as Ready;
      if (entry.level >= ERROR_LEVEL) trouble.push(line);
      if (asksToBegin(entry.msg)) void beginExchange(dataDir).catch((error: Error) => trouble.push(error.message));
      return entry.msg === "ready" ? entry : undefined;
    });
    return new ExchangeProcess(child, ready, performance.now() - start, trouble);
  }

  /** Resolves with a description once the process has ended. */
  get ended(): Promise<string> {
    return this.child.ended;
  }

  /** Resident memory of the whole process, bytes. */
  residentBytes(): number {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.child.pid}/status`, "utf8"));
    if (line === null) throw new Error("VmRSS is missing in /proc");
    return Number(line[1]) * 1024;
  }

  /** Processor time of the process so far, user and system. Other processes disturb it less than a rate. */
  processorSeconds(): number {
    return this.processorTicks() / TICKS_PER_SECOND;
  }

  /** Processor time of the main thread, which is the gateway, and of all other threads together. */
  threadSeconds(): { main: number; others: number } {
    const { pid } = this.child;
    const main = readTicks(`/proc/${pid}/task/${pid}/stat`) / TICKS_PER_SECOND;
    return { main, others: this.processorSeconds() - main };
  }

  private processorTicks(): number {
    return readTicks(`/proc/${this.child.pid}/stat`);
  }

  /**
   * Resolves once the exchange is idle (or after 10 s), so that its background work doesn't affect the next
   * measurement.
   */
  async quiet(): Promise<void> {
    for (let i = 0, before = this.processorTicks(); i < 33; i++) {
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
      const now = this.processorTicks();
      if (now - before <= 2) return;
      before = now;
    }
  }

  /** Stops the exchange as an operator would. @throws Error if it doesn't end with exit code 0 */
  async stop(): Promise<void> {
    const { process } = this.child;
    process.kill("SIGTERM");
    const timer = setTimeout(() => process.kill("SIGKILL"), STOP_DEADLINE_MS);
    const how = await this.ended;
    clearTimeout(timer);
    if (process.exitCode !== 0) throw new Error(how);
  }

  /** Kills it as a crash would. */
  async kill(): Promise<void> {
    this.child.process.kill("SIGKILL");
    await this.ended;
  }
}

/** The user and system time in a stat file of /proc. */
function readTicks(path: string): number {
  const fields = readFileSync(path, "utf8").split(") ")[1]!.split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
