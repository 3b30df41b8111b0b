/**
 * Markets, events and the public data of their trading: order books per outcome, last prices, volumes. Applies committed
 * engine events only, so it is never ahead of the log. Owned by the gateway thread.
 */
import { MARKET_STATUSES, MarketStatus } from "../../engine/constants.ts";
import type { EventRow, MarketRow, OutcomeRow } from "../../engine/projection/load/markets.ts";
import { refusedOutcomeId } from "../../engine/projection/outcome-ids.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Clock } from "../../engine/util/clock.ts";
import type { MarketListener } from "../trading/types.ts";
import { TextCache } from "../util/text-cache.ts";
import { Depth, DepthMemory } from "./depth.ts";
import { HOURS_A_DAY, HourlyPrices } from "./hourly-prices.ts";
import { ImpliedBooks } from "./implied-books.ts";
import { MAX_BOOK_TEXT_LENGTH, MAX_RECENT_TRADES } from "./limits.ts";
import { NO_TRADE, OLD_TRADES, RecentTrades } from "./recent-trades.ts";
import { type Market, type Outcome, TickerState, type Trade } from "./types.ts";

/** Receives changes of markets and events. `volumeChanged` is called for every trade, so it must be fast. */
export interface RegistryListener {
  marketAdded(market: Market): void;
  eventAdded(event: EventRow): void;
  statusChanged(market: Market): void;
  /** Its texts or its end changed. */
  marketDescribed(market: Market): void;
  volumeChanged(market: Market): void;
}

const HOUR_MS = 3_600_000;

export class MarketRegistry {
  private readonly inOrder: Market[] = [];
  /** By id, and by outcome id: ids are dense, and every order looks up both. */
  private readonly byId: (Market | undefined)[] = [];
  private readonly byOutcome: (Market | undefined)[] = [];
  private readonly bySlug = new Map<string, Market>();
  private readonly events = new Map<number, EventRow>();
  private readonly eventsInOrder: EventRow[] = [];
  private readonly eventBySlug = new Map<string, EventRow>();
  private readonly marketsOfEvent = new Map<number, Market[]>();
  private readonly proposalsOfUser = new Map<number, Market[]>();
  private readonly firstBookSequence: number;
  private readonly firstTradeSequence: number;
  private readonly clock: Clock;
  private readonly listeners: RegistryListener[] = [];
  /** Pending proposals. */
  private readonly waiting = new Set<Market>();
  /** Rises whenever searchable texts change. */
  textsVersion = 0;
  /** By outcome; created by the first order. */
  private readonly books: (Depth | undefined)[] = [];
  /** Outcomes whose books changed in the current batch. */
  private readonly changedBooks: number[] = [];
  private changedTickers: Outcome[] = [];
  private readonly bookMemory = new DepthMemory();
  readonly implied = new ImpliedBooks(() => this.firstBookSequence);
  readonly bookTexts = new TextCache(MAX_BOOK_TEXT_LENGTH);
  readonly recentTrades = new RecentTrades(MAX_RECENT_TRADES);
  /** Called for a trade outside an outcome's alert band. */
  onAlert: (outcome: Outcome, price: number, at: number) => void = () => {};
  /** As exports write them. */
  readonly names = {
    market: (id: number | null): string => (id === null ? "" : (this.byId[id]?.question ?? "")),
    outcome: (id: number | null): string => (id === null ? "" : (this.outcome(id)?.name ?? "")),
  };

  /**
   * @param firstBookSequence the database's commit counter at start: a book moves at most once per commit, so its sequence
   *   never falls over a restart
   * @param firstTradeSequence the fill counter at start, for the same reason
   */
  constructor(firstBookSequence: number, firstTradeSequence: number, clock: Clock) {
    this.clock = clock;
    this.firstBookSequence = firstBookSequence;
    this.firstTradeSequence = firstTradeSequence;
  }

  addEvent(event: EventRow): void {
    this.events.set(event.id, event);
    this.eventsInOrder.push(event);
    this.eventBySlug.set(event.slug, event);
    this.textsVersion++;
    for (const listener of this.listeners) listener.eventAdded(event);
  }

  add(row: MarketRow, outcomes: readonly OutcomeRow[]): Market {
    const now = this.clock.now();
    const market: Market = {
      id: row.id,
      slug: row.slug,
      question: row.question,
      description: row.description,
      category: row.category,
      eventId: row.eventId,
      status: row.status,
      opensAt: row.opensAt,
      closesAt: row.closesAt,
      picture: row.picture,
      createdAt: row.createdAt,
      proposedBy: row.proposedBy,
      decision: row.decidedAt === null ? null : { note: row.decisionNote, at: row.decidedAt },
      resolution:
        row.resolvedAt === null
          ? null
          : { payouts: outcomes.map(payoutOf), note: row.resolutionNote, at: row.resolvedAt },
      isSettling: false,
      firstOutcomeId: row.firstOutcomeId,
      outcomes: outcomes.map(({ id, name, lastPrice, volume }) => {
        return {
          id,
          name,
          lastPrice,
          volume,
          hourlyPrices: null,
          book: null,
          isWatched: false,
          alertBand: null,
          ticker: TickerState.unwatched,
        };
      }),
      hourly: null,
      tradeSequence: this.firstTradeSequence,
      newestTrade: outcomes.every(({ lastPrice }) => lastPrice === null) ? NO_TRADE : OLD_TRADES,
      booksVersion: 0,
      booksAt: now,
      addedAt: now,
      isWatched: false,
      tickers: 0,
      impliedFollowers: 0,
    };
    this.inOrder.push(market);
    this.textsVersion++;
    this.byId[market.id] = market;
    this.bySlug.set(market.slug, market);
    if (market.status !== MarketStatus.rejected) {
      for (const outcome of market.outcomes) this.byOutcome[outcome.id] = market;
    }
    if (market.eventId !== null) addTo(this.marketsOfEvent, market.eventId, market);
    if (isProposed(market)) this.waiting.add(market);
    if (market.proposedBy !== null) addTo(this.proposalsOfUser, market.proposedBy, market);
    for (const listener of this.listeners) listener.marketAdded(market);
    return market;
  }

  /** Passes all existing markets and events to the listener, then every change. */
  listen(listener: RegistryListener): void {
    for (const event of this.eventsInOrder) listener.eventAdded(event);
    for (const market of this.inOrder) listener.marketAdded(market);
    this.listeners.push(listener);
  }

  setStatus(market: Market, status: number): void {
    this.waiting.delete(market);
    (market as { status: number }).status = status;
    for (const listener of this.listeners) listener.statusChanged(market);
  }

  /** Refuses a proposal. Its outcomes get ids of a separate range, because new markets may reuse their old ones. */
  refuse(market: Market, decision: NonNullable<Market["decision"]>): void {
    market.outcomes.forEach((outcome, position) => {
      delete this.byOutcome[outcome.id];
      (outcome as { id: number }).id = refusedOutcomeId(market.id) + position;
    });
    (market as { firstOutcomeId: number }).firstOutcomeId = refusedOutcomeId(market.id);
    market.decision = decision;
    this.setStatus(market, MarketStatus.rejected);
  }

  /** 0 for none. */
  get lastMarketId(): number {
    return this.inOrder.at(-1)?.id ?? 0;
  }

  /** Pending proposals, oldest first. */
  waitingProposals(): ReadonlySet<Market> {
    return this.waiting;
  }

  /** Changes a market's texts, end or picture. */
  describe(market: Market, changes: Pick<Market, "description" | "category" | "closesAt" | "picture">): void {
    Object.assign(market, changes);
    this.textsVersion++;
    for (const listener of this.listeners) listener.marketDescribed(market);
  }

  get(id: number): Market | undefined {
    return this.byId[id];
  }

  findBySlug(slug: string): Market | undefined {
    return this.bySlug.get(slug);
  }

  /** A market that must exist, because the database or an engine named it. */
  market(id: number): Market {
    const market = this.byId[id];
    assert(market !== undefined, "the registry has every market that an engine or a row names");
    return market;
  }

  /** The market of an outcome that must exist. */
  marketOf(outcomeId: number): Market {
    const market = this.byOutcome[outcomeId];
    assert(market !== undefined, "every outcome belongs to a market");
    return market;
  }

  outcome(outcomeId: number): Outcome | undefined {
    const market = this.byOutcome[outcomeId];
    return market?.outcomes[outcomeId - market.firstOutcomeId];
  }

  /** Every market by id, which is the order of creation. */
  all(): readonly Market[] {
    return this.inOrder;
  }

  /** Every event by id. */
  allEvents(): readonly EventRow[] {
    return this.eventsInOrder;
  }

  /** An event that must exist. */
  event(id: number): EventRow {
    const event = this.events.get(id);
    assert(event !== undefined, "the registry has every event that a row names");
    return event;
  }

  findEvent(id: number): EventRow | undefined {
    return this.events.get(id);
  }

  findEventBySlug(slug: string): EventRow | undefined {
    return this.eventBySlug.get(slug);
  }

  eventId(slug: string): number | null {
    return this.eventBySlug.get(slug)?.id ?? null;
  }

  marketsOf(eventId: number): readonly Market[] {
    return this.marketsOfEvent.get(eventId) ?? [];
  }

  /** The user's proposals, decided ones included, oldest first. */
  proposalsOf(userId: number): readonly Market[] {
    return this.proposalsOfUser.get(userId) ?? [];
  }

  /** Sets a level's quantity, from a committed event. */
  setLevel(outcomeId: number, side: number, price: number, quantity: number): void {
    const book = this.books[outcomeId] ?? this.addBook(outcomeId);
    if (book.set(side, price, quantity)) this.changedBooks.push(outcomeId);
  }

  private addBook(outcomeId: number): Depth {
    const market = this.marketOf(outcomeId);
    const book = new Depth(this.bookMemory, this.firstBookSequence, market.addedAt);
    this.books[outcomeId] = book;
    outcomeIn(market, outcomeId).book = book;
    return book;
  }

  /**
   * Advances the sequence of each changed book, and calls back for watched ones; once per committed batch.
   * @param now ms, of the timeline
   */
  drainChanges(now: number, publish: MarketListener["bookUpdated"]): void {
    if (this.changedBooks.length === 0) return;
    for (const outcomeId of this.changedBooks) {
      const book = this.books[outcomeId];
      assert(book !== undefined, "a changed book exists");
      if (book.hasMoved()) {
        book.sequence++;
        book.at = now;
        const market = this.marketOf(outcomeId);
        market.booksVersion++;
        market.booksAt = now;
        const outcome = outcomeIn(market, outcomeId);
        // The implied prices of the other outcomes may have moved too.
        if (market.tickers > 0) for (const each of market.outcomes) this.markTicker(each);
        if (market.impliedFollowers > 0) this.implied.moved(market, outcome, book.bidsMoved, book.asksMoved);
        if (outcome.isWatched) {
          const { bids, asks } = book.changes();
          publish(market, outcome, book.sequence, bids, asks);
        }
      }
      book.endBatch();
    }
    this.changedBooks.length = 0;
    this.bookMemory.clearChanges();
  }

  private markTicker(outcome: Outcome): void {
    if (outcome.ticker !== TickerState.sent) return;
    outcome.ticker = TickerState.changed;
    this.changedTickers.push(outcome);
  }

  /** Returns the outcomes whose watched tickers may have changed since the last call. */
  drainChangedTickers(): readonly Outcome[] {
    const changed = this.changedTickers;
    this.changedTickers = [];
    for (const outcome of changed) if (outcome.ticker === TickerState.changed) outcome.ticker = TickerState.sent;
    return changed;
  }

  /**
   * Resets every book to the first sequence once recovery has rebuilt it: rebuilding moves books without commits, so the
   * next start could otherwise begin below the sequences of this one.
   */
  startSequences(): void {
    for (const market of this.all()) {
      for (const { book } of market.outcomes) if (book !== null) book.sequence = this.firstBookSequence;
    }
    this.implied.clear();
    this.bookTexts.clear();
  }

  bookSequence(outcome: Outcome): number {
    return outcome.book?.sequence ?? this.firstBookSequence;
  }

  /** Applies a trade to last price, volume and recent trades; returns the market. */
  recordTrade(trade: Trade): Market {
    const { outcomeId, price, quantity, at } = trade;
    const market = this.marketOf(outcomeId);
    const outcome = outcomeIn(market, outcomeId);
    outcome.lastPrice = price;
    outcome.volume += quantity;
    const { alertBand } = outcome;
    if (alertBand !== null && (price >= alertBand.above || price <= alertBand.below)) this.onAlert(outcome, price, at);
    this.markTicker(outcome);
    const hour = Math.floor(at / HOUR_MS);
    recordHour(outcome, hour, price);
    this.addHourlyVolume(market, hour, quantity);
    market.newestTrade = this.recentTrades.add(market.newestTrade, trade);
    return market;
  }

  /** @param hour counted from the epoch */
  addHourlyVolume(market: Market, hour: number, quantity: number): void {
    market.hourly ??= new Map();
    market.hourly.set(hour, (market.hourly.get(hour) ?? 0) + quantity);
    for (const old of market.hourly.keys()) if (old <= hour - HOURS_A_DAY) market.hourly.delete(old);
    for (const listener of this.listeners) listener.volumeChanged(market);
  }

  /** Records the last price of an hour before the start. @param hour counted from the epoch; ascending by outcome */
  restorePrice(outcomeId: number, hour: number, price: number): void {
    recordHour(outcomeIn(this.marketOf(outcomeId), outcomeId), hour, price);
  }

  /**
   * The outcome's last price before the 24 hours that dayVolume counts, BPS. Null where it had not been traded, and once
   * the market has ended.
   */
  dayAgoPrice(market: Market, outcome: Outcome, now: number): number | null {
    if (!canTrade(market) || outcome.hourlyPrices === null) return null;
    return outcome.hourlyPrices.before(Math.floor(now / HOUR_MS) - HOURS_A_DAY + 1);
  }

  /** How far the market has moved in 24 hours: the largest change among its outcomes, BPS. */
  dayMove(market: Market, now: number): number {
    let most = 0;
    for (const outcome of market.outcomes) {
      const before = this.dayAgoPrice(market, outcome, now);
      if (before !== null && outcome.lastPrice !== null) most = Math.max(most, Math.abs(outcome.lastPrice - before));
    }
    return most;
  }

  /** The outcome's prices over the last week, for a small chart: see HourlyPrices. */
  sparkline({ hourlyPrices }: Outcome, now: number): number[] {
    return hourlyPrices?.sparkline(Math.floor(now / HOUR_MS)) ?? [];
  }

  /** Shares traded in the last 24 hours, to the hour. */
  dayVolume(market: Market, now: number): number {
    if (market.hourly === null) return 0;
    const oldest = Math.floor(now / HOUR_MS) - HOURS_A_DAY;
    let volume = 0;
    for (const [hour, quantity] of market.hourly) if (hour > oldest) volume += quantity;
    return volume;
  }
}

function recordHour(outcome: Outcome, hour: number, price: number): void {
  outcome.hourlyPrices ??= new HourlyPrices(hour);
  outcome.hourlyPrices.record(hour, price);
}

/** An outcome of the market that must exist. */
function outcomeIn(market: Market, outcomeId: number): Outcome {
  const outcome = market.outcomes[outcomeId - market.firstOutcomeId];
  assert(outcome !== undefined, "the market has the outcome");
  return outcome;
}

function payoutOf({ payout }: { readonly payout: number | null }): number {
  assert(payout !== null, "each outcome of a resolved market has a payout");
  return payout;
}

function addTo(lists: Map<number, Market[]>, key: number, market: Market): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [market]);
  else list.push(market);
}

export function marketStatusName(market: Market): string {
  return MARKET_STATUSES[market.status];
}

export function isTradable(market: Market): boolean {
  return market.status === MarketStatus.open;
}

/** True if the market can have live orders: it is open or halted. */
export function canTrade({ status }: Market): boolean {
  return status === MarketStatus.open || status === MarketStatus.halted;
}

export function isProposed(market: Market): boolean {
  return market.status === MarketStatus.proposed;
}

/** True past its end: it no longer trades, even if the close is not recorded yet. */
export function isPastEnd({ closesAt }: Market, now: number): boolean {
  return closesAt !== null && closesAt <= now;
}
