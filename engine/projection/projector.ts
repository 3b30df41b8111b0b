/**
 * Projects the log into the tables of exchange.db: applies batches in their order, and writes each changed row once per
 * transaction. The only writer of exchange.db. What the tables contain depends on the log alone: not on how batches share
 * transactions, and on no clock. The caller passes the bodies; only a log that forgets its oldest part is read again.
 *
 * One batch: 1. its writes  2. its events, into the ledger and the sets of dirty rows.
 * One transaction: batches, then 3. dirty rows, each once  4. totals and projection  5. COMMIT.
 */
import type Database from "better-sqlite3";
import { addsUp } from "../ledger.ts";
import {
  FLAG_STARTED,
  hashOf,
  previousHash,
  readHeader,
  recordsOf,
  requestsOf,
  TextReader,
} from "../log/batch-format.ts";
import { BrokenLog } from "../log/broken-log.ts";
import type { LogReader } from "../log/log-reader.ts";
import type { LogPoint } from "../log/progress.ts";
import { unpackRequest } from "../log/request.ts";
import { assert } from "../util/assert.ts";
import { EventApplier } from "./event-applier.ts";
import { loadProjection } from "./load/projection.ts";
import { OrderRows } from "./order-rows.ts";
import { createProjectorParts, type ProjectorParts, type ProjectorSizes } from "./parts.ts";
import { RequestApplier } from "./request-applier.ts";

export interface ProjectorOptions extends ProjectorSizes {
  /** Check that each body has the hash that the next one names: for logs that another program may have touched. */
  readonly checksHashes?: boolean;
}

export class Projector {
  private readonly parts: ProjectorParts;
  private readonly events: EventApplier;
  private readonly orderRows: OrderRows;
  private readonly requests: RequestApplier;
  private readonly checksHashes: boolean;
  private readonly exchange: number;
  /** Records up to and including the last batch. */
  private records: number;
  /** The last body's hash, or that body; null if the log begins with the next one. */
  private last: Buffer | null;
  private lastBody: Buffer | null = null;
  private isOpen = false;
  private readonly statements: ReturnType<typeof prepareStatements>;

  /** @param log the log of these tables */
  constructor(db: Database.Database, log: LogReader, options: ProjectorOptions = {}) {
    this.checksHashes = options.checksHashes ?? false;
    this.parts = createProjectorParts(db, log, options);
    this.events = new EventApplier(this.parts);
    this.orderRows = new OrderRows(this.parts);
    this.requests = new RequestApplier(this.parts, () => this.flushRows());
    this.statements = prepareStatements(db);
    const { exchange, records, hash } = loadProjection(db);
    this.exchange = exchange;
    this.records = records;
    this.last = hash === "" ? null : Buffer.from(hash, "hex");
  }

  /** The last batch applied. */
  get point(): LogPoint {
    const { batch, at } = this.parts.counters;
    return { batch, records: this.records, at };
  }

  /** Applies the next batch. @throws BrokenLog if it isn't the next one of this exchange */
  apply(body: Buffer): void {
    const { counters, keys, updates } = this.parts;
    const header = readHeader(body);
    this.checkNext(body, header.exchange, header.batch);
    this.begin();
    if ((header.flags & FLAG_STARTED) !== 0) {
      // Slots begin again.
      this.flushRows();
      this.parts.slots.clear();
      keys.start();
    }
    if (header.lastEntry !== counters.lastEntryId || header.recordsBefore !== this.records) {
      throw new BrokenLog(`batch ${header.batch} of the log doesn't continue the one before`);
    }
    updates.begin(header.batch, header.recordsBefore);
    for (const payload of requestsOf(body, header)) this.requests.apply(unpackRequest(payload));
    if (header.records > 0) this.events.apply(recordsOf(body, header), new TextReader(body, header));
    counters.batch = header.batch;
    counters.at = header.at;
    this.records += header.records;
    this.last = null;
    this.lastBody = body;
  }

  /** Makes what was applied durable, with all sums checked. Returns false if nothing was applied. */
  commit(): boolean {
    if (!this.isOpen) return false;
    const { ledger } = this.parts;
    this.flushRows();
    ledger.endBatch();
    assert(addsUp(ledger.totals), "deposits - withdrawals = balances + collateral + house");
    this.writeTotals();
    this.statements.commit.run();
    this.isOpen = false;
    return true;
  }

  // ---------------------------------------------------------------- the transaction

  private begin(): void {
    if (this.isOpen) return;
    this.statements.begin.run();
    this.isOpen = true;
  }

  private checkNext(body: Buffer, exchange: number, number: number): void {
    const { batch } = this.parts.counters;
    if (exchange !== this.exchange) throw new BrokenLog("the log belongs to another exchange");
    if (number !== batch + 1) throw new BrokenLog(`the log continues with batch ${number}, not ${batch + 1}`);
    if (this.lastBody !== null && !this.checksHashes) return;
    const expected = this.lastHash();
    if (expected !== null && !previousHash(body).equals(expected)) {
      throw new BrokenLog(`batch ${batch} of the log isn't the one that batch ${number} follows`);
    }
  }

  private lastHash(): Buffer | null {
    if (this.lastBody !== null) this.last ??= hashOf(this.lastBody);
    return this.last;
  }

  /** Writes dirty rows, each once. */
  private flushRows(): void {
    const { builders, candles, dirtyAccounts, links, updates } = this.parts;
    this.orderRows.flush();
    this.events.flush();
    updates.flush();
    dirtyAccounts.flush();
    builders.flush();
    links.flush();
    candles.flush();
  }

  private writeTotals(): void {
    const { counters, ledger } = this.parts;
    const { deposits, withdrawals, usersTotal, collateral, house } = ledger.totals;
    const { batch, lastEntryId, lastOrderId, orderUpdates, at } = counters;
    const sums = [deposits, withdrawals, usersTotal, collateral, house];
    this.statements.totals.run(...sums, batch, lastEntryId, lastOrderId, orderUpdates, at);
    this.statements.projection.run(batch, this.records, this.lastHash()?.toString("hex") ?? "");
  }
}

function prepareStatements(db: Database.Database) {
  return {
    begin: db.prepare("BEGIN IMMEDIATE"),
    commit: db.prepare("COMMIT"),
    totals: db.prepare(
      `UPDATE totals SET deposits = ?, withdrawals = ?, users_total = ?, collateral = ?, house = ?, sequence = ?,
       last_entry_id = ?, last_order_id = ?, order_updates = ?, at = ?`,
    ),
    projection: db.prepare("UPDATE projection SET batch = ?, position = ?, hash = ?"),
  };
}
