/**
 * The cost of a million live orders: resident memory above the same exchange with the same users, shares and markets
 * but no orders, and the time to operational after SIGTERM, after kill -9, and with tables from before the orders. Once
 * without client order ids and once with one per order. After each start all orders must be live.
 */
import { copyFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { Side } from "../../engine/constants.ts";
import { MICRO_PER_SHARE } from "../../engine/limits.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { assert } from "../../engine/util/assert.ts";
import { openReadOnly, removeDatabase } from "../../engine/util/wal-database.ts";
import { Api, dataOf, type ListedMarket } from "../support/api.ts";
import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { fail, type Goal, goal, grouped, printHead, printResult } from "../support/report.ts";
import { batchesOf, SocketLoad } from "../support/socket-load.ts";
import { UNBOUNDED_TERMS } from "../support/terms.ts";

const smoke = process.argv.includes("--smoke");
const USERS = smoke ? 5 : 100;
const ORDERS_EACH = smoke ? 1_000 : 10_000;
const ORDERS = USERS * ORDERS_EACH;
const MARKETS = 20;
/** By turns a market has two outcomes or five. */
const OUTCOMES = [2, 5] as const;
/**
 * Bids rest at 1 to 99 BPS, asks at 9900 to 9999: no two of them match, nor do those of a market's outcomes combined.
 */
const PRICES = 99;
const LOWEST_ASK = 9_900;
/** A user's complete sets per market: more than its asks of one share in any outcome. */
const SETS = ORDERS_EACH / MARKETS / 2;
const BATCH_ORDERS = 50;
const WINDOW = 8;
const HELPERS = 16;
const NEEDED_BYTES = 400e6;
const NEEDED_READY_MS = 5_000;
/** With the tables as many placements behind the log. */
const NEEDED_BEHIND_MS = 4_000;

const tokenOf = (user: number): string => `pm_pat_live-${String(user).padStart(37, "0")}`;
const slugOf = (market: number): string => `live-${market}-market`;
const indices = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

const seed: object = {
  users: indices(USERS).map((user) => ({
    email: `live-${user}@example.com`,
    kyc_tier: 2,
    terms: UNBOUNDED_TERMS,
    deposit: 2 * MARKETS * SETS * MICRO_PER_SHARE,
    pats: [{ name: "bench", scopes: ["orders:write", "portfolio:read"], token: tokenOf(user) }],
  })),
  markets: indices(MARKETS).map((market) => ({
    slug: slugOf(market),
    question: `Which of them wins ${market}?`,
    outcomes: indices(itemAt(OUTCOMES, market % OUTCOMES.length)).map((outcome) => `Outcome ${outcome + 1}`),
  })),
};

/** Splits each user's shares; returns the markets. */
async function prepare(url: string): Promise<ListedMarket[]> {
  const api = new Api(url, HELPERS);
  await api.open();
  const markets = await api.markets(indices(MARKETS).map(slugOf));
  await api.each(USERS * MARKETS, async (i, send) => {
    const body = { market_id: itemAt(markets, i % MARKETS).id, quantity: SETS };
    const answer = await send(api.bytes("POST", "/wallet/split", tokenOf(Math.floor(i / MARKETS)), body));
    dataOf("/wallet/split", answer);
  });
  api.close();
  return markets;
}

/** Returns the client order id for each order of a user; null for none. */
type Naming = ((user: number, order: number) => string) | null;

/** One user's orders: bids and asks alternate per market and outcome, over all prices. */
function ordersOf(user: number, markets: readonly ListedMarket[], naming: Naming): string[] {
  return indices(ORDERS_EACH).map((order) => {
    const side = order % 2 === 0 ? Side.buy : Side.sell;
    // Both sides of a market before the next one.
    const turn = order >> 1;
    const market = itemAt(markets, turn % MARKETS);
    const round = Math.floor(turn / MARKETS);
    const outcome = itemAt(market.outcomes, round % market.outcomes.length);
    const price = (side === Side.buy ? 1 : LOWEST_ASK) + (round % PRICES);
    const name = naming === null ? {} : { client_order_id: naming(user, order) };
    return JSON.stringify({ market_id: market.id, outcome_id: outcome.id, side, price, quantity: 1, ...name });
  });
}

/** Places all orders of these users over one WebSocket each, one after the other; returns orders per second. */
async function place(
  url: string,
  users: readonly number[],
  markets: readonly ListedMarket[],
  naming: Naming,
): Promise<number> {
  let time = 0;
  for (const user of users) {
    const operations = batchesOf(ordersOf(user, markets, naming), ORDERS_EACH, BATCH_ORDERS);
    const socket = await SocketLoad.open(url, tokenOf(user));
    const loaded = await socket.send(operations, WINDOW);
    socket.close();
    if (loaded.refused > 0) throw new Error(`${loaded.refused} orders of ${ORDERS_EACH} were refused`);
    time += loaded.seconds;
  }
  return (users.length * ORDERS_EACH) / time;
}

/** The user's live orders as GET /orders lists them: as many as it placed, each once. */
async function checkOrders(url: string, user: number): Promise<void> {
  const api = new Api(url, 1);
  await api.open();
  await api.each(1, async (_, send) => {
    const ids = (await api.all<{ id: number }>(send, "/orders", tokenOf(user))).map(({ id }) => id);
    const count = new Set(ids).size;
    assert(
      ids.length === ORDERS_EACH && count === ORDERS_EACH,
      `GET /orders: ${ids.length} orders, ${count} different`,
    );
  });
  api.close();
}

/**
 * Cancels a user's orders and places them again, so that a crash finds changes that aren't in the database's main file
 * yet.
 */
async function replace(url: string, user: number, markets: readonly ListedMarket[], naming: Naming): Promise<void> {
  const api = new Api(url, 1);
  await api.open();
  await api.each(1, async (_, send) => {
    const answer = await send(api.bytes("DELETE", "/orders", tokenOf(user)));
    const { length } = dataOf<{ order_ids: number[] }>("/orders", answer).order_ids;
    assert(length === ORDERS_EACH, `DELETE /orders ended ${length} orders`);
  });
  api.close();
  await place(url, [user], markets, naming);
}

interface Measured {
  readonly placedPerSecond: number;
  readonly emptyBytes: number;
  readonly grownBytes: { readonly placed: number; readonly restarted: number };
  readonly readyMs: Readonly<Record<"empty" | "stopped" | "killed" | "behind", number>>;
}

/** @param named each order has a client order id */
async function measure(named: boolean): Promise<Measured> {
  const dataDir = makeFolder("bench-live");
  const namingOf = (group: string): Naming => {
    if (!named) return null;
    return (user, order) => `0193465e-7a2c-7c41-${group}-${String(user * ORDERS_EACH + order).padStart(12, "0")}`;
  };
  const first = await ExchangeProcess.start({ dataDir, seed });
  const markets = await prepare(first.url);
  await first.stop();
  const [tables, older] = [join(dataDir, "exchange.db"), join(dataDir, "older.db")];
  copyFileSync(tables, older);

  let exchange = await ExchangeProcess.start({ dataDir });
  await exchange.quiet();
  const emptyBytes = exchange.residentBytes();
  const empty = exchange.readyMs;
  const placedPerSecond = await place(exchange.url, indices(USERS), markets, namingOf("9d3f"));
  await exchange.quiet();
  const placed = exchange.residentBytes() - emptyBytes;
  await exchange.stop();

  exchange = await startFull(dataDir);
  const stopped = exchange.readyMs;
  await exchange.quiet();
  const restarted = exchange.residentBytes() - emptyBytes;
  await replace(exchange.url, 0, markets, namingOf("9d40"));
  await exchange.kill();

  exchange = await startFull(dataDir);
  const killed = exchange.readyMs;
  await exchange.kill();

  // As if the projector had written nothing since before the orders.
  removeDatabase(tables);
  renameSync(older, tables);
  exchange = await startFull(dataDir);
  const behind = exchange.readyMs;
  await exchange.stop();
  const db = openReadOnly(tables);
  const broken = verifyDatabase(db).filter(({ ok }) => !ok);
  db.close();
  assert(broken.length === 0, `the database holds: ${JSON.stringify(broken)}`);
  removeFolder(dataDir);
  return {
    placedPerSecond,
    emptyBytes,
    grownBytes: { placed, restarted },
    readyMs: { empty, stopped, killed, behind },
  };
}

/** Starts the exchange on a folder that must hold all orders. */
async function startFull(dataDir: string): Promise<ExchangeProcess> {
  const exchange = await ExchangeProcess.start({ dataDir });
  assert(exchange.restored === ORDERS, `${exchange.restored} live orders were there after the start`);
  await checkOrders(exchange.url, 0);
  return exchange;
}

function print(title: string, { placedPerSecond, emptyBytes, grownBytes, readyMs }: Measured): object {
  const { placed, restarted } = grownBytes;
  console.log(`  ${title}, placed at ${grouped(placedPerSecond)} orders/s:`);
  console.log(
    `    memory: ${megabytes(placed)} more once placed, ${megabytes(restarted)} once restarted, over ` +
      `${megabytes(emptyBytes)} without orders; needed: less than ${megabytes(NEEDED_BYTES)}`,
  );
  console.log(
    `    trades again ${seconds(readyMs.stopped)} after its start that follows SIGTERM, ${seconds(readyMs.killed)} after ` +
      `the one that follows kill -9 (${seconds(readyMs.empty)} without orders); needed: less than ${seconds(NEEDED_READY_MS)}`,
  );
  console.log(
    `    ${seconds(readyMs.behind)} where the tables lack all placements; needed: less than ${seconds(NEEDED_BEHIND_MS)}`,
  );
  return {
    orders_per_s: Math.round(placedPerSecond),
    empty_bytes: emptyBytes,
    grown_bytes: grownBytes,
    ready_ms: Object.fromEntries(Object.entries(readyMs).map(([when, ms]) => [when, Math.round(ms)])),
  };
}

printHead(
  "live",
  `${grouped(ORDERS)} live orders of ${USERS} users in ${MARKETS} markets, placed in batches of ${BATCH_ORDERS} over ` +
    "WebSockets; FULL; resident memory of the whole process",
);
try {
  const plain = smoke ? null : await measure(false);
  const results = plain === null ? {} : print("without client order ids", plain);
  const named = await measure(true);
  const namedResults = print("with client order ids", named);
  const needed = { needed_bytes: NEEDED_BYTES, needed_ready_ms: NEEDED_READY_MS };
  const recovered = (title: string, { readyMs }: Measured): Goal =>
    goal(
      `recovery of ${grouped(ORDERS)} live orders${title}, s`,
      NEEDED_READY_MS / 1_000,
      readyMs.killed / 1_000,
      true,
    );
  const behind = ({ readyMs }: Measured): Goal =>
    goal(`the same, tables that lack them, s`, NEEDED_BEHIND_MS / 1_000, readyMs.behind / 1_000, true);
  const goals = [
    ...(plain === null ? [] : [recovered("", plain), behind(plain)]),
    recovered(" with client order ids", named),
  ];
  printResult({ bench: "live", orders: ORDERS, ...needed, plain: results, client_order_ids: namedResults, goals });
} catch (error) {
  fail(`live: ${(error as Error).message}`);
}
