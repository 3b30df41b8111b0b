/**
 * The public channels: book, trades, ticker, markets. A topic is one channel of one outcome or market, with a sequence
 * that rises by exactly 1 per message; it exists while it has a subscriber.
 *
 * A message is encoded once for each format that subscribers speak, whatever their number: uWebSockets.js sends it to the
 * topic, and to the topic's twins for other formats.
 */
import type { Ledger } from "../../engine/ledger.ts";
import type { Clock } from "../../engine/util/clock.ts";
import { ApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { encodeJson } from "../http/message-pack.ts";
import { bookJson, bookSides } from "../markets/book-json.ts";
import type { Level } from "../markets/depth.ts";
import type { ImpliedChange } from "../markets/implied-books.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import { tradeJson } from "../markets/trade-json.ts";
import { type Market, type Outcome, TickerState, type Trade } from "../markets/types.ts";
import { isListed, marketView } from "../markets/views.ts";
import type { Traffic } from "../util/counters.ts";
import type { Timeline } from "../util/timeline.ts";
import { frame, type SocketConnection, snapshotFrame } from "./connection.ts";
import { MAX_WS_SUBSCRIPTIONS } from "./limits.ts";
import { FrameWriter } from "./sbe/frame-writer.ts";
import { type BookOf, type ChangedMarket, SbeMarketMessages } from "./sbe/market-messages.ts";
import { type TickerView, tickerView } from "./ticker.ts";
import { ALL_MARKETS, type Subject, Topic, type TopicKind, topicKey } from "./topic.ts";
import type { Format, Publisher, Subscription } from "./types.ts";

/** Numbers the messages of tickers and markets; those of trades and books have numbers already. */
class Sequences {
  private readonly first: number;
  private readonly last = new Map<number, number>();

  constructor(first: number) {
    this.first = first;
  }

  of(id: number): number {
    return this.last.get(id) ?? this.first;
  }

  next(id: number): number {
    const sequence = this.of(id) + 1;
    this.last.set(id, sequence);
    return sequence;
  }
}

const IMPLIED_VIEW = { implied: true };

/** A subscription, its entry in JSON up to the sequence, and the last sequence. */
export interface Subscribed {
  readonly subject: Subject;
  readonly listed: string;
  readonly sequence: number;
}

/** The list of subscriptions as JSON text. */
export const subscribedJson = (list: readonly Subscribed[]): string =>
  `[${list.map(({ listed, sequence }) => `${listed}${sequence}}`).join(",")}]`;

export class Channels {
  private readonly publisher: Publisher;
  private readonly registry: MarketRegistry;
  private readonly ledger: Ledger;
  /** By outcome or market. */
  private readonly topics: Readonly<Record<TopicKind, Map<number, Topic>>> = {
    book: new Map(),
    implied: new Map(),
    trades: new Map(),
    ticker: new Map(),
    markets: new Map(),
  };
  private readonly messages = new SbeMarketMessages();
  private readonly scratch = new FrameWriter();
  private readonly traffic: Traffic;
  private readonly timeline: Timeline;
  private readonly clock: Clock;
  /** Topics over all connections. */
  subscriptions = 0;
  private readonly tickerSequences: Sequences;
  private readonly marketSequences: Sequences;

  /** @param times `startedAt`, ms, is the first number of tickers and markets, so that numbers never fall over a restart */
  constructor(
    publisher: Publisher,
    registry: MarketRegistry,
    ledger: Ledger,
    traffic: Traffic,
    { timeline, clock, startedAt }: { timeline: Timeline; clock: Clock; startedAt: number },
  ) {
    this.publisher = publisher;
    this.traffic = traffic;
    this.timeline = timeline;
    this.clock = clock;
    this.registry = registry;
    this.ledger = ledger;
    registry.implied.listen((market, outcome, sequence, change) => {
      this.impliedBookUpdated(market, outcome, sequence, change);
    });
    this.tickerSequences = new Sequences(startedAt);
    this.marketSequences = new Sequences(startedAt);
  }

  // ---------------------------------------------------------------- subscriptions

  /**
   * Adds all named topics to the connection's own, or none of them. Messages follow once `start` is called for a topic.
   * @throws ApiError
   */
  subscribe(connection: SocketConnection, named: Subscription): readonly Topic[] {
    const topics = this.find(named);
    const own = connection.topics ?? new Set();
    const added = topics.filter((topic) => !own.has(topic));
    if (own.size + added.length > MAX_WS_SUBSCRIPTIONS) throw tooMany();
    connection.consumeSnapshots(topics.length, this.clock.now());
    // From here it must succeed.
    connection.topics = own;
    for (const topic of added) {
      own.add(topic);
      this.topics[topic.subject.kind].set(topic.key, topic);
      topic.subscribers[connection.format]++;
      this.subscriptions++;
      this.setWatched(topic.subject, true);
    }
    return topics;
  }

  /**
   * Subscribes the connection to one of its topics; returns the topic's snapshot in what the connection speaks, null where
   * it has none or the connection has unsubscribed meanwhile.
   */
  start(connection: SocketConnection, topic: Topic): string | Uint8Array | null {
    const { socket } = connection;
    if (socket === null || connection.topics?.has(topic) !== true) return null;
    // Changes that other subscribers still lack are published before this one joins them.
    const { subject } = topic;
    if (subject.kind === "implied") this.registry.implied.sequence(subject.market, subject.outcome);
    socket.subscribe(topic.names[connection.format]);
    return this.snapshot(topic, connection.format, this.timeline.stamp(this.clock.now()));
  }

  /** Ends the named subscriptions that exist, and returns them with their last sequences. @throws ApiError */
  unsubscribe(connection: SocketConnection, named: Subscription): Subscribed[] {
    const { socket, topics } = connection;
    const ended = this.find(named).filter((topic) => topics?.has(topic) === true);
    const list = this.list(ended);
    for (const topic of ended) {
      topics?.delete(topic);
      socket?.unsubscribe(topic.names[connection.format]);
      this.leave(connection, topic);
    }
    return list;
  }

  /** Ends all subscriptions of a connection that closed. */
  closed(connection: SocketConnection): void {
    for (const topic of connection.topics ?? []) this.leave(connection, topic);
    connection.topics = null;
  }

  private leave(connection: SocketConnection, topic: Topic): void {
    topic.subscribers[connection.format]--;
    this.subscriptions--;
    if (topic.isFollowed) return;
    this.topics[topic.subject.kind].delete(topic.key);
    this.setWatched(topic.subject, false);
  }

  /** The topics with their sequences. */
  list(topics: Iterable<Topic>): Subscribed[] {
    return [...topics].map(({ subject, listed }) => ({ subject, listed, sequence: this.sequenceOf(subject) }));
  }

  /** The first message to a new subscriber; null for trades, and for all markets. @param now ms */
  private snapshot(topic: Topic, format: Format, now: number): string | Uint8Array | null {
    const { registry, messages } = this;
    const { subject } = topic;
    const { kind, market } = subject;
    const sequence = this.sequenceOf(subject);
    const isBinary = format === "sbe";
    if (kind === "book" || kind === "implied") {
      const view = kind === "implied" ? IMPLIED_VIEW : {};
      if (!isBinary) {
        return snapshotFrame("book.snapshot", sequence, now, bookJson(registry, market, subject.outcome, view));
      }
      const { at, sides } = bookSides(market, subject.outcome, view);
      return this.binary((into) => {
        messages.bookSnapshot(into, sequence, now, at, bookOf(market, subject.outcome), sides);
      });
    }
    if (kind === "ticker") {
      // The ticker of this sequence number: later changes go to all subscribers alike.
      const { view, json } = (topic.lastTicker ??= tickerOf(market, subject.outcome));
      if (!isBinary) return snapshotFrame("ticker.updated", sequence, now, json);
      return this.binary((into) => messages.tickerUpdated(into, sequence, now, view, true));
    }
    if (kind === "markets" && market !== null) {
      const json = JSON.stringify(marketView(market, registry, this.ledger, now));
      if (!isBinary) return snapshotFrame("market.updated", sequence, now, json);
      const snapshot = { id: market.id, status: market.status, json, isOfAll: false, isSnapshot: true };
      return this.binary((into) => messages.marketUpdated(into, sequence, now, snapshot));
    }
    return null;
  }

  private binary(write: (into: FrameWriter) => void): Uint8Array {
    write(this.scratch);
    return this.scratch.take();
  }

  private sequenceOf(subject: Subject): number {
    const { registry } = this;
    switch (subject.kind) {
      case "book":
        return registry.bookSequence(subject.outcome);
      case "implied":
        return registry.implied.publishedSequence(subject.market, subject.outcome);
      case "trades":
        return subject.market.tradeSequence;
      case "ticker":
        return this.tickerSequences.of(subject.outcome.id);
      case "markets":
        return this.marketSequences.of(subject.market?.id ?? ALL_MARKETS);
    }
  }

  /** The topics that a subscription names. @throws ApiError */
  private find(named: Subscription): Topic[] {
    const { channel, market_id, market_ids, outcome_id, implied = false } = named;
    if (implied && channel !== "book") throw badRequest("implied: only for book");
    if (market_id !== undefined && market_ids !== undefined) throw badRequest("market_ids: not beside market_id");
    const ids = market_ids ?? (market_id === undefined ? null : [market_id]);
    if (outcome_id !== undefined && (market_id === undefined || channel === "trades" || channel === "markets")) {
      throw badRequest("outcome_id: only for book and ticker, beside market_id");
    }
    if (ids === null) {
      if (channel !== "markets") throw badRequest("market_id: required, or else market_ids");
      return [this.topic({ kind: channel, market: null, outcome: null })];
    }
    const topics: Topic[] = [];
    for (const id of new Set(ids)) {
      const market = this.registry.get(id);
      if (market === undefined) throw notFound("market");
      // Once a proposal is refused, another market may get its outcomes' ids.
      if (channel !== "markets" && !isListed(market))
        throw new ApiError(ErrorKind.marketNotOpen, "the market is only a proposal");
      if (channel === "trades" || channel === "markets") {
        topics.push(this.topic({ kind: channel, market, outcome: null }));
      } else {
        const kind = implied ? "implied" : channel;
        const outcomes = market.outcomes.filter((outcome) => outcome_id === undefined || outcome.id === outcome_id);
        if (outcomes.length === 0) throw notFound("outcome");
        for (const outcome of outcomes) topics.push(this.topic({ kind, market, outcome }));
      }
      if (topics.length > MAX_WS_SUBSCRIPTIONS) throw tooMany();
    }
    return topics;
  }

  private topic(subject: Subject): Topic {
    return this.topics[subject.kind].get(topicKey(subject)) ?? new Topic(subject);
  }

  /** Starts or stops gathering the changes that the topic publishes. */
  private setWatched(subject: Subject, isWatched: boolean): void {
    const { kind, market, outcome } = subject;
    if (kind === "book") outcome.isWatched = isWatched;
    else if (kind === "implied") this.registry.implied.setFollowed(market, outcome, isWatched);
    else if (kind === "trades") market.isWatched = isWatched;
    else if (kind === "ticker") {
      outcome.ticker = isWatched ? TickerState.sent : TickerState.unwatched;
      market.tickers += isWatched ? 1 : -1;
    }
  }

  // ---------------------------------------------------------------- what happened

  tradeCreated(market: Market, sequence: number, trade: Trade): void {
    this.publish(
      this.topics.trades.get(market.id),
      () => frame("trade.created", sequence, trade.at, tradeJson(market.id, trade)),
      (into) => this.messages.tradeCreated(into, sequence, market.id, trade),
    );
  }

  bookUpdated(market: Market, outcome: Outcome, sequence: number, bids: Level[], asks: Level[]): void {
    const { book } = outcome;
    if (book === null) return;
    this.publish(
      this.topics.book.get(outcome.id),
      () => bookFrame(market, outcome, sequence, book.at, { bids, asks }),
      (into) => {
        this.messages.bookUpdated(into, sequence, book.at, bookOf(market, outcome), { bids, asks, implied: null });
      },
    );
  }

  private impliedBookUpdated(market: Market, outcome: Outcome, sequence: number, change: ImpliedChange): void {
    this.publish(
      this.topics.implied.get(outcome.id),
      () => bookFrame(market, outcome, sequence, market.booksAt, change),
      (into) => this.messages.bookUpdated(into, sequence, market.booksAt, bookOf(market, outcome), change),
    );
  }

  /** A market is new, or its state changed. */
  marketChanged(market: Market): void {
    const own = this.topics.markets.get(market.id);
    const all = this.topics.markets.get(ALL_MARKETS);
    const [sequence, sequenceOfAll] = [this.marketSequences.next(market.id), this.marketSequences.next(ALL_MARKETS)];
    if (own === undefined && all === undefined) return;
    const now = this.timeline.stamp(this.clock.now());
    const json = JSON.stringify(marketView(market, this.registry, this.ledger, now));
    const changed = { id: market.id, status: market.status, json, isSnapshot: false };
    this.publishMarket(own, sequence, now, { ...changed, isOfAll: false });
    this.publishMarket(all, sequenceOfAll, now, { ...changed, isOfAll: true });
  }

  private publishMarket(topic: Topic | undefined, sequence: number, now: number, changed: ChangedMarket): void {
    this.publish(
      topic,
      () => frame("market.updated", sequence, now, changed.json),
      (into) => this.messages.marketUpdated(into, sequence, now, changed),
    );
  }

  /**
   * Publishes each ticker that changed since it was last sent; the rate of calls bounds the rate of each ticker.
   * @param now of the timeline, ms
   */
  publishTickers(now: number): void {
    for (const { id } of this.registry.drainChangedTickers()) {
      const topic = this.topics.ticker.get(id);
      if (topic === undefined || topic.subject.kind !== "ticker") continue;
      const { view, json } = tickerOf(topic.subject.market, topic.subject.outcome);
      if (json === topic.lastTicker?.json) continue;
      topic.lastTicker = { view, json };
      const sequence = this.tickerSequences.next(id);
      this.publish(
        topic,
        () => frame("ticker.updated", sequence, now, json),
        (into) => this.messages.tickerUpdated(into, sequence, now, view, false),
      );
    }
  }

  /** @param text the message in JSON @param binary writes it in SBE */
  private publish(topic: Topic | undefined, text: () => string, binary: (into: FrameWriter) => void): void {
    if (topic === undefined) return;
    const { names, subscribers } = topic;
    if (subscribers.json + subscribers.msgpack > 0) {
      const message = text();
      if (subscribers.json > 0) this.publishTo(names.json, message, subscribers.json);
      if (subscribers.msgpack > 0) this.publishTo(names.msgpack, encodeJson(message), subscribers.msgpack);
    }
    if (subscribers.sbe === 0) return;
    binary(this.scratch);
    for (const each of this.scratch.frames()) this.publishTo(names.sbe, each, subscribers.sbe);
    this.scratch.clear();
  }

  private publishTo(name: string, message: string | Uint8Array, receivers: number): void {
    this.publisher.publish(name, message, typeof message !== "string");
    this.traffic.sent(message, receivers);
  }
}

function tooMany(): ApiError {
  return badRequest(`at most ${MAX_WS_SUBSCRIPTIONS} subscriptions a connection`);
}

const bookOf = (market: Market, outcome: Outcome): BookOf => ({ marketId: market.id, outcomeId: outcome.id });

function bookFrame(market: Market, outcome: Outcome, sequence: number, at: number, change: object): string {
  const data = JSON.stringify({ market_id: market.id, outcome_id: outcome.id, ...change });
  return frame("book.updated", sequence, at, data);
}

function tickerOf(market: Market, outcome: Outcome): { view: TickerView; json: string } {
  const view = tickerView(market, outcome);
  return { view, json: JSON.stringify(view) };
}
