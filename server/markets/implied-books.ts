/**
 * Implied books: what can be traded in an outcome when mint and merge are counted in. They derive from the depth mirrors
 * of all of a market's outcomes and are made when somebody looks; for those that somebody follows, what changed is found
 * after each committed batch. A book that nobody follows costs nothing.
 *
 * Each has a sequence of its own, which rises by 1 with each message about it, and where nobody follows it with each look
 * that finds another state of the market. REST and the channel show the same book at the same number.
 */
import { Side } from "../../engine/constants.ts";
import { FULL_PRICE_BPS, MAX_PRICE_BPS, MIN_PRICE_BPS } from "../../engine/limits.ts";
import type { Level } from "./depth.ts";
import { addLevels, impliedLevels } from "./depth.ts";
import { IMPLIED_BURST_MS, IMPLIED_TIME_SHARE } from "./limits.ts";
import type { Market, Outcome } from "./types.ts";

/** One side, best first: all that can be traded, and what of it mint and merge offer. */
interface ImpliedSide {
  readonly all: readonly Level[];
  readonly implied: readonly Level[];
}

/** Levels that changed, with their new quantities; 0: the level is gone. Best first. */
export interface ImpliedChange {
  readonly bids: readonly Level[];
  readonly asks: readonly Level[];
  /** Of the part that mint and merge offer. */
  readonly implied: { readonly bids: readonly Level[]; readonly asks: readonly Level[] };
}

/** Told of each change of a book that is followed, in order. */
export type ImpliedListener = (market: Market, outcome: Outcome, sequence: number, change: ImpliedChange) => void;

/** Sides that may have changed since they were made. */
const BIDS = 1;
const ASKS = 2;

interface FollowedBook {
  readonly market: Market;
  readonly outcome: Outcome;
  sequence: number;
  /** The state of the market's books that the sequence stands for. */
  version: number;
  isFollowed: boolean;
  /** As they were told; null where nobody follows it, or nobody has begun to. */
  published: { bids: ImpliedSide; asks: ImpliedSide } | null;
  /** BIDS | ASKS. */
  dirty: number;
}

export class ImpliedBooks {
  private readonly firstSequence: () => number;
  /** By outcome: where somebody ever looked. */
  private states: (FollowedBook | undefined)[] = [];
  dirty: FollowedBook[] = [];
  private listener: ImpliedListener = () => {};
  /** Milliseconds that may be spent, and when they were counted. */
  private credit = IMPLIED_BURST_MS;
  private countedAt = 0;

  /** @param firstSequence see MarketRegistry */
  constructor(firstSequence: () => number) {
    this.firstSequence = firstSequence;
  }

  listen(listener: ImpliedListener): void {
    this.listener = listener;
  }

  /** Forgets all numbers: nobody has seen one yet. */
  clear(): void {
    this.states = [];
    this.dirty = [];
  }

  /** Somebody follows the outcome's book from now on, or nobody any more. */
  setFollowed(market: Market, outcome: Outcome, isFollowed: boolean): void {
    const state = this.stateOf(market, outcome);
    if (state.isFollowed === isFollowed) return;
    state.isFollowed = isFollowed;
    market.impliedFollowers += isFollowed ? 1 : -1;
    // Made when the first of them begins: a thousand subscriptions may come in one message.
    state.published = null;
    state.dirty = 0;
  }

  /** The outcome's book moved. Only of markets with followers. */
  moved(market: Market, outcome: Outcome, bidsMoved: boolean, asksMoved: boolean): void {
    const own = (bidsMoved ? BIDS : 0) | (asksMoved ? ASKS : 0);
    // Bids of the others are what mint sells by, asks what merge buys by.
    const others = (bidsMoved ? ASKS : 0) | (asksMoved ? BIDS : 0);
    for (const { id } of market.outcomes) {
      const state = this.states[id];
      if (state === undefined || state.published === null) continue;
      if (state.dirty === 0) this.dirty.push(state);
      state.dirty |= id === outcome.id ? own : others;
    }
  }

  /**
   * Tells what changed, as far as the time goes that this may take: deep books of many outcomes would take it from orders.
   * The rest is told at a later call, or when somebody looks.
   * @param elapsed a clock that never falls, ms
   */
  publish(elapsed: () => number): void {
    let now = elapsed();
    this.credit = Math.min(IMPLIED_BURST_MS, this.credit + (now - this.countedAt) * IMPLIED_TIME_SHARE);
    this.countedAt = now;
    let told = 0;
    while (told < this.dirty.length && this.credit > 0) {
      this.refresh(this.dirty[told++]!);
      const then = now;
      now = elapsed();
      this.credit -= now - then;
    }
    this.countedAt = now;
    this.dirty = told === this.dirty.length ? [] : this.dirty.slice(told);
  }

  /** The number of the outcome's book as it is now: followers are told first where they lag behind. */
  sequence(market: Market, outcome: Outcome): number {
    const state = this.stateOf(market, outcome);
    if (state.published !== null) this.refresh(state);
    else {
      this.advance(state);
      if (state.isFollowed) state.published = { bids: makeSide(state, Side.buy), asks: makeSide(state, Side.sell) };
    }
    return state.sequence;
  }

  /** The number that followers were told last. */
  publishedSequence(market: Market, outcome: Outcome): number {
    return this.stateOf(market, outcome).sequence;
  }

  private stateOf(market: Market, outcome: Outcome): FollowedBook {
    let state = this.states[outcome.id];
    if (state === undefined) {
      const { booksVersion: version } = market;
      state = {
        market,
        outcome,
        sequence: this.firstSequence(),
        version,
        isFollowed: false,
        published: null,
        dirty: 0,
      };
      this.states[outcome.id] = state;
    }
    return state;
  }

  /** Gives another state of the market its own number, seen or not. */
  private advance(state: FollowedBook): void {
    if (state.version === state.market.booksVersion) return;
    state.version = state.market.booksVersion;
    state.sequence++;
  }

  /** Makes what may have changed again, and tells followers of what did. */
  private refresh(state: FollowedBook): void {
    const { market, outcome, dirty, published: told } = state;
    if (dirty === 0 || told === null) return;
    state.version = market.booksVersion;
    state.dirty = 0;
    const bids = (dirty & BIDS) === 0 ? told.bids : makeSide(state, Side.buy);
    const asks = (dirty & ASKS) === 0 ? told.asks : makeSide(state, Side.sell);
    state.published = { bids, asks };
    const change: ImpliedChange = {
      bids: changedLevels(told.bids.all, bids.all, Side.buy),
      asks: changedLevels(told.asks.all, asks.all, Side.sell),
      implied: {
        bids: changedLevels(told.bids.implied, bids.implied, Side.buy),
        asks: changedLevels(told.asks.implied, asks.implied, Side.sell),
      },
    };
    const { implied } = change;
    if (change.bids.length + change.asks.length + implied.bids.length + implied.asks.length === 0) return;
    state.sequence++;
    this.listener(market, outcome, state.sequence, change);
  }
}

function makeSide({ market, outcome }: FollowedBook, side: Side): ImpliedSide {
  const implied = impliedSide(market, outcome.id, side, MAX_PRICE_BPS);
  return { all: addLevels(outcome.book?.levels(side, MAX_PRICE_BPS) ?? [], implied, side), implied };
}

/** What mint (to sell) or merge (to buy) offers on an outcome, as many levels as `depth`. */
export function impliedSide(market: Market, outcomeId: number, side: Side, depth: number): Level[] {
  const others = market.outcomes.filter(({ id }) => id !== outcomeId).map(({ book }) => book);
  return impliedLevels(others, side, depth);
}

/** The levels of two ladders, best first, that differ: as they are in the second. */
function changedLevels(before: readonly Level[], after: readonly Level[], side: Side): Level[] {
  if (before === after) return [];
  const changed: Level[] = [];
  const worse = side === Side.buy ? -1 : 1;
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    const [old, now] = [before[i], after[j]];
    const order = old === undefined ? 1 : now === undefined ? -1 : (old[0] - now[0]) * worse;
    if (order < 0) changed.push([before[i++]![0], 0]);
    else if (order > 0) changed.push(after[j++]!);
    else {
      if (old![1] !== now![1]) changed.push(now!);
      i++;
      j++;
    }
  }
  return changed;
}

/** Best prices in BPS, mint and merge included; null where nothing is offered. */
export interface TradablePrices {
  readonly bid: number | null;
  readonly ask: number | null;
}

/** The best tradable prices of each of a market's outcomes, in their order; from the books' best prices alone. */
export function tradablePrices({ outcomes }: Market): TradablePrices[] {
  const bids = outcomes.map(({ book }) => book?.bestBid ?? null);
  const asks = outcomes.map(({ book }) => book?.bestAsk ?? null);
  const [bidsOfOthers, asksOfOthers] = [sumsOfOthers(bids), sumsOfOthers(asks)];
  return outcomes.map((_, i) => {
    const [otherBids, otherAsks] = [bidsOfOthers[i]!, asksOfOthers[i]!];
    const minted = otherBids === null ? null : Math.max(MIN_PRICE_BPS, FULL_PRICE_BPS - otherBids);
    const merged = otherAsks === null || otherAsks >= FULL_PRICE_BPS ? null : FULL_PRICE_BPS - otherAsks;
    return { bid: better(bids[i]!, merged, Math.max), ask: better(asks[i]!, minted, Math.min) };
  });
}

/** For each price the sum of all the others; null where one of those is missing. */
function sumsOfOthers(prices: readonly (number | null)[]): (number | null)[] {
  let sum = 0;
  let missing = 0;
  for (const price of prices) {
    if (price === null) missing++;
    else sum += price;
  }
  return prices.map((price) => (missing - (price === null ? 1 : 0) > 0 ? null : sum - (price ?? 0)));
}

function better(a: number | null, b: number | null, best: (a: number, b: number) => number): number | null {
  return a === null || b === null ? (a ?? b) : best(a, b);
}
