/**
 * What the rivals share: the way to the exchange's requests through Fastify and its schemas, and the shape of its responses.
 */
import Fastify from "fastify";

export const BUY = 1;
const SELL = 2;

/** A response other than success. */
export class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

/** The response to an order that entered with this id. */
export function queued(body, id, now) {
  const told = {
    ...body,
    id,
    client_order_id: null,
    remaining: body.quantity,
    filled: 0,
    type: "limit",
    time_in_force: "gtc",
  };
  const rules = { post_only: false, self_trade_prevention: "cancel_taker", expires_at: null, builder_code: null };
  return { ...told, ...rules, status: "queued", reason: null, created_at: now, updated_at: now, trades: [] };
}

const integer = (minimum, maximum) => ({ type: "integer", minimum, maximum });
const id = integer(1, Number.MAX_SAFE_INTEGER);
const quantity = integer(1, 1e9);
const body = (properties) => ({
  type: "object",
  additionalProperties: false,
  required: Object.keys(properties),
  properties,
});
const orderBody = body({ market_id: id, outcome_id: id, side: integer(BUY, SELL), price: integer(1, 9_999), quantity });
const splitBody = body({ market_id: id, quantity });
const done = (data) => ({ code: 0, msg: "ok", data });

/**
 * Serves a rival and prints its port. SIGTERM ends it. Its functions get the user of the token and, where there is one, the
 * body and the time, and return what the response tells.
 * @param users by token @param markets by slug, as the exchange lists them @param rival `place`, `split`, and, where it can,
 * `cancelAll`, `failed` (after a response with 500) and `closed`
 */
export async function serve(users, markets, { place, split, cancelAll, failed, closed }) {
  const app = Fastify();
  app.decorateRequest("user", null);
  app.setErrorHandler((error, _request, reply) => {
    const { message, statusCode = 500, status = statusCode, code = 50_000 } = error;
    reply.code(status).send({ code: error.validation ? 40_000 : code, msg: message, data: null });
    if (status === 500) failed?.();
  });
  const signedIn = (request, _reply, next) => {
    request.user = users.get(request.headers.authorization?.slice("Bearer ".length));
    next(request.user === undefined ? new Refusal(401, 40_100, "unknown token") : undefined);
  };
  const post = (path, schema, work) =>
    app.post(path, { schema: { body: schema }, onRequest: signedIn }, (request, reply) => {
      reply.code(202).send(done(work(request.user, request.body, Date.now())));
    });
  post("/api/v1/orders", orderBody, place);
  post("/api/v1/wallet/split", splitBody, split);
  if (cancelAll !== undefined) {
    app.delete("/api/v1/orders", { onRequest: signedIn }, (request, reply) => {
      reply.code(202).send(done(cancelAll(request.user)));
    });
  }
  app.get("/api/v1/markets/:slug", (request, reply) => {
    const { id, slug, outcomes } = markets.get(request.params.slug);
    reply.send(done({ id, slug, outcomes: outcomes.map((outcome) => ({ id: outcome.id, name: outcome.name })) }));
  });
  process.once("SIGTERM", () => app.close().then(() => closed?.()));
  await app.listen({ host: "127.0.0.1", port: 0 });
  console.log(`port ${app.server.address().port}`);
}
