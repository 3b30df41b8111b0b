/**
 * The accounts, positions, outcomes and markets that changed in the current transaction. Each row is written once, in
 * the transaction of the fills that changed it.
 */
import type Database from "better-sqlite3";
import type { Ledger } from "../ledger.ts";
import { IdSet } from "../util/id-set.ts";
import type { MarketRegistry } from "./market-registry.ts";
import { RowInserter } from "./row-inserter.ts";

const POSITION_COLUMNS = 5;
const ACCOUNT_COLUMNS = 6;

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
  private readonly accountRows: RowInserter;
  private readonly positionRows: RowInserter;
  private readonly updateOutcome: Database.Statement;
  private readonly updateSets: Database.Statement;
  private readonly updateStatus: Database.Statement;

  constructor(db: Database.Database, ledger: Ledger, registry: MarketRegistry) {
    this.ledger = ledger;
    this.registry = registry;
    const bound = (count: number): string[] => new Array<string>(count).fill("?");
    this.accountRows = new RowInserter(db, "accounts", bound(ACCOUNT_COLUMNS), "REPLACE");
    this.positionRows = new RowInserter(db, "positions", bound(POSITION_COLUMNS), "REPLACE");
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
    const { params } = accountRows;
    for (const user of this.users.list()) {
      const row = accountRows.next();
      const day = ledger.activityDayOf(user);
      params[row] = user;
      params[row + 1] = ledger.balance(user);
      params[row + 2] = day;
      params[row + 3] = ledger.entriesOfDay(user, day);
      params[row + 4] = ledger.feesPaid(user);
      params[row + 5] = ledger.rebatesEarned(user);
    }
    this.users.clear();
    accountRows.flush();
  }

  private flushPositions(): void {
    const { ledger, positionRows } = this;
    const { params } = positionRows;
    for (const position of this.positions.list()) {
      const row = positionRows.next();
      params[row] = ledger.userOf(position);
      params[row + 1] = ledger.outcomeOf(position);
      params[row + 2] = ledger.quantity(position);
      params[row + 3] = ledger.cost(position);
      params[row + 4] = ledger.realizedPnl(position);
    }
    positionRows.flush();
    this.positions.clear();
  }
}
