/**
 * Counts requests over a sliding minute: of any 60 s, however they lie, no more than the limit pass. Knows users,
 * addresses, identifiers and routes, and nothing of HTTP. It reads no clock; all of its state is lost with the process.
 * A flood of one kind of key never makes it forget another kind, and costs the same for each request.
 */

import { ApiError, ErrorKind } from "../errors.ts";
import {
  MAX_ADDRESS_RATE_BUCKETS,
  MAX_IDENTIFIER_RATE_BUCKETS,
  MAX_KNOWN_RATE_BUCKETS,
  MAX_USER_RATE_BUCKETS,
} from "./limits.ts";

/** Requests a minute, each on one route. */
export interface RateLimits {
  readonly user: number;
  /** Of those who bring no valid token, and of all sign-ins, whatever they name. */
  readonly address: number;
  readonly orderUser: number;
  readonly orderAddress: number;
  readonly authIdentifier: number;
  readonly refreshAddress: number;
  /** Third-party clients that are registered. */
  readonly registrationAddress: number;
}

/** Section "Limits" of the specification. */
export const DEFAULT_RATE_LIMITS: RateLimits = {
  user: 100,
  address: 100,
  orderUser: 30,
  orderAddress: 60,
  authIdentifier: 10,
  refreshAddress: 20,
  registrationAddress: 20,
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

/**
 * Which limits count a call: "default" by user, else by address; "order" by both where there is a user; "identifier" by
 * address and by the account that the request names, except that an address known to the account has a count of its own
 * for it, so that strangers' attempts don't lock the owner out; "mail" by address and the account named, since what it
 * asks for is sent to others; "refresh" and "registration" by address. The last four don't care who asks.
 */
export type RateClass = "default" | "order" | "none" | "identifier" | "mail" | "refresh" | "registration";
type RateScope = "user" | "address" | "identifier" | "known_address";

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

/** Where the buckets of one kind on one route are found. */
interface Home {
  get(key: Key): Bucket | undefined;
  set(key: Key, bucket: Bucket): unknown;
  delete(key: Key): unknown;
}

/**
 * The requests of one key on one route in the last minute, oldest first, and its place among the recently used. Measured
 * in a full limiter (Node 20) it takes, with its key and its place in the map, 227 bytes for a user, 282 for an address
 * and 509 for an identifier of 254 characters; room for 100 requests instead of four would be 768 more.
 */
class Bucket {
  limit: number;
  home: Home;
  key: Key;
  older: Bucket | null = null;
  newer: Bucket | null = null;
  /** A ring; the limiter's own time of each request. A plain array: a typed one is 150 bytes more and slower to make. */
  private times = new Array<number>(FIRST_TIMES);
  private first = 0;
  private used = 0;

  constructor(limit: number, home: Home, key: Key) {
    this.limit = limit;
    this.home = home;
    this.key = key;
  }

  /** Becomes the empty bucket of another key. */
  reuse(limit: number, home: Home, key: Key): void {
    this.limit = limit;
    this.home = home;
    this.key = key;
    this.first = 0;
    this.used = 0;
    if (this.times.length > FIRST_TIMES) this.times = new Array<number>(FIRST_TIMES);
  }

  /** Forgets what is a minute old and answers how many requests are free; none where the limit was lowered below them. */
  free(time: number): number {
    while (this.used > 0 && this.times[this.first]! + WINDOW_MS <= time) {
      this.first = this.index(1);
      this.used--;
    }
    return Math.max(0, this.limit - this.used);
  }

  /** Something must be free. */
  add(time: number): void {
    if (this.used === this.times.length) this.grow();
    this.times[this.index(this.used)] = time;
    this.used++;
  }

  /** Milliseconds until one request is free, where none is. */
  waitMs(time: number): number {
    return this.times[this.index(this.used - this.limit)]! + WINDOW_MS - time;
  }

  state(time: number): RateState {
    return { limit: this.limit, remaining: this.free(time), reset: this.resetSeconds(time) };
  }

  /** The state right after `add`: the newest request has its whole minute before it. */
  addedState(): RateState {
    return { limit: this.limit, remaining: this.limit - this.used, reset: WINDOW_MS / 1_000 };
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
    const times = new Array<number>(Math.min(this.limit, this.times.length * 2));
    for (let i = 0; i < this.used; i++) times[i] = this.times[this.index(i)]!;
    this.times = times;
    this.first = 0;
  }
}

const PIECES = 64;

/**
 * A map of text, cut in pieces: a Map copies itself each time that it fills up, also where as much was deleted as added.
 * With 131,072 keys that stops the thread for 5 to 18 ms, with a 64th of them for about one at most.
 */
class PiecedMap implements Home {
  private readonly pieces = new Array<Map<Key, Bucket> | undefined>(PIECES).fill(undefined);

  get(key: Key): Bucket | undefined {
    return this.pieces[pieceOf(key)]?.get(key);
  }

  set(key: Key, bucket: Bucket): void {
    (this.pieces[pieceOf(key)] ??= new Map<Key, Bucket>()).set(key, bucket);
  }

  delete(key: Key): void {
    this.pieces[pieceOf(key)]?.delete(key);
  }
}

/** Below `PIECES`; whoever chooses keys of one piece gets the pauses of a whole map, and no more. */
function pieceOf(key: Key): number {
  const text = String(key);
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x9e3779b1);
  return (hash >>> 16) % PIECES;
}

/** Buckets of one kind on all routes: no more than `bound`, past which the least recently used is forgotten. */
class RecentBuckets {
  private readonly bound: number;
  private oldest: Bucket | null = null;
  private newest: Bucket | null = null;
  private size = 0;

  constructor(bound: number) {
    this.bound = bound;
  }

  /** The bucket of the key, made where there is none, as the most recently used one. */
  use(home: Home, key: Key, limit: number): Bucket {
    let bucket = home.get(key);
    if (bucket === undefined) {
      bucket = this.make(limit, home, typeof key === "string" ? flat(key) : key);
    } else {
      bucket.limit = limit;
      if (bucket === this.newest) return bucket;
      this.unlink(bucket);
    }
    bucket.older = this.newest;
    if (this.newest === null) this.oldest = bucket;
    else this.newest.newer = bucket;
    this.newest = bucket;
    return bucket;
  }

  /** Past the bound out of the oldest bucket, so that a flood leaves the garbage collector little to do. */
  private make(limit: number, home: Home, key: Key): Bucket {
    let bucket: Bucket;
    if (this.size < this.bound) {
      bucket = new Bucket(limit, home, key);
      this.size++;
    } else {
      bucket = this.oldest!;
      this.unlink(bucket);
      bucket.home.delete(bucket.key);
      bucket.reuse(limit, home, key);
    }
    home.set(key, bucket);
    return bucket;
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

/** The same text on its own: a piece of a request's body, kept as it is, would keep the whole body. */
function flat(text: string): string {
  // This encoding alone gives back any text as it was; with latin1 or UTF-8 some keys would never be found again.
  return Buffer.from(text, "utf16le").toString("utf16le");
}

/**
 * The buckets of one route. A route has one class, so that only a user's limit can change, with its factor. Only valid tokens
 * make users and their addresses, which their limits bound; the other two can be flooded.
 */
interface RouteBuckets {
  readonly users: Map<Key, Bucket>;
  /** Of the orders of users. */
  readonly userAddresses: Map<Key, Bucket>;
  /** Of requests that are counted by nothing else. */
  readonly addresses: PiecedMap;
  readonly identifiers: PiecedMap;
  /** Of accounts at addresses known to them: few, and made by right passwords only. */
  readonly known: PiecedMap;
}

/** Of one account at one address: neither an e-mail nor an address has a space. */
const pairOf = (identifier: string, address: string): string => `${identifier} ${address}`;

export class RateLimiter {
  private readonly limits: RateLimits;
  private readonly routes = new Map<string, RouteBuckets>();
  private readonly users = new RecentBuckets(MAX_USER_RATE_BUCKETS);
  private readonly addresses = new RecentBuckets(MAX_ADDRESS_RATE_BUCKETS);
  private readonly identifiers = new RecentBuckets(MAX_IDENTIFIER_RATE_BUCKETS);
  private readonly known = new RecentBuckets(MAX_KNOWN_RATE_BUCKETS);
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
   * @param identifier of the classes "identifier" and "mail": what the request names its account by, in its one spelling (an e-mail in
   *   lower case), bounded by the caller; empty where it names none
   * @param factor of the user's own limits; those of addresses and identifiers are everybody's
   * @param isKnown of the class "identifier": the account that the request names signed in from the address lately
   * @returns null where nothing limits the class
   * @throws RateLimited 42900 with the seconds until such a request passes
   */
  take(
    route: string,
    rateClass: RateClass,
    userId: number | null,
    address: string,
    now: number,
    identifier = "",
    factor = 1,
    isKnown = false,
  ): RateState | null {
    if (rateClass === "none") return null;
    const time = this.advance(now);
    const buckets = this.bucketsOf(route);
    if (rateClass === "order" && userId !== null) return this.takeOrder(buckets, userId, factor, address, route, time);
    const isNamed = (rateClass === "mail" || rateClass === "identifier") && identifier !== "";
    if (isNamed) return this.takeNamed(buckets, identifier, isKnown, address, route, time);
    const bucket = this.onlyBucket(buckets, rateClass, userId, factor, address);
    if (bucket.free(time) === 0) throw refusal(bucket, route, time);
    bucket.add(time);
    return bucket.addedState();
  }

  /**
   * The buckets that such a request would take from, as they stand, and where an address is known that of strangers' too:
   * takes nothing and remembers nothing.
   */
  peek(
    route: string,
    rateClass: RateClass,
    userId: number | null,
    address: string,
    now: number,
    identifier = "",
    factor = 1,
    isKnown = false,
  ): RateBucketState[] {
    if (rateClass === "none") return [];
    const time = this.advance(now);
    const { limits } = this;
    const buckets = this.routes.get(route);
    const show = (scope: RateScope, limit: number, bucket: Bucket | undefined): RateBucketState => {
      if (bucket === undefined) return { scope, limit, remaining: limit, reset: 0 };
      bucket.limit = limit;
      return { scope, ...bucket.state(time) };
    };
    const ofAll = (): RateBucketState => show("address", limits.address, buckets?.addresses.get(address));
    if (rateClass === "identifier" || rateClass === "mail") {
      if (identifier === "") return [ofAll()];
      const named = show("identifier", limits.authIdentifier, buckets?.identifiers.get(identifier));
      if (!isKnown) return [named, ofAll()];
      const pair = buckets?.known.get(pairOf(identifier, address));
      return [named, show("known_address", limits.authIdentifier, pair), ofAll()];
    }
    if (rateClass === "refresh") return [show("address", limits.refreshAddress, buckets?.addresses.get(address))];
    if (rateClass === "registration") {
      return [show("address", limits.registrationAddress, buckets?.addresses.get(address))];
    }
    if (userId === null) return [ofAll()];
    const user = buckets?.users.get(userId);
    if (rateClass === "default") return [show("user", limits.user * factor, user)];
    const ofAddress = show("address", limits.orderAddress, buckets?.userAddresses.get(address));
    return [show("user", limits.orderUser * factor, user), ofAddress];
  }

  /** The bucket of a request that a single one counts. */
  private onlyBucket(
    buckets: RouteBuckets,
    rateClass: RateClass,
    userId: number | null,
    factor: number,
    address: string,
  ): Bucket {
    const { limits } = this;
    if (rateClass === "refresh") return this.addresses.use(buckets.addresses, address, limits.refreshAddress);
    if (rateClass === "registration") return this.addresses.use(buckets.addresses, address, limits.registrationAddress);
    if (rateClass === "identifier" || rateClass === "mail" || userId === null) {
      return this.addresses.use(buckets.addresses, address, limits.address);
    }
    return this.users.use(buckets.users, userId, limits.user * factor);
  }

  /** Throws as `take` would where the address of a request without a valid token has nothing left; takes nothing. */
  checkRoom(route: string, rateClass: RateClass, address: string, now: number): void {
    if (rateClass === "none") return;
    const time = this.advance(now);
    const bucket = this.routes.get(route)?.addresses.get(address);
    if (bucket !== undefined && bucket.free(time) === 0) throw refusal(bucket, route, time);
  }

  private takeNamed(
    buckets: RouteBuckets,
    identifier: string,
    isKnown: boolean,
    address: string,
    route: string,
    time: number,
  ): RateState {
    const { limits } = this;
    const [all, home, key] = isKnown
      ? [this.known, buckets.known, pairOf(identifier, address)]
      : [this.identifiers, buckets.identifiers, identifier];
    // A refusal makes no bucket: one address with many names would evict what other names have used, or the other way.
    const found = [buckets.addresses.get(address), home.get(key)];
    const full = found.filter((bucket) => bucket?.free(time) === 0) as Bucket[];
    if (full.length > 0) {
      if (found[0] !== undefined) this.addresses.use(buckets.addresses, address, limits.address);
      if (found[1] !== undefined) all.use(home, key, limits.authIdentifier);
      throw refusal(
        full.reduce((one, other) => (one.waitMs(time) < other.waitMs(time) ? other : one)),
        route,
        time,
      );
    }
    // From here it must succeed.
    const ofAddress = this.addresses.use(buckets.addresses, address, limits.address);
    const named = all.use(home, key, limits.authIdentifier);
    const isAddressTighter = ofAddress.free(time) < named.free(time);
    ofAddress.add(time);
    named.add(time);
    return (isAddressTighter ? ofAddress : named).addedState();
  }

  private takeOrder(
    buckets: RouteBuckets,
    userId: number,
    factor: number,
    address: string,
    route: string,
    time: number,
  ): RateState {
    const user = this.users.use(buckets.users, userId, this.limits.orderUser * factor);
    const userFree = user.free(time);
    if (userFree === 0) {
      // Makes no bucket of the address: one user with many addresses would evict what others' requests left.
      const full = buckets.userAddresses.get(address);
      const isLater = full !== undefined && full.free(time) === 0 && full.waitMs(time) > user.waitMs(time);
      throw refusal(isLater ? full : user, route, time);
    }
    const ofAddress = this.addresses.use(buckets.userAddresses, address, this.limits.orderAddress);
    const addressFree = ofAddress.free(time);
    if (addressFree === 0) throw refusal(ofAddress, route, time);
    // From here it must succeed.
    user.add(time);
    ofAddress.add(time);
    return (addressFree < userFree ? ofAddress : user).addedState();
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
      buckets = {
        users: new Map(),
        userAddresses: new Map(),
        addresses: new PiecedMap(),
        identifiers: new PiecedMap(),
        known: new PiecedMap(),
      };
      this.routes.set(route, buckets);
    }
    return buckets;
  }
}

/** @param full of the request's buckets that have no room, the one that is full the longest */
function refusal(full: Bucket, route: string, time: number): RateLimited {
  const message = `${route}: the limit of ${full.limit} requests a minute is reached`;
  return new RateLimited(message, Math.ceil(full.waitMs(time) / 1_000), full.state(time));
}
