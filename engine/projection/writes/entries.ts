/** Appends ledger entries: every change of a balance that isn't a fill. */
import type Database from "better-sqlite3";
import { HOUSE } from "../../log/writes.ts";
import { RowInserter } from "../row-inserter.ts";
import { type ColumnOf, ENTRIES } from "../tables.ts";
import type { WriteContext } from "./context.ts";

interface EntryDetails {
  readonly reference?: string;
  readonly marketId?: number;
  readonly outcomeId?: number;
  readonly quantity?: number;
  readonly cost?: number;
  /** The deposit that a reversal takes back. */
  readonly reverses?: number;
}

export class Entries {
  private readonly context: WriteContext;
  private readonly rows: RowInserter<ColumnOf<typeof ENTRIES>>;

  constructor(db: Database.Database, context: WriteContext) {
    this.context = context;
    this.rows = new RowInserter(db, ENTRIES);
  }

  /** Adds an entry with the current balance of the user (or the house). The caller flushes. */
  add(userId: number, type: string, amount: number, at: number, details: EntryDetails = {}): void {
    const { context, rows } = this;
    const row = rows.next();
    const { params, at: place } = rows;
    params[row + place.id] = context.nextEntryId();
    params[row + place.user_id] = userId;
    params[row + place.type] = type;
    params[row + place.amount] = amount;
    params[row + place.balance_after] = userId === HOUSE ? context.ledger.totals.house : context.ledger.balance(userId);
    params[row + place.market_id] = details.marketId ?? null;
    params[row + place.outcome_id] = details.outcomeId ?? null;
    params[row + place.reference] = details.reference ?? null;
    params[row + place.created_at] = at;
    params[row + place.last_fill_id] = userId === HOUSE ? 0 : context.newestFill(userId);
    params[row + place.quantity] = details.quantity ?? null;
    params[row + place.cost] = details.cost ?? null;
    params[row + place.reverses] = details.reverses ?? null;
    if (userId !== HOUSE) context.markUser(userId, at, context.ledger.balance(userId) - amount);
  }

  flush(): void {
    this.rows.flush();
  }
}
