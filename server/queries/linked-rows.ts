/**
 * Pages of linked rows. Each of a user's orders and fills and of a market's trades names the row before it
 * (engine/projection/row-links.ts), so a page is read from newest to oldest without an index. A page continues below the
 * last row of the previous page, or starts at the newest row. A walk scans MAX_ROWS_WALKED rows at most.
 */
import type Database from "better-sqlite3";
import { firstIdSince } from "../../engine/projection/load/orders.ts";
import { buildPage, type HistoryPage } from "../http/paging.ts";
import { MAX_ROWS_WALKED } from "./limits.ts";
import type { AnySpan } from "./types.ts";

type LinkedTable = "orders" | "fills";

/** What a walk adds to each row. */
export interface Walked {
  readonly id: number;
  /** How many rows the walk has scanned, including this one. */
  readonly step: number;
  /** 1 where the row passes the filters. */
  readonly fits: number;
}

/** The whole of the linked rows, without a limit of the walk. */
export const UNBOUNDED = { floor: 0, walk: Number.MAX_SAFE_INTEGER, before: Number.MAX_SAFE_INTEGER };

/** Finds where a page starts: the id of an order or fill, 0 where the owner has none below `before`. */
export type FindStart = (owner: number, before: number) => number;

/**
 * @param newestSql the owner's newest row @param previousSql the row before @id, where @id is itself the owner's: usually
 *   it is, as the last row of the page before
 */
export function prepareStart(db: Database.Database, newestSql: string, previousSql: string): FindStart {
  const newest = db.prepare(newestSql).pluck();
  const previous = db.prepare(previousSql).pluck();
  return (owner, before) => Number(previous.get({ id: before, owner }) ?? newest.get({ owner }) ?? 0);
}

interface RowsOptions {
  readonly table: LinkedTable;
  /** The column that names the row before. */
  readonly link: string;
  readonly columns: string;
  readonly filters: string;
}

/**
 * Reads linked rows from @start down to @floor, @walk of them at most: those that pass `filters`, @limit at most, and the
 * last row that the walk may scan, whether it passes or not.
 */
export function prepareRows<Row>(
  db: Database.Database,
  { table, link, columns, filters }: RowsOptions,
): (params: object) => (Row & Walked)[] {
  const rows = db.prepare(
    `WITH RECURSIVE chain (link, step) AS (
       SELECT @start, 1 WHERE @start >= @floor
       UNION ALL SELECT ${table}.${link}, step + 1 FROM chain CROSS JOIN ${table} ON ${table}.id = link
         WHERE ${table}.${link} > 0 AND ${table}.${link} >= @floor AND step < @walk)
     SELECT ${columns}, step, (${filters}) AS fits FROM chain CROSS JOIN ${table} ON ${table}.id = link
       CROSS JOIN outcomes ON outcomes.id = outcome_id
     WHERE fits OR step = @walk LIMIT @limit`,
  );
  return (params) => rows.all(params) as (Row & Walked)[];
}

/** A page of a walk. Where the walk's limit ended it before the page was full, the next page continues behind the walk. */
export function pageOfWalk<Row extends Walked, T>(
  rows: readonly Row[],
  limit: number,
  item: (row: Row) => T,
): HistoryPage<T> {
  const fitting = rows.filter(({ fits }) => fits === 1);
  const page = buildPage(fitting, limit, item, ({ id }) => id);
  return page.next === null ? { ...page, next: endOfWalk(rows) } : page;
}

/** The last row that was scanned; null where the rows or the page ended before the walk's limit. */
export function endOfWalk(rows: readonly Walked[]): number | null {
  const last = rows.at(-1);
  return last?.step === MAX_ROWS_WALKED ? last.id : null;
}

/**
 * Ids rise with times, except for what several engine threads hand over slightly out of order: the walk checks the times
 * of rows this close to a bound one by one.
 */
const TIME_SLACK_MS = 10_000;
/** How many rows below an id, of all owners, are searched for one of the owner's, so that the walk can start there. */
const ENTRY_SPAN = 20_000;

/** The ids from `floor` to below `ceiling` cover all rows of the span. */
export function idsInSpan(
  db: Database.Database,
  table: LinkedTable | "entries",
  { from, to }: AnySpan,
): [floor: number, ceiling: number] {
  return [
    from == null ? 0 : firstIdSince(db, table, from - TIME_SLACK_MS),
    to == null ? Number.MAX_SAFE_INTEGER : firstIdSince(db, table, to + TIME_SLACK_MS + 1),
  ];
}

/** Gives the parameters of a walk over an owner's rows. @param owned the condition for the rows of @owner */
export function prepareWalk(
  db: Database.Database,
  table: LinkedTable,
  findStart: FindStart,
  owned: string,
): (owner: number, before: number, span: AnySpan) => object {
  const near = db
    .prepare(
      `SELECT ${table}.id FROM ${table} JOIN outcomes ON outcomes.id = outcome_id
       WHERE ${table}.id < @ceiling AND ${table}.id >= @ceiling - ${ENTRY_SPAN} AND ${owned} ORDER BY ${table}.id DESC LIMIT 1`,
    )
    .pluck();
  return (owner, before, { from = null, to = null }) => {
    const [floor, ceiling] = idsInSpan(db, table, { from, to });
    const first = findStart(owner, before);
    const start = first < ceiling ? first : Number(near.get({ owner, ceiling }) ?? first);
    return { start, floor, before, owner, from, to, walk: MAX_ROWS_WALKED };
  };
}
