/**
 * Candles: the prices and volumes of an outcome's trades by minute, five minutes, hour and day. A trade counts for the
 * taker's outcome at the taker's price, in the candle of its own time even after a clock step; open and close follow the
 * order of fills.
 *
 * Rows are written behind. Trades are collected by outcome and minute. Once there are enough, a batch is closed and added
 * to the rows over several commits, so that each commit stays short. A row says which trade it includes last, and `meta`
 * says up to which fill all rows are complete; readers add the trades beyond both. The minutes of one outcome are written
 * in the order in which they began, so no row includes a trade and lacks an earlier one.
 */
import type Database from "better-sqlite3";
import { CANDLE_MINUTES } from "../constants.ts";
import { withIndex } from "../util/typed-arrays.ts";
import { RowInserter } from "./row-inserter.ts";

/**
 * Fills beyond `meta`'s before a batch is closed; the batch is written within as many fills again. A row costs its page in
 * the WAL, so it should count many trades. Readers scan the rest in a few milliseconds.
 */
const MAX_PENDING = 32_768;
/** A commit writes at least this many minutes of outcomes. */
const SLICE = 64;

/** An upper bound on the minutes in a batch. */
const MAX_BATCH_MINUTES = 2 ** 30;

const MINUTE_MS = 60_000;
const MINUTES = Object.values(CANDLE_MINUTES);
const COLUMNS = 9;
/** `open` stays, because the added trades are later than the row's. */
const ADD_TO_ROW = `ON CONFLICT (outcome_id, interval, open_time) DO UPDATE SET high = max(high, excluded.high),
  low = min(low, excluded.low), close = excluded.close, volume = volume + excluded.volume,
  last_fill_id = excluded.last_fill_id`;

/** Sums of trades by outcome and minute, in the order in which the minutes began. Reused from batch to batch. */
class MinuteBatch {
  count = 0;
  outcomes = new Int32Array(256);
  openTimes = new Float64Array(256);
  opens = new Int32Array(256);
  highs = new Int32Array(256);
  lows = new Int32Array(256);
  closes = new Int32Array(256);
  volumes = new Float64Array(256);
  lastFills = new Float64Array(256);

  /** Begins a minute of an outcome; returns its index. @param at ms */
  begin(outcome: number, price: number, at: number): number {
    const i = this.count++;
    if (i === this.outcomes.length) this.grow();
    this.outcomes[i] = outcome;
    this.openTimes[i] = at - (at % MINUTE_MS);
    this.opens[i] = price;
    this.highs[i] = price;
    this.lows[i] = price;
    this.volumes[i] = 0;
    return i;
  }

  private grow(): void {
    const last = this.count - 1;
    this.outcomes = withIndex(this.outcomes, last);
    this.openTimes = withIndex(this.openTimes, last);
    this.opens = withIndex(this.opens, last);
    this.highs = withIndex(this.highs, last);
    this.lows = withIndex(this.lows, last);
    this.closes = withIndex(this.closes, last);
    this.volumes = withIndex(this.volumes, last);
    this.lastFills = withIndex(this.lastFills, last);
  }
}

export class Candles {
  private collecting = new MinuteBatch();
  /** By outcome: the index of its latest minute in `collecting`, counted from 1; 0 for none. */
  private latest = new Int32Array(1024);
  /** The closed batch, which includes fills up to `target`, and how many of its minutes are written. */
  private writing = new MinuteBatch();
  private written = 0;
  private target: number;
  /** The writing order: by outcome, so that rows share pages, then by index; both packed in one number. */
  private inOrder = new Float64Array(256);
  /** All rows are complete up to this fill. */
  private complete: number;
  private readonly rows: RowInserter;
  private readonly writeMeta: Database.Statement;

  private readonly maxPending: number;

  /** Collects the trades that the rows lack. */
  constructor(db: Database.Database, maxPending = MAX_PENDING) {
    this.maxPending = maxPending;
    const columns = new Array<string>(COLUMNS).fill("?");
    this.rows = new RowInserter(db, "candles", columns, "FAIL", ADD_TO_ROW);
    this.writeMeta = db.prepare("UPDATE meta SET value = ? WHERE key = 'candles_fill'");
    this.complete = Number(db.prepare("SELECT value FROM meta WHERE key = 'candles_fill'").pluck().get());
    this.target = this.complete;
    // The rows of all lengths are written together, so the minute's row stands for them.
    const trades = db
      .prepare(
        `SELECT fills.outcome_id, price, quantity, created_at, id FROM fills
         LEFT JOIN candles ON candles.outcome_id = fills.outcome_id AND interval = 1
           AND open_time = created_at - created_at % ${MINUTE_MS}
         WHERE id > ? AND role = 1 AND id > coalesce(candles.last_fill_id, 0) ORDER BY id`,
      )
      .raw();
    for (const row of trades.iterate(this.complete)) this.add(...(row as [number, number, number, number, number]));
  }

  /** Adds a trade, by its taker's fill. @param at ms */
  add(outcome: number, price: number, quantity: number, at: number, fill: number): void {
    const { collecting } = this;
    this.latest = withIndex(this.latest, outcome);
    let i = this.latest[outcome]! - 1;
    if (i < 0 || at < collecting.openTimes[i]! || at >= collecting.openTimes[i]! + MINUTE_MS) {
      i = collecting.begin(outcome, price, at);
      this.latest[outcome] = i + 1;
    }
    if (price > collecting.highs[i]!) collecting.highs[i] = price;
    if (price < collecting.lows[i]!) collecting.lows[i] = price;
    collecting.closes[i] = price;
    collecting.volumes[i]! += quantity;
    collecting.lastFills[i] = fill;
  }

  /** True if the rows are behind. */
  hasPending(): boolean {
    return this.collecting.count > 0 || this.isWriting();
  }

  /**
   * Writes some minutes if readers would have to scan too many fills, or `always`. Inside a transaction.
   * @param fill the last fill's number, counting this transaction
   */
  write(fill: number, always: boolean): void {
    if (!this.isWriting()) {
      if (this.collecting.count === 0 || (!always && fill - this.complete <= this.maxPending)) return;
      this.closeBatch(fill);
    }
    const { count } = this.writing;
    // However many fills a commit brings, the batch is written before the next one can be closed.
    const due = Math.ceil((count * (fill - this.target)) / this.maxPending);
    const end = Math.min(count, Math.max(due, this.written + SLICE));
    while (this.written < end) this.writeMinute(this.inOrder[this.written++]! % MAX_BATCH_MINUTES);
    this.rows.flush();
    if (this.isWriting()) return;
    this.complete = this.target;
    this.writeMeta.run(this.complete);
  }

  private isWriting(): boolean {
    return this.written < this.writing.count;
  }

  private closeBatch(fill: number): void {
    const { collecting } = this;
    this.inOrder = withIndex(this.inOrder, collecting.count);
    for (let i = 0; i < collecting.count; i++) {
      const outcome = collecting.outcomes[i]!;
      this.latest[outcome] = 0;
      this.inOrder[i] = outcome * MAX_BATCH_MINUTES + i;
    }
    this.inOrder.subarray(0, collecting.count).sort();
    this.collecting = this.writing;
    this.collecting.count = 0;
    this.writing = collecting;
    this.written = 0;
    this.target = fill;
  }

  /** Adds one minute of an outcome to its candles of each length. */
  private writeMinute(i: number): void {
    const { rows, writing } = this;
    const openTime = writing.openTimes[i]!;
    for (const minutes of MINUTES) {
      const row = rows.next();
      const { params } = rows;
      params[row] = writing.outcomes[i]!;
      params[row + 1] = minutes;
      params[row + 2] = openTime - (openTime % (minutes * MINUTE_MS));
      params[row + 3] = writing.opens[i]!;
      params[row + 4] = writing.highs[i]!;
      params[row + 5] = writing.lows[i]!;
      params[row + 6] = writing.closes[i]!;
      params[row + 7] = writing.volumes[i]!;
      params[row + 8] = writing.lastFills[i]!;
    }
  }
}
