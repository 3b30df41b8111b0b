/** Runs the open-loop client in a thread of its own, at one rate after the other. */
import { Worker } from "node:worker_threads";
import { builtScript } from "../../support/root.ts";
import type { OrderRequest } from "../http/workload.ts";

export interface OpenLoad {
  readonly url: string;
  readonly path: string;
  readonly requests: readonly OrderRequest[];
  readonly connections: number;
  readonly seconds: number;
  /** The target rate, orders per second; null for as many as get responses. */
  readonly perSecond: number | null;
}

/** Latencies count from when an order was to be sent. */
export interface OpenLoaded {
  readonly orders: number;
  /** Responses other than 202, and orders without a response. */
  readonly failed: number;
  readonly offeredPerSecond: number;
  /** Responses within the time. */
  readonly achievedPerSecond: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
  /** The client's own delay, 99th percentile. */
  readonly lagP99Ms: number;
  /** Share of the time in which its event loop did something. */
  readonly clientBusy: number;
}

export function runOpenLoop(load: OpenLoad): Promise<OpenLoaded> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(builtScript("bench/children/open-loop-client.js"), { workerData: load });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}
