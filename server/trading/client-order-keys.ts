/**
 * A client order id as a number of 53 bits: hashed from its text and its user, with a salt of this process. The threads that
 * read ids at a start make the same numbers as the gateway.
 */
import { randomInt } from "node:crypto";
import { type ClientOrderId, numericIdOf } from "../../engine/ring/order-texts.ts";

export class ClientOrderKeys {
  /** What another thread needs to make the same keys. */
  readonly salt: number;
  /** The key computed last: a placement looks its id up, then adds it. */
  private lastUser = 0;
  private lastId: ClientOrderId = "";
  private lastKey = 0;

  constructor(salt = randomInt(2 ** 32)) {
    this.salt = salt;
  }

  of(userId: number, clientOrderId: ClientOrderId): number {
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
