/** Beside the feed: what moved, what the user watches, and what closes next. */
import type { ComponentChildren } from "preact";
import { chanceText } from "../../../util/format.ts";
import { call } from "../../api.ts";
import { exchangeTime } from "../../clock.ts";
import { dateTime } from "../../dates.ts";
import { useMarkets } from "../../market-cache.ts";
import { dayChanges, isBinary } from "../../market-facts.ts";
import { chanceIn, leading, useInView, useLiveMarket } from "../../market-tickers.ts";
import { href } from "../../router.ts";
import type { Feed, Market, Outcome } from "../../types.ts";
import { Change } from "../../ui/chance.tsx";
import { Tile } from "../../ui/tile.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { watchlist } from "../../watchlist.ts";

const SHOWN = 4;
const SHOWN_CLOSING = 3;

export interface RailProps {
  /** Every market that can be traded, where the feed shows them all; null: they are read. */
  readonly markets: readonly Market[] | null;
}

export default function Rail({ markets }: RailProps) {
  const sizeOf = (market: Market): number => Math.max(...dayChanges(market).map((change) => Math.abs(change ?? 0)));
  const movers = useTop(markets, "movers", SHOWN, (a, b) => sizeOf(b) - sizeOf(a));
  const closesAt = ({ closes_at }: Market): number => closes_at ?? Number.MAX_SAFE_INTEGER;
  const closing = useTop(markets, "closes_at", SHOWN_CLOSING, (a, b) => closesAt(a) - closesAt(b)).filter(
    (market) => market.closes_at !== null,
  );
  return (
    <>
      {movers.some((market) => mover(market) !== null) && (
        <Section title="Movers, 24 h" more={<a href={href("/?sort=movers")}>All</a>}>
          {movers.map((market) => {
            const outcome = mover(market);
            return outcome === null ? null : <Row key={market.id} market={market} outcomeId={outcome.id} />;
          })}
        </Section>
      )}
      <Watching />
      {closing.length > 0 && (
        <Section title="Closing soon">
          {closing.map((market) => (
            <li key={market.id}>
              <Tile slug={market.slug} picture={market.picture} size="tiny" />
              <a href={href(`/markets/${market.slug}`)}>
                <b>{market.question}</b>
                <small>{dateTime(market.closes_at)}</small>
              </a>
              <span class="badge">{timeLeft((market.closes_at ?? 0) - exchangeTime())}</span>
            </li>
          ))}
        </Section>
      )}
    </>
  );
}

/** The first markets in an order of the feed; none before the response. */
function useTop(
  markets: RailProps["markets"],
  sort: "movers" | "closes_at",
  size: number,
  compare: (a: Market, b: Market) => number,
): readonly Market[] {
  const read = (signal: AbortSignal): Promise<Feed> =>
    call("GET", "/feed", { query: { sort, kind: "market", size }, signal });
  const { data } = useFetch(markets === null ? read : null, sort);
  if (markets !== null) return markets.toSorted(compare).slice(0, size);
  return (data?.items ?? []).filter((item) => item.kind === "market");
}

/** The outcome that moved farthest; of two, the first. Null: none moved. */
function mover(market: Market): Outcome | null {
  const changes = dayChanges(market);
  const sizeOf = ({ index }: Outcome): number => Math.abs(changes[index] ?? 0);
  const [most] = isBinary(market) ? market.outcomes : [...market.outcomes].sort((a, b) => sizeOf(b) - sizeOf(a));
  return most === undefined || sizeOf(most) === 0 ? null : most;
}

function Watching() {
  const ids = watchlist.value.filter(({ kind }) => kind === "market").map(({ id }) => id);
  const markets = useMarkets(ids.slice(0, SHOWN));
  if (watchlist.value.length === 0) return null;
  return (
    <Section title="Watchlist" more={<a href={href("/?list=watchlist")}>{watchlist.value.length}</a>}>
      {ids.slice(0, SHOWN).map((id) => {
        const market = markets.get(id);
        const best = market && leading(market);
        return market === undefined || best === undefined ? null : <Row key={id} market={market} outcomeId={best.id} />;
      })}
    </Section>
  );
}

function Section({ title, more, children }: { title: string; more?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="panel">
      <header>
        <h2>{title}</h2>
        {more}
      </header>
      <ul>{children}</ul>
    </section>
  );
}

function Row({ market: given, outcomeId }: { market: Market; outcomeId: number }) {
  const { ref, isInView } = useInView<HTMLLIElement>();
  const market = useLiveMarket(given, isInView);
  const outcome = market.outcomes.find(({ id }) => id === outcomeId);
  if (outcome === undefined) return null;
  const change = dayChanges(market)[outcome.index] ?? null;
  const isTwo = isBinary(market);
  return (
    <li ref={ref}>
      <Tile slug={market.slug} picture={market.picture} size="tiny" />
      <a href={href(`/markets/${market.slug}`)}>
        <b>{isTwo ? market.question : outcome.name}</b>
        <small>{isTwo ? outcome.name : market.question}</small>
      </a>
      <span class="number" translate={false}>
        <b>{chanceText(chanceIn(market, outcome))}</b>
        {change !== null && <Change bps={change} />}
      </span>
    </li>
  );
}

const HOUR_MS = 3_600_000;

/** "24 d", "5 h", "12 min". */
function timeLeft(ms: number): string {
  if (ms >= 48 * HOUR_MS) return `${Math.floor(ms / (24 * HOUR_MS))} d`;
  if (ms >= 2 * HOUR_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  return `${Math.max(0, Math.floor(ms / 60_000))} min`;
}
