/** Reading for a component: once, again when what it depends on changes, and page by page. */
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Query } from "../api.ts";
import { request } from "../session.ts";
import type { Page } from "../types.ts";

export interface Loaded<T> {
  /** Null until it is there; what was there before while it is read anew. */
  readonly data: T | null;
  readonly error: unknown;
  readonly reload: () => void;
  /** What a message changed. */
  readonly set: (change: (data: T) => T) => void;
}

/** @param read null: not yet @param key what it depends on */
export function useLoaded<T>(read: ((signal: AbortSignal) => Promise<T>) | null, key: string): Loaded<T> {
  const [state, setState] = useState<{ key: string; data: T | null; error: unknown }>({ key, data: null, error: null });
  const [turn, setTurn] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  const isIdle = read === null;
  useEffect(() => {
    if (isIdle) return;
    const abort = new AbortController();
    latest.current!(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ key, data, error: null }),
      (error) =>
        !abort.signal.aborted && setState((before) => ({ key, data: before.key === key ? before.data : null, error })),
    );
    return () => abort.abort();
  }, [key, turn, isIdle]);
  const reload = useCallback(() => setTurn((count) => count + 1), []);
  const set = useCallback(
    (change: (data: T) => T) =>
      setState((before) => (before.data === null ? before : { ...before, data: change(before.data) })),
    [],
  );
  const isCurrent = state.key === key;
  return { data: isCurrent ? state.data : null, error: isCurrent ? state.error : null, reload, set };
}

export interface Pages<T> {
  /** Null until the first page is there. */
  readonly items: readonly T[] | null;
  readonly error: unknown;
  /** Null where there are no more. */
  readonly more: (() => void) | null;
  readonly reload: () => void;
  readonly set: (change: (items: readonly T[]) => readonly T[]) => void;
}

/** A list by cursor, a page more at a time. */
export function usePages<T>(path: string | null, query: Query = {}): Pages<T> {
  const key = JSON.stringify([path, query]);
  const read = async (cursor: string | null, signal?: AbortSignal): Promise<Page<T>> =>
    request("GET", path!, { query: { ...query, cursor }, ...(signal === undefined ? {} : { signal }) });
  const first = useLoaded<Page<T>>(path === null ? null : (signal) => read(null, signal), key);
  const [error, setError] = useState<unknown>(null);
  const { data } = first;
  const isReading = useRef(false);
  const more = async (): Promise<void> => {
    // A second click must not show the same page twice.
    if (isReading.current) return;
    isReading.current = true;
    try {
      const next = await read(data!.next_cursor);
      first.set((before) => ({ items: [...before.items, ...next.items], next_cursor: next.next_cursor }));
      setError(null);
    } catch (thrown) {
      setError(thrown);
    } finally {
      isReading.current = false;
    }
  };
  return {
    items: data?.items ?? null,
    error: first.error ?? error,
    more: data === null || data.next_cursor === null ? null : () => void more(),
    reload: first.reload,
    set: (change) => first.set((before) => ({ ...before, items: [...change(before.items)] })),
  };
}

/** What a form or a button does: one at a time, with what went wrong. */
export function useAction<A extends readonly unknown[]>(
  act: (...args: A) => Promise<void>,
): { run: (...args: A) => Promise<void>; isBusy: boolean; error: unknown; clear: () => void } {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const busy = useRef(false);
  const run = async (...args: A): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    setBusy(true);
    setError(null);
    try {
      await act(...args);
    } catch (thrown) {
      setError(thrown);
      if (!(thrown instanceof ApiError)) console.error(thrown);
    } finally {
      busy.current = false;
      setBusy(false);
    }
  };
  return { run, isBusy, error, clear: () => setError(null) };
}

export type Children = ComponentChildren;
