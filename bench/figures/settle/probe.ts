/** A thread that asks an exchange over and over (answer-probe.ts), as whoever measures sees it. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface ProbeSetup {
  /** Of the exchange. */
  readonly url: string;
  readonly method: string;
  readonly path: string;
  readonly token: string | null;
  readonly body: string | null;
  /** The exchange's process, where its gateway's processor time is to be known; null: it isn't. */
  readonly pid: number | null;
}

/** Since the last report. */
export interface ProbeReport {
  readonly count: number;
  /** Answers that were none of success, of all. */
  readonly refused: number;
  readonly medianMs: number;
  readonly longestMs: number;
  /** The most processor time that the gateway's thread took between a question and its answer, however busy the machine. */
  readonly longestBusyMs: number;
}

export class Probe {
  private readonly worker: Worker;

  private constructor(worker: Worker) {
    this.worker = worker;
  }

  /** @param script the built thread */
  static async start(script: URL, setup: Partial<ProbeSetup> & Pick<ProbeSetup, "url" | "path">): Promise<Probe> {
    const usual = { method: "GET", token: null, body: null, pid: null };
    const worker = new Worker(script, { workerData: { ...usual, ...setup } satisfies ProbeSetup });
    await once(worker, "message");
    return new Probe(worker);
  }

  async take(): Promise<ProbeReport> {
    this.worker.postMessage("take");
    const [report] = (await once(this.worker, "message")) as [ProbeReport];
    return report;
  }

  async end(): Promise<void> {
    const ended = once(this.worker, "exit");
    this.worker.postMessage("end");
    await ended;
  }
}
