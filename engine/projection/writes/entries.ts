/** Appends ledger entries: every change of a balance that isn't a fill. */
import type Database from "better-sqlite3";
import { SEED_REFERENCE } from "../../limits.ts";
import { RowInserter } from "../row-inserter.ts";
import { existing, HOUSE, type WriteContext, WriteRefused, type WriteResult } from "./account-write.ts";

const ENTRIES_TABLE = `entries (id, user_id, type, amount, balance_after, market_id, outcome_id, reference, created_at,
  last_fill_id, quantity, cost)`;
const ENTRY_COLUMNS = 12;

interface EntryDetails {
  readonly reference?: string;
  readonly marketId?: number;
  readonly outcomeId?: number;
  readonly quantity?: number;
  readonly cost?: number;
}

export class Entries {
  private readonly context: WriteContext;
  private readonly rows: RowInserter;
  private readonly byReference: Database.Statement;

  constructor(db: Database.Database, context: WriteContext) {
    this.context = context;
    this.rows = new RowInserter(db, ENTRIES_TABLE, new Array<string>(ENTRY_COLUMNS).fill("?"));
    this.byReference = db.prepare("SELECT id, user_id, amount FROM entries WHERE reference = ?").raw();
  }

  /** Adds an entry with the current balance of the user (or the house); returns its id. The caller flushes. */
  add(userId: number, type: string, amount: number, at: number, details: EntryDetails = {}): number {
    const { context, rows } = this;
    const id = context.nextEntryId();
    const row = rows.next();
    const { params } = rows;
    params[row] = id;
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
    if (userId !== HOUSE) context.markUser(userId);
    return id;
  }

  flush(): void {
    this.rows.flush();
  }

  /**
   * The existing entry with the reference, or null. @throws WriteRefused if that entry has another user or amount
   */
  findRepeated(reference: string, userId: number, amount: number): WriteResult | null {
    const found = this.byReference.get(reference) as [id: number, userId: number, amount: number] | undefined;
    if (found === undefined) return null;
    // A seed's deposit counts once, even if a later seed changes it.
    if (!reference.startsWith(SEED_REFERENCE) && (found[1] !== userId || found[2] !== amount)) {
      throw new WriteRefused("reference: another one has it");
    }
    return existing(found[0]);
  }
}
