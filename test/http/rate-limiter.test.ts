/**
 * The rate limiter: what passes in any minute, which buckets a request takes from, and what `peek` shows. It beside a plain
 * list is rate-limiter.property.test.ts, floods and memory are rate-limiter-floods.long.test.ts.
 */
import { describe, expect, test } from "vitest";
import {
  DEFAULT_RATE_LIMITS,
  type RateBucketState,
  type RateClass,
  RateLimited,
  RateLimiter,
} from "../../server/http/rate-limiter.ts";
import {
  ADDRESS,
  attempt,
  CANCEL,
  countOne,
  LOGIN,
  NOON,
  PLACE,
  passing,
  peekAt,
  REFRESH,
  REGISTER,
  signingIn,
} from "./limiter-requests.ts";

test("30 orders at once pass and the 31st doesn't, until a minute after the first", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  for (let left = 29; left >= 0; left--) {
    expect(countOne(limiter, PLACE, "order", 1, ADDRESS, NOON)).toEqual({ limit: 30, remaining: left, reset: 60 });
  }
  const refused = attempt(() => countOne(limiter, PLACE, "order", 1, ADDRESS, NOON + 500)) as RateLimited;
  expect(refused).toBeInstanceOf(RateLimited);
  expect(refused.kind.code).toBe(42900);
  expect(refused.message).toContain(PLACE);
  expect(refused.retryAfter).toBe(60);
  expect(refused.rate).toEqual({ limit: 30, remaining: 0, reset: 60 });
  expect((attempt(() => countOne(limiter, PLACE, "order", 1, ADDRESS, NOON + 59_999)) as RateLimited).retryAfter).toBe(
    1,
  );
  expect(passing(limiter, 100, 1, NOON + 60_000)).toBe(30);
});

test("no burst of twice the limit passes across the end of a minute", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 10, 1, NOON)).toBe(10);
  expect(passing(limiter, 100, 1, NOON + 59_000)).toBe(20);
  expect(passing(limiter, 100, 1, NOON + 60_000)).toBe(10);
  const refused = attempt(() => countOne(limiter, PLACE, "order", 1, ADDRESS, NOON + 60_000)) as RateLimited;
  expect(refused.retryAfter).toBe(59);
  expect(refused.rate.reset).toBe(60);
});

test("an address is full at 60 orders, whoever sends them, and that takes nothing from the user", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 30, 1, NOON)).toBe(30);
  expect(passing(limiter, 20, 2, NOON + 1_000)).toBe(20);
  expect(countOne(limiter, PLACE, "order", 3, ADDRESS, NOON)).toEqual({ limit: 60, remaining: 9, reset: 60 });
  expect(passing(limiter, 30, 3, NOON + 2_000)).toBe(9);
  const refused = attempt(() => countOne(limiter, PLACE, "order", 3, ADDRESS, NOON + 2_000)) as RateLimited;
  expect(refused.rate).toEqual({ limit: 60, remaining: 0, reset: 60 });
  expect(refused.retryAfter).toBe(58);
  expect(passing(limiter, 30, 3, NOON + 2_000, "192.0.2.2")).toBe(20);
});

test("a user's refused orders take nothing from the address", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 1_000, 1, NOON)).toBe(30);
  expect(passing(limiter, 1_000, 2, NOON)).toBe(30);
});

test("when user and address are both full, the wait lasts until both have room", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, orderUser: 1, orderAddress: 2 });
  countOne(limiter, PLACE, "order", 1, ADDRESS, NOON);
  countOne(limiter, PLACE, "order", 2, ADDRESS, NOON + 10_000);
  const first = attempt(() => countOne(limiter, PLACE, "order", 1, ADDRESS, NOON + 20_000)) as RateLimited;
  expect(first.retryAfter).toBe(40);
  const second = attempt(() => countOne(limiter, PLACE, "order", 2, ADDRESS, NOON + 20_000)) as RateLimited;
  expect(second.retryAfter).toBe(50);
  expect(second.rate.limit).toBe(1);
  countOne(limiter, PLACE, "order", 3, "192.0.2.2", NOON + 20_000);
  countOne(limiter, PLACE, "order", 4, "192.0.2.2", NOON + 30_000);
  const third = attempt(() => countOne(limiter, PLACE, "order", 1, "192.0.2.2", NOON + 30_000)) as RateLimited;
  expect(third.retryAfter).toBe(50);
  expect(third.rate).toEqual({ limit: 2, remaining: 0, reset: 60 });
});

test("routes, users, and requests without a user don't share; users on the default class don't share addresses", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, user: 1, address: 1, orderUser: 1, orderAddress: 1 });
  const passes = (route: string, rateClass: RateClass, userId: number | null): boolean =>
    !(attempt(() => countOne(limiter, route, rateClass, userId, ADDRESS, NOON)) instanceof RateLimited);
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

describe("sign-in", () => {
  test("a sign-in counts by the identifier, on each route, from any unknown address", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    expect(countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON, "a@example.com")).toEqual({
      limit: 10,
      remaining: 9,
      reset: 60,
    });
    expect(signingIn(limiter, 500, "a@example.com", NOON)).toBe(9);
    expect(signingIn(limiter, 500, "b@example.com", NOON)).toBe(10);
    expect(signingIn(limiter, 500, "a@example.com", NOON, REGISTER)).toBe(10);
    const refused = attempt(() => countOne(limiter, LOGIN, "identifier", 1, ADDRESS, NOON + 500, "a@example.com"));
    expect(refused).toBeInstanceOf(RateLimited);
    expect((refused as RateLimited).rate).toEqual({ limit: 10, remaining: 0, reset: 60 });
    expect((refused as RateLimited).retryAfter).toBe(60);
  });

  test("a sign-in with one identifier passes 10 times in any minute", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    expect(signingIn(limiter, 3, "a@example.com", NOON)).toBe(3);
    expect(signingIn(limiter, 50, "a@example.com", NOON + 59_999)).toBe(7);
    expect(signingIn(limiter, 50, "a@example.com", NOON + 60_000)).toBe(3);
    expect(signingIn(limiter, 50, "a@example.com", NOON + 119_998)).toBe(0);
    expect(signingIn(limiter, 50, "a@example.com", NOON + 119_999)).toBe(7);
  });

  test("sign-ins by strangers leave the owner ten from each known address, and the owner takes nothing from the identifier", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const home = (address = ADDRESS, identifier = "a@example.com") =>
      attempt(() => countOne(limiter, LOGIN, "identifier", null, address, NOON, identifier, 1, true));
    expect(signingIn(limiter, 500, "a@example.com", NOON)).toBe(10);
    for (let left = 9; left >= 0; left--) expect(home()).toEqual({ limit: 10, remaining: left, reset: 60 });
    expect((home() as RateLimited).rate).toEqual({ limit: 10, remaining: 0, reset: 60 });
    // Another known address, and another account at the same address, have their own.
    expect(home("198.51.100.1")).toMatchObject({ remaining: 9 });
    expect(home(ADDRESS, "b@example.com")).toMatchObject({ remaining: 9 });
    expect(signingIn(limiter, 500, "b@example.com", NOON)).toBe(10);
  });

  test("sign-ins pass 100 times from one address, whatever they name and whoever is known there; a rejection takes nothing", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const consume = (n: number, isKnown = false) =>
      attempt(() => countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON, `${n}@example.com`, 1, isKnown));
    for (let n = 0; n < 100; n++) expect(consume(n, n % 2 === 0)).not.toBeInstanceOf(RateLimited);
    for (const isKnown of [false, true]) {
      for (let n = 0; n < 200; n++) {
        expect((consume(n, isKnown) as RateLimited).rate).toEqual({ limit: 100, remaining: 0, reset: 60 });
      }
    }
    expect(attempt(() => countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON))).toBeInstanceOf(RateLimited);
    // A rejection by address leaves the identifiers their own.
    for (let n = 100; n < 200; n++) expect(signingIn(limiter, 20, `${n}@example.com`, NOON)).toBe(10);
    // A rejection by identifier leaves the address its own.
    const fresh = new RateLimiter(DEFAULT_RATE_LIMITS);
    for (let i = 0; i < 500; i++)
      attempt(() => countOne(fresh, LOGIN, "identifier", null, ADDRESS, NOON, "a@example.com"));
    expect(peekAt(fresh, LOGIN, "identifier", null, ADDRESS, NOON)).toMatchObject([{ remaining: 90 }]);
  });

  test("a sign-in that both buckets reject waits for the later of the two", () => {
    const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 10 });
    const consume = (at: number) =>
      attempt(() => countOne(limiter, LOGIN, "identifier", null, ADDRESS, at, "a@example.com")) as RateLimited;
    for (let i = 0; i < 5; i++)
      countOne(limiter, LOGIN, "identifier", null, "192.0.2.9", NOON + 20_000, "a@example.com");
    for (let i = 0; i < 5; i++) countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON + 20_000, "a@example.com");
    for (let i = 0; i < 5; i++) countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON + 40_000, "b@example.com");
    expect(consume(NOON + 50_000).retryAfter).toBe(30);
    expect(consume(NOON + 79_500).retryAfter).toBe(1);
  });

  test("a sign-in without an identifier counts by the address, and takes nothing from the identifiers", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const passes = (userId: number | null, address: string): boolean =>
      !(attempt(() => countOne(limiter, LOGIN, "identifier", userId, address, NOON)) instanceof RateLimited);
    for (let i = 0; i < 100; i++) expect(passes(i % 2 === 0 ? null : i, ADDRESS)).toBe(true);
    expect(passes(null, ADDRESS)).toBe(false);
    expect(passes(7, ADDRESS)).toBe(false);
    expect(passes(null, "192.0.2.2")).toBe(true);
    expect(signingIn(limiter, 50, "a@example.com", NOON)).toBe(10);
  });

  test("sign-ins tell all identifiers apart, lone surrogates included", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const texts = [
      "\ud800@example.com",
      "\udc00@example.com",
      "\u{1f600}@example.com",
      "ñ@example.com",
      "n@example.com",
    ];
    for (const text of [...texts, "\u0141@example.com", "A@example.com"]) {
      expect(signingIn(limiter, 50, text, NOON)).toBe(10);
    }
  });

  test("a refresh counts by the address, whoever sends it", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const consume = (userId: number | null, address: string) => () =>
      countOne(limiter, REFRESH, "refresh", userId, address, NOON, "ignored");
    expect(consume(1, ADDRESS)()).toEqual({ limit: 20, remaining: 19, reset: 60 });
    for (let i = 0; i < 19; i++)
      expect(attempt(consume(i % 2 === 0 ? null : i, ADDRESS))).not.toBeInstanceOf(RateLimited);
    for (const userId of [null, 1, 99]) expect(attempt(consume(userId, ADDRESS))).toBeInstanceOf(RateLimited);
    expect(attempt(consume(1, "192.0.2.2"))).not.toBeInstanceOf(RateLimited);
  });

  test("peek shows all buckets of sign-ins, and takes nothing", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const peek = (rateClass: RateClass, now: number, identifier?: string, isKnown = false): RateBucketState[] =>
      peekAt(limiter, rateClass === "refresh" ? REFRESH : LOGIN, rateClass, 1, ADDRESS, now, identifier, 1, isKnown);
    for (let i = 0; i < 50; i++) {
      const whole = { limit: 10, remaining: 10, reset: 0 };
      const ofAddress = { scope: "address", limit: 100, remaining: 100, reset: 0 };
      expect(peek("identifier", NOON, "a@example.com")).toEqual([{ scope: "identifier", ...whole }, ofAddress]);
      expect(peek("identifier", NOON, "a@example.com", true)).toEqual([
        { scope: "identifier", ...whole },
        { scope: "known_address", ...whole },
        ofAddress,
      ]);
      expect(peek("identifier", NOON)).toEqual([ofAddress]);
      expect(peek("refresh", NOON)).toEqual([{ scope: "address", limit: 20, remaining: 20, reset: 0 }]);
    }
    countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON, "a@example.com");
    countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON);
    countOne(limiter, REFRESH, "refresh", null, ADDRESS, NOON);
    const later = NOON + 1_500;
    const ofIdentifier = { scope: "identifier", limit: 10, remaining: 9, reset: 59 };
    const ofAddress = { scope: "address", limit: 100, remaining: 98, reset: 59 };
    expect(peek("identifier", later, "a@example.com")).toEqual([ofIdentifier, ofAddress]);
    const ofPair = { scope: "known_address", remaining: 10 };
    expect(peek("identifier", later, "a@example.com", true)).toMatchObject([ofIdentifier, ofPair, ofAddress]);
    expect(peek("identifier", later)).toEqual([ofAddress]);
    expect(peek("refresh", later)).toEqual([{ scope: "address", limit: 20, remaining: 19, reset: 59 }]);
  });
});

test("the class none has no limit", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, user: 1, address: 1 });
  for (let i = 0; i < 5; i++) expect(countOne(limiter, "GET /livez", "none", null, ADDRESS, NOON)).toBeNull();
  expect(peekAt(limiter, "GET /livez", "none", null, ADDRESS, NOON)).toEqual([]);
});

test("peek shows the buckets of a request and takes nothing", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  const peek = (userId: number | null, now: number): RateBucketState[] =>
    peekAt(limiter, PLACE, "order", userId, ADDRESS, now);
  const untouched = [
    { scope: "user", limit: 30, remaining: 30, reset: 0 },
    { scope: "address", limit: 60, remaining: 60, reset: 0 },
  ];
  for (let i = 0; i < 200; i++) expect(peek(1, NOON)).toEqual(untouched);
  expect(peek(null, NOON)).toEqual([{ scope: "address", limit: 100, remaining: 100, reset: 0 }]);
  expect(peekAt(limiter, "GET /time", "default", 1, ADDRESS, NOON)).toEqual([
    { scope: "user", limit: 100, remaining: 100, reset: 0 },
  ]);
  countOne(limiter, PLACE, "order", 1, ADDRESS, NOON);
  countOne(limiter, PLACE, "order", 2, ADDRESS, NOON + 2_500);
  expect(peek(1, NOON + 2_600)).toEqual([
    { scope: "user", limit: 30, remaining: 29, reset: 58 },
    { scope: "address", limit: 60, remaining: 58, reset: 60 },
  ]);
  expect(peek(1, NOON + 62_500)).toEqual(untouched);
});

describe("a clock that steps back", () => {
  test("a clock that steps back by seconds lets no more pass, and counts again when it has caught up", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    expect(passing(limiter, 30, 1, NOON)).toBe(30);
    expect(passing(limiter, 30, 1, NOON - 30_000)).toBe(0);
    expect(passing(limiter, 30, 1, NOON + 59_999)).toBe(0);
    expect(passing(limiter, 31, 1, NOON + 60_000)).toBe(30);
  });

  test("a clock that steps back by hours lets no more pass, and locks nobody out for longer than the minute", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const earlier = NOON - 5 * 3_600_000;
    expect(passing(limiter, 30, 1, NOON)).toBe(30);
    const refused = attempt(() => countOne(limiter, PLACE, "order", 1, ADDRESS, earlier)) as RateLimited;
    expect(refused.retryAfter).toBe(60);
    expect(passing(limiter, 30, 1, earlier + 59_999)).toBe(0);
    expect(passing(limiter, 31, 1, earlier + 60_000)).toBe(30);
  });

  test("a clock that steps back and forth doesn't make the minute shorter", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    expect(passing(limiter, 30, 1, NOON)).toBe(30);
    for (let i = 0; i < 10_000; i++) peekAt(limiter, PLACE, "order", 1, ADDRESS, NOON + (i % 2) * 1_000);
    expect(passing(limiter, 30, 1, NOON + 59_999)).toBe(0);
  });
});

test("a burst after a few requests far apart is counted with them", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 3, 1, NOON)).toBe(3);
  expect(passing(limiter, 1, 1, NOON + 30_000)).toBe(1);
  expect(passing(limiter, 40, 1, NOON + 60_000)).toBe(29);
  expect(passing(limiter, 40, 1, NOON + 90_000)).toBe(1);
  expect(passing(limiter, 40, 1, NOON + 120_000)).toBe(29);
});
