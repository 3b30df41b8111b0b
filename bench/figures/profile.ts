/**
 * Where an order's microseconds go: the server under `--cpu-prof`, loaded over HTTP and over a WebSocket; the self time
 * of each thread by stage of an order, beside the processor time from /proc; and the four timestamps of orders that a
 * separate connection sends meanwhile.
 */
import { join } from "node:path";
import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { fail, printHead, printResult } from "../support/report.ts";
import { SocketLoad } from "../support/socket-load.ts";
import { seedOf, tokenOf, Workload } from "./entry/workload.ts";
import { createLoadClient } from "./http/load.ts";
import { type OneAtATime, Sender } from "./latency/one-at-a-time.ts";
import { readProfiles, type ThreadProfile } from "./profile/cpu-profile.ts";
import { groupOf, IDLE } from "./profile/groups.ts";

const smoke = process.argv.includes("--smoke");
const CONNECTIONS = 64;
const WINDOW = 256;
const SECONDS = smoke ? 1 : 6;
const SOCKET_ORDERS = smoke ? 3_000 : 200_000;
const SAMPLE_MICROS = 250;
const TIMED_ORDERS = smoke ? 20 : 300;
const MAKER = "maker";
/** Threads below this share of the time are omitted. */
const MIN_BUSY_SHARE = 0.01;
const NAMES: Readonly<Record<string, string>> = {
  main: "gateway",
  "engine-thread": "engine and log",
  "projector-thread": "projector",
};

/** The clock that profiles count by. */
const now = (): number => Number(process.hrtime.bigint() / 1_000n);

interface Loaded {
  readonly orders: number;
  readonly stages: OneAtATime["stages"];
}
type Load = (exchange: ExchangeProcess, workload: Workload, folder: string) => Promise<number>;

const overHttp: Load = async ({ url }, workload, folder) => {
  const { requests } = await createLoadClient(workload.requests, folder).run({
    url,
    connections: CONNECTIONS,
    seconds: SECONDS,
  });
  return requests;
};

const overSocket: Load = async ({ url }, workload) => {
  const operations = workload.single(SOCKET_ORDERS, false);
  const socket = await SocketLoad.open(url, tokenOf(MAKER));
  const { accepted, refused } = await socket.send(operations, WINDOW);
  socket.close();
  if (refused > 0) throw new Error(`${refused} orders of ${SOCKET_ORDERS} were refused`);
  return accepted;
};

/** Loads the exchange and times some orders meanwhile. */
async function loadTimed(load: Promise<number>, exchange: ExchangeProcess, workload: Workload): Promise<Loaded> {
  const sender = new Sender(exchange.url, "/api/v1/orders?timestamps=true", workload.requests);
  const stages = await sender.stages(TIMED_ORDERS);
  sender.close();
  return { orders: TIMED_ORDERS + (await load), stages };
}

interface Profiled extends Loaded {
  readonly threads: readonly ThreadProfile[];
  readonly processorMicros: { readonly gateway: number; readonly others: number };
}

async function profile(load: Load): Promise<Profiled> {
  const folder = makeFolder("bench-profile");
  const profiles = join(folder, "profiles");
  const nodeOptions = ["--cpu-prof", `--cpu-prof-dir=${profiles}`, `--cpu-prof-interval=${SAMPLE_MICROS}`];
  const exchange = await ExchangeProcess.start({ dataDir: folder, seed: seedOf([MAKER]), nodeOptions });
  const workload = await Workload.prepare(exchange.url, [MAKER]);
  if (!smoke) await load(exchange, workload, folder);
  // A user's live orders are limited.
  await workload.cancelAll([MAKER]);
  await exchange.quiet();
  const [before, from] = [exchange.threadSeconds(), now()];
  const loaded = await loadTimed(load(exchange, workload, folder), exchange, workload);
  const [after, to] = [exchange.threadSeconds(), now()];
  workload.close();
  await exchange.stop();
  const threads = readProfiles(profiles, from, to);
  removeFolder(folder);
  const micros = (thread: "main" | "others"): number => ((after[thread] - before[thread]) * 1e6) / loaded.orders;
  return { ...loaded, threads, processorMicros: { gateway: micros("main"), others: micros("others") } };
}

/** Self time in µs per order by group, largest first, without waiting. */
function groupsOf({ places }: ThreadProfile, orders: number): [group: string, micros: number][] {
  const groups = new Map<string, number>();
  for (const place of places) {
    const group = groupOf(place);
    if (group !== IDLE) groups.set(group, (groups.get(group) ?? 0) + place.micros / orders);
  }
  return [...groups].sort(([, a], [, b]) => b - a);
}

function print(title: string, { threads, orders, stages, processorMicros }: Profiled): object {
  console.log(`  ${title}:`);
  const results: Record<string, Record<string, number>> = {};
  for (const thread of threads) {
    const all = thread.places.reduce((sum, { micros }) => sum + micros, 0);
    const groups = groupsOf(thread, orders);
    const busy = groups.reduce((sum, [, micros]) => sum + micros, 0);
    if (busy * orders < MIN_BUSY_SHARE * all) continue;
    const name = NAMES[thread.thread] ?? thread.thread;
    console.log(`    ${name}: ${busy.toFixed(2)} µs an order in which it did not wait for work, of which`);
    for (const [group, micros] of groups) {
      console.log(`      ${micros.toFixed(2).padStart(7)}  ${group}`);
    }
    results[name] = Object.fromEntries(groups.map(([group, micros]) => [group, Number(micros.toFixed(3))]));
  }
  const { gateway, others } = processorMicros;
  console.log(
    `    processor time, user and system: gateway ${gateway.toFixed(1)} µs an order, other threads ${others.toFixed(1)}`,
  );
  const { matched, durable, sent, elsewhere } = stages;
  console.log(
    `    by its timestamps: received to matched ${matched} µs, to durable ${durable}, to sent ${sent}; ${elsewhere} elsewhere`,
  );
  const processor = { gateway: +gateway.toFixed(2), others: +others.toFixed(2) };
  return { threads_us: results, processor_us: processor, stages_us: stages };
}

printHead("profile", `orders under --cpu-prof, a sample each ${SAMPLE_MICROS} µs, which itself takes some time; FULL`);
try {
  const http = print(`POST /orders, ${CONNECTIONS} connections`, await profile(overHttp));
  const socket = smoke ? null : print(`one WebSocket, ${WINDOW} outstanding`, await profile(overSocket));
  printResult({ bench: "profile", http, socket });
} catch (error) {
  fail(`profile: ${(error as Error).message}`);
}
