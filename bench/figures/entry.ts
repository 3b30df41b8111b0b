/**
 * Orders per second that one exchange accepts, durable at FULL, by entry path: HTTP on 64 connections, one WebSocket
 * with 256 orders in flight, the same with client order ids, batches of 50 over one WebSocket, and orders that are
 * rejected; in binary (SBE) one order a frame, eight, and batches of 50; for comparison, the bare handler and the plain service over HTTP on 64 connections. All alternate in one
 * run, the ratios are medians over the turns, and each turn ends with a cancel of all resting orders, so that every path
 * meets the same books. The processor time that the gateway's thread takes for an order depends less than the rate on
 * what else the machine does. At the end the database must contain each accepted order once, with the final state that
 * its sender received.
 */
import { join } from "node:path";
import type Database from "better-sqlite3";
import { OrderStatus } from "../../engine/constants.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { assert } from "../../engine/util/assert.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { missingPackages, RIVALS } from "../support/on-demand.ts";
import { fail, type Goal, goal, grouped, median, printHead, printResult } from "../support/report.ts";
import { type Operations, SocketLoad } from "../support/socket-load.ts";
import { emailOf, HTTP_SENDERS, httpSender, MARKETS, seedOf, tokenOf, Workload } from "./entry/workload.ts";
import { Baseline } from "./http/baseline.ts";
import { createLoadClient, type LoadClient } from "./http/load.ts";

const smoke = process.argv.includes("--smoke");
const ROUNDS = smoke ? 1 : 5;
const HTTP_CONNECTIONS = 64;
const HTTP_SECONDS = smoke ? 1 : 4;
/**
 * Orders per turn over a WebSocket: about as many as HTTP sends in its turn. The exchange keeps a user's client order ids
 * for a day, at most 2^20 of them: all turns together must stay below that.
 */
const SOCKET_ORDERS = smoke ? 5_000 : 150_000;
const WINDOW = 256;
const BATCH_ORDERS = 50;
/** Batches in flight: half as many give a quarter fewer orders per second, more of them only wait longer. */
const BATCH_WINDOW = 16;
const NEEDED_BATCHES = { perSecond: 300_000, timesBare: 3 };
/** With more orders rejected than this, something else was measured. */
const MAX_REFUSED_SHARE = 0.01;
/** Orders in a frame that is no batch. */
const FRAME_ORDERS = 8;
/** One user for each way over a WebSocket. */
const MAKERS = {
  ...{ plain: "maker-1", named: "maker-2", batched: "maker-3", rejected: "maker-4" },
  ...{ binary: "maker-5", framed: "maker-6", binaryBatched: "maker-7" },
} as const;

type SocketWay = keyof typeof MAKERS;
type Way = "http" | SocketWay;
type Rival = "bare" | "plain";
/** The two paths that must be within a tenth of each other alternate in going first. */
const TURNS: readonly (readonly Way[])[] = [
  ["http", "plain", "named", "batched", "rejected", "binary", "framed", "binaryBatched"],
  ["http", "named", "plain", "batched", "rejected", "binary", "framed", "binaryBatched"],
];

interface Turn {
  readonly perSecond: number;
  readonly accepted: number;
  readonly refused: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time that the client took for an order; unknown of wrk. */
  readonly clientMicroseconds: number | null;
  /** Processor time that the gateway's thread took for an order; unknown of a rival. */
  readonly gatewayMicroseconds: number | null;
}

/** A server for comparison; the plain service has resting orders to cancel. */
interface Running {
  readonly name: Rival;
  readonly server: Baseline;
  readonly workload: Workload | null;
}

const SENDERS = Array.from({ length: HTTP_SENDERS }, (_, sender) => httpSender(sender));

/** @throws Error if so many orders were rejected that the measurement is invalid */
function checkRefused(way: Way | Rival, { accepted, refused }: Turn): void {
  if (way === "rejected") return assert(accepted === 0, `${accepted} orders were accepted`);
  if (refused <= MAX_REFUSED_SHARE * (accepted + refused)) return;
  throw new Error(`${way}: ${refused} orders were refused, ${accepted} accepted`);
}

/** All turns of one way. */
class Tally {
  readonly measured: Turn[] = [];
  turns = 0;
  accepted = 0;
  canceled = 0;
}

class Bench {
  readonly tallies: Record<Way, Tally> = {
    http: new Tally(),
    plain: new Tally(),
    named: new Tally(),
    batched: new Tally(),
    rejected: new Tally(),
    binary: new Tally(),
    framed: new Tally(),
    binaryBatched: new Tally(),
  };
  /** The turns of each server for comparison. */
  readonly baselines = new Map<Rival, Turn[]>();
  private readonly exchange: ExchangeProcess;
  private readonly workload: Workload;
  private readonly client: LoadClient;
  private readonly rivals: readonly Running[];

  constructor(exchange: ExchangeProcess, workload: Workload, client: LoadClient, rivals: readonly Running[]) {
    this.exchange = exchange;
    this.workload = workload;
    this.client = client;
    this.rivals = rivals;
    for (const { name } of rivals) this.baselines.set(name, []);
  }

  /** Measures every path once. @throws Error if orders are rejected or lost */
  async round(number: number, isMeasured: boolean): Promise<void> {
    for (const way of itemAt(TURNS, number % TURNS.length)) {
      const turn = way === "http" ? await this.overHttp() : await this.overSocket(way);
      checkRefused(way, turn);
      const tally = this.tallies[way];
      tally.turns++;
      tally.accepted += turn.accepted;
      if (isMeasured) tally.measured.push(turn);
    }
    for (const { name, server, workload } of this.rivals) {
      const turn = await this.loadHttp(server.url);
      checkRefused(name, turn);
      await workload?.cancelAll(SENDERS);
      if (isMeasured) this.baselines.get(name)!.push(turn);
    }
  }

  private async overHttp(): Promise<Turn> {
    const before = this.exchange.threadSeconds().main;
    const turn = await this.loadHttp(this.exchange.url);
    const seconds = this.exchange.threadSeconds().main - before;
    await this.cancelAll("http", SENDERS);
    return { ...turn, gatewayMicroseconds: (seconds * 1e6) / turn.accepted };
  }

  private async loadHttp(url: string): Promise<Turn> {
    const load = await this.client.run({ url, connections: HTTP_CONNECTIONS, seconds: HTTP_SECONDS });
    const { requests, failed, ...rest } = load;
    const unknown = { clientMicroseconds: null, gatewayMicroseconds: null };
    return { ...rest, accepted: requests - failed, refused: failed, ...unknown };
  }

  private async overSocket(way: SocketWay): Promise<Turn> {
    const [operations, window] = this.operationsOf(way);
    const protocol = operations.binary === undefined ? "json" : "sbe";
    const socket = await SocketLoad.open(this.exchange.url, tokenOf(MAKERS[way]), protocol);
    const [before, gatewayBefore] = [process.cpuUsage(), this.exchange.threadSeconds().main];
    const { seconds, ...rest } = await socket.send(operations, window);
    const { user, system } = process.cpuUsage(before);
    const gateway = this.exchange.threadSeconds().main - gatewayBefore;
    // Otherwise it would hear of each cancel.
    socket.close();
    const { accepted, refused } = rest;
    const live = await this.cancelAll(way, [MAKERS[way]]);
    const resting = way === "rejected" ? 0 : this.workload.restingOf(SOCKET_ORDERS);
    assert(Math.abs(resting - live) <= refused, `${live} orders are live, ${resting} should rest, ${refused} refused`);
    return {
      ...rest,
      perSecond: (way === "rejected" ? refused : accepted) / seconds,
      clientMicroseconds: (user + system) / SOCKET_ORDERS,
      gatewayMicroseconds: (gateway * 1e6) / SOCKET_ORDERS,
    };
  }

  private operationsOf(way: SocketWay): [operations: Operations, window: number] {
    const { workload } = this;
    switch (way) {
      case "batched":
        return [workload.batches(SOCKET_ORDERS, BATCH_ORDERS), BATCH_WINDOW];
      case "rejected":
        return [workload.rejected(SOCKET_ORDERS), WINDOW];
      case "binary":
        return [workload.binary(SOCKET_ORDERS, 1, false, false), WINDOW];
      case "framed":
        return [workload.binary(SOCKET_ORDERS, FRAME_ORDERS, false, false), WINDOW / FRAME_ORDERS];
      case "binaryBatched":
        return [workload.binary(SOCKET_ORDERS, BATCH_ORDERS, true, false), BATCH_WINDOW];
      case "plain":
      case "named":
        return [workload.single(SOCKET_ORDERS, way === "named"), WINDOW];
    }
  }

  /** Cancels all resting orders and waits for the cancels; returns their number. */
  private async cancelAll(way: Way, names: readonly string[]): Promise<number> {
    const canceled = await this.workload.cancelAll(names);
    this.tallies[way].canceled += canceled;
    await this.exchange.quiet();
    return canceled;
  }

  /** Asserts that every accepted order is in the database once, with the final state that its sender received. */
  verify(db: Database.Database): void {
    const broken = verifyDatabase(db).filter(({ ok }) => !ok);
    assert(broken.length === 0, `the database holds: ${JSON.stringify(broken)}`);
    const count = db.prepare(
      `SELECT count(*) AS orders, count(*) FILTER (WHERE status = ${OrderStatus.filled}) AS filled,
         count(*) FILTER (WHERE status = ${OrderStatus.canceled}) AS canceled
       FROM orders WHERE user_id IN (SELECT id FROM users WHERE email LIKE ?)`,
    );
    for (const way of itemAt(TURNS, 0)) {
      const { turns, accepted, canceled } = this.tallies[way];
      const email = emailOf(way === "http" ? httpSender("%") : MAKERS[way]);
      const found = count.get(email) as { orders: number; filled: number; canceled: number };
      // wrk doesn't wait for requests in flight when its time is over.
      const unheard = way === "http" ? turns * HTTP_CONNECTIONS : 0;
      const more = found.orders - accepted;
      assert(more >= 0 && more <= unheard, `${way}: ${found.orders} orders on record, ${accepted} were accepted`);
      assert(found.canceled === canceled, `${way}: ${found.canceled} canceled on record, ${canceled} reported`);
      assert(found.filled + canceled === found.orders, `${way}: ${JSON.stringify(found)}: every order has ended`);
    }
  }
}

interface Base {
  readonly name: string;
  readonly turns: readonly Turn[];
  /** The required ratio to it; null if the ratio is only reported. */
  readonly needed: number | null;
}

function print(name: string, turns: readonly Turn[], bases: readonly Base[]): object {
  const of = (field: "perSecond" | "p50Ms" | "p99Ms"): number => median(turns.map((turn) => turn[field]));
  const [p50, p99] = [Number(of("p50Ms").toFixed(3)), Number(of("p99Ms").toFixed(3))];
  console.log(`  ${name.padEnd(41)} ${grouped(of("perSecond")).padStart(7)} orders/s, p50 ${p50} ms, p99 ${p99} ms`);
  const result = { orders_per_s: Math.round(of("perSecond")), p50_ms: p50, p99_ms: p99 };
  const ratios = bases.map((base) => printRatio(turns, base));
  const [gatewayUs, clientUs] = [microsecondsOf(turns, "gateway"), microsecondsOf(turns, "client")];
  const client = clientUs === null ? "" : `, client ${clientUs} µs`;
  if (gatewayUs !== null) console.log(`    gateway ${gatewayUs} µs${client} an order`);
  return { ...result, ratios, gateway_us: gatewayUs, client_us: clientUs };
}

/** The median; null where it is unknown. */
function microsecondsOf(turns: readonly Turn[], thread: "gateway" | "client"): number | null {
  const known = turns.map((turn) => turn[`${thread}Microseconds`]).filter((each) => each !== null);
  return known.length === 0 ? null : Number(median(known).toFixed(2));
}

function printRatio(turns: readonly Turn[], { name, turns: theirs, needed }: Base): object {
  const ratios = turns.map(({ perSecond }, i) => perSecond / itemAt(theirs, i).perSecond);
  const ratio = Number(median(ratios).toFixed(3));
  const each = ratios.map((one) => one.toFixed(2)).join(" ");
  console.log(`    ${ratio} of ${name} (${each})${needed === null ? "" : `, needed ${needed}`}`);
  return { to: name, ratio, needed };
}

async function startRivals(folder: string, answerBytes: number): Promise<Running[]> {
  const bare: Running = { name: "bare", server: await Baseline.bareHandler(answerBytes), workload: null };
  const missing = missingPackages(RIVALS, !smoke);
  if (missing !== null) {
    console.log(`  plain service: skipped, ${missing}`);
    return [bare];
  }
  const server = await Baseline.plainService(folder, seedOf(makers));
  return [bare, { name: "plain", server, workload: await Workload.prepare(server.url, makers) }];
}

const makers = Object.values(MAKERS);
printHead("entry", `orders by entry path, ${MARKETS} markets, 90 % rest, 10 % fill immediately; FULL`);
console.log(`  HTTP: turns of ${HTTP_SECONDS} s; ${HTTP_SENDERS} users without subscriptions`);
console.log(
  `  WebSocket: turns of ${grouped(SOCKET_ORDERS)} of the same orders; one user, who receives one update per order`,
);
console.log("    more (order.updated), and of balance and positions; the client hears all of it");
try {
  const folder = makeFolder("bench-entry");
  const exchange = await ExchangeProcess.start({ dataDir: folder, seed: seedOf(makers) });
  const workload = await Workload.prepare(exchange.url, makers);
  const client = createLoadClient(workload.requests, folder);
  const rivals = await startRivals(folder, workload.answerBytes);
  const bench = new Bench(exchange, workload, client, rivals);
  // The first round warms up.
  for (let round = smoke ? 1 : 0; round <= ROUNDS; round++) await bench.round(round, round > 0);
  assert(await workload.isSolvent(), "/solvency: the sums balance");
  workload.close();
  for (const { server, workload } of rivals) {
    workload?.close();
    await server.stop();
  }
  await exchange.stop();
  const db = openReadOnly(join(folder, "exchange.db"));
  bench.verify(db);
  db.close();
  removeFolder(folder);
  printAll(bench, client);
} catch (error) {
  fail(`entry: ${(error as Error).message}`);
}

function printAll({ tallies, baselines }: Bench, client: LoadClient): void {
  const [http, plain] = [tallies.http.measured, tallies.plain.measured];
  const [named, batched, rejected] = [tallies.named.measured, tallies.batched.measured, tallies.rejected.measured];
  const [binary, framed] = [tallies.binary.measured, tallies.framed.measured];
  const binaryBatched = tallies.binaryBatched.measured;
  const bare = baselines.get("bare")!;
  const service = baselines.get("plain");
  console.log(`  medians of ${ROUNDS} turns of each way:`);
  const [toHttp, toBare] = [
    { name: "HTTP", turns: http },
    { name: "the bare handler", turns: bare },
  ];
  const toService = service === undefined ? [] : [{ name: "the plain service", turns: service, needed: null }];
  const results = {
    bare: print(`bare handler, ${HTTP_CONNECTIONS} connections`, bare, []),
    ...(service === undefined ? {} : { plain: print(`plain service, ${HTTP_CONNECTIONS} connections`, service, []) }),
    http: print(`HTTP, ${HTTP_CONNECTIONS} connections`, http, [{ ...toBare, needed: null }, ...toService]),
    socket: print(`WebSocket, ${WINDOW} outstanding`, plain, [
      { ...toHttp, needed: 1.5 },
      { ...toBare, needed: null },
      ...toService,
    ]),
    client_order_ids: print("the same with client order ids", named, [
      { name: "those without", turns: plain, needed: 0.9 },
    ]),
    batches: print(`WebSocket, batches of ${BATCH_ORDERS}, ${BATCH_WINDOW} outstanding`, batched, [
      { ...toHttp, needed: 4 },
      { ...toBare, needed: NEEDED_BATCHES.timesBare },
      ...toService,
    ]),
    rejected: print(`WebSocket, rejected, ${WINDOW} outstanding`, rejected, []),
    sbe: print(`SBE, ${WINDOW} outstanding`, binary, [{ name: "JSON", turns: plain, needed: null }]),
    sbe_frames: print(`SBE, ${FRAME_ORDERS} in a frame, ${WINDOW} outstanding`, framed, [
      { name: "JSON", turns: plain, needed: null },
    ]),
    sbe_batches: print(`SBE, batches of ${BATCH_ORDERS}, ${BATCH_WINDOW} outstanding`, binaryBatched, [
      { name: "JSON in batches", turns: batched, needed: null },
      { ...toBare, needed: null },
    ]),
  };
  if (client.name === "node")
    console.log("  wrk is missing: this client takes the machine from HTTP, which makes the ratios too kind");
  printResult({
    bench: "entry",
    client: client.name,
    rounds: ROUNDS,
    orders: SOCKET_ORDERS,
    ...results,
    goals: goalsOf(batched, bare),
  });
}

/** One of the two is enough. */
function goalsOf(batched: readonly Turn[], bare: readonly Turn[]): Goal[] {
  const rate = median(batched.map(({ perSecond }) => perSecond));
  const ratio = median(batched.map(({ perSecond }, i) => perSecond / itemAt(bare, i).perSecond));
  return [
    goal("WebSocket batches, orders/s (this or the next)", NEEDED_BATCHES.perSecond, rate),
    goal("WebSocket batches, times the bare handler", NEEDED_BATCHES.timesBare, ratio),
  ];
}
