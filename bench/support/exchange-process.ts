/**
 * Runs the built exchange as a process of its own on a free port of 127.0.0.1 with a data folder that it is given.
 * Ends only the processes that it started, by their id.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../main.js", import.meta.url));
const START_DEADLINE_MS = 120_000;
const STOP_DEADLINE_MS = 15_000;
/** What of this process's environment the exchange is started with; everything else has its default. */
const PASSED_ON = ["PATH", "NODE_OPTIONS", "ENGINE_THREADS", "DURABILITY", "TMPDIR"];

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export interface ExchangeOptions {
  readonly dataDir: string;
  /** As SEED_FILE holds it; without one the exchange takes its sample markets. */
  readonly seed?: object;
}

export class ExchangeProcess {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the process has ended, in words that say how. */
  readonly ended: Promise<string>;
  private readonly child: ChildProcess;

  private constructor(child: ChildProcess, port: number, ended: Promise<string>) {
    this.child = child;
    this.pid = child.pid!;
    this.url = `http://127.0.0.1:${port}`;
    this.ended = ended;
  }

  /** Resolves when it trades. @throws Error that says why it doesn't */
  static async start({ dataDir, seed }: ExchangeOptions): Promise<ExchangeProcess> {
    const env: NodeJS.ProcessEnv = { HOST: "127.0.0.1", PORT: "0", DATA_DIR: dataDir, RATE_LIMITS: "off" };
    for (const name of PASSED_ON) if (process.env[name] !== undefined) env[name] = process.env[name];
    if (seed !== undefined) {
      env["SEED_FILE"] = join(dataDir, "seed.json");
      writeFileSync(env["SEED_FILE"], JSON.stringify(seed), { mode: 0o600 });
    }
    const child = spawn(process.execPath, [MAIN], { env, stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    let errors = "";
    child.stderr!.on("data", (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-4_000);
    });
    const ended = new Promise<string>((resolve) => {
      child.once("close", (code, signal) => {
        running.delete(child);
        resolve(`the exchange ended (${signal ?? `exit code ${code}`}) ${errors.trim()}`.trim());
      });
    });
    const port = await readyPort(child, ended);
    return new ExchangeProcess(child, port, ended);
  }

  /** Resident memory of the whole process, bytes. */
  residentBytes(): number {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, "utf8"));
    if (line === null) throw new Error("VmRSS is missing in /proc");
    return Number(line[1]) * 1024;
  }

  /** Processor time that the process has used so far, in clock ticks. */
  private processorTicks(): number {
    const fields = readFileSync(`/proc/${this.pid}/stat`, "utf8").split(") ")[1]!.split(" ");
    return Number(fields[11]) + Number(fields[12]);
  }

  /** Resolves when the exchange has nothing left to do (or after 10 s): what comes next is measured without it. */
  async quiet(): Promise<void> {
    for (let i = 0, before = this.processorTicks(); i < 33; i++) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      const now = this.processorTicks();
      if (now - before <= 2) return;
      before = now;
    }
  }

  /** Asks it to end as an operator would. @throws Error where it doesn't end, or not with exit code 0 */
  async stop(): Promise<void> {
    this.child.kill("SIGTERM");
    const timer = setTimeout(() => this.child.kill("SIGKILL"), STOP_DEADLINE_MS);
    const how = await this.ended;
    clearTimeout(timer);
    if (this.child.exitCode !== 0) throw new Error(how);
  }
}

/** The port from the line of the log that says ready. */
async function readyPort(child: ChildProcess, ended: Promise<string>): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const ready = new Promise<number>((resolve, reject) => {
    timer = setTimeout(() => reject(new Error("the exchange is not ready after two minutes")), START_DEADLINE_MS);
    // Reading on keeps the pipe of its log empty.
    createInterface({ input: child.stdout! }).on("line", (line) => {
      const { msg, port } = JSON.parse(line) as { msg?: string; port?: number };
      if (msg === "ready") resolve(Number(port));
    });
    void ended.then((how) => reject(new Error(how)));
  });
  try {
    return await ready;
  } finally {
    clearTimeout(timer);
  }
}
