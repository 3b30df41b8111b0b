/** Appends ledger entries: every change of a balance that isn't a fill. */
import type Database from "better-sqlite3";
import { HOUSE } from "../../log/writes.ts";
import { RowInserter } from "../row-inserter.ts";
import type { WriteContext } from "./context.ts";

const ENTRIES_TABLE = `entries (id, user_id, type, amount, balance_after, market_id, outcome_id, reference, created_at,
  last_fill_id, quantity, cost, reverses)`;
const ENTRY_COLUMNS = 13;

interface EntryDetails {
  readonly reference?: string;
  readonly marketId?: number;
  readonly outcomeId?: number;
  readonly quantity?: number;
  readonly cost?: number;
  /** Of a reversal: the deposit that it takes back. */
  readonly reverses?: number;
}

export class Entries {
  private readonly context: WriteContext;
  private readonly rows: RowInserter;

  constructor(db: Database.Database, context: WriteContext) {
    this.context = context;
    this.rows = new RowInserter(db, ENTRIES_TABLE, new Array<string>(ENTRY_COLUMNS).fill("?"));
  }

  /** Adds an entry with the current balance of the user (or the house). The caller flushes. */
  add(userId: number, type: string, amount: number, at: number, details: EntryDetails = {}): void {
    const { context, rows } = this;
    const row = rows.next();
    const { params } = rows;
    params[row] = context.nextEntryId();
    params[row + 1] = userId;
    params[row + 2] = type;
    params[row + 3] = amount;
    params[row + 4] = userId === HOUSE ? context.ledger.totals.house : context.ledger.balance(userId);
    params[row + 5] = details.marketId ?? null;
    params[row + 6] = details.outcomeId ?? null;
    params[row + 7] = details.reference ?? null;
    params[row + 8] = at;
    params[row + 9] = userId === HOUSE ? 0 : context.newestFill(userId);
    params[row + 10] = details.quantity ?? null;
    params[row + 11] = details.cost ?? null;
    params[row + 12] = details.reverses ?? null;
    if (userId !== HOUSE) context.markUser(userId, at, context.ledger.balance(userId) - amount);
  }

  flush(): void {
    this.rows.flush();
  }
}
