/**
 * Follows the log, batch by batch, and turns it into rows of history: after each commit the levels that it changed, its
 * trades, and the market's status where it is another one. Levels that are back at what they were before the commit give
 * no row: nobody saw them change. Never reads a table, an order or a user.
 */
import { MarketStatus, Side } from "../../engine/constants.ts";
import { FULL_PRICE_BPS, MAX_OUTCOME_ID } from "../../engine/limits.ts";
import { type BatchHeader, readHeader, recordsOf } from "../../engine/log/batch-format.ts";
import { marketWritesOf, type Opening, openingRecords } from "../../engine/log/opening.ts";
import type { MarketWrite } from "../../engine/log/writes.ts";
import { CommandRecord } from "../../engine/ring/command-record.ts";
import { EngineEvent } from "../../engine/ring/engine-event.ts";
import { EventKind, RECORD_WORDS, sideOf } from "../../engine/ring/records.ts";
import { assert } from "../../engine/util/assert.ts";
import { type HistoryRow, RowKind, type RowSink, rowOf } from "./types.ts";

const MICROS = 1_000;

/** A level of an outcome in one number. At one price there are bids or asks, never both. */
const keyOf = (outcome: number, price: number): number => outcome * FULL_PRICE_BPS + price;
const outcomeOf = (key: number): number => Math.floor(key / FULL_PRICE_BPS);
const priceOf = (key: number): number => key % FULL_PRICE_BPS;
/** Shares of bids are positive, of asks negative. */
const signed = (side: number, quantity: number): number => (side === Side.buy ? quantity : 0 - quantity);

/** What the current commit changed in a market. */
interface Changes {
  /** µs */
  at: number;
  /** The market's status before the commit. */
  readonly status: number;
  /** By level: its shares before the commit. In the order of their first change. */
  readonly levels: Map<number, number>;
  readonly trades: HistoryRow[];
  readonly statuses: HistoryRow[];
}

interface FollowedMarket {
  readonly id: number;
  readonly first: number;
  readonly outcomes: number;
  status: number;
  /** The last row's time, µs. */
  lastAt: number;
  /** It has rows on this day, or was opened on it: no snapshot precedes its next row. */
  isBegun: boolean;
  /** Null where the current commit changed nothing. */
  changes: Changes | null;
}

/** Where a follower stands; plain numbers, so that it can be stored. */
export interface FollowerState {
  /** ms: the day's beginning. */
  readonly dayStart: number;
  /** Id, first outcome, outcomes, status, last row's time, 1 where rows of this day exist; one market after the other. */
  readonly markets: readonly number[];
  /** Outcome, price, shares; one level after the other. */
  readonly levels: readonly number[];
}

/** An opening lacks the markets that closed before the exchange last started, and settle later. */
export type KnownMarkets = Iterable<readonly [id: number, firstOutcome: number, outcomes: number]>;

export class BookFollower {
  private readonly sink: RowSink;
  private readonly markets = new Map<number, FollowedMarket>();
  private readonly marketOfOutcome = new Int32Array(MAX_OUTCOME_ID + 1);
  /** By outcome: the shares at each price that has some. */
  private readonly books = new Map<number, Map<number, number>>();
  private dayStart = 0;
  /** When the current publish of an engine was made, µs; 0 in writes. */
  private publishedAt = 0;
  private readonly changed: FollowedMarket[] = [];
  private readonly event = new EngineEvent();

  constructor(sink: RowSink) {
    this.sink = sink;
  }

  /** Begins with the books before a batch. */
  open(opening: Opening, known: KnownMarkets = []): void {
    for (const each of known) this.addMarket(...each, MarketStatus.closed);
    for (const each of opening.markets) this.addMarket(...each);
    const { words, doubles, count } = openingRecords(opening);
    const order = new CommandRecord();
    for (let i = 0; i < count; i++) {
      order.at(words, doubles, i * RECORD_WORDS);
      const book = this.bookOf(order.outcome);
      const { packed, price, quantity } = order;
      book.set(price, (book.get(price) ?? 0) + signed(sideOf(packed), quantity));
    }
  }

  restore({ dayStart, markets, levels }: FollowerState): void {
    this.dayStart = dayStart;
    for (let i = 0; i < markets.length; i += 6) {
      const market = this.addMarket(markets[i]!, markets[i + 1]!, markets[i + 2]!, markets[i + 3]!);
      market.lastAt = markets[i + 4]!;
      market.isBegun = markets[i + 5] === 1;
    }
    for (let i = 0; i < levels.length; i += 3) this.bookOf(levels[i]!).set(levels[i + 1]!, levels[i + 2]!);
  }

  state(): FollowerState {
    const [markets, levels]: [number[], number[]] = [[], []];
    for (const { id, first, outcomes, status, lastAt, isBegun } of this.markets.values()) {
      markets.push(id, first, outcomes, status, lastAt, isBegun ? 1 : 0);
    }
    for (const [outcome, book] of this.books) {
      for (const [price, shares] of book) levels.push(outcome, price, shares);
    }
    return { dayStart: this.dayStart, markets, levels };
  }

  /** The rows of the following batches are those of another day. @param start its beginning, ms */
  beginDay(start: number): void {
    assert(start > this.dayStart, "days follow each other");
    this.dayStart = start;
    for (const market of this.markets.values()) {
      market.lastAt = start * MICROS;
      market.isBegun = false;
    }
  }

  /** Applies the batch after the last; it is one commit. */
  follow(body: Buffer, header: BatchHeader = readHeader(body)): void {
    assert(header.at >= this.dayStart, "a batch is in its day");
    this.publishedAt = 0;
    for (const write of marketWritesOf(body, header)) this.write(write);
    const { words, doubles, count } = recordsOf(body, header);
    const { event } = this;
    event.at(words, doubles, 0);
    for (let i = 0; i < count; i++, event.next()) this.apply(event);
    for (const market of this.changed) this.endCommit(market, header.at * MICROS);
    this.changed.length = 0;
  }

  // ---------------------------------------------------------------- the log's events and writes

  private apply(event: EngineEvent): void {
    switch (event.kind) {
      case EventKind.batchMatched:
        this.publishedAt = Math.floor(event.matchedAt);
        return;
      case EventKind.levelChanged:
        return this.changeLevel(event);
      case EventKind.orderFilled:
        if (event.endsMatch) this.trade(event);
        return;
      case EventKind.marketChanged:
        return this.setStatus(event.market, event.status);
    }
  }

  private changeLevel({ outcome, side, price, levelQuantity: quantity }: EngineEvent): void {
    const market = this.marketOf(outcome);
    const book = this.bookOf(outcome);
    const { levels } = this.changesOf(market);
    const key = keyOf(outcome, price);
    if (!levels.has(key)) levels.set(key, book.get(price) ?? 0);
    // A price that has no shares any more has none on either side.
    if (quantity === 0) book.delete(price);
    else book.set(price, signed(side, quantity));
  }

  private trade({ outcome, side, price, quantity, matchId, matchType, time: createdAt }: EngineEvent): void {
    const trade = { outcome, side, price, quantity, matchId, matchType, createdAt };
    this.changesOf(this.marketOf(outcome)).trades.push(rowOf(RowKind.trade, trade));
  }

  private write(write: MarketWrite): void {
    if (write.kind === "createMarket") {
      const { id, firstOutcomeId, outcomes, proposedBy } = write;
      const market = this.addMarket(id, firstOutcomeId, outcomes.length, MarketStatus.proposed);
      if (proposedBy === null) this.openNew(market);
    } else if (write.kind === "openMarket") {
      const market = this.markets.get(write.marketId);
      assert(market !== undefined, "an approved proposal was proposed");
      this.openNew(market);
    } else if (write.kind === "refuseMarket") this.markets.delete(write.marketId);
    else this.settle(write.marketId, write.status, write.payouts);
  }

  /** Before this moment nobody saw the market. */
  private openNew(market: FollowedMarket): void {
    market.isBegun = true;
    this.setStatus(market.id, MarketStatus.open);
  }

  private setStatus(id: number, status: number): void {
    const market = this.markets.get(id);
    // An engine says at its start what it knows of a market, a settled one's too.
    if (market === undefined || market.status === status) return;
    this.changesOf(market).statuses.push(rowOf(RowKind.status, { status }));
    market.status = status;
  }

  private settle(id: number, status: number, payouts: readonly number[]): void {
    const market = this.markets.get(id);
    assert(market !== undefined, "a market that settles is known");
    const { statuses } = this.changesOf(market);
    market.status = status;
    for (const [i, payout] of payouts.entries()) {
      statuses.push(rowOf(RowKind.status, { status, outcome: market.first + i, price: payout }));
    }
  }

  // ---------------------------------------------------------------- a commit

  private changesOf(market: FollowedMarket): Changes {
    if (market.changes === null) {
      market.changes = { at: 0, status: market.status, levels: new Map(), trades: [], statuses: [] };
      this.changed.push(market);
    }
    const { changes } = market;
    changes.at = Math.max(changes.at, this.publishedAt);
    return changes;
  }

  /** @param appendedAt when the batch was appended, the start of that ms, µs */
  private endCommit(market: FollowedMarket, appendedAt: number): void {
    const { at, status, levels, trades, statuses } = market.changes!;
    market.changes = null;
    const moved = [...levels].filter(([key, before]) => this.sharesAt(key) !== before);
    if (moved.length + trades.length + statuses.length === 0) return;
    if (!market.isBegun) this.beginFile(market, status, levels);
    // The engine's clock is finer than the log's, and never ahead of it.
    const appended = at === 0 ? appendedAt : Math.min(at, appendedAt + MICROS - 1);
    market.lastAt = Math.max(market.lastAt + 1, appended);
    for (const row of trades) this.add(market, row);
    for (const [key, before] of moved) this.addLevel(market, key, before, this.sharesAt(key));
    for (const row of statuses) this.add(market, row);
    // A settled market never changes again.
    if (market.status === MarketStatus.resolved || market.status === MarketStatus.voided) this.forget(market);
  }

  /** The day's first rows of a market: its status, and all levels, as they were before the commit. */
  private beginFile(market: FollowedMarket, status: number, changed: ReadonlyMap<number, number>): void {
    market.isBegun = true;
    market.lastAt = this.dayStart * MICROS;
    this.add(market, rowOf(RowKind.status, { status }));
    for (let outcome = market.first; outcome < market.first + market.outcomes; outcome++) {
      const book = new Map(this.books.get(outcome));
      for (const [key, before] of changed) if (outcomeOf(key) === outcome) book.set(priceOf(key), before);
      const levels = [...book].filter(([, shares]) => shares !== 0).sort(bestFirst);
      for (const [price, shares] of levels) {
        this.add(market, levelRow(RowKind.snapshot, keyOf(outcome, price), Math.sign(shares), Math.abs(shares)));
      }
    }
  }

  private add(market: FollowedMarket, row: HistoryRow): void {
    row.at = market.lastAt;
    this.sink.add(market.id, row);
  }

  /** A price that changed sides first loses its old shares. */
  private addLevel(market: FollowedMarket, key: number, before: number, shares: number): void {
    if (before * shares < 0 || shares === 0) this.add(market, levelRow(RowKind.level, key, Math.sign(before), 0));
    if (shares !== 0) this.add(market, levelRow(RowKind.level, key, Math.sign(shares), Math.abs(shares)));
  }

  private sharesAt(key: number): number {
    return this.books.get(outcomeOf(key))?.get(priceOf(key)) ?? 0;
  }

  // ---------------------------------------------------------------- markets

  private addMarket(id: number, first: number, outcomes: number, status: number): FollowedMarket {
    const market = {
      ...{ id, first, outcomes, status, lastAt: this.dayStart * MICROS },
      ...{ isBegun: false, changes: null },
    };
    this.markets.set(id, market);
    this.marketOfOutcome.fill(id, first, first + outcomes);
    return market;
  }

  private forget({ id, first, outcomes }: FollowedMarket): void {
    this.markets.delete(id);
    for (let outcome = first; outcome < first + outcomes; outcome++) this.books.delete(outcome);
  }

  private marketOf(outcome: number): FollowedMarket {
    const market = this.markets.get(this.marketOfOutcome[outcome]!);
    assert(market !== undefined, "an outcome whose book changes has a market");
    return market;
  }

  private bookOf(outcome: number): Map<number, number> {
    let book = this.books.get(outcome);
    if (book === undefined) this.books.set(outcome, (book = new Map()));
    return book;
  }
}

type Level = readonly [price: number, shares: number];

/** Bids from the highest price on, then asks from the lowest. */
function bestFirst([price, shares]: Level, [otherPrice, others]: Level): number {
  if (shares * others < 0) return others - shares;
  return shares > 0 ? otherPrice - price : price - otherPrice;
}

/** @param sign 1 for bids, -1 for asks */
function levelRow(kind: RowKind, key: number, sign: number, quantity: number): HistoryRow {
  return rowOf(kind, { outcome: outcomeOf(key), price: priceOf(key), side: sign > 0 ? Side.buy : Side.sell, quantity });
}
