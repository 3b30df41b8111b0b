/** Positions valued at last prices, live. */
import { useEffect, useRef, useState } from "preact/hooks";
import { markPrice, notionalMicro } from "../../../engine/money.ts";
import { positions } from "../account-state.ts";
import { useMarkets } from "../market-cache.ts";
import { subscribeTickers, withTickers } from "../market-tickers.ts";
import type { Market, Position, Ticker } from "../types.ts";
import { useThrottled } from "../ui/throttle.ts";

export interface ValuedPosition extends Position {
  /** Mark price, BPS; null if unknown. */
  readonly price: number | null;
}

/** Values a position at its mark price. @param market undefined: not loaded yet, keep the server's valuation */
export function valuePosition(position: Position, market: Market | undefined): ValuedPosition {
  if (market === undefined) return { ...position, price: null };
  const { outcomes } = market;
  const index = outcomes.findIndex(({ id }) => id === position.outcome_id);
  const price = markPrice(
    outcomes.map(({ last_price }) => last_price),
    index,
  );
  const value = position.quantity === 0 ? 0 : price === null ? null : notionalMicro(price, position.quantity);
  return { ...position, price, market_value: value, unrealized_pnl: value === null ? null : value - position.cost };
}

/** Returns the markets with their latest tickers applied, as far as the subscription bound allows. */
function useLiveMarkets(markets: readonly Market[]): ReadonlyMap<number, Market> {
  const [tickers, setTickers] = useState<ReadonlyMap<number, Ticker>>(new Map());
  const latest = useRef(new Map<number, Ticker>());
  const show = useThrottled(() => setTickers(new Map(latest.current)));
  const key = markets.map(({ id }) => id).join();
  useEffect(
    () =>
      subscribeTickers(markets, (ticker) => {
        latest.current.set(ticker.outcome_id, ticker);
        show();
      }),
    [key],
  );
  return new Map(markets.map((market) => [market.id, withTickers(market, tickers)]));
}

/** The user's positions valued at last prices, and their markets. */
export function useValuedPositions() {
  const all = [...(positions.value?.values() ?? [])];
  const markets = useMarkets(all.filter(({ quantity }) => quantity > 0).map(({ market_id }) => market_id));
  const held = new Set(all.filter(({ quantity }) => quantity > 0).map(({ market_id }) => market_id));
  const live = useLiveMarkets([...held].map((id) => markets.get(id)).filter((market) => market !== undefined));
  const valued = all.map((position) => valuePosition(position, live.get(position.market_id)));
  return { valued, markets: live };
}

/** What positions are worth; those without a price count at their cost, which is their share of a complete set. */
export const worthOf = (valued: readonly ValuedPosition[]): number =>
  sumOf(valued.map(({ market_value, cost }) => market_value ?? cost));

export const sumOf = (values: readonly (number | null)[]): number =>
  values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
