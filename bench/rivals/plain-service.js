/**
 * What a competent engineer would write in a day to take the same orders: Fastify with its schemas, better-sqlite3 with
 * prepared statements, books and accounts in memory, one transaction an order (WAL, FULL), 202 after its commit. It knows
 * tokens, holds, fees, rebates, self-trades and cancel-all; no mint or merge, no stream, no recovery, no rate limits.
 * Arguments: the database's file, a seed file of the exchange, and the better-sqlite3 to use. Prints its port.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { BUY, queued, Refusal, serve } from "./front.js";

const Database = createRequire(import.meta.url)(process.argv[4]);
const db = new Database(process.argv[2]);
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
db.exec(`
  CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT UNIQUE, balance INTEGER CHECK (balance >= 0)) STRICT;
  CREATE TABLE positions (user_id INTEGER, outcome_id INTEGER, quantity INTEGER CHECK (quantity >= 0),
    PRIMARY KEY (user_id, outcome_id)) STRICT, WITHOUT ROWID;
  CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, outcome_id INTEGER, side INTEGER, price INTEGER,
    quantity INTEGER, remaining INTEGER, status TEXT, created_at INTEGER) STRICT;
  CREATE TABLE fills (id INTEGER PRIMARY KEY, taker_order_id INTEGER, maker_order_id INTEGER, price INTEGER,
    quantity INTEGER, fee INTEGER, rebate INTEGER, created_at INTEGER) STRICT;
`);
const insertOrder = db.prepare("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
const updateOrder = db.prepare("UPDATE orders SET remaining = ?, status = ? WHERE id = ?");
const insertFill = db.prepare("INSERT INTO fills VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)");
const setBalance = db.prepare(
  "INSERT INTO users VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET balance = excluded.balance",
);
const setPosition = db.prepare(
  "INSERT INTO positions VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET quantity = excluded.quantity",
);

const seed = JSON.parse(readFileSync(process.argv[3], "utf8"));
const users = new Map();
const markets = new Map();
let lastOrderId = 0;
let lastOutcomeId = 0;
db.transaction(() => {
  for (const { email, deposit, pats } of seed.users) {
    const id = users.size + 1;
    users.set(pats[0].token, { id, email, balance: deposit, held: 0, shares: new Map(), orders: new Map() });
    setBalance.run(id, email, deposit);
  }
})();
for (const [i, { slug, outcomes }] of seed.markets.entries()) {
  const id = i + 1;
  const market = { id, slug, outcomes: outcomes.map((name) => ({ id: ++lastOutcomeId, name, bids: [], asks: [] })) };
  markets.set(id, market).set(slug, market);
}

function sharesOf(user, outcome) {
  const shares = user.shares.get(outcome) ?? { quantity: 0, held: 0 };
  user.shares.set(outcome, shares);
  return shares;
}

function moveShares(user, outcome, quantity) {
  const shares = sharesOf(user, outcome);
  shares.quantity += quantity;
  setPosition.run(user.id, outcome, shares.quantity);
}

function moveMoney(user, amount) {
  user.balance += amount;
  setBalance.run(user.id, user.email, user.balance);
}

/** Takes from the user's free money or shares what the order needs, or with a negative quantity gives it back. */
function hold({ user, side, price, outcome_id }, quantity) {
  const purse = side === BUY ? user : sharesOf(user, outcome_id);
  const needed = side === BUY ? price * 100 * quantity : quantity;
  const owned = side === BUY ? user.balance : purse.quantity;
  if (needed > owned - purse.held) {
    throw new Refusal(422, side === BUY ? 42201 : 42202, side === BUY ? "insufficient balance" : "insufficient shares");
  }
  purse.held += needed;
}

/** One match at the maker's price; the order that rests longer is the maker. */
function settle(taker, maker, quantity, now) {
  const [buyer, seller] = taker.side === BUY ? [taker, maker] : [maker, taker];
  const notional = maker.price * 100 * quantity;
  const fee = Math.ceil((notional * 150) / 10_000);
  const rebate = Math.floor((notional * 10) / 10_000);
  for (const order of [taker, maker]) {
    hold(order, -quantity);
    order.remaining -= quantity;
  }
  moveMoney(buyer.user, -notional);
  moveMoney(seller.user, notional - fee);
  moveMoney(maker.user, rebate);
  moveShares(buyer.user, buyer.outcome_id, quantity);
  moveShares(seller.user, seller.outcome_id, -quantity);
  updateOrder.run(maker.remaining, maker.remaining === 0 ? "filled" : "partially_filled", maker.id);
  insertFill.run(taker.id, maker.id, maker.price, quantity, fee, rebate, now);
  if (maker.remaining === 0) maker.user.orders.delete(maker.id);
}

/** Fills against the best levels of the other side; an own order there cancels what is left of the taker. */
function match(order, { bids, asks }, now) {
  const levels = order.side === BUY ? asks : bids;
  while (order.remaining > 0 && levels.length > 0) {
    const { price, orders } = levels[0];
    if (order.side === BUY ? price > order.price : price < order.price) break;
    const maker = orders[0];
    if (maker.user === order.user) return "canceled";
    settle(order, maker, Math.min(order.remaining, maker.remaining), now);
    if (maker.remaining === 0) orders.shift();
    if (orders.length === 0) levels.shift();
  }
  return order.remaining === 0 ? "filled" : order.remaining < order.quantity ? "partially_filled" : "open";
}

/** Where a level of this price is, or belongs: best first. */
function placeOf(levels, { side, price }) {
  let [low, high] = [0, levels.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (side === BUY ? levels[middle].price > price : levels[middle].price < price) low = middle + 1;
    else high = middle;
  }
  return low;
}

function rest(order, { bids, asks }) {
  const levels = order.side === BUY ? bids : asks;
  const at = placeOf(levels, order);
  if (levels[at]?.price === order.price) levels[at].orders.push(order);
  else levels.splice(at, 0, { price: order.price, orders: [order] });
  order.user.orders.set(order.id, { order, levels });
}

const place = db.transaction((user, body, now) => {
  const outcome = markets.get(body.market_id)?.outcomes.find(({ id }) => id === body.outcome_id);
  if (outcome === undefined) throw new Refusal(404, 4040, "no such market or outcome");
  const order = { ...body, id: lastOrderId + 1, user, remaining: body.quantity };
  hold(order, order.quantity);
  lastOrderId++;
  const { id, side, price, quantity } = order;
  insertOrder.run(id, user.id, outcome.id, side, price, quantity, quantity, "open", now);
  const status = match(order, outcome, now);
  if (status !== "open") updateOrder.run(order.remaining, status, id);
  if (status === "canceled") hold(order, -order.remaining);
  else if (order.remaining > 0) rest(order, outcome);
  return queued(body, id, now);
});

const cancelAll = db.transaction((user) => {
  const ids = [...user.orders.keys()];
  for (const { order, levels } of user.orders.values()) {
    const at = placeOf(levels, order);
    levels[at].orders.splice(levels[at].orders.indexOf(order), 1);
    if (levels[at].orders.length === 0) levels.splice(at, 1);
    hold(order, -order.remaining);
    updateOrder.run(order.remaining, "canceled", order.id);
  }
  user.orders.clear();
  return { order_ids: ids };
});

const split = db.transaction((user, { market_id, quantity }) => {
  if (quantity * 1e6 > user.balance - user.held) throw new Refusal(422, 42201, "insufficient balance");
  moveMoney(user, -quantity * 1e6);
  for (const { id } of markets.get(market_id).outcomes) moveShares(user, id, quantity);
  return { market_id, quantity };
});

await serve(users, markets, {
  ...{ place, split, cancelAll },
  // What a failed commit left in memory is not in the database.
  failed: () => process.exit(1),
  closed: () => db.close(),
});
