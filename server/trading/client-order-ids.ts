/**
 * Client order ids as idempotency keys: which order each user's id named in the last 24 hours, and those of live orders for
 * as long as they live. There are millions, so an id is stored as a number of 53 bits, hashed from its text with a salt of
 * this process, beside the order's id alone: the order itself is read from memory or from the database. Two ids with equal
 * 53 bits would pass for one (with a million ids, a chance of one in 10^10 per order): the second is rejected as in use, and
 * nothing else happens. Owned by the gateway thread.
 */
import { randomInt } from "node:crypto";
import { type ClientOrderId, numericIdOf } from "../../engine/ring/order-texts.ts";
import { NumberMap } from "../../engine/util/number-map.ts";
import { withIndex } from "../../engine/util/typed-arrays.ts";
import { ApiError, ErrorKind, overloaded } from "../errors.ts";
import {
  CLIENT_ORDER_ID_MS,
  MAX_CLIENT_ORDER_IDS,
  MAX_CLIENT_ORDER_IDS_PER_USER,
  RESERVED_PART,
  SMALL_CLIENT_ORDER_IDS,
} from "./limits.ts";

/** Several small tables instead of a large one: a table that grows blocks the thread while it copies. */
const SHARDS = 64;
/** Keys that one call expires at most. */
const MAX_EXPIRED = 20_000;
/** When an account at its bound may retry, seconds: some of its ids are 24 hours old by then. */
const FULL_WAIT_S = 60;

/** Bounds of the ids of the last 24 hours. */
export interface ClientOrderIdBounds {
  readonly all: number;
  readonly perUser: number;
  /** Accounts with fewer may use the last tenth. */
  readonly small: number;
}

const BOUNDS: ClientOrderIdBounds = {
  all: MAX_CLIENT_ORDER_IDS,
  perUser: MAX_CLIENT_ORDER_IDS_PER_USER,
  small: SMALL_CLIENT_ORDER_IDS,
};

export class ClientOrderIds {
  private readonly shards = Array.from({ length: SHARDS }, () => new NumberMap());
  // Keys, their users and when each order was placed: circular buffers of `count` entries from `first`.
  private keys = new Float64Array(1024);
  private users = new Int32Array(1024);
  private times = new Float64Array(1024);
  /** By user: its keys in the buffers. */
  private countOfUser = new Int32Array(1024);
  private readonly bounds: ClientOrderIdBounds;
  private first = 0;
  private count = 0;
  /** Orders placed up to then have left the buffers: their ids last as long as they live. */
  private forgottenUntil: number;
  private readonly salt = randomInt(2 ** 32);
  /** The key computed last: a placement looks its id up, then adds it. */
  private lastUser = 0;
  private lastId: ClientOrderId = "";
  private lastKey = 0;

  /** @param now ms since the epoch */
  constructor(now: number, bounds = BOUNDS) {
    this.forgottenUntil = now - CLIENT_ORDER_ID_MS;
    this.bounds = bounds;
  }

  /** @throws ApiError where the user can add no id: 42900 at its own bound, 50300 where the table is full */
  checkRoom(userId: number): void {
    const { all, perUser, small } = this.bounds;
    const own = this.countOfUser[userId] ?? 0;
    if (own >= perUser) {
      const text = `client_order_id: at most ${perUser} of the last 24 hours for one account; orders without one are not limited`;
      throw new ApiError(ErrorKind.limitExceeded, text, FULL_WAIT_S);
    }
    const left = all - this.count;
    if (left > (own < small ? 0 : Math.floor(all * RESERVED_PART))) return;
    throw overloaded("client_order_id table is full: retry later, or place the order without one");
  }

  /** Returns the order that the user's id names, 0 for none. */
  find(userId: number, clientOrderId: ClientOrderId): number {
    const key = this.keyOf(userId, clientOrderId);
    return this.shardOf(key).get(key);
  }

  /** @param at when the order was placed, ms; never falls from call to call */
  add(userId: number, clientOrderId: ClientOrderId, orderId: number, at: number): void {
    const key = this.keyOf(userId, clientOrderId);
    this.shardOf(key).set(key, orderId);
    if (at <= this.forgottenUntil) return;
    if (this.count === this.keys.length) this.grow();
    const index = (this.first + this.count++) % this.keys.length;
    this.keys[index] = key;
    this.users[index] = userId;
    this.times[index] = at;
    this.countOfUser = withIndex(this.countOfUser, userId);
    this.countOfUser[userId]!++;
  }

  /** True when an order placed then keeps its id only while it lives. */
  isForgotten(at: number): boolean {
    return at <= this.forgottenUntil;
  }

  /** Frees the id of such an order once it has ended. */
  free(userId: number, clientOrderId: ClientOrderId): void {
    const key = this.keyOf(userId, clientOrderId);
    this.shardOf(key).delete(key);
  }

  /** Removes ids older than 24 hours, except those of live orders, up to MAX_EXPIRED a call. @param now ms */
  expire(now: number, isLive: (orderId: number) => boolean): void {
    const until = now - CLIENT_ORDER_ID_MS;
    for (let i = 0; i < MAX_EXPIRED && this.count > 0 && this.times[this.first]! <= until; i++) {
      const key = this.keys[this.first]!;
      this.forgottenUntil = this.times[this.first]!;
      this.countOfUser[this.users[this.first]!]!--;
      this.first = (this.first + 1) % this.keys.length;
      this.count--;
      const shard = this.shardOf(key);
      if (!isLive(shard.get(key))) shard.delete(key);
    }
  }

  private shardOf(key: number): NumberMap {
    return this.shards[key % SHARDS]!;
  }

  private grow(): void {
    const { keys, users, times, first, count } = this;
    this.keys = withIndex(new Float64Array(keys.length), count);
    this.users = withIndex(new Int32Array(keys.length), count);
    this.times = withIndex(new Float64Array(keys.length), count);
    for (let i = 0; i < count; i++) {
      const index = (first + i) % keys.length;
      this.keys[i] = keys[index]!;
      this.users[i] = users[index]!;
      this.times[i] = times[index]!;
    }
    this.first = 0;
  }

  private keyOf(userId: number, clientOrderId: ClientOrderId): number {
    if (userId === this.lastUser && clientOrderId === this.lastId) return this.lastKey;
    this.lastUser = userId;
    this.lastId = clientOrderId;
    this.lastKey = this.makeKey(userId, clientOrderId);
    return this.lastKey;
  }

  /** A number and the text of its digits have one key. */
  private makeKey(userId: number, clientOrderId: ClientOrderId): number {
    let low = this.salt ^ userId;
    let high = Math.imul(this.salt, 0x9e3779b1) + userId;
    const number = typeof clientOrderId === "number" ? clientOrderId : numericIdOf(clientOrderId);
    if (number >= 0) {
      low = Math.imul(low ^ number, 0x01000193);
      high = Math.imul((high << 5) ^ (high >>> 27) ^ (number * 2 ** -32), 0x2c1b3c6d);
      return mixed(low, high, 2 ** 21) || 1;
    }
    const text = clientOrderId as string;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      low = Math.imul(low ^ code, 0x01000193);
      high = Math.imul((high << 5) ^ (high >>> 27) ^ code, 0x2c1b3c6d);
    }
    return mixed(low, high, 2 ** 21) || 1;
  }
}

/** Mixes two words so that each bit of the result depends on all bits of both. Returns an integer below 2^32 * `highSpan`. */
function mixed(low: number, high: number, highSpan: number): number {
  let a = Math.imul(low ^ (high >>> 15), 0x85ebca6b);
  let b = Math.imul(high ^ (a >>> 13), 0xc2b2ae35);
  a ^= b >>> 16;
  b = Math.imul(b ^ (a >>> 14), 0x27d4eb2f);
  a = Math.imul(a ^ (b >>> 15), 0x165667b1);
  return ((b >>> 0) % highSpan) * 2 ** 32 + ((a ^ (b >>> 17)) >>> 0);
}

/**
 * The fingerprint of a body: 47 bits hashed from its numbers in their order. It is stored with the order, so this function
 * must never change.
 */
export function fingerprintOf(numbers: readonly number[]): number {
  let low = 0x811c9dc5;
  let high = 0x1b873593;
  for (const number of numbers) {
    const top = Math.floor(number / 2 ** 32);
    low = Math.imul(low ^ number, 0x01000193) ^ top;
    high = Math.imul((high << 7) ^ (high >>> 25) ^ number, 0x2c1b3c6d) + top;
  }
  return mixed(low, high, 2 ** 15);
}
