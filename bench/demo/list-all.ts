/** Reads paginated lists. */
import type { Caller, Reply } from "./types.ts";

/** All items of a paginated list; the items so far if a page fails. */
export async function listAll<T>(caller: Caller, path: string): Promise<T[]> {
  const items: T[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Reply<{ items: T[]; next_cursor: string | null }> = await caller.call(
      "GET",
      `${path}?limit=200${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    items.push(...(page.data?.items ?? []));
    cursor = page.data?.next_cursor ?? null;
  }
  return items;
}
