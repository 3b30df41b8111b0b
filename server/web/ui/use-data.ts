/** Hooks that fetch data. They render nothing. */

import { useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api.ts";
import { streamState } from "../stream.ts";

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

export type Children = ComponentChildren;
