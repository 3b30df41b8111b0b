/**
 * Write-behind of changes to orders' rows. An order's cancel or fill is durable through its order update. The row itself
 * lies anywhere among the last tens of thousands, and written immediately such rows were half of a commit's pages. So
 * changes are collected here and written by id, many to a page, one slice per commit.
 *
 * `orders_told` in `meta` is the last update that the rows include. The view `current_orders` takes later changes from the
 * updates, and a start brings the rows forward before anything loads them. The journal writes directly what no update
 * reports: a priority that an amend lost, an order in the middle of its matching.
 */
import type Database from "better-sqlite3";
import { isFinal, OrderStatus } from "../constants.ts";
import { assert } from "../util/assert.ts";
import { NumberMap } from "../util/number-map.ts";
import { withIndex } from "../util/typed-arrays.ts";

/**
 * How far the rows may lag behind under load, in updates and in time. Readers scan the pending updates, 50 ns each: a
 * larger bound slows reads, a smaller one the journal (0.12 pages per order with 65,536 updates, 0.29 with none).
 */
const MAX_PENDING_UPDATES = 65_536;
const MAX_PENDING_MS = 1_000;
/** The approximate number of orders that change in that time: the initial size of the tables. */
const EXPECTED = MAX_PENDING_UPDATES / 4;
/** A commit writes at least this many rows, plus one for each new update: there are fewer changes than updates. */
const SLICE = 128;

/** The last numbers assigned. */
interface Numbers {
  readonly order: number;
  readonly update: number;
}

/** The latest state of each changed order. */
class Changes {
  private index = new NumberMap(EXPECTED);
  private count = 0;
  private ids = new Float64Array(1024);
  private remaining = new Int32Array(1024);
  private states = new Int32Array(1024);
  private times = new Float64Array(1024);
  private fills = new Float64Array(1024);
  private drained = 0;

  get size(): number {
    return this.count - this.drained;
  }

  add(id: number, remaining: number, state: number, at: number, fill: number): void {
    let place = this.index.get(id) - 1;
    if (place < 0) {
      place = this.count++;
      this.index.set(id, this.count);
      this.reserve(place);
      this.ids[place] = id;
      this.fills[place] = 0;
    }
    this.remaining[place] = remaining;
    this.states[place] = state;
    this.times[place] = at;
    if (fill !== 0) this.fills[place] = fill;
  }

  private reserve(place: number): void {
    this.ids = withIndex(this.ids, place);
    this.remaining = withIndex(this.remaining, place);
    this.states = withIndex(this.states, place);
    this.times = withIndex(this.times, place);
    this.fills = withIndex(this.fills, place);
  }

  /** Sorts the changes by id. From then on they are drained, and none is added. */
  sort(): void {
    this.ids.subarray(0, this.count).sort();
  }

  /** Passes up to `rows` changes to `write`. */
  drain(rows: number, write: (id: number, remaining: number, state: number, at: number, fill: number) => void): void {
    const end = Math.min(this.count, this.drained + rows);
    for (; this.drained < end; this.drained++) {
      const id = this.ids[this.drained]!;
      const place = this.index.get(id) - 1;
      write(id, this.remaining[place]!, this.states[place]!, this.times[place]!, this.fills[place]!);
    }
    if (this.drained < this.count || this.count === 0) return;
    this.index = new NumberMap(EXPECTED);
    this.count = 0;
    this.drained = 0;
  }
}

export class WriteBehind {
  private readonly statements: ReturnType<typeof prepareStatements>;
  private readonly onEnded: (orderId: number) => void;
  private readonly maxPendingUpdates: number;
  private collected = new Changes();
  /** Being written: the changes up to the numbers in `target`. */
  private writing = new Changes();
  private target: Numbers;
  private flushed: Numbers;
  /** The last update at the last slice. */
  private slicedAt = 0;
  /** When the last round began, ms. */
  private begunAt = 0;

  /** @param last the numbers that the rows include @param onEnded called for each order whose row was written as final */
  constructor(
    db: Database.Database,
    last: Numbers,
    onEnded: (orderId: number) => void,
    maxPendingUpdates = MAX_PENDING_UPDATES,
  ) {
    this.maxPendingUpdates = maxPendingUpdates;
    this.statements = prepareStatements(db);
    const flushed = Number(db.prepare("SELECT value FROM meta WHERE key = 'orders_told'").pluck().get());
    assert(flushed === last.update, "a start brings the rows of orders forward before it loads them");
    this.onEnded = onEnded;
    this.target = last;
    this.flushed = last;
  }

  /** Adds a state that an update reports. @param state status | reason << 4 @param fill the newest; 0 if the row has it */
  add(id: number, remaining: number, state: number, at: number, fill: number): void {
    this.collected.add(id, remaining, state, at, fill);
  }

  /** The last update that the rows include, counting this transaction. */
  get flushedUpdate(): number {
    return this.flushed.update;
  }

  /** The rows of orders up to this one show a recent state; `onEnded` reports each one that ended since. */
  get flushedOrder(): number {
    return this.flushed.order;
  }

  /** True if changes are pending. @param last the numbers counting this transaction */
  isBehind(last: Numbers): boolean {
    return last.update > this.flushed.update || last.order > this.flushed.order;
  }

  /**
   * Writes a slice if many changes are pending, or for long, or `always`. Inside a transaction.
   * @param last the numbers counting this transaction @param now ms
   */
  write(last: Numbers, now: number, always: boolean): void {
    if (this.writing.size === 0) {
      const isDue = last.update - this.flushed.update > this.maxPendingUpdates || now > this.begunAt + MAX_PENDING_MS;
      if (!isDue && !always) return;
      this.begunAt = now;
      this.slicedAt = last.update;
      this.begin(last);
    }
    this.writing.drain(SLICE + last.update - this.slicedAt, this.writeRow);
    this.slicedAt = last.update;
    if (this.writing.size === 0) this.end();
  }

  /** Writes all changes, so that the rows include every update. */
  writeAll(last: Numbers): void {
    this.writing.drain(Number.POSITIVE_INFINITY, this.writeRow);
    this.begin(last);
    this.writing.drain(Number.POSITIVE_INFINITY, this.writeRow);
    this.end();
  }

  private begin(last: Numbers): void {
    [this.collected, this.writing] = [this.writing, this.collected];
    this.writing.sort();
    this.target = last;
  }

  private end(): void {
    if (this.target.update > this.flushed.update) this.statements.writeFlushed.run(this.target.update);
    this.flushed = this.target;
  }

  private readonly writeRow = (id: number, remaining: number, state: number, at: number, fill: number): void => {
    const status = state & 0xf;
    const { writeState, writeFilled } = this.statements;
    if (fill === 0) writeState.run(remaining, status, state >> 4, at, id);
    else writeFilled.run(remaining, status, state >> 4, at, fill, id);
    if (isFinal(status)) this.onEnded(id);
  };
}

function prepareStatements(db: Database.Database) {
  return {
    writeState: db.prepare("UPDATE orders SET remaining = ?, status = ?, reason = ?, updated_at = ? WHERE id = ?"),
    writeFilled: db.prepare(
      "UPDATE orders SET remaining = ?, status = ?, reason = ?, updated_at = ?, last_fill_id = ? WHERE id = ?",
    ),
    writeFlushed: db.prepare("UPDATE meta SET value = ? WHERE key = 'orders_told'"),
  };
}

/**
 * Brings the rows of all orders and the list of resting ones forward to the last update, before anything loads them.
 * Not inside a transaction.
 */
export function bringOrdersForward(db: Database.Database): void {
  db.transaction(() => {
    db.exec(`
      UPDATE orders SET remaining = u.remaining, status = u.status, reason = u.reason, updated_at = u.created_at,
        last_fill_id = max(orders.last_fill_id, n.fill_id)
      FROM (SELECT order_id, max(id) AS update_id, max(last_fill_id) AS fill_id FROM order_updates
            WHERE id > (SELECT value FROM meta WHERE key = 'orders_told') GROUP BY order_id) n
        CROSS JOIN order_updates u ON u.id = n.update_id
      WHERE orders.id = +n.order_id;
      DELETE FROM resting_orders WHERE order_id IN (SELECT order_id FROM order_updates
        WHERE id > (SELECT value FROM meta WHERE key = 'orders_told') AND status >= ${OrderStatus.filled});
      UPDATE meta SET value = (SELECT order_updates FROM totals) WHERE key = 'orders_told'`);
  }).immediate();
}
