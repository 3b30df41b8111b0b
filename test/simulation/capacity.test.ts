/** How an exchange shares its order slots and client order ids among accounts when they run out. */
import { describe, expect, test } from "vitest";
import { Side } from "../../engine/constants.ts";
import { ApiError } from "../../server/errors.ts";
import { SmallWorld } from "./small-world.ts";

const DAY_MS = 86_400_000;

/** The error code of a rejected call, 0 on success. */
function codeOf(act: () => void): number {
  try {
    act();
    return 0;
  } catch (error) {
    if (error instanceof ApiError) return error.kind.code;
    throw error;
  }
}

const bid = (price: number, clientOrderId: string | null = null) => {
  return { outcomeId: 1, side: Side.buy, price, quantity: 1, clientOrderId };
};
const quotes = (count: number, from = 1) =>
  Array.from({ length: count }, (_, i) => ({ outcomeId: 1, side: Side.buy, price: from + i, quantity: 1 }));

describe("slots of live orders", () => {
  test("the last tenth of the slots of live orders is for accounts with fewer than 100 orders, in single orders and in quotes", async () => {
    const world = new SmallWorld({ capacity: 1_000, commandRecords: 2_048, eventRecords: 2_048, longestChain: 256 });
    await world.begin();
    await world.found(4);
    const { store } = world.life.exchange;
    const place = (user: number): number => codeOf(() => world.place(user, bid(1)));
    for (let i = 0; i < 900; i++) {
      expect(place(1)).toBe(0);
      if (i % 100 === 0) await world.life.becomeQuiet();
    }
    await world.life.becomeQuiet();
    expect(store.liveCount).toBe(900);
    // One account has all that it can get; the rest is reserved for others.
    expect(place(1)).toBe(50300);
    expect(codeOf(() => world.quote(1, quotes(1)))).toBe(50300);
    for (let i = 0; i < 40; i++) expect(place(2)).toBe(0);
    expect(codeOf(() => world.quote(2, quotes(61)))).toBe(50300);
    expect(codeOf(() => world.quote(2, quotes(50)))).toBe(0);
    await world.life.becomeQuiet();
    expect(store.liveOf(2)).toBe(90);
    for (let i = 0; i < 10; i++) expect(place(3)).toBe(0);
    // No slot is left at all.
    expect([place(3), place(4)]).toEqual([50300, 50300]);
    await world.life.becomeQuiet();
    world.compareAll();
    world.crash();
    await world.begin();
    expect([1, 2, 3].map((user) => world.life.exchange.store.liveOf(user))).toEqual([900, 90, 10]);
    expect(place(4)).toBe(50300);
  });

  test("a large account can keep replacing its quotes while the last slots are reserved", async () => {
    const world = new SmallWorld({ capacity: 400, commandRecords: 2_048, eventRecords: 2_048, longestChain: 256 });
    await world.begin();
    await world.found(2);
    world.quote(1, quotes(100));
    await world.life.becomeQuiet();
    for (let i = 0; i < 260; i++) {
      world.place(1, bid(1));
      if (i % 100 === 0) await world.life.becomeQuiet();
    }
    await world.life.becomeQuiet();
    expect(codeOf(() => world.place(1, bid(1)))).toBe(50300);
    // 40 slots are free, and each new quote needs one until the old one is gone.
    expect(codeOf(() => world.quote(1, [...quotes(100).slice(0, 60), ...quotes(40, 200)]))).toBe(0);
    await world.life.becomeQuiet();
    expect(world.life.exchange.store.liveOf(1)).toBe(360);
    world.compareAll();
  });
});

describe("client order ids", () => {
  const bounds = { all: 100, perUser: 60, small: 5 };

  test("client order ids are bounded per account and in total, with a reserve; each is free again after 24 hours", async () => {
    const world = new SmallWorld({ clientOrderIds: bounds });
    await world.begin();
    await world.found(4);
    const place = async (user: number, id: string | null): Promise<number> => {
      const code = codeOf(() => world.place(user, bid(1, id)));
      await world.life.becomeQuiet();
      return code;
    };
    for (let i = 0; i < 60; i++) expect(await place(1, `a-${i}`)).toBe(0);
    expect(await place(1, "a-60")).toBe(42900);
    expect(await place(1, null)).toBe(0);
    // A repeat adds none.
    expect(await place(1, "a-3")).toBe(0);
    for (let i = 0; i < 30; i++) expect(await place(2, `b-${i}`)).toBe(0);
    // Ninety of a hundred: the rest is reserved for accounts with few.
    expect(await place(2, "b-30")).toBe(50300);
    for (let i = 0; i < 5; i++) expect(await place(3, `c-${i}`)).toBe(0);
    expect(await place(3, "c-5")).toBe(50300);
    // The counts are there after a crash as well.
    world.crash();
    await world.begin();
    expect(await Promise.all([place(1, "a-60"), place(2, "b-30"), place(3, "c-5"), place(4, "d-0")])).toEqual([
      42900, 50300, 50300, 0,
    ]);
    world.clock.now += DAY_MS + 1;
    world.life.exchange.tick(world.clock.now);
    expect(await place(1, "a-60")).toBe(0);
    expect(await place(2, "b-30")).toBe(0);
  });
});
