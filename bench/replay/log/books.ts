/**
 * The books of one run of the process: the exchange's own matcher, with the markets and live orders that the run began
 * with. Orders of the run have the slots that the log names; restored ones have slots beyond, because the log names
 * theirs only with their first event. Compares nothing.
 */
import { createMatcher, type Matcher } from "../../../engine/book/matcher.ts";
import { MarketStatus } from "../../../engine/constants.ts";
import { EVENT_RING_RECORDS, FULL_PRICE_BPS, MAX_LIVE_ORDERS, MAX_OUTCOME_ID } from "../../../engine/limits.ts";
import { type Opening, openingRecords } from "../../../engine/log/opening.ts";
import type { MarketWrite } from "../../../engine/log/writes.ts";
import * as R from "../../../engine/ring/records.ts";
import { createRing, RingProducer } from "../../../engine/ring/ring.ts";
import { NumberMap } from "../../../engine/util/number-map.ts";
import type { DerivedCommand } from "./commands.ts";

/** Their word 1 is the market. */
const MARKET_EVENTS: ReadonlySet<R.EventKind> = new Set([
  R.EventKind.marketChanged,
  R.EventKind.setsSplit,
  R.EventKind.setsMerged,
]);
/** More than any command's events and levels between two commits of an engine. */
const RING_RECORDS = 2 * EVENT_RING_RECORDS;
const NO_LIMIT = 2 ** 30;

/** Where the matcher writes its events: always from the first record on, and full where the engine's ring was. */
export class ReplayRing extends RingProducer {
  /** The position from which on there is no room. */
  limit = NO_LIMIT;

  constructor() {
    super(createRing(RING_RECORDS));
  }

  override hasRoom(_count: number): boolean {
    return this.head < this.limit;
  }

  override publish(): void {}

  rewind(limit = NO_LIMIT): void {
    this.head = 0;
    this.limit = limit;
  }
}

/** How far a start has put a market's books back. */
const Restoring = { done: 0, orders: 1, awaitsHalt: 2, lastPublish: 3 } as const;

export class ReplayBooks {
  readonly ring = new ReplayRing();
  readonly matcher: Matcher;
  private readonly marketOfOutcome = new Int32Array(MAX_OUTCOME_ID + 1);
  private readonly restoring = new Uint8Array(MAX_OUTCOME_ID + 1);
  /** A start's restored markets: the order that entered a market's books last waits for the market's first event. */
  private readonly lastOrders = new Map<number, Int32Array>();
  private readonly finishing: number[] = [];
  /** The levels of the last orders that this publish restored. */
  private readonly lastLevels = new Set<number>();
  private readonly proposals = new Map<number, readonly [first: number, outcomes: number]>();
  /** Markets that open before the next command. */
  private opening: (readonly [id: number, first: number, outcomes: number])[] = [];
  /** A restored order's slot in the matcher by its id, and the slot that the log names by the former; 0: none yet. */
  private readonly restoredSlots: NumberMap;
  private readonly loggedSlots: Int32Array;
  private lastRestored = 0;

  /**
   * @param isStart the run begins here, or else may have begun just before: the engines halt halted markets again, and
   * don't open closed ones
   * @param onRingFull called in the middle of a command, at `ring.limit`
   */
  constructor(opening: Opening, isStart: boolean, onRingFull: () => void) {
    const { words, doubles, count } = openingRecords(opening);
    const capacity = MAX_LIVE_ORDERS + count;
    this.matcher = createMatcher(this.ring, { capacity, onRingFull });
    this.restoredSlots = new NumberMap(count);
    this.loggedSlots = new Int32Array(count + 1);
    for (const [id, first, outcomes, status] of opening.markets) {
      if (status === MarketStatus.proposed) this.proposals.set(id, [first, outcomes]);
      else if (!isStart || status !== MarketStatus.closed) this.addMarket(id, first, outcomes, status, isStart);
    }
    for (let i = 0; i < count; i++) {
      const w = i * R.RECORD_WORDS;
      const market = this.marketOfOutcome[words[w + R.W_OUTCOME]!]!;
      const id = doubles[(w >> 1) + R.D_ORDER_ID]!;
      words[w + R.W_SLOT] = MAX_LIVE_ORDERS + i + 1;
      this.restoredSlots.set(id, MAX_LIVE_ORDERS + i + 1);
      if (id > this.lastRestored) this.lastRestored = id;
      const before = this.lastOrders.get(market);
      if (before !== undefined) this.matcher.execute(before, new Float64Array(before.buffer), 0);
      this.lastOrders.set(market, words.slice(w, w + R.RECORD_WORDS));
    }
    this.matcher.dropBatch();
  }

  /** Opens what a write opens for trading, before the next command. */
  write(write: MarketWrite): void {
    if (write.kind === "createMarket") {
      const { id, firstOutcomeId, outcomes, proposedBy } = write;
      if (proposedBy === null) this.open(id, firstOutcomeId, outcomes.length);
      else this.proposals.set(id, [firstOutcomeId, outcomes.length]);
      return;
    }
    const proposal = this.proposals.get(write.marketId);
    this.proposals.delete(write.marketId);
    if (write.kind === "openMarket" && proposal !== undefined) this.open(write.marketId, ...proposal);
  }

  /** The market of an event of the log. */
  marketOf(words: Int32Array, w: number): number {
    return MARKET_EVENTS.has(R.kindOf(words[w]!))
      ? words[w + R.W_SLOT]!
      : (this.marketOfOutcome[words[w + R.W_OUTCOME]!] ?? 0);
  }

  /** The matcher's slot of an order that the log has in `slot`. */
  slotOf(id: number, slot: number): number {
    return (id <= this.lastRestored && this.restoredSlots.get(id)) || slot;
  }

  /** The log's slot for an order of the matcher; a restored order has the one that the log names first. */
  loggedSlot(slot: number, named: number): number {
    if (slot <= MAX_LIVE_ORDERS) return slot;
    const i = slot - MAX_LIVE_ORDERS;
    if (this.loggedSlots[i] === 0) this.loggedSlots[i] = named;
    return this.loggedSlots[i]!;
  }

  execute({ words, doubles }: DerivedCommand): void {
    if (this.opening.length > 0) this.openPending();
    this.matcher.execute(words, doubles, 0);
  }

  // ---------------------------------------------------------------- a start

  /** True if the levels of an outcome may show orders that a start restores. */
  isRestoring(outcome: number): boolean {
    return this.restoring[this.marketOfOutcome[outcome]!] !== Restoring.done;
  }

  /** True for the level of a last order, which the engine may have published before. */
  isLastRestored(outcome: number, price: number): boolean {
    return this.lastLevels.has(levelKey(outcome, price));
  }

  /**
   * Before the command behind the event at word `w` of the log: finishes the restoring of its market. Restores the last
   * order, which emits its end if a crash interrupted its matching.
   */
  beforeCommand(words: Int32Array, doubles: Float64Array, w: number): void {
    const market = this.marketOf(words, w);
    const state = this.restoring[market];
    if (state === Restoring.done || state === Restoring.lastPublish || state === undefined) return;
    if (state === Restoring.awaitsHalt && R.kindOf(words[w]!) === R.EventKind.marketChanged) {
      this.restoring[market] = Restoring.orders;
      return;
    }
    this.restoring[market] = Restoring.lastPublish;
    this.finishing.push(market);
    const last = this.lastOrders.get(market);
    if (last === undefined) return;
    this.lastOrders.delete(market);
    this.lastLevels.add(levelKey(last[R.W_OUTCOME]!, last[R.W_PRICE]!));
    const lastDoubles = new Float64Array(last.buffer);
    last[0]! |= R.FLAG_LAST;
    lastDoubles[R.D_AT] = doubles[(w >> 1) + R.D_AT]!;
    this.matcher.execute(last, lastDoubles, 0);
  }

  /** At the end of a publish: later levels show nothing of what a start restored. */
  finishRestoring(): void {
    if (this.finishing.length === 0) return;
    for (const market of this.finishing) this.restoring[market] = Restoring.done;
    this.finishing.length = 0;
    this.lastLevels.clear();
  }

  // ---------------------------------------------------------------- markets

  private addMarket(id: number, first: number, outcomes: number, status: number, isStart: boolean): void {
    this.open(id, first, outcomes);
    this.openPending();
    this.restoring[id] = Restoring.orders;
    if (status === MarketStatus.halted && isStart) this.restoring[id] = Restoring.awaitsHalt;
    else if (status === MarketStatus.halted) this.command(R.CommandKind.haltMarket, id, 0, 0);
    else if (status === MarketStatus.closed) this.command(R.CommandKind.closeMarket, id, 0, 0);
  }

  private open(id: number, first: number, outcomes: number): void {
    this.marketOfOutcome.fill(id, first, first + outcomes);
    this.opening.push([id, first, outcomes]);
  }

  private openPending(): void {
    for (const [id, first, outcomes] of this.opening) this.command(R.CommandKind.openMarket, id, first, outcomes);
    this.opening = [];
  }

  private command(kind: number, market: number, first: number, outcomes: number): void {
    const words = new Int32Array(R.RECORD_WORDS);
    words[0] = kind;
    words[R.W_MARKET] = market;
    words[R.W_OUTCOME] = first;
    words[R.W_QUANTITY] = outcomes;
    this.matcher.execute(words, new Float64Array(words.buffer), 0);
  }
}

const levelKey = (outcome: number, price: number): number => outcome * FULL_PRICE_BPS + price;
