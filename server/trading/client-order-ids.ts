/**
 * Client order ids as idempotency keys: which order each user's id named in the last 24 hours, live orders' for as long as
 * they live. Millions of them, so an id is kept as a number of 53 bits, drawn from its text with a salt of this process,
 * and beside it only the order's id: what the order was is read from memory or from the database, whoever asks.
 * Two ids of 53 equal bits would be taken for one (with a million ids a chance of one in 10^10 an order): the second is
 * refused as in use, and nothing else happens. Owned by the gateway thread.
 */
import { randomInt } from "node:crypto";
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

/** Several small tables instead of a large one: a table that grows stops the thread for as long as it takes. */
const SHARDS = 64;
/** Keys forgotten at a time. */
const MAX_EXPIRED = 20_000;
/** When an account whose ids are used up may try again, seconds: some of them are 24 hours old by then. */
const FULL_WAIT_S = 60;

/** How many ids of the last 24 hours are kept. */
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
  // Keys, whose they are and when each was placed, in that order: a circle from `first`, `count` long.
  private keys = new Float64Array(1024);
  private users = new Int32Array(1024);
  private times = new Float64Array(1024);
  /** By user: its keys in the circle. */
  private countOfUser = new Int32Array(1024);
  private readonly bounds: ClientOrderIdBounds;
  private first = 0;
  private count = 0;
  /** Whatever was placed up to then has left the circle, and has its id only while it lives. */
  private forgottenUntil: number;
  private readonly salt = randomInt(2 ** 32);
  /** The key made last: a placement is looked up, and then added. */
  private lastUser = 0;
  private lastText = "";
  private lastKey = 0;

  /** @param now ms since the epoch */
  constructor(now: number, bounds = BOUNDS) {
    this.forgottenUntil = now - CLIENT_ORDER_ID_MS;
    this.bounds = bounds;
  }

  /** @throws ApiError unless one more of the user's can be kept: 42900 beyond its own bound, 50300 where the table is full */
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

  /** The order that the user's id names, 0 where it names none. */
  find(userId: number, clientOrderId: string): number {
    const key = this.keyOf(userId, clientOrderId);
    return this.shardOf(key).get(key);
  }

  /** @param at when the order was placed, ms; rises from call to call */
  add(userId: number, clientOrderId: string, orderId: number, at: number): void {
    const key = this.keyOf(userId, clientOrderId);
    this.shardOf(key).set(key, orderId);
    if (at <= this.forgottenUntil) return;
    if (this.count === this.keys.length) this.grow();
    const place = (this.first + this.count++) % this.keys.length;
    this.keys[place] = key;
    this.users[place] = userId;
    this.times[place] = at;
    this.countOfUser = withIndex(this.countOfUser, userId);
    this.countOfUser[userId]!++;
  }

  /** True when an order placed then has its id only while it lives. */
  isForgotten(at: number): boolean {
    return at <= this.forgottenUntil;
  }

  /** Such an order has ended: its id is free. */
  free(userId: number, clientOrderId: string): void {
    const key = this.keyOf(userId, clientOrderId);
    this.shardOf(key).delete(key);
  }

  /** Forgets ids of 24 hours ago, some thousands a call, but those of live orders. @param now ms */
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
      const place = (first + i) % keys.length;
      this.keys[i] = keys[place]!;
      this.users[i] = users[place]!;
      this.times[i] = times[place]!;
    }
    this.first = 0;
  }

  private keyOf(userId: number, clientOrderId: string): number {
    if (userId === this.lastUser && clientOrderId === this.lastText) return this.lastKey;
    this.lastUser = userId;
    this.lastText = clientOrderId;
    this.lastKey = this.makeKey(userId, clientOrderId);
    return this.lastKey;
  }

  private makeKey(userId: number, clientOrderId: string): number {
    let low = this.salt ^ userId;
    let high = Math.imul(this.salt, 0x9e3779b1) + userId;
    for (let i = 0; i < clientOrderId.length; i++) {
      const code = clientOrderId.charCodeAt(i);
      low = Math.imul(low ^ code, 0x01000193);
      high = Math.imul((high << 5) ^ (high >>> 27) ^ code, 0x2c1b3c6d);
    }
    return mixed(low, high, 2 ** 21) || 1;
  }
}

/** Two words, each of whose bits comes to depend on all of both, as one integer below 2^32 * `highSpan`. */
function mixed(low: number, high: number, highSpan: number): number {
  let a = Math.imul(low ^ (high >>> 15), 0x85ebca6b);
  let b = Math.imul(high ^ (a >>> 13), 0xc2b2ae35);
  a ^= b >>> 16;
  b = Math.imul(b ^ (a >>> 14), 0x27d4eb2f);
  a = Math.imul(a ^ (b >>> 15), 0x165667b1);
  return ((b >>> 0) % highSpan) * 2 ** 32 + ((a ^ (b >>> 17)) >>> 0);
}

/**
 * The fingerprint of a body: 47 bits of the numbers that it says, in their order. Kept with the order, so that it must
 * never change.
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
