/**
 * The settlement of one market with a hundred thousand holders, some of them subscribed: holders paid per second, the
 * response time, how long the transaction delays orders of other markets, and the longest wait of any other client for
 * the gateway, compared with an idle exchange. The database must satisfy its invariants afterwards.
 */
import { join } from "node:path";
import { WebSocket } from "ws";
import { Side } from "../../engine/constants.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { assert } from "../../engine/util/assert.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { Api, dataOf, type ListedMarket } from "../support/api.ts";
import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { grouped, printHead, printResult } from "../support/report.ts";
import { builtScript } from "../support/root.ts";
import { UNBOUNDED_TERMS } from "../support/terms.ts";
import { addHolders } from "./settle/holders.ts";
import { Probe } from "./settle/probe.ts";

const smoke = process.argv.includes("--smoke");
const HOLDERS = smoke ? 2_000 : 100_000;
const LISTENERS = smoke ? 50 : 2_000;
const QUIET_MS = smoke ? 200 : 2_000;
const PASSWORD = "a bench at the harbour wall";
const TRADER = "pm_pat_settle-trader-00000000000000000000000000000000";

const PROBE = builtScript("bench/children/latency-probe.js");
const tokenOf = (index: number): string => `pm_pat_settle-holder-${String(index).padStart(32, "0")}`;
const seed = {
  users: [
    { email: "operator@example.com", role: "operator", password: PASSWORD },
    {
      email: "trader@example.com",
      kyc_tier: 2,
      terms: UNBOUNDED_TERMS,
      deposit: 1e12,
      pats: [{ name: "bench", scopes: ["orders:write"], token: TRADER }],
    },
  ],
  markets: ["settled", "other"].map((slug) => ({ slug, question: "Does it pay?", outcomes: ["Yes", "No"] })),
};

const folder = makeFolder("bench-settle");
const first = await ExchangeProcess.start({ dataDir: folder, seed });
const lookUp = new Api(first.url, 1);
await lookUp.open();
const [settled, other] = (await lookUp.markets(["settled", "other"])) as [ListedMarket, ListedMarket];
lookUp.close();
await first.stop();
const tokens = Array.from({ length: LISTENERS }, (_, i) => tokenOf(i));
addHolders(join(folder, "exchange.db"), { marketId: settled.id, holders: HOLDERS, tokens });

const exchange = await ExchangeProcess.start({ dataDir: folder, seed });
const api = new Api(exchange.url, 1);
await api.open();
const ask = async <T>(path: string, token: string | null, body: object): Promise<T> => {
  let answer: T | undefined;
  await api.each(1, async (_, send) => {
    answer = dataOf<T>(path, await send(api.bytes("POST", path, token, body)));
  });
  return answer!;
};
const signedIn = await ask<{ access_token: string }>("/auth/login", null, {
  email: "operator@example.com",
  password: PASSWORD,
});
const operator = signedIn.access_token;

/** Positions reported to holders. */
let received = 0;
const sockets = await Promise.all(
  tokens.map(async (token) => {
    const url = `${exchange.url.replace("http", "ws")}/api/v1/ws?token=${token}`;
    const socket = new WebSocket(url, { perMessageDeflate: false });
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    socket.on("message", (bytes: Buffer) => {
      if (/^\{"event":"position\.updated"/.test(bytes.toString("latin1", 0, 40))) received++;
    });
    return socket;
  }),
);
const order = { market_id: other.id, outcome_id: itemAt(other.outcomes, 0).id, side: Side.buy, price: 1, quantity: 1 };
const placement = { method: "POST", path: "/api/v1/orders", token: TRADER, body: JSON.stringify(order) };
const gateway = await Probe.start(PROBE, { url: exchange.url, path: "/livez" });
const engine = await Probe.start(PROBE, { url: exchange.url, ...placement });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

await ask(`/admin/markets/${settled.id}/close`, operator, {});
await pause(QUIET_MS);
const quiet = { gateway: await gateway.report(), engine: await engine.report() };
const startedAt = performance.now();
await ask(`/admin/markets/${settled.id}/resolve`, operator, { payouts: [10_000, 0] });
const answerMs = performance.now() - startedAt;
const busy = { gateway: await gateway.report(), engine: await engine.report() };
for (let waited = 0; received < 2 * LISTENERS && waited < 10_000; waited += 10) await pause(10);
assert(received === 2 * LISTENERS, `every listener gets its updates: ${received} positions of ${2 * LISTENERS}`);
assert(busy.engine.refused === 0 && busy.gateway.refused === 0, "no request is refused meanwhile");
for (const probe of [gateway, engine]) await probe.end();
for (const socket of sockets) socket.terminate();
api.close();
await exchange.stop();
const db = openReadOnly(join(folder, "exchange.db"));
const broken = verifyDatabase(db).filter(({ ok }) => !ok);
db.close();
assert(broken.length === 0, `the database holds: ${JSON.stringify(broken)}`);
removeFolder(folder);

const perSecond = Math.round(HOLDERS / (answerMs / 1_000));
const ms = (value: number): string => `${value.toFixed(1)} ms`;
printHead(
  "settle",
  `a market of two outcomes with ${grouped(HOLDERS)} holders of both, ${grouped(LISTENERS)} of them on sockets`,
);
console.log(`  ${grouped(perSecond)} holders/s: answered after ${ms(answerMs)}`);
console.log(
  `  orders of another market wait ${ms(busy.engine.longestMs)} at most, quiet ${ms(quiet.engine.longestMs)}`,
);
console.log(
  `  anybody else waits ${ms(busy.gateway.longestMs)} at most for the gateway, quiet ${ms(quiet.gateway.longestMs)}`,
);
printResult({
  bench: "settle",
  holders: HOLDERS,
  listeners: LISTENERS,
  holders_per_s: perSecond,
  answer_ms: +answerMs.toFixed(1),
  order_longest_ms: { quiet: +quiet.engine.longestMs.toFixed(1), settling: +busy.engine.longestMs.toFixed(1) },
  gateway_longest_ms: { quiet: +quiet.gateway.longestMs.toFixed(1), settling: +busy.gateway.longestMs.toFixed(1) },
});
