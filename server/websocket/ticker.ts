/** An outcome's ticker, as the channel shows it. */
import { assert } from "../../engine/util/assert.ts";
import { tradablePrices } from "../markets/implied-books.ts";
import type { Market, Outcome } from "../markets/types.ts";

/** Prices in BPS, null where there is none; the volume in shares. */
export interface TickerView {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly last_price: number | null;
  readonly best_bid: number | null;
  readonly best_ask: number | null;
  readonly implied_bid: number | null;
  readonly implied_ask: number | null;
  readonly volume: number;
}

export function tickerView(market: Market, { id, lastPrice, book, volume }: Outcome): TickerView {
  const implied = tradablePrices(market)[id - market.firstOutcomeId];
  assert(implied !== undefined, "each outcome has tradable prices");
  return {
    market_id: market.id,
    outcome_id: id,
    last_price: lastPrice,
    best_bid: book?.bestBid ?? null,
    best_ask: book?.bestAsk ?? null,
    implied_bid: implied.bid,
    implied_ask: implied.ask,
    volume,
  };
}
