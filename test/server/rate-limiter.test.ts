/** The rate limiter beside a plain list of what passed, and what it says of itself. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_RATE_BUCKETS } from "../../engine/limits.ts";
import {
  DEFAULT_RATE_LIMITS,
  type RateBucketState,
  type RateClass,
  RateLimited,
  RateLimiter,
  type RateLimits,
  type RateState,
} from "../../server/rate-limiter.ts";

const PLACE = "POST /orders";
const CANCEL = "DELETE /orders/:id";
const ADDRESS = "192.0.2.1";
const NOON = 1_760_000_000_000;

/** The state, or the refusal. */
function attempt(take: () => RateState | null): RateState | RateLimited | null {
  try {
    return take();
  } catch (error) {
    if (error instanceof RateLimited) return error;
    throw error;
  }
}

/** How many of `count` requests at once pass. */
function passing(limiter: RateLimiter, count: number, userId: number | null, now: number, address = ADDRESS): number {
  let passed = 0;
  for (let i = 0; i < count; i++) {
    if (!(attempt(() => limiter.take(PLACE, "order", userId, address, now)) instanceof RateLimited)) passed++;
  }
  return passed;
}

test("30 orders at once pass and the 31st doesn't, until a minute after the first", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  for (let left = 29; left >= 0; left--) {
    expect(limiter.take(PLACE, "order", 1, ADDRESS, NOON)).toEqual({ limit: 30, remaining: left, reset: 60 });
  }
  const refused = attempt(() => limiter.take(PLACE, "order", 1, ADDRESS, NOON + 500)) as RateLimited;
  expect(refused).toBeInstanceOf(RateLimited);
  expect(refused.kind.code).toBe(42900);
  expect(refused.message).toContain(PLACE);
  expect(refused.retryAfter).toBe(60);
  expect(refused.rate).toEqual({ limit: 30, remaining: 0, reset: 60 });
  expect((attempt(() => limiter.take(PLACE, "order", 1, ADDRESS, NOON + 59_999)) as RateLimited).retryAfter).toBe(1);
  expect(passing(limiter, 100, 1, NOON + 60_000)).toBe(30);
});

test("no burst of twice the limit passes across the end of a minute", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 10, 1, NOON)).toBe(10);
  expect(passing(limiter, 100, 1, NOON + 59_000)).toBe(20);
  expect(passing(limiter, 100, 1, NOON + 60_000)).toBe(10);
  const refused = attempt(() => limiter.take(PLACE, "order", 1, ADDRESS, NOON + 60_000)) as RateLimited;
  expect(refused.retryAfter).toBe(59);
  expect(refused.rate.reset).toBe(60);
});

test("an address is full at 60 orders, whoever sends them, and that takes nothing from the user", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 30, 1, NOON)).toBe(30);
  expect(passing(limiter, 20, 2, NOON + 1_000)).toBe(20);
  expect(limiter.take(PLACE, "order", 3, ADDRESS, NOON)).toEqual({ limit: 60, remaining: 9, reset: 60 });
  expect(passing(limiter, 30, 3, NOON + 2_000)).toBe(9);
  const refused = attempt(() => limiter.take(PLACE, "order", 3, ADDRESS, NOON + 2_000)) as RateLimited;
  expect(refused.rate).toEqual({ limit: 60, remaining: 0, reset: 60 });
  expect(refused.retryAfter).toBe(58);
  expect(passing(limiter, 30, 3, NOON + 2_000, "192.0.2.2")).toBe(20);
});

test("a user's refused orders take nothing from the address", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 1_000, 1, NOON)).toBe(30);
  expect(passing(limiter, 1_000, 2, NOON)).toBe(30);
});

test("where user and address are full, the wait is until both have room", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, orderUser: 1, orderAddress: 2 });
  limiter.take(PLACE, "order", 1, ADDRESS, NOON);
  limiter.take(PLACE, "order", 2, ADDRESS, NOON + 10_000);
  const first = attempt(() => limiter.take(PLACE, "order", 1, ADDRESS, NOON + 20_000)) as RateLimited;
  expect(first.retryAfter).toBe(40);
  const second = attempt(() => limiter.take(PLACE, "order", 2, ADDRESS, NOON + 20_000)) as RateLimited;
  expect(second.retryAfter).toBe(50);
  expect(second.rate.limit).toBe(1);
});

test("routes, users, and requests without a user don't share; users on the default class don't share addresses", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, user: 1, address: 1, orderUser: 1, orderAddress: 1 });
  const passes = (route: string, rateClass: RateClass, userId: number | null): boolean =>
    !(attempt(() => limiter.take(route, rateClass, userId, ADDRESS, NOON)) instanceof RateLimited);
  for (const route of [PLACE, CANCEL]) {
    expect(passes(route, "order", 1)).toBe(true);
    expect(passes(route, "order", 1)).toBe(false);
    expect(passes(route, "order", null)).toBe(true);
    expect(passes(route, "order", null)).toBe(false);
  }
  for (const userId of [1, 2, null]) {
    expect(passes("GET /orders", "default", userId)).toBe(true);
    expect(passes("GET /orders", "default", userId)).toBe(false);
  }
});

test("nothing limits the class none", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, user: 1, address: 1 });
  for (let i = 0; i < 5; i++) expect(limiter.take("GET /livez", "none", null, ADDRESS, NOON)).toBeNull();
  expect(limiter.peek("GET /livez", "none", null, ADDRESS, NOON)).toEqual([]);
});

test("peek shows the buckets of a request and takes nothing", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  const peek = (userId: number | null, now: number): RateBucketState[] =>
    limiter.peek(PLACE, "order", userId, ADDRESS, now);
  const untouched = [
    { scope: "user", limit: 30, remaining: 30, reset: 0 },
    { scope: "address", limit: 60, remaining: 60, reset: 0 },
  ];
  for (let i = 0; i < 200; i++) expect(peek(1, NOON)).toEqual(untouched);
  expect(peek(null, NOON)).toEqual([{ scope: "address", limit: 100, remaining: 100, reset: 0 }]);
  expect(limiter.peek("GET /time", "default", 1, ADDRESS, NOON)).toEqual([
    { scope: "user", limit: 100, remaining: 100, reset: 0 },
  ]);
  limiter.take(PLACE, "order", 1, ADDRESS, NOON);
  limiter.take(PLACE, "order", 2, ADDRESS, NOON + 2_500);
  expect(peek(1, NOON + 2_600)).toEqual([
    { scope: "user", limit: 30, remaining: 29, reset: 58 },
    { scope: "address", limit: 60, remaining: 58, reset: 60 },
  ]);
  expect(peek(1, NOON + 62_500)).toEqual(untouched);
});

describe("a clock that steps back", () => {
  test("by seconds lets no more pass, and counts on when it has caught up", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    expect(passing(limiter, 30, 1, NOON)).toBe(30);
    expect(passing(limiter, 30, 1, NOON - 30_000)).toBe(0);
    expect(passing(limiter, 30, 1, NOON + 59_999)).toBe(0);
    expect(passing(limiter, 31, 1, NOON + 60_000)).toBe(30);
  });

  test("by hours lets no more pass and shuts nobody out for longer than the minute", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const earlier = NOON - 5 * 3_600_000;
    expect(passing(limiter, 30, 1, NOON)).toBe(30);
    const refused = attempt(() => limiter.take(PLACE, "order", 1, ADDRESS, earlier)) as RateLimited;
    expect(refused.retryAfter).toBe(60);
    expect(passing(limiter, 30, 1, earlier + 59_999)).toBe(0);
    expect(passing(limiter, 31, 1, earlier + 60_000)).toBe(30);
  });

  test("times that come out of order don't make the minute shorter", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    expect(passing(limiter, 30, 1, NOON)).toBe(30);
    for (let i = 0; i < 10_000; i++) limiter.peek(PLACE, "order", 1, ADDRESS, NOON + (i % 2) * 1_000);
    expect(passing(limiter, 30, 1, NOON + 59_999)).toBe(0);
  });
});

test("a flood of addresses evicts the least recently used buckets, one for each new one", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 1 });
  const passes = (address: string): boolean =>
    !(attempt(() => limiter.take("GET /time", "default", null, address, NOON)) instanceof RateLimited);
  const isKnown = (address: string): boolean =>
    limiter.peek("GET /time", "default", null, address, NOON)[0]!.remaining === 0;
  const flood = Array.from({ length: MAX_RATE_BUCKETS }, (_, i) => `2001:db8:0:${i.toString(16)}::/64`);
  expect(flood.every(passes)).toBe(true);
  const first = flood.slice(0, 300);
  const usedAgain = first.filter((_, i) => i % 3 === 1);
  expect(usedAgain.some(passes)).toBe(false);
  expect(first.every(isKnown)).toBe(true);

  const added = Array.from({ length: 150 }, (_, i) => `192.0.2.${i}`);
  expect(added.every(passes)).toBe(true);
  expect(added.every(isKnown)).toBe(true);
  const untouched = first.filter((address) => !usedAgain.includes(address));
  expect(untouched.filter(isKnown)).toEqual(untouched.slice(150));
  expect(usedAgain.every(isKnown)).toBe(true);
});

test("a burst after a few requests far apart is counted with them", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 3, 1, NOON)).toBe(3);
  expect(passing(limiter, 1, 1, NOON + 30_000)).toBe(1);
  expect(passing(limiter, 40, 1, NOON + 60_000)).toBe(29);
  expect(passing(limiter, 40, 1, NOON + 90_000)).toBe(1);
  expect(passing(limiter, 40, 1, NOON + 120_000)).toBe(29);
});

test("of any minute no more than the limit passes, and never less than it could, beside a plain list", () => {
  const limits: RateLimits = { ...DEFAULT_RATE_LIMITS, user: 5, address: 3, orderUser: 6, orderAddress: 9 };
  const step = fc.record({
    wait: fc.oneof(
      { weight: 10, arbitrary: fc.constant(0) },
      { weight: 20, arbitrary: fc.integer({ min: 0, max: 30_000 }) },
      { weight: 1, arbitrary: fc.constantFrom(59_999, 60_000) },
    ),
    count: fc.integer({ min: 1, max: 8 }),
    order: fc.boolean(),
    userId: fc.constantFrom(1, 2, 3, null),
    address: fc.constantFrom("a", "b"),
  });
  const repeated = <T extends { count: number; wait: number }>(first: T): T[] =>
    Array.from({ length: first.count }, (_, i) => (i === 0 ? first : { ...first, wait: 0 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const limiter = new RateLimiter(limits);
      const passed: { name: string; at: number }[] = [];
      let now = NOON;
      for (const { wait, order, userId, address } of steps.flatMap(repeated)) {
        now += wait;
        const names: [string, number][] = [];
        if (userId === null) names.push([`${order} anonymous ${address}`, limits.address]);
        else if (!order) names.push([`user ${userId}`, limits.user]);
        else names.push([`order user ${userId}`, limits.orderUser], [`order address ${address}`, limits.orderAddress]);
        const free = (): number[] =>
          names.map(([name, limit]) => limit - passed.filter((p) => p.name === name && p.at > now - 60_000).length);
        const expected = free().every((count) => count > 0);
        if (expected) for (const [name] of names) passed.push({ name, at: now });

        const [route, rateClass] = order ? ([PLACE, "order"] as const) : (["GET /time", "default"] as const);
        const state = attempt(() => limiter.take(route, rateClass, userId, address, now))!;
        if (state instanceof RateLimited) {
          expect(expected).toBe(false);
          expect(state.retryAfter).toBeGreaterThanOrEqual(1);
          expect(state.retryAfter).toBeLessThanOrEqual(60);
          expect(state.rate.remaining).toBe(0);
        } else {
          expect(expected).toBe(true);
          expect(state.remaining).toBe(Math.min(...free()));
        }
        const shown = limiter.peek(route, rateClass, userId, address, now);
        expect(shown.map(({ remaining }) => remaining)).toEqual(free());
      }
    }),
  );
});
