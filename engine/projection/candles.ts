/**
 * Candles: what an outcome traded at, by minute, five minutes, hour and day. A trade counts for the taker's outcome at the
 * taker's price, in the candle of its own time wherever the clock stood before; open and close go by the order of fills.
 *
 * The database hears of them in arrears. Trades are gathered by outcome and minute; once there are enough, what was
 * gathered is set aside and added to the rows over as many commits as keep each of them short. A row says up to which
 * trade it counts, `meta` up to which fill all rows are complete: whoever reads adds the trades beyond both. What was
 * gathered of one outcome is written in the order in which it began, so no row counts a trade and lacks one before it.
 */
import type Database from "better-sqlite3";
import { CANDLE_MINUTES } from "../constants.ts";
import { withIndex } from "../util/typed-arrays.ts";
import { RowInserter } from "./row-inserter.ts";

/**
 * Fills beyond what `meta` says, before what was gathered is set aside; within as many again it is written. What a row costs is
 * its page in the WAL, so it should count many trades; what readers scan beyond is some milliseconds.
 */
const MAX_UNWRITTEN = 32_768;
/** Minutes of outcomes written at a time at least. */
const SLICE = 64;

/** More minutes of outcomes than are ever gathered. */
const MAX_GATHERED = 2 ** 30;

const MINUTE_MS = 60_000;
const MINUTES = Object.values(CANDLE_MINUTES);
const COLUMNS = 9;
/** `open` stays: what is added comes after what is there. */
const ADD_TO_ROW = `ON CONFLICT (outcome_id, interval, open_time) DO UPDATE SET high = max(high, excluded.high),
  low = min(low, excluded.low), close = excluded.close, volume = volume + excluded.volume,
  last_fill_id = excluded.last_fill_id`;

/** What trades came to, by outcome and minute, in the order in which each began. Emptied and filled again and again. */
class Gathered {
  count = 0;
  outcomes = new Int32Array(256);
  openTimes = new Float64Array(256);
  opens = new Int32Array(256);
  highs = new Int32Array(256);
  lows = new Int32Array(256);
  closes = new Int32Array(256);
  volumes = new Float64Array(256);
  lastFills = new Float64Array(256);

  /** Begins a minute of an outcome; answers its index. @param at ms */
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
  private gathering = new Gathered();
  /** By outcome: where in `gathering` its latest minute is, counted from 1; 0 where it has none. */
  private latest = new Int32Array(1024);
  /** Set aside when the fill counter stood at `target`, and how much of it is written. */
  private writing = new Gathered();
  private written = 0;
  private target: number;
  /** The order in which it is written: by outcome, so that rows share pages, and of one as it began; both in one number. */
  private inOrder = new Float64Array(256);
  /** Up to which fill all rows are complete. */
  private complete: number;
  private readonly rows: RowInserter;
  private readonly writeMeta: Database.Statement;

  private readonly maxUnwritten: number;

  /** Gathers what the rows lack. */
  constructor(db: Database.Database, maxUnwritten = MAX_UNWRITTEN) {
    this.maxUnwritten = maxUnwritten;
    const columns = new Array<string>(COLUMNS).fill("?");
    this.rows = new RowInserter(db, "candles", columns, "FAIL", ADD_TO_ROW);
    this.writeMeta = db.prepare("UPDATE meta SET value = ? WHERE key = 'candles_fill'");
    this.complete = Number(db.prepare("SELECT value FROM meta WHERE key = 'candles_fill'").pluck().get());
    this.target = this.complete;
    // The rows of all lengths are written together: the minute's speaks for them.
    const trades = db
      .prepare(
        `SELECT fills.outcome_id, price, quantity, created_at, id FROM fills
         LEFT JOIN candles ON candles.outcome_id = fills.outcome_id AND interval = 1
           AND open_time = created_at - created_at % ${MINUTE_MS}
         WHERE id > ? AND role = 1 AND id > coalesce(candles.last_fill_id, 0) ORDER BY id`,
      )
      .raw();
    for (const [outcome, price, quantity, at, id] of trades.iterate(this.complete) as Iterable<number[]>) {
      this.add(outcome!, price!, quantity!, at!, id!);
    }
  }

  /** Takes in a trade: the taker's fill. @param at ms */
  add(outcome: number, price: number, quantity: number, at: number, fill: number): void {
    const { gathering } = this;
    this.latest = withIndex(this.latest, outcome);
    let i = this.latest[outcome]! - 1;
    if (i < 0 || at < gathering.openTimes[i]! || at >= gathering.openTimes[i]! + MINUTE_MS) {
      i = gathering.begin(outcome, price, at);
      this.latest[outcome] = i + 1;
    }
    if (price > gathering.highs[i]!) gathering.highs[i] = price;
    if (price < gathering.lows[i]!) gathering.lows[i] = price;
    gathering.closes[i] = price;
    gathering.volumes[i]! += quantity;
    gathering.lastFills[i] = fill;
  }

  /** True when the rows are behind. */
  hasUnwritten(): boolean {
    return this.gathering.count > 0 || this.isWriting();
  }

  /**
   * Inside a transaction: writes some of what was gathered where readers would have to scan too much, or `always`.
   * @param fill the last number given, counting this transaction
   */
  write(fill: number, always: boolean): void {
    if (!this.isWriting()) {
      if (this.gathering.count === 0 || (!always && fill - this.complete <= this.maxUnwritten)) return;
      this.setAside(fill);
    }
    const { count } = this.writing;
    // However many fills each commit brings, all is written before there is enough to set aside again.
    const due = Math.ceil((count * (fill - this.target)) / this.maxUnwritten);
    const end = Math.min(count, Math.max(due, this.written + SLICE));
    while (this.written < end) this.writeMinute(this.inOrder[this.written++]! % MAX_GATHERED);
    this.rows.flush();
    if (this.isWriting()) return;
    this.complete = this.target;
    this.writeMeta.run(this.complete);
  }

  private isWriting(): boolean {
    return this.written < this.writing.count;
  }

  private setAside(fill: number): void {
    const { gathering } = this;
    this.inOrder = withIndex(this.inOrder, gathering.count);
    for (let i = 0; i < gathering.count; i++) {
      const outcome = gathering.outcomes[i]!;
      this.latest[outcome] = 0;
      this.inOrder[i] = outcome * MAX_GATHERED + i;
    }
    this.inOrder.subarray(0, gathering.count).sort();
    this.gathering = this.writing;
    this.gathering.count = 0;
    this.writing = gathering;
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
