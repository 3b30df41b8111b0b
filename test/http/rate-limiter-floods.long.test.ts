/**
 * Floods against the rate limiter: one kind of key evicts the least recently used of its own kind and nothing else, and
 * memory is bounded. The limits are rate-limiter.test.ts.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import {
  MAX_ADDRESS_RATE_BUCKETS,
  MAX_IDENTIFIER_RATE_BUCKETS,
  MAX_KNOWN_RATE_BUCKETS,
  MAX_USER_RATE_BUCKETS,
} from "../../server/http/limits.ts";
import { DEFAULT_RATE_LIMITS, RateLimited, RateLimiter } from "../../server/http/rate-limiter.ts";
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
  signingIn,
  TIME,
} from "./limiter-requests.ts";

test("a flood of addresses evicts the least recently used buckets, one for each new one", () => {
  const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 1 });
  const passes = (address: string): boolean =>
    !(attempt(() => countOne(limiter, "GET /time", "default", null, address, NOON)) instanceof RateLimited);
  const isKnown = (address: string): boolean =>
    peekAt(limiter, "GET /time", "default", null, address, NOON)[0]!.remaining === 0;
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

  /** A limiter with buckets of every kind, and a check that those of some kinds are unchanged. */
  function watched(): { limiter: RateLimiter; keeps: (...kinds: ("user" | "address" | "identifier")[]) => void } {
    // One address may send a whole flood of identifiers.
    const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 1_000_000_000 });
    expect(passing(limiter, 50, 1, NOON)).toBe(30);
    expect(signingIn(limiter, 50, VICTIM, NOON)).toBe(10);
    for (let i = 0; i < 5; i++) countOne(limiter, REFRESH, "refresh", null, ADDRESS, NOON);
    const left = {
      user: () => peekAt(limiter, PLACE, "order", 1, ADDRESS, NOON)[0]!.remaining === 0,
      address: () =>
        peekAt(limiter, PLACE, "order", 1, ADDRESS, NOON)[1]!.remaining === 30 &&
        peekAt(limiter, REFRESH, "refresh", null, ADDRESS, NOON)[0]!.remaining === 15,
      identifier: () => peekAt(limiter, LOGIN, "identifier", null, ADDRESS, NOON, VICTIM)[0]!.remaining === 0,
    };
    return { limiter, keeps: (...kinds) => expect(kinds.filter((kind) => !left[kind]())).toEqual([]) };
  }

  test("a flood of 300,000 addresses leaves users and identifiers unchanged", () => {
    const { limiter, keeps } = watched();
    for (let i = 0; i < 300_000; i++) {
      const address = `2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::/64`;
      if (i % 3 === 0) countOne(limiter, TIME, "default", null, address, NOON);
      else if (i % 3 === 1) countOne(limiter, REFRESH, "refresh", null, address, NOON);
      else countOne(limiter, LOGIN, "identifier", null, address, NOON);
    }
    keeps("user", "identifier");
  });

  test("a flood of identifiers leaves users and addresses unchanged, and evicts the oldest identifiers only", () => {
    const { limiter, keeps } = watched();
    const flood = (from: number, to: number): void => {
      for (let i = from; i < to; i++) countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON, `${i}@example.com`);
    };
    flood(0, MAX_IDENTIFIER_RATE_BUCKETS - 1);
    keeps("user", "address", "identifier");
    // The victim's bucket is the oldest, and a peek doesn't count as a use.
    flood(MAX_IDENTIFIER_RATE_BUCKETS - 1, MAX_IDENTIFIER_RATE_BUCKETS);
    keeps("user", "address");
    expect(() => keeps("identifier")).toThrow();
    const used = (i: number): number =>
      10 - peekAt(limiter, LOGIN, "identifier", null, ADDRESS, NOON, `${i}@example.com`)[0]!.remaining;
    for (let i = 0; i < MAX_IDENTIFIER_RATE_BUCKETS; i++) if (used(i) !== 1) expect(used(i), `${i}`).toBe(1);
  });

  test("a flood of users leaves addresses and identifiers unchanged", () => {
    const { limiter, keeps } = watched();
    for (let i = 0; i <= MAX_USER_RATE_BUCKETS; i++) countOne(limiter, TIME, "default", i + 2, ADDRESS, NOON);
    keeps("address", "identifier");
    expect(() => keeps("user")).toThrow();
  });

  test("a flood of one user's orders from many addresses leaves the addresses unchanged", () => {
    const { limiter, keeps } = watched();
    for (let i = 0; i <= MAX_ADDRESS_RATE_BUCKETS; i++) {
      attempt(() => countOne(limiter, CANCEL, "order", 1, `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, NOON));
    }
    keeps("user", "address", "identifier");
  });

  test("a flood of rejected sign-ins from many addresses, or with many names, creates no bucket", () => {
    const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 1 });
    expect(signingIn(limiter, 10, VICTIM, NOON)).toBe(10);
    const oldest = "192.0.2.0";
    for (let i = 0; i <= MAX_ADDRESS_RATE_BUCKETS; i++) {
      const address = `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
      attempt(() => countOne(limiter, LOGIN, "identifier", null, address, NOON, VICTIM));
    }
    expect(peekAt(limiter, LOGIN, "identifier", null, oldest, NOON)[0]!.remaining).toBe(0);
    for (let i = 0; i <= MAX_IDENTIFIER_RATE_BUCKETS; i++) {
      attempt(() => countOne(limiter, LOGIN, "identifier", null, oldest, NOON, `${i}@example.com`));
    }
    expect(peekAt(limiter, LOGIN, "identifier", null, ADDRESS, NOON, VICTIM)[0]!.remaining).toBe(0);
  });

  test("a flood of accounts at known addresses evicts the oldest of those only", () => {
    const { limiter, keeps } = watched();
    const consume = (n: number) =>
      countOne(limiter, LOGIN, "identifier", null, `10.0.${n >> 8}.${n & 255}`, NOON, `${n}@example.com`, 1, true);
    for (let n = 0; n <= MAX_KNOWN_RATE_BUCKETS; n++) consume(n);
    keeps("user", "address", "identifier");
    const left = (n: number): number =>
      peekAt(limiter, LOGIN, "identifier", null, `10.0.${n >> 8}.${n & 255}`, NOON, `${n}@example.com`, 1, true)[1]!
        .remaining;
    expect([left(0), left(1), left(MAX_KNOWN_RATE_BUCKETS)]).toEqual([10, 9, 9]);
  });

  test("a flood of rejected guesses keeps their bucket the newest", () => {
    const { limiter, keeps } = watched();
    for (let i = 0; i < 2 * MAX_IDENTIFIER_RATE_BUCKETS; i++) {
      countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON, `${i}@example.com`);
      if (i % 100_000 === 0) expect(signingIn(limiter, 1, VICTIM, NOON)).toBe(0);
    }
    keeps("user", "address", "identifier");
  });
});

describe("memory", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const heapMb = (): number => {
    // The first collection may free the owners of buffers, and the second one the buffers.
    collectGarbage();
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return (heapUsed + external) / 1e6;
  };

  test("300,000 addresses take no more than the most buckets that the limiter keeps", () => {
    const ADDRESSES = 300_000;
    expect(ADDRESSES).toBeGreaterThan(2 * MAX_ADDRESS_RATE_BUCKETS);
    const addressOf = (i: number): string => `2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::/64`;
    const limiter = new RateLimiter(DEFAULT_RATE_LIMITS);
    const before = heapMb();
    for (let i = 0; i < ADDRESSES; i++) {
      countOne(limiter, TIME, "default", null, addressOf(i), NOON + i);
    }
    expect(heapMb() - before).toBeLessThan((MAX_ADDRESS_RATE_BUCKETS * 400) / 1e6);
    const newest = peekAt(limiter, TIME, "default", null, addressOf(ADDRESSES - 1), NOON + ADDRESSES);
    expect(newest[0]!.remaining).toBe(99);
  });

  test("buckets that were full shrink when others take them over", () => {
    const limiter = new RateLimiter({ ...DEFAULT_RATE_LIMITS, address: 1_000 });
    const flood = (name: string, count: number): void => {
      for (let i = 0; i < MAX_ADDRESS_RATE_BUCKETS; i++) {
        for (let j = 0; j < count; j++) countOne(limiter, TIME, "default", null, `${name}${i}`, NOON);
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
      countOne(limiter, LOGIN, "identifier", null, ADDRESS, NOON, body.slice(0, body.indexOf(" ")));
    }
    expect(heapMb() - before).toBeLessThan(5);
    expect(peekAt(limiter, LOGIN, "identifier", null, ADDRESS, NOON, "somebody-7@example.com")[0]!.remaining).toBe(9);
  });
});
