/** follower.py as a child process: uses Python's `websockets` and standard library, and none of our code for Node. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { API_BASE } from "../support/client.ts";
import { type TestServer, within } from "../support/server.ts";

const SCRIPT = fileURLToPath(new URL("./follower.py", import.meta.url));
const START_DEADLINE_MS = 15_000;
const END_DEADLINE_MS = 30_000;

export interface PythonResult {
  readonly messages: number;
  readonly updates: number;
  readonly trades: number;
  readonly heartbeats: number;
  /** The number of compared REST books, and of their different states. */
  readonly compared: number;
  readonly states: number;
  readonly missed: number;
  readonly difference_count: number;
  readonly differences: readonly string[];
}

/** Returns why it can't run here, or null. */
export function pythonMissing(): string | null {
  const { error, status } = spawnSync("python3", ["-c", "import websockets; websockets.connect"]);
  if (error !== undefined) return "no python3";
  return status === 0 ? null : "python3 has no module websockets";
}

export class PythonFollower {
  /** The number of messages received, in steps of some hundreds. */
  messages = 0;
  private readonly child: ChildProcess;
  private readonly exited: Promise<void>;
  private result: PythonResult | null = null;
  private errors = "";
  private wake: () => void = () => {};

  private constructor(server: TestServer, marketIds: readonly number[]) {
    const args = [SCRIPT, `${server.root}${API_BASE}`, ...marketIds.map(String)];
    this.child = spawn("python3", args, { stdio: ["pipe", "pipe", "pipe"] });
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      const { messages, result } = JSON.parse(line) as { messages?: number; result?: PythonResult };
      if (messages !== undefined) this.messages = messages;
      if (result !== undefined) this.result = result;
      this.wake();
    });
    this.child.stderr!.on("data", (chunk: Buffer) => {
      this.errors += chunk.toString();
    });
    this.exited = new Promise((resolve) => {
      this.child.once("close", () => {
        resolve();
        this.wake();
      });
    });
  }

  /** Starts it and waits for its subscriptions. */
  static async start(server: TestServer, marketIds: readonly number[]): Promise<PythonFollower> {
    const follower = new PythonFollower(server, marketIds);
    await follower.until(() => follower.messages > 0, START_DEADLINE_MS);
    return follower;
  }

  /** Resolves when it has received this many messages. @throws Error if it has ended */
  async had(messages: number): Promise<void> {
    await this.until(() => this.messages >= messages, END_DEADLINE_MS);
  }

  /** Makes it compare everything once more; returns its report. */
  async finish(): Promise<PythonResult> {
    this.child.stdin!.write("end\n");
    await within(this.exited, END_DEADLINE_MS);
    if (this.result === null) throw new Error(`the Python follower said nothing: ${this.errors}`);
    return this.result;
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }

  private async until(isSo: () => boolean, deadlineMs: number): Promise<void> {
    const deadline = Date.now() + deadlineMs;
    while (!isSo()) {
      const changed = new Promise<void>((resolve) => {
        this.wake = resolve;
      });
      await within(changed, deadline - Date.now());
      if (this.child.exitCode !== null) throw new Error(`the Python follower ended: ${this.errors}`);
      if (Date.now() >= deadline)
        throw new Error(`the Python follower is at ${this.messages} messages: ${this.errors}`);
    }
  }
}
