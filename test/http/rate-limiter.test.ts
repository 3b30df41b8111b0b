/** The rate limiter beside a plain list of what passed, and what it says of itself. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  MAX_ADDRESS_RATE_BUCKETS,
  MAX_IDENTIFIER_RATE_BUCKETS,
  MAX_KNOWN_RATE_BUCKETS,
  MAX_USER_RATE_BUCKETS,
} from "../../server/http/limits.ts";
import {
  DEFAULT_RATE_LIMITS,
  type RateBucketState,
  type RateClass,
  RateLimited,
  RateLimiter,
  type RateLimits,
  type RateState,
} from "../../server/http/rate-limiter.ts";
import { EFFORT } from "../support/projects.ts";

const PLACE = "POST /orders";
const CANCEL = "DELETE /orders/:id";
const TIME = "GET /time";
const LOGIN = "POST /auth/login";
const REGISTER = "POST /auth/register";
const REFRESH = "POST /auth/refresh";
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
    if (!(attempt(() => limiter.consume(PLACE, "order", userId, address, now)) instanceof RateLimited)) passed++;
  }
  return passed;
}

test("30 orders at once pass and the 31st doesn't, until a minute after the first", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  for (let left = 29; left >= 0; left--) {
    expect(limiter.consume(PLACE, "order", 1, ADDRESS, NOON)).toEqual({ limit: 30, remaining: left, reset: 60 });
  }
  const refused = attempt(() => limiter.consume(PLACE, "order", 1, ADDRESS, NOON + 500)) as RateLimited;
  expect(refused).toBeInstanceOf(RateLimited);
  expect(refused.kind.code).toBe(42900);
  expect(refused.message).toContain(PLACE);
  expect(refused.retryAfter).toBe(60);
  expect(refused.rate).toEqual({ limit: 30, remaining: 0, reset: 60 });
  expect((attempt(() => limiter.consume(PLACE, "order", 1, ADDRESS, NOON + 59_999)) as RateLimited).retryAfter).toBe(1);
  expect(passing(limiter, 100, 1, NOON + 60_000)).toBe(30);
});

test("a user's limit that changes counts from the next request on, beside a plain list of what passed", () => {
  const steps = fc.array(fc.record({ wait: fc.nat(20_000), factor: fc.integer({ min: 1, max: 4 }) }), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(steps, (list) => {
      const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, user: 3 });
      const passed: number[] = [];
      let now = NOON;
      for (const { wait, factor } of list) {
        now += wait;
        const limit = 3 * factor;
        const used = passed.filter((at) => at > now - 60_000);
        const [shown] = limiter.peek(TIME, "default", 1, ADDRESS, now, "", factor);
        expect(shown).toMatchObject({ limit, remaining: Math.max(0, limit - used.length) });
        const answer = attempt(() => limiter.consume(TIME, "default", 1, ADDRESS, now, "", factor));
        if (used.length < limit) {
          expect(answer).toEqual({ limit, remaining: limit - used.length - 1, reset: 60 });
          passed.push(now);
        } else {
          expect(answer).toBeInstanceOf(RateLimited);
          const free = used[used.length - limit]! + 60_000;
          expect((answer as RateLimited).retryAfter).toBe(Math.ceil((free - now) / 1_000));
          expect((answer as RateLimited).rate).toMatchObject({ limit, remaining: 0 });
        }
        // Another user's stays.
        expect(limiter.peek(TIME, "default", 2, ADDRESS, now)[0]).toMatchObject({ limit: 3, remaining: 3 });
      }
    }),
  );
});

test("no burst of twice the limit passes across the end of a minute", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 10, 1, NOON)).toBe(10);
  expect(passing(limiter, 100, 1, NOON + 59_000)).toBe(20);
  expect(passing(limiter, 100, 1, NOON + 60_000)).toBe(10);
  const refused = attempt(() => limiter.consume(PLACE, "order", 1, ADDRESS, NOON + 60_000)) as RateLimited;
  expect(refused.retryAfter).toBe(59);
  expect(refused.rate.reset).toBe(60);
});

test("an address is full at 60 orders, whoever sends them, and that takes nothing from the user", () => {
  const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
  expect(passing(limiter, 30, 1, NOON)).toBe(30);
  expect(passing(limiter, 20, 2, NOON + 1_000)).toBe(20);
  expect(limiter.consume(PLACE, "order", 3, ADDRESS, NOON)).toEqual({ limit: 60, remaining: 9, reset: 60 });
  expect(passing(limiter, 30, 3, NOON + 2_000)).toBe(9);
  const refused = attempt(() => limiter.consume(PLACE, "order", 3, ADDRESS, NOON + 2_000)) as RateLimited;
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
  limiter.consume(PLACE, "order", 1, ADDRESS, NOON);
  limiter.consume(PLACE, "order", 2, ADDRESS, NOON + 10_000);
  const first = attempt(() => limiter.consume(PLACE, "order", 1, ADDRESS, NOON + 20_000)) as RateLimited;
  expect(first.retryAfter).toBe(40);
  const second = attempt(() => limiter.consume(PLACE, "order", 2, ADDRESS, NOON + 20_000)) as RateLimited;
  expect(second.retryAfter).toBe(50);
  expect(second.rate.limit).toBe(1);
  limiter.consume(PLACE, "order", 3, "192.0.2.2", NOON + 20_000);
  limiter.consume(PLACE, "order", 4, "192.0.2.2", NOON + 30_000);
  const third = attempt(() => limiter.consume(PLACE, "order", 1, "192.0.2.2", NOON + 30_000)) as RateLimited;
  expect(third.retryAfter).toBe(50);
  expect(third.rate).toEqual({ limit: 2, remaining: 0, reset: 60 });
});

test("routes, users, and requests without a user don't share; users on the default class don't share addresses", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, user: 1, address: 1, orderUser: 1, orderAddress: 1 });
  const passes = (route: string, rateClass: RateClass, userId: number | null): boolean =>
    !(attempt(() => limiter.consume(route, rateClass, userId, ADDRESS, NOON)) instanceof RateLimited);
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

/** How many of `count` sign-ins at once pass. */
function signingIn(limiter: RateLimiter, count: number, identifier: string, now: number, route = LOGIN): number {
  let passed = 0;
  for (let i = 0; i < count; i++) {
    // The address changes and a token comes along now and then: neither matters.
    const take = () => limiter.consume(route, "identifier", i % 3 || null, `192.0.2.${i % 250}`, now, identifier);
    if (!(attempt(take) instanceof RateLimited)) passed++;
  }
  return passed;
}

describe("sign-in", () => {
  test("counts by the identifier, on each route, from whatever strange address", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    expect(limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON, "a@example.com")).toEqual({
      limit: 10,
      remaining: 9,
      reset: 60,
    });
    expect(signingIn(limiter, 500, "a@example.com", NOON)).toBe(9);
    expect(signingIn(limiter, 500, "b@example.com", NOON)).toBe(10);
    expect(signingIn(limiter, 500, "a@example.com", NOON, REGISTER)).toBe(10);
    const refused = attempt(() => limiter.consume(LOGIN, "identifier", 1, ADDRESS, NOON + 500, "a@example.com"));
    expect(refused).toBeInstanceOf(RateLimited);
    expect((refused as RateLimited).rate).toEqual({ limit: 10, remaining: 0, reset: 60 });
    expect((refused as RateLimited).retryAfter).toBe(60);
  });

  test("of any minute, however it lies, 10 with one identifier pass", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    expect(signingIn(limiter, 3, "a@example.com", NOON)).toBe(3);
    expect(signingIn(limiter, 50, "a@example.com", NOON + 59_999)).toBe(7);
    expect(signingIn(limiter, 50, "a@example.com", NOON + 60_000)).toBe(3);
    expect(signingIn(limiter, 50, "a@example.com", NOON + 119_998)).toBe(0);
    expect(signingIn(limiter, 50, "a@example.com", NOON + 119_999)).toBe(7);
  });

  test("of strangers leaves the owner ten from each known address, and the owner's take nothing from the identifier", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const home = (address = ADDRESS, identifier = "a@example.com") =>
      attempt(() => limiter.consume(LOGIN, "identifier", null, address, NOON, identifier, 1, true));
    expect(signingIn(limiter, 500, "a@example.com", NOON)).toBe(10);
    for (let left = 9; left >= 0; left--) expect(home()).toEqual({ limit: 10, remaining: left, reset: 60 });
    expect((home() as RateLimited).rate).toEqual({ limit: 10, remaining: 0, reset: 60 });
    // Another address that is known, and another account at the same one, have theirs.
    expect(home("198.51.100.1")).toMatchObject({ remaining: 9 });
    expect(home(ADDRESS, "b@example.com")).toMatchObject({ remaining: 9 });
    expect(signingIn(limiter, 500, "b@example.com", NOON)).toBe(10);
  });

  test("from one address 100 pass, whatever they name and whoever is known there; a refusal takes nothing from either", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const take = (n: number, isKnown = false) =>
      attempt(() => limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON, `${n}@example.com`, 1, isKnown));
    for (let n = 0; n < 100; n++) expect(take(n, n % 2 === 0)).not.toBeInstanceOf(RateLimited);
    for (const isKnown of [false, true]) {
      for (let n = 0; n < 200; n++) {
        expect((take(n, isKnown) as RateLimited).rate).toEqual({ limit: 100, remaining: 0, reset: 60 });
      }
    }
    expect(attempt(() => limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON))).toBeInstanceOf(RateLimited);
    // What the address was refused is there for others to use.
    for (let n = 100; n < 200; n++) expect(signingIn(limiter, 20, `${n}@example.com`, NOON)).toBe(10);
    // And what an identifier was refused is there for the address.
    const fresh = new RateLimiter(DEFAULT_RATE_LIMITS);
    for (let i = 0; i < 500; i++)
      attempt(() => fresh.consume(LOGIN, "identifier", null, ADDRESS, NOON, "a@example.com"));
    expect(fresh.peek(LOGIN, "identifier", null, ADDRESS, NOON)).toMatchObject([{ remaining: 90 }]);
  });

  test("refused by both, waits for the later of the two", () => {
    const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 10 });
    const take = (at: number) =>
      attempt(() => limiter.consume(LOGIN, "identifier", null, ADDRESS, at, "a@example.com")) as RateLimited;
    for (let i = 0; i < 5; i++) limiter.consume(LOGIN, "identifier", null, "192.0.2.9", NOON + 20_000, "a@example.com");
    for (let i = 0; i < 5; i++) limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON + 20_000, "a@example.com");
    for (let i = 0; i < 5; i++) limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON + 40_000, "b@example.com");
    expect(take(NOON + 50_000).retryAfter).toBe(30);
    expect(take(NOON + 79_500).retryAfter).toBe(1);
  });

  test("without an identifier counts by the address, and takes nothing from the identifiers", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const passes = (userId: number | null, address: string): boolean =>
      !(attempt(() => limiter.consume(LOGIN, "identifier", userId, address, NOON)) instanceof RateLimited);
    for (let i = 0; i < 100; i++) expect(passes(i % 2 === 0 ? null : i, ADDRESS)).toBe(true);
    expect(passes(null, ADDRESS)).toBe(false);
    expect(passes(7, ADDRESS)).toBe(false);
    expect(passes(null, "192.0.2.2")).toBe(true);
    expect(signingIn(limiter, 50, "a@example.com", NOON)).toBe(10);
  });

  test("knows any text as the identifier that it is, pairs of surrogates torn apart included", () => {
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

  test("a refresh counts by the address, whoever asks", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const take = (userId: number | null, address: string) => () =>
      limiter.consume(REFRESH, "refresh", userId, address, NOON, "ignored");
    expect(take(1, ADDRESS)()).toEqual({ limit: 20, remaining: 19, reset: 60 });
    for (let i = 0; i < 19; i++) expect(attempt(take(i % 2 === 0 ? null : i, ADDRESS))).not.toBeInstanceOf(RateLimited);
    for (const userId of [null, 1, 99]) expect(attempt(take(userId, ADDRESS))).toBeInstanceOf(RateLimited);
    expect(attempt(take(1, "192.0.2.2"))).not.toBeInstanceOf(RateLimited);
  });

  test("peek shows it all and takes nothing", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const peek = (rateClass: RateClass, now: number, identifier?: string, isKnown = false): RateBucketState[] =>
      limiter.peek(rateClass === "refresh" ? REFRESH : LOGIN, rateClass, 1, ADDRESS, now, identifier, 1, isKnown);
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
    limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON, "a@example.com");
    limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON);
    limiter.consume(REFRESH, "refresh", null, ADDRESS, NOON);
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

test("nothing limits the class none", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, user: 1, address: 1 });
  for (let i = 0; i < 5; i++) expect(limiter.consume("GET /livez", "none", null, ADDRESS, NOON)).toBeNull();
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
  limiter.consume(PLACE, "order", 1, ADDRESS, NOON);
  limiter.consume(PLACE, "order", 2, ADDRESS, NOON + 2_500);
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
    const refused = attempt(() => limiter.consume(PLACE, "order", 1, ADDRESS, earlier)) as RateLimited;
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
    !(attempt(() => limiter.consume("GET /time", "default", null, address, NOON)) instanceof RateLimited);
  const isKnown = (address: string): boolean =>
    limiter.peek("GET /time", "default", null, address, NOON)[0]!.remaining === 0;
  const flood = Array.from({ length: MAX_ADDRESS_RATE_BUCKETS }, (_, i) => `2001:db8:0:${i.toString(16)}::/64`);
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

describe("a flood", () => {
  const VICTIM = "victim@example.com";

  /** A limiter whose every kind of bucket holds something, and a check that the other kinds hold it still. */
  function watched(): { limiter: RateLimiter; keeps: (...kinds: ("user" | "address" | "identifier")[]) => void } {
    // One address may name as many as a flood of identifiers has.
    const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 1_000_000_000 });
    expect(passing(limiter, 50, 1, NOON)).toBe(30);
    expect(signingIn(limiter, 50, VICTIM, NOON)).toBe(10);
    for (let i = 0; i < 5; i++) limiter.consume(REFRESH, "refresh", null, ADDRESS, NOON);
    const left = {
      user: () => limiter.peek(PLACE, "order", 1, ADDRESS, NOON)[0]!.remaining === 0,
      address: () =>
        limiter.peek(PLACE, "order", 1, ADDRESS, NOON)[1]!.remaining === 30 &&
        limiter.peek(REFRESH, "refresh", null, ADDRESS, NOON)[0]!.remaining === 15,
      identifier: () => limiter.peek(LOGIN, "identifier", null, ADDRESS, NOON, VICTIM)[0]!.remaining === 0,
    };
    return { limiter, keeps: (...kinds) => expect(kinds.filter((kind) => !left[kind]())).toEqual([]) };
  }

  test("of 300,000 addresses leaves users and identifiers as they were", () => {
    const { limiter, keeps } = watched();
    for (let i = 0; i < 300_000; i++) {
      const address = `2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::/64`;
      if (i % 3 === 0) limiter.consume(TIME, "default", null, address, NOON);
      else if (i % 3 === 1) limiter.consume(REFRESH, "refresh", null, address, NOON);
      else limiter.consume(LOGIN, "identifier", null, address, NOON);
    }
    keeps("user", "identifier");
  });

  test("of identifiers leaves users and addresses as they were, and forgets the oldest identifiers only", () => {
    const { limiter, keeps } = watched();
    const flood = (from: number, to: number): void => {
      for (let i = from; i < to; i++) limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON, `${i}@example.com`);
    };
    flood(0, MAX_IDENTIFIER_RATE_BUCKETS - 1);
    keeps("user", "address", "identifier");
    // The victim's is the oldest, and a peek is no use.
    flood(MAX_IDENTIFIER_RATE_BUCKETS - 1, MAX_IDENTIFIER_RATE_BUCKETS);
    keeps("user", "address");
    expect(() => keeps("identifier")).toThrow();
    const used = (i: number): number =>
      10 - limiter.peek(LOGIN, "identifier", null, ADDRESS, NOON, `${i}@example.com`)[0]!.remaining;
    for (let i = 0; i < MAX_IDENTIFIER_RATE_BUCKETS; i++) if (used(i) !== 1) expect(used(i), `${i}`).toBe(1);
  });

  test("of users leaves addresses and identifiers as they were", () => {
    const { limiter, keeps } = watched();
    for (let i = 0; i <= MAX_USER_RATE_BUCKETS; i++) limiter.consume(TIME, "default", i + 2, ADDRESS, NOON);
    keeps("address", "identifier");
    expect(() => keeps("user")).toThrow();
  });

  test("of one user's orders from many addresses leaves the addresses as they were", () => {
    const { limiter, keeps } = watched();
    for (let i = 0; i <= MAX_ADDRESS_RATE_BUCKETS; i++) {
      attempt(() => limiter.consume(CANCEL, "order", 1, `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, NOON));
    }
    keeps("user", "address", "identifier");
  });

  test("of refused sign-ins from many addresses, or with many names, makes no bucket", () => {
    const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 1 });
    expect(signingIn(limiter, 10, VICTIM, NOON)).toBe(10);
    const oldest = "192.0.2.0";
    for (let i = 0; i <= MAX_ADDRESS_RATE_BUCKETS; i++) {
      const address = `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
      attempt(() => limiter.consume(LOGIN, "identifier", null, address, NOON, VICTIM));
    }
    expect(limiter.peek(LOGIN, "identifier", null, oldest, NOON)[0]!.remaining).toBe(0);
    for (let i = 0; i <= MAX_IDENTIFIER_RATE_BUCKETS; i++) {
      attempt(() => limiter.consume(LOGIN, "identifier", null, oldest, NOON, `${i}@example.com`));
    }
    expect(limiter.peek(LOGIN, "identifier", null, ADDRESS, NOON, VICTIM)[0]!.remaining).toBe(0);
  });

  test("of accounts at known addresses forgets the oldest of those only", () => {
    const { limiter, keeps } = watched();
    const take = (n: number) =>
      limiter.consume(LOGIN, "identifier", null, `10.0.${n >> 8}.${n & 255}`, NOON, `${n}@example.com`, 1, true);
    for (let n = 0; n <= MAX_KNOWN_RATE_BUCKETS; n++) take(n);
    keeps("user", "address", "identifier");
    const left = (n: number): number =>
      limiter.peek(LOGIN, "identifier", null, `10.0.${n >> 8}.${n & 255}`, NOON, `${n}@example.com`, 1, true)[1]!
        .remaining;
    expect([left(0), left(1), left(MAX_KNOWN_RATE_BUCKETS)]).toEqual([10, 9, 9]);
  });

  test("of refused guesses keeps their bucket the newest", () => {
    const { limiter, keeps } = watched();
    for (let i = 0; i < 2 * MAX_IDENTIFIER_RATE_BUCKETS; i++) {
      limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON, `${i}@example.com`);
      if (i % 100_000 === 0) expect(signingIn(limiter, 1, VICTIM, NOON)).toBe(0);
    }
    keeps("user", "address", "identifier");
  });
});

describe("memory", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const heapMb = (): number => {
    // The first may leave buffers behind whose owners it takes away.
    collectGarbage();
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return (heapUsed + external) / 1e6;
  };

  test("600,000 addresses take no more than as many buckets as are remembered", () => {
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const before = heapMb();
    for (let i = 0; i < 600_000; i++) {
      limiter.consume(
        TIME,
        "default",
        null,
        `2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::/64`,
        NOON + i,
      );
    }
    expect(heapMb() - before).toBeLessThan((MAX_ADDRESS_RATE_BUCKETS * 400) / 1e6);
    expect(limiter.peek(TIME, "default", null, "2001:db8:9:27bf::/64", NOON + 6e5)[0]!.remaining).toBe(99);
  });

  test("buckets that were full and went to others don't keep their room", () => {
    const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 1_000 });
    const flood = (name: string, count: number): void => {
      for (let i = 0; i < MAX_ADDRESS_RATE_BUCKETS; i++) {
        for (let j = 0; j < count; j++) limiter.consume(TIME, "default", null, `${name}${i}`, NOON);
      }
    };
    flood("small", 1);
    const before = heapMb();
    flood("large", 33);
    expect(heapMb() - before).toBeGreaterThan(40);
    flood("small", 1);
    expect(heapMb() - before).toBeLessThan(10);
  });

  test("an identifier cut out of a body doesn't keep the body", () => {
    const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 1_000 });
    const before = heapMb();
    for (let i = 0; i < 1_000; i++) {
      const body = Buffer.alloc(64 * 1024, `somebody-${i}@example.com `).toString("latin1");
      limiter.consume(LOGIN, "identifier", null, ADDRESS, NOON, body.slice(0, body.indexOf(" ")));
    }
    expect(heapMb() - before).toBeLessThan(5);
    expect(limiter.peek(LOGIN, "identifier", null, ADDRESS, NOON, "somebody-7@example.com")[0]!.remaining).toBe(9);
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

const seed = Number(process.env["TEST_SEED"] ?? Date.now() % 2 ** 31);

test("of any minute no more than the limit passes, and never less than it could, beside a plain list", () => {
  process.stdout.write(`rate limiter: TEST_SEED=${seed}\n`);
  const limits: RateLimits = {
    user: 5,
    address: 3,
    orderUser: 3,
    orderAddress: 4,
    authIdentifier: 4,
    refreshAddress: 7,
    registrationAddress: 20,
  };
  const step = fc.record({
    wait: fc.oneof(
      { weight: 10, arbitrary: fc.constant(0) },
      { weight: 20, arbitrary: fc.integer({ min: 0, max: 30_000 }) },
      { weight: 1, arbitrary: fc.constantFrom(59_999, 60_000) },
    ),
    count: fc.integer({ min: 1, max: 8 }),
    kind: fc.constantFrom(
      ...([
        [PLACE, "order"],
        [CANCEL, "order"],
        [TIME, "default"],
        [LOGIN, "identifier"],
        [REGISTER, "identifier"],
        [REFRESH, "refresh"],
        ["GET /livez", "none"],
      ] as const),
    ),
    userId: fc.constantFrom(1, 2, 3, null),
    address: fc.constantFrom("a", "b"),
    identifier: fc.constantFrom("", "a", "b"),
    isKnown: fc.boolean(),
  });
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
  const repeated = (first: Step): Step[] =>
    Array.from({ length: first.count }, (_, i) => (i === 0 ? first : { ...first, wait: 0 }));
  /** The names of what counts a request, and their limits. */
  const countedBy = ({ kind: [, rateClass], userId, address, identifier, isKnown }: Step): [string, number][] => {
    if (rateClass === "none") return [];
    if (rateClass === "refresh") return [[`refresh ${address}`, limits.refreshAddress]];
    if (rateClass === "identifier" && identifier !== "") {
      const name = isKnown ? `${identifier} at ${address}` : `identifier ${identifier}`;
      return [
        [name, limits.authIdentifier],
        [`address ${address}`, limits.address],
      ];
    }
    if (rateClass === "identifier" || userId === null) return [[`address ${address}`, limits.address]];
    if (rateClass === "default") return [[`user ${userId}`, limits.user]];
    return [
      [`user ${userId}`, limits.orderUser],
      [`order address ${address}`, limits.orderAddress],
    ];
  };
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const limiter = new RateLimiter(limits);
      const passed: { name: string; at: number }[] = [];
      let now = NOON;
      for (const one of steps.flatMap(repeated)) {
        const { wait, userId, address, identifier, isKnown } = one;
        const [route, rateClass] = one.kind;
        now += wait;
        const names = countedBy(one).map(([name, limit]) => [`${route} ${name}`, limit] as const);
        const countOf = (name: string): number =>
          passed.filter((other) => other.name === name && other.at > now - 60_000).length;
        const free = (): number[] => names.map(([name, limit]) => limit - countOf(name));
        const expected = free().every((count) => count > 0);
        if (expected) for (const [name] of names) passed.push({ name, at: now });

        const state = attempt(() => limiter.consume(route, rateClass, userId, address, now, identifier, 1, isKnown));
        if (state instanceof RateLimited) {
          expect(expected).toBe(false);
          // When the last of those that are full has room.
          const waits = names
            .filter(([name, limit]) => countOf(name) === limit)
            .map(([name]) => passed.find((other) => other.name === name && other.at > now - 60_000)!.at + 60_000 - now);
          expect(state.retryAfter).toBe(Math.ceil(Math.max(...waits) / 1_000));
          expect(state.rate.remaining).toBe(0);
        } else {
          expect(expected).toBe(true);
          expect(state?.remaining ?? null).toBe(names.length === 0 ? null : Math.min(...free()));
        }
        const all = limiter.peek(route, rateClass, userId, address, now, identifier, 1, isKnown);
        // Beside what such a request takes from, what strangers have.
        const ofKnown = all.some(({ scope }) => scope === "known_address");
        const shown = all.filter(({ scope }) => scope !== "identifier" || !ofKnown);
        expect(shown.map(({ remaining }) => remaining)).toEqual(free());
        expect(shown.map(({ limit }) => limit)).toEqual(names.map(([, limit]) => limit));
      }
    }),
    { seed, numRuns: 60 * EFFORT },
  );
});
