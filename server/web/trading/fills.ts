/** Sums over an order's fills. Pure: prices in BPS, money in micro-USDC. */
import { MICRO_PER_BPS } from "../../../engine/limits.ts";
import { notionalMicro } from "../../../engine/money.ts";
import type { Order } from "../types.ts";

export interface Totals {
  readonly quantity: number;
  readonly notional: number;
  readonly fee: number;
  readonly rebate: number;
}

export function totalsOf(fills: readonly Order["trades"][number][]): Totals {
  const totals = { quantity: 0, notional: 0, fee: 0, rebate: 0 };
  for (const { price, quantity, fee, rebate } of fills) {
    totals.quantity += quantity;
    totals.notional += notionalMicro(price, quantity);
    totals.fee += fee;
    totals.rebate += rebate;
  }
  return totals;
}

/** The average price of a share, BPS, rounded; null without shares. */
export const averageBps = ({ notional, quantity }: Pick<Totals, "notional" | "quantity">): number | null =>
  quantity === 0 ? null : Math.round(notional / quantity / MICRO_PER_BPS);
