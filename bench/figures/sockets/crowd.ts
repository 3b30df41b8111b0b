/** A crowd of WebSockets in a thread of its own (crowd-client.ts), as the sockets bench sees it. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { builtScript } from "../../support/root.ts";

export interface CrowdSetup {
  readonly url: string;
  /** Of the WebSocket. */
  readonly path: string;
  readonly count: number;
  /** What each socket sends once it is connected, text in JSON and bytes in SBE; null for nothing. */
  readonly message: string | Uint8Array | null;
  /** How many of the texts that the first socket counts are kept; none in SBE. */
  readonly recorded: number;
}

export type CrowdQuestion = "count" | "end";

export interface CrowdReport {
  /** Messages of a book, over all sockets. */
  readonly frames: number;
  readonly bytes: number;
  readonly closed: number;
  /** ms */
  readonly at: number;
  readonly texts: string[];
}

export class Crowd {
  private readonly worker: Worker;

  private constructor(worker: Worker) {
    this.worker = worker;
  }

  /** Resolves when all are connected. */
  static async open(setup: CrowdSetup): Promise<Crowd> {
    const worker = new Worker(builtScript("bench/children/crowd-client.js"), { workerData: setup });
    await once(worker, "message");
    return new Crowd(worker);
  }

  async count(): Promise<CrowdReport> {
    this.worker.postMessage("count" satisfies CrowdQuestion);
    const [report] = (await once(this.worker, "message")) as [CrowdReport];
    return report;
  }

  /** Messages per second that reach the crowd while `work` runs. */
  async during(
    work: () => Promise<unknown>,
  ): Promise<{ perSecond: number; bytesPerSecond: number; report: CrowdReport }> {
    const before = await this.count();
    await work();
    const report = await this.count();
    const seconds = (report.at - before.at) / 1_000;
    const [frames, bytes] = [report.frames - before.frames, report.bytes - before.bytes];
    return { perSecond: frames / seconds, bytesPerSecond: bytes / seconds, report };
  }

  async end(): Promise<void> {
    const ended = once(this.worker, "exit");
    this.worker.postMessage("end" satisfies CrowdQuestion);
    await ended;
  }
}
