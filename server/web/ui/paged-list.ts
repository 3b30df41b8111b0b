/** A list that the API gives in pages with cursors. Renders nothing. */
import { useCallback, useRef, useState } from "preact/hooks";
import type { Query } from "../api.ts";
import { required } from "../required.ts";
import { request } from "../session.ts";
import type { Page } from "../types.ts";
import { useFetch } from "./use-data.ts";

export interface Pages<T> {
  /** Null until the first page has arrived. */
  readonly items: readonly T[] | null;
  readonly error: unknown;
  /** Loads the next page; null on the last page. */
  readonly more: (() => void) | null;
  readonly reload: () => void;
  readonly set: (change: (items: readonly T[]) => readonly T[]) => void;
}

const PAGE_ITEMS = 50;
const MAX_PAGE_ITEMS = 200;
/** Items that a reload reads again. */
const MAX_RELOADED = 1_000;

/** A cursor-paged list. A reload keeps its length, up to MAX_RELOADED items. @param path null: don't fetch yet */
export function usePages<T>(path: string | null, query: Query = {}): Pages<T> {
  const key = JSON.stringify([path, query]);
  const shown = useRef(0);
  const read = (options: { query: Query; signal?: AbortSignal }): Promise<Page<T>> =>
    request("GET", required(path, "the list's path"), options);
  const readFirst = async (signal: AbortSignal): Promise<Page<T>> => {
    const wanted = Math.min(shown.current, MAX_RELOADED);
    const limit = wanted > PAGE_ITEMS ? { limit: Math.min(wanted, MAX_PAGE_ITEMS) } : {};
    const page = await read({ query: { ...limit, ...query }, signal });
    const items = [...page.items];
    let cursor = page.next_cursor;
    while (items.length < wanted && cursor !== null) {
      const next = await read({ query: { ...limit, ...query, cursor }, signal });
      items.push(...next.items);
      cursor = next.next_cursor;
    }
    return { items, next_cursor: cursor };
  };
  const first = useFetch<Page<T>>(path === null ? null : readFirst, key);
  const { data } = first;
  shown.current = data?.items.length ?? 0;
  const from = `${key} ${data?.next_cursor}`;
  /** Identifies the page to append next. A response for another list, or a duplicate, is dropped. */
  const wanted = useRef(from);
  wanted.current = from;
  const reading = useRef<string | null>(null);
  const [failed, setFailed] = useState<{ from: string; error: unknown } | null>(null);
  const more = async (): Promise<void> => {
    // A double click must not append the same page twice.
    if (reading.current === from) return;
    reading.current = from;
    setFailed(null);
    try {
      const next = await read({ query: { ...query, cursor: data?.next_cursor ?? null } });
      if (wanted.current !== from) return;
      first.set((before) => ({ items: [...before.items, ...next.items], next_cursor: next.next_cursor }));
    } catch (error) {
      setFailed({ from, error });
    } finally {
      if (reading.current === from) reading.current = null;
    }
  };
  const reload = useCallback(() => {
    setFailed(null);
    first.reload();
  }, [first.reload]);
  return {
    items: data?.items ?? null,
    error: first.error ?? (failed?.from === from ? failed.error : null),
    more: data === null || data.next_cursor === null ? null : () => void more(),
    reload,
    set: (change) => first.set((before) => ({ ...before, items: [...change(before.items)] })),
  };
}
