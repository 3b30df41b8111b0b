/** The rate limiter beside a plain list of what passed, with random requests at random times. TEST_SEED repeats a run. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { DEFAULT_RATE_LIMITS, RateLimited, RateLimiter, type RateLimits } from "../../server/http/rate-limiter.ts";
import { EFFORT } from "../support/projects.ts";
import {
  ADDRESS,
  attempt,
  CANCEL,
  countOne,
  LOGIN,
  NOON,
  PLACE,
  peekAt,
  REFRESH,
  REGISTER,
  TIME,
} from "./limiter-requests.ts";

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
        const [shown] = peekAt(limiter, TIME, "default", 1, ADDRESS, now, "", factor);
        expect(shown).toMatchObject({ limit, remaining: Math.max(0, limit - used.length) });
        const answer = attempt(() => countOne(limiter, TIME, "default", 1, ADDRESS, now, "", factor));
        if (used.length < limit) {
          expect(answer).toEqual({ limit, remaining: limit - used.length - 1, reset: 60 });
          passed.push(now);
        } else {
          expect(answer).toBeInstanceOf(RateLimited);
          const free = used[used.length - limit]! + 60_000;
          expect((answer as RateLimited).retryAfter).toBe(Math.ceil((free - now) / 1_000));
          expect((answer as RateLimited).rate).toMatchObject({ limit, remaining: 0 });
        }
        // Another user keeps the usual limit.
        expect(peekAt(limiter, TIME, "default", 2, ADDRESS, now)[0]).toMatchObject({ limit: 3, remaining: 3 });
      }
    }),
  );
});

const WINDOW_MS = 60_000;
const LIMITS: RateLimits = {
  user: 5,
  address: 3,
  orderUser: 3,
  orderAddress: 4,
  authIdentifier: 4,
  refreshAddress: 7,
  registrationAddress: 2,
};

/** A wait, and then `count` equal requests at once. */
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
      [REGISTER, "sign_up"],
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

/** The names and limits of the buckets that count a request. */
function countedBy({ kind: [, rateClass], userId, address, identifier, isKnown }: Step): [string, number][] {
  if (rateClass === "none") return [];
  if (rateClass === "refresh") return [[`refresh ${address}`, LIMITS.refreshAddress]];
  const ofAddress: [string, number] = [
    `address ${address}`,
    rateClass === "sign_up" ? LIMITS.registrationAddress : LIMITS.address,
  ];
  const isNamed = rateClass === "identifier" || rateClass === "sign_up";
  if (isNamed && identifier !== "") {
    const name = isKnown ? `${identifier} at ${address}` : `identifier ${identifier}`;
    return [[name, LIMITS.authIdentifier], ofAddress];
  }
  if (isNamed || userId === null) return [ofAddress];
  if (rateClass === "default") return [[`user ${userId}`, LIMITS.user]];
  return [
    [`user ${userId}`, LIMITS.orderUser],
    [`order address ${address}`, LIMITS.orderAddress],
  ];
}

/** What passed, as a plain list. */
class PlainList {
  private readonly passed: { readonly name: string; readonly at: number }[] = [];

  pass(name: string, at: number): void {
    this.passed.push({ name, at });
  }

  /** How many requests of the last minute the bucket counts. */
  count(name: string, now: number): number {
    return this.passed.filter((other) => other.name === name && other.at > now - WINDOW_MS).length;
  }

  /** In how many ms the oldest request of the last minute no longer counts. */
  wait(name: string, now: number): number {
    return this.passed.find((other) => other.name === name && other.at > now - WINDOW_MS)!.at + WINDOW_MS - now;
  }
}

/** Sends one request to the limiter, and checks its response and all that the limiter shows. */
function expectLike(plain: PlainList, limiter: RateLimiter, request: Step, now: number): void {
  const { userId, address, identifier, isKnown } = request;
  const [route, rateClass] = request.kind;
  const names = countedBy(request).map(([name, limit]) => [`${route} ${name}`, limit] as const);
  const free = (): number[] => names.map(([name, limit]) => limit - plain.count(name, now));
  const passes = free().every((count) => count > 0);
  if (passes) for (const [name] of names) plain.pass(name, now);

  const state = attempt(() => countOne(limiter, route, rateClass, userId, address, now, identifier, 1, isKnown));
  if (state instanceof RateLimited) {
    expect(passes).toBe(false);
    // The wait lasts until the last of the full buckets has room.
    const full = names.filter(([name, limit]) => plain.count(name, now) === limit);
    const waits = full.map(([name]) => plain.wait(name, now));
    expect(state.retryAfter).toBe(Math.ceil(Math.max(...waits) / 1_000));
    expect(state.rate.remaining).toBe(0);
  } else {
    expect(passes).toBe(true);
    expect(state?.remaining ?? null).toBe(names.length === 0 ? null : Math.min(...free()));
  }
  const all = peekAt(limiter, route, rateClass, userId, address, now, identifier, 1, isKnown);
  // For a known address, peek also shows the bucket that strangers share.
  const ofKnown = all.some(({ scope }) => scope === "known_address");
  const shown = all.filter(({ scope }) => scope !== "identifier" || !ofKnown);
  expect(shown.map(({ remaining }) => remaining)).toEqual(free());
  expect(shown.map(({ limit }) => limit)).toEqual(names.map(([, limit]) => limit));
}

const seed = Number(process.env["TEST_SEED"] ?? Date.now() % 2 ** 31);

test("in any minute no more than the limit passes, and never less than could, beside a plain list", () => {
  process.stdout.write(`rate limiter: TEST_SEED=${seed}\n`);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const limiter = new RateLimiter(LIMITS);
      const plain = new PlainList();
      let now = NOON;
      for (const request of steps.flatMap(repeated)) {
        now += request.wait;
        expectLike(plain, limiter, request, now);
      }
    }),
    { seed, numRuns: 60 * EFFORT },
  );
});
