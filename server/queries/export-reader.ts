/** Reads slices of exports as lines of CSV. To be called in a read transaction. */
import type Database from "better-sqlite3";
import type { HistoryPage, OwnPageOptions } from "../http/paging.ts";
import { type ExportedRow, exportLines, type Layout } from "./export-columns.ts";
import type { FillReader } from "./fill-reader.ts";
import type { OrderReader } from "./order-reader.ts";
import type { PaymentReader, SettlementsOptions } from "./payment-reader.ts";
import type { TransactionReader, TransactionsOptions } from "./transaction-reader.ts";
import type { FillsOptions, OrdersOptions } from "./types.ts";

/** Which list, and its filters. */
export type StoredList =
  | ({ readonly kind: "orders" } & OrdersOptions)
  | ({ readonly kind: "fills" } & FillsOptions)
  | ({ readonly kind: "settlements" } & SettlementsOptions)
  | ({ readonly kind: "transactions" } & TransactionsOptions);

export interface LinesOptions {
  readonly list: StoredList;
  readonly layout: Layout;
}

/** A part of a long list as lines of text. */
export interface TextSlice {
  text: string;
  /** The id to continue below, or null at the end. */
  next: number | null;
}

interface Readers {
  readonly orders: OrderReader;
  readonly fills: FillReader;
  readonly payments: PaymentReader;
  readonly transactions: TransactionReader;
}

export function prepareExports(db: Database.Database, readers: Readers): (options: LinesOptions) => TextSlice {
  const question = db.prepare("SELECT question FROM markets WHERE id = ?").pluck();
  const name = db.prepare("SELECT name FROM outcomes WHERE id = ?").pluck();
  return ({ list, layout }) => {
    const { items, next } = pageOf(readers, list);
    const names = { market: lookUp(question), outcome: lookUp(name) };
    return { text: exportLines(list.kind, layout, items as ExportedRow[], names), next };
  };
}

function pageOf({ orders, fills, payments, transactions }: Readers, list: StoredList): HistoryPage {
  switch (list.kind) {
    case "orders":
      return parsed(orders.orders(list));
    case "fills":
      return parsed(fills.fills(list));
    case "settlements":
      return payments.settlements(list);
    case "transactions":
      return transactions.transactions(list);
  }
}

const parsed = ({ items, next }: HistoryPage<string>): HistoryPage => ({
  items: items.map((json) => JSON.parse(json)),
  next,
});

/** Reads each text once. */
function lookUp(statement: Database.Statement): (id: number | null) => string {
  const found = new Map<number, string>();
  return (id) => {
    if (id === null) return "";
    const text = found.get(id) ?? String(statement.get(id) ?? "");
    found.set(id, text);
    return text;
  };
}

/** Filters of a list without the page. */
export type Unpaged<T extends OwnPageOptions> = T extends unknown ? Omit<T, "before" | "limit"> : never;
