/** Hooks that fetch data, page through lists, and run actions. They render nothing. */

import { useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Query } from "../api.ts";
import { required } from "../required.ts";
import { request } from "../session.ts";
import { streamState } from "../stream.ts";
import type { Page } from "../types.ts";

export interface Fetched<T> {
  /** Null until the first response; during a reload, the previous data. */
  readonly data: T | null;
  readonly error: unknown;
  readonly reload: () => void;
  /** Applies a local change, such as a stream event. */
  readonly set: (change: (data: T) => T) => void;
}

const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 30_000;

/** The exchange can't be reached, is starting up, or has too much to do: later, the same read may succeed. */
const isTransient = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 502);

/** Repeats a read that failed for now: after a while, and at once when the connection returns. */
function useRetries(error: unknown, reload: () => void): void {
  const tries = useRef(0);
  useEffect(() => {
    if (error === null) tries.current = 0;
    if (!isTransient(error)) return;
    const usual = Math.min(FIRST_RETRY_MS * 2 ** tries.current++, MAX_RETRY_MS);
    const timer = setTimeout(reload, Math.max(usual, 1_000 * (error.retryAfter ?? 0)));
    return () => clearTimeout(timer);
  }, [error]);
  useOnLive(() => isTransient(error) && reload());
}

/** Runs when the stream is live again. */
export function useOnLive(run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  const before = useRef(streamState.peek());
  useSignalEffect(() => {
    const state = streamState.value;
    if (state === "live" && before.current !== "live") latest.current();
    before.current = state;
  });
}

/** Fetches on mount and whenever the key changes. @param read null: don't fetch yet @param key identifies the request */
export function useFetch<T>(read: ((signal: AbortSignal) => Promise<T>) | null, key: string): Fetched<T> {
  const [state, setState] = useState<{ key: string; data: T | null; error: unknown }>({ key, data: null, error: null });
  const [reloads, setReloads] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  const isIdle = read === null;
  useEffect(() => {
    if (isIdle) return;
    const abort = new AbortController();
    latest.current?.(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ key, data, error: null }),
      (error) =>
        !abort.signal.aborted && setState((before) => ({ key, data: before.key === key ? before.data : null, error })),
    );
    return () => abort.abort();
  }, [key, reloads, isIdle]);
  const reload = useCallback(() => setReloads((count) => count + 1), []);
  const set = useCallback(
    (change: (data: T) => T) =>
      setState((before) => (before.data === null ? before : { ...before, data: change(before.data) })),
    [],
  );
  const isCurrent = state.key === key;
  useRetries(isCurrent ? state.error : null, reload);
  return { data: isCurrent ? state.data : null, error: isCurrent ? state.error : null, reload, set };
}

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

/** A cursor-paged list. A reload keeps its length, up to the largest page the API serves. @param path null: don't fetch yet */
export function usePages<T>(path: string | null, query: Query = {}): Pages<T> {
  const key = JSON.stringify([path, query]);
  const shown = useRef(0);
  const read = (options: { query: Query; signal?: AbortSignal }): Promise<Page<T>> =>
    request("GET", required(path, "the list's path"), options);
  const readFirst = (signal: AbortSignal): Promise<Page<T>> => {
    const limit = shown.current > PAGE_ITEMS ? { limit: Math.min(shown.current, MAX_PAGE_ITEMS) } : {};
    return read({ query: { ...limit, ...query }, signal });
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

/** Runs a form's or button's action, one run at a time, and keeps its error. */
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
