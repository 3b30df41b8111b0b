/** Keeps markets current with their ticker streams, and derives an outcome's chance from its prices. */
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FULL_PRICE_BPS } from "../../engine/limits.ts";
import { isBinary } from "./market-facts.ts";
import { subscribe } from "./stream.ts";
import type { Market, Outcome, Ticker } from "./types.ts";
import { useThrottled } from "./ui/throttle.ts";

/** Tickers subscribed at a time, by outcome, each counted once: a connection allows 1,000 subscriptions, and books need some of them. */
const MAX_TICKERS = 600;
let subscribedTickers = 0;
/** The subscribers of each market. Those of one market share its tickers: the stream subscribes once. */
const subscribers = new Map<number, number>();

/** Subscribes to the tickers of markets, as far as the bound allows. Returns a function that unsubscribes. */
export function subscribeTickers(markets: readonly Market[], onTicker: (ticker: Ticker) => void): () => void {
  const unsubscribers: (() => void)[] = [];
  for (const { id, outcomes } of markets) {
    const others = subscribers.get(id) ?? 0;
    const added = others === 0 ? outcomes.length : 0;
    if (subscribedTickers + added > MAX_TICKERS) continue;
    subscribedTickers += added;
    subscribers.set(id, others + 1);
    const unsubscribe = subscribe("ticker", id, null, ({ data }) => onTicker(data));
    unsubscribers.push(() => {
      unsubscribe();
      const left = (subscribers.get(id) ?? 1) - 1;
      subscribers.set(id, left);
      if (left === 0) subscribedTickers -= outcomes.length;
    });
  }
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
  };
}

/** Returns the market with its latest tickers applied. @param isShown false: the market is off screen, don't subscribe */
export function useLiveMarket(market: Market, isShown = true): Market {
  const [tickers, setTickers] = useState<ReadonlyMap<number, Ticker>>(new Map());
  const latest = useRef(new Map<number, Ticker>());
  const show = useThrottled(() => setTickers(new Map(latest.current)));
  useEffect(() => {
    if (!isShown) return;
    return subscribeTickers([market], (ticker) => {
      latest.current.set(ticker.outcome_id, ticker);
      show();
    });
  }, [market.id, isShown]);
  return useMemo(() => withTickers(market, tickers), [market, tickers]);
}

/** @param tickers by outcome id */
export function withTickers(market: Market, tickers: ReadonlyMap<number, Ticker>): Market {
  if (tickers.size === 0) return market;
  const outcomes = market.outcomes.map((outcome) => {
    const ticker = tickers.get(outcome.id);
    if (ticker === undefined) return outcome;
    const { market_id: _, outcome_id: __, ...now } = ticker;
    return { ...outcome, ...now };
  });
  return { ...market, outcomes };
}

/** Across a wider spread, the mid price means little, and the last price is the better estimate. */
const WIDE_SPREAD_BPS = 1_000;

/** The chance of an outcome, BPS: its mid price, or its last price if the spread is wide. Null without any price. */
export function chance({ implied_bid: bid, implied_ask: ask, last_price }: Outcome): number | null {
  if (bid !== null && ask !== null) {
    if (ask - bid <= WIDE_SPREAD_BPS || last_price === null) return Math.round((bid + ask) / 2);
  }
  return last_price ?? bid ?? ask;
}

/** The chance of each outcome by index, BPS. Of two outcomes, the second's is what the first one's leaves. */
export function chances({ outcomes }: Pick<Market, "outcomes">): readonly (number | null)[] {
  const [first, second] = outcomes;
  if (outcomes.length !== 2 || first === undefined || second === undefined) return outcomes.map(chance);
  const own = chance(first);
  if (own !== null) return [own, oppositeOf(own)];
  const other = chance(second);
  return [other === null ? null : oppositeOf(other), other];
}

const PERCENT_BPS = 100;

/** A chance as it is shown: in whole percent, but for what is less than one from an end. */
export function wholePercent(bps: number): number {
  const isNearEnd = bps < PERCENT_BPS || bps > FULL_PRICE_BPS - PERCENT_BPS;
  return isNearEnd ? bps : PERCENT_BPS * Math.round(bps / PERCENT_BPS);
}

/** What a chance leaves, so that the two add up to 100 as they are shown. */
const oppositeOf = (bps: number): number => FULL_PRICE_BPS - wholePercent(bps);

/** The chance of one outcome of a market: of two outcomes, both say the same. */
export const chanceIn = (market: Pick<Market, "outcomes">, { index }: Outcome): number | null =>
  chances(market)[index] ?? null;

/** The likeliest outcome first. */
export const byChance = (outcomes: readonly Outcome[]): Outcome[] =>
  [...outcomes].sort((a, b) => (chance(b) ?? 0) - (chance(a) ?? 0));

/** The outcome that stands for the market in one line: of two the first, else the likeliest. */
export const leading = (market: Market): Outcome | undefined =>
  isBinary(market) ? market.outcomes[0] : byChance(market.outcomes)[0];

const MARGIN = "200px";

/** Tracks whether an element is in or near the viewport. */
export function useInView<T extends Element>(): { ref: RefObject<T | null>; isInView: boolean } {
  const ref = useRef<T>(null);
  const [isInView, setInView] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setInView(entries.at(-1)?.isIntersecting ?? false), {
      rootMargin: MARGIN,
    });
    if (ref.current !== null) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return { ref, isInView };
}
