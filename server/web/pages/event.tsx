/** An event's page: its markets with their chances, live. */
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api.ts";
import { compact, date, shares } from "../format.ts";
import { cacheMarkets } from "../market-cache.ts";
import { href } from "../router.ts";
import { request } from "../session.ts";
import type { Market, MarketEvent, Page } from "../types.ts";
import { Empty, ErrorNotice, Loading, NotFound } from "../ui/notices.tsx";
import { LoadMore } from "../ui/table.tsx";
import { useAction, useFetch } from "../ui/use-data.ts";
import { MarketCard } from "./feed.tsx";

export default function EventPage({ param }: { param: string }) {
  const { data, error, reload } = useFetch(
    (signal) => request<MarketEvent>("GET", `/events/${encodeURIComponent(param)}`, { signal }),
    param,
  );
  useEffect(() => {
    if (data === null) return;
    document.title = data.title;
    cacheMarkets(data.markets);
  }, [data]);
  if (error instanceof ApiError && error.status === 404) return <NotFound what="event" />;
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading what="Loading the event" />}
      {data !== null && <EventView key={data.id} event={data} />}
    </>
  );
}

function EventView({ event }: { event: MarketEvent }) {
  const { id, title, category, closes_at, volume, volume_24h, market_count } = event;
  const [cursor, setCursor] = useState<string | null>("");
  const [laterMarkets, setLaterMarkets] = useState<readonly Market[]>([]);
  const isComplete = event.markets.length >= market_count;
  const { run, isBusy, error } = useAction(async () => {
    const page = await request<Page<Market>>("GET", "/markets", { query: { event_id: id, limit: 100, cursor } });
    setLaterMarkets((before) => [...before, ...page.items]);
    setCursor(page.next_cursor);
  });
  const markets = [...new Map([...event.markets, ...laterMarkets].map((market) => [market.id, market])).values()];
  return (
    <>
      <header class="stack">
        <p class="row faint">
          <a href={href("/?kind=event")}>Events</a>
          {category !== null && (
            <>
              <span aria-hidden="true">›</span>
              <a href={href(`/?category=${encodeURIComponent(category)}`)}>{category}</a>
            </>
          )}
        </p>
        <h1>{title}</h1>
        <p class="row faint">
          <span>{market_count === 1 ? "1 market" : `${shares(market_count)} markets`}</span>
          <span>{compact(volume)} shares traded</span>
          <span>{compact(volume_24h)} in 24 h</span>
          {closes_at !== null && <span>closes {date(closes_at)}</span>}
        </p>
      </header>
      {markets.length === 0 && <Empty>This event has no markets yet.</Empty>}
      <ul class="feed">
        {markets.map((market) => (
          <li key={market.id}>
            <MarketCard market={market} />
          </li>
        ))}
      </ul>
      <ErrorNotice error={error} />
      {!isComplete && <LoadMore more={cursor === null || isBusy ? null : () => void run()} />}
    </>
  );
}
