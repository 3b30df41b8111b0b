/** Order updates are read from the log as they were sent, whatever page, batch and block they are in. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as C from "../../engine/constants.ts";
import type { Write } from "../../engine/log/writes.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import * as R from "../../engine/ring/records.ts";
import { reportJson } from "../../server/orders/order-json.ts";
import { prepareFills } from "../../server/queries/fill-reader.ts";
import { MAX_PAGE_FILLS } from "../../server/queries/limits.ts";
import { prepareUpdates } from "../../server/queries/order-update-reader.ts";
import type { UpdatesPage } from "../../server/queries/types.ts";
import { commandsOf, modelOf, priceNear, runAll } from "../engine/book/random-commands.ts";
import { type Fields, MemoryLog, record } from "../support/log-bodies.ts";
import { EFFORT } from "../support/projects.ts";

const { EventKind } = R;
const { OrderStatus, Reason, Side } = C;

/** What a client sees of an update, as far as it changes. */
interface Shown {
  readonly sequence: number;
  readonly at: number;
  readonly id: number;
  readonly price: number;
  readonly quantity: number;
  readonly remaining: number;
  readonly status: string;
  readonly reason: string | null;
  readonly expires_at: number | null;
  readonly trades: readonly number[];
}

function shownOf({ items }: UpdatesPage<string>): Shown[] {
  return items.map(({ sequence, at, order }) => {
    const { id, price, quantity, remaining, status, reason, expires_at, updated_at, trades } = JSON.parse(order);
    expect(updated_at).toBe(at);
    return { sequence, at, id, price, quantity, remaining, status, reason, expires_at, trades: trades.map(idOf) };
  });
}

const idOf = ({ id }: { id: number }): number => id;

/** The updates of each user by the contract, with arrays and maps. */
function expectedUpdates(records: readonly Int32Array[]): Map<number, Shown[]> {
  const orders = new Map<number, { price: number; quantity: number; expires: number; trades: number[] }>();
  const updates = new Map<number, Shown[]>();
  for (const words of records) {
    const doubles = new Float64Array(words.buffer);
    const packed = words[0]!;
    const kind = R.kindOf(packed);
    const id = doubles[R.D_ORDER_ID]!;
    const detail = doubles[R.D_DETAIL]!;
    const [price, quantity] = [words[R.W_PRICE]!, words[R.W_QUANTITY]!];
    let isUpdate = true;
    if (kind === EventKind.orderPlaced) {
      orders.set(id, { price, quantity, expires: detail, trades: [] });
      isUpdate = R.statusOf(packed) !== OrderStatus.queued;
    }
    const order = orders.get(id);
    if (order === undefined) continue;
    if (kind === EventKind.orderFilled) {
      order.trades.push(detail);
      isUpdate = R.roleOf(packed) === C.Role.maker || (packed & R.FLAG_UPDATE_END) !== 0;
    } else if (kind === EventKind.orderReduced) {
      order.quantity = quantity;
      isUpdate = R.roleOf(packed) === C.Role.maker;
    } else if (kind === EventKind.orderAmended) {
      Object.assign(order, { price, quantity });
      if ((packed & R.FLAG_EXTENDS) !== 0) order.expires = detail;
    } else if (kind !== EventKind.orderPlaced && kind !== EventKind.orderCanceled) continue;
    if (!isUpdate) continue;
    const user = words[R.W_USER]!;
    const own = updates.get(user) ?? [];
    updates.set(user, own);
    own.push({
      sequence: own.length + 1,
      at: doubles[R.D_AT]!,
      id,
      price: order.price,
      quantity: order.quantity,
      remaining: words[R.W_REMAINING]!,
      status: C.ORDER_STATUSES[R.statusOf(packed)]!,
      reason: kind === EventKind.orderFilled ? null : C.REASONS[R.reasonOf(packed)]!,
      expires_at: order.expires || null,
      trades: order.trades.splice(0),
    });
  }
  return updates;
}

const readerOf = (log: MemoryLog) => prepareUpdates(log.db, log, prepareFills(log.db), reportJson);

/** All of a user's updates after a number, page by page. */
function readAll(log: MemoryLog, userId: number, after: number | null, limit: number): Shown[] {
  const read = readerOf(log);
  const found: Shown[] = [];
  for (let from = after; ; ) {
    const page = read({ userId, after: from, limit });
    expect(page.oldest).toBeNull();
    expect(page.items.length).toBeLessThanOrEqual(limit);
    found.push(...shownOf(page));
    if (!page.hasMore) return found;
    expect(page.items.length).toBeGreaterThan(0);
    from = page.items.at(-1)!.sequence;
  }
}

function checkAll(log: MemoryLog, users: readonly number[]): void {
  const expected = expectedUpdates(log.records);
  for (const user of users) expect(readAll(log, user, null, 100)).toEqual(expected.get(user) ?? []);
  for (const user of users)
    expect(log.db.prepare("SELECT count(*) FROM update_index WHERE user_id = ?").pluck().get(user)).toBeLessThanOrEqual(
      log.batches.length,
    );
  // The random orders are placed without a gateway, which would hold what covers them.
  expect(verifyDatabase(log.db).filter(({ ok, name }) => !ok && !/^live (buys|sells)/.test(name))).toEqual([]);
}

// ---------------------------------------------------------------- by hand

const market = { outcome: 1, price: 5_000 };
const placed = (status: number, fields: Fields, flags = 0): Int32Array =>
  record(R.packEvent(EventKind.orderPlaced, fields.user === 1 ? Side.sell : Side.buy, status, 0, flags), {
    ...market,
    remaining: fields.quantity ?? 0,
    ...fields,
  });
const filled = (role: number, status: number, fields: Fields, flags = 0): Int32Array =>
  record(R.packFill(fields.user === 1 ? Side.sell : Side.buy, status, 0, role, flags), {
    ...market,
    reference: role === C.Role.taker ? 1 : 0,
    ...fields,
  });
/** One share of order 1 (user 1, resting) is taken by the order of user 2. */
const match = (left: [maker: number, taker: number], taker: Fields, at: number, flags = 0): Int32Array[] => [
  filled(C.Role.maker, left[0] === 0 ? OrderStatus.filled : OrderStatus.partiallyFilled, {
    ...{ slot: 1, user: 1, id: 1, quantity: 1, remaining: left[0], at },
  }),
  filled(
    C.Role.taker,
    left[1] === 0 ? OrderStatus.filled : OrderStatus.partiallyFilled,
    { ...taker, quantity: 1, remaining: left[1], at },
    R.FLAG_MATCH_END | flags,
  ),
];
const canceled = (reason: number, fields: Fields): Int32Array =>
  record(R.packEvent(EventKind.orderCanceled, Side.buy, OrderStatus.canceled, reason, 0), { ...market, ...fields });

test("an interrupted order's cancel reports the fills of earlier batches, blocks and starts, each once", () => {
  const log = new MemoryLog(2, [2]);
  const taker = { slot: 2, user: 2, id: 2 };
  log.append([placed(OrderStatus.open, { slot: 1, user: 1, id: 1, quantity: 5, at: 10 })]);
  // The same user's other order: its updates are in each of the blocks.
  log.append([placed(OrderStatus.open, { slot: 3, user: 2, id: 3, quantity: 9, price: 10, at: 11 })]);
  log.append([
    placed(OrderStatus.queued, { ...taker, quantity: 5, price: 5_000, at: 12 }),
    ...match([4, 4], taker, 12, R.FLAG_UPDATE_END),
  ]);
  // The amended order matches again, until a crash interrupts it.
  log.append([
    record(R.packEvent(EventKind.orderAmended, Side.buy, OrderStatus.partiallyFilled, 0, R.FLAG_LOST_PRIORITY), {
      ...{ ...taker, outcome: 1, price: 5_001, quantity: 5, remaining: 4, at: 12, detail: 4 },
    }),
  ]);
  log.append(match([3, 3], taker, 12));
  log.endBlock();
  log.append([
    record(R.packEvent(EventKind.orderReduced, Side.buy, OrderStatus.open, 0, 0), {
      ...{ slot: 3, user: 2, id: 3, outcome: 1, price: 10, quantity: 8, remaining: 8, at: 13 },
    }),
  ]);
  log.append(match([2, 2], taker, 14));
  log.endBlock();
  log.restart();
  log.append([canceled(Reason.operator, { ...taker, quantity: 5, remaining: 2, at: 15 })]);
  log.append([canceled(Reason.user, { slot: 3, user: 2, id: 3, quantity: 8, remaining: 8, price: 10, at: 16 })]);
  checkAll(log, [1, 2]);
  const interrupted = readAll(log, 2, null, 10)[4];
  expect(interrupted).toMatchObject({ id: 2, status: "canceled", reason: "operator", remaining: 2 });
  expect(interrupted!.trades).toHaveLength(2);
  for (const after of [0, 1, 2, 3, 4, 5])
    expect(readAll(log, 2, after, 1)).toEqual(readAll(log, 2, null, 10).slice(after));
  expect(log.db.prepare("SELECT count(*) FROM unfinished_orders").pluck().get()).toBe(0);
});

test("updates show the terms of their time: amended prices and totals, expiries set and removed, decrements", () => {
  const log = new MemoryLog(2, [2]);
  const order = { slot: 1, user: 1, id: 1, outcome: 1 };
  const amended = (flags: number, fields: Fields): Int32Array =>
    record(R.packEvent(EventKind.orderAmended, Side.sell, OrderStatus.open, 0, flags), { ...order, ...fields });
  const reduced = (role: number, fields: Fields): Int32Array =>
    record(R.packEvent(EventKind.orderReduced, Side.sell, OrderStatus.open, 0, 0) | (role << 22), {
      ...order,
      ...fields,
    });
  log.append([
    placed(OrderStatus.open, { ...order, quantity: 9, at: 10, detail: 500 }, R.FLAG_QUOTE),
    amended(R.FLAG_LOST_PRIORITY, { price: 6_000, quantity: 8, remaining: 8, at: 11, detail: 2 }),
    amended(R.FLAG_EXTENDS, { price: 6_000, quantity: 8, remaining: 8, at: 12, detail: 900 }),
  ]);
  log.append([
    amended(R.FLAG_EXTENDS, { price: 6_000, quantity: 8, remaining: 8, at: 13, detail: 0 }),
    reduced(C.Role.maker, { price: 6_000, quantity: 7, remaining: 7, at: 14 }),
    // An amended order as the taker: no update of its own reports the decrement, the amend that follows does.
    reduced(C.Role.taker, { price: 6_000, quantity: 6, remaining: 6, at: 15 }),
    amended(0, { price: 6_000, quantity: 6, remaining: 6, at: 15 }),
    amended(R.FLAG_EXTENDS, { price: 6_000, quantity: 6, remaining: 6, at: 16, detail: 950 }),
  ]);
  checkAll(log, [1]);
  const times = readerOf(log)({ userId: 1, after: null, limit: 10 }).items.map(({ order }) => JSON.parse(order));
  expect(times.map(({ time_in_force }) => time_in_force)).toEqual(["gtd", "gtd", "gtd", "gtc", "gtc", "gtc", "gtd"]);
});

test("a page ends before an update whose fills have no room, but has one update at least", () => {
  const log = new MemoryLog(2, [2]);
  const fills = MAX_PAGE_FILLS - 1;
  const total = 2 * fills + 1;
  log.append([placed(OrderStatus.open, { slot: 1, user: 1, id: 1, quantity: total + 1, at: 10 })]);
  for (const [id, count] of [
    [2, fills],
    [3, fills],
    [4, 1],
  ] as const) {
    const taker = { slot: id, user: 2, id };
    const before = log.db.prepare("SELECT remaining FROM orders WHERE id = 1").pluck().get() as number;
    log.append([
      placed(OrderStatus.queued, { ...taker, quantity: count, at: 11 }),
      ...Array.from({ length: count }, (_, i) =>
        match([before - i - 1, count - i - 1], taker, 11, i === count - 1 ? R.FLAG_UPDATE_END : 0),
      ).flat(),
    ]);
  }
  const read = readerOf(log);
  const sizes = [0, 1, 2].map((after) => {
    const { items, hasMore } = read({ userId: 2, after, limit: 10 });
    return [items.length, hasMore];
  });
  expect(sizes).toEqual([
    [1, true],
    [2, false],
    [1, false],
  ]);
});

test("updates of before the log are no longer kept; a user without updates has none", () => {
  const log = new MemoryLog(0, [], ({ db }) => {
    db.exec(`INSERT INTO users (id, email, role, kyc_tier, created_at) VALUES (1, 'a@example.com', 'user', 1, 1);
      INSERT INTO accounts VALUES (1, 0, 0, 0, 0, 0); INSERT INTO newest_of_user VALUES (1, 0, 0, 7)`);
  });
  const read = readerOf(log);
  expect(read({ userId: 1, after: 3, limit: 10 })).toEqual({ items: [], oldest: 8, hasMore: false, damage: null });
  expect(read({ userId: 1, after: 7, limit: 10 })).toEqual({ items: [], oldest: null, hasMore: false, damage: null });
  expect(read({ userId: 1, after: null, limit: 10 })).toEqual({
    items: [],
    oldest: null,
    hasMore: false,
    damage: null,
  });
  expect(read({ userId: 2, after: 0, limit: 10 })).toEqual({ items: [], oldest: null, hasMore: false, damage: null });
});

test("the cancel of an order that a crash interrupted before there was a log reports its fills", () => {
  const log = new MemoryLog(2, [2]);
  const taker = { slot: 2, user: 2, id: 2 };
  log.append([placed(OrderStatus.open, { slot: 1, user: 1, id: 1, quantity: 5, at: 10 })]);
  log.append([placed(OrderStatus.queued, { ...taker, quantity: 4, at: 12 }), ...match([4, 3], taker, 12)]);
  log.append(match([3, 2], taker, 12));
  // As the migration leaves such an order.
  log.db.exec("UPDATE unfinished_orders SET batch = 0; DELETE FROM update_index");
  log.batches.length = 0;
  log.restart();
  log.append([canceled(Reason.operator, { ...taker, quantity: 4, remaining: 2, at: 15 })]);
  const [update] = readAll(log, 2, null, 10);
  expect(update).toMatchObject({ sequence: 1, id: 2, status: "canceled", remaining: 2 });
  expect(update!.trades).toEqual(log.db.prepare("SELECT id FROM fills WHERE order_id = 2 ORDER BY id").pluck().all());
  expect(update!.trades).toHaveLength(2);
  expect(verifyDatabase(log.db).filter(({ ok }) => !ok)).toEqual([]);
});

// ---------------------------------------------------------------- at random

/** A batch ends between two matches. */
function endOfMatch(events: readonly Int32Array[], end: number): number {
  const isOpen = (packed = 0): boolean =>
    R.kindOf(packed) === EventKind.orderFilled && (packed & R.FLAG_MATCH_END) === 0;
  while (isOpen(events[end - 1]?.[0])) end++;
  return end;
}

/** By user: the first update from which on none reports a fill from before a batch of `ends` (records up to each batch). */
function firstReadable(records: readonly Int32Array[], ends: readonly number[], before: number): Map<number, number> {
  const begins = ends[before - 2] ?? 0;
  const first = new Map<number, number>();
  const unreported = new Map<number, number>();
  for (const [i, words] of records.entries()) {
    const doubles = new Float64Array(words.buffer);
    const order = doubles[R.D_ORDER_ID]!;
    const sequence = doubles[R.D_USER_SEQUENCE]!;
    if (sequence === 0) {
      const isFill = R.kindOf(words[0]!) === EventKind.orderFilled;
      if (isFill && !unreported.has(order)) unreported.set(order, i);
      continue;
    }
    if ((unreported.get(order) ?? i) < begins) first.set(words[R.W_USER]!, sequence + 1);
    unreported.delete(order);
  }
  return first;
}

/** True if a fill waits for the update that reports it. */
function isInMatching(records: readonly Int32Array[]): boolean {
  const unreported = new Set<number>();
  for (const words of records) {
    const doubles = new Float64Array(words.buffer);
    const order = doubles[R.D_ORDER_ID]!;
    if (doubles[R.D_USER_SEQUENCE]! > 0) unreported.delete(order);
    else if (R.kindOf(words[0]!) === EventKind.orderFilled) unreported.add(order);
  }
  return unreported.size > 0;
}

test("the log's beginning moves to any batch: the updates from there on stay, those before are no longer kept", () => {
  const run = fc.record({
    commands: fc.array(commandsOf(priceNear, 4), { minLength: 50, maxLength: 150, size: "max" }),
    batches: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 3, maxLength: 10 }),
    blockEnds: fc.integer({ min: 5, max: 40 }),
    cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 3 }),
    isLate: fc.boolean(),
    restarts: fc.boolean(),
  });
  fc.assert(
    fc.property(run, ({ commands, batches, blockEnds, cuts, isLate, restarts }) => {
      const model = modelOf([2, 3]);
      model.nextId = 1;
      runAll(
        model,
        commands.filter((command) => !String(command).includes("000000000")),
        5,
      );
      const log = new MemoryLog(4, [2, 3]);
      const ends = log.batches.map(() => log.records.length);
      ends[0] = 0;
      const append = (events: readonly Int32Array[], writes: readonly Write[] = []): void => {
        log.append(events, writes);
        ends.push(log.records.length);
      };
      const events = model.engine.eventWords;
      for (let at = 0, n = 0; at < events.length; n++) {
        const end = endOfMatch(events, at + batches[n % batches.length]!);
        append(events.slice(at, end));
        at = end;
        if (n % blockEnds === blockEnds - 1) {
          log.endBlock();
          ends.push(log.records.length);
        }
      }
      for (const cut of [...cuts].sort((a, b) => a - b)) {
        let before = 1 + Math.floor(cut * (ends.length - 1));
        // Tables from an older backup meet a log whose archives are gone: no order was in the middle of its matching.
        if (isLate) {
          while (isInMatching(log.records.slice(0, ends[before - 2] ?? 0))) before++;
          log.trim(before);
        }
        if (restarts) log.restart();
        append([], [{ kind: "forgetLog", before }]);
        const expected = expectedUpdates(log.records);
        const first = firstReadable(log.records, ends, before);
        for (const user of [1, 2, 3, 4]) {
          const all = expected.get(user) ?? [];
          const from = first.get(user) ?? 1;
          const read = readAll(log, user, null, 100);
          if (!isLate) expect(read[0]?.sequence ?? all.length + 1).toBe(from);
          expect(read).toEqual(read.length === 0 ? [] : all.slice(read[0]!.sequence - 1));
        }
        expect(verifyDatabase(log.db).filter(({ ok, name }) => !ok && !/^live (buys|sells)/.test(name))).toEqual([]);
        if (isLate) return;
      }
    }),
    { numRuns: 20 * EFFORT, endOnFailure: true },
  );
});

test("random order flow: every page shows what was sent", () => {
  const run = fc.record({
    commands: fc.array(commandsOf(priceNear, 4), { minLength: 50, maxLength: 150, size: "max" }),
    batches: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 3, maxLength: 10 }),
    blockEnds: fc.integer({ min: 5, max: 20 }),
    limits: fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 }),
    restart: fc.integer({ min: 2, max: 10 }),
  });
  fc.assert(
    fc.property(run, ({ commands, batches, blockEnds, limits, restart }) => {
      const model = modelOf([2, 3]);
      model.nextId = 1;
      // No account pays for the largest orders.
      const affordable = commands.filter((command) => !String(command).includes("000000000"));
      runAll(model, affordable, 5);
      const log = new MemoryLog(4, [2, 3]);
      const events = model.engine.eventWords;
      for (let at = 0, n = 0; at < events.length; n++) {
        const end = endOfMatch(events, at + batches[n % batches.length]!);
        log.append(events.slice(at, end));
        at = end;
        if (n % blockEnds === 0) log.endBlock();
        if (n % restart === 0) log.restart();
      }
      checkAll(log, [1, 2, 3, 4]);
      const expected = expectedUpdates(log.records);
      limits.forEach((limit, i) => {
        const user = 1 + (i % 4);
        const all = expected.get(user) ?? [];
        const after = (limit * 7) % (all.length + 1);
        expect(readAll(log, user, after, limit)).toEqual(all.slice(after));
      });
    }),
    { numRuns: 10 * EFFORT, endOnFailure: true },
  );
});
