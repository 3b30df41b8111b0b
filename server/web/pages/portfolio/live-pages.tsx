/** A cursor-paged list that order updates extend live. Renders nothing. */
import { useEffect, useRef } from "preact/hooks";
import { onOrderUpdate } from "../../account-state.ts";
import type { Query } from "../../api.ts";
import type { Order } from "../../types.ts";
import { type Pages, usePages } from "../../ui/paged-list.ts";
import { useBatched } from "../../ui/throttle.ts";
import { useOnLive } from "../../ui/use-data.ts";

/** Items added live before the list is read anew: a bot's orders would make it endless. */
const MAX_ADDED = 200;
const RELOAD_MS = 5_000;

/**
 * A cursor-paged list, newest first, extended by order updates. Past a bound it is read anew now and then instead, which
 * keeps its length.
 * @param path null: don't fetch yet
 */
export function useLivePages<T extends { readonly id: number }>(
  path: string | null,
  query: Query,
  itemsOf: (order: Order) => readonly T[],
): Pages<T> {
  const pages = usePages<T>(path, query);
  const added = useRef(0);
  const add = useBatched((orders: readonly Order[]) =>
    pages.set((before) => {
      const byId = new Map(before.map((item) => [item.id, item]));
      // Items older than the last one shown belong to a later page.
      const oldest = pages.more === null ? 0 : (before.at(-1)?.id ?? 0);
      for (const item of orders.flatMap(itemsOf)) {
        if (item.id < oldest) continue;
        if (byId.has(item.id) || added.current++ < MAX_ADDED) byId.set(item.id, item);
      }
      return [...byId.values()].sort((a, b) => b.id - a.id);
    }),
  );
  useEffect(() => onOrderUpdate(add), []);
  useOnLive(pages.reload);
  useEffect(() => {
    const timer = setInterval(() => {
      if (added.current <= MAX_ADDED) return;
      added.current = 0;
      pages.reload();
    }, RELOAD_MS);
    return () => clearInterval(timer);
  }, [pages.reload]);
  return pages;
}
