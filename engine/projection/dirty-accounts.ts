/**
 * The accounts, positions, outcomes and markets that changed in the current transaction. Each row is written once, in
 * the transaction of the fills that changed it.
 */
import type Database from "better-sqlite3";
import type { Ledger } from "../ledger.ts";
import { IdSet } from "../util/id-set.ts";
import type { MarketRegistry } from "./market-registry.ts";
import { RowInserter } from "./row-inserter.ts";
import { ACCOUNTS, type ColumnOf, POSITIONS } from "./tables.ts";

export class DirtyAccounts {
  readonly users = new IdSet();
  readonly positions = new IdSet();
  readonly outcomes = new IdSet();
  /** Markets whose outstanding sets changed. */
  readonly markets = new IdSet();
  /** New statuses, by market. */
  readonly statuses = new Map<number, number>();
  private readonly ledger: Ledger;
  private readonly registry: MarketRegistry;
  private readonly accountRows: RowInserter<ColumnOf<typeof ACCOUNTS>>;
  private readonly positionRows: RowInserter<ColumnOf<typeof POSITIONS>>;
  private readonly updateOutcome: Database.Statement;
  private readonly updateSets: Database.Statement;
  private readonly updateStatus: Database.Statement;

  constructor(db: Database.Database, ledger: Ledger, registry: MarketRegistry) {
    this.ledger = ledger;
    this.registry = registry;
    this.accountRows = new RowInserter(db, ACCOUNTS, { conflict: "REPLACE" });
    this.positionRows = new RowInserter(db, POSITIONS, { conflict: "REPLACE" });
    this.updateOutcome = db.prepare("UPDATE outcomes SET last_price = ?, volume = ? WHERE id = ?");
    this.updateSets = db.prepare("UPDATE markets SET sets = ? WHERE id = ?");
    this.updateStatus = db.prepare("UPDATE markets SET status = ? WHERE id = ?");
  }

  /** Writes all rows. Inside a transaction. */
  flush(): void {
    this.flushUsers();
    this.flushPositions();
    const { lastPrices, volumes } = this.registry;
    for (const outcome of this.outcomes.list()) this.updateOutcome.run(lastPrices[outcome], volumes[outcome], outcome);
    this.outcomes.clear();
    for (const market of this.markets.list()) this.updateSets.run(this.ledger.outstandingSets(market), market);
    this.markets.clear();
    for (const [market, status] of this.statuses) this.updateStatus.run(status, market);
    this.statuses.clear();
  }

  private flushUsers(): void {
    const { ledger, accountRows } = this;
    const { params, at } = accountRows;
    for (const user of this.users.list()) {
      const row = accountRows.next();
      const day = ledger.activityDayOf(user);
      params[row + at.user_id] = user;
      params[row + at.balance] = ledger.balance(user);
      params[row + at.activity_day] = day;
      params[row + at.activity_used] = ledger.entriesOfDay(user, day);
      params[row + at.fees] = ledger.feesPaid(user);
      params[row + at.rebates] = ledger.rebatesEarned(user);
    }
    this.users.clear();
    accountRows.flush();
  }

  private flushPositions(): void {
    const { ledger, positionRows } = this;
    const { params, at } = positionRows;
    for (const position of this.positions.list()) {
      const row = positionRows.next();
      params[row + at.user_id] = ledger.userOf(position);
      params[row + at.outcome_id] = ledger.outcomeOf(position);
      params[row + at.quantity] = ledger.quantity(position);
      params[row + at.cost] = ledger.cost(position);
      params[row + at.realized_pnl] = ledger.realizedPnl(position);
    }
    positionRows.flush();
    this.positions.clear();
  }
}
