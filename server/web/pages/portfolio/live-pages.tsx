/** A cursor-paged list that order updates extend live. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { onOrderUpdate } from "../../account-state.ts";
import type { Query } from "../../api.ts";
import type { Order } from "../../types.ts";
import { Notice } from "../../ui/notices.tsx";
import { type Pages, usePages } from "../../ui/paged-list.ts";
import { useBatched } from "../../ui/throttle.ts";

/** Items added live before the list stops growing: a bot's orders would make it endless. */
const MAX_ADDED = 200;

/**
 * A cursor-paged list, newest first, extended by order updates. Past a bound it stops growing, and offers a refresh
 * instead.
 */
export function useLivePages<T extends { readonly id: number }>(
  path: string,
  query: Query,
  itemsOf: (order: Order) => readonly T[],
): Pages<T> & { readonly newer: ComponentChildren } {
  const pages = usePages<T>(path, query);
  const added = useRef(0);
  const [hasNewer, setNewer] = useState(false);
  const add = useBatched((orders: readonly Order[]) =>
    pages.set((before) => {
      const byId = new Map(before.map((item) => [item.id, item]));
      // Items older than the last one shown belong to a later page.
      const oldest = pages.more === null ? 0 : (before.at(-1)?.id ?? 0);
      for (const item of orders.flatMap(itemsOf)) {
        if (item.id < oldest) continue;
        if (!byId.has(item.id) && added.current++ >= MAX_ADDED) setNewer(true);
        else byId.set(item.id, item);
      }
      return [...byId.values()].sort((a, b) => b.id - a.id);
    }),
  );
  useEffect(() => onOrderUpdate(add), []);
  const reload = (): void => {
    added.current = 0;
    setNewer(false);
    pages.reload();
  };
  const newer = hasNewer && (
    <Notice>
      Newer items are available.{" "}
      <button type="button" class="small" onClick={reload}>
        Refresh
      </button>
    </Notice>
  );
  return { ...pages, reload, newer };
}
