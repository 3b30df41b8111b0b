/** The home page: markets and events by volume in the last 24 hours, with search. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../api.ts";
import { compact, date, percent } from "../format.ts";
import { chance, useInView, useLiveMarket } from "../market-tickers.ts";
import { href, search, setSearch } from "../router.ts";
import type { FeedItem, Feed as FeedPage, Market } from "../types.ts";
import { SegmentedControl } from "../ui/fields.tsx";
import { Empty, ErrorNotice, Loading } from "../ui/notices.tsx";
import { useFetch } from "../ui/use-data.ts";

const PAGE_SIZE = 24;
const TYPING_MS = 200;
const SHOWN_MARKETS = 4;
const SHOWN_OUTCOMES = 3;
type Kind = "all" | "market" | "event";

export function Feed() {
  const params = search.value;
  const q = params.get("q") ?? "";
  const category = params.get("category") ?? "";
  const kind = (params.get("kind") ?? "all") as Kind;
  const page = Math.max(1, Number(params.get("page")) || 1);
  const query = { q, category, page, size: PAGE_SIZE, kind: kind === "all" ? null : kind };
  const { data, error, reload } = useFetch(
    (signal) => call<FeedPage>("GET", "/feed", { query, signal }),
    JSON.stringify(query),
  );
  const [categories, setCategories] = useState<readonly string[]>([]);
  useEffect(() => {
    if (data === null) return;
    const found = data.items.map((item) => item.category).filter((each) => each !== null);
    setCategories((before) => [...new Set([...before, ...found])].sort());
  }, [data]);
  return (
    <>
      <h1 class="hidden">Markets</h1>
      <div class="filters">
        <Search value={q} />
        <SegmentedControl
          label="Show"
          value={kind}
          options={[
            ["all", "All"],
            ["market", "Markets"],
            ["event", "Events"],
          ]}
          onChange={(value) => setSearch({ kind: value === "all" ? null : value, page: null })}
        />
      </div>
      {categories.length > 0 && (
        <nav class="chips" aria-label="Categories">
          {["", ...categories].map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === category}
              onClick={() => setSearch({ category: each, page: null })}
            >
              {each === "" ? "All categories" : each}
            </button>
          ))}
        </nav>
      )}
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && <Items feed={data} isFiltered={q !== "" || category !== "" || kind !== "all"} />}
    </>
  );
}

function Search({ value }: { value: string }) {
  const [text, setText] = useState(value);
  // The search can also change through the history or a link.
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(() => setSearch({ q: text.trim(), page: null }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value]);
  return (
    <search>
      <input
        type="search"
        aria-label="Search markets and events"
        placeholder="Search markets and events"
        maxLength={200}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </search>
  );
}

function Items({ feed, isFiltered }: { feed: FeedPage; isFiltered: boolean }) {
  const { items, page, size, total } = feed;
  if (items.length === 0) {
    return <Empty>{isFiltered ? "No results" : "No open markets"}</Empty>;
  }
  const pages = Math.ceil(total / size);
  const go = (to: number) => setSearch({ page: to === 1 ? null : String(to) });
  return (
    <>
      <ul class="feed">
        {items.map((item) => (
          <li key={`${item.kind}-${item.id}`}>
            {item.kind === "event" ? <EventCard event={item} /> : <MarketCard market={item} />}
          </li>
        ))}
      </ul>
      {pages > 1 && (
        <nav class="pager" aria-label="Pages">
          <button type="button" disabled={page <= 1} onClick={() => go(page - 1)}>
            Previous
          </button>
          <span>
            Page {page} of {pages}
          </span>
          <button type="button" disabled={page >= pages} onClick={() => go(page + 1)}>
            Next
          </button>
        </nav>
      )}
    </>
  );
}

export function MarketCard({ market: given }: { market: Market }) {
  const { ref, isInView } = useInView<HTMLElement>();
  const market = useLiveMarket(given, isInView);
  const shown = [...market.outcomes].sort((a, b) => (chance(b) ?? 0) - (chance(a) ?? 0));
  const isBinary = market.outcomes.length === 2;
  return (
    <article class="card" ref={ref}>
      <h2>
        <a href={href(`/markets/${market.slug}`)}>{market.question}</a>
      </h2>
      <ul class="chances">
        {(isBinary ? market.outcomes : shown.slice(0, SHOWN_OUTCOMES)).map((outcome) => (
          <Chance key={outcome.id} name={outcome.name} bps={chance(outcome)} />
        ))}
        {shown.length > SHOWN_OUTCOMES && <li class="faint">and {shown.length - SHOWN_OUTCOMES} more</li>}
      </ul>
      <CardFoot category={market.category} volume={market.volume_24h} closesAt={market.closes_at} />
    </article>
  );
}

function EventCard({ event }: { event: Extract<FeedItem, { kind: "event" }> }) {
  const { ref, isInView } = useInView<HTMLElement>();
  const more = event.market_count - Math.min(SHOWN_MARKETS, event.markets.length);
  return (
    <article class="card event" ref={ref}>
      <h2>
        <a href={href(`/events/${event.slug}`)}>{event.title}</a>
      </h2>
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
  return (
    <li>
      <a href={href(`/markets/${market.slug}`)}>{market.question}</a>
      <span class="number" translate={false}>
        {standingOf(market)}
      </span>
    </li>
  );
}

/** The result of a market that has ended, else the outcome that is likeliest. */
function standingOf({ status, outcomes, resolution }: Market): string {
  if (resolution === null) {
    const [best] = [...outcomes].sort((a, b) => (chance(b) ?? 0) - (chance(a) ?? 0));
    return best === undefined ? "" : `${best.name} ${percent(chance(best))}`;
  }
  if (status === "voided") return "Voided";
  const winner = outcomes.find(({ id }) => id === resolution.outcome_id);
  return winner === undefined ? "Resolved" : `Resolved: ${winner.name}`;
}

function Chance({ name, bps }: { name: string; bps: number | null }) {
  return (
    <li>
      <span translate={false}>{name}</span>
      <meter min={0} max={10_000} value={bps ?? 0} aria-hidden="true" />
      <span class="number" translate={false}>
        {percent(bps)}
      </span>
    </li>
  );
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
    <footer class="faint">
      {category !== null && <span>{category}</span>}
      <span>{compact(volume)} shares in 24 h</span>
      {closesAt !== null && <span>closes {date(closesAt)}</span>}
    </footer>
  );
}
