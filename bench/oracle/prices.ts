/**
 * Maps a file's prices to the book's 1..9999: by an offset if their range fits. Otherwise the file runs in windows of
 * consecutive messages, each with its own ranking of the prices in use. Matching only compares prices, so ranks are
 * equivalent.
 */

import { MAX_PRICE_BPS } from "../../engine/limits.ts";
import { assert } from "../../engine/util/assert.ts";
import { MessageKind, type Messages } from "./messages.ts";

/** The offset that the published flow is documented with. */
const DOCUMENTED_OFFSET = 28_850;

export class PriceWindow {
  /** The window serves the messages before this one. */
  readonly end: number;
  private readonly prices: Int32Array;
  private readonly ticks = new Map<number, number>();

  /** @param ascending the prices that become ticks 1, 2, 3 ... */
  constructor(ascending: Int32Array, end: number) {
    assert(ascending.length <= MAX_PRICE_BPS, "a window has no more prices than a book");
    this.prices = ascending;
    this.end = end;
    for (let i = 0; i < ascending.length; i++) this.ticks.set(ascending[i]!, i + 1);
  }

  tick(price: number): number {
    return this.ticks.get(price)!;
  }

  price(tick: number): number {
    return this.prices[tick - 1]!;
  }
}

/** The lowest and highest price of all messages with one; both 0 if there is none. */
export function priceRange(messages: Messages): [low: number, high: number] {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < messages.count; i++) {
    if (messages.kinds[i] === MessageKind.cancel) continue;
    const price = messages.prices[i]!;
    if (price < low) low = price;
    if (price > high) high = price;
  }
  return low > high ? [0, 0] : [low, high];
}

/** The offset for prices of that range, preferably the documented one; undefined if the range is too wide. */
export function offsetFor(low: number, high: number): number | undefined {
  if (high - low >= MAX_PRICE_BPS) return undefined;
  if (low > DOCUMENTED_OFFSET && high <= DOCUMENTED_OFFSET + MAX_PRICE_BPS) return DOCUMENTED_OFFSET;
  return low - 1;
}

export function offsetWindow(offset: number, end: number): PriceWindow {
  return new PriceWindow(
    Int32Array.from({ length: MAX_PRICE_BPS }, (_, i) => offset + i + 1),
    end,
  );
}

/**
 * The window for the messages from `from` on: the prices of resting orders, then those of messages until the book's
 * prices are used up. @throws Error if resting orders leave no price for the next message
 */
export function rankedWindow(messages: Messages, from: number, resting: Iterable<number>): PriceWindow {
  const used = new Set(resting);
  let end = from;
  for (; end < messages.count; end++) {
    if (messages.kinds[end] === MessageKind.cancel) continue;
    const price = messages.prices[end]!;
    if (used.size === MAX_PRICE_BPS && !used.has(price)) break;
    used.add(price);
  }
  if (end === from) throw new Error(`line ${from + 1}: orders at more than ${MAX_PRICE_BPS} prices rest at one time`);
  return new PriceWindow(Int32Array.from(used).sort(), end);
}
