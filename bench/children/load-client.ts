/**
 * The HTTP bench's own client, in a thread, for machines without wrk. Each connection sends its next order after the
 * last response.
 */
import { parentPort, workerData } from "node:worker_threads";
import { build } from "hdr-histogram-js";
import type { Loaded, LoadSetup } from "../figures/http/load.ts";
import { HttpConnection, requestBytes } from "../support/http-connection.ts";
import { itemAt } from "../support/item-at.ts";

const { url, path, connections, seconds, requests } = workerData as LoadSetup;
const root = new URL(url);
const prepared = requests.map(({ token, body }) => requestBytes(root, "POST", path, token, body));
const latency = build({ lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000 });
let sent = 0;
let failed = 0;

async function run(connection: HttpConnection, end: number): Promise<void> {
  for (let start = performance.now(); start < end; ) {
    const { status } = await connection.send(itemAt(prepared, sent++ % prepared.length));
    const now = performance.now();
    latency.recordValue(Math.round((now - start) * 1_000));
    if (status !== 202) failed++;
    start = now;
  }
  connection.close();
}

const all = Array.from({ length: connections }, () => new HttpConnection(root));
await Promise.all(all.map((connection) => connection.open()));
const start = performance.now();
await Promise.all(all.map((connection) => run(connection, start + seconds * 1_000)));
parentPort!.postMessage({
  requests: sent,
  failed,
  perSecond: sent / ((performance.now() - start) / 1_000),
  p50Ms: latency.getValueAtPercentile(50) / 1_000,
  p99Ms: latency.getValueAtPercentile(99) / 1_000,
} satisfies Loaded);
