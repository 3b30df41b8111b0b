/** An event's page: the market that leads it, with its chart and ticket, and the others. */
import { useEffect, useState } from "preact/hooks";
import { capitalized, compact, shares } from "../../util/format.ts";
import { ApiError } from "../api.ts";
import { dateTime } from "../dates.ts";
import { cacheMarkets } from "../market-cache.ts";
import { isRunning, mostTraded } from "../market-facts.ts";
import { href } from "../router.ts";
import { request } from "../session.ts";
import type { Market, MarketEvent, Page } from "../types.ts";
import { useAction } from "../ui/action.ts";
import { Empty, ErrorNotice, Loading, NotFound } from "../ui/notices.tsx";
import { PageFacts } from "../ui/page-facts.tsx";
import { LoadMore } from "../ui/table.tsx";
import { Tile } from "../ui/tile.tsx";
import { useFetch } from "../ui/use-data.ts";
import { WatchButton } from "../ui/watch-button.tsx";
import { MarketCards } from "./feed/cards.tsx";
import { OtherMarkets } from "./market/other-markets.tsx";
import { MarketBy } from "./market.tsx";

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
  const leader = mostTraded(event.markets);
  const others = markets.filter(({ id: marketId }) => marketId !== leader?.id);
  return (
    <>
      <header class="page-head">
        <Tile slug={event.slug} size="large" />
        <div>
          <p class="crumbs">
            <a href={href("/")}>Markets</a>
            {category !== null && (
              <>
                <span aria-hidden="true">/</span>
                <a href={href(`/?category=${encodeURIComponent(category)}`)}>{capitalized(category)}</a>
              </>
            )}
          </p>
          <h1>{title}</h1>
        </div>
        <PageFacts
          facts={[
            ["Markets", shares(market_count)],
            ["24 h volume", `${compact(volume_24h)} shares`],
            ["Volume", `${compact(volume)} shares`],
            ["Closes", closes_at === null ? null : dateTime(closes_at)],
          ]}
        />
        <div class="head-actions">
          <WatchButton kind="event" id={id} name={title} />
        </div>
      </header>
      {markets.length === 0 && <Empty>This event has no markets yet.</Empty>}
      {leader !== undefined && <MarketBy param={String(leader.id)} others={<Others markets={others} />} />}
      {leader === undefined && <MarketCards markets={markets} />}
      <ErrorNotice error={error} />
      {!isComplete && <LoadMore more={cursor === null || isBusy ? null : () => void run()} />}
    </>
  );
}

/** Those that can be traded, and those that have ended. */
function Others({ markets }: { markets: readonly Market[] }) {
  const running = markets.filter(isRunning);
  const ended = markets.filter((market) => !isRunning(market));
  return (
    <>
      {running.length > 0 && <OtherMarkets markets={running} name="Other markets of this event" />}
      {ended.length > 0 && (
        <section aria-labelledby="ended-title">
          <h2 id="ended-title">Ended</h2>
          <MarketCards markets={ended} />
        </section>
      )}
    </>
  );
}
