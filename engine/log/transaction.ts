/** The journal's current SQLite transaction. An error is final: nothing is rolled back or retried. */
import type Database from "better-sqlite3";

export class Transaction {
  private open = false;
  private readonly beginStatement: Database.Statement;
  private readonly commitStatement: Database.Statement;

  constructor(db: Database.Database) {
    this.beginStatement = db.prepare("BEGIN IMMEDIATE");
    this.commitStatement = db.prepare("COMMIT");
  }

  get isOpen(): boolean {
    return this.open;
  }

  /** Begins a transaction unless one is open. */
  begin(): void {
    if (this.open) return;
    this.beginStatement.run();
    this.open = true;
  }

  commit(): void {
    this.commitStatement.run();
    this.open = false;
  }
}
