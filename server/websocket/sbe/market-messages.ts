/** Writes the public channels' messages, lists of subscriptions and heartbeats into frames. Decides nothing. */
import type { Level } from "../../markets/depth.ts";
import type { Trade } from "../../markets/types.ts";
import type { TickerView } from "../ticker.ts";
import type { Subject } from "../topic.ts";
import { BlockLength, Channel, EntryLength, Template } from "./codec/constants.ts";
import * as codec from "./codec/responses.ts";
import { type Addressee, DIMENSION_BYTES, type FrameWriter } from "./frame-writer.ts";

/** Both sides of a book; under `implied` what mint and merge provide of them, null for the plain book. */
export interface BookSides {
  readonly bids: readonly Level[];
  readonly asks: readonly Level[];
  readonly implied: { readonly bids: readonly Level[]; readonly asks: readonly Level[] } | null;
}

/** A book's market and outcome. */
export interface BookOf {
  readonly marketId: number;
  readonly outcomeId: number;
}

/** A market, and to whom it is sent. */
export interface ChangedMarket {
  readonly id: number;
  readonly status: number;
  /** As in REST. */
  readonly json: string;
  /** Of the channel without a market. */
  readonly isOfAll: boolean;
  readonly isSnapshot: boolean;
}

const NO_LEVELS: readonly Level[] = [];

const CHANNELS: Readonly<Record<Subject["kind"], number>> = {
  book: Channel.book,
  implied: Channel.impliedBook,
  trades: Channel.trades,
  ticker: Channel.ticker,
  markets: Channel.markets,
};

export class SbeMarketMessages {
  // Reused from message to message.
  private readonly snapshot = new codec.BookSnapshot();
  private readonly update = new codec.BookUpdated();
  private readonly level = new codec.Level();
  private readonly trade = new codec.TradeCreated();
  private readonly ticker = new codec.TickerUpdated();
  private readonly market = new codec.MarketUpdated();
  private readonly subscribed = new codec.Subscribed();
  private readonly beat = new codec.Heartbeat();

  // ---------------------------------------------------------------- books

  /** @param ts of the message, ms @param bookTs when the book's state was applied, ms */
  bookSnapshot(frame: FrameWriter, sequence: number, ts: number, bookTs: number, of: BookOf, sides: BookSides): void {
    const { snapshot } = this;
    const block = frame.beginEvent(Template.bookSnapshot, BlockLength.bookSnapshot, roomOf(sides), sequence);
    snapshot.ts = ts;
    snapshot.bookTs = bookTs;
    snapshot.marketId = of.marketId;
    snapshot.outcomeId = of.outcomeId;
    snapshot.implied = Number(sides.implied !== null);
    codec.writeBookSnapshot(frame.words, block, snapshot);
    this.addSides(frame, sides);
  }

  bookUpdated(frame: FrameWriter, sequence: number, ts: number, of: BookOf, sides: BookSides): void {
    const { update } = this;
    const block = frame.beginEvent(Template.bookUpdated, BlockLength.bookUpdated, roomOf(sides), sequence);
    update.ts = ts;
    update.marketId = of.marketId;
    update.outcomeId = of.outcomeId;
    update.implied = Number(sides.implied !== null);
    codec.writeBookUpdated(frame.words, block, update);
    this.addSides(frame, sides);
  }

  private addSides(frame: FrameWriter, { bids, asks, implied }: BookSides): void {
    this.addLevels(frame, bids);
    this.addLevels(frame, asks);
    this.addLevels(frame, implied?.bids ?? NO_LEVELS);
    this.addLevels(frame, implied?.asks ?? NO_LEVELS);
    frame.endMessage();
  }

  private addLevels(frame: FrameWriter, levels: readonly Level[]): void {
    const { level } = this;
    let at = frame.addGroup(EntryLength.level, levels.length);
    for (const [price, quantity] of levels) {
      level.price = price;
      level.quantity = quantity;
      codec.writeLevel(frame.words, at, level);
      at += EntryLength.level / 4;
    }
  }

  // ---------------------------------------------------------------- trades, tickers, markets

  tradeCreated(frame: FrameWriter, sequence: number, marketId: number, created: Trade): void {
    const { trade } = this;
    const block = frame.beginEvent(Template.tradeCreated, BlockLength.tradeCreated, 0, sequence);
    trade.ts = created.at;
    trade.matchId = created.matchId;
    trade.marketId = marketId;
    trade.outcomeId = created.outcomeId;
    trade.quantity = created.quantity;
    trade.price = created.price;
    trade.side = created.side;
    trade.matchType = created.matchType;
    codec.writeTradeCreated(frame.words, block, trade);
    frame.endMessage();
  }

  tickerUpdated(frame: FrameWriter, sequence: number, ts: number, view: TickerView, isSnapshot: boolean): void {
    const { ticker } = this;
    const block = frame.beginEvent(Template.tickerUpdated, BlockLength.tickerUpdated, 0, sequence);
    ticker.ts = ts;
    ticker.volume = view.volume;
    ticker.marketId = view.market_id;
    ticker.outcomeId = view.outcome_id;
    ticker.lastPrice = view.last_price ?? -1;
    ticker.bestBid = view.best_bid ?? -1;
    ticker.bestAsk = view.best_ask ?? -1;
    ticker.impliedBid = view.implied_bid ?? -1;
    ticker.impliedAsk = view.implied_ask ?? -1;
    ticker.snapshot = Number(isSnapshot);
    codec.writeTickerUpdated(frame.words, block, ticker);
    frame.endMessage();
  }

  marketUpdated(frame: FrameWriter, sequence: number, ts: number, changed: ChangedMarket): void {
    const { market } = this;
    const { json } = changed;
    // Each unit of UTF-16 takes up to 3 bytes.
    const room = 3 * json.length;
    const block = frame.beginEvent(Template.marketUpdated, BlockLength.marketUpdated, 2 + room, sequence);
    market.ts = ts;
    market.marketId = changed.id;
    market.status = changed.status;
    market.channel = Channel.markets;
    market.allMarkets = Number(changed.isOfAll);
    market.snapshot = Number(changed.isSnapshot);
    codec.writeMarketUpdated(frame.words, block, market);
    frame.addText16(json, room);
    frame.endMessage();
  }

  // ---------------------------------------------------------------- subscriptions

  /** The response to subscribe and unsubscribe. */
  subscriptions(frame: FrameWriter, to: Addressee, subjects: readonly Subscribed[]): void {
    const room = DIMENSION_BYTES + subjects.length * EntryLength.subscribed;
    frame.beginResponse(Template.subscriptions, BlockLength.subscriptions, room, to);
    this.addSubscribed(frame, subjects);
  }

  /** @param orders the last order update, null where the connection is sent none */
  heartbeat(
    frame: FrameWriter,
    sequence: number,
    ts: number,
    orders: number | null,
    subjects: readonly Subscribed[],
  ): void {
    const room = DIMENSION_BYTES + subjects.length * EntryLength.subscribed;
    const block = frame.beginEvent(Template.heartbeat, BlockLength.heartbeat, room, sequence);
    this.beat.ts = ts;
    this.beat.orders = orders ?? -1;
    codec.writeHeartbeat(frame.words, block, this.beat);
    this.addSubscribed(frame, subjects);
  }

  private addSubscribed(frame: FrameWriter, subjects: readonly Subscribed[]): void {
    const { subscribed } = this;
    let at = frame.addGroup(EntryLength.subscribed, subjects.length);
    for (const { subject, sequence } of subjects) {
      subscribed.sequence = sequence;
      subscribed.marketId = subject.market?.id ?? -1;
      subscribed.outcomeId = subject.outcome?.id ?? -1;
      subscribed.channel = CHANNELS[subject.kind];
      codec.writeSubscribed(frame.words, at, subscribed);
      at += EntryLength.subscribed / 4;
    }
    frame.endMessage();
  }
}

/** A subscription and the last sequence of its channel. */
export interface Subscribed {
  readonly subject: Subject;
  readonly sequence: number;
}

function roomOf({ bids, asks, implied }: BookSides): number {
  const levels = bids.length + asks.length + (implied === null ? 0 : implied.bids.length + implied.asks.length);
  return 4 * DIMENSION_BYTES + levels * EntryLength.level;
}
