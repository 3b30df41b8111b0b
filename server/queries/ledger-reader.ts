/**
 * Reads what moved users' money: transactions, and deposits, withdrawals and settlements by themselves. To be called in a
 * read transaction. Fills come from fill-reader.ts.
 */
import type Database from "better-sqlite3";
import { Side } from "../../engine/constants.ts";
import { notionalMicro } from "../../engine/money.ts";
import type { WithdrawalRow } from "../../engine/projection/load/wallet.ts";
import { type HistoryPage, type OwnPageOptions, type PageOptions, takePage } from "../http/paging.ts";
import { csvLine } from "../util/csv.ts";
import { MAX_ROWS_WALKED } from "./limits.ts";
import type { FillFilters, FillRow } from "./types.ts";

export interface TransactionsOptions extends OwnPageOptions {
  type?: string | undefined;
  from?: number | undefined;
  to?: number | undefined;
}

export interface DepositsOptions extends PageOptions {
  /** Null for all users and the house. */
  userId: number | null;
}

export interface WithdrawalsOptions extends DepositsOptions {
  status?: string | undefined;
}

export interface SettlementsOptions extends OwnPageOptions {
  marketId?: number | undefined;
}

/** One entry of money that reached a user or the house, or left the house. */
export interface Payment {
  id: number;
  userId: number;
  /** micro-USDC, negative where it left the house. */
  amount: number;
  reference: string;
  createdAt: number;
}

/** A withdrawal of any status. */
export interface Withdrawal extends WithdrawalRow {
  status: string;
  reference: string | null;
  note: string | null;
  decidedAt: number | null;
}

/** A part of a long list as lines of text. */
export interface TextSlice {
  text: string;
  /** The id to continue below, or null at the end. */
  next: number | null;
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

/** The fields of a transaction in the order of an export's columns. RFC 4180. */
const COLUMNS: readonly (keyof TransactionRow)[] = [
  "id",
  "type",
  "amount",
  "balance_after",
  "market_id",
  "outcome_id",
  "order_id",
  "trade_id",
  "created_at",
];
export const CSV_HEADER = csvLine(COLUMNS);

export interface LedgerReader {
  transactions(options: TransactionsOptions): HistoryPage;
  /** Lines of an export, without its header. */
  transactionLines(options: TransactionsOptions): TextSlice;
  deposits(options: DepositsOptions): HistoryPage<Payment>;
  /** The deposit, or payment of the house, that has a reference. */
  payment(options: { reference: string }): Payment | null;
  withdrawals(options: WithdrawalsOptions): HistoryPage<Withdrawal>;
  withdrawal(options: { id: number }): Withdrawal | null;
  settlements(options: SettlementsOptions): HistoryPage;
}

const PAYMENT_COLUMNS = "id, user_id AS userId, amount, reference, created_at AS createdAt";
const WITHDRAWAL_COLUMNS = `id, user_id AS userId, amount, address, status, reference, note, created_at AS createdAt,
  decided_at AS decidedAt`;

/** @param rows one more than the page has, where there is one */
function byId<T extends { id: number }>(rows: readonly unknown[], limit: number): HistoryPage<T> {
  return takePage(
    rows as readonly T[],
    limit,
    (row) => row,
    ({ id }) => id,
  );
}

/** Types of entries that have an index of their own. */
const RARE_TYPES: readonly string[] = ["deposit", "withdrawal", "settlement"];
const RARE = `type IN (${RARE_TYPES.map((type) => `'${type}'`).join(", ")})`;

/**
 * @param fillRows answers a user's fills, one more than the page has where there is one, and behind which of them none
 *   was looked at (null: there are no more) @param entryIds the first id of a span of time, and the first behind it
 */
export function prepareLedger(
  db: Database.Database,
  fillRows: (options: OwnPageOptions & FillFilters) => { rows: FillRow[]; end: number | null },
  entryIds: (span: { from: number | null; to: number | null }) => [first: number, end: number],
): LedgerReader {
  const entries = (where: string): Database.Statement =>
    db.prepare(
      `SELECT id, type, amount, balance_after, market_id, outcome_id, created_at FROM entries ${where}
       AND user_id = @userId AND id < @before AND id >= @floor
       AND (@from IS NULL OR created_at >= @from) AND (@to IS NULL OR created_at <= @to)
       ORDER BY id DESC LIMIT @limit`,
    );
  const entriesOfUser = entries("INDEXED BY entries_by_user WHERE (@type IS NULL OR type = @type)");
  const mergeFeesOfUser = entries("INDEXED BY merge_fees WHERE type = 'fee' AND @type = 'fee'");
  const rareEntriesOfUser = entries(`INDEXED BY rare_entries WHERE ${RARE} AND type = @type`);
  const lastWalked = db
    .prepare(
      `SELECT id FROM entries INDEXED BY entries_by_user WHERE user_id = @userId AND id < @before
       ORDER BY id DESC LIMIT 1 OFFSET ${MAX_ROWS_WALKED - 1}`,
    )
    .pluck();

  const depositsOfUser = db.prepare(
    `SELECT ${PAYMENT_COLUMNS} FROM entries INDEXED BY rare_entries
     WHERE ${RARE} AND user_id = @userId AND type = 'deposit' AND id < @before ORDER BY id DESC LIMIT @limit`,
  );
  const allDeposits = db.prepare(
    `SELECT ${PAYMENT_COLUMNS} FROM entries INDEXED BY deposits
     WHERE type = 'deposit' AND id < @before ORDER BY id DESC LIMIT @limit`,
  );
  const paymentNamed = db.prepare(`SELECT ${PAYMENT_COLUMNS} FROM entries WHERE reference = ?`);
  const withdrawals = (from: string): Database.Statement =>
    db.prepare(
      `SELECT ${WITHDRAWAL_COLUMNS} FROM withdrawals ${from} AND id < @before
         AND (@status IS NULL OR status = @status) ORDER BY id DESC LIMIT @limit`,
    );
  const withdrawalsOfUser = withdrawals("INDEXED BY withdrawals_by_user WHERE user_id = @userId");
  const pendingWithdrawals = withdrawals("INDEXED BY pending_withdrawals WHERE status = 'pending'");
  const allWithdrawals = withdrawals("WHERE TRUE");
  const withdrawalById = db.prepare(`SELECT ${WITHDRAWAL_COLUMNS} FROM withdrawals WHERE id = ?`);
  const settlementsOfUser = db.prepare(
    `SELECT e.id, e.market_id, e.outcome_id, quantity, payout, amount, cost, amount - cost AS realized_pnl, created_at
     FROM entries e INDEXED BY rare_entries CROSS JOIN outcomes ON outcomes.id = e.outcome_id
     WHERE ${RARE} AND user_id = @userId AND type = 'settlement' AND e.id < @before
       AND (@marketId IS NULL OR e.market_id = @marketId) ORDER BY e.id DESC LIMIT @limit`,
  );

  const entriesOf = (type: string | null): Database.Statement => {
    if (type === "fee") return mergeFeesOfUser;
    return type !== null && RARE_TYPES.includes(type) ? rareEntriesOfUser : entriesOfUser;
  };

  const transactionRows = (options: TransactionsOptions): HistoryPage<TransactionRow> => {
    const { userId, limit, before, type = null, from = null, to = null } = options;
    // The fill that `before` lies in may still have a part of the wanted type, or any, below it.
    const offset = type === "fee" ? FEE_PART : type === "rebate" ? REBATE_PART : TRADE_PART;
    const below = Math.ceil((before - offset) / TRANSACTIONS_PER_ENTRY);
    const found: TransactionRow[] = [];
    /** Fills and entries below it were not looked at. */
    let floor = 0;
    if (type === null || FILL_TYPES.has(type)) {
      const filters = { from, to, side: type === "fee" ? Side.sell : null, rebated: type === "rebate" ? 1 : null };
      const { rows, end } = fillRows({ userId, before: below, limit, ...filters });
      floor = end ?? 0;
      for (const row of rows) {
        found.push(...fillTransactions(row).filter((part) => type === null || part.type === type));
      }
    }
    if (type === null || ENTRY_TYPES.has(type)) {
      const [first, end] = entryIds({ from, to });
      const top = Math.min(Math.ceil(before / TRANSACTIONS_PER_ENTRY), end);
      const statement = entriesOf(type);
      // Where every entry fits, or is found by its type, none is walked past.
      const isWalk = statement === entriesOfUser && type !== null;
      const last = isWalk ? Number(lastWalked.get({ userId, before: top }) ?? 0) : 0;
      if (last > first) floor = Math.max(floor, last);
      const params = { userId, before: top, floor: Math.max(first, floor), type, from, to, limit: limit + 1 };
      for (const row of statement.all(params) as TransactionRow[]) {
        found.push({ ...row, id: row.id * TRANSACTIONS_PER_ENTRY, order_id: null, trade_id: null });
      }
    }
    const lowest = floor * TRANSACTIONS_PER_ENTRY;
    const known = found.filter(({ id }) => id < before && id >= lowest).sort((a, b) => b.id - a.id);
    const page = byId<TransactionRow>(known, limit);
    return page.next === null && floor > 0 ? { ...page, next: lowest } : page;
  };

  return {
    transactions: transactionRows,
    transactionLines(options) {
      const { items, next } = transactionRows(options);
      return { text: items.map((row) => csvLine(COLUMNS.map((name) => row[name]))).join(""), next };
    },
    deposits({ userId, before, limit }) {
      const read = userId === null ? allDeposits : depositsOfUser;
      return byId(read.all({ ...(userId !== null && { userId }), before, limit: limit + 1 }), limit);
    },
    payment({ reference }) {
      return (paymentNamed.get(reference) as Payment | undefined) ?? null;
    },
    withdrawals({ userId, status = null, before, limit }) {
      const read = userId !== null ? withdrawalsOfUser : status === "pending" ? pendingWithdrawals : allWithdrawals;
      return byId(read.all({ ...(userId !== null && { userId }), status, before, limit: limit + 1 }), limit);
    },
    withdrawal({ id }) {
      return (withdrawalById.get(id) as Withdrawal | undefined) ?? null;
    },
    settlements({ userId, marketId = null, before, limit }) {
      return byId(settlementsOfUser.all({ userId, marketId, before, limit: limit + 1 }), limit);
    },
  };
}
