/**
 * Keeps the WAL short, shorter when the exchange is quiet. Another thread's connection copies and syncs most pages while
 * commits continue. This connection then moves the few pages committed meanwhile, so that the WAL restarts.
 */
import type Database from "better-sqlite3";
import { assert } from "../util/assert.ts";

const QUIET_PAGES = 1_000;
const BUSY_PAGES = 32_000;
/** This connection moves up to this many pages itself. Above it, the other one takes another round, within a bound. */
const SHORT_PAGES = 1_000;
const MAX_BULK_ROUNDS = 3;
/** The WAL's length is checked after this many commits or written orders. */
const COMMITS_PER_CHECK = 64;
const ORDERS_PER_CHECK = 2_048;

export class WalCheckpoints {
  private readonly db: Database.Database;
  private readonly requestCheckpoint: () => void;
  private commits = 0;
  private orders = 0;
  /** Checkpoints by the other connection since this one last finished; 0 if none is in progress. */
  private bulkRounds = 0;

  /** @param requestCheckpoint asks for a checkpoint through another connection, which ends with a call of `finish` */
  constructor(db: Database.Database, requestCheckpoint: () => void) {
    this.db = db;
    this.requestCheckpoint = requestCheckpoint;
  }

  /** Counts a commit under load. @param orders written by it */
  countCommit(orders: number): void {
    this.commits++;
    this.orders += orders;
    if (this.commits >= COMMITS_PER_CHECK || this.orders >= ORDERS_PER_CHECK) this.check(BUSY_PAGES);
  }

  /** Checks the WAL while the exchange is quiet. */
  checkQuiet(): void {
    this.check(QUIET_PAGES);
  }

  /** The other connection has finished its checkpoint: requests another round if many pages came meanwhile. */
  finish(): void {
    assert(this.bulkRounds > 0 && this.bulkRounds <= MAX_BULK_ROUNDS, "a checkpoint that ends was requested");
    if (this.bulkRounds < MAX_BULK_ROUNDS && this.walPages() > SHORT_PAGES) {
      this.bulkRounds++;
      this.requestCheckpoint();
      return;
    }
    this.bulkRounds = 0;
    this.db.pragma("wal_checkpoint(PASSIVE)");
  }

  private check(pages: number): void {
    this.commits = 0;
    this.orders = 0;
    if (this.bulkRounds > 0 || this.walPages() < pages) return;
    this.bulkRounds = 1;
    this.requestCheckpoint();
  }

  /** Pages in the WAL that the database file lacks. */
  private walPages(): number {
    const [{ log, checkpointed }] = this.db.pragma("wal_checkpoint(NOOP)") as [{ log: number; checkpointed: number }];
    return log - checkpointed;
  }
}
