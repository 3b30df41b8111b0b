/**
 * Gets to the server of a data folder, for the operator's command line: the one that runs, or one of its own, which
 * opens no port and ends with the command. Either way the server does the work, with the same checks and durability.
 */
import { type ChildProcess, fork } from "node:child_process";
import { ask, type ControlAnswer, type ControlRequest, isListening } from "./control.ts";
import { controlPath, FOLDER_IN_USE } from "./data-folder.ts";

/** How long another server may have the folder without taking requests: it starts, or stops. */
const IN_USE_MS = 30_000;
const LOOK_MS = 25;
/** Characters of what a server wrote last that tell why it ended. */
const MAX_TOLD = 4_000;

/** Asks the server; the answer's data. @throws Error with the server's own words where it refuses */
export type Call = (request: ControlRequest) => Promise<unknown>;

/** @param program the server's main file */
export async function withServer<T>(dataDir: string, program: string, run: (call: Call) => Promise<T>): Promise<T> {
  const path = controlPath(dataDir);
  const own = await reach(path, program);
  try {
    return await run(async (request) => dataOf(await ask(path, request)));
  } finally {
    await own?.stop();
  }
}

function dataOf({ code, msg, data }: ControlAnswer): unknown {
  if (code !== 0) throw new Error(msg);
  return data;
}

/** Answers the server that had to be started, null where one runs. */
async function reach(path: string, program: string): Promise<OwnServer | null> {
  const deadline = performance.now() + IN_USE_MS;
  let own: OwnServer | null = null;
  while (!(await isListening(path))) {
    if (own?.hasEnded === true) {
      if (!own.foundFolderInUse || performance.now() > deadline) throw new Error(own.told());
      own = null;
    }
    own ??= new OwnServer(program);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return own;
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

  async stop(): Promise<void> {
    this.child.kill("SIGTERM");
    const code = await this.exited;
    if (code !== 0 && !this.foundFolderInUse) throw new Error(this.told());
  }
}
