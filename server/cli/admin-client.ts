/**
 * Gets to the server of a data folder, for the operator's command line: the one that runs, or one of its own, which
 * opens no port and ends with the command. Either way the server does the work, with the same checks and durability.
 */
import { type ChildProcess, fork } from "node:child_process";
import { STARTING, STOPPING } from "../errors.ts";
import { controlPath, FOLDER_IN_USE } from "../util/data-folder.ts";
import { ask, type ControlRequest } from "./control-socket.ts";

/** What a server says that takes no requests yet, or no more. */
const NOT_NOW: readonly string[] = [STARTING, STOPPING];
/** How long another server may have the folder without taking requests: it starts, or stops. */
const IN_USE_MS = 30_000;
const LOOK_MS = 25;
/** Characters of what a server wrote last that tell why it ended. */
const MAX_TOLD = 4_000;

/** Asks the server; the answer's data. @throws Error with the server's own words where it refuses */
export type Call = (request: ControlRequest) => Promise<unknown>;

/** @param program the server's main file */
export async function withServer<T>(dataDir: string, program: string, run: (call: Call) => Promise<T>): Promise<T> {
  const server = new ReachedServer(controlPath(dataDir), program);
  try {
    return await run((request) => server.call(request));
  } finally {
    await server.leave();
  }
}

class ReachedServer {
  private readonly path: string;
  private readonly program: string;
  private readonly deadline = performance.now() + IN_USE_MS;
  private own: OwnServer | null = null;

  constructor(path: string, program: string) {
    this.path = path;
    this.program = program;
  }

  async call(request: ControlRequest): Promise<unknown> {
    for (;;) {
      const answer = await ask(this.path, request);
      // Nothing was done where it stops: another, or one of ours, is next.
      if (answer !== null && (!NOT_NOW.includes(answer.msg) || performance.now() > this.deadline)) {
        if (answer.code !== 0) throw new Error(answer.msg);
        return answer.data;
      }
      if (answer === null) this.begin();
      await look();
    }
  }

  /** Has a server of our own start, unless one is on its way. @throws Error with its words where it cannot */
  private begin(): void {
    if (this.own?.hasEnded === true) {
      if (!this.own.foundFolderInUse || performance.now() > this.deadline) throw new Error(this.own.told());
      this.own = null;
    }
    this.own ??= new OwnServer(this.program);
  }

  async leave(): Promise<void> {
    await this.own?.stop();
  }
}

function look(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LOOK_MS));
}

class OwnServer {
  hasEnded = false;
  private readonly child: ChildProcess;
  private readonly exited: Promise<number | null>;
  private output = "";

  constructor(program: string) {
    const env = { ...process.env, NETWORK: "off", LOG_LEVEL: "error" };
    this.child = fork(program, { env, silent: true });
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.setEncoding("utf8");
      stream.on("data", (text: string) => {
        this.output = (this.output + text).slice(-MAX_TOLD);
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

  told(): string {
    return `the server could not do it: ${this.output.trim()}`;
  }

  /** One that the signal ends at once had not begun: another server did the work. */
  async stop(): Promise<void> {
    this.child.kill("SIGTERM");
    const code = await this.exited;
    if (code !== null && code !== 0 && !this.foundFolderInUse) throw new Error(this.told());
  }
}
