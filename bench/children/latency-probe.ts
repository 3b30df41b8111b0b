/**
 * A thread that repeats one request over one connection and records the response times: work that occupies the
 * gateway's
 * or engine's thread shows as a slow response. On the message `report`, it reports its figures and resets.
 */
import { readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { ProbeReport, ProbeSetup } from "../figures/settle/probe.ts";
import { HttpConnection, requestBytes } from "../support/http-connection.ts";

const { url, method, path, token, body, pid } = workerData as ProbeSetup;
const PAUSE_MS = 2;

const connection = new HttpConnection(new URL(url));
const request = requestBytes(new URL(url), method, path, token, body);
let times: number[] = [];
let longestBusyMs = 0;
let refused = 0;
let ended = false;
/** When the pending request was sent; 0 if none is pending. */
let askedAt = 0;

/** Processor time of the exchange's first thread so far, ms. Linux only. */
function gatewayTime(): number {
  if (pid === null) return 0;
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "latin1").split(" ")[0]) / 1e6;
}

async function ask(): Promise<void> {
  await connection.open();
  parentPort!.postMessage("ready");
  while (!ended) {
    const before = gatewayTime();
    askedAt = performance.now();
    const { status } = await connection.send(request);
    const took = performance.now() - askedAt;
    times.push(took);
    longestBusyMs = Math.max(longestBusyMs, gatewayTime() - before);
    askedAt = 0;
    if (status >= 300) refused++;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  connection.close();
  parentPort!.close();
}

parentPort!.on("message", (message: "report" | "end") => {
  if (message === "end") {
    ended = true;
    return;
  }
  // A request still pending has already taken this long.
  const waiting = askedAt === 0 ? [] : [performance.now() - askedAt];
  const sorted = [...times, ...waiting].sort((a, b) => a - b);
  const report: ProbeReport = {
    count: times.length,
    refused,
    medianMs: sorted[sorted.length >> 1] ?? 0,
    longestMs: sorted.at(-1) ?? 0,
    longestBusyMs,
  };
  times = [];
  longestBusyMs = 0;
  parentPort!.postMessage(report);
});
void ask();
