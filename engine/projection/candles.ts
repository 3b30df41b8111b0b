/**
 * Candles: the prices and volumes of an outcome's trades by minute, five minutes, hour and day. A trade counts for the
 * taker's outcome at the taker's price, in the candle of its own time even after a clock step; open and close follow the
 * order of fills.
 *
 * Trades are collected by outcome and minute; each transaction adds them to the rows of all lengths. A row says which
 * trade it includes last.
 */
import type Database from "better-sqlite3";
import { CANDLE_MINUTES } from "../constants.ts";
import { withIndex } from "../util/typed-arrays.ts";
import { RowInserter } from "./row-inserter.ts";
import { CANDLES, type ColumnOf } from "./tables.ts";

const MINUTE_MS = 60_000;
const MINUTES = Object.values(CANDLE_MINUTES);
/** `open` stays, because the added trades are later than the row's. */
const ADD_TO_ROW = `ON CONFLICT (outcome_id, interval, open_time) DO UPDATE SET high = max(high, excluded.high),
  low = min(low, excluded.low), close = excluded.close, volume = volume + excluded.volume,
  last_fill_id = excluded.last_fill_id`;

export class Candles {
  // Sums of trades by outcome and minute, in the order in which the minutes began.
  private count = 0;
  private outcomes = new Int32Array(256);
  private openTimes = new Float64Array(256);
  private opens = new Int32Array(256);
  private highs = new Int32Array(256);
  private lows = new Int32Array(256);
  private closes = new Int32Array(256);
  private volumes = new Float64Array(256);
  private lastFills = new Float64Array(256);
  /** By outcome: the index of its latest minute, counted from 1; 0 for none. */
  private latest = new Int32Array(1024);
  private readonly rows: RowInserter<ColumnOf<typeof CANDLES>>;

  constructor(db: Database.Database) {
    this.rows = new RowInserter(db, CANDLES, { upsert: ADD_TO_ROW });
  }

  /** Adds a trade, by its taker's fill. @param at ms */
  add(outcome: number, price: number, quantity: number, at: number, fill: number): void {
    this.latest = withIndex(this.latest, outcome);
    let i = this.latest[outcome]! - 1;
    if (i < 0 || at < this.openTimes[i]! || at >= this.openTimes[i]! + MINUTE_MS) {
      i = this.begin(outcome, price, at);
      this.latest[outcome] = i + 1;
    }
    if (price > this.highs[i]!) this.highs[i] = price;
    if (price < this.lows[i]!) this.lows[i] = price;
    this.closes[i] = price;
    this.volumes[i]! += quantity;
    this.lastFills[i] = fill;
  }

  /** Adds the collected trades to the rows. Inside a transaction. */
  flush(): void {
    // The minutes of one outcome in the order in which they began, so that no row includes a trade and lacks an earlier one.
    for (const minutes of MINUTES) for (let i = 0; i < this.count; i++) this.writeMinute(i, minutes);
    this.rows.flush();
    for (let i = 0; i < this.count; i++) this.latest[this.outcomes[i]!] = 0;
    this.count = 0;
  }

  /** Adds one minute of an outcome to its candle of `minutes`. */
  private writeMinute(i: number, minutes: number): void {
    const { rows } = this;
    const openTime = this.openTimes[i]!;
    const row = rows.next();
    const { params, at } = rows;
    params[row + at.outcome_id] = this.outcomes[i]!;
    params[row + at.interval] = minutes;
    params[row + at.open_time] = openTime - (openTime % (minutes * MINUTE_MS));
    params[row + at.open] = this.opens[i]!;
    params[row + at.high] = this.highs[i]!;
    params[row + at.low] = this.lows[i]!;
    params[row + at.close] = this.closes[i]!;
    params[row + at.volume] = this.volumes[i]!;
    params[row + at.last_fill_id] = this.lastFills[i]!;
  }

  /** Begins a minute of an outcome; returns its index. @param at ms */
  private begin(outcome: number, price: number, at: number): number {
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
