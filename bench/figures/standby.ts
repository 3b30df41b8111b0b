/**
 * What the copy of the log costs: orders whose acknowledgement waits for three NATS nodes that sync every write, and for a
 * standby as well, beside a single box. They alternate in one run, on the nodes' own disk and cores, and a ratio is the median over the rounds.
 * 1. One connection: what is added to p50. 2. 256 connections: orders per CPU second of the exchange, of the single box at
 * the rate that the other reaches, and at its own full speed. Skipped without a nats-server of 2.10 or newer.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Child } from "../support/child.ts";
import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { findNatsServer, NatsCluster } from "../support/nats-cluster.ts";
import { fail, type Goal, goal, grouped, median, printHead, printResult } from "../support/report.ts";
import { START_OPTIONS } from "../support/start-options.ts";
import { createLoadClient, type LoadClient } from "./http/load.ts";
import { type OrderRequest, prepare, seed } from "./http/workload.ts";
import { runOpenLoop } from "./latency/open-loop.ts";

const smoke = process.argv.includes("--smoke");
const ROUNDS = smoke ? 1 : 5;
const SECONDS = smoke ? 1 : 4;
const CONNECTIONS = smoke ? 16 : 256;
/** ms that the copy may add to p50 on one connection, and the copy and a standby. */
const MOST_ADDED_MS = 2.5;
const MOST_ADDED_BY_BOTH_MS = 3;
/** Orders per CPU second beside a single box at the same rate, and at full speed. */
const SAME_RATE = 0.95;
const FULL_SPEED = 0.65;
const POLL_MS = 50;
const MAX_FAILED_SHARE = 0.01;

interface Speed {
  readonly perSecond: number;
  readonly p50Ms: number;
  /** µs of the exchange's processor time for an order. */
  readonly cpuMicros: number;
}

type Name = "single" | "stream" | "pair";

class Box {
  readonly exchange: ExchangeProcess;
  private readonly client: LoadClient;
  private readonly requests: readonly OrderRequest[];

  private constructor(exchange: ExchangeProcess, client: LoadClient, requests: readonly OrderRequest[]) {
    this.exchange = exchange;
    this.client = client;
    this.requests = requests;
  }

  static async start(folder: string, settings: Record<string, string>): Promise<Box> {
    const exchange = await ExchangeProcess.start({ dataDir: folder, seed, settings });
    const { requests } = await prepare(exchange.url);
    return new Box(exchange, createLoadClient(requests, folder), requests);
  }

  /** Orders as fast as the connections get responses. */
  flatOut(connections: number): Promise<Speed> {
    return this.measure(async () => {
      const { requests, failed, perSecond, p50Ms } = await this.client.run({
        ...{ connections, seconds: SECONDS, url: this.exchange.url },
      });
      return { orders: requests, failed, perSecond, p50Ms };
    });
  }

  /** Orders at a fixed rate. */
  paced(perSecond: number): Promise<Speed> {
    return this.measure(async () => {
      const where = { url: this.exchange.url, path: "/api/v1/orders", requests: this.requests };
      const loaded = await runOpenLoop({ ...where, connections: CONNECTIONS, seconds: SECONDS, perSecond });
      const { orders, failed, achievedPerSecond, p50Ms } = loaded;
      return { orders, failed, perSecond: achievedPerSecond, p50Ms };
    });
  }

  private async measure(
    load: () => Promise<{ orders: number; failed: number; perSecond: number; p50Ms: number }>,
  ): Promise<Speed> {
    const before = this.exchange.processorSeconds();
    const { orders, failed, perSecond, p50Ms } = await load();
    const seconds = this.exchange.processorSeconds() - before;
    if (failed > MAX_FAILED_SHARE * orders) fail(`standby: ${failed} of ${orders} orders failed`);
    await this.exchange.quiet();
    return { perSecond, p50Ms, cpuMicros: (1e6 * seconds) / Math.max(1, orders - failed) };
  }
}

/** Medians of one box over the rounds. */
function printBox(title: string, rounds: readonly Speed[]): object {
  const of = (field: keyof Speed): number => median(rounds.map((round) => round[field]));
  const [perSecond, p50Ms, cpuMicros] = [of("perSecond"), of("p50Ms"), of("cpuMicros")];
  console.log(
    `    ${title.padEnd(22)} ${grouped(perSecond)} orders/s, p50 ${p50Ms.toFixed(2)} ms, ${cpuMicros.toFixed(1)} µs an order`,
  );
  return { perSecond: Math.round(perSecond), p50Ms: +p50Ms.toFixed(3), cpuMicros: +cpuMicros.toFixed(1) };
}

/** Orders per CPU second of the copied box as a share of the single one, round by round. */
function shareOf(copied: readonly Speed[], single: readonly Speed[]): number {
  const shares = copied.map(({ cpuMicros }, i) => itemAt(single, i).cpuMicros / cpuMicros);
  console.log(
    `      ${median(shares).toFixed(2)} orders per CPU second (${shares.map((s) => s.toFixed(2)).join(" ")})`,
  );
  return median(shares);
}

/** A second box that follows; resolves once acknowledgements of the first wait for it. */
async function standBy(folder: string, settings: Record<string, string>, active: ExchangeProcess): Promise<Child> {
  const env = { HOST: "127.0.0.1", PORT: "0", DATA_DIR: folder, ...settings, STANDBY_BOX: "b" };
  const standby = new Child("the standby", "main.js", [], env, START_OPTIONS);
  await standby.line((line) => (line.includes('"msg":"standing by"') ? true : undefined));
  for (;;) {
    const { alone } = (await (await fetch(`${active.url}/readyz`)).json()) as { alone?: boolean };
    if (alone === false) return standby;
    await delay(POLL_MS);
  }
}

/** ms added to p50, the median of the rounds. */
function addedBy(copied: readonly Speed[], single: readonly Speed[]): number {
  const added = copied.map(({ p50Ms }, i) => p50Ms - itemAt(single, i).p50Ms);
  console.log(`      ${median(added).toFixed(2)} ms added (${added.map((ms) => ms.toFixed(2)).join(" ")})`);
  return median(added);
}

async function measure(): Promise<{ results: object; goals: Goal[] }> {
  const folders = ["single", "stream", "pair-a", "pair-b"].map((name) => makeFolder(`bench-${name}`));
  const cluster = await NatsCluster.start();
  const copied = { STANDBY_NATS: cluster.urls(), STANDBY_SECRET: randomBytes(33).toString("base64") };
  const single = await Box.start(itemAt(folders, 0), {});
  const stream = await Box.start(itemAt(folders, 1), { ...copied, STANDBY_ACK: "stream" });
  const both = { ...copied, STANDBY_NAME: "pair" };
  const pair = await Box.start(itemAt(folders, 2), { ...both, STANDBY_BOX: "a" });
  const standby = await standBy(itemAt(folders, 3), both, pair.exchange);
  const boxes = [single, stream, pair];
  try {
    const alone: Record<Name, Speed[]> = { single: [], stream: [], pair: [] };
    const many: Record<Name | "paced", Speed[]> = { single: [], stream: [], pair: [], paced: [] };
    for (const box of boxes) await box.flatOut(CONNECTIONS);
    for (let round = 0; round < ROUNDS; round++) {
      alone.single.push(await single.flatOut(1));
      alone.stream.push(await stream.flatOut(1));
      alone.pair.push(await pair.flatOut(1));
    }
    for (let round = 0; round < ROUNDS; round++) {
      const streamed = await stream.flatOut(CONNECTIONS);
      many.stream.push(streamed);
      many.paced.push(await single.paced(streamed.perSecond));
      many.pair.push(await pair.flatOut(CONNECTIONS));
      many.single.push(await single.flatOut(CONNECTIONS));
    }
    return report(alone, many);
  } finally {
    for (const box of boxes) await box.exchange.stop();
    standby.process.kill("SIGTERM");
    await standby.ended;
    await cluster.end();
    for (const folder of folders) removeFolder(folder);
  }
}

function report(alone: Record<Name, Speed[]>, many: Record<Name | "paced", Speed[]>) {
  console.log(`  one connection, one order at a time, medians of ${ROUNDS} x ${SECONDS} s each in turn:`);
  const one = {
    single: printBox("single box", alone.single),
    stream: printBox("copied to three nodes", alone.stream),
    pair: printBox("and to a standby", alone.pair),
  };
  const [added, addedByBoth] = [addedBy(alone.stream, alone.single), addedBy(alone.pair, alone.single)];
  console.log(`  ${CONNECTIONS} connections:`);
  const all = {
    stream: printBox("copied to three nodes", many.stream),
    pair: printBox("and to a standby", many.pair),
    paced: printBox("single, at that rate", many.paced),
    single: printBox("single, at its own", many.single),
  };
  console.log("    beside the single box at that rate, and at its own:");
  const [sameRate, fullSpeed] = [shareOf(many.stream, many.paced), shareOf(many.stream, many.single)];
  const goals = [
    goal("copy of the log: ms added to p50, one connection", MOST_ADDED_MS, added, true),
    goal("the copy and a standby: ms added to p50, one connection", MOST_ADDED_BY_BOTH_MS, addedByBoth, true),
    goal("copy of the log: orders per CPU second, same rate", SAME_RATE, sameRate),
    goal("copy of the log: orders per CPU second, full speed", FULL_SPEED, fullSpeed),
  ];
  return { results: { one_connection: one, many_connections: all }, goals };
}

printHead("standby", "POST /orders, FULL; three NATS nodes on this machine that sync every write");
if (findNatsServer() === null) {
  console.log("  skipped: there is no nats-server of 2.10 or newer (NATS_SERVER_PATH names it)");
  printResult({ bench: "standby", skipped: true, goals: [] });
} else {
  const { results, goals } = await measure();
  printResult({ bench: "standby", ...results, goals });
}
