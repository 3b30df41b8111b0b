/**
 * Counts requests over a sliding minute: in any 60 s, no more than the limit pass. Knows users, addresses, identifiers and
 * routes, and nothing of HTTP. It reads no clock, and its state ends with the process. A flood of one kind of key never
 * evicts another kind, and costs the same per request.
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
  /** The limit of requests without a valid token, and of all sign-ins, whatever account they name. */
  readonly address: number;
  readonly orderUser: number;
  readonly orderAddress: number;
  readonly authIdentifier: number;
  readonly refreshAddress: number;
  /** Registrations: of accounts, and of third-party clients. */
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

/** The content of the `RateLimit-*` headers, of the bucket with the least allowance. */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds, rounded up, until the whole limit is free again; a part of it is free earlier. */
  readonly reset: number;
}

export interface RateBucketState extends RateState {
  readonly scope: RateScope;
}

/**
 * Which limits count a call: "default" by user, else by address; "order" by both where there is a user; "identifier" by
 * address and by the named account, except that an address known to the account has a bucket of its own, so that
 * strangers' attempts don't lock the owner out; "mail" by address and by the named account, since the mail goes to others;
 * "sign_up" like "mail", with the tighter limit of registrations; "refresh" and "registration" by address. The last five
 * ignore the token.
 */
export type RateClass = "default" | "order" | "none" | "identifier" | "mail" | "sign_up" | "refresh" | "registration";
/** A request as the limits see it. */
export interface RateQuery {
  /** A route's template, such as `DELETE /orders/:id`. */
  readonly route: string;
  readonly rateClass: RateClass;
  /** Null for a request without a valid token. */
  readonly userId: number | null;
  readonly address: string;
  /** ms */
  readonly now: number;
  /**
   * Of the classes "identifier", "mail" and "sign_up": the account that the request names, in normal form (an email in
   * lower case), bounded by the caller; "" where it names none.
   */
  readonly identifier: string;
  /** Multiplies the user's own limits; limits of addresses and identifiers are the same for all. */
  readonly factor: number;
  /** For the class "identifier": the named account lately signed in from the address. */
  readonly isKnown: boolean;
}

/** The classes that count by the account that the request names. */
type NamedClass = "identifier" | "mail" | "sign_up";
const isNamedClass = (rateClass: RateClass): rateClass is NamedClass =>
  rateClass === "identifier" || rateClass === "mail" || rateClass === "sign_up";
type RateScope = "user" | "address" | "identifier" | "known_address";

/** 42900, with the content of the headers. */
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

/** The buckets of one kind on one route. */
interface BucketStore {
  get(key: Key): Bucket | undefined;
  set(key: Key, bucket: Bucket): unknown;
  delete(key: Key): unknown;
}

/**
 * The requests of one key on one route in the last minute, oldest first, linked in order of use. Measured in a full limiter
 * (Node 20), with its key and map entry it takes 227 bytes for a user, 282 for an address and 509 for an identifier of 254
 * characters; room for 100 requests instead of four would take 768 more.
 */
class Bucket {
  limit: number;
  store: BucketStore;
  key: Key;
  older: Bucket | null = null;
  newer: Bucket | null = null;
  /** A ring of request times, on the limiter's clock. A plain array: a typed one takes 150 bytes more and is slower to create. */
  private times = new Array<number>(FIRST_TIMES);
  private first = 0;
  private used = 0;

  constructor(limit: number, store: BucketStore, key: Key) {
    this.limit = limit;
    this.store = store;
    this.key = key;
  }

  /** Becomes the empty bucket of another key. */
  reuse(limit: number, store: BucketStore, key: Key): void {
    this.limit = limit;
    this.store = store;
    this.key = key;
    this.first = 0;
    this.used = 0;
    if (this.times.length > FIRST_TIMES) this.times = new Array<number>(FIRST_TIMES);
  }

  /** Drops requests that are a minute old; returns how many are free: 0 where the limit was lowered below the count. */
  free(time: number): number {
    while (this.used > 0 && this.timeAt(0) + WINDOW_MS <= time) {
      this.first = this.index(1);
      this.used--;
    }
    return Math.max(0, this.limit - this.used);
  }

  /** At least one request must be free. */
  add(time: number): void {
    if (this.used === this.times.length) this.grow();
    const index = this.index(this.used);
    this.times[index] = time;
    this.used++;
  }

  /** Milliseconds until one request is free, where none is. */
  waitMs(time: number): number {
    return this.timeAt(this.used - this.limit) + WINDOW_MS - time;
  }

  state(time: number): RateState {
    return { limit: this.limit, remaining: this.free(time), reset: this.resetSeconds(time) };
  }

  /** The state right after `add`: the newest request expires in a full minute. */
  addedState(): RateState {
    return { limit: this.limit, remaining: this.limit - this.used, reset: WINDOW_MS / 1_000 };
  }

  private resetSeconds(time: number): number {
    if (this.used === 0) return 0;
    return Math.ceil((this.timeAt(this.used - 1) + WINDOW_MS - time) / 1_000);
  }

  /** The time of the request `offset` places after the oldest one; there must be one. */
  private timeAt(offset: number): number {
    return this.times[this.index(offset)] ?? 0;
  }

  /** The ring index of the request `offset` places after the oldest one. */
  private index(offset: number): number {
    const at = this.first + offset;
    return at < this.times.length ? at : at - this.times.length;
  }

  private grow(): void {
    const times = new Array<number>(Math.min(this.limit, this.times.length * 2));
    for (let i = 0; i < this.used; i++) times[i] = this.timeAt(i);
    this.times = times;
    this.first = 0;
  }
}

const SHARDS = 64;

/**
 * A map in shards: a Map copies itself whenever it fills up, even where entries were deleted as often as added. With
 * 131,072 keys that stops the thread for 5 to 18 ms, with a 64th of them for about 1 ms at most.
 */
class ShardedMap implements BucketStore {
  private readonly shards = new Array<Map<Key, Bucket> | undefined>(SHARDS).fill(undefined);

  get(key: Key): Bucket | undefined {
    return this.shards[shardOf(key)]?.get(key);
  }

  set(key: Key, bucket: Bucket): void {
    const shard = shardOf(key);
    (this.shards[shard] ??= new Map<Key, Bucket>()).set(key, bucket);
  }

  delete(key: Key): void {
    this.shards[shardOf(key)]?.delete(key);
  }
}

/** Below `SHARDS`. An attacker who picks keys of one shard causes the pauses of an unsharded map, and no more. */
function shardOf(key: Key): number {
  const text = String(key);
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x9e3779b1);
  return (hash >>> 16) % SHARDS;
}

/** Buckets of one kind on all routes, at most `bound`: beyond it, the least recently used one is evicted. */
class RecentBuckets {
  private readonly bound: number;
  private oldest: Bucket | null = null;
  private newest: Bucket | null = null;
  private size = 0;

  constructor(bound: number) {
    this.bound = bound;
  }

  /** Returns the bucket of the key, a new one where there is none, and marks it as most recently used. */
  use(store: BucketStore, key: Key, limit: number): Bucket {
    let bucket = store.get(key);
    if (bucket === undefined) {
      bucket = this.make(limit, store, typeof key === "string" ? copyOf(key) : key);
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

  /** At the bound it reuses the oldest bucket, so that a flood makes little garbage. */
  private make(limit: number, store: BucketStore, key: Key): Bucket {
    const { oldest } = this;
    let bucket: Bucket;
    if (oldest === null || this.size < this.bound) {
      bucket = new Bucket(limit, store, key);
      this.size++;
    } else {
      bucket = oldest;
      this.unlink(bucket);
      bucket.store.delete(bucket.key);
      bucket.reuse(limit, store, key);
    }
    store.set(key, bucket);
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

/** A copy of the text: a slice of a request's body would keep the whole body alive. */
function copyOf(text: string): string {
  // Only this encoding round-trips any text; after latin1 or UTF-8 some keys would never be found again.
  return Buffer.from(text, "utf16le").toString("utf16le");
}

/**
 * The buckets of one route. A route has one class, so only a user's limit can change, with its factor. Only valid tokens
 * create buckets of users and their addresses, and limits bound both; the next two kinds can be flooded.
 */
interface RouteBuckets {
  readonly users: Map<Key, Bucket>;
  /** Buckets of users' orders, by user and address. */
  readonly userAddresses: Map<Key, Bucket>;
  /** Buckets of requests that nothing else counts. */
  readonly addresses: ShardedMap;
  readonly identifiers: ShardedMap;
  /** Buckets of accounts at addresses known to them: few, since only correct passwords create them. */
  readonly known: ShardedMap;
}

/** The key of one account at one address: neither an email nor an address has a space. */
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
   * Counts one request, or nothing where it rejects the request. Returns null where nothing limits the class.
   * @throws RateLimited 42900 with the seconds until such a request passes
   */
  consume(query: RateQuery): RateState | null {
    const { route, rateClass, userId, now, identifier } = query;
    if (rateClass === "none") return null;
    const time = this.advance(now);
    const buckets = this.bucketsOf(route);
    if (rateClass === "order" && userId !== null) return this.consumeOrder(buckets, query, userId, time);
    if (isNamedClass(rateClass) && identifier !== "") return this.consumeNamed(buckets, query, time);
    const bucket = this.onlyBucket(buckets, query);
    if (bucket.free(time) === 0) throw rejection(bucket, route, time);
    bucket.add(time);
    return bucket.addedState();
  }

  /**
   * The state of the buckets that would count such a request; for a known address also the one that counts strangers.
   * Counts nothing and creates no bucket.
   */
  peek({ route, rateClass, userId, address, now, identifier, factor, isKnown }: RateQuery): RateBucketState[] {
    if (rateClass === "none") return [];
    const time = this.advance(now);
    const { limits } = this;
    const buckets = this.routes.get(route);
    const show = (scope: RateScope, limit: number, bucket: Bucket | undefined): RateBucketState => {
      if (bucket === undefined) return { scope, limit, remaining: limit, reset: 0 };
      bucket.limit = limit;
      return { scope, ...bucket.state(time) };
    };
    const ofAll = (): RateBucketState => show("address", this.addressLimit(rateClass), buckets?.addresses.get(address));
    if (isNamedClass(rateClass)) {
      if (identifier === "") return [ofAll()];
      const named = show("identifier", limits.authIdentifier, buckets?.identifiers.get(identifier));
      if (!isKnown) return [named, ofAll()];
      const pair = buckets?.known.get(pairOf(identifier, address));
      return [named, show("known_address", limits.authIdentifier, pair), ofAll()];
    }
    if (rateClass === "refresh" || rateClass === "registration" || userId === null) return [ofAll()];
    const user = buckets?.users.get(userId);
    if (rateClass === "default") return [show("user", limits.user * factor, user)];
    const ofAddress = show("address", limits.orderAddress, buckets?.userAddresses.get(address));
    return [show("user", limits.orderUser * factor, user), ofAddress];
  }

  /** The bucket of a request that a single bucket counts. */
  private onlyBucket(buckets: RouteBuckets, { rateClass, userId, factor, address }: RateQuery): Bucket {
    const isUsers = rateClass === "default" || rateClass === "order";
    if (isUsers && userId !== null) return this.users.use(buckets.users, userId, this.limits.user * factor);
    return this.addresses.use(buckets.addresses, address, this.addressLimit(rateClass));
  }

  private addressLimit(rateClass: RateClass): number {
    const { limits } = this;
    if (rateClass === "refresh") return limits.refreshAddress;
    return rateClass === "registration" || rateClass === "sign_up" ? limits.registrationAddress : limits.address;
  }

  /** Throws as `consume` would for a request without a valid token from a full address; counts nothing. */
  checkRoom(route: string, rateClass: RateClass, address: string, now: number): void {
    if (rateClass === "none") return;
    const time = this.advance(now);
    const bucket = this.routes.get(route)?.addresses.get(address);
    if (bucket !== undefined && bucket.free(time) === 0) throw rejection(bucket, route, time);
  }

  private consumeNamed(buckets: RouteBuckets, query: RateQuery, time: number): RateState {
    const { route, rateClass, address, identifier, isKnown } = query;
    const { authIdentifier } = this.limits;
    const addressLimit = this.addressLimit(rateClass);
    const [all, store, key] = isKnown
      ? [this.known, buckets.known, pairOf(identifier, address)]
      : [this.identifiers, buckets.identifiers, identifier];
    // A rejected request creates no bucket: one address with many names would evict the buckets of others, or the reverse.
    const found = [buckets.addresses.get(address), store.get(key)];
    const full = found.filter((bucket) => bucket?.free(time) === 0) as Bucket[];
    if (full.length > 0) {
      if (found[0] !== undefined) this.addresses.use(buckets.addresses, address, addressLimit);
      if (found[1] !== undefined) all.use(store, key, authIdentifier);
      throw rejection(
        full.reduce((one, other) => (one.waitMs(time) < other.waitMs(time) ? other : one)),
        route,
        time,
      );
    }
    // From here it must succeed.
    const ofAddress = this.addresses.use(buckets.addresses, address, addressLimit);
    const named = all.use(store, key, authIdentifier);
    const isAddressTighter = ofAddress.free(time) < named.free(time);
    ofAddress.add(time);
    named.add(time);
    return (isAddressTighter ? ofAddress : named).addedState();
  }

  private consumeOrder(buckets: RouteBuckets, query: RateQuery, userId: number, time: number): RateState {
    const { route, address, factor } = query;
    const user = this.users.use(buckets.users, userId, this.limits.orderUser * factor);
    const userFree = user.free(time);
    if (userFree === 0) {
      // Creates no bucket for the address: one user with many addresses would evict those of others.
      const full = buckets.userAddresses.get(address);
      const isLater = full !== undefined && full.free(time) === 0 && full.waitMs(time) > user.waitMs(time);
      throw rejection(isLater ? full : user, route, time);
    }
    const ofAddress = this.addresses.use(buckets.userAddresses, address, this.limits.orderAddress);
    const addressFree = ofAddress.free(time);
    if (addressFree === 0) throw rejection(ofAddress, route, time);
    // From here it must succeed.
    user.add(time);
    ofAddress.add(time);
    return (addressFree < userFree ? ofAddress : user).addedState();
  }

  /**
   * Where the clock falls a little behind (a step back, times out of order), the limiter's time stands still until the
   * clock has caught up, which errs on the strict side. Waiting out a step of hours would lock users out, so beyond one
   * window the limiter's time continues from where it was.
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
        addresses: new ShardedMap(),
        identifiers: new ShardedMap(),
        known: new ShardedMap(),
      };
      this.routes.set(route, buckets);
    }
    return buckets;
  }
}

/** @param full the request's full bucket; of two, the one that stays full longer */
function rejection(full: Bucket, route: string, time: number): RateLimited {
  const message = `${route}: the limit of ${full.limit} requests a minute is reached`;
  return new RateLimited(message, Math.ceil(full.waitMs(time) / 1_000), full.state(time));
}
