/**
 * The cost of subscribers. 1. A thousand subscribers of one busy book, in JSON and in SBE: messages per second that reach
 * them, alternating with a bare uWebSockets.js that publishes the same messages as JSON. 2. POST /orders with a thousand
 * idle subscribers connected and without, alternating. 3. Memory of twenty thousand idle sockets, or of as many as the
 * limit of open files permits.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Side } from "../../engine/constants.ts";
import { assert } from "../../engine/util/assert.ts";
import { Api, dataOf } from "../support/api.ts";
import { Child } from "../support/child.ts";
import { ClientFrames } from "../support/client-frames.ts";
import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { randomFrom } from "../support/random.ts";
import { fail, grouped, median, printHead, printResult } from "../support/report.ts";
import { subscribeToBook } from "../support/sbe-frames.ts";
import { operationId, SocketLoad } from "../support/socket-load.ts";
import { UNBOUNDED_TERMS } from "../support/terms.ts";
import { createLoadClient } from "./http/load.ts";
import * as http from "./http/workload.ts";
import { Crowd, type CrowdReport } from "./sockets/crowd.ts";

const smoke = process.argv.includes("--smoke");
const ROUNDS = smoke ? 1 : 5;
const SUBSCRIBERS = smoke ? 50 : 1_000;
const IDLE_SOCKETS = smoke ? 500 : 20_000;
const FAN_OUT_ORDERS = smoke ? 500 : 20_000;
const WINDOW = 64;
const SECONDS = smoke ? 1 : 4;
const HTTP_CONNECTIONS = 64;
const RECORDED = 2_000;
/** Open files of a process besides its sockets. */
const OTHER_FILES = 150;
const NEEDED_FAN_OUT = 0.5;
/** SBE's messages a second of JSON's. */
const NEEDED_SBE_FAN_OUT = 0.95;
const NEEDED_PLACEMENTS = 0.7;
const NEEDED_SOCKET_BYTES = 10_000;
const WS_PATH = "/api/v1/ws";
const MAKER = "pm_pat_sockets-maker-000000000000000000000000000000";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const subscribe = (market: number, outcome: number): string =>
  JSON.stringify({ op: "subscribe", channel: "book", market_id: market, outcome_id: outcome });

const seed: object = {
  users: [
    {
      email: "sockets-maker@example.com",
      kyc_tier: 2,
      terms: UNBOUNDED_TERMS,
      deposit: 1e15,
      pats: [{ name: "bench", scopes: ["orders:write"], token: MAKER }],
    },
  ],
  markets: [{ slug: "busy", question: "Does it trade?", outcomes: ["Yes", "No"] }],
};

/** Orders that rest on 200 prices of one book, each changing one level; so low that a day's activity allows all of them. */
function placements(market: number, outcome: number, count: number): ClientFrames {
  const random = randomFrom(20_261_121);
  const frames = new ClientFrames();
  for (let i = 0; i < count; i++) {
    const price = 1 + Math.floor(random() * 200);
    const order = { market_id: market, outcome_id: outcome, side: Side.buy, price, quantity: 1 };
    frames.add(JSON.stringify({ id: operationId(i), op: "order.place", data: order }));
  }
  return frames;
}

/** What a maker's orders sent to the subscribers. */
interface Traded {
  readonly perSecond: number;
  readonly ordersPerSecond: number;
  readonly report: CrowdReport;
}

interface FanOut {
  readonly json: number[];
  readonly sbe: number[];
  readonly bare: number[];
  readonly bytes: number;
  readonly ordersPerSecond: number;
}

/** Messages a second to each kind of subscribers, round by round. */
async function fanOut(): Promise<FanOut> {
  const folder = makeFolder("bench-sockets");
  const exchange = await ExchangeProcess.start({ dataDir: folder, seed });
  const api = new Api(exchange.url, 1);
  await api.open();
  const [market] = await api.markets(["busy"]);
  const outcome = itemAt(market!.outcomes, 0).id;
  const crowdOf = { path: WS_PATH, count: SUBSCRIBERS, recorded: RECORDED };
  const [json, sbe, bare, rates]: number[][] = [[], [], [], []];
  const recording = join(folder, "messages.json");
  let bytes = 0;
  /** The maker's orders are JSON in either case. */
  const trade = async (message: string | Uint8Array): Promise<Traded> => {
    const crowd = await Crowd.open({ ...crowdOf, url: exchange.url, message });
    const maker = await SocketLoad.open(exchange.url, MAKER);
    const operations = { frames: placements(market!.id, outcome, FAN_OUT_ORDERS), ordersPerFrame: 1 };
    let ordersPerSecond = 0;
    const { perSecond, report } = await crowd.during(async () => {
      const { accepted, seconds } = await maker.send(operations, WINDOW);
      assert(accepted === FAN_OUT_ORDERS, "every order is accepted");
      ordersPerSecond = accepted / seconds;
    });
    assert(report.closed === 0, "no subscriber was closed");
    assert(report.frames > 0, "the subscribers see the book change");
    maker.close();
    await crowd.end();
    // Every trade finds an empty book.
    await api.each(1, async (_, send) => {
      dataOf("/orders", await send(api.bytes("DELETE", "/orders", MAKER)));
    });
    await exchange.quiet();
    return { perSecond, ordersPerSecond, report };
  };
  const tradeInSbe = (): Promise<Traded> => trade(subscribeToBook(market!.id, outcome));
  for (let round = smoke ? 1 : 0; round <= ROUNDS; round++) {
    // Neither format is always the first.
    const sbeFirst = round % 2 === 1 ? await tradeInSbe() : null;
    const { perSecond, ordersPerSecond, report } = await trade(subscribe(market!.id, outcome));
    const inSbe = sbeFirst ?? (await tradeInSbe());
    writeFileSync(recording, JSON.stringify(report.texts));
    bytes = median(report.texts.map((text) => text.length));
    const publisher = new Child(
      "the bare publisher",
      "bench/children/bare-publisher.js",
      [recording, String(SUBSCRIBERS)],
      {},
    );
    const port = await publisher.line((line) => /^port (\d+)$/.exec(line)?.[1]);
    const listeners = await Crowd.open({ ...crowdOf, url: `http://127.0.0.1:${port}`, message: null });
    const published = await listeners.during(() => pause(SECONDS * 1_000));
    await listeners.end();
    await publisher.ended;
    // The round before the first warms both up.
    if (round === 0) continue;
    json!.push(perSecond);
    rates!.push(ordersPerSecond);
    sbe!.push(inSbe.perSecond);
    bare!.push(published.perSecond);
  }
  api.close();
  await exchange.stop();
  removeFolder(folder);
  return { json: json!, sbe: sbe!, bare: bare!, bytes, ordersPerSecond: median(rates!) };
}

/** POST /orders a second with idle subscribers connected, and without, round by round. */
async function placing(): Promise<{ crowded: number[]; alone: number[] }> {
  const folder = makeFolder("bench-sockets");
  const exchange = await ExchangeProcess.start({ dataDir: folder, seed: http.seed });
  const { requests } = await http.prepare(exchange.url);
  const client = createLoadClient(requests, folder);
  const load = { connections: HTTP_CONNECTIONS, seconds: SECONDS, url: exchange.url };
  const [crowded, alone]: number[][] = [[], []];
  await client.run(load);
  for (let round = 0; round < ROUNDS; round++) {
    alone!.push((await client.run(load)).perSecond);
    await exchange.quiet();
    const crowd = await Crowd.open({
      ...{ url: exchange.url, path: WS_PATH, count: SUBSCRIBERS, recorded: 0 },
      // The other outcome of a market that trades: they are subscribed and hear nothing.
      message: subscribe(1, 2),
    });
    crowded!.push((await client.run(load)).perSecond);
    await crowd.end();
    await exchange.quiet();
  }
  await exchange.stop();
  removeFolder(folder);
  return { crowded: crowded!, alone: alone! };
}

/** Resident bytes that each idle socket adds. */
async function idleMemory(): Promise<{ sockets: number; bytesEach: number }> {
  const limit = Number(execFileSync("sh", ["-c", "ulimit -n"], { encoding: "utf8" }));
  const sockets = Number.isNaN(limit) ? IDLE_SOCKETS : Math.min(IDLE_SOCKETS, limit - OTHER_FILES);
  const folder = makeFolder("bench-sockets");
  const exchange = await ExchangeProcess.start({ dataDir: folder, seed });
  const open = (count: number): Promise<Crowd> =>
    Crowd.open({ url: exchange.url, path: WS_PATH, count, message: subscribe(1, 1), recorded: 0 });
  // The one-off allocations of the first sockets don't count.
  await (await open(100)).end();
  await exchange.quiet();
  const before = exchange.residentBytes();
  const crowd = await open(sockets);
  await exchange.quiet();
  const bytesEach = (exchange.residentBytes() - before) / sockets;
  assert((await crowd.count()).closed === 0, "no socket was closed");
  await crowd.end();
  await exchange.stop();
  removeFolder(folder);
  return { sockets, bytesEach };
}

const ratios = (a: readonly number[], b: readonly number[]): number[] => a.map((one, i) => one / itemAt(b, i));
const shown = (values: readonly number[]): string => values.map((value) => value.toFixed(2)).join(" ");

printHead("sockets", `${grouped(SUBSCRIBERS)} subscribers of one book; ${grouped(IDLE_SOCKETS)} idle sockets; FULL`);
try {
  const { json, sbe, bare, bytes, ordersPerSecond } = await fanOut();
  const fan = ratios(json, bare);
  const binary = ratios(sbe, json);
  console.log(
    `  a busy book reaches them with ${grouped(median(json))} messages/s of ${bytes} bytes (at ` +
      `${grouped(ordersPerSecond)} orders/s), bare publish ${grouped(median(bare))}: ${median(fan).toFixed(2)} ` +
      `(${shown(fan)}), needed ${NEEDED_FAN_OUT}`,
  );
  console.log(
    `  in SBE: ${grouped(median(sbe))} messages/s, ${median(binary).toFixed(2)} of JSON's (${shown(binary)}), ` +
      `needed ${NEEDED_SBE_FAN_OUT}`,
  );
  const { crowded, alone } = await placing();
  const held = ratios(crowded, alone);
  console.log(
    `  POST /orders with them idle: ${grouped(median(crowded))}/s, without: ${grouped(median(alone))}/s: ` +
      `${median(held).toFixed(2)} (${shown(held)}), needed ${NEEDED_PLACEMENTS}`,
  );
  const { sockets, bytesEach } = await idleMemory();
  console.log(
    `  ${grouped(sockets)} idle sockets, each subscribed to a book: ${grouped(bytesEach)} bytes each, needed: less than ` +
      grouped(NEEDED_SOCKET_BYTES),
  );
  const fanOutFigures = { ours: median(json), bare: median(bare), ratio: median(fan), needed: NEEDED_FAN_OUT };
  const sbeFigures = { sbe: median(sbe), json: median(json), ratio: median(binary), needed: NEEDED_SBE_FAN_OUT };
  const placingFigures = { idle: median(crowded), none: median(alone), ratio: median(held), needed: NEEDED_PLACEMENTS };
  const idle = { sockets, bytes_each: Math.round(bytesEach), needed: NEEDED_SOCKET_BYTES };
  printResult({ bench: "sockets", fan_out: fanOutFigures, sbe_fan_out: sbeFigures, placing: placingFigures, idle });
} catch (error) {
  fail(`sockets: ${(error as Error).message}`);
}
