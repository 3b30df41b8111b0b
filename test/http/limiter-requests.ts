/** Requests as the tests of the rate limiter send them, and how many of them pass. Knows no limits. */
import {
  type RateBucketState,
  type RateClass,
  RateLimited,
  type RateLimiter,
  type RateQuery,
  type RateState,
} from "../../server/http/rate-limiter.ts";

export const PLACE = "POST /orders";
export const CANCEL = "DELETE /orders/:id";
export const TIME = "GET /time";
export const LOGIN = "POST /auth/login";
export const REGISTER = "POST /auth/register";
export const REFRESH = "POST /auth/refresh";
export const ADDRESS = "192.0.2.1";
export const NOON = 1_760_000_000_000;

/** A request's route, class, user, address and time, and what it names. */
type Request = readonly [
  route: string,
  rateClass: RateClass,
  userId: number | null,
  address: string,
  now: number,
  identifier?: string,
  factor?: number,
  isKnown?: boolean,
];

function queryOf([
  route,
  rateClass,
  userId,
  address,
  now,
  identifier = "",
  factor = 1,
  isKnown = false,
]: Request): RateQuery {
  return { route, rateClass, userId, address, now, identifier, factor, isKnown };
}

export const countOne = (limiter: RateLimiter, ...request: Request): RateState | null =>
  limiter.consume(queryOf(request));

export const peekAt = (limiter: RateLimiter, ...request: Request): RateBucketState[] => limiter.peek(queryOf(request));

/** The state, or the rejection. */
export function attempt(consume: () => RateState | null): RateState | RateLimited | null {
  // A stack of a hundred frames, which Vitest asks for, costs more than all else in a flood of rejections.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return consume();
  } catch (error) {
    if (error instanceof RateLimited) return error;
    throw error;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** How many of `count` requests at once pass. */
export function passing(
  limiter: RateLimiter,
  count: number,
  userId: number | null,
  now: number,
  address = ADDRESS,
): number {
  let passed = 0;
  for (let i = 0; i < count; i++) {
    if (!(attempt(() => countOne(limiter, PLACE, "order", userId, address, now)) instanceof RateLimited)) passed++;
  }
  return passed;
}

/** How many of `count` sign-ins at once pass. */
export function signingIn(limiter: RateLimiter, count: number, identifier: string, now: number, route = LOGIN): number {
  let passed = 0;
  for (let i = 0; i < count; i++) {
    // Addresses change, and some requests have a token: neither matters.
    const consume = () => countOne(limiter, route, "identifier", i % 3 || null, `192.0.2.${i % 250}`, now, identifier);
    if (!(attempt(consume) instanceof RateLimited)) passed++;
  }
  return passed;
}
