/**
 * The public channels: book, trades, ticker, markets. A topic is one channel of one outcome or market, with a sequence
 * that rises by exactly 1 per message; it exists while it has a subscriber.
 *
 * A message is encoded once, whatever the number of subscribers: uWebSockets.js sends it to the topic, and, where some
 * subscribers speak MessagePack, once more to the topic's twin.
 */
import type { TemplatedApp } from "uWebSockets.js";
import type { Ledger } from "../../engine/ledger.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Clock } from "../../engine/util/clock.ts";
import { ApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { encodeJson } from "../http/message-pack.ts";
import { bookJson } from "../markets/book-json.ts";
import type { Level } from "../markets/depth.ts";
import { type ImpliedChange, tradablePrices } from "../markets/implied-books.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { Market, Outcome } from "../markets/types.ts";
import { TickerState } from "../markets/types.ts";
import { isListed, marketView } from "../markets/views.ts";
import type { Traffic } from "../util/counters.ts";
import type { Timeline } from "../util/timeline.ts";
import { frame, type SocketConnection, snapshotFrame } from "./connection.ts";
import { MAX_WS_SUBSCRIPTIONS } from "./limits.ts";
import { ALL_MARKETS, type Subject, Topic, type TopicKind, topicKey } from "./topic.ts";
import type { Subscription } from "./types.ts";

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

export class Channels {
  private readonly app: TemplatedApp;
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
  private readonly traffic: Traffic;
  private readonly timeline: Timeline;
  private readonly clock: Clock;
  /** Topics over all connections. */
  subscriptions = 0;
  private readonly tickerSequences: Sequences;
  private readonly marketSequences: Sequences;

  /** @param times `startedAt`, ms, is the first number of tickers and markets, so that numbers never fall over a restart */
  constructor(
    app: TemplatedApp,
    registry: MarketRegistry,
    ledger: Ledger,
    traffic: Traffic,
    { timeline, clock, startedAt }: { timeline: Timeline; clock: Clock; startedAt: number },
  ) {
    this.app = app;
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
   * Adds all named topics to the connection's own, or none of them. Returns the topics, and their list as JSON text.
   * Messages follow once `start` is called for a topic. @throws ApiError
   */
  subscribe(connection: SocketConnection, named: Subscription): { json: string; topics: readonly Topic[] } {
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
      if (connection.packed) topic.packedSubscribers++;
      else topic.textSubscribers++;
      this.subscriptions++;
      this.setWatched(topic.subject, true);
    }
    return { json: this.list(topics), topics };
  }

  /**
   * Subscribes the connection to one of its topics; returns the topic's snapshot, null where it has none or the
   * connection has unsubscribed meanwhile.
   */
  start(connection: SocketConnection, topic: Topic): string | null {
    const { socket } = connection;
    if (socket === null || connection.topics?.has(topic) !== true) return null;
    // Changes that other subscribers still lack are published before this one joins them.
    const { subject } = topic;
    if (subject.kind === "implied") this.registry.implied.sequence(subject.market, subject.outcome);
    socket.subscribe(connection.packed ? topic.packedName : topic.textName);
    return this.snapshot(topic, this.timeline.stamp(this.clock.now()));
  }

  /** Ends the named subscriptions that exist; returns their list as JSON text. @throws ApiError */
  unsubscribe(connection: SocketConnection, named: Subscription): string {
    const { socket, topics } = connection;
    const ended = this.find(named).filter((topic) => topics?.has(topic) === true);
    const json = this.list(ended);
    for (const topic of ended) {
      topics?.delete(topic);
      socket?.unsubscribe(connection.packed ? topic.packedName : topic.textName);
      this.leave(connection, topic);
    }
    return json;
  }

  /** Ends all subscriptions of a connection that closed. */
  closed(connection: SocketConnection): void {
    for (const topic of connection.topics ?? []) this.leave(connection, topic);
    connection.topics = null;
  }

  private leave(connection: SocketConnection, topic: Topic): void {
    if (connection.packed) topic.packedSubscribers--;
    else topic.textSubscribers--;
    this.subscriptions--;
    if (topic.textSubscribers + topic.packedSubscribers > 0) return;
    this.topics[topic.subject.kind].delete(topic.key);
    this.setWatched(topic.subject, false);
  }

  /** The topics with their sequences, as JSON text. */
  list(topics: Iterable<Topic>): string {
    let list = "";
    for (const topic of topics) {
      list += `${list === "" ? "" : ","}${topic.listed}${this.sequenceOf(topic.subject)}}`;
    }
    return `[${list}]`;
  }

  /** The first message to a new subscriber; null for trades, and for all markets. @param now ms */
  private snapshot(topic: Topic, now: number): string | null {
    const { subject } = topic;
    const { kind, market } = subject;
    const sequence = this.sequenceOf(subject);
    if (kind === "book" || kind === "implied") {
      const json = bookJson(this.registry, market, subject.outcome, kind === "implied" ? IMPLIED_VIEW : {});
      return snapshotFrame("book.snapshot", sequence, now, json);
    }
    if (kind === "ticker") {
      // The ticker of this sequence number: later changes go to all subscribers alike.
      if (topic.lastTicker === "") topic.lastTicker = tickerJson(market, subject.outcome);
      return snapshotFrame("ticker.updated", sequence, now, topic.lastTicker);
    }
    if (kind === "markets" && market !== null) {
      const json = JSON.stringify(marketView(market, this.registry, this.ledger, now));
      return snapshotFrame("market.updated", sequence, now, json);
    }
    return null;
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

  tradeCreated(market: Market, sequence: number, at: number, tradeJson: string): void {
    this.publish(this.topics.trades.get(market.id), "trade.created", sequence, at, tradeJson);
  }

  bookUpdated(market: Market, outcome: Outcome, sequence: number, bids: Level[], asks: Level[]): void {
    const topic = this.topics.book.get(outcome.id);
    const { book } = outcome;
    if (topic === undefined || book === null) return;
    const data = JSON.stringify({ market_id: market.id, outcome_id: outcome.id, bids, asks });
    this.publish(topic, "book.updated", sequence, book.at, data);
  }

  private impliedBookUpdated(market: Market, outcome: Outcome, sequence: number, change: ImpliedChange): void {
    const data = JSON.stringify({ market_id: market.id, outcome_id: outcome.id, ...change });
    this.publish(this.topics.implied.get(outcome.id), "book.updated", sequence, market.booksAt, data);
  }

  /** A market is new, or its state changed. */
  marketChanged(market: Market): void {
    const own = this.topics.markets.get(market.id);
    const all = this.topics.markets.get(ALL_MARKETS);
    const [sequence, sequenceOfAll] = [this.marketSequences.next(market.id), this.marketSequences.next(ALL_MARKETS)];
    if (own === undefined && all === undefined) return;
    const now = this.timeline.stamp(this.clock.now());
    const data = JSON.stringify(marketView(market, this.registry, this.ledger, now));
    this.publish(own, "market.updated", sequence, now, data);
    this.publish(all, "market.updated", sequenceOfAll, now, data);
  }

  /**
   * Publishes each ticker that changed since it was last sent; the rate of calls bounds the rate of each ticker.
   * @param now of the timeline, ms
   */
  publishTickers(now: number): void {
    for (const { id } of this.registry.drainChangedTickers()) {
      const topic = this.topics.ticker.get(id);
      if (topic === undefined || topic.subject.kind !== "ticker") continue;
      const data = tickerJson(topic.subject.market, topic.subject.outcome);
      if (data === topic.lastTicker) continue;
      topic.lastTicker = data;
      this.publish(topic, "ticker.updated", this.tickerSequences.next(id), now, data);
    }
  }

  private publish(topic: Topic | undefined, event: string, sequence: number, ts: number, dataJson: string): void {
    if (topic === undefined) return;
    const message = frame(event, sequence, ts, dataJson);
    if (topic.textSubscribers > 0) {
      this.app.publish(topic.textName, message, false);
      this.traffic.sent(message, topic.textSubscribers);
    }
    if (topic.packedSubscribers > 0) {
      const packed = encodeJson(message);
      this.app.publish(topic.packedName, packed, true);
      this.traffic.sent(packed, topic.packedSubscribers);
    }
  }
}

function tooMany(): ApiError {
  return badRequest(`at most ${MAX_WS_SUBSCRIPTIONS} subscriptions a connection`);
}

function tickerJson(market: Market, { id, lastPrice, book, volume }: Outcome): string {
  const implied = tradablePrices(market)[id - market.firstOutcomeId];
  assert(implied !== undefined, "each outcome has tradable prices");
  return JSON.stringify({
    market_id: market.id,
    outcome_id: id,
    last_price: lastPrice,
    best_bid: book?.bestBid ?? null,
    best_ask: book?.bestAsk ?? null,
    implied_bid: implied.bid,
    implied_ask: implied.ask,
    volume,
  });
}
