/** Placements and quotes as tests write them. */
import type { TestMarket } from "./world.ts";

export const BUY = 1;
export const SELL = 2;

export interface Terms {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly side: number;
  readonly price: number;
  readonly quantity: number;
}

/** @param outcome its index in the market */
export function terms<T extends object>(
  market: TestMarket,
  outcome: number,
  side: number,
  price: number,
  quantity: number,
  more: T = {} as T,
): Terms & T {
  return { market_id: market.id, outcome_id: market.outcomes[outcome]!, side, price, quantity, ...more };
}

export function quote(market: TestMarket, outcome: number, side: number, price: number, quantity: number): object {
  return { outcome_id: market.outcomes[outcome]!, side, price, quantity };
}
