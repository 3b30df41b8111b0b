/**
 * POST /orders, answered once the order is on the disk (FULL), beside a bare uWebSockets.js handler that parses the same
 * bodies and answers as many bytes: requests a second of both and their ratio, at 64 and at 256 connections. The two
 * take turns in one run and the ratio is the median over the turns: a machine that is now slow, now fast hits both.
 */
import { createLoadClient, type LoadClient, type Loaded } from "./http/load.ts";
import { MARKETS, prepare, seed, USERS } from "./http/workload.ts";
import { fail, grouped, median, printHead, printResult } from "./report.ts";
import { Child } from "./support/child.ts";
import { ExchangeProcess } from "./support/exchange-process.ts";
import { makeFolder, removeFolder } from "./support/folder.ts";

const smoke = process.argv.includes("--smoke");
const ROUNDS = smoke ? 1 : 5;
const SECONDS = smoke ? 1 : 5;
const WARM_UP_SECONDS = smoke ? 1 : 4;
/** Requests a second that the exchange needs, as a share of the bare handler's. */
const NEEDED: readonly (readonly [connections: number, ratio: number])[] = [
  [64, 0.4],
  [256, 0.6],
];
/** With more answers than this that aren't 202, something else was measured. */
const MAX_FAILED_SHARE = 0.01;

interface Level {
  readonly connections: number;
  readonly exchange: Loaded[];
  readonly bare: Loaded[];
}

async function startBare(answerBytes: number): Promise<{ url: string; child: Child }> {
  const child = new Child("the bare handler", "bench/bare-handler.js", [String(answerBytes)], {});
  const port = await child.line((line) => /^port (\d+)$/.exec(line)?.[1]);
  return { url: `http://127.0.0.1:${port}`, child };
}

/** A fresh exchange and a fresh bare handler, both warmed up and then measured in turn. */
async function measure(connections: number): Promise<{ level: Level; client: LoadClient["name"] }> {
  const folder = makeFolder("bench-http");
  const exchange = await ExchangeProcess.start({ dataDir: folder, seed });
  const { requests, answerBytes } = await prepare(exchange.url);
  const bare = await startBare(answerBytes);
  const client = createLoadClient(requests, folder);
  const level: Level = { connections, exchange: [], bare: [] };
  const warmUp = { connections, seconds: WARM_UP_SECONDS };
  await client.run({ ...warmUp, url: exchange.url });
  await client.run({ ...warmUp, url: bare.url });
  for (let round = 0; round < ROUNDS; round++) {
    level.exchange.push(await client.run({ connections, seconds: SECONDS, url: exchange.url }));
    // What it put off while it was busy must not slow the bare handler down.
    await exchange.quiet();
    level.bare.push(await client.run({ connections, seconds: SECONDS, url: bare.url }));
  }
  bare.child.process.kill("SIGTERM");
  await bare.child.ended;
  await exchange.stop();
  removeFolder(folder);
  return { level, client: client.name };
}

function summary(rounds: readonly Loaded[]): { perSecond: number; p50Ms: number; p99Ms: number } {
  const of = (field: "perSecond" | "p50Ms" | "p99Ms") => Number(median(rounds.map((round) => round[field])).toFixed(3));
  return { perSecond: Math.round(of("perSecond")), p50Ms: of("p50Ms"), p99Ms: of("p99Ms") };
}

function print({ connections, exchange, bare }: Level, needed: number): Record<string, unknown> {
  const ratios = exchange.map(({ perSecond }, round) => perSecond / bare[round]!.perSecond);
  const ratio = median(ratios);
  const requests = exchange.reduce((sum, round) => sum + round.requests, 0);
  const failedShare = exchange.reduce((sum, round) => sum + round.failed, 0) / requests;
  const [ours, theirs] = [summary(exchange), summary(bare)];
  const line = (name: string, { perSecond, p50Ms, p99Ms }: typeof ours) =>
    console.log(`    ${name} ${grouped(perSecond)} requests/s, p50 ${p50Ms} ms, p99 ${p99Ms} ms`);
  console.log(`  ${connections} connections, medians of ${ROUNDS} x ${SECONDS} s each in turn:`);
  line("durable orders", ours);
  line("bare handler  ", theirs);
  const each = ratios.map((one) => one.toFixed(2)).join(" ");
  console.log(`    ratio ${ratio.toFixed(3)} (${each}), needed ${needed}; ${(failedShare * 100).toFixed(2)} % not 202`);
  if (failedShare > MAX_FAILED_SHARE) fail(`http: ${failedShare * 100} % of the orders were not answered with 202`);
  return { exchange: ours, bare: theirs, ratio: Number(ratio.toFixed(3)), needed, failed_share: failedShare };
}

const workload = `POST /orders, ${USERS} users, ${MARKETS} markets, 90 % rest, 10 % take; FULL`;
printHead("http", workload);
const results: Record<string, unknown> = {};
let client = "";
try {
  for (const [connections, needed] of smoke ? NEEDED.slice(0, 1) : NEEDED) {
    const measured = await measure(connections);
    client = measured.client;
    results[`connections_${connections}`] = print(measured.level, needed);
  }
} catch (error) {
  fail(`http: ${(error as Error).message}`);
}
if (client === "node")
  console.log("  wrk is missing: this client takes the machine itself, which makes the ratio too kind");
printResult({ bench: "http", client, rounds: ROUNDS, seconds: SECONDS, ...results });
