/**
 * The tables whose rows the projector writes in bulk: the columns of each, in the order in which a row's values are bound.
 * The statements that write and read them, and the places of the values, derive from these.
 */
import type Database from "better-sqlite3";

/** @typeParam Column its columns, all of them */
export interface Table<Column extends string = string> {
  readonly name: string;
  readonly columns: readonly Column[];
  /** The place of each column among a row's values. */
  readonly at: Readonly<Record<Column, number>>;
}

export type ColumnOf<T extends Table> = T["columns"][number];

function table<const Column extends string>(name: string, columns: readonly Column[]): Table<Column> {
  const places = columns.map((column, place) => [column, place] as const);
  return { name, columns, at: Object.fromEntries(places) as Record<Column, number> };
}

/** Reads all rows; the value of a column is at `table.at`. */
export const rowsOf = (db: Database.Database, { name, columns }: Table): Iterable<number[]> =>
  db
    .prepare(`SELECT ${columns.join(", ")} FROM ${name}`)
    .raw()
    .iterate() as IterableIterator<number[]>;

/** The columns that most orders have the same values in come last (order-rows.ts). */
export const ORDERS = table("orders", [
  ...(["id", "user_id", "outcome_id", "side", "post_only", "pat", "price", "quantity", "remaining", "status"] as const),
  ...(["reason", "client_order_id", "fingerprint", "quote", "created_at", "updated_at", "previous_of_user"] as const),
  ...(["last_fill_id", "type", "time_in_force", "self_trade_prevention", "expires_at", "priority"] as const),
  ...(["builder_id", "tied"] as const),
]);

export const FILLS = table("fills", [
  ...([
    "id",
    "match_id",
    "user_id",
    "order_id",
    "outcome_id",
    "side",
    "price",
    "quantity",
    "role",
    "match_type",
  ] as const),
  ...(["fee", "rebate", "balance_after", "created_at", "previous_of_user", "previous_of_order"] as const),
  ...(["previous_of_market", "builder_id"] as const),
]);

export const ENTRIES = table("entries", [
  ...(["id", "user_id", "type", "amount", "balance_after", "market_id", "outcome_id", "reference"] as const),
  ...(["created_at", "last_fill_id", "quantity", "cost", "reverses"] as const),
]);

export const ACCOUNTS = table("accounts", ["user_id", "balance", "activity_day", "activity_used", "fees", "rebates"]);

export const POSITIONS = table("positions", ["user_id", "outcome_id", "quantity", "cost", "realized_pnl"]);

export const CANDLES = table("candles", [
  ...(["outcome_id", "interval", "open_time", "open", "high", "low", "close", "volume", "last_fill_id"] as const),
]);

export const UPDATE_INDEX = table("update_index", ["user_id", "sequence", "block", "batch"]);

export const TERM_CHANGES = table("term_changes", ["order_id", "sequence", "price", "quantity", "expires_at"]);

/** All of them. */
export const TABLES: readonly Table[] = [
  ...[ORDERS, FILLS, ENTRIES, ACCOUNTS, POSITIONS, CANDLES, UPDATE_INDEX, TERM_CHANGES],
];
