/** The markets of an event: a table below the one that leads it, and a strip of links on the page of each. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { chanceText } from "../../../util/format.ts";
import { dayChanges, isBinary, isRunning } from "../../market-facts.ts";
import { chanceIn, leading, useInView, useLiveMarket } from "../../market-tickers.ts";
import { href } from "../../router.ts";
import type { Market, MarketEvent } from "../../types.ts";
import { Tile } from "../../ui/tile.tsx";
import { PriceButton } from "../feed/cards.tsx";
import { DayChange, TradingHead, Volume } from "./outcomes.tsx";

/** @param name of the column of markets */
export function OtherMarkets({ markets, name }: { markets: readonly Market[]; name: string }) {
  return (
    <section class="panel" aria-labelledby="others-title">
      <h2 id="others-title" class="hidden">
        {name}
      </h2>
      <table class="outcomes others">
        <TradingHead name={name} chance="Chance" isOpen />
        <tbody>
          {markets.map((market) => (
            <OtherMarket key={market.id} market={market} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function OtherMarket({ market: given }: { market: Market }) {
  const { ref, isInView } = useInView<HTMLTableRowElement>();
  const market = useLiveMarket(given, isInView);
  const isTwo = isBinary(market);
  const shown = leading(market);
  const [, second] = market.outcomes;
  if (shown === undefined) return null;
  return (
    <tr ref={ref}>
      <th scope="row">
        <span class="tiled">
          <Tile slug={market.slug} picture={market.picture} size="tiny" />
          <a href={href(`/markets/${market.slug}`)}>{market.question}</a>
        </span>
      </th>
      <td class="right number" translate={false}>
        <b class="row-chance">{chanceText(chanceIn(market, shown))}</b>
        {!isTwo && <small>{shown.name}</small>}
      </td>
      <DayChange bps={dayChanges(market)[shown.index] ?? null} />
      <Volume count={market.volume} />
      <td class="right">
        <span class="row-prices">
          <PriceButton market={market} outcome={shown} isNamed={isTwo} isYes />
          {isTwo && second !== undefined && <PriceButton market={market} outcome={second} isNamed />}
        </span>
      </td>
    </tr>
  );
}

/** Links to the running markets of an event; nothing where there is one only. @param event null: it loads, and has its place */
export function EventStrip({ event, current }: { event: MarketEvent | null; current: number }) {
  const strip = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const own = strip.current?.querySelector<HTMLElement>("[aria-current]");
    if (strip.current !== null && own != null) strip.current.scrollLeft = own.offsetLeft - strip.current.offsetLeft;
  }, [event, current]);
  if (event === null) return <div class="event-strip" />;
  const markets = event.markets.filter(isRunning);
  if (markets.length < 2 || !markets.some(({ id }) => id === current)) return null;
  return (
    <nav class="event-strip" ref={strip} aria-label={`Markets of the event ${event.title}`}>
      {markets.map((market) => (
        <Sibling key={market.id} market={market} isCurrent={market.id === current} />
      ))}
    </nav>
  );
}

function Sibling({ market: given, isCurrent }: { market: Market; isCurrent: boolean }) {
  const { ref, isInView } = useInView<HTMLAnchorElement>();
  const market = useLiveMarket(given, isInView);
  const best = leading(market);
  return (
    <a ref={ref} href={href(`/markets/${market.slug}`)} aria-current={isCurrent ? "page" : undefined}>
      <Tile slug={market.slug} picture={market.picture} size="tiny" />
      <span>{market.question}</span>
      {best !== undefined && (
        <b translate={false}>
          {best.name} {chanceText(chanceIn(market, best))}
        </b>
      )}
    </a>
  );
}
