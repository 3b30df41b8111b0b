/**
 * Orders without an exchange around them: Fastify with its schemas, and a nodejs-order-book for each outcome, all in memory.
 * It knows tokens and matches; it keeps no money, no shares, no order once it has ended, and nothing across a restart.
 * Argument: a seed file of the exchange. Prints its port.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import Fastify from "fastify";

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

class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

let lastOrderId = 0;

function place(body) {
  const { market_id, outcome_id, side, price, quantity } = body;
  const found = books.get(outcome_id);
  if (found?.marketId !== market_id) throw new Refusal(404, 4040, "no such market or outcome");
  const id = ++lastOrderId;
  const { err } = found.book.limit({ id: String(id), side: side === 1 ? "buy" : "sell", size: quantity, price });
  if (err !== null) throw err;
  const now = Date.now();
  const told = {
    ...body,
    id,
    client_order_id: null,
    remaining: quantity,
    filled: 0,
    type: "limit",
    time_in_force: "gtc",
  };
  const rules = { post_only: false, self_trade_prevention: "cancel_taker", expires_at: null, builder_code: null };
  return { ...told, ...rules, status: "queued", reason: null, created_at: now, updated_at: now, trades: [] };
}

const integer = (minimum, maximum) => ({ type: "integer", minimum, maximum });
const id = integer(1, Number.MAX_SAFE_INTEGER);
const body = (properties) => ({
  type: "object",
  additionalProperties: false,
  required: Object.keys(properties),
  properties,
});
const orderBody = body({
  ...{ market_id: id, outcome_id: id, side: integer(1, 2) },
  ...{ price: integer(1, 9_999), quantity: integer(1, 1e9) },
});
const splitBody = body({ market_id: id, quantity: integer(1, 1e9) });
const done = (data) => ({ code: 0, msg: "ok", data });

const app = Fastify();
app.setErrorHandler((error, _request, reply) => {
  const { message, statusCode = 500, status = statusCode, code = 50_000 } = error;
  reply.code(status).send({ code: error.validation ? 40_000 : code, msg: message, data: null });
});
const signedIn = (request, _reply, next) => {
  const isKnown = users.has(request.headers.authorization?.slice("Bearer ".length));
  next(isKnown ? undefined : new Refusal(401, 40_100, "unknown token"));
};
const post = (path, schema, work) =>
  app.post(path, { schema: { body: schema }, onRequest: signedIn }, (request, reply) => {
    reply.code(202).send(done(work(request.body)));
  });
post("/api/v1/orders", orderBody, place);
post("/api/v1/wallet/split", splitBody, (asked) => asked);
app.get("/api/v1/markets/:slug", (request, reply) => {
  reply.send(done(markets.get(request.params.slug)));
});
process.once("SIGTERM", () => app.close());
await app.listen({ host: "127.0.0.1", port: 0 });
console.log(`port ${app.server.address().port}`);
