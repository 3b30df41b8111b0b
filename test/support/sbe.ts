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

/** The frame of a JSON message. @throws Error for one that the binary protocol can't express */
export function frameOfRequest(message: Json): Buffer {
  const { op, id = null, data = {}, builder_code = null, timestamps = false, ...own } = message;
  const write = REQUESTS[String(op)];
  if (write === undefined) throw new Error(`no binary request for ${op}`);
  const found = write({ ...(data as Json), ...own }, builder_code as string | null, timestamps as boolean);
  return encode(found.map((each, at) => ({ ...each, header: { ...each.header, id: at === 0 ? optional(id) : null } })));
}

type Write = (data: Json, builderCode: string | null, timestamps: boolean) => PlainMessage[];

const REQUESTS: Readonly<Record<string, Write>> = {
  "order.place": (data, builderCode, timestamps) => [placement(data, builderCode, timestamps)],
  "order.cancel": (data) => [cancel(data)],
  "order.amend": (data) => [amendment(data)],
  ping: () => [plainMessage("Ping", null, {})],
};

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

/** The messages of a frame as JSON has them. @throws Error for bytes that are no frame */
export function messagesOfFrame(frame: Buffer): Json[] {
  const found: Json[] = [];
  for (const message of decodeFrame(SBE_SCHEMA, frame)) {
    if (message.template !== "OrderTimestamps") found.push(jsonOf(message));
    else (found.at(-1)!["data"] as Json)["timestamps"] = timestampsOf(message.fields);
  }
  return found;
}

function jsonOf(message: PlainMessage): Json {
  const { template, fields, header, texts } = message;
  const answer = (data: unknown): Json => ({ id: number(header.id), code: 0, msg: "ok", data, ...rateOf(message) });
  const event = (name: string, data: Json): Json => {
    return { event: name, sequence: number(header.id), ts: number(fields["ts"] ?? fields["updatedAt"]!), data };
  };
  switch (template) {
    case "OrderAccepted":
      return answer(orderOf(message));
    case "Rejected": {
      const trace = texts["traceId"] === null ? {} : { trace_id: texts["traceId"] };
      const retry = fields["retryAfter"] === null ? {} : { retry_after: number(fields["retryAfter"]!) };
      const text = { id: number(header.id), code: number(fields["code"]!), msg: texts["message"], data: null };
      return { ...text, ...trace, ...rateOf(message), ...retry };
    }
    case "Pong":
      return { id: number(header.id), code: 0, msg: "ok", data: { now: number(fields["now"]!) } };
    case "OrderUpdated":
      return event("order.updated", orderOf(message));
    case "BalanceUpdated":
      return event("balance.updated", snaked(fields, ["available", "held", "total"]));
    case "PositionUpdated":
      return event("position.updated", positionOf(fields));
    case "Heartbeat":
      return event("heartbeat", { subscriptions: [], orders: number(fields["orders"]!) });
    case "Shutdown":
      return { ...event("system.shutdown", {}), data: null };
    default:
      throw new Error(`the client doesn't know ${template}`);
  }
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
  const [limit, reset] = [number(fields["rateLimit"]) ?? 0, number(fields["rateReset"]) ?? 0];
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
