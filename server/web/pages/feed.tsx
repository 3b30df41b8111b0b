/** The home page: markets and events in an order of the user's choice, a watchlist, and an archive of ended markets. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "../api.ts";
import { cacheMarkets } from "../market-cache.ts";
import { isRunning } from "../market-facts.ts";
import { useInView } from "../market-tickers.ts";
import { href, navigate, search, setSearch } from "../router.ts";
import type { Categories, Feed as FeedPage, Market } from "../types.ts";
import { Category } from "../ui/category.tsx";
import { Icon } from "../ui/icon.tsx";
import { Empty, ErrorNotice, Loading } from "../ui/notices.tsx";
import { SegmentedControl } from "../ui/segmented-control.tsx";
import { useFetch } from "../ui/use-data.ts";
import { usePart } from "../ui/use-part.ts";
import { watchlist } from "../watchlist.ts";
import "./feed.css";
import { EventCard, MarketCard, marketsOf } from "./feed/cards.tsx";
import type { EndedProps } from "./feed/ended-markets.tsx";
import { Featured, leaderOf } from "./feed/featured.tsx";
import type { RailProps } from "./feed/rail.tsx";

const PAGE_SIZE = 24;
type Kind = "all" | "market" | "event";
type List = "open" | "watchlist" | "ended";

const SORTS = [
  ["volume", "Volume"],
  ["movers", "Movers"],
  ["created_at", "New"],
  ["closes_at", "Closing soon"],
] as const;
type Sort = (typeof SORTS)[number][0];

const LISTS = [
  ["open", "/", "Markets"],
  ["watchlist", "/?list=watchlist", "Watchlist"],
  ["ended", "/?status=ended", "Archive"],
] as const satisfies readonly (readonly [List, string, string])[];

function listOf(params: URLSearchParams): List {
  if (params.get("list") === "watchlist") return "watchlist";
  return params.get("status") === "ended" ? "ended" : "open";
}

export function Feed() {
  const params = search.value;
  const q = params.get("q") ?? "";
  const category = params.get("category") ?? "";
  const kind = (params.get("kind") ?? "all") as Kind;
  const [sort, title] = SORTS.find(([each]) => each === params.get("sort")) ?? SORTS[0];
  const list = listOf(params);
  const [feed, setFeed] = useState<FeedPage | null>(null);
  useEffect(() => {
    // Searches have a page of their own; older links name this one.
    if (q !== "") navigate(`/search?q=${encodeURIComponent(q)}`, true);
  }, [q]);
  const isFiltered = category !== "" || kind !== "all";
  // Undefined: not read yet. Null: the feed has more than it shows.
  const markets = feed !== null ? allOf(feed) : isFiltered ? null : undefined;
  return (
    <>
      <div class="feed-head">
        {/* On a wide page, the lists' names stand in its place. */}
        <h1 class="hidden">
          {list !== "open" ? LISTS.find(([each]) => each === list)?.[2] : sort === "volume" ? "Most traded" : title}
        </h1>
        <nav class="lists" aria-label="Lists">
          {LISTS.map(([each, path, text]) => (
            <a key={each} href={href(path)} aria-current={each === list ? "page" : undefined}>
              {text}
              {each === "watchlist" && watchlist.value.length > 0 && <sup>{watchlist.value.length}</sup>}
            </a>
          ))}
        </nav>
        {list !== "watchlist" && (
          <label class="sort-choice">
            <span class="hidden">Order</span>
            <select
              value={list === "ended" ? "ended" : sort}
              onChange={(event) => chooseSort(event.currentTarget.value)}
            >
              {SORTS.map(([each, text]) => (
                <option key={each} value={each}>
                  {text}
                </option>
              ))}
              <option value="ended">Archive</option>
            </select>
          </label>
        )}
      </div>
      {list !== "watchlist" && <Filters list={list} category={category} sort={sort} kind={kind} markets={markets} />}
      <div class="feed-columns">
        <div>
          {list === "open" && (
            <FeedItems
              query={{ category, kind: kind === "all" ? null : kind, sort: sort === "volume" ? null : sort }}
              isFeatured={sort === "volume" && !isFiltered}
              onLoad={isFiltered ? undefined : setFeed}
              empty={isFiltered ? "No open markets here" : "No open markets"}
            />
          )}
          {list === "ended" && (
            <Part load={loadEnded} props={{ query: { category }, empty: "No market has ended here yet" }} />
          )}
          {list === "watchlist" && <Part load={loadWatched} props={{}} />}
        </div>
        {list === "open" && <LazyRail markets={markets} />}
      </div>
    </>
  );
}

/** @param value an order, or the archive: a phone has both in one list */
function chooseSort(value: string): void {
  const [status, sort] = value === "ended" ? [value, null] : [null, value === "volume" ? null : value];
  setSearch({ status, sort, page: null });
}

interface FiltersProps {
  list: List;
  category: string;
  sort: Sort;
  kind: Kind;
  markets: RailProps["markets"] | undefined;
}

function Filters({ list, category, sort, kind, markets }: FiltersProps) {
  const [isOpen, setOpen] = useState(kind !== "all");
  const read = (signal: AbortSignal): Promise<Categories> => call("GET", "/categories", { signal });
  const { data } = useFetch(list === "open" && markets !== null ? null : read, list);
  const known = list === "open" ? (markets ?? []).flatMap((market) => market.category ?? []) : [];
  const found = (data?.items ?? []).filter((each) => list === "ended" || each.open > 0).map((each) => each.category);
  const shown = [...new Set([...known, ...found, ...(category === "" ? [] : [category])])].sort();
  return (
    <div class="filters">
      <nav class="chips" aria-label="Categories">
        {["", ...shown].map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={each === category}
            onClick={() => setSearch({ category: each, page: null })}
          >
            {each === "" ? "All" : <Category name={each} />}
          </button>
        ))}
      </nav>
      {list === "open" && (
        <div class="row">
          <SegmentedControl
            label="Order"
            value={sort}
            options={SORTS.map(([each, text]) => [each, text] as const)}
            onChange={chooseSort}
          />
          <button
            type="button"
            class="filter-button"
            aria-label="More filters"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name="filter" />
          </button>
        </div>
      )}
      {list === "open" && isOpen && (
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
      )}
    </div>
  );
}

/** The markets that can be traded, if the feed shows all; null: there are more. */
function allOf({ items, total }: FeedPage): readonly Market[] | null {
  const events = items.filter((item) => item.kind === "event");
  const isWhole = items.length === total && events.every((event) => event.markets.length === event.market_count);
  return isWhole ? items.flatMap(marketsOf).filter(isRunning) : null;
}

const loadRail = (): Promise<ComponentType<RailProps>> => import("./feed/rail.tsx").then((module) => module.default);
const loadWatched = (): Promise<ComponentType> => import("./feed/watched-items.tsx").then((module) => module.default);
const loadEnded = (): Promise<ComponentType<EndedProps>> =>
  import("./feed/ended-markets.tsx").then((module) => module.default);

function Part<T extends object>({ load, props }: { load: () => Promise<ComponentType<T>>; props: T }) {
  const { part: Content, error } = usePart(load);
  if (error !== null) return <ErrorNotice error={error} />;
  return Content === null ? <Loading /> : <Content {...props} />;
}

/** Loaded when it comes into view: below the list on a narrow page, never on a phone. */
function LazyRail({ markets }: { markets: RailProps["markets"] | undefined }) {
  const { ref, isInView } = useInView<HTMLElement>();
  const [isWanted, setWanted] = useState(false);
  const { part: Content } = usePart(isWanted ? loadRail : null);
  useEffect(() => {
    if (isInView && markets !== undefined) setWanted(true);
  }, [isInView, markets === undefined]);
  return (
    <aside class="rail" aria-label="At a glance" ref={ref}>
      {Content !== null && markets !== undefined && <Content markets={markets} />}
    </aside>
  );
}

interface ItemsProps {
  query: Readonly<Record<string, string | null>>;
  empty: string;
  /** The first item is shown large. */
  isFeatured?: boolean;
  onLoad?: ((feed: FeedPage) => void) | undefined;
}

/** A page of markets and events; the address says which. */
export function FeedItems({ query: filters, empty, isFeatured = false, onLoad }: ItemsProps) {
  const page = Math.max(1, Number(search.value.get("page")) || 1);
  const query = { ...filters, page, size: PAGE_SIZE, grouped: true, sparklines: true };
  const { data, error, reload } = useFetch(
    (signal) => call<FeedPage>("GET", "/feed", { query, signal }),
    JSON.stringify(query),
  );
  useEffect(() => {
    if (data === null) return;
    cacheMarkets(data.items.flatMap(marketsOf));
    onLoad?.(data);
  }, [data]);
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading isPage />}
      {data !== null && <Items feed={data} empty={empty} isFeatured={isFeatured && page === 1} />}
    </>
  );
}

function Items({ feed, empty, isFeatured }: { feed: FeedPage; empty: string; isFeatured: boolean }) {
  const { items, page, size, total } = feed;
  const [first] = items;
  if (first === undefined) return <Empty>{empty}</Empty>;
  const leader = isFeatured ? leaderOf(first) : null;
  const pages = Math.ceil(total / size);
  const go = (to: number) => {
    setSearch({ page: to === 1 ? null : String(to) });
    window.scrollTo(0, 0);
  };
  return (
    <>
      <ul class="feed">
        {leader !== null && (
          <li class="first">
            <Featured item={first} leader={leader} />
          </li>
        )}
        {(leader === null ? items : items.slice(1)).map((item) => (
          <li key={`${item.kind}-${item.id}`}>
            {item.kind === "event" ? <EventCard event={item} /> : <MarketCard market={item} />}
          </li>
        ))}
        {isFeatured && pages === 1 && (
          <li>
            <article class="card proposal">
              <Icon name="plus" size={18} />
              <h2>
                <a href={href("/propose")}>Propose a market</a>
              </h2>
              <p>Write a question with a clear source. An operator reviews it.</p>
            </article>
          </li>
        )}
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
