/** The cards of markets and events. A card opens its page; its price buttons open the ticket. */
import { capitalized, cents, chanceText, compact, date } from "../../format.ts";
import { isBinary, winnerOf } from "../../market-facts.ts";
import { byChance, chance, chances, useInView, useLiveMarket } from "../../market-tickers.ts";
import { href } from "../../router.ts";
import type { FeedItem, Market, Outcome } from "../../types.ts";
import { BigChance } from "../../ui/chance.tsx";
import { Tile } from "../../ui/tile.tsx";

const SHOWN_MARKETS = 3;
const SHOWN_OUTCOMES = 3;

export function MarketCard({ market: given }: { market: Market }) {
  const { ref, isInView } = useInView<HTMLElement>();
  const market = useLiveMarket(given, isInView);
  const result = resultOf(market);
  return (
    <article class="card" ref={ref}>
      <div class="card-head">
        <Tile slug={market.slug} />
        <h2>
          <a href={href(`/markets/${market.slug}`)}>{market.question}</a>
        </h2>
      </div>
      {result !== null && <p class="result">{result}</p>}
      {result === null && (isBinary(market) ? <Binary market={market} /> : <Leaders market={market} />)}
      <CardFoot category={market.category} volume={market.volume_24h} closesAt={market.closes_at} />
    </article>
  );
}

function Binary({ market }: { market: Market }) {
  const [yes, no] = market.outcomes;
  if (yes === undefined || no === undefined) return null;
  return (
    <>
      <p class="row">
        <BigChance bps={chances(market)[0] ?? null} size="big-chance" />
        {yes.name !== "Yes" && (
          <span class="faint" translate={false}>
            {yes.name}
          </span>
        )}
      </p>
      <div class="price-buttons">
        <PriceButton market={market} outcome={yes} isNamed isYes />
        <PriceButton market={market} outcome={no} isNamed />
      </div>
    </>
  );
}

/** @param isNamed shows the outcome's name, else "Buy"; a screen reader says both */
function PriceButton({
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
      <b>{cents(outcome.implied_ask)}</b>
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

export function EventCard({ event }: { event: Extract<FeedItem, { kind: "event" }> }) {
  const { ref, isInView } = useInView<HTMLElement>();
  const more = event.market_count - Math.min(SHOWN_MARKETS, event.markets.length);
  return (
    <article class="card event" ref={ref}>
      <div class="card-head">
        <Tile slug={event.slug} />
        <div>
          <small>Event · {event.market_count === 1 ? "1 market" : `${event.market_count} markets`}</small>
          <h2>
            <a href={href(`/events/${event.slug}`)}>{event.title}</a>
          </h2>
        </div>
      </div>
      <ul class="chances">
        {event.markets.slice(0, SHOWN_MARKETS).map((market) => (
          <EventMarket key={market.id} market={market} isShown={isInView} />
        ))}
        {more > 0 && <li class="faint">and {more} more</li>}
      </ul>
      <CardFoot category={event.category} volume={event.volume_24h} closesAt={event.closes_at} />
    </article>
  );
}

function EventMarket({ market: given, isShown }: { market: Market; isShown: boolean }) {
  const market = useLiveMarket(given, isShown);
  const result = resultOf(market);
  const best = isBinary(market) ? market.outcomes[0] : byChance(market.outcomes)[0];
  return (
    <li>
      <a href={href(`/markets/${market.slug}`)}>{market.question}</a>
      {result !== null && <small class="faint">{result}</small>}
      {result === null && best !== undefined && (
        <span class="number" translate={false}>
          {chanceText(chance(best))}
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

function CardFoot({
  category,
  volume,
  closesAt,
}: {
  category: string | null;
  volume: number;
  closesAt: number | null;
}) {
  return (
    <footer>
      {category !== null && <span>{capitalized(category)}</span>}
      <span>{compact(volume)} shares</span>
      {closesAt !== null && <span>Closes {date(closesAt)}</span>}
    </footer>
  );
}
