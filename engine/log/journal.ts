/**
 * Makes engine events and account writes durable: drains the event rings into one SQLite transaction, commits, and only
 * then lets the gateway see the events. The only writer of the database while the exchange runs.
 *
 * Owns a ledger, so that balances and positions are in the transaction of the fills that move them, and assigns the
 * numbers that must be unique: fills, entries, each user's order updates. An error is final: the caller must stop the
 * exchange. Nothing is retried, and what wasn't committed was never shown to anyone.
 *
 * One pass: 1. account writes  2. events, in ring order, into the ledger and the sets of dirty rows
 *           3. dirty rows, each once  4. totals  5. COMMIT  6. cursors  7. replies to account writes.
 */
import type Database from "better-sqlite3";
import { addsUp } from "../ledger.ts";
import { emptyWal } from "../projection/database.ts";
import type { KeptWrite } from "../projection/idempotency-keys.ts";
import { type ApplyWrite, entriesOf } from "../projection/writes/account-write.ts";
import { type AppendAudit, prepareAudit } from "../projection/writes/audit-log.ts";
import { prepareWrites } from "../projection/writes/prepare-writes.ts";
import { assert } from "../util/assert.ts";
import type { MicroClock } from "../util/micro-clock.ts";
import { EventApplier } from "./event-applier.ts";
import type { WriteReply, WriteRequest } from "./journal-messages.ts";
import { createJournalParts, type JournalParts, type JournalPartsOptions, lastNumbers } from "./journal-parts.ts";
import { OrderRows } from "./order-rows.ts";
import type { CommittedTotals } from "./totals.ts";
import { WalCheckpoints } from "./wal-checkpoints.ts";

/** The resting list advances by this many orders per pass, plus two for each dirty order. */
const LIST_SLICE = 256;

export interface JournalOptions extends JournalPartsOptions {
  readonly totals: CommittedTotals;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly clock: MicroClock;
  /** Called after each pass that committed, with its duration in µs and the number of dirty orders. */
  readonly onCommit: (durationMicros: number, orders: number) => void;
  /** Requests a checkpoint through another connection; the caller reports its end with `finishCheckpoint`. */
  readonly requestCheckpoint: () => void;
}

export class Journal {
  private readonly parts: JournalParts;
  private readonly totals: CommittedTotals;
  private readonly now: () => number;
  private readonly clock: MicroClock;
  private readonly onCommit: JournalOptions["onCommit"];
  private readonly events: EventApplier;
  private readonly orderRows: OrderRows;
  private readonly checkpoints: WalCheckpoints;
  private readonly applyWrite: ApplyWrite;
  private readonly appendAudit: AppendAudit;
  private readonly updateTotals: Database.Statement;

  constructor(options: JournalOptions) {
    const { db, totals, now, clock, onCommit, requestCheckpoint } = options;
    this.totals = totals;
    this.now = now;
    this.clock = clock;
    this.onCommit = onCommit;
    this.parts = createJournalParts(options);
    this.events = new EventApplier(this.parts);
    this.orderRows = new OrderRows(this.parts);
    this.checkpoints = new WalCheckpoints(db, requestCheckpoint);
    this.applyWrite = this.prepareWrites();
    this.appendAudit = prepareAudit(db);
    this.updateTotals = db.prepare(
      `UPDATE totals SET deposits = ?, withdrawals = ?, users_total = ?, collateral = ?, house = ?, sequence = ?,
       last_entry_id = ?, last_order_id = ?, order_updates = ?, at = ?`,
    );
    const { counters, ledger } = this.parts;
    this.totals.publish(ledger.totals, counters.sequence, counters.committedAt);
  }

  /**
   * One pass over everything that the rings hold and `receive` returns. Returns the replies to send, or null if there
   * was nothing to do. Throws if the database fails: then nothing of this pass may be shown.
   */
  commit(receive: () => readonly WriteRequest[]): WriteReply[] | null {
    const { dirtyAccounts, dirtyOrders, gates, stamps, transaction } = this.parts;
    // Count events before receiving: a write posted before a command is never committed after that command's events.
    const batches = gates.map((gate) => ({ gate, count: gate.available() }));
    const requests = receive();
    if (requests.length === 0 && batches.every(({ count }) => count === 0)) return null;
    const startedAt = this.clock();
    const replies = requests.map((request) => this.write(request));
    for (const [index, { gate, count }] of batches.entries()) this.events.apply(gate, index, count);
    const orders = dirtyOrders.count;
    const commits = orders > 0 || transaction.isOpen || dirtyAccounts.needsCommit;
    if (commits) this.flush();
    const durableAt = this.clock();
    if (commits) this.onCommit(durableAt - startedAt, orders);
    stamps.resolve(durableAt);
    for (const { gate, count } of batches) {
      gate.tail = (gate.tail + count) | 0;
      gate.open();
    }
    return replies;
  }

  /** True once every engine has announced that no event follows. */
  get stopped(): boolean {
    return this.events.stopped;
  }

  /** Does a slice of background work, for when the rings are empty. Returns true if there may be more. */
  idle(): boolean {
    const { updates, writeBehind } = this.parts;
    if (this.writeBackground(updates.hasOutdated(this.now(), writeBehind.flushedUpdate))) return true;
    this.checkpoints.checkQuiet();
    return false;
  }

  /** Writes all pending write-behind rows and empties the WAL; then closes the database. */
  close(): void {
    const { db, transaction } = this.parts;
    // In one commit: hundreds of slices would each wait for the disk, and a stop has seconds.
    // Outdated updates can wait for the next start: there may be days of them.
    transaction.begin();
    while (this.hasPending()) this.writeSlice();
    transaction.commit();
    emptyWal(db);
    db.close();
  }

  /** The other connection has finished the checkpoint that `requestCheckpoint` asked for. */
  finishCheckpoint(): void {
    this.checkpoints.finish();
  }

  // ---------------------------------------------------------------- account writes

  private prepareWrites(): ApplyWrite {
    const { counters, db, dirtyAccounts, ledger, links, markets, rates } = this.parts;
    return prepareWrites(db, {
      ledger,
      nextEntryId: () => ++counters.lastEntryId,
      newestFill: (user) => links.newestFill(user),
      addMarket: (market, first, outcomes) => markets.add(market, first, outcomes),
      forgetMarket: (market) => markets.forget(market),
      outcomesOf: (market) => ({ first: markets.firstOutcome(market), count: markets.outcomeCount(market) }),
      markUser: (user) => dirtyAccounts.users.add(user),
      markPosition: (position) => dirtyAccounts.positions.add(position),
      markMarket: (market) => dirtyAccounts.markets.add(market),
      setTerms: (user, terms) => rates.set(user, terms),
    });
  }

  private write(request: WriteRequest): WriteReply {
    const { counters, transaction } = this.parts;
    transaction.begin();
    // Entries share their numbering with fills, along which time never falls.
    counters.eventAt = Math.max(counters.eventAt, request.at);
    const before = counters.lastEntryId;
    let entries = 0;
    for (const write of request.writes) {
      this.applyWrite(write);
      entries += entriesOf(write);
    }
    assert(counters.lastEntryId === before + entries, "each write creates the entries that it announces");
    const firstEntry = entries === 0 ? 0 : before + 1;
    for (const entry of request.audits) this.appendAudit(entry, firstEntry);
    if (request.kept !== null) this.keepKey(request.kept);
    return { id: request.id, firstEntry };
  }

  private keepKey(kept: KeptWrite): void {
    const { keys } = this.parts;
    if (kept.reference !== null) {
      keys.await(kept.reference, kept);
      return;
    }
    assert(kept.subject !== null, "a kept request without a command has a row");
    keys.keep(kept, kept.subject, 0);
  }

  // ---------------------------------------------------------------- the transaction

  private flush(): void {
    const { builders, candles, counters, dirtyAccounts, dirtyOrders, ledger, links, transaction, updates } = this.parts;
    const { resting, writeBehind } = this.parts;
    transaction.begin();
    const orders = dirtyOrders.count;
    this.orderRows.flush();
    this.events.flush();
    updates.flush();
    dirtyAccounts.flush();
    builders.flush();
    writeBehind.write(lastNumbers(this.parts), this.now(), false);
    if (resting.isBehind(writeBehind.flushedOrder)) resting.advance(writeBehind.flushedOrder, LIST_SLICE + 2 * orders);
    links.write(lastNumbers(this.parts), false);
    while (updates.isPruningDue) updates.prune(this.now(), writeBehind.flushedUpdate);
    candles.write(counters.lastEntryId, false);
    ledger.endBatch();
    assert(addsUp(ledger.totals), "deposits - withdrawals = balances + collateral + house");
    this.writeTotals();
    transaction.commit();
    this.totals.publish(ledger.totals, counters.sequence, counters.committedAt);
    this.checkpoints.countCommit(orders);
  }

  private writeTotals(): void {
    const { counters, ledger, updates } = this.parts;
    counters.committedAt = Math.max(counters.committedAt, counters.eventAt, this.now());
    counters.sequence++;
    const { deposits, withdrawals, usersTotal, collateral, house } = ledger.totals;
    const { sequence, lastEntryId, lastOrderId, committedAt } = counters;
    this.updateTotals.run(
      deposits,
      withdrawals,
      usersTotal,
      collateral,
      house,
      sequence,
      lastEntryId,
      lastOrderId,
      updates.count,
      committedAt,
    );
  }

  // ---------------------------------------------------------------- write-behind

  /** Commits a slice of pending rows and, if `isPruning`, removes outdated updates. Returns false if nothing is pending. */
  private writeBackground(isPruning: boolean): boolean {
    const { transaction, updates, writeBehind } = this.parts;
    if (!isPruning && !this.hasPending()) return false;
    transaction.begin();
    this.writeSlice();
    if (isPruning) updates.prune(this.now(), writeBehind.flushedUpdate);
    transaction.commit();
    return true;
  }

  private hasPending(): boolean {
    const { candles, links, resting, writeBehind } = this.parts;
    return (
      writeBehind.isBehind(lastNumbers(this.parts)) ||
      resting.isBehind(writeBehind.flushedOrder) ||
      links.hasPending() ||
      candles.hasPending()
    );
  }

  /** Inside a transaction. */
  private writeSlice(): void {
    const { candles, counters, links, resting, writeBehind } = this.parts;
    writeBehind.write(lastNumbers(this.parts), this.now(), true);
    if (resting.isBehind(writeBehind.flushedOrder)) resting.advance(writeBehind.flushedOrder, LIST_SLICE);
    links.write(lastNumbers(this.parts), true);
    candles.write(counters.lastEntryId, true);
  }
}
