/**
 * The latency bench's client, in a thread: sends orders at a fixed rate over many connections, whether or not the
 * exchange keeps up. An order's latency counts from its scheduled time, so it includes waits for a free connection and
 * the client's own delay, which is also reported separately. Without a rate, each connection sends its next order after
 * the last response, which measures the capacity of exchange and client together.
 */
import { parentPort, Worker, workerData } from "node:worker_threads";
import { build, type Histogram } from "hdr-histogram-js";
import type { OpenLoad, OpenLoaded } from "../figures/latency/open-loop.ts";
import { HttpConnection, requestBytes } from "../support/http-connection.ts";
import { itemAt } from "../support/item-at.ts";
import { comeFirst } from "../support/priority.ts";
import { builtScript } from "../support/root.ts";

const { url, path, connections, seconds, requests, perSecond } = workerData as OpenLoad;
const DRAIN_DEADLINE_MS = 15_000;
const root = new URL(url);
const prepared = requests.map(({ token, body }) => requestBytes(root, "POST", path, token, body));
comeFirst();
const histogram = (): Histogram => build({ lowestDiscernibleValue: 1, highestTrackableValue: 120_000_000 });
const latency = histogram();
const lag = histogram();
const free: HttpConnection[] = [];
/** Orders that were to be sent and found no free connection begin at `sent`. */
let due = 0;
let sent = 0;
let answered = 0;
let answeredInTime = 0;
let failed = 0;
let start = 0;
let end = 0;
let finished: () => void = () => {};
const drained = new Promise<void>((resolve) => {
  finished = resolve;
});

const intendedAt = (order: number, now: number): number =>
  perSecond === null ? now : start + (order * 1_000) / perSecond;
const micros = (ms: number): number => Math.max(1, Math.round(ms * 1_000));

/** Records the orders that became due, and the client's delay. */
function look(now: number): void {
  const until = Math.min(now, end);
  const reached =
    perSecond === null ? (now < end ? sent + free.length : sent) : Math.floor(((until - start) * perSecond) / 1_000);
  for (; due < reached; due++) lag.recordValue(micros(now - intendedAt(due, now)));
  while (sent < due && free.length > 0) void send(free.pop()!, sent++, now);
}

async function send(connection: HttpConnection, order: number, now: number): Promise<void> {
  const intended = intendedAt(order, now);
  const { status } = await connection.send(itemAt(prepared, order % prepared.length));
  const at = performance.now();
  latency.recordValue(micros(at - intended));
  answered++;
  if (at <= end) answeredInTime++;
  if (status !== 202) failed++;
  free.push(connection);
  look(at);
  if (at > end && answered === due) finished();
}

for (let i = 0; i < connections; i++) free.push(new HttpConnection(root));
await Promise.all(free.map((connection) => connection.open()));
const all = [...free];
const ticker = new Worker(builtScript("bench/children/ticker.js"));
await new Promise((resolve) => ticker.once("online", resolve));
start = performance.now();
end = start + seconds * 1_000;
const before = performance.eventLoopUtilization();
ticker.on("message", () => look(performance.now()));
await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
const { utilization } = performance.eventLoopUtilization(before);
look(performance.now());
const deadline = setTimeout(finished, DRAIN_DEADLINE_MS);
if (answered < due) await drained;
clearTimeout(deadline);
await ticker.terminate();
for (const connection of all) connection.close();
const at = (values: Histogram, percentile: number): number => values.getValueAtPercentile(percentile) / 1_000;
parentPort!.postMessage({
  orders: due,
  failed: failed + due - answered,
  offeredPerSecond: due / seconds,
  achievedPerSecond: answeredInTime / seconds,
  p50Ms: at(latency, 50),
  p90Ms: at(latency, 90),
  p99Ms: at(latency, 99),
  p999Ms: at(latency, 99.9),
  maxMs: latency.maxValue / 1_000,
  lagP99Ms: at(lag, 99),
  clientBusy: utilization,
} satisfies OpenLoaded);
