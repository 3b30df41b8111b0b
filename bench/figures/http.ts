/**
 * POST /orders with durable responses (FULL), beside a bare uWebSockets.js handler that parses the same bodies and
 * returns as many bytes, beside a plain Fastify and better-sqlite3 service that executes the same trades, and beside a
 * Fastify service that matches with the order book of a package, in memory alone: requests per second of each and the
 * ratios, at 64 and at 256 connections. The servers alternate in one run, and a ratio is the median over the turns: a
 * machine of varying speed affects all of them alike.
 */
import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { missingPackages, RIVALS } from "../support/on-demand.ts";
import { fail, type Goal, goal, grouped, median, printHead, printResult } from "../support/report.ts";
import { Baseline } from "./http/baseline.ts";
import { createLoadClient, type LoadClient, type Loaded } from "./http/load.ts";
import { checkSameTrades } from "./http/same-trades.ts";
import { MARKETS, prepare, seed, USERS } from "./http/workload.ts";

const smoke = process.argv.includes("--smoke");
const ROUNDS = smoke ? 1 : 5;
const SECONDS = smoke ? 1 : 4;
const WARM_UP_SECONDS = smoke ? 0 : 4;
/** Orders sent to both services to see that they do the same with them. */
const SAME_ORDERS = smoke ? 100 : 4_000;
/** Requests a second that the exchange needs, as a share of the bare handler's. */
const NEEDED: readonly (readonly [connections: number, ratio: number])[] = [
  [64, 0.5],
  [256, 0.8],
];
const NEEDED_BESIDE: Readonly<Record<Rival, number>> = { plain: 5, memory: 1 };
/** With more responses other than 202, the measurement is invalid. */
const MAX_FAILED_SHARE = 0.01;

/** From packages that are installed on demand. */
type Rival = "plain" | "memory";
type Name = "exchange" | "bare" | Rival;
const TITLES: Record<Name, string> = {
  ...{ exchange: "durable orders", bare: "bare handler" },
  ...{ plain: "plain service", memory: "memory service" },
};

/** Rounds of each server that took part. */
type Rounds = ReadonlyMap<Name, Loaded[]>;

/** A fresh exchange and fresh servers for comparison, all warmed up and then measured in turn. */
async function measure(
  connections: number,
  hasRivals: boolean,
): Promise<{ rounds: Rounds; client: LoadClient["name"] }> {
  const folder = makeFolder("bench-http");
  const exchange = await ExchangeProcess.start({ dataDir: folder, seed });
  const { requests, answerBytes } = await prepare(exchange.url);
  const servers = new Map<Name, { readonly url: string; stop(): Promise<void> }>([["exchange", exchange]]);
  servers.set("bare", await Baseline.bareHandler(answerBytes));
  if (hasRivals) {
    const plain = await Baseline.plainService(folder, seed);
    await prepare(plain.url);
    servers.set("plain", plain).set("memory", await Baseline.memoryService(folder, seed));
  }
  const client = createLoadClient(requests, folder);
  const rounds = new Map([...servers.keys()].map((name) => [name, [] as Loaded[]]));
  for (const { url } of WARM_UP_SECONDS > 0 ? servers.values() : []) {
    await client.run({ connections, seconds: WARM_UP_SECONDS, url });
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, { url }] of servers) {
      rounds.get(name)!.push(await client.run({ connections, seconds: SECONDS, url }));
      // Its deferred background work must not slow the others.
      await exchange.quiet();
    }
  }
  for (const server of servers.values()) await server.stop();
  removeFolder(folder);
  return { rounds, client: client.name };
}

function printServer(name: Name, rounds: readonly Loaded[]): object {
  const of = (field: "perSecond" | "p50Ms" | "p99Ms") => Number(median(rounds.map((round) => round[field])).toFixed(3));
  const [perSecond, p50Ms, p99Ms] = [Math.round(of("perSecond")), of("p50Ms"), of("p99Ms")];
  console.log(`    ${TITLES[name].padEnd(14)} ${grouped(perSecond)} requests/s, p50 ${p50Ms} ms, p99 ${p99Ms} ms`);
  const requests = rounds.reduce((sum, round) => sum + round.requests, 0);
  const failed = rounds.reduce((sum, round) => sum + round.failed, 0);
  if (failed > MAX_FAILED_SHARE * requests)
    fail(`http: ${TITLES[name]}: ${failed} of ${requests} answers were not 202`);
  return { perSecond, p50Ms, p99Ms, failed_share: failed / requests };
}

function printRatio(rounds: Rounds, to: Name, connections: number, needed: number): Goal {
  const theirs = rounds.get(to)!;
  const ratios = rounds.get("exchange")!.map(({ perSecond }, round) => perSecond / itemAt(theirs, round).perSecond);
  const each = ratios.map((one) => one.toFixed(2)).join(" ");
  console.log(`    ${median(ratios).toFixed(3)} of the ${TITLES[to]} (${each}), needed ${needed}`);
  return goal(`HTTP, ${connections} connections, of the ${TITLES[to]}`, needed, median(ratios));
}

const workload = `POST /orders, ${USERS} users, ${MARKETS} markets, 90 % rest, 10 % take; FULL`;
printHead("http", workload);
const results: Record<string, unknown> = {};
const goals: Goal[] = [];
let client = "";
try {
  const missing = missingPackages(RIVALS, !smoke);
  if (missing !== null) console.log(`  plain and memory service: skipped, ${missing}`);
  else {
    const fills = await checkSameTrades(SAME_ORDERS);
    console.log(
      `  the first ${grouped(SAME_ORDERS)} orders leave the same ${grouped(fills)} fills, balances and books in both`,
    );
  }
  for (const [connections, needed] of smoke ? NEEDED.slice(0, 1) : NEEDED) {
    const measured = await measure(connections, missing === null);
    client = measured.client;
    console.log(`  ${connections} connections, medians of ${ROUNDS} x ${SECONDS} s each in turn:`);
    const servers = [...measured.rounds].map(([name, rounds]) => [name, printServer(name, rounds)]);
    results[`connections_${connections}`] = Object.fromEntries(servers);
    goals.push(printRatio(measured.rounds, "bare", connections, needed));
    if (missing !== null) continue;
    for (const rival of ["plain", "memory"] as const) {
      goals.push(printRatio(measured.rounds, rival, connections, NEEDED_BESIDE[rival]));
    }
  }
} catch (error) {
  fail(`http: ${(error as Error).message}`);
}
if (client === "node")
  console.log("  wrk is missing: this client takes the machine itself, which makes the ratios too kind");
printResult({ bench: "http", client, rounds: ROUNDS, seconds: SECONDS, ...results, goals });
