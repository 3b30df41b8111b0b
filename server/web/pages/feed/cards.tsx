/** The cards of markets and events. A card opens its page; its price buttons open the ticket. */
import { cents, chanceText, compact } from "../../../util/format.ts";
import { date } from "../../dates.ts";
import { dayChanges, endOf, isBinary, isRunning, winnerOf } from "../../market-facts.ts";
import { byChance, chance, chanceIn, chances, leading, useInView, useLiveMarket } from "../../market-tickers.ts";
import { href } from "../../router.ts";
import type { FeedItem, Market, Outcome } from "../../types.ts";
import { Category } from "../../ui/category.tsx";
import { BigChance, Change } from "../../ui/chance.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { TickingPrice } from "../../ui/ticking-price.tsx";
import { Tile } from "../../ui/tile.tsx";
import { WatchButton } from "../../ui/watch-button.tsx";

const SHOWN_MARKETS = 3;
const SHOWN_OUTCOMES = 3;

export type FeedEvent = Extract<FeedItem, { kind: "event" }>;
export function MarketCard({ market: given }: { market: Market }) {
  const { ref, isInView } = useInView<HTMLElement>();
  const market = useLiveMarket(given, isInView);
  const result = resultOf(market);
  const isRunningBinary = result === null && isBinary(market);
  return (
    <article class={isRunningBinary ? "card binary" : "card"} ref={ref}>
      <div class="card-head">
        <Tile slug={market.slug} picture={market.picture} />
        <h2>
          <a href={href(`/markets/${market.slug}`)}>{market.question}</a>
        </h2>
        <WatchButton kind="market" id={market.id} name={market.question} />
      </div>
      {result !== null && <p class="result">{result}</p>}
      {isRunningBinary && <Binary market={market} sparkline={given.outcomes[0]?.sparkline ?? []} />}
      {result === null && !isRunningBinary && <Leaders market={market} />}
      <CardFoot {...market} volume={market.volume_24h} endedAt={endOf(market)} />
    </article>
  );
}

/** Cards of markets, in the order given. */
export function MarketCards({ markets }: { markets: readonly Market[] }) {
  return (
    <ul class="feed">
      {markets.map((market) => (
        <li key={market.id}>
          <MarketCard market={market} />
        </li>
      ))}
    </ul>
  );
}

function Binary({ market, sparkline }: { market: Market; sparkline: readonly number[] }) {
  const [yes, no] = market.outcomes;
  if (yes === undefined || no === undefined) return null;
  const [now = null] = chances(market);
  const [change = null] = dayChanges(market);
  return (
    <>
      <div class="card-figures">
        <p>
          <BigChance bps={now} size="big-chance" />
          {yes.name !== "Yes" && (
            <span class="faint" translate={false}>
              {yes.name}
            </span>
          )}
          {change !== null && (
            <small>
              <Change bps={change} />
              <span>24 h</span>
            </small>
          )}
        </p>
        <Sparkline prices={now === null ? [] : [...sparkline.slice(0, -1), now]} />
      </div>
      <div class="price-buttons">
        <PriceButton market={market} outcome={yes} isNamed isYes />
        <PriceButton market={market} outcome={no} isNamed />
      </div>
    </>
  );
}

/** The markets of an entry of the feed: itself, or those of the event. */
export const marketsOf = (item: FeedItem): readonly Market[] => (item.kind === "event" ? item.markets : [item]);

/** @param isNamed shows the outcome's name, else "Buy"; a screen reader says both */
export function PriceButton({
  market,
  outcome,
  isNamed = false,
  isYes = false,
}: {
  market: Market;
  outcome: Outcome;
  isNamed?: boolean;
  isYes?: boolean;
}) {
  return (
    <a
      class={isYes ? "price-button yes" : "price-button"}
      href={href(`/markets/${market.slug}?outcome=${outcome.id}`)}
      translate={false}
    >
      <span>
        <span class={isNamed ? "hidden" : ""}>Buy </span>
        <span class={isNamed ? "" : "hidden"}>{outcome.name}</span>
      </span>
      <TickingPrice bps={outcome.implied_ask} text={cents(outcome.implied_ask)} />
    </a>
  );
}

/** The likeliest outcomes of a market with more than two. */
function Leaders({ market }: { market: Market }) {
  const sorted = byChance(market.outcomes);
  const more = sorted.length - SHOWN_OUTCOMES;
  return (
    <ul class="chances">
      {sorted.slice(0, SHOWN_OUTCOMES).map((outcome) => (
        <li key={outcome.id}>
          <span translate={false}>{outcome.name}</span>
          <span class="number" translate={false}>
            {chanceText(chance(outcome))}
          </span>
          <PriceButton market={market} outcome={outcome} />
        </li>
      ))}
      {more > 0 && <li class="faint">and {more} more</li>}
    </ul>
  );
}

export const marketCount = (count: number): string => (count === 1 ? "1 market" : `${count} markets`);

export function EventCard({ event }: { event: FeedEvent }) {
  const { ref, isInView } = useInView<HTMLElement>();
  const more = event.market_count - Math.min(SHOWN_MARKETS, event.markets.length);
  return (
    <article class="card event" ref={ref}>
      <div class="card-head">
        <Tile slug={event.slug} />
        <div>
          <small>Event · {marketCount(event.market_count)}</small>
          <h2>
            <a href={href(`/events/${event.slug}`)}>{event.title}</a>
          </h2>
        </div>
        <WatchButton kind="event" id={event.id} name={event.title} />
      </div>
      <ul class="chances">
        {event.markets.slice(0, SHOWN_MARKETS).map((market) => (
          <EventMarket key={market.id} market={market} isShown={isInView} />
        ))}
        {more > 0 && <li class="faint">and {more} more</li>}
      </ul>
      <CardFoot {...event} volume={event.volume_24h} closes_at={event.closes_at ?? firstClose(event.markets)} />
    </article>
  );
}

/** When the first of the markets closes, ms. */
function firstClose(markets: readonly Market[]): number | null {
  const times = markets.filter(isRunning).flatMap((market) => market.closes_at ?? []);
  return times.length === 0 ? null : Math.min(...times);
}

function EventMarket({ market: given, isShown }: { market: Market; isShown: boolean }) {
  const market = useLiveMarket(given, isShown);
  const result = resultOf(market);
  const best = leading(market);
  return (
    <li>
      <a href={href(`/markets/${market.slug}`)}>{market.question}</a>
      {result !== null && <small class="faint">{result}</small>}
      {result === null && best !== undefined && (
        <span class="number" translate={false}>
          {chanceText(chanceIn(market, best))}
          <small>{best.name}</small>
        </span>
      )}
    </li>
  );
}

/** The result of a market that has ended; null while it runs. */
function resultOf(market: Market): string | null {
  const { status, resolution } = market;
  if (resolution === null) return status === "closed" ? "Closed" : null;
  if (status === "voided") return "Voided";
  const winner = winnerOf(market);
  return winner === undefined ? "Resolved" : `Resolved: ${winner.name}`;
}

interface FootProps {
  category: string | null;
  volume: number;
  closes_at: number | null;
  endedAt?: number | null;
}

export function CardFoot({ category, volume, closes_at: closesAt, endedAt = null }: FootProps) {
  return (
    <footer>
      {category !== null && (
        <span>
          <Category name={category} size={13} />
        </span>
      )}
      <span>{compact(volume)} shares</span>
      {endedAt !== null && <span>Closed {date(endedAt)}</span>}
      {endedAt === null && closesAt !== null && <span>Closes {date(closesAt)}</span>}
    </footer>
  );
}
