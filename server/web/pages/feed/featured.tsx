/** The leading card of the feed: the market that is traded most, with its chart. */

import { chanceText } from "../../../util/format.ts";
import { exchangeTime } from "../../clock.ts";
import { shortDate } from "../../dates.ts";
import { dayChanges, isBinary, isRunning, mostTraded } from "../../market-facts.ts";
import { byChance, chanceIn, chances, leading, useInView, useLiveMarket } from "../../market-tickers.ts";
import { href } from "../../router.ts";
import { Dot, seriesOf } from "../../series.tsx";
import type { FeedItem, Market, Outcome } from "../../types.ts";
import { Change } from "../../ui/chance.tsx";
import { Tile } from "../../ui/tile.tsx";
import { WatchButton } from "../../ui/watch-button.tsx";
import { CardFoot, marketCount, marketsOf, PriceButton } from "./cards.tsx";
import { heightOf, pathOf, scaleOf, spread, weekOf } from "./line-chart.ts";

const SHOWN_OUTCOMES = 6;
const DRAWN_OUTCOMES = 4;
/** The least distance of two labels at the lines' ends, in percent of the chart's height. */
const LABEL_GAP = 6;

/** The outcomes whose lines the chart has: those that have traded for a while. */
const drawnOf = (market: Market): readonly Outcome[] =>
  market.outcomes.slice(0, isBinary(market) ? 1 : DRAWN_OUTCOMES).filter(({ sparkline = [] }) => sparkline.length >= 2);

/**
 * The market that leads an entry of the feed: itself, or the most traded one of the event. Null: none can be traded, or
 * there is no chart to show yet.
 */
export function leaderOf(item: FeedItem): Market | null {
  const first = mostTraded(marketsOf(item));
  return first !== undefined && drawnOf(first).length > 0 ? first : null;
}

export function Featured({ item, leader }: { item: FeedItem; leader: Market }) {
  const { ref, isInView } = useInView<HTMLElement>();
  const market = useLiveMarket(leader, isInView);
  const shown = isBinary(market) ? market.outcomes : byChance(market.outcomes).slice(0, SHOWN_OUTCOMES);
  const second = marketsOf(item).find((each) => isRunning(each) && each.id !== leader.id);
  return (
    <article class="card featured" ref={ref}>
      <div class="featured-text">
        <div class="card-head">
          <Tile slug={item.slug} picture={item.kind === "market" ? item.picture : null} size="large" />
          <div>
            {item.kind === "event" && (
              <small>
                Event · {marketCount(item.market_count)} · {item.title}
              </small>
            )}
            <h2>
              <a href={href(item.kind === "event" ? `/events/${item.slug}` : `/markets/${market.slug}`)}>
                {market.question}
              </a>
            </h2>
          </div>
          <WatchButton kind={item.kind} id={item.id} name={item.kind === "event" ? item.title : market.question} />
        </div>
        <ul class="chances">
          {shown.map((outcome) => (
            <OutcomeRow key={outcome.id} market={market} outcome={outcome} />
          ))}
        </ul>
        {second !== undefined && <Second market={second} isShown={isInView} />}
        <CardFoot {...item} volume={item.volume_24h} closes_at={item.closes_at ?? market.closes_at} />
      </div>
      <LeadChart market={market} />
    </article>
  );
}

function OutcomeRow({ market, outcome }: { market: Market; outcome: Outcome }) {
  const change = dayChanges(market)[outcome.index] ?? null;
  return (
    <li>
      <a class="outcome" href={href(`/markets/${market.slug}`)} translate={false}>
        <Dot market={market} outcome={outcome} />
        {outcome.name}
      </a>
      {change !== null && <Change bps={change} />}
      <span class="number" translate={false}>
        {chanceText(chanceIn(market, outcome))}
      </span>
      <PriceButton market={market} outcome={outcome} />
    </li>
  );
}

/** The next market of the event. */
function Second({ market: given, isShown }: { market: Market; isShown: boolean }) {
  const market = useLiveMarket(given, isShown);
  const best = leading(market);
  if (best === undefined) return null;
  return (
    <div class="second">
      <p>
        <small class="faint">Also in this event</small>
        <a href={href(`/markets/${market.slug}`)}>{market.question}</a>
      </p>
      <b class="number" translate={false}>
        {chanceText(chanceIn(market, best))}
      </b>
      <PriceButton market={market} outcome={best} isNamed isYes />
    </div>
  );
}

/** The chances of the first outcomes over the last week. */
function LeadChart({ market }: { market: Market }) {
  const now = exchangeTime();
  const drawn = drawnOf(market).map((outcome) => {
    const price = chances(market)[outcome.index] ?? 0;
    const color = `var(--${seriesOf(market, outcome).color})`;
    return { ...outcome, price, color, line: weekOf(outcome.sparkline ?? [], price, now) };
  });
  const lines = drawn.map(({ line }) => line);
  const scale = scaleOf(lines);
  const from = Math.min(...lines.flat().map(([at]) => at));
  const heights = spread(
    drawn.map(({ price }) => heightOf(scale, price / 100)),
    LABEL_GAP,
  );
  const text = drawn.map(({ name, price }) => `${name} ${chanceText(price)}`).join(", ");
  return (
    <div class="lead-chart" role="img" aria-label={`Chances since ${shortDate(from)}, now ${text}`} translate={false}>
      <div class="plot">
        {scale.ticks.map((tick) => (
          <span
            key={tick}
            class={heights.some((each) => Math.abs(each - heightOf(scale, tick)) < LABEL_GAP) ? "tick bare" : "tick"}
            style={{ bottom: `${heightOf(scale, tick)}%` }}
          >
            <i>{tick}%</i>
          </span>
        ))}
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
          {drawn.map(({ id, line, color }) => (
            <path key={id} d={pathOf(line, scale, from, now)} stroke={color} />
          ))}
        </svg>
        {drawn.map(({ id, price, color }, i) => (
          <b key={id} style={{ bottom: `${heights[i]}%`, "--color": color }}>
            {chanceText(price)}
          </b>
        ))}
      </div>
      <p>
        {[from, (from + now) / 2, now].map((at) => (
          <span key={at}>{shortDate(at)}</span>
        ))}
      </p>
    </div>
  );
}
