/** Markets that are only known by their ids, such as those of positions and orders: read once, a few at a time. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "./api.ts";
import { request } from "./session.ts";
import type { Market, Page } from "./types.ts";

const known = signal<ReadonlyMap<number, Market>>(new Map());
const wanted = new Set<number>();
/** There is none of this id, or it isn't shown to anybody. */
const missing = new Set<number>();
const CONCURRENT_REQUESTS = 4;
/** From so many on, a page of all markets probably has most of them at once. */
const LIST_THRESHOLD = 12;
const MAX_LIST = 200;
const RETRY_MS = 5_000;
let isFetching = false;

/** @param ids in any order, repeated or not; what isn't known yet comes later */
export function useMarkets(ids: Iterable<number>): ReadonlyMap<number, Market> {
  const lacking = [...new Set(ids)].filter((id) => !known.value.has(id) && !missing.has(id));
  const key = lacking.join();
  useEffect(() => {
    for (const id of lacking) wanted.add(id);
    void fetchWanted();
  }, [key]);
  return known.value;
}

/** Also what was read elsewhere. */
export function cacheMarkets(markets: readonly Market[]): void {
  if (markets.length === 0) return;
  known.value = new Map([...known.peek(), ...markets.map((market) => [market.id, market] as const)]);
  for (const { id } of markets) wanted.delete(id);
}

export function outcomeName(market: Market | undefined, outcomeId: number): string {
  return market?.outcomes.find(({ id }) => id === outcomeId)?.name ?? `Outcome ${outcomeId}`;
}

export const marketName = (market: Market | undefined, id: number): string => market?.question ?? `Market ${id}`;

async function fetchWanted(): Promise<void> {
  if (isFetching || wanted.size === 0) return;
  isFetching = true;
  try {
    if (wanted.size >= LIST_THRESHOLD) {
      const query = { limit: MAX_LIST, sort: "volume" };
      cacheMarkets((await request<Page<Market>>("GET", "/markets", { query })).items);
    }
    while (wanted.size > 0) {
      const found = await Promise.all([...wanted].slice(0, CONCURRENT_REQUESTS).map(fetchMarket));
      cacheMarkets(found.filter((market) => market !== null));
    }
  } catch (error) {
    const seconds = error instanceof ApiError ? error.retryAfter : null;
    setTimeout(() => void fetchWanted(), seconds === null ? RETRY_MS : seconds * 1_000);
  } finally {
    isFetching = false;
  }
}

/** Null where there is none. */
async function fetchMarket(id: number): Promise<Market | null> {
  try {
    return await request<Market>("GET", `/markets/${id}`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    missing.add(id);
    wanted.delete(id);
    return null;
  }
}
