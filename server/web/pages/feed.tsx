/** The home page: markets and events by volume in the last 24 hours. */
import { useEffect, useState } from "preact/hooks";
import { call, type Query } from "../api.ts";
import { capitalized } from "../format.ts";
import { navigate, search, setSearch } from "../router.ts";
import type { Feed as FeedPage, Market } from "../types.ts";
import { SegmentedControl } from "../ui/fields.tsx";
import { Empty, ErrorNotice, Loading } from "../ui/notices.tsx";
import { LoadMore } from "../ui/table.tsx";
import { useFetch, usePages } from "../ui/use-data.ts";
import { EventCard, MarketCard } from "./feed/cards.tsx";

const PAGE_SIZE = 24;
type Kind = "all" | "market" | "event";

export function Feed() {
  const params = search.value;
  const q = params.get("q") ?? "";
  const category = params.get("category") ?? "";
  const kind = (params.get("kind") ?? "all") as Kind;
  const status = params.get("status") === "ended" ? "ended" : "open";
  const [categories, setCategories] = useState<readonly string[]>([]);
  const addCategories = ({ items }: FeedPage): void => {
    const found = items.map((item) => item.category).filter((each) => each !== null);
    setCategories((before) => [...new Set([...before, ...found])].sort());
  };
  useEffect(() => {
    // Searches have a page of their own; older links name this one.
    if (q !== "") navigate(`/search?q=${encodeURIComponent(q)}`, true);
  }, [q]);
  return (
    <>
      <h1>Markets</h1>
      <div class="filters">
        {categories.length > 0 && (
          <nav class="chips" aria-label="Categories">
            {["", ...categories].map((each) => (
              <button
                key={each}
                type="button"
                aria-pressed={each === category}
                onClick={() => setSearch({ category: each, page: null })}
              >
                {each === "" ? "All" : capitalized(each)}
              </button>
            ))}
          </nav>
        )}
        <SegmentedControl
          label="Status"
          value={status}
          options={[
            ["open", "Open"],
            ["ended", "Ended"],
          ]}
          onChange={(value) => setSearch({ status: value === "open" ? null : value, page: null })}
        />
        {status === "open" && (
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
      {status === "open" ? (
        <FeedItems
          query={{ category, kind: kind === "all" ? null : kind }}
          empty={category === "" && kind === "all" ? "No open markets" : "No open markets here"}
          onLoad={addCategories}
        />
      ) : (
        <EndedMarkets query={{ category }} empty="No market has ended here yet" />
      )}
    </>
  );
}

/** Markets that can't be traded any more, newest first. */
export function EndedMarkets({ query, empty }: { query: Query; empty: string | null }) {
  const { items, error, more, reload } = usePages<Market>("/markets", { ...query, status: ENDED });
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && empty !== null && <Loading />}
      {items !== null && items.length === 0 && empty !== null && <Empty>{empty}</Empty>}
      {items !== null && items.length > 0 && (
        <>
          {empty === null && <h2>Closed and resolved</h2>}
          <ul class="feed">
            {items.map((market) => (
              <li key={market.id}>
                <MarketCard market={market} />
              </li>
            ))}
          </ul>
          <LoadMore more={more} />
        </>
      )}
    </>
  );
}

const ENDED = "closed,resolved,voided";

interface ItemsProps {
  query: Readonly<Record<string, string | null>>;
  empty: string;
  onLoad?: (feed: FeedPage) => void;
}

/** A page of markets and events; the address says which. */
export function FeedItems({ query: filters, empty, onLoad }: ItemsProps) {
  const page = Math.max(1, Number(search.value.get("page")) || 1);
  const query = { ...filters, page, size: PAGE_SIZE };
  const { data, error, reload } = useFetch(
    (signal) => call<FeedPage>("GET", "/feed", { query, signal }),
    JSON.stringify(query),
  );
  useEffect(() => {
    if (data !== null) onLoad?.(data);
  }, [data]);
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && <Items feed={data} empty={empty} />}
    </>
  );
}

function Items({ feed, empty }: { feed: FeedPage; empty: string }) {
  const { items, page, size, total } = feed;
  if (items.length === 0) return <Empty>{empty}</Empty>;
  const pages = Math.ceil(total / size);
  const go = (to: number) => {
    setSearch({ page: to === 1 ? null : String(to) });
    window.scrollTo(0, 0);
  };
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
