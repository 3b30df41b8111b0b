/** Pages of lists, and opaque cursors: the place to go on from, as base64url text that clients hand back unread. */
import { DEFAULT_PAGE_LIMIT } from "../engine/limits.ts";
import { badRequest } from "./errors.ts";

export interface HistoryPage<T extends object = object> {
  /** Newest first. */
  items: T[];
  /** The id to continue below, or null at the end. */
  next: number | null;
}

export interface PageOptions {
  /** The id to go on below. */
  before: number;
  limit: number;
}

/** A page of a user's own rows. */
export interface OwnPageOptions extends PageOptions {
  userId: number;
}

/** @param rows one more than the page has, where there is one */
export function takePage<T, O extends object>(
  rows: readonly T[],
  limit: number,
  object: (row: T) => O,
  id: (row: T) => number,
): HistoryPage<O> {
  const items = rows.slice(0, limit).map(object);
  return { items, next: rows.length > limit ? id(rows[limit - 1]!) : null };
}

/** @param keys numbers that name the last item shown */
export function encodeCursor(...keys: number[]): string {
  return Buffer.from(JSON.stringify(keys)).toString("base64url");
}

/** @param count how many numbers the cursor must hold @throws ApiError 40000 */
export function decodeCursor(cursor: string, count: number): number[] {
  try {
    const keys: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Array.isArray(keys) && keys.length === count && keys.every((key) => Number.isSafeInteger(key))) return keys;
  } catch {
    // Falls through to the one message for all wrong cursors.
  }
  throw badRequest("cursor: not one of this list's");
}

/** Where an id-ordered list goes on (exclusive), and how many items it takes. @throws ApiError 40000 */
export function readPage(query: { limit?: number; cursor?: string }): { before: number; limit: number } {
  const before = query.cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeCursor(query.cursor, 1)[0]!;
  return { before, limit: query.limit ?? DEFAULT_PAGE_LIMIT };
}

/** @throws ApiError 40000 where a list's first time is later than its last */
export function checkSpan({ from, to }: { from?: number; to?: number }): void {
  if (from !== undefined && to !== undefined && from > to) throw badRequest("from: must not be later than to");
}

/** @param items JSON texts @param next the id to go on below, or null */
export function pageJson(items: readonly string[], next: number | null): string {
  return `{"items":[${items.join(",")}],"next_cursor":${next === null ? "null" : `"${encodeCursor(next)}"`}}`;
}
