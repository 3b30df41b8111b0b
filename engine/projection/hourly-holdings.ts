/**
 * What users had when an hour began: the value of their portfolios over time is read from it. Balances and positions each
 * have one row for an hour in which they changed, with what they were before its first change. So a row is written once,
 * and what an hour without a row began with stands in the next row, or is the current state.
 *
 * An hour is that of the change's own time, or of the change before it where the clock was set back: the rows depend on
 * the log alone.
 */
import type Database from "better-sqlite3";
import type { Ledger } from "../ledger.ts";
import { MS_PER_HOUR } from "../money.ts";
import { withIndex } from "../util/typed-arrays.ts";

export class HourlyHoldings {
  private readonly ledger: Ledger;
  /** The hour after the newest one that was noted since the start, 0 for none; by user, and by position. */
  private userHours = new Int32Array(1024);
  private positionHours = new Int32Array(1024);
  private readonly insertBalance: Database.Statement;
  private readonly insertPosition: Database.Statement;

  constructor(db: Database.Database, ledger: Ledger) {
    this.ledger = ledger;
    // A row of the same hour or of a later one is from before the start.
    this.insertBalance = db.prepare(
      `INSERT INTO balance_hours SELECT @user, @hour, @before
       WHERE NOT EXISTS (SELECT 1 FROM balance_hours WHERE user_id = @user AND hour >= @hour)`,
    );
    this.insertPosition = db.prepare(
      `INSERT INTO position_hours SELECT @user, @hour, @outcome, @before WHERE NOT EXISTS
         (SELECT 1 FROM position_hours WHERE user_id = @user AND hour >= @hour AND outcome_id = @outcome)`,
    );
  }

  /** A balance changed. Inside a transaction. @param at ms @param before micro-USDC */
  balanceChanged(user: number, at: number, before: number): void {
    const hour = Math.floor(at / MS_PER_HOUR);
    if (hour < (this.userHours[user] ?? 0)) return;
    this.userHours = withIndex(this.userHours, user);
    this.userHours[user] = hour + 1;
    this.insertBalance.run({ user, hour, before });
  }

  /** A position changed. Inside a transaction. @param at ms @param before shares */
  positionChanged(position: number, at: number, before: number): void {
    const hour = Math.floor(at / MS_PER_HOUR);
    if (hour < (this.positionHours[position] ?? 0)) return;
    this.positionHours = withIndex(this.positionHours, position);
    this.positionHours[position] = hour + 1;
    const { ledger } = this;
    this.insertPosition.run({ user: ledger.userOf(position), hour, outcome: ledger.outcomeOf(position), before });
  }
}
