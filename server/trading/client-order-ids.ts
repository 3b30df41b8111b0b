/**
 * Client order ids as idempotency keys: which order each user's id named in the last 24 hours, and those of live orders for
 * as long as they live. There are millions, so an id is stored as a number of 53 bits, hashed from its text with a salt of
 * this process, beside the order's id alone: the order itself is read from memory or from the database. Two ids with equal
 * 53 bits would pass for one (with a million ids, a chance of one in 10^10 per order): the second is rejected as in use, and
 * nothing else happens. Owned by the gateway thread.
 */
import type { ClientOrderId } from "../../engine/ring/order-texts.ts";
import { NumberMap } from "../../engine/util/number-map.ts";
import { withIndex } from "../../engine/util/typed-arrays.ts";
import { ApiError, ErrorKind, overloaded } from "../errors.ts";
import { ClientOrderKeys } from "./client-order-keys.ts";
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
  // Recent keys, their users and when each order was placed: circular buffers of `count` entries from `first`.
  private recent = new Float64Array(1024);
  private users = new Int32Array(1024);
  private times = new Float64Array(1024);
  /** By user: its keys in the buffers. */
  private countOfUser = new Int32Array(1024);
  private readonly bounds: ClientOrderIdBounds;
  private first = 0;
  private count = 0;
  /** Orders placed up to then have left the buffers: their ids last as long as they live. */
  private forgottenUntil: number;
  readonly keys = new ClientOrderKeys();

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
    const key = this.keys.of(userId, clientOrderId);
    return this.shardOf(key).get(key);
  }

  /** @param at when the order was placed, ms; rises from call to call, but for steps of the clock */
  add(userId: number, clientOrderId: ClientOrderId, orderId: number, at: number): void {
    this.addKey(this.keys.of(userId, clientOrderId), userId, orderId, at);
  }

  /** `add` for an id of which only the key is at hand. */
  addKey(key: number, userId: number, orderId: number, at: number): void {
    this.shardOf(key).set(key, orderId);
    if (at <= this.forgottenUntil) return;
    if (this.count === this.recent.length) this.grow();
    const index = (this.first + this.count++) % this.recent.length;
    this.recent[index] = key;
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
    const key = this.keys.of(userId, clientOrderId);
    this.shardOf(key).delete(key);
  }

  /** Removes ids older than 24 hours, except those of live orders, up to MAX_EXPIRED a call. @param now ms */
  expire(now: number, isLive: (orderId: number) => boolean): void {
    const until = now - CLIENT_ORDER_ID_MS;
    for (let i = 0; i < MAX_EXPIRED && this.count > 0 && this.times[this.first]! <= until; i++) {
      const key = this.recent[this.first]!;
      this.forgottenUntil = Math.max(this.forgottenUntil, this.times[this.first]!);
      this.countOfUser[this.users[this.first]!]!--;
      this.first = (this.first + 1) % this.recent.length;
      this.count--;
      const shard = this.shardOf(key);
      if (!isLive(shard.get(key))) shard.delete(key);
    }
  }

  private shardOf(key: number): NumberMap {
    return this.shards[key % SHARDS]!;
  }

  private grow(): void {
    const { recent, users, times, first, count } = this;
    this.recent = withIndex(new Float64Array(recent.length), count);
    this.users = withIndex(new Int32Array(recent.length), count);
    this.times = withIndex(new Float64Array(recent.length), count);
    for (let i = 0; i < count; i++) {
      const index = (first + i) % recent.length;
      this.recent[i] = recent[index]!;
      this.users[i] = users[index]!;
      this.times[i] = times[index]!;
    }
    this.first = 0;
  }
}
