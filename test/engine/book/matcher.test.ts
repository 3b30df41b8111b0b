/**
 * Cases that random commands don't reach: fields that a command passes through to its events, orders restored with all
 * their terms, memory that closed markets free, and callers' mistakes that end the process.
 */
import { expect, test } from "vitest";
import * as C from "../../../engine/constants.ts";
import { MAX_OUTCOME_ID } from "../../../engine/limits.ts";
import * as R from "../../../engine/ring/records.ts";
import { CommandRecord, Engine, type EngineEvent } from "./harness.ts";
import { LockStep } from "./lock-step.ts";
import type { Placement } from "./reference-book.ts";

const ORDER: Placement = {
  id: 2 ** 50 + 1,
  user: 7,
  outcome: 1,
  side: 1,
  price: 5_000,
  quantity: 10,
  type: "limit",
  timeInForce: "gtd",
  prevention: "decrement",
  postOnly: true,
  pat: true,
  at: 1_700_000_000_123,
  expiresAt: 1_800_000_000_456,
  validUntil: 0,
};

/** An engine with one open market of two outcomes, and its events since the last read. */
function engineWithMarket(): { engine: Engine; run: (...records: CommandRecord[]) => EngineEvent[] } {
  const heard: EngineEvent[] = [];
  const engine = new Engine({ capacity: 64 }, (events) => void heard.push(...events));
  const run = (...records: CommandRecord[]) => {
    for (const record of records) engine.execute(record);
    engine.endBatch();
    return heard.splice(0);
  };
  run(CommandRecord.market(R.CommandKind.openMarket, 1, 0, 1, 2));
  return { engine, run };
}

const withFlags = (record: CommandRecord, flags: number): CommandRecord => {
  record.words[0]! |= flags;
  return record;
};

const withWord7 = (record: CommandRecord, word7: number): CommandRecord => {
  record.words[R.W_CORRELATION] = word7;
  return record;
};

const restore = (slot: number, order: Placement, total: number): CommandRecord =>
  withWord7(CommandRecord.place(R.CommandKind.restoreOrder, slot, 1, order), total);

const termsOf = ({ packed, word7 }: { packed: number; word7: number }): number => R.placedTerms(packed, word7);

test("a placement's event carries all its terms", () => {
  const { run } = engineWithMarket();
  const record = CommandRecord.place(R.CommandKind.placeOrder, 3, 1, ORDER);
  const [placed] = run(withFlags(record, R.FLAG_TEXT | R.FLAG_QUOTE | R.FLAG_CANCEL_ON_DISCONNECT));
  expect(placed).toMatchObject({
    ...{ kind: "orderPlaced", status: "open", slot: 3, user: 7, outcome: 1, side: 1, price: 5_000, quantity: 10 },
    ...{ remaining: 10, orderId: ORDER.id, at: ORDER.at, detail: ORDER.expiresAt },
  });
  expect(placed!.packed & R.ORDER_FLAGS).toBe(R.ORDER_FLAGS);
  expect(placed!.word7).toBe(C.OrderType.limit | (C.TimeInForce.gtd << 4) | (C.SelfTradePrevention.decrement << 8));
  expect(R.typeOf(termsOf(placed!))).toBe(C.OrderType.limit);
  expect(R.timeInForceOf(termsOf(placed!))).toBe(C.TimeInForce.gtd);
  expect(R.selfTradePreventionOf(termsOf(placed!))).toBe(C.SelfTradePrevention.decrement);
});

test("correlation ids come back in the events that they caused", () => {
  const { run } = engineWithMarket();
  const place = (slot: number, id: number) => CommandRecord.place(R.CommandKind.placeOrder, slot, 1, { ...ORDER, id });
  run(place(1, 11), place(2, 12), place(3, 13));
  const amend = withWord7(CommandRecord.amend(1, 11, 4_000, 20, 5), 101);
  amend.doubles[R.D_PRIORITY] = 77;
  expect(run(amend)[0]).toMatchObject({ kind: "orderAmended", word7: 101, detail: 77, orderId: 11, at: 5 });
  expect(run(CommandRecord.cancel(1, 11, "user", 6, 102))[0]).toMatchObject({ kind: "orderCanceled", word7: 102 });
  expect(run(CommandRecord.cancel(1, 11, "user", 7, 103))[0]).toMatchObject({ kind: "cancelRejected", word7: 103 });
  const late = withWord7(CommandRecord.amend(1, 11, 4_000, 20, 5), 104);
  expect(run(late)[0]).toMatchObject({ kind: "amendRejected", word7: 104, orderId: 11 });
  const halt = withWord7(CommandRecord.market(R.CommandKind.haltMarket, 1, 9), 106);
  expect(run(halt)).toMatchObject([{ kind: "marketChanged", slot: 1, word7: 106, at: 9 }]);
});

test("a replacement's event has its remaining quantity, its terms and its expiry, if any", () => {
  const { engine, run } = engineWithMarket();
  const quote = { ...ORDER, timeInForce: "gtc", expiresAt: 0 } as const;
  const taker = { ...quote, id: 52, user: 8, side: 2, quantity: 4, postOnly: false } as const;
  const place = (slot: number, order: Placement) => CommandRecord.place(R.CommandKind.placeOrder, slot, 1, order);
  run(place(1, { ...quote, id: 51 }), place(2, taker));
  const replace = CommandRecord.replace(3, 1, { ...quote, id: 53, price: 4_000, quantity: 30 }, 1, 10);
  const flags = R.FLAG_TEXT | R.FLAG_QUOTE | R.FLAG_CANCEL_ON_DISCONNECT;
  const chain = CommandRecord.chain([
    CommandRecord.cancel(1, 51, "user", 6, 102),
    withFlags(replace, flags),
    place(4, taker),
  ]);
  const [canceled, placed] = run(...chain);
  expect(canceled).toMatchObject({ kind: "orderCanceled", orderId: 51, remaining: 6, word7: 102 });
  expect(placed).toMatchObject({
    ...{ kind: "orderPlaced", status: "open", slot: 3, user: 7, orderId: 53, price: 4_000, quantity: 26 },
    ...{ remaining: 26, detail: 0, at: ORDER.at },
  });
  expect((placed!.packed >>> 24) << 24).toBe(R.ORDER_FLAGS);
  expect(R.timeInForceOf(termsOf(placed!))).toBe(C.TimeInForce.gtc);
  expect(engine.matcher.ordersAt(1, 4_000)).toEqual([[3, 26]]);
});

test("a replacement may expire, as all quotes of a request may", () => {
  const { engine, run } = engineWithMarket();
  run(CommandRecord.place(R.CommandKind.placeOrder, 1, 1, { ...ORDER, id: 51 }));
  const replace = CommandRecord.replace(2, 1, { ...ORDER, id: 52, price: 4_000 }, 1, 10);
  const [canceled, placed] = run(...CommandRecord.chain([CommandRecord.cancel(1, 51, "user", 6), replace]));
  expect(canceled).toMatchObject({ kind: "orderCanceled", orderId: 51, remaining: 10 });
  expect(placed).toMatchObject({
    ...{ kind: "orderPlaced", status: "open", slot: 2, user: 7, orderId: 52, price: 4_000, quantity: 10 },
    ...{ remaining: 10, detail: ORDER.expiresAt, at: ORDER.at },
  });
  expect(R.timeInForceOf(termsOf(placed!))).toBe(C.TimeInForce.gtd);
  expect(engine.matcher.ordersAt(1, 4_000)).toEqual([[2, 10]]);
});

test("sets pass through to the ledger, and a stop to all later stages", () => {
  const { run } = engineWithMarket();
  for (const [kind, name] of [
    [R.CommandKind.splitSets, "setsSplit"],
    [R.CommandKind.mergeSets, "setsMerged"],
  ] as const) {
    const record = withWord7(CommandRecord.market(kind, 1, 4, 0, 250), 9);
    record.words[R.W_USER] = 5;
    const expected = { kind: name, slot: 1, user: 5, quantity: 250, remaining: 1, word7: 9, at: 4 };
    expect(run(record)).toMatchObject([expected]);
  }
  expect(run(CommandRecord.market(R.CommandKind.stop, 0, 0))).toMatchObject([{ kind: "stopped" }]);
});

test("a restored order keeps its terms: filled quantity, post-only, self-trade prevention and PAT", () => {
  const { engine, run } = engineWithMarket();
  const other = { ...ORDER, user: 8, postOnly: false, pat: false, timeInForce: "gtc" } as const;
  run(
    restore(1, { ...ORDER, id: 21, quantity: 4 }, 10),
    restore(2, { ...ORDER, id: 22, postOnly: false, price: 4_900, quantity: 5 }, 5),
    restore(3, { ...other, id: 23, side: 2, price: 6_000, quantity: 4 }, 4),
    restore(4, { ...ORDER, id: 24, side: 2, price: 6_100, quantity: 4, postOnly: false }, 4),
  );
  expect(engine.matcher.ordersAt(1, 5_000)).toEqual([[1, 4]]);
  const cross = run(CommandRecord.amend(1, 21, 6_000, 10, 5));
  expect(cross).toMatchObject([{ kind: "amendRejected", reason: "post_only_would_cross", orderId: 21 }]);
  expect(engine.matcher.ordersAt(1, 5_000)).toEqual([[1, 4]]);
  const fills = run(CommandRecord.amend(2, 22, 6_100, 6, 6)).filter((event) => event.kind !== "levelChanged");
  expect(fills.map((event) => [event.kind, event.orderId, event.remaining, event.packed & R.FLAG_PAT])).toEqual([
    ["orderAmended", 22, 6, 0],
    ["orderFilled", 23, 0, 0],
    ["orderFilled", 22, 2, R.FLAG_PAT],
    ["orderReduced", 24, 2, 0],
    ["orderCanceled", 22, 2, 0],
  ]);
});

test("a cancel that names a slot's former order is refused", () => {
  const { engine, run } = engineWithMarket();
  const place = (id: number) => CommandRecord.place(R.CommandKind.placeOrder, 1, 1, { ...ORDER, id });
  run(place(31), CommandRecord.cancel(1, 31, "user", 1), place(32));
  expect(run(CommandRecord.cancel(1, 31, "user", 2))).toMatchObject([{ kind: "cancelRejected", orderId: 31 }]);
  expect(run(CommandRecord.cancel(0, 32, "user", 2))).toMatchObject([{ kind: "cancelRejected" }]);
  expect(run(CommandRecord.cancel(65, 32, "user", 2))).toMatchObject([{ kind: "cancelRejected" }]);
  expect(engine.matcher.ordersAt(1, 5_000)).toEqual([[1, 10]]);
});

test("closed markets free their books, even within one batch", () => {
  const steps = new LockStep({ capacity: 64, activeBooks: 6 });
  for (let round = 0; round < 50; round++) {
    steps.batchOfOne = false;
    const market = steps.openMarket(3);
    for (const outcome of market.outcomes) {
      steps.place(market, { user: 1, outcome, side: 1, price: 100 + round, quantity: 5 });
      steps.place(market, { user: 2, outcome, side: 2, price: 9_000 - round, quantity: 5 });
    }
    // The levels were published, so the close has something to remove.
    steps.endBatch();
    if (round % 2 === 0) steps.close(market);
    const next = steps.openMarket(2);
    steps.place(next, { user: 1, outcome: next.first, side: 1, price: 7_000, quantity: 5 });
    steps.endBatch();
    steps.clear();
  }
});

test("the last outcome id and the largest market", () => {
  const { run } = engineWithMarket();
  const first = MAX_OUTCOME_ID - 31;
  const outcomes = Array.from({ length: 32 }, (_, i) => first + i);
  run(CommandRecord.market(R.CommandKind.openMarket, MAX_OUTCOME_ID, 0, first, 32));
  const events = run(
    ...outcomes.map((outcome, i) => {
      const order = { ...ORDER, postOnly: false, id: 100 + i, user: 1 + i, outcome, price: 313 };
      return CommandRecord.place(R.CommandKind.placeOrder, 1 + i, MAX_OUTCOME_ID, order);
    }),
  );
  const fills = events.filter((event) => event.kind === "orderFilled");
  expect(fills).toHaveLength(32);
  expect(fills.map((event) => event.word7)).toEqual(outcomes.map((_, i) => i));
  expect(fills.at(-1)).toMatchObject({ role: "taker", matchType: "mint", price: 10_000 - 31 * 313, remaining: 0 });
});

test("a caller's mistakes end the process instead of corrupting a book", () => {
  const { run } = engineWithMarket();
  const place = (slot: number, id: number) => CommandRecord.place(R.CommandKind.placeOrder, slot, 1, { ...ORDER, id });
  run(place(1, 41));
  expect(() => run(place(1, 42))).toThrow("free slot");
  expect(() => run(place(0, 42))).toThrow("free slot");
  expect(() => run(place(65, 42))).toThrow("free slot");
  expect(() => run(restore(1, ORDER, 10))).toThrow("free slot");
  const replace = (replaced: number, order: Partial<Placement> = {}) =>
    CommandRecord.replace(2, 1, { ...ORDER, id: 42, timeInForce: "gtc", ...order }, replaced, 10);
  expect(() => run(replace(1))).toThrow("out of the book");
  expect(() => run(replace(0))).toThrow("out of the book");
  expect(() => run(replace(65))).toThrow("out of the book");
  run(CommandRecord.cancel(1, 41, "user", 1));
  expect(() => run(replace(2))).toThrow("slot unused");
  expect(() => run(replace(1, { user: 8 }))).toThrow("same user");
  for (const terms of [{ postOnly: false }, { type: "market" }] as const)
    expect(() => run(replace(1, terms))).toThrow("a replacing order is post-only and limit");
  for (const timeInForce of ["ioc", "fok"] as const)
    expect(() => run(replace(1, { timeInForce }))).toThrow("a replacing order rests");
  run(place(1, 41));
  expect(() => run(CommandRecord.market(R.CommandKind.openMarket, 1, 0, 1, 2))).toThrow("opens once");
  expect(() => run(CommandRecord.market(R.CommandKind.openMarket, 2, 0, 3, 33))).toThrow("opens once");
  expect(() => run(CommandRecord.market(99, 1, 0))).toThrow("no kind of command 99");
  const crowded = new Engine({ capacity: 4, activeBooks: 1 });
  crowded.execute(CommandRecord.market(R.CommandKind.openMarket, 1, 0, 1, 2));
  crowded.execute(place(1, 1));
  const second = CommandRecord.place(R.CommandKind.placeOrder, 2, 1, { ...ORDER, outcome: 2, price: 1 });
  expect(() => crowded.execute(second)).toThrow("active books");
});
