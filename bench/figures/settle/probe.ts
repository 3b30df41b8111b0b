/** A thread that repeats a request (latency-probe.ts), from the measuring side. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface ProbeSetup {
  /** Of the exchange. */
  readonly url: string;
  readonly method: string;
  readonly path: string;
  readonly token: string | null;
  readonly body: string | null;
  /** The exchange's process, to read its gateway's processor time; null if that isn't needed. */
  readonly pid: number | null;
}

/** Since the last report. */
export interface ProbeReport {
  readonly count: number;
  /** Responses other than success, and all responses. */
  readonly refused: number;
  readonly medianMs: number;
  readonly longestMs: number;
  /**
   * The largest processor time of the gateway's thread between a request and its response, however busy the machine.
   */
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

  async report(): Promise<ProbeReport> {
    this.worker.postMessage("report");
    const [report] = (await once(this.worker, "message")) as [ProbeReport];
    return report;
  }

  async end(): Promise<void> {
    const ended = once(this.worker, "exit");
    this.worker.postMessage("end");
    await ended;
  }
}
