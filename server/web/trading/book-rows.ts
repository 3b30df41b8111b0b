/** The rows of an order book: levels grouped by price, with sums and the user's own shares. Pure: BPS and shares. */
import type { Order } from "../types.ts";
import type { DepthLevel } from "./depth.ts";

export type BookSide = "bids" | "asks";

export interface BookRow extends DepthLevel {
  /** Shares from the best level to this one. */
  readonly total: number;
  /** Shares of the user's own orders. */
  readonly own: number;
}

/** The price of the group that a level belongs to: asks round up, bids down, so that no group looks better than it is. */
export function groupPrice(price: number, step: number, side: BookSide): number {
  return side === "asks" ? Math.ceil(price / step) * step : Math.floor(price / step) * step;
}

/**
 * @param levels best first @param step BPS
 * @param own the user's shares by price
 * @returns best first
 */
export function bookRows(
  levels: readonly DepthLevel[],
  step: number,
  side: BookSide,
  own: ReadonlyMap<number, number>,
): BookRow[] {
  const rows: { price: number; quantity: number; implied: number; own: number; total: number }[] = [];
  let total = 0;
  for (const { price, quantity, implied } of levels) {
    total += quantity;
    const group = groupPrice(price, step, side);
    const last = rows.at(-1);
    const mine = own.get(price) ?? 0;
    if (last?.price !== group) {
      rows.push({ price: group, quantity, implied, own: mine, total });
      continue;
    }
    last.quantity += quantity;
    last.implied += implied;
    last.own += mine;
    last.total = total;
  }
  return rows;
}

/** The user's open orders on a side, by price, best first. */
export function ordersByPrice(orders: readonly Order[], side: BookSide): ReadonlyMap<number, readonly Order[]> {
  const byPrice = new Map<number, Order[]>();
  for (const order of orders) {
    if (order.price === null || (order.side === 2) !== (side === "asks")) continue;
    const found = byPrice.get(order.price);
    if (found === undefined) byPrice.set(order.price, [order]);
    else found.push(order);
  }
  const sign = side === "asks" ? 1 : -1;
  return new Map([...byPrice].sort(([a], [b]) => sign * (a - b)));
}
