/** Pages of lists, and opaque cursors: the position of the next page as base64url text that clients return unread. */
import { createHash } from "node:crypto";
import { badRequest } from "../errors.ts";
import { DEFAULT_INTERVALS, DEFAULT_PAGE_LIMIT, MAX_INTERVALS } from "./limits.ts";

/** @typeParam T its items: objects that clients see, or their JSON */
export interface HistoryPage<T = object> {
  /** Newest first. */
  items: T[];
  /** The id to continue below, or null at the end. */
  next: number | null;
}

export interface PageOptions {
  /** The page starts below this id. */
  before: number;
  limit: number;
}

/** The page parameters of a request. */
interface PageQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

/** A page of a user's own rows. */
export interface OwnPageOptions extends PageOptions {
  userId: number;
}

/** @param rows the page's rows, and one more where there is one */
export function buildPage<T, O>(
  rows: readonly T[],
  limit: number,
  item: (row: T) => O,
  id: (row: T) => number,
): HistoryPage<O> {
  const items = rows.slice(0, limit).map(item);
  const last = rows[limit - 1];
  return { items, next: rows.length > limit && last !== undefined ? id(last) : null };
}

/** What identifies a list: path parameters, owner, sort and filters. Undefined and null don't count. */
export type Filters = Readonly<Record<string, string | number | boolean | readonly number[] | null | undefined>>;

/**
 * One list as a client requests it. A cursor is valid for the list that issued it: it starts with a fingerprint of the
 * list's name, sort and filters. It is no secret: a forged cursor shows its author only their own rows.
 */
export class Listing {
  private readonly name: string;
  private readonly filters: Filters;
  private cachedFingerprint: number | null = null;

  /** @param name unique among lists: the route's path */
  constructor(name: string, filters: Filters) {
    this.name = name;
    this.filters = filters;
  }

  /** Computed on first use: only cursors need it. */
  private get fingerprint(): number {
    if (this.cachedFingerprint !== null) return this.cachedFingerprint;
    const given = Object.entries(this.filters).filter(([, value]) => value !== undefined && value !== null);
    const text = JSON.stringify([this.name, ...given.sort(([a], [b]) => (a < b ? -1 : 1))]);
    this.cachedFingerprint = createHash("sha256").update(text).digest().readUIntBE(0, 6);
    return this.cachedFingerprint;
  }

  /** @param keys numbers that identify the page's last item */
  cursor(...keys: number[]): string {
    return Buffer.from(JSON.stringify([this.fingerprint, ...keys])).toString("base64url");
  }

  /** @param count how many numbers the cursor must hold @throws ApiError 40000 */
  keys(cursor: string, count: number): number[] {
    const given = decode(cursor);
    if (given?.length !== count + 1) throw badRequest("cursor: not a cursor of this list");
    if (given[0] !== this.fingerprint) {
      throw badRequest("cursor: belongs to another list or to other filters: only limit may change between pages");
    }
    return given.slice(1);
  }

  /** The position and size of a page of an id-ordered list. @throws ApiError 40000 */
  page(query: PageQuery): PageOptions {
    const [before = Number.MAX_SAFE_INTEGER] = query.cursor === undefined ? [] : this.keys(query.cursor, 1);
    return { before, limit: query.limit ?? DEFAULT_PAGE_LIMIT };
  }

  /** @param items JSON texts @param next the id below which the next page starts, or null */
  json(items: readonly string[], next: number | null): string {
    return `{"items":[${items.join(",")}],"next_cursor":${next === null ? "null" : `"${this.cursor(next)}"`}}`;
  }
}

/** The numbers in a cursor; null where the text is no cursor. */
function decode(cursor: string): number[] | null {
  try {
    const keys: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Array.isArray(keys) && keys.every((key) => Number.isSafeInteger(key))) return keys;
  } catch {
    // Not one of ours.
  }
  return null;
}

/** @throws ApiError 40000 where `from` is later than `to` */
export function checkSpan({ from, to }: { from?: number; to?: number }): void {
  if (from !== undefined && to !== undefined && from > to) throw badRequest("from: must not be later than to");
}

/**
 * Where the first and the last interval begin that a request for figures by interval wants; none later than now.
 * @param step ms @param round of `from`: whether its own interval counts
 * @throws ApiError 40000 where `from` is later than `to`, and for too many intervals
 */
export function intervalsOf(
  { from, to }: { from?: number; to?: number },
  { name, step }: { readonly name: string; readonly step: number },
  now: number,
  round: (intervals: number) => number,
): { first: number; last: number } {
  const end = to ?? now;
  const last = Math.floor(Math.min(end, now) / step) * step;
  const begin = from ?? Math.max(0, last - (DEFAULT_INTERVALS - 1) * step);
  if (begin > end) throw badRequest(`from: must not be later than "to" (${end})`);
  const first = round(begin / step) * step;
  if (last - first >= MAX_INTERVALS * step) {
    throw badRequest(`from: must be at most ${MAX_INTERVALS} intervals of ${name} before "to"`);
  }
  return { first, last };
}

/** A list of the caller's own, without filters. */
export const ownList = (name: string, { userId }: { readonly userId: number }): Listing =>
  new Listing(name, { userId });

/** Returns one page of rows in memory, newest first. */
export function pageJson<T extends { readonly id: number }>(
  listing: Listing,
  rows: readonly T[],
  query: PageQuery,
  view: (row: T) => object,
): string {
  const { before, limit } = listing.page(query);
  const found = rows.filter(({ id }) => id < before).sort((a, b) => b.id - a.id);
  const shown = found.slice(0, limit);
  return listing.json(
    shown.map((row) => JSON.stringify(view(row))),
    found.length > limit ? (shown.at(-1)?.id ?? null) : null,
  );
}
