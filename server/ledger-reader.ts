/**
 * Reads what moved users' money: transactions, and deposits, withdrawals and settlements by themselves. To be called in a
 * read transaction. Fills are read by the caller, who knows their chains.
 */
import type Database from "better-sqlite3";
import { Side } from "../engine/constants.ts";
import { notionalMicro } from "../engine/money.ts";
import type { FillRow } from "./history-worker.ts";
import { type HistoryPage, type PageOptions, takePage } from "./paging.ts";

export interface TransactionsOptions extends PageOptions {
  type?: string | undefined;
  from?: number | undefined;
  to?: number | undefined;
}

/** Null: any. */
export interface FillFilters {
  marketId?: number | null;
  /** ms, both included. */
  from?: number | null;
  to?: number | null;
  side?: number | null;
  /** 1: those alone that got a rebate. */
  rebated?: number | null;
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
  created_at: number;
}

/** Ids of transactions: four to an entry, because one fill moves money up to three times. */
const TRANSACTIONS_PER_ENTRY = 4;
const TRADE_PART = 0;
const FEE_PART = 1;
const REBATE_PART = 2;
/** Types that fills make; all others come from entries. */
const FILL_TYPES: ReadonlySet<string> = new Set(["trade", "fee", "rebate"]);

/** A fill's money, latest first: rebate, fee, and the shares' price. */
function fillTransactions(row: FillRow): TransactionRow[] {
  const notional = notionalMicro(row.price, row.quantity);
  const base = {
    market_id: row.market_id,
    outcome_id: row.outcome_id,
    order_id: row.order_id,
    trade_id: row.match_id,
    created_at: row.created_at,
  };
  const id = row.id * TRANSACTIONS_PER_ENTRY;
  const parts = [
    { id: id + TRADE_PART, type: "trade", amount: row.side === Side.buy ? -notional : notional },
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

export interface LedgerReader {
  transactions(options: TransactionsOptions): HistoryPage;
}

/** @param fillRows answers a user's fills, one more than the page has where there is one */
export function prepareLedger(
  db: Database.Database,
  fillRows: (options: PageOptions & FillFilters) => FillRow[],
): LedgerReader {
  const entriesOfUser = db.prepare(
    `SELECT id, type, amount, balance_after, market_id, outcome_id, created_at FROM entries
     WHERE user_id = @userId AND id < @before AND (@type IS NULL OR type = @type)
       AND (@from IS NULL OR created_at >= @from) AND (@to IS NULL OR created_at <= @to)
     ORDER BY id DESC LIMIT @limit`,
  );

  const transactions = (options: TransactionsOptions): HistoryPage => {
    const { userId, limit, before, type = null, from = null, to = null } = options;
    // The entry that `before` lies in may still have a part of the wanted type, or any, below it.
    const offset = type === "fee" ? FEE_PART : type === "rebate" ? REBATE_PART : TRADE_PART;
    const below = Math.ceil((before - offset) / TRANSACTIONS_PER_ENTRY);
    const found: TransactionRow[] = [];
    if (type === null || FILL_TYPES.has(type)) {
      const filters = { from, to, side: type === "fee" ? Side.sell : null, rebated: type === "rebate" ? 1 : null };
      for (const row of fillRows({ userId, before: below, limit, ...filters })) {
        found.push(...fillTransactions(row).filter((part) => type === null || part.type === type));
      }
    }
    if (type === null || !FILL_TYPES.has(type)) {
      const params = { userId, before: below, type, from, to, limit: limit + 1 };
      for (const row of entriesOfUser.all(params) as TransactionRow[]) {
        found.push({ ...row, id: row.id * TRANSACTIONS_PER_ENTRY, order_id: null, trade_id: null });
      }
    }
    return takePage(
      found.filter(({ id }) => id < before).sort((a, b) => b.id - a.id),
      limit,
      (row) => row,
      ({ id }) => id,
    );
  };

  return { transactions };
}
