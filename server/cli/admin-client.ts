/**
 * Connects the operator's command line to the server of a data folder: the one that runs, or one that it starts, which
 * opens no port and ends with the command. Either way the server does the work, with the same checks and durability.
 */
import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../engine/util/clock.ts";
import { type ControlRequest, sendRequest } from "../control/control-socket.ts";
import { STARTING, STOPPING } from "../errors.ts";
import { controlPath, FOLDER_IN_USE } from "../util/data-folder.ts";

/** The messages of a server that does not accept requests yet, or no longer does. */
const NOT_OPEN: readonly string[] = [STARTING, STOPPING];
/** How long another server may hold the folder without accepting requests, because it starts or stops. */
const IN_USE_MS = 30_000;
/** For how long nothing may respond between two servers, of which the first has ended: then none runs, or it is starting. */
const RESTART_MS = 2_000;
const RETRY_MS = 25;
/** How many characters of a server's last output are kept to explain why it ended. */
const MAX_OUTPUT = 4_000;

/** Sends a request; resolves with the response's data. @throws Error with the message of the server's error */
export type Call = (request: ControlRequest) => Promise<unknown>;

/** @param program the server's main file; null: only a server that runs is asked @throws Error where none does */
export async function withServer<T>(
  dataDir: string,
  program: string | null,
  run: (call: Call) => Promise<T>,
): Promise<T> {
  const server = new AdminClient(dataDir, program);
  try {
    return await run((request) => server.call(request));
  } finally {
    await server.leave();
  }
}

class AdminClient {
  private readonly path: string;
  private readonly dataDir: string;
  private readonly program: string | null;
  private readonly startedAt = systemClock.elapsed();
  /** When a server responded last, whatever it said. */
  private respondedAt = this.startedAt;
  private own: OwnServer | null = null;

  constructor(dataDir: string, program: string | null) {
    this.path = controlPath(dataDir);
    this.dataDir = dataDir;
    this.program = program;
  }

  private hasWaited(ms: number, since = this.startedAt): boolean {
    return systemClock.elapsed() > since + ms;
  }

  async call(request: ControlRequest): Promise<unknown> {
    for (;;) {
      const response = await sendRequest(this.path, request);
      if (response !== null) this.respondedAt = systemClock.elapsed();
      // A server that starts or stops did nothing: retry, with another server or one of ours.
      if (response !== null && (!NOT_OPEN.includes(response.msg) || this.hasWaited(IN_USE_MS))) {
        if (response.code !== 0) throw new Error(response.msg);
        return response.data;
      }
      if (response === null) this.ensureServer();
      await delay(RETRY_MS);
    }
  }

  /** Starts a server of our own, unless one is starting. @throws Error with its output where it failed */
  private ensureServer(): void {
    if (this.program === null) {
      if (!this.hasWaited(RESTART_MS, this.respondedAt)) return;
      const { dataDir } = this;
      throw new Error(`no exchange responds in "${dataDir}": start it, or name the data folder with DATA_DIR`);
    }
    if (this.own?.hasEnded === true) {
      if (!this.own.foundFolderInUse || this.hasWaited(IN_USE_MS)) throw new Error(this.own.failure());
      this.own = null;
    }
    this.own ??= new OwnServer(this.program);
  }

  async leave(): Promise<void> {
    await this.own?.stop();
  }
}

class OwnServer {
  hasEnded = false;
  private readonly child: ChildProcess;
  private readonly exited: Promise<number | null>;
  private output = "";

  constructor(program: string) {
    const env = { ...process.env, NETWORK: "off", LOG_LEVEL: "error" };
    this.child = fork(program, { env, silent: true });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding("utf8");
      stream?.on("data", (text: string) => {
        this.output = (this.output + text).slice(-MAX_OUTPUT);
      });
    }
    this.exited = new Promise((resolve) => {
      this.child.once("close", (code) => {
        this.hasEnded = true;
        resolve(code);
      });
    });
  }

  get foundFolderInUse(): boolean {
    return this.output.includes(FOLDER_IN_USE);
  }

  failure(): string {
    return `the server failed: ${this.output.trim()}`;
  }

  /** A server that the signal ends at once was still starting: another server did the work. */
  async stop(): Promise<void> {
    this.child.kill("SIGTERM");
    const code = await this.exited;
    if (code !== null && code !== 0 && !this.foundFolderInUse) throw new Error(this.failure());
  }
}
