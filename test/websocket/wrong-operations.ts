/**
 * Invalid operations with their codes, for REST and the WebSocket alike, and the comparison of the two: both must respond
 * with the same code, message and data.
 */
import { expect } from "vitest";
import type { OrderJson } from "../support/client.ts";
import type { Acknowledgement } from "../support/socket.ts";
import { BUY, SELL } from "../support/terms.ts";
import type { Result } from "./order-frames.ts";

export const UNKNOWN_ID = 999_999_999;

/** An invalid body, and the code that it gets over REST and over the socket. */
export type Mistake = readonly [code: number, body: Record<string, unknown>];

/** Sends each body both ways; the bodies must name the code and get the same response. */
export async function expectSame(
  mistakes: readonly Mistake[],
  overRest: (body: Record<string, unknown>) => Promise<Result<unknown>>,
  overSocket: (body: Record<string, unknown>) => Promise<Acknowledgement>,
): Promise<void> {
  const different = [];
  for (const [code, body] of mistakes) {
    const rest = await overRest(body);
    const { msg, ...ours } = await overSocket(body);
    const same = [ours.code, msg.replace(/^data\./, ""), JSON.stringify(ours.data)];
    const expected = [code, rest.msg, JSON.stringify(rest.data)];
    if (rest.code !== code || JSON.stringify(same) !== JSON.stringify(expected)) {
      different.push({
        body: JSON.stringify(body).slice(0, 200),
        wanted: code,
        rest: [rest.code, rest.msg],
        ours,
        msg,
      });
    }
  }
  expect(different).toEqual([]);
}

/** @param good a valid placement, whose user has an order with the client order id `taken` */
export function wrongPlacements(good: object, foreignOutcome: number): Mistake[] {
  const fields: [string, unknown[]][] = [
    ["market_id", [undefined, null, "1", 0, -1, 1.5, 2 ** 53, true, [], {}]],
    ["outcome_id", [undefined, null, "1", 0, 1.5, foreignOutcome]],
    ["side", [undefined, 0, 3, "buy", 1.5, null]],
    ["price", [undefined, null, 0, 10_000, -1, 0.5, "5000", [], {}]],
    ["quantity", [undefined, 0, -1, 1.5, 1_000_000_001, "1", null]],
    ["type", ["Limit", "stop", 1, null]],
    ["time_in_force", ["day", "GTC", 0, null, "gtd"]],
    ["post_only", ["true", 1, null]],
    ["client_order_id", ["", " ", "x".repeat(65), "ä", "a/b", 7, "\u0000"]],
    ["self_trade_prevention", ["none", 0, null]],
    ["expires_at", [1, -1, 1.5, "later", Date.now() + 60_000]],
    ["valid_until", [-1, 1.5, "later", 2 ** 53]],
    ["nothing", [1]],
    ["id", [1]],
    ["__proto__", [{}]],
  ];
  const mistakes: Mistake[] = fields.flatMap(([field, values]) =>
    values.map((value): Mistake => {
      const text = JSON.stringify({ ...good, [`${field}`]: value });
      return [40000, field === "__proto__" ? JSON.parse(`{"__proto__":{},${text.slice(1)}`) : JSON.parse(text)];
    }),
  );
  mistakes.push(
    [40000, {}],
    [40000, { ...good, type: "market", time_in_force: "gtc" }],
    [40000, { ...good, type: "market", post_only: true }],
    [40000, { ...good, time_in_force: "ioc", post_only: true }],
    [40000, { ...good, time_in_force: "gtd", expires_at: 1 }],
    [4040, { ...good, market_id: UNKNOWN_ID }],
    [42201, { ...good, side: BUY, price: 9_000, quantity: 11_000 }],
    [42202, { ...good, side: SELL }],
    [42901, { ...good, quantity: 1_000_000_000 }],
    [40900, { ...good, client_order_id: "taken" }],
  );
  return mistakes;
}

/** Of an amend; without an id, the order is the user's own resting one. */
export function wrongAmends({ finished, theirs, late }: Record<"finished" | "theirs" | "late", OrderJson>): Mistake[] {
  return [
    ...[{}, { price: null }, { price: null, quantity: null }, { valid_until: 1 }].map((body): Mistake => [40000, body]),
    ...[0, 10_000, 1.5, "100", -1, [], true].map((price): Mistake => [40000, { price }]),
    ...[0, 1_000_000_001, 1.5, "1"].map((quantity): Mistake => [40000, { quantity }]),
    ...[-1, 1.5, "x"].map((valid_until): Mistake => [40000, { price: 200, valid_until }]),
    ...["side", "nothing", "client_order_id", "op"].map((field): Mistake => [40000, { price: 200, [field]: 1 }]),
    [40900, { price: 200, valid_until: 1 }],
    [40900, { id: finished.id, price: 200 }],
    [4040, { id: theirs.id, price: 200 }],
    [4040, { id: late.id, price: 200 }],
    [4040, { id: UNKNOWN_ID, price: 200 }],
    [42901, { price: 9_999, quantity: 1_000_000_000 }],
  ];
}

/** @param place a valid placement within a batch */
export function wrongBatches(place: object): Mistake[] {
  const operations = [
    { op: "place" },
    { ...place, price: 0 },
    { ...place, nothing: 1 },
    { ...place, market_id: UNKNOWN_ID },
    { ...place, side: SELL },
    { op: "amend", id: UNKNOWN_ID, price: 1 },
    { op: "amend", price: 1 },
    { op: "amend", id: "1", price: 1 },
    { op: "cancel" },
    { op: "cancel", id: UNKNOWN_ID },
    { op: "" },
    { op: "Place" },
    { op: "constructor" },
    { op: 1 },
    {},
  ];
  return [
    [40000, {}],
    [40000, { operations: [] }],
    [40000, { operations: Array(51).fill(place) }],
    [40000, { operations: {} }],
    [40000, { operations: "x" }],
    [40000, { operations: [1] }],
    [40000, { operations: [null] }],
    [40000, { operations: [[]] }],
    [40000, { operations: [place, 1] }],
    [40000, { operations: [place], nothing: 1 }],
    [0, { operations }],
  ];
}

/** @param good a valid quote */
export function wrongQuotes(good: object, foreignOutcome: number): Mistake[] {
  return [
    [40000, {}],
    [40000, { quotes: 1 }],
    [40000, { quotes: null }],
    [40000, { quotes: [1] }],
    [40000, { quotes: [{}] }],
    [40000, { quotes: Array(101).fill(good) }],
    [40000, { quotes: [good, { ...good, price: 0 }] }],
    [40000, { quotes: [good, { ...good, quantity: 0 }] }],
    [40000, { quotes: [good, { ...good, side: 3 }] }],
    [40000, { quotes: [good, { ...good, post_only: true }] }],
    [40000, { quotes: [good, { ...good, outcome_id: foreignOutcome }] }],
    [40000, { quotes: [good], nothing: 1 }],
    [4040, { market_id: UNKNOWN_ID, quotes: [good] }],
    [42202, { quotes: [{ ...good, side: SELL }] }],
    [42901, { quotes: [{ ...good, quantity: 1_000_000_000 }] }],
  ];
}
