/**
 * Markets, events and what the public sees of their trading: order books per outcome, last prices, volumes.
 * Applies committed engine events only, so nothing here is ever ahead of the database. Owned by the gateway thread.
 */
import { MARKET_STATUSES, MarketStatus, Side } from "../engine/constants.ts";
import type { EventRow, MarketRow, OutcomeRow } from "../engine/journal/load.ts";
import { FULL_PRICE_BPS, MIN_PRICE_BPS } from "../engine/limits.ts";

/** Best first; a level is [price in BPS, shares]. */
export type Level = [price: number, quantity: number];

export interface Market {
  readonly id: number;
  readonly slug: string;
  readonly question: string;
  readonly description: string | null;
  readonly category: string | null;
  readonly eventId: number | null;
  /** Changed by the registry's `setStatus` alone: lists by status must hear of it. */
  readonly status: number;
  readonly opensAt: number | null;
  readonly closesAt: number | null;
  readonly createdAt: number;
  readonly firstOutcomeId: number;
  readonly outcomes: readonly Outcome[];
  /** Shares by the hour that began at `hour * 3600000`, for the volume of the last 24 hours. */
  hourly: Map<number, number> | null;
  /** Of `trade.created`; starts where the match counter stood, so that it never falls back over a restart. */
  tradeSequence: number;
  /** Someone is told of its trades: only then are the messages made. */
  isWatched: boolean;
}

export interface Outcome {
  readonly id: number;
  readonly name: string;
  lastPrice: number | null;
  volume: number;
  book: Book | null;
  /** Someone is told of its book's changes: only then are they gathered. */
  isWatched: boolean;
}

/** Keeps lists of markets and events. Of each trade of the exchange it is told by `volumeChanged`: that must be quick. */
export interface RegistryListener {
  marketAdded(market: Market): void;
  eventAdded(event: EventRow): void;
  statusChanged(market: Market): void;
  volumeChanged(market: Market): void;
}

/** One outcome's depth as of the last committed batch, and, where it is watched, what changed since `takeChanges`. */
class Book {
  sequence: number;
  /** Some level changed since the sequence moved. */
  isChanged = false;
  /** By price: shares to buy, or, below zero, to sell. */
  private readonly levels = new Map<number, number>();
  /** By price that changed: what stood there before. */
  private readonly before = new Map<number, number>();
  private sortedBids: Level[] | null = null;
  private sortedAsks: Level[] | null = null;

  constructor(sequence: number) {
    this.sequence = sequence;
  }

  /** Takes a level's new quantity; 0 empties the price whichever side had it. False: nothing changed. */
  set(side: number, price: number, quantity: number, isWatched: boolean): boolean {
    const now = side === Side.buy ? quantity : -quantity;
    const before = this.levels.get(price) ?? 0;
    if (now === before) return false;
    if (quantity === 0) this.levels.delete(price);
    else this.levels.set(price, now);
    this.sortedBids = null;
    this.sortedAsks = null;
    if (isWatched && !this.before.has(price)) this.before.set(price, before);
    return true;
  }

  /** The changes that were watched, best first. A price that changed sides is in both lists. */
  takeChanges(): { bids: Level[]; asks: Level[] } {
    const bids: Level[] = [];
    const asks: Level[] = [];
    for (const [price, before] of this.before) {
      const now = this.levels.get(price) ?? 0;
      if (now === before) continue;
      if (before > 0 || now > 0) bids.push([price, Math.max(now, 0)]);
      if (before < 0 || now < 0) asks.push([price, Math.max(-now, 0)]);
    }
    this.before.clear();
    return { bids: sorted(bids, -1), asks: sorted(asks, 1) };
  }

  bidLevels(): readonly Level[] {
    this.sortedBids ??= sorted(
      [...this.levels].filter(([, quantity]) => quantity > 0),
      -1,
    );
    return this.sortedBids;
  }

  askLevels(): readonly Level[] {
    this.sortedAsks ??= sorted(
      [...this.levels].filter(([, quantity]) => quantity < 0).map(([price, quantity]): Level => [price, -quantity]),
      1,
    );
    return this.sortedAsks;
  }
}

function sorted(levels: Level[], direction: 1 | -1): Level[] {
  return levels.sort((a, b) => (a[0] - b[0]) * direction);
}

const HOUR_MS = 3_600_000;
const HOURS_A_DAY = 24;

export class MarketRegistry {
  private readonly inOrder: Market[] = [];
  /** By id, and by outcome id: ids are dense, and an order looks up both. */
  private readonly byId: (Market | undefined)[] = [];
  private readonly byOutcome: (Market | undefined)[] = [];
  private readonly bySlug = new Map<string, Market>();
  private readonly events = new Map<number, EventRow>();
  private readonly eventsInOrder: EventRow[] = [];
  private readonly eventBySlug = new Map<string, EventRow>();
  private readonly marketsOfEvent = new Map<number, Market[]>();
  private readonly firstBookSequence: number;
  private readonly firstTradeSequence: number;
  private readonly changedBooks: Outcome[] = [];
  private readonly listeners: RegistryListener[] = [];

  /**
   * @param firstBookSequence the database's commit counter at start: a book moves at most once a commit, so its
   *   sequence never falls back over a restart
   * @param firstTradeSequence the fill counter at start, for the same reason
   */
  constructor(firstBookSequence: number, firstTradeSequence: number) {
    this.firstBookSequence = firstBookSequence;
    this.firstTradeSequence = firstTradeSequence;
  }

  addEvent(event: EventRow): void {
    this.events.set(event.id, event);
    this.eventsInOrder.push(event);
    this.eventBySlug.set(event.slug, event);
    for (const listener of this.listeners) listener.eventAdded(event);
  }

  add(row: MarketRow, outcomes: readonly OutcomeRow[]): Market {
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
      createdAt: row.createdAt,
      firstOutcomeId: row.firstOutcomeId,
      outcomes: outcomes.map(({ id, name, lastPrice, volume }) => {
        return { id, name, lastPrice, volume, book: null, isWatched: false };
      }),
      hourly: null,
      tradeSequence: this.firstTradeSequence,
      isWatched: false,
    };
    this.inOrder.push(market);
    this.byId[market.id] = market;
    this.bySlug.set(market.slug, market);
    for (const outcome of market.outcomes) this.byOutcome[outcome.id] = market;
    if (market.eventId !== null) {
      const siblings = this.marketsOfEvent.get(market.eventId);
      if (siblings === undefined) this.marketsOfEvent.set(market.eventId, [market]);
      else siblings.push(market);
    }
    for (const listener of this.listeners) listener.marketAdded(market);
    return market;
  }

  /** Tells of all markets and events that there are, and of every change to come. */
  listen(listener: RegistryListener): void {
    for (const event of this.eventsInOrder) listener.eventAdded(event);
    for (const market of this.inOrder) listener.marketAdded(market);
    this.listeners.push(listener);
  }

  setStatus(market: Market, status: number): void {
    (market as { status: number }).status = status;
    for (const listener of this.listeners) listener.statusChanged(market);
  }

  get(id: number): Market | undefined {
    return this.byId[id];
  }

  findBySlug(slug: string): Market | undefined {
    return this.bySlug.get(slug);
  }

  ofOutcome(outcomeId: number): Market | undefined {
    return this.byOutcome[outcomeId];
  }

  outcome(outcomeId: number): Outcome | undefined {
    const market = this.byOutcome[outcomeId];
    return market?.outcomes[outcomeId - market.firstOutcomeId];
  }

  /** Every market, in the order of their ids, which is the order in which they were made. */
  all(): readonly Market[] {
    return this.inOrder;
  }

  /** Every event, in the order of their ids. */
  allEvents(): readonly EventRow[] {
    return this.eventsInOrder;
  }

  event(id: number): EventRow | undefined {
    return this.events.get(id);
  }

  findEvent(slug: string): EventRow | undefined {
    return this.eventBySlug.get(slug);
  }

  eventId(slug: string): number | null {
    return this.eventBySlug.get(slug)?.id ?? null;
  }

  marketsOf(eventId: number): readonly Market[] {
    return this.marketsOfEvent.get(eventId) ?? [];
  }

  /** A level's new quantity, from a committed event. */
  setLevel(outcomeId: number, side: number, price: number, quantity: number): void {
    const outcome = this.outcome(outcomeId)!;
    outcome.book ??= new Book(this.firstBookSequence);
    const { book } = outcome;
    if (!book.set(side, price, quantity, outcome.isWatched) || book.isChanged) return;
    book.isChanged = true;
    this.changedBooks.push(outcome);
  }

  /** Moves the sequence of each book that changed, and calls back for those that are watched; once a committed batch. */
  drainChanges(each: (outcome: Outcome, sequence: number, bids: Level[], asks: Level[]) => void): void {
    for (const outcome of this.changedBooks) {
      const book = outcome.book!;
      book.isChanged = false;
      if (outcome.isWatched) {
        const { bids, asks } = book.takeChanges();
        if (bids.length + asks.length > 0) each(outcome, ++book.sequence, bids, asks);
      } else book.sequence++;
    }
    this.changedBooks.length = 0;
  }

  /**
   * Lets every book start from the first sequence once it is rebuilt: rebuilding moves books without a commit, so that
   * the next start could fall behind what it added.
   */
  startSequences(): void {
    for (const market of this.all()) {
      for (const { book } of market.outcomes) if (book !== null) book.sequence = this.firstBookSequence;
    }
  }

  bookSequence(outcome: Outcome): number {
    return outcome.book?.sequence ?? this.firstBookSequence;
  }

  /** Takes a match into last price and volume; answers the market. */
  recordTrade(outcomeId: number, price: number, quantity: number, at: number): Market {
    const market = this.byOutcome[outcomeId]!;
    const outcome = market.outcomes[outcomeId - market.firstOutcomeId]!;
    outcome.lastPrice = price;
    outcome.volume += quantity;
    this.addHourlyVolume(market, at, quantity);
    return market;
  }

  addHourlyVolume(market: Market, at: number, quantity: number): void {
    const hour = Math.floor(at / HOUR_MS);
    market.hourly ??= new Map();
    market.hourly.set(hour, (market.hourly.get(hour) ?? 0) + quantity);
    for (const old of market.hourly.keys()) if (old <= hour - HOURS_A_DAY) market.hourly.delete(old);
    for (const listener of this.listeners) listener.volumeChanged(market);
  }

  /** Shares traded in the last 24 hours, to the hour. */
  dayVolume(market: Market, now: number): number {
    if (market.hourly === null) return 0;
    const oldest = Math.floor(now / HOUR_MS) - HOURS_A_DAY;
    let volume = 0;
    for (const [hour, quantity] of market.hourly) if (hour > oldest) volume += quantity;
    return volume;
  }

  /**
   * What mint (asks) and merge (bids) offer on an outcome, from the other outcomes' books: each step takes the best
   * of every other book and the smallest quantity among them.
   */
  impliedLevels(market: Market, outcomeId: number): { bids: Level[]; asks: Level[] } {
    const others = market.outcomes.filter(({ id }) => id !== outcomeId);
    const bids = walkSet(others.map(({ book }) => book?.askLevels() ?? []));
    const asks = walkSet(others.map(({ book }) => book?.bidLevels() ?? []));
    const price = (sum: number): number => FULL_PRICE_BPS - sum;
    return {
      bids: collapse(bids.map(([sum, quantity]): Level => [price(sum), quantity]).filter(([p]) => p >= MIN_PRICE_BPS)),
      asks: collapse(asks.map(([sum, quantity]): Level => [Math.max(MIN_PRICE_BPS, price(sum)), quantity])),
    };
  }
}

/** Walks several ladders at once: the sum of their best prices with the smallest quantity, then on. */
function walkSet(ladders: readonly (readonly Level[])[]): Level[] {
  const steps: Level[] = [];
  const at = ladders.map(() => 0);
  const left = ladders.map((ladder) => ladder[0]?.[1] ?? 0);
  while (ladders.every((ladder, i) => at[i]! < ladder.length)) {
    const quantity = Math.min(...left);
    const sum = ladders.reduce((total, ladder, i) => total + ladder[at[i]!]![0], 0);
    steps.push([sum, quantity]);
    for (let i = 0; i < ladders.length; i++) {
      left[i]! -= quantity;
      if (left[i] === 0) left[i] = ladders[i]![++at[i]!]?.[1] ?? 0;
    }
  }
  return steps;
}

/** Joins neighbouring levels of the same price. */
function collapse(levels: readonly Level[]): Level[] {
  const joined: Level[] = [];
  for (const [price, quantity] of levels) {
    const last = joined.at(-1);
    if (last !== undefined && last[0] === price) last[1] += quantity;
    else joined.push([price, quantity]);
  }
  return joined;
}

/** Adds two ladders of one side, best first. */
export function addLevels(a: readonly Level[], b: readonly Level[], side: Side): Level[] {
  const direction = side === Side.buy ? -1 : 1;
  return collapse(
    sorted(
      [...a, ...b].map(([price, quantity]): Level => [price, quantity]),
      direction,
    ),
  );
}

export function marketStatusName(market: Market): string {
  return MARKET_STATUSES[market.status]!;
}

export function isTradable(market: Market): boolean {
  return market.status === MarketStatus.open;
}
