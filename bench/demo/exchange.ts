/**
 * The real exchange as a child process, with this process's environment and the demo's settings. A channel to this
 * process makes it stop when this process ends, however that happens. Ctrl-C in the terminal doesn't reach it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { urlOf } from "../../server/bootstrap/config.ts";
import { readEnvironment } from "../../server/bootstrap/environment.ts";
import { ROOT } from "../support/root.ts";
import { START_OPTIONS } from "../support/start-options.ts";

const START_DEADLINE_MS = 120_000;
const STOP_DEADLINE_MS = 15_000;
/** Log lines from this level on are errors. */
const ERROR_LEVEL = 50;
/** Bots have individual factors; limits per address apply to one address for all bots and the page. */
const RATE_LIMITS = JSON.stringify({ address: 2_000, order_address: 100_000 });
const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** Fails before anything is made where another program has the port. @throws Error */
export async function expectFreePort(): Promise<void> {
  const { HOST: host, PORT: port } = readEnvironment(process.env);
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, "listening");
  } catch (error) {
    throw new Error(`HOST, PORT: cannot listen on ${host}:${port} (${(error as NodeJS.ErrnoException).code})`);
  }
  server.close();
  await once(server, "close");
}

export class DemoExchange {
  /** The URL without a path. */
  readonly url: string;
  /** Of its process. */
  readonly pid: number;
  private readonly child: ChildProcess;
  /** Resolves with a description once the process has ended. */
  readonly ended: Promise<string>;

  private constructor(child: ChildProcess, ended: Promise<string>, url: string) {
    this.child = child;
    this.pid = child.pid!;
    this.ended = ended;
    this.url = url;
  }

  /** Resolves once the exchange is operational. @throws Error with a one-line reason if it doesn't start */
  static async start(dataDir: string, seedFile: string): Promise<DemoExchange> {
    const { TLS_CERT: _cert, TLS_KEY: _key, ...rest } = process.env;
    const own = { DATA_DIR: dataDir, SEED_FILE: seedFile, LOG_LEVEL: "info", NETWORK: "on" };
    const instructions = fileURLToPath(new URL("docs/operations/deposit-instructions.txt", ROOT));
    const example = existsSync(instructions) ? { DEPOSIT_INSTRUCTIONS: instructions } : {};
    const env = { RATE_LIMITS, ...example, ...rest, ...own };
    const child = spawn(process.execPath, [...START_OPTIONS, fileURLToPath(new URL("dist/main.js", ROOT))], {
      env,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true,
    });
    let errors = "";
    child.stderr!.on("data", (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-4_000);
    });
    const ended = new Promise<string>((resolve) => {
      child.once("close", (code, signal) => {
        const why = errors.split("\n").find((line) => line.startsWith("cannot start")) ?? "";
        resolve(`the exchange ended (${signal ?? `exit code ${code}`}) ${why}`.trim());
      });
    });
    const { HOST: host } = readEnvironment(process.env);
    const port = await readyPort(child, ended);
    return new DemoExchange(child, ended, urlOf(false, WILDCARDS[host] ?? host, port));
  }

  /** Stops the exchange as an operator would; returns whether it ended cleanly and in time. */
  async stop(): Promise<boolean> {
    this.child.kill("SIGTERM");
    const timer = setTimeout(() => this.child.kill("SIGKILL"), STOP_DEADLINE_MS);
    await this.ended;
    clearTimeout(timer);
    return this.child.exitCode === 0;
  }
}

/** The port from the log's ready line. Copies error lines to stderr, then and later. */
async function readyPort(child: ChildProcess, ended: Promise<string>): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const ready = new Promise<number>((resolve, reject) => {
    timer = setTimeout(() => reject(new Error("the exchange is not ready after two minutes")), START_DEADLINE_MS);
    createInterface({ input: child.stdout! }).on("line", (line) => {
      const { level, msg, port } = JSON.parse(line) as { level: number; msg: string; port?: number };
      if (msg === "ready") resolve(port!);
      if (level >= ERROR_LEVEL) process.stderr.write(`${line}\n`);
    });
    void ended.then((how) => reject(new Error(how)));
  });
  try {
    return await ready;
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
