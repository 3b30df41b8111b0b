/** Pages of lists, and opaque cursors: the place to go on from, as base64url text that clients hand back unread. */
import { createHash } from "node:crypto";
import { badRequest } from "../errors.ts";
import { DEFAULT_PAGE_LIMIT } from "./limits.ts";

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

/** What a list is asked for beside the page: path parameters, owner, sort and filters. Undefined and null are none. */
export type Filters = Readonly<Record<string, string | number | boolean | readonly number[] | null | undefined>>;

/**
 * One list, as it is asked for. A cursor goes on in just the list that gave it: it begins with a fingerprint of the list's
 * name, sort and filters, and is refused everywhere else. No secret: whoever makes a cursor by hand finds what is theirs.
 */
export class Listing {
  private readonly name: string;
  private readonly filters: Filters;
  private made: number | null = null;

  /** @param name unique among lists: the route's path */
  constructor(name: string, filters: Filters) {
    this.name = name;
    this.filters = filters;
  }

  /** Only where a cursor comes or goes is it needed. */
  private get fingerprint(): number {
    if (this.made !== null) return this.made;
    const given = Object.entries(this.filters).filter(([, value]) => value !== undefined && value !== null);
    const text = JSON.stringify([this.name, ...given.sort(([a], [b]) => (a < b ? -1 : 1))]);
    this.made = createHash("sha256").update(text).digest().readUIntBE(0, 6);
    return this.made;
  }

  /** @param keys numbers that name the last item shown */
  cursor(...keys: number[]): string {
    return Buffer.from(JSON.stringify([this.fingerprint, ...keys])).toString("base64url");
  }

  /** @param count how many numbers the cursor must hold @throws ApiError 40000 */
  keys(cursor: string, count: number): number[] {
    const given = decode(cursor);
    if (given?.length !== count + 1) throw badRequest("cursor: not one of this list's");
    if (given[0] !== this.fingerprint) {
      throw badRequest("cursor: of another list, or of other filters: only limit may change from page to page");
    }
    return given.slice(1);
  }

  /** Where an id-ordered list goes on (exclusive), and how many items it takes. @throws ApiError 40000 */
  page(query: { limit?: number; cursor?: string }): PageOptions {
    const before = query.cursor === undefined ? Number.MAX_SAFE_INTEGER : this.keys(query.cursor, 1)[0]!;
    return { before, limit: query.limit ?? DEFAULT_PAGE_LIMIT };
  }

  /** @param items JSON texts @param next the id to go on below, or null */
  json(items: readonly string[], next: number | null): string {
    return `{"items":[${items.join(",")}],"next_cursor":${next === null ? "null" : `"${this.cursor(next)}"`}}`;
  }
}

/** The numbers that a cursor holds; null where it is none. */
function decode(cursor: string): number[] | null {
  try {
    const keys: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Array.isArray(keys) && keys.every((key) => Number.isSafeInteger(key))) return keys;
  } catch {
    // Not one of ours.
  }
  return null;
}

/** @throws ApiError 40000 where a list's first time is later than its last */
export function checkSpan({ from, to }: { from?: number; to?: number }): void {
  if (from !== undefined && to !== undefined && from > to) throw badRequest("from: must not be later than to");
}
