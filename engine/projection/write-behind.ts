/**
 * Writes what orders have come to into their rows, in arrears. An order's cancel or fill is durable by its order update;
 * its row lies anywhere among the last tens of thousands, and written at once such rows were half of a commit's pages.
 * So changes gather here and are written in the order of ids, many to a page, a slice a commit.
 *
 * `meta` says up to which update the rows tell (`orders_told`): the view `current_orders` takes what came later from the
 * updates, and a start brings the rows forward before anybody loads them. What no update tells (a priority that an amend
 * lost, an order in the middle of its matching) the journal writes into the row itself.
 */
import type Database from "better-sqlite3";
import { isFinal, OrderStatus } from "../constants.ts";
import { assert } from "../util/assert.ts";
import { NumberMap } from "../util/number-map.ts";
import { withIndex } from "../util/typed-arrays.ts";

/**
 * Updates that the rows need not tell of under load, and for how long. Readers look through them, 50 ns each: a longer time
 * would cost reads more, a shorter one the journal (0.12 pages an order with 65,536 updates, 0.29 with none).
 */
const MAX_UNTOLD = 65_536;
const MAX_UNTOLD_MS = 1_000;
/** Orders that changed meanwhile, about: what the tables are made for. */
const EXPECTED = MAX_UNTOLD / 4;
/** Rows that a commit writes at least, beside one for each update that came: there are fewer changes than updates. */
const SLICE = 128;

/** The last numbers that were given. */
interface Numbers {
  readonly order: number;
  readonly update: number;
}

/** The last change of each order that changed. */
class Changes {
  private index = new NumberMap(EXPECTED);
  private count = 0;
  private ids = new Float64Array(1024);
  private remaining = new Int32Array(1024);
  private states = new Int32Array(1024);
  private times = new Float64Array(1024);
  private fills = new Float64Array(1024);
  private taken = 0;

  get size(): number {
    return this.count - this.taken;
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

  /** Brings the ids into their order; from then on changes are taken, not added. */
  sort(): void {
    this.ids.subarray(0, this.count).sort();
  }

  /** Gives `write` up to `rows` changes. */
  take(rows: number, write: (id: number, remaining: number, state: number, at: number, fill: number) => void): void {
    const end = Math.min(this.count, this.taken + rows);
    for (; this.taken < end; this.taken++) {
      const id = this.ids[this.taken]!;
      const place = this.index.get(id) - 1;
      write(id, this.remaining[place]!, this.states[place]!, this.times[place]!, this.fills[place]!);
    }
    if (this.taken < this.count || this.count === 0) return;
    this.index = new NumberMap(EXPECTED);
    this.count = 0;
    this.taken = 0;
  }
}

export class WriteBehind {
  private readonly statements: ReturnType<typeof prepareStatements>;
  private readonly onEnded: (orderId: number) => void;
  private readonly maxUntold: number;
  private gathered = new Changes();
  /** Being written: what had changed when the numbers stood at `target`. */
  private writing = new Changes();
  private target: Numbers;
  private written: Numbers;
  /** The last update when a slice was written. */
  private slicedAt = 0;
  private begunAt = 0;

  /** @param last of which the rows tell @param onEnded is told of each order whose row was written with its end */
  constructor(db: Database.Database, last: Numbers, onEnded: (orderId: number) => void, maxUntold = MAX_UNTOLD) {
    this.maxUntold = maxUntold;
    this.statements = prepareStatements(db);
    const told = Number(db.prepare("SELECT value FROM meta WHERE key = 'orders_told'").pluck().get());
    assert(told === last.update, "the rows of orders were brought forward before they were loaded");
    this.onEnded = onEnded;
    this.target = last;
    this.written = last;
  }

  /** An update has told of it. @param state status | reason << 4 @param fill the newest; 0: the row has it */
  add(id: number, remaining: number, state: number, at: number, fill: number): void {
    this.gathered.add(id, remaining, state, at, fill);
  }

  /** Up to which update the rows tell, this transaction included. */
  get told(): number {
    return this.written.update;
  }

  /** Orders up to this one have rows that tell what they came to not long ago: whatever ended since is told by `onEnded`. */
  get listable(): number {
    return this.written.order;
  }

  /** True when there are changes that no row tells of. @param last counting this transaction */
  isBehind(last: Numbers): boolean {
    return last.update > this.written.update || last.order > this.written.order;
  }

  /** Inside a transaction: writes a slice where much waits, or for long, or `always`. @param last counting this transaction */
  write(last: Numbers, now: number, always: boolean): void {
    if (this.writing.size === 0) {
      const isDue = last.update - this.written.update > this.maxUntold || now > this.begunAt + MAX_UNTOLD_MS;
      if (!isDue && !always) return;
      this.begunAt = now;
      this.slicedAt = last.update;
      this.begin(last);
    }
    this.writing.take(SLICE + last.update - this.slicedAt, this.writeRow);
    this.slicedAt = last.update;
    if (this.writing.size === 0) this.end();
  }

  /** The same with all there is: then the rows tell of every update. */
  writeAll(last: Numbers): void {
    this.writing.take(Number.POSITIVE_INFINITY, this.writeRow);
    this.begin(last);
    this.writing.take(Number.POSITIVE_INFINITY, this.writeRow);
    this.end();
  }

  private begin(last: Numbers): void {
    [this.gathered, this.writing] = [this.writing, this.gathered];
    this.writing.sort();
    this.target = last;
  }

  private end(): void {
    if (this.target.update > this.written.update) this.statements.writeTold.run(this.target.update);
    this.written = this.target;
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
    writeTold: db.prepare("UPDATE meta SET value = ? WHERE key = 'orders_told'"),
  };
}

/**
 * Brings the rows of all orders forward to what the updates tell, and the list of resting ones: before anything is loaded.
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
