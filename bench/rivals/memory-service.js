/**
 * Orders without an exchange around them: Fastify with its schemas, and a nodejs-order-book for each outcome, all in memory.
 * It knows tokens and matches; it keeps no money, no shares, no order once it has ended, and nothing across a restart.
 * Argument: a seed file of the exchange. Prints its port.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { BUY, queued, Refusal, serve } from "./front.js";

const { OrderBook } = createRequire(import.meta.url)("nodejs-order-book");

const seed = JSON.parse(readFileSync(process.argv[2], "utf8"));
const users = new Map(seed.users.map(({ pats }, i) => [pats[0].token, i + 1]));
const markets = new Map();
const books = new Map();
for (const [i, { slug, outcomes }] of seed.markets.entries()) {
  const named = outcomes.map((name) => {
    const id = books.size + 1;
    books.set(id, { marketId: i + 1, book: new OrderBook() });
    return { id, name };
  });
  markets.set(slug, { id: i + 1, slug, outcomes: named });
}
let lastOrderId = 0;

function place(_user, body, now) {
  const { market_id, outcome_id, side, price, quantity } = body;
  const found = books.get(outcome_id);
  if (found?.marketId !== market_id) throw new Refusal(404, 4040, "no such market or outcome");
  const id = ++lastOrderId;
  const { err } = found.book.limit({ id: String(id), side: side === BUY ? "buy" : "sell", size: quantity, price });
  if (err !== null) throw err;
  return queued(body, id, now);
}

await serve(users, markets, { place, split: (_user, body) => body });
