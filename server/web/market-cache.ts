/** Caches markets that are known only by id, such as those of positions and orders. Fetches each once, many at a time. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { MAX_LISTED_IDS } from "../markets/limits.ts";
import { ApiError } from "./api.ts";
import { request } from "./session.ts";
import type { Market, Page } from "./types.ts";

const cache = signal<ReadonlyMap<number, Market>>(new Map());
const wanted = new Set<number>();
/** Ids that don't exist, or aren't public. */
const missing = new Set<number>();
const RETRY_MS = 5_000;
let isFetching = false;

/** Returns the cached markets and fetches those missing. @param ids in any order, with or without duplicates */
export function useMarkets(ids: Iterable<number>): ReadonlyMap<number, Market> {
  const uncached = [...new Set(ids)].filter((id) => !cache.value.has(id) && !missing.has(id));
  const key = uncached.join();
  useEffect(() => {
    for (const id of uncached) wanted.add(id);
    void fetchWanted();
  }, [key]);
  return cache.value;
}

/** Returns a market, fetched if it isn't cached; undefined without a response. */
export async function findMarket(id: number): Promise<Market | undefined> {
  if (!cache.peek().has(id)) {
    wanted.add(id);
    await fetchWanted();
  }
  return cache.peek().get(id);
}

/** Adds markets that were fetched elsewhere. */
export function cacheMarkets(markets: readonly Market[]): void {
  if (markets.length === 0) return;
  cache.value = new Map([...cache.peek(), ...markets.map((market) => [market.id, market] as const)]);
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
    while (wanted.size > 0) {
      const ids = [...wanted].slice(0, MAX_LISTED_IDS);
      const query = { ids: ids.join(), status: "all", limit: MAX_LISTED_IDS };
      const { items } = await request<Page<Market>>("GET", "/markets", { query });
      cacheMarkets(items);
      for (const id of ids) if (wanted.delete(id)) missing.add(id);
    }
  } catch (error) {
    const seconds = error instanceof ApiError ? error.retryAfter : null;
    setTimeout(() => void fetchWanted(), seconds === null ? RETRY_MS : seconds * 1_000);
  } finally {
    isFetching = false;
  }
}
