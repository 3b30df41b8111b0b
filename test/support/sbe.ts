/**
 * The binary protocol as a client of another make speaks it: JSON requests become binary frames, binary frames become the
 * messages that JSON has, by the schema alone, without a line of the server's codec. What JSON has and the binary protocol
 * leaves out (docs/sbe.md, "Differences from JSON") is computed or set to 0.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ROOT } from "../../bench/support/root.ts";
import { snakeCase } from "../sbe/layouts.ts";
import { decodeFrame, encodeMessage, type PlainMessage, type Value, type Values } from "../sbe/plain.ts";
import { readSchema, type Schema } from "../sbe/schema.ts";

export const SBE = "sbe";
const SBE_SCHEMA: Schema = readSchema(
  readFileSync(fileURLToPath(new URL("server/websocket/sbe/sbe.xml", ROOT)), "utf8"),
);

type Json = Record<string, unknown>;

/** A message with its id and what it has of the rest. */
export const plainMessage = (
  template: string,
  id: number | null,
  fields: Values,
  texts: PlainMessage["texts"] = {},
): PlainMessage => ({
  template,
  header: { index: null, rateRemaining: null, id: id === null ? null : String(id) },
  fields,
  groups: {},
  texts,
});

export const encode = (messages: readonly PlainMessage[]): Buffer =>
  Buffer.concat(messages.map((message) => encodeMessage(SBE_SCHEMA, message)));

export const decoded = (frame: Buffer): PlainMessage[] => decodeFrame(SBE_SCHEMA, frame);

/** The frame of a JSON message. @throws Error for one that the binary protocol can't express */
export function frameOfRequest(message: Json): Buffer {
  const { op, id = null, data = {}, builder_code = null, timestamps = false, ...own } = message;
  const write = REQUESTS[String(op)];
  if (write === undefined) throw new Error(`no binary request for ${op}`);
  const [first, ...rest] = write({ ...(data as Json), ...own }, builder_code as string | null, timestamps as boolean);
  return encode([{ ...first!, header: { ...first!.header, id: optional(id) } }, ...rest]);
}

type Write = (data: Json, builderCode: string | null, timestamps: boolean) => PlainMessage[];

const REQUESTS: Readonly<Record<string, Write>> = {
  "order.place": (data, builderCode, timestamps) => [placement(data, builderCode, timestamps)],
  "order.cancel": (data) => [cancel(data)],
  "order.amend": (data) => [amendment(data)],
  "order.cancel_all": (data) => [filter(data)],
  "order.cancel_after": ({ timeout_ms }) => [plainMessage("CancelAfter", null, { timeout: String(timeout_ms) })],
  "order.batch": (data, builderCode) => batch(data["operations"] as readonly Json[], builderCode),
  "quotes.replace": (data, builderCode) => [quotes(data, builderCode)],
  cancel_on_disconnect: ({ enabled }) => [
    plainMessage("CancelOnDisconnect", null, { enabled: enabled === true ? "on" : "off" }),
  ],
  auth: ({ token }) => [plainMessage("Authenticate", null, {}, { token: String(token) })],
  subscribe: (data) => [subscription("Subscribe", data)],
  unsubscribe: (data) => [subscription("Unsubscribe", data)],
  resume: ({ sequence }) => [plainMessage("Resume", null, { sequence: String(sequence) })],
  ping: () => [plainMessage("Ping", null, {})],
};

function subscription(template: string, data: Json): PlainMessage {
  const { channel, market_id, market_ids, outcome_id, implied = false } = data;
  const ids = (market_ids as number[] | undefined) ?? (market_id === undefined ? [] : [market_id]);
  const fields = { channel: implied === true ? "impliedBook" : (channel as string), outcomeId: optional(outcome_id) };
  const markets = ids.map((id) => ({ marketId: String(id) }));
  return { ...plainMessage(template, null, fields), groups: { markets } };
}

function batch(operations: readonly Json[], builderCode: string | null): PlainMessage[] {
  const messages = operations.map(({ op, ...data }) => {
    if (op === "place") return placement(data, builderCode, false);
    if (op === "cancel") return cancel(data);
    if (op === "amend") return amendment(data);
    throw new Error(`no binary operation for ${op}`);
  });
  return [plainMessage("Batch", null, { count: String(operations.length) }), ...messages];
}

function quotes(data: Json, builderCode: string | null): PlainMessage {
  const fields = {
    marketId: String(data["market_id"]),
    expiresAt: optional(data["expires_at"]),
    validUntil: optional(data["valid_until"]),
  };
  const entries = (data["quotes"] as readonly Json[]).map(({ outcome_id, side, price, quantity }) => ({
    ...{ outcomeId: String(outcome_id), price: String(price), quantity: String(quantity) },
    side: side === 1 ? "buy" : "sell",
  }));
  return { ...plainMessage("ReplaceQuotes", null, fields, { builderCode }), groups: { quotes: entries } };
}

function filter(data: Json): PlainMessage {
  const { number, text } = named(data["client_order_id"]);
  const fields = {
    clientOrderId: number,
    marketId: optional(data["market_id"]),
    outcomeId: optional(data["outcome_id"]),
    side: data["side"] === undefined ? null : data["side"] === 1 ? "buy" : "sell",
  };
  return plainMessage("CancelAll", null, fields, { clientOrderText: text });
}

const optional = (value: unknown): string | null => (value === undefined || value === null ? null : String(value));
const camel = (word: unknown): string | null =>
  word === undefined ? null : String(word).replaceAll(/_[a-z]/g, (text) => text[1]!.toUpperCase());

/** The digits of a number where they are one, else the text. */
function named(clientOrderId: unknown): { number: string | null; text: string | null } {
  const text = optional(clientOrderId);
  const isNumber = text !== null && /^(0|[1-9]\d{0,19})$/.test(text) && BigInt(text) < 2n ** 64n - 1n;
  return isNumber ? { number: text, text: null } : { number: null, text };
}

function placement(data: Json, builderCode: string | null, timestamps: boolean): PlainMessage {
  const { number, text } = named(data["client_order_id"]);
  const flags = [...(data["post_only"] === true ? ["postOnly"] : []), ...(timestamps ? ["timestamps"] : [])];
  const fields = {
    outcomeId: String(data["outcome_id"]),
    price: optional(data["price"]),
    quantity: String(data["quantity"]),
    marketId: String(data["market_id"]),
    expiresAt: optional(data["expires_at"]),
    validUntil: optional(data["valid_until"]),
    clientOrderId: number,
    side: data["side"] === 1 ? "buy" : "sell",
    orderType: camel(data["type"]),
    timeInForce: camel(data["time_in_force"]),
    selfTradePrevention: camel(data["self_trade_prevention"]),
    flags,
  };
  return plainMessage("PlaceOrder", null, fields, { clientOrderText: text, builderCode });
}

function cancel(data: Json): PlainMessage {
  const { number, text } = named(data["client_order_id"]);
  const fields = { orderId: optional(data["id"]), clientOrderId: number };
  return plainMessage("CancelOrder", null, fields, { clientOrderText: text });
}

function amendment(data: Json): PlainMessage {
  return plainMessage("AmendOrder", null, {
    orderId: String(data["id"]),
    validUntil: optional(data["valid_until"]),
    price: optional(data["price"]),
    quantity: optional(data["quantity"]),
  });
}

// ---------------------------------------------------------------- what the server sends

/**
 * Turns the frames of one socket into the messages that JSON has. The results of a batch or of quotes become one message,
 * at the end; each is a partial message besides.
 */
export class SbeTranslator {
  /** By the request's id. */
  private readonly results = new Map<number | null, Json[]>();

  /** @throws Error for bytes that are no frame */
  messagesOf(frame: Buffer): Json[] {
    const found: Json[] = [];
    for (const message of decoded(frame)) {
      if (message.template !== "OrderTimestamps") found.push(...this.translate(message));
      else (found.at(-1)!["data"] as Json)["timestamps"] = timestampsOf(message.fields);
    }
    return found;
  }

  private translate(message: PlainMessage): Json[] {
    const { template, fields, header } = message;
    const id = number(header.id);
    if (template === "Done") {
      const results = this.results.get(id) ?? [];
      this.results.delete(id);
      const rejected = results.filter(({ code }) => code !== 0).length;
      if (number(fields["count"]) !== results.length || number(fields["rejected"]) !== rejected) {
        throw new Error(`${JSON.stringify(fields)} ends ${results.length} results`);
      }
      return [{ id, code: 0, msg: "ok", data: { results }, ...rateOf(message) }];
    }
    const json = jsonOf(message);
    if (header.index === null || id === null) return [json];
    const { id: _, rate_limit, retry_after: __, ...result } = json;
    const index = Number(header.index);
    const results = this.results.get(id) ?? [];
    if (results[index] !== undefined || rate_limit !== null) throw new Error(`another result ${index} of ${id}`);
    results[index] = result;
    this.results.set(id, results);
    return [{ ...json, partial: true }];
  }
}

function jsonOf(message: PlainMessage): Json {
  const { template, fields, header, texts, groups } = message;
  const answer = (data: unknown): Json => ({ id: number(header.id), code: 0, msg: "ok", data, ...rateOf(message) });
  const unlimited = (data: unknown): Json => ({ id: number(header.id), code: 0, msg: "ok", data });
  const event = (name: string, data: Json): Json => {
    return { event: name, sequence: number(header.id), ts: number(fields["ts"] ?? fields["updatedAt"]!), data };
  };
  const flagged = (json: Json): Json => (fields["snapshot"] === "on" ? { ...json, snapshot: true } : json);
  switch (template) {
    case "OrderAccepted":
      return answer(orderOf(message));
    case "Rejected": {
      const trace = texts["traceId"] === null ? {} : { trace_id: texts["traceId"] };
      const retry = fields["retryAfter"] === null ? {} : { retry_after: number(fields["retryAfter"]!) };
      const text = { id: number(header.id), code: number(fields["code"]!), msg: texts["message"], data: null };
      return { ...text, ...trace, ...rateOf(message), ...retry };
    }
    case "OrdersCanceled":
      return answer({ order_ids: groups["orders"]!.map(({ orderId }) => number(orderId)) });
    case "CancelAfterSet":
      return answer({ timeout_ms: number(fields["timeout"]), fires_at: number(fields["firesAt"]) });
    case "CancelOnDisconnectSet":
      return unlimited({ enabled: fields["enabled"] === "on" });
    case "Authenticated":
      return unlimited({ user_id: number(fields["userId"]), expires_at: number(fields["expiresAt"]) });
    case "Pong":
      return unlimited({ now: number(fields["now"]!) });
    case "OrderUpdated":
      return event("order.updated", orderOf(message));
    case "BalanceUpdated":
      return event("balance.updated", snaked(fields, ["available", "held", "total"]));
    case "PositionUpdated":
      return event("position.updated", positionOf(fields));
    case "Heartbeat":
      return event("heartbeat", { subscriptions: subscriptionsOf(message), orders: number(fields["orders"]!) });
    case "Subscriptions":
      return unlimited({ subscriptions: subscriptionsOf(message) });
    case "Resumed":
      return answer({ after: number(fields["after"]), last: number(fields["last"]) });
    case "BookSnapshot": {
      const { sequence, ts, ...data } = event("book.snapshot", {});
      const head = { ...snaked(fields, ["marketId", "outcomeId"]), sequence, ts: number(fields["bookTs"]) };
      return { ...data, sequence, ts, snapshot: true, data: { ...head, ...sidesOf(message) } };
    }
    case "BookUpdated":
      return event("book.updated", { ...snaked(fields, ["marketId", "outcomeId"]), ...sidesOf(message) });
    case "TradeCreated":
      return event("trade.created", {
        id: number(fields["matchId"]),
        ...snaked(fields, ["marketId", "outcomeId"]),
        side: fields["side"] === "buy" ? 1 : 2,
        ...snaked(fields, ["price", "quantity"]),
        match_type: fields["matchType"],
        created_at: number(fields["ts"]),
      });
    case "TickerUpdated": {
      const prices = ["lastPrice", "bestBid", "bestAsk", "impliedBid", "impliedAsk"];
      return flagged(event("ticker.updated", snaked(fields, ["marketId", "outcomeId", ...prices, "volume"])));
    }
    case "MarketUpdated":
      return flagged(event("market.updated", JSON.parse(texts["market"]!) as Json));
    case "Shutdown":
      return { ...event("system.shutdown", {}), data: { reason: fields["reason"], url: texts["url"] } };
    default:
      throw new Error(`the client doesn't know ${template}`);
  }
}

function subscriptionsOf({ groups }: PlainMessage): Json[] {
  return groups["subscriptions"]!.map((entry) => ({
    channel: entry["channel"] === "impliedBook" ? "book" : entry["channel"],
    implied: entry["channel"] === "impliedBook",
    ...snaked(entry, ["marketId", "outcomeId", "sequence"]),
  }));
}

function sidesOf({ fields, groups }: PlainMessage): Json {
  const levels = (name: string) => groups[name]!.map(({ price, quantity }) => [number(price), number(quantity)]);
  const own = { bids: levels("bids"), asks: levels("asks") };
  if (fields["implied"] === "on")
    return { ...own, implied: { bids: levels("impliedBids"), asks: levels("impliedAsks") } };
  if (levels("impliedBids").length + levels("impliedAsks").length > 0) throw new Error("a book has implied levels");
  return own;
}

const number = (value: Value | undefined): number | null =>
  value === null || value === undefined ? null : Number(value);
const text = (value: Value | undefined): string | null =>
  value === null || value === undefined ? null : snakeCase(String(value));

const snaked = (fields: Values, names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [snakeCase(name), number(fields[name])]));

/** Of the limits a response states only what remains; a rejection by the limits states all. */
function rateOf({ header, fields }: PlainMessage): Json {
  if (header.rateRemaining === null) return { rate_limit: null };
  const [limit, reset] = [number(fields["rateLimit"]) ?? 1, number(fields["rateReset"]) ?? 0];
  return { rate_limit: { limit, remaining: Number(header.rateRemaining), reset } };
}

const TERMS = /^(limit|market)(\w+)$/;

function orderOf({ fields, texts, groups }: PlainMessage): Json {
  const [, type, timeInForce] = TERMS.exec(fields["orderTerms"] as string)!;
  const { quantity, remaining } = snaked(fields, ["quantity", "remaining"]) as { quantity: number; remaining: number };
  return {
    id: number(fields["orderId"]),
    client_order_id: (fields["clientOrderId"] as string | null) ?? texts["clientOrderText"],
    ...snaked(fields, ["marketId", "outcomeId"]),
    side: fields["side"] === "buy" ? 1 : 2,
    price: number(fields["price"]),
    quantity,
    remaining,
    filled: quantity - remaining,
    type,
    time_in_force: timeInForce!.toLowerCase(),
    post_only: (fields["flags"] as readonly string[]).includes("postOnly"),
    self_trade_prevention: text(fields["selfTradePrevention"]),
    expires_at: number(fields["expiresAt"]),
    status: text(fields["status"]),
    reason: fields["reason"] === "none" ? null : text(fields["reason"])!.replace("by_operator", "operator"),
    builder_code: texts["builderCode"],
    ...snaked(fields, ["createdAt", "updatedAt"]),
    trades: (groups["fills"] ?? []).map((fill) => ({
      id: number(fill["fillId"]),
      ...snaked(fill, ["matchId", "price", "quantity"]),
      role: fill["role"],
      match_type: fill["matchType"],
      ...snaked(fill, ["fee", "rebate", "createdAt"]),
    })),
  };
}

function positionOf(fields: Values): Json {
  const view = snaked(fields, ["marketId", "outcomeId", "quantity", "held", "cost", "realizedPnl", "marketValue"]);
  const { quantity, cost, market_value } = view as { quantity: number; cost: number; market_value: number | null };
  const average = quantity === 0 ? null : cost / quantity / 100;
  return { ...view, average_price: average, unrealized_pnl: market_value === null ? null : market_value - cost };
}

const timestampsOf = (fields: Values): Json => snaked(fields, ["received", "matched", "durable", "sent"]);
