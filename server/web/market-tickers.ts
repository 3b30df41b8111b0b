/** Markets with what their tickers say, live; and what an outcome is thought to be worth. */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { subscribe } from "./stream.ts";
import type { Market, Outcome, Ticker } from "./types.ts";
import { useThrottled } from "./ui/throttle.ts";

/** Outcomes whose tickers are heard at one time: a connection has 1,000 subscriptions, and books need some of them. */
const MAX_TICKERS = 600;
let subscribedTickers = 0;

/** Hears the tickers of markets until the answer is called, of as many as there is room for. */
export function subscribeTickers(markets: readonly Market[], onTicker: (ticker: Ticker) => void): () => void {
  const ends: (() => void)[] = [];
  let taken = 0;
  for (const { id, outcomes } of markets) {
    if (subscribedTickers + outcomes.length > MAX_TICKERS) continue;
    subscribedTickers += outcomes.length;
    taken += outcomes.length;
    ends.push(subscribe("ticker", id, null, ({ data }) => onTicker(data)));
  }
  return () => {
    subscribedTickers -= taken;
    for (const end of ends) end();
  };
}

/** The market as its tickers say. @param isShown false: nobody sees it, nothing is heard */
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
  return withTickers(market, tickers);
}

/** @param tickers by outcome */
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

/** An outcome whose tradable prices are further apart says little: the last price says more. */
const WIDE_SPREAD_BPS = 1_000;

/** What an outcome is thought to be worth, BPS: the middle of its tradable prices where they are near, else its last price. */
export function chance({ implied_bid: bid, implied_ask: ask, last_price }: Outcome): number | null {
  if (bid !== null && ask !== null) {
    if (ask - bid <= WIDE_SPREAD_BPS || last_price === null) return Math.round((bid + ask) / 2);
  }
  return last_price ?? bid ?? ask;
}

const MARGIN = "200px";

/** Whether an element is in sight, or nearly. */
export function useInView<T extends Element>(): { ref: RefObject<T | null>; isInSight: boolean } {
  const ref = useRef<T>(null);
  const [isInSight, setInSight] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setInSight(entries.at(-1)!.isIntersecting), {
      rootMargin: MARGIN,
    });
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  return { ref, isInSight };
}
