/**
 * Reads a user's transactions: everything that moved the user's money, from fills (fill-reader.ts) and from entries, in one
 * list, newest first. To be called in a read transaction.
 */
import type Database from "better-sqlite3";
import { Side } from "../../engine/constants.ts";
import { tradedMicro } from "../../engine/money.ts";
import { buildPage, type HistoryPage, type OwnPageOptions } from "../http/paging.ts";
import type { FillReader } from "./fill-reader.ts";
import { MAX_ROWS_WALKED } from "./limits.ts";
import { idsInSpan } from "./linked-rows.ts";
import { hasRareType, RARE_ENTRIES } from "./payment-reader.ts";
import type { FillRow } from "./types.ts";

export interface TransactionsOptions extends OwnPageOptions {
  type?: string | undefined;
  from?: number | undefined;
  to?: number | undefined;
}

interface TransactionRow {
  id: number;
  type: string;
  amount: number;
  balance_after: number;
  market_id: number | null;
  outcome_id: number | null;
  order_id: number | null;
  trade_id: number | null;
  match_id: number | null;
  deposit_id: number | null;
  created_at: number;
}

/** Transaction ids are four to an entry, because one fill moves money up to three times. */
const TRANSACTIONS_PER_ENTRY = 4;
const TRADE_PART = 0;
const FEE_PART = 1;
const REBATE_PART = 2;
/** Types that fills make, and types that entries make: a fee is a seller's, or the fee of a merge. */
const FILL_TYPES: ReadonlySet<string> = new Set(["trade", "fee", "rebate"]);
const ENTRY_TYPES: ReadonlySet<string> = new Set(["deposit", "withdrawal", "split", "merge", "fee", "settlement"]);

/** The transactions of a fill, latest first: rebate, fee, and the notional of its shares. */
function fillTransactions(row: FillRow): TransactionRow[] {
  const base = {
    market_id: row.market_id,
    outcome_id: row.outcome_id,
    order_id: row.order_id,
    trade_id: row.id,
    match_id: row.match_id,
    deposit_id: null,
    created_at: row.created_at,
  };
  const id = row.id * TRANSACTIONS_PER_ENTRY;
  const parts = [
    { id: id + TRADE_PART, type: "trade", amount: tradedMicro(row) },
    { id: id + FEE_PART, type: "fee", amount: -row.fee },
    { id: id + REBATE_PART, type: "rebate", amount: row.rebate },
  ];
  const found: TransactionRow[] = [];
  let after = row.balance_after;
  for (const part of parts.reverse()) {
    if (part.amount === 0) continue;
    found.push({ ...part, ...base, balance_after: after });
    after -= part.amount;
  }
  return found;
}

export interface TransactionReader {
  transactions(options: TransactionsOptions): HistoryPage;
}

export function prepareTransactions(db: Database.Database, fillReader: FillReader): TransactionReader {
  const readEntries = prepareEntries(db);
  const transactions = (options: TransactionsOptions): HistoryPage<TransactionRow> => {
    const { before, limit } = options;
    const fills = fillRows(fillReader, options);
    const entries = readEntries(options, fills.floor);
    // Rows below the floor were not scanned.
    const lowest = entries.floor * TRANSACTIONS_PER_ENTRY;
    const rows = [...fills.rows, ...entries.rows].filter(({ id }) => id < before && id >= lowest);
    const page = buildPage(
      rows.sort((a, b) => b.id - a.id),
      limit,
      (row) => row,
      ({ id }) => id,
    );
    return page.next === null && entries.floor > 0 ? { ...page, next: lowest } : page;
  };
  return {
    transactions,
  };
}

/** Transactions, and the lowest id of a fill or entry that was scanned; 0 where all were. */
interface FoundRows {
  readonly rows: TransactionRow[];
  readonly floor: number;
}

function fillRows(reader: FillReader, options: TransactionsOptions): FoundRows {
  const { userId, limit, before, type = null, from = null, to = null } = options;
  if (type !== null && !FILL_TYPES.has(type)) return { rows: [], floor: 0 };
  // The fill that `before` lies in may still have a part of the wanted type, or of any, below it.
  const offset = type === "fee" ? FEE_PART : type === "rebate" ? REBATE_PART : TRADE_PART;
  const below = Math.ceil((before - offset) / TRANSACTIONS_PER_ENTRY);
  const filters = { from, to, side: type === "fee" ? Side.sell : null, rebated: type === "rebate" ? 1 : null };
  const { rows, end } = reader.rowsOfUser({ userId, before: below, limit, ...filters });
  const parts = rows.flatMap(fillTransactions).filter((part) => type === null || part.type === type);
  return { rows: parts, floor: end ?? 0 };
}

/** The second argument of the reader is the floor of the fills: entries below it are not read. */
function prepareEntries(db: Database.Database): (options: TransactionsOptions, floor: number) => FoundRows {
  const entries = (where: string): Database.Statement =>
    db.prepare(
      `SELECT id, type, amount, balance_after, market_id, outcome_id, created_at,
         CASE type WHEN 'deposit' THEN coalesce(reverses, id) END AS deposit_id FROM entries ${where}
       AND user_id = @userId AND id < @before AND id >= @floor
       AND (@from IS NULL OR created_at >= @from) AND (@to IS NULL OR created_at <= @to)
       ORDER BY id DESC LIMIT @limit`,
    );
  const ofUser = entries("INDEXED BY entries_by_user WHERE (@type IS NULL OR type = @type)");
  const mergeFees = entries("INDEXED BY merge_fees WHERE type = 'fee' AND @type = 'fee'");
  const rare = entries(`INDEXED BY rare_entries WHERE ${RARE_ENTRIES} AND type = @type`);
  const lastWalked = db
    .prepare(
      `SELECT id FROM entries INDEXED BY entries_by_user WHERE user_id = @userId AND id < @before
       ORDER BY id DESC LIMIT 1 OFFSET ${MAX_ROWS_WALKED - 1}`,
    )
    .pluck();
  const statementOf = (type: string | null): Database.Statement => {
    if (type === "fee") return mergeFees;
    return type !== null && hasRareType(type) ? rare : ofUser;
  };
  return ({ userId, limit, before, type = null, from = null, to = null }, floor) => {
    if (type !== null && !ENTRY_TYPES.has(type)) return { rows: [], floor };
    const [first, end] = idsInSpan(db, "entries", { from, to });
    const top = Math.min(Math.ceil(before / TRANSACTIONS_PER_ENTRY), end);
    const statement = statementOf(type);
    // The walk is bounded only where entries of other types are passed: elsewhere every entry fits.
    const isWalk = statement === ofUser && type !== null;
    const last = isWalk ? Number(lastWalked.get({ userId, before: top }) ?? 0) : 0;
    const lowest = last > first ? Math.max(floor, last) : floor;
    const params = { userId, before: top, floor: Math.max(first, lowest), type, from, to, limit: limit + 1 };
    const rows = (statement.all(params) as TransactionRow[]).map((row) => ({
      ...row,
      id: row.id * TRANSACTIONS_PER_ENTRY,
      order_id: null,
      trade_id: null,
      match_id: null,
    }));
    return { rows, floor: lowest };
  };
}
