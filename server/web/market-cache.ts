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
const READERS = 4;
/** From so many on, a page of all markets probably has most of them at once. */
const MANY = 12;
const MAX_LIST = 200;
const PAUSE_MS = 5_000;
let reading = false;

/** @param ids in any order, repeated or not; what isn't known yet comes later */
export function useMarkets(ids: Iterable<number>): ReadonlyMap<number, Market> {
  const lacking = [...new Set(ids)].filter((id) => !known.value.has(id) && !missing.has(id));
  const key = lacking.join();
  useEffect(() => {
    for (const id of lacking) wanted.add(id);
    void readWanted();
  }, [key]);
  return known.value;
}

/** Also what was read elsewhere. */
export function learnMarkets(markets: readonly Market[]): void {
  if (markets.length === 0) return;
  known.value = new Map([...known.peek(), ...markets.map((market) => [market.id, market] as const)]);
  for (const { id } of markets) wanted.delete(id);
}

export function outcomeName(market: Market | undefined, outcomeId: number): string {
  return market?.outcomes.find(({ id }) => id === outcomeId)?.name ?? `Outcome ${outcomeId}`;
}

export const marketName = (market: Market | undefined, id: number): string => market?.question ?? `Market ${id}`;

async function readWanted(): Promise<void> {
  if (reading || wanted.size === 0) return;
  reading = true;
  try {
    if (wanted.size >= MANY) {
      const query = { limit: MAX_LIST, sort: "volume" };
      learnMarkets((await request<Page<Market>>("GET", "/markets", { query })).items);
    }
    while (wanted.size > 0) {
      const found = await Promise.all([...wanted].slice(0, READERS).map(readOne));
      learnMarkets(found.filter((market) => market !== null));
    }
  } catch (error) {
    const seconds = error instanceof ApiError ? error.retryAfter : null;
    setTimeout(() => void readWanted(), seconds === null ? PAUSE_MS : seconds * 1_000);
  } finally {
    reading = false;
  }
}

/** Null where there is none. */
async function readOne(id: number): Promise<Market | null> {
  try {
    return await request<Market>("GET", `/markets/${id}`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    missing.add(id);
    wanted.delete(id);
    return null;
  }
}
