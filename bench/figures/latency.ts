/**
 * The latency of an order. 1. Alone: one connection, one order at a time, beside the theoretical minimum. 2. Under
 * load: orders at a fixed rate over many connections, from a tenth of the exchange's capacity to beyond it, with
 * latency counted from each order's scheduled time. Points at which the client caused the delay are marked and
 * excluded.
 */

import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { fail, goal, grouped, median, printHead, printResult } from "../support/report.ts";
import { HTTP_SENDERS, httpSender, seedOf, Workload } from "./entry/workload.ts";
import { measureOneAtATime, type OneAtATime } from "./latency/one-at-a-time.ts";
import { type OpenLoaded, runOpenLoop } from "./latency/open-loop.ts";

const smoke = process.argv.includes("--smoke");
const ALONE = smoke ? { rounds: 1, ordersEach: 50 } : { rounds: 9, ordersEach: 400 };
const CONNECTIONS = smoke ? 32 : 256;
const SECONDS = smoke ? 0.3 : 4;
const WARM_UP_SECONDS = smoke ? 0.1 : 4;
const CAPACITY_ROUNDS = smoke ? 1 : 3;
/** Shares of the capacity. */
const LOADS = smoke ? [0.5, 1.2] : [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2];
const NEEDED_RATIO = 1.5;
/** Above this load or delay, the client mostly measures itself. */
const MAX_CLIENT_BUSY = 0.95;
const MAX_LAG_MS = 2;
const MAX_LAG_SHARE = 0.25;
const MAX_FAILED_SHARE = 0.01;
const SENDERS = Array.from({ length: HTTP_SENDERS }, (_, sender) => httpSender(sender));

function printAlone({ exchange, bare, commit, ratios, stages }: OneAtATime): object {
  const line = (name: string, { p50Ms, p99Ms }: OneAtATime["bare"]) =>
    console.log(`    ${name.padEnd(18)} p50 ${p50Ms.toFixed(3)} ms, p99 ${p99Ms.toFixed(3)} ms`);
  console.log(`  one connection, one order at a time, ${ALONE.rounds} x ${ALONE.ordersEach} of each in turn:`);
  line("durable order", exchange);
  line("bare handler", bare);
  line("one SQLite commit", commit);
  const each = ratios.map((ratio) => ratio.toFixed(2)).join(" ");
  console.log(
    `    p50 is ${median(ratios).toFixed(2)} times the two together (${each}), needed at most ${NEEDED_RATIO}`,
  );
  const { matched, durable, sent, elsewhere } = stages;
  console.log(
    `    by its timestamps: received to matched ${matched} µs, to durable ${durable}, to sent ${sent}; ` +
      `${elsewhere} in the kernel and the client`,
  );
  const rounded = ({ p50Ms, p99Ms }: OneAtATime["bare"]) => ({ p50_ms: +p50Ms.toFixed(4), p99_ms: +p99Ms.toFixed(4) });
  const [ours, theirs, sqlite] = [exchange, bare, commit].map(rounded);
  return { exchange: ours, bare: theirs, commit: sqlite, ratio: Number(median(ratios).toFixed(3)), stages_us: stages };
}

/** Why a point says nothing about the exchange; null: it does. */
function faultOf({ p99Ms, lagP99Ms, clientBusy }: OpenLoaded): string | null {
  if (lagP99Ms > Math.max(MAX_LAG_MS, MAX_LAG_SHARE * p99Ms)) return `the client came ${lagP99Ms.toFixed(1)} ms late`;
  return clientBusy > MAX_CLIENT_BUSY ? `the client was busy ${Math.round(clientBusy * 100)} % of the time` : null;
}

/** Loads in orders per second, each on empty books; null for as many as get responses. */
async function load(
  exchange: ExchangeProcess,
  workload: Workload,
  perSecond: number | null,
  seconds: number,
): Promise<OpenLoaded> {
  const { requests } = workload;
  const where = { url: exchange.url, path: "/api/v1/orders", requests };
  const loaded = await runOpenLoop({ ...where, connections: CONNECTIONS, seconds, perSecond });
  if (loaded.failed > MAX_FAILED_SHARE * loaded.orders) fail(`latency: ${loaded.failed} of ${loaded.orders} failed`);
  await workload.cancelAll(SENDERS);
  await exchange.quiet();
  return loaded;
}

async function measureLoads(exchange: ExchangeProcess, workload: Workload): Promise<object> {
  await load(exchange, workload, null, WARM_UP_SECONDS);
  const rates: number[] = [];
  for (let round = 0; round < CAPACITY_ROUNDS; round++) {
    rates.push((await load(exchange, workload, null, SECONDS)).achievedPerSecond);
  }
  const capacity = median(rates);
  console.log(
    `  ${CONNECTIONS} connections: ${grouped(capacity)} orders/s, each waiting for its response; at a fixed rate,`,
  );
  console.log("  counted from when an order was to be sent, ms:");
  console.log("    load    offered   answered     p50     p90     p99   p99.9      max");
  const points: object[] = [];
  for (const share of LOADS) {
    const point = await load(exchange, workload, share * capacity, SECONDS);
    const { offeredPerSecond, achievedPerSecond, p50Ms, p90Ms, p99Ms, p999Ms, maxMs, lagP99Ms, clientBusy } = point;
    const fault = faultOf(point);
    const times = [p50Ms, p90Ms, p99Ms, p999Ms].map((ms) => ms.toFixed(2).padStart(7)).join(" ");
    console.log(
      `    ${String(Math.round(share * 100)).padStart(3)} % ${grouped(offeredPerSecond).padStart(10)} ` +
        `${grouped(achievedPerSecond).padStart(10)} ${times} ${maxMs.toFixed(2).padStart(8)}${fault === null ? "" : ` left out: ${fault}`}`,
    );
    const [offered, achieved] = [Math.round(offeredPerSecond), Math.round(achievedPerSecond)];
    const latencies = { p50_ms: p50Ms, p90_ms: p90Ms, p99_ms: p99Ms, p999_ms: p999Ms, max_ms: maxMs };
    const client = { client_lag_ms: lagP99Ms, client_busy: Number(clientBusy.toFixed(2)) };
    points.push({
      load: share,
      offered_per_s: offered,
      achieved_per_s: achieved,
      ...latencies,
      ...client,
      left_out: fault,
    });
  }
  return { connections: CONNECTIONS, capacity_per_s: Math.round(capacity), points };
}

printHead("latency", "POST /orders, durable at FULL, 200 users, 100 markets, 90 % rest, 10 % fill immediately");
try {
  const folder = makeFolder("bench-latency");
  const exchange = await ExchangeProcess.start({ dataDir: folder, seed: seedOf([]) });
  const workload = await Workload.prepare(exchange.url, []);
  const { requests, answerBytes } = workload;
  const alone = await measureOneAtATime({ exchange, requests, answerBytes, folder, ...ALONE });
  const figures = printAlone(alone);
  const loads = await measureLoads(exchange, workload);
  workload.close();
  await exchange.stop();
  removeFolder(folder);
  const goals = [goal("one order at a time, over bare response and commit", NEEDED_RATIO, median(alone.ratios), true)];
  printResult({ bench: "latency", one_at_a_time: figures, open_loop: loads, goals });
} catch (error) {
  fail(`latency: ${(error as Error).message}`);
}
