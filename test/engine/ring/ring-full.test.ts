/**
 * Commands with more events than the event ring holds: sweeps and closes over thousands of orders through a ring of 256
 * records. Events handed over in the middle end at a match's end, and none is lost or repeated.
 */
import { expect, test } from "vitest";
import { LockStep, type Market } from "../book/lock-step.ts";

const ORDERS = 2_400;

function smallRing(outcomes: number): { steps: LockStep; market: Market } {
  const steps = new LockStep({ capacity: 12_000, ringRecords: 256, ringStart: 2 ** 31 - 5_000 });
  const market = steps.openMarket(outcomes);
  steps.batchOfOne = false;
  return { steps, market };
}

/** Rests orders of small quantities over many levels, by users in turn. */
function fillBook(steps: LockStep, market: Market, outcome: number, side: 1 | 2, users: number[], from: number): void {
  const step = side === 1 ? -1 : 1;
  for (let i = 0; i < ORDERS; i++) {
    const price = from + step * (i % 1_500);
    steps.place(market, { user: users[i % users.length]!, outcome, side, price, quantity: 1 + (i % 3) });
  }
  steps.endBatch();
}

/** Runs one command and returns how often the ring was full meanwhile. */
function fullRings(steps: LockStep, command: () => void): number {
  const before = steps.engine.ringFullCount;
  command();
  steps.endBatch();
  return steps.engine.ringFullCount - before;
}

test("one batch places orders on more levels than the ring has records", () => {
  const { steps, market } = smallRing(2);
  const full = fullRings(steps, () => fillBook(steps, market, market.first, 2, [1, 2, 3], 5_000));
  expect(full).toBeGreaterThan(10);
  steps.compareEveryPrice();
});

test("a direct sweep, then an amend that sweeps the rest", () => {
  const { steps, market } = smallRing(2);
  fillBook(steps, market, market.first, 2, [1, 2, 3], 5_000);
  const terms = { user: 9, outcome: market.first, side: 1, quantity: 1_000_000 } as const;
  const full = fullRings(steps, () => steps.place(market, { ...terms, price: 5_700, timeInForce: "ioc" }));
  expect(full).toBeGreaterThan(20);
  const bid = steps.place(market, { ...terms, price: 1 });
  expect(fullRings(steps, () => steps.amend(bid, 9_000, 999_999))).toBeGreaterThan(20);
  expect(market.book.resting(market.first, 2)).toEqual([]);
  expect(steps.tape.orders.get(bid)).toMatchObject({ status: "partially_filled" });
  steps.compareEveryPrice();
});

test("a mint over five outcomes sweeps four books", () => {
  const { steps, market } = smallRing(5);
  const [own, ...others] = market.outcomes;
  others.forEach((outcome, i) => {
    for (let n = 0; n < 700; n++) {
      steps.place(market, { user: 1 + i, outcome, side: 1, price: 2_400 - n, quantity: 1 + ((n + i) % 4) });
    }
  });
  steps.endBatch();
  const taker = { user: 9, outcome: own!, side: 1, price: 9_999, quantity: 1_000_000, type: "market" } as const;
  expect(fullRings(steps, () => steps.place(market, taker))).toBeGreaterThan(30);
  expect(market.book.resting(others[0]!, 1)).toEqual([]);
});

test("a fill or kill over thousands of orders", () => {
  const { steps, market } = smallRing(2);
  fillBook(steps, market, market.first, 1, [1, 2], 5_000);
  const taker = { user: 9, outcome: market.first, side: 2, price: 1, timeInForce: "fok" } as const;
  const total = market.book.resting(market.first, 1).reduce((sum, order) => sum + order.remaining, 0);
  expect(fullRings(steps, () => steps.place(market, { ...taker, quantity: total + 1 }))).toBeLessThan(2);
  expect(fullRings(steps, () => steps.place(market, { ...taker, quantity: total }))).toBeGreaterThan(20);
  expect(market.book.resting(market.first, 1)).toEqual([]);
});

for (const timeInForce of ["gtc", "ioc"] as const) {
  test(`cancel-maker over thousands of own orders, and nothing to fill (${timeInForce})`, () => {
    const { steps, market } = smallRing(2);
    fillBook(steps, market, market.first, 2, [1], 5_000);
    const terms = { user: 1, outcome: market.first, side: 1, price: 8_000, quantity: 10, timeInForce } as const;
    const full = fullRings(steps, () => steps.place(market, { ...terms, prevention: "cancel_maker" }));
    expect(full).toBeGreaterThan(20);
    expect(market.book.resting(market.first, 2)).toEqual([]);
  });
}

test("decrement against thousands of own orders among others'", () => {
  const { steps, market } = smallRing(3);
  fillBook(steps, market, market.first, 2, [1, 1, 2], 5_000);
  const terms = { user: 1, outcome: market.first, side: 1, price: 8_000, quantity: 1_000_000 } as const;
  const full = fullRings(steps, () => steps.place(market, { ...terms, prevention: "decrement" }));
  expect(full).toBeGreaterThan(20);
});

test("a market closes over thousands of orders", () => {
  const { steps, market } = smallRing(3);
  fillBook(steps, market, market.outcomes[0]!, 1, [1, 2, 3], 3_000);
  fillBook(steps, market, market.outcomes[1]!, 2, [1, 2, 3], 5_000);
  fillBook(steps, market, market.outcomes[1]!, 1, [1, 2, 3], 2_000);
  expect(fullRings(steps, () => steps.close(market))).toBeGreaterThan(20);
  steps.compareEveryPrice();
});

test("steps of thirty-two legs through the smallest ring", () => {
  const { steps, market } = smallRing(32);
  const [own, ...others] = market.outcomes;
  for (let n = 0; n < 40; n++) {
    others.forEach((outcome, i) => {
      steps.place(market, { user: 1 + ((n + i) % 5), outcome, side: 1, price: 300 - n, quantity: 1 + ((n + i) % 3) });
    });
  }
  steps.endBatch();
  const taker = { user: 1, outcome: own!, side: 1, price: 9_000 } as const;
  const full = fullRings(steps, () => {
    steps.place(market, { ...taker, quantity: 10, prevention: "decrement" });
    steps.place(market, { ...taker, quantity: 5, prevention: "cancel_maker" });
    steps.place(market, { ...taker, user: 9, quantity: 1_000, timeInForce: "ioc" });
  });
  expect(full).toBeGreaterThan(5);
  expect(steps.tape.matches.length).toBeGreaterThan(30);
});
