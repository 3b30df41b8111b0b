/** The markets and events that the user watches, as cards. */
import { useMarkets } from "../../market-cache.ts";
import { request } from "../../session.ts";
import type { MarketEvent } from "../../types.ts";
import { Empty, ErrorNotice, Loading } from "../../ui/notices.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { watchlist } from "../../watchlist.ts";
import { EventCard, MarketCard } from "./cards.tsx";

export default function WatchedItems() {
  const list = watchlist.value;
  const eventIds = list.filter(({ kind }) => kind === "event").map(({ id }) => id);
  const markets = useMarkets(list.filter(({ kind }) => kind === "market").map(({ id }) => id));
  const { data, error, reload } = useFetch(
    (signal) => Promise.all(eventIds.map((id) => request<MarketEvent>("GET", `/events/${id}`, { signal }))),
    eventIds.toSorted((a, b) => a - b).join(),
  );
  const events = new Map(data?.map((event) => [event.id, event]));
  if (list.length === 0) {
    return <Empty>Mark a market or an event with its star, and it appears here.</Empty>;
  }
  const isLoading = list.some(({ kind, id }) => !(kind === "event" ? events.has(id) : markets.has(id)));
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {isLoading && error === null && events.size + markets.size === 0 && <Loading />}
      <ul class="feed">
        {list.map(({ kind, id }) => {
          const event = kind === "event" ? events.get(id) : undefined;
          const market = kind === "market" ? markets.get(id) : undefined;
          if (event === undefined && market === undefined) return null;
          return (
            <li key={`${kind}-${id}`}>
              {event !== undefined && <EventCard event={{ kind: "event", ...event }} />}
              {market !== undefined && <MarketCard market={market} />}
            </li>
          );
        })}
      </ul>
    </>
  );
}
