/**
 * Implied books: an outcome's tradable liquidity including mint and merge. They derive from the depth mirrors of all of a
 * market's outcomes. A book is computed on request; a book with followers is compared with its last published state
 * after committed batches. A book without followers costs nothing.
 *
 * Each has a sequence of its own, which rises by 1 with each message about it; without followers, with each request that
 * finds a new state of the market. REST and the channel show the same book at the same sequence.
 */
import { Side } from "../../engine/constants.ts";
import { FULL_PRICE_BPS, MAX_PRICE_BPS, MIN_PRICE_BPS } from "../../engine/limits.ts";
import type { Level } from "./depth.ts";
import { addLevels, impliedLevels } from "./depth.ts";
import { IMPLIED_BURST_MS, IMPLIED_TIME_SHARE } from "./limits.ts";
import type { Market, Outcome } from "./types.ts";

/** One side, best first: all tradable levels, and the implied part of them. */
interface ImpliedSide {
  readonly all: readonly Level[];
  readonly implied: readonly Level[];
}

/** Changed levels with their new quantities, best first; 0: the level was removed. */
export interface ImpliedChange {
  readonly bids: readonly Level[];
  readonly asks: readonly Level[];
  /** Changes of the implied part alone. */
  readonly implied: { readonly bids: readonly Level[]; readonly asks: readonly Level[] };
}

/** Receives each change of a followed book, in order. */
export type ImpliedListener = (market: Market, outcome: Outcome, sequence: number, change: ImpliedChange) => void;

/** Sides that may have changed since they were computed. */
const BIDS = 1;
const ASKS = 2;

interface FollowedBook {
  readonly market: Market;
  readonly outcome: Outcome;
  sequence: number;
  /** The market's `booksVersion` at this sequence. */
  version: number;
  isFollowed: boolean;
  /** As last published; null without followers, or before the first snapshot. */
  published: { bids: ImpliedSide; asks: ImpliedSide } | null;
  /** BIDS | ASKS. */
  dirty: number;
}

export class ImpliedBooks {
  private readonly firstSequence: () => number;
  /** By outcome: created on the first request. */
  private states: (FollowedBook | undefined)[] = [];
  dirty: FollowedBook[] = [];
  private listener: ImpliedListener = () => {};
  /** Remaining time budget, ms, and when it was last refilled. */
  private credit = IMPLIED_BURST_MS;
  private countedAt = 0;

  /** @param firstSequence see MarketRegistry */
  constructor(firstSequence: () => number) {
    this.firstSequence = firstSequence;
  }

  listen(listener: ImpliedListener): void {
    this.listener = listener;
  }

  /** Resets all sequences, before any client has seen one. */
  clear(): void {
    this.states = [];
    this.dirty = [];
  }

  /** Starts or stops publishing changes of the outcome's book. */
  setFollowed(market: Market, outcome: Outcome, isFollowed: boolean): void {
    const state = this.stateOf(market, outcome);
    if (state.isFollowed === isFollowed) return;
    state.isFollowed = isFollowed;
    market.impliedFollowers += isFollowed ? 1 : -1;
    // The first snapshot computes it: one message can contain a thousand subscriptions.
    state.published = null;
    state.dirty = 0;
  }

  /** Marks implied books that a change of the outcome's book may affect. Called only for markets with followers. */
  moved(market: Market, outcome: Outcome, bidsMoved: boolean, asksMoved: boolean): void {
    const own = (bidsMoved ? BIDS : 0) | (asksMoved ? ASKS : 0);
    // The bids of the other outcomes imply mint asks, their asks imply merge bids.
    const others = (bidsMoved ? ASKS : 0) | (asksMoved ? BIDS : 0);
    for (const { id } of market.outcomes) {
      const state = this.states[id];
      if (state === undefined || state.published === null) continue;
      if (state.dirty === 0) this.dirty.push(state);
      state.dirty |= id === outcome.id ? own : others;
    }
  }

  /**
   * Publishes changes within a time budget: deep books of many outcomes would otherwise delay orders. A later call, or a
   * request for the book, publishes the rest.
   * @param elapsed monotonic clock, ms
   */
  publish(elapsed: () => number): void {
    if (this.dirty.length === 0) return;
    let now = elapsed();
    this.credit = Math.min(IMPLIED_BURST_MS, this.credit + (now - this.countedAt) * IMPLIED_TIME_SHARE);
    this.countedAt = now;
    let count = 0;
    while (count < this.dirty.length && this.credit > 0) {
      this.refresh(this.dirty[count++]!);
      const then = now;
      now = elapsed();
      this.credit -= now - then;
    }
    this.countedAt = now;
    this.dirty = count === this.dirty.length ? [] : this.dirty.slice(count);
  }

  /** The sequence of the outcome's book as it is now; publishes pending changes to its followers first. */
  sequence(market: Market, outcome: Outcome): number {
    const state = this.stateOf(market, outcome);
    if (state.published !== null) this.refresh(state);
    else {
      this.advance(state);
      if (state.isFollowed) state.published = { bids: makeSide(state, Side.buy), asks: makeSide(state, Side.sell) };
    }
    return state.sequence;
  }

  /** The sequence last published to followers. */
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

  /** Gives a new state of the market its own sequence. */
  private advance(state: FollowedBook): void {
    if (state.version === state.market.booksVersion) return;
    state.version = state.market.booksVersion;
    state.sequence++;
  }

  /** Recomputes dirty sides and publishes what changed. */
  private refresh(state: FollowedBook): void {
    const { market, outcome, dirty, published } = state;
    if (dirty === 0 || published === null) return;
    state.version = market.booksVersion;
    state.dirty = 0;
    const bids = (dirty & BIDS) === 0 ? published.bids : makeSide(state, Side.buy);
    const asks = (dirty & ASKS) === 0 ? published.asks : makeSide(state, Side.sell);
    state.published = { bids, asks };
    const change: ImpliedChange = {
      bids: changedLevels(published.bids.all, bids.all, Side.buy),
      asks: changedLevels(published.asks.all, asks.all, Side.sell),
      implied: {
        bids: changedLevels(published.bids.implied, bids.implied, Side.buy),
        asks: changedLevels(published.asks.implied, asks.implied, Side.sell),
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

/** The levels that mint (asks) or merge (bids) imply for an outcome, at most `depth`. */
export function impliedSide(market: Market, outcomeId: number, side: Side, depth: number): Level[] {
  const others = market.outcomes.filter(({ id }) => id !== outcomeId).map(({ book }) => book);
  return impliedLevels(others, side, depth);
}

/** The levels in which two ladders differ, best first, with the quantities of the second. */
function changedLevels(before: readonly Level[], after: readonly Level[], side: Side): Level[] {
  if (before === after) return [];
  const changed: Level[] = [];
  const worse = side === Side.buy ? -1 : 1;
  let i = 0;
  let j = 0;
  for (;;) {
    const [old, now] = [before[i], after[j]];
    if (old === undefined) return changed.concat(after.slice(j));
    const order = now === undefined ? -1 : (old[0] - now[0]) * worse;
    if (order < 0) changed.push([old[0], 0]);
    else if (now !== undefined && (order > 0 || old[1] !== now[1])) changed.push(now);
    if (order <= 0) i++;
    if (order >= 0) j++;
  }
}

/** Best prices in BPS, mint and merge included; null without liquidity. */
export interface TradablePrices {
  readonly bid: number | null;
  readonly ask: number | null;
}

/** The best tradable prices of each outcome, in order; computed from the books' best prices alone. */
export function tradablePrices({ outcomes }: Market): TradablePrices[] {
  const bids = outcomes.map(({ book }) => book?.bestBid ?? null);
  const asks = outcomes.map(({ book }) => book?.bestAsk ?? null);
  const [bidsOfOthers, asksOfOthers] = [sumsOfOthers(bids), sumsOfOthers(asks)];
  return outcomes.map((_, i) => {
    const [otherBids = null, otherAsks = null] = [bidsOfOthers[i], asksOfOthers[i]];
    const minted = otherBids === null ? null : Math.max(MIN_PRICE_BPS, FULL_PRICE_BPS - otherBids);
    const merged = otherAsks === null || otherAsks >= FULL_PRICE_BPS ? null : FULL_PRICE_BPS - otherAsks;
    return { bid: better(bids[i] ?? null, merged, Math.max), ask: better(asks[i] ?? null, minted, Math.min) };
  });
}

/** For each price, the sum of all others; null if one of those is missing. */
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
