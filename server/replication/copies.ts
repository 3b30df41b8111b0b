/** The copy of its files that an active box makes for others, one at a time. Owned by the replication thread. */
import type { Worker } from "node:worker_threads";
import type { Say } from "./reminder.ts";
import type { CopyMessage } from "./types.ts";

export class Copies {
  /** Resolves once the thread that was started last has loaded its modules: a process that exits before can abort. */
  loaded: Promise<void> = Promise.resolve();
  private readonly start: (epoch: number) => Worker;
  private readonly say: Say;
  private worker: Worker | null = null;

  /** @param start the thread, copy-thread.ts */
  constructor(start: (epoch: number) => Worker, say: Say) {
    this.start = start;
    this.say = say;
  }

  /** Begins to make a copy, unless there is one. @param box that asks for it @param epoch that this box leads in */
  begin(box: string, epoch: number): void {
    if (this.worker !== null) return;
    const worker = this.start(epoch);
    this.worker = worker;
    this.say("info", `making a copy of this box's files for the box ${box}`);
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    void ended.then(() => {
      this.worker = null;
    });
    this.loaded = new Promise<void>((resolve) => {
      void ended.then(resolve);
      worker.on("message", (message: CopyMessage) => {
        if ("loaded" in message) resolve();
        else this.say("warn", `no copy was made of this box's files: ${message.failed}`);
      });
    });
    worker.on("error", (error) => this.say("warn", `no copy was made of this box's files: ${error.message}`));
  }

  /** This box doesn't lead any more. */
  async end(): Promise<void> {
    await this.loaded;
    await this.worker?.terminate();
  }
}
