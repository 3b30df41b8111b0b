/**
 * Counts requests over a sliding minute: of any 60 s, however they lie, no more than the limit pass. Knows users,
 * addresses and routes, and nothing of HTTP. It reads no clock; all of its state is lost with the process.
 */
import { MAX_RATE_BUCKETS } from "../engine/limits.ts";
import { ApiError, ErrorKind } from "./errors.ts";

/** Requests a minute, each on one route. */
export interface RateLimits {
  readonly user: number;
  /** Of those who bring no valid token. */
  readonly address: number;
  readonly orderUser: number;
  readonly orderAddress: number;
  readonly authIdentifier: number;
  readonly refreshAddress: number;
}

/** Section "Limits" of the specification. */
export const DEFAULT_RATE_LIMITS: RateLimits = {
  user: 100,
  address: 100,
  orderUser: 30,
  orderAddress: 60,
  authIdentifier: 10,
  refreshAddress: 20,
};

/** What the `RateLimit-*` headers say, of the bucket with the least left. */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds, rounded up, until the whole limit is free again; requests that leave the window earlier free a part. */
  readonly reset: number;
}

export interface RateBucketState extends RateState {
  readonly scope: RateScope;
}

/** Which limits count a call: "default" by user, else by address; "order" by both where there is a user. */
export type RateClass = "default" | "order" | "none";
type RateScope = "user" | "address";

/** 42900, with what the headers say. */
export class RateLimited extends ApiError {
  readonly rate: RateState;

  constructor(message: string, retryAfter: number, rate: RateState) {
    super(ErrorKind.limitExceeded, message, retryAfter);
    this.rate = rate;
  }
}

const WINDOW_MS = 60_000;
const FIRST_TIMES = 4;

type Key = number | string;

/** The requests of one key on one route in the last minute, oldest first, and its place among the recently used. */
class Bucket {
  readonly limit: number;
  readonly home: Map<Key, Bucket>;
  readonly key: Key;
  older: Bucket | null = null;
  newer: Bucket | null = null;
  /** A ring; the limiter's own time of each request. */
  private times = new Float64Array(FIRST_TIMES);
  private first = 0;
  private used = 0;

  constructor(limit: number, home: Map<Key, Bucket>, key: Key) {
    this.limit = limit;
    this.home = home;
    this.key = key;
  }

  /** Forgets what is a minute old and answers how many requests are free. */
  free(time: number): number {
    while (this.used > 0 && this.times[this.first]! + WINDOW_MS <= time) {
      this.first = this.index(1);
      this.used--;
    }
    return this.limit - this.used;
  }

  /** Something must be free. */
  add(time: number): void {
    if (this.used === this.times.length) this.grow();
    this.times[this.index(this.used)] = time;
    this.used++;
  }

  /** Milliseconds until one request is free, where none is. */
  waitMs(time: number): number {
    return this.times[this.first]! + WINDOW_MS - time;
  }

  state(time: number): RateState {
    return { limit: this.limit, remaining: this.free(time), reset: this.resetSeconds(time) };
  }

  private resetSeconds(time: number): number {
    if (this.used === 0) return 0;
    return Math.ceil((this.times[this.index(this.used - 1)]! + WINDOW_MS - time) / 1_000);
  }

  /** Where the request `offset` places after the oldest one stands. */
  private index(offset: number): number {
    const at = this.first + offset;
    return at < this.times.length ? at : at - this.times.length;
  }

  private grow(): void {
    const { times, first } = this;
    this.times = new Float64Array(Math.min(this.limit, times.length * 2));
    this.times.set(times.subarray(first));
    this.times.set(times.subarray(0, first), times.length - first);
    this.first = 0;
  }
}

/** The buckets of one route: users, their addresses on orders, and the addresses of requests without a user. */
interface RouteBuckets {
  readonly users: Map<Key, Bucket>;
  readonly userAddresses: Map<Key, Bucket>;
  readonly addresses: Map<Key, Bucket>;
}

export class RateLimiter {
  private readonly limits: RateLimits;
  private readonly routes = new Map<string, RouteBuckets>();
  private oldest: Bucket | null = null;
  private newest: Bucket | null = null;
  private size = 0;
  /** The limiter's time: the clock plus `shift`, except that it never steps back. */
  private time = Number.NEGATIVE_INFINITY;
  private shift = 0;

  constructor(limits: RateLimits) {
    this.limits = limits;
  }

  /**
   * Counts one request on a route template such as `DELETE /orders/:id`, or none at all where it refuses.
   * @param userId null for a request without a valid token
   * @param now milliseconds
   * @returns null where nothing limits the class
   * @throws RateLimited 42900 with the seconds until such a request passes
   */
  take(route: string, rateClass: RateClass, userId: number | null, address: string, now: number): RateState | null {
    if (rateClass === "none") return null;
    const time = this.advance(now);
    const { limits } = this;
    const buckets = this.bucketsOf(route);
    if (userId === null) return takeFrom(this.use(buckets.addresses, address, limits.address), null, route, time);
    if (rateClass === "default") return takeFrom(this.use(buckets.users, userId, limits.user), null, route, time);
    const user = this.use(buckets.users, userId, limits.orderUser);
    return takeFrom(user, this.use(buckets.userAddresses, address, limits.orderAddress), route, time);
  }

  /** The buckets that such a request would take from, as they stand: takes nothing and remembers nothing. */
  peek(route: string, rateClass: RateClass, userId: number | null, address: string, now: number): RateBucketState[] {
    if (rateClass === "none") return [];
    const time = this.advance(now);
    const { limits } = this;
    const buckets = this.routes.get(route);
    const show = (scope: RateScope, limit: number, bucket: Bucket | undefined): RateBucketState => ({
      scope,
      ...(bucket?.state(time) ?? { limit, remaining: limit, reset: 0 }),
    });
    if (userId === null) return [show("address", limits.address, buckets?.addresses.get(address))];
    const user = buckets?.users.get(userId);
    if (rateClass === "default") return [show("user", limits.user, user)];
    const ofAddress = show("address", limits.orderAddress, buckets?.userAddresses.get(address));
    return [show("user", limits.orderUser, user), ofAddress];
  }

  /**
   * A clock that is a little behind (a step back, times that come out of order) stands still until it has caught up,
   * which errs on the strict side. Waiting out a step of hours would shut users out, so past a window it goes on from
   * where it was.
   */
  private advance(now: number): number {
    const time = now + this.shift;
    if (time > this.time) this.time = time;
    else if (time < this.time - WINDOW_MS) this.shift = this.time - now;
    return this.time;
  }

  private bucketsOf(route: string): RouteBuckets {
    let buckets = this.routes.get(route);
    if (buckets === undefined) {
      buckets = { users: new Map(), userAddresses: new Map(), addresses: new Map() };
      this.routes.set(route, buckets);
    }
    return buckets;
  }

  /** The bucket of the key, made where there is none, as the most recently used one. */
  private use(home: Map<Key, Bucket>, key: Key, limit: number): Bucket {
    let bucket = home.get(key);
    if (bucket !== undefined) {
      if (bucket === this.newest) return bucket;
      this.unlink(bucket);
    } else {
      if (this.size === MAX_RATE_BUCKETS) this.forgetOldest();
      bucket = new Bucket(limit, home, key);
      home.set(key, bucket);
      this.size++;
    }
    bucket.older = this.newest;
    if (this.newest === null) this.oldest = bucket;
    else this.newest.newer = bucket;
    this.newest = bucket;
    return bucket;
  }

  private forgetOldest(): void {
    const bucket = this.oldest!;
    this.unlink(bucket);
    bucket.home.delete(bucket.key);
    this.size--;
  }

  private unlink(bucket: Bucket): void {
    const { older, newer } = bucket;
    if (older === null) this.oldest = newer;
    else older.newer = newer;
    if (newer === null) this.newest = older;
    else newer.older = older;
    bucket.older = null;
    bucket.newer = null;
  }
}

/** Takes one from each, or throws with both as they were. */
function takeFrom(first: Bucket, second: Bucket | null, route: string, time: number): RateState {
  const firstIsFull = first.free(time) === 0;
  const secondIsFull = second !== null && second.free(time) === 0;
  if (firstIsFull || secondIsFull) {
    const later = firstIsFull && !(secondIsFull && second.waitMs(time) > first.waitMs(time)) ? first : second!;
    const message = `${route}: the limit of ${later.limit} requests a minute is reached`;
    throw new RateLimited(message, Math.ceil(later.waitMs(time) / 1_000), later.state(time));
  }
  first.add(time);
  second?.add(time);
  return (second !== null && second.free(time) < first.free(time) ? second : first).state(time);
}
