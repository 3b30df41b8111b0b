/**
 * Trades a day's book history again through the exchange's own matcher. The file has no orders, so each level is one order of
 * its size, and each trade an order that takes from what the row says: direct from the level at its price, by mint or merge
 * from the other outcomes' best ones. Levels that the file shows only at the end of a commit, after a trade in it, are put
 * right before that trade. Prints nothing.
 */
import { createMatcher, type Matcher } from "../../../engine/book/matcher.ts";
import { MATCH_TYPES, Reason, Side, TimeInForce } from "../../../engine/constants.ts";
import { FULL_PRICE_BPS, MAX_QUANTITY } from "../../../engine/limits.ts";
import { CommandRecord } from "../../../engine/ring/command-record.ts";
import { EngineEvent } from "../../../engine/ring/engine-event.ts";
import * as R from "../../../engine/ring/records.ts";
import { assert } from "../../../engine/util/assert.ts";
import { ReplayRing } from "../log/books.ts";
import type { HistoryLine } from "./lines.ts";

const MARKET = 1;
const MAKER = 1;
const TAKER = 2;
/** Orders that rest: one a level. */
const CAPACITY = 2 ** 17;
const NO_ASK = FULL_PRICE_BPS;

/** A trade that the matcher didn't make, or made otherwise. */
export interface TradeDifference {
  readonly seq: number;
  readonly expected: string;
  readonly made: string;
}

interface Order {
  readonly slot: number;
  readonly id: number;
  /** Bids positive, asks negative. */
  readonly shares: number;
}

export class HistoryReplay {
  commits = 0;
  trades = 0;
  volume = 0;
  /** Commits after which the book could still trade. */
  crossed = 0;
  readonly byType = new Map<string, number>();
  readonly differences: TradeDifference[] = [];
  private readonly ring = new ReplayRing();
  private readonly matcher: Matcher;
  /** Of the matcher's outcome 1; those of the file follow each other. */
  private readonly firstOutcome: number;
  private readonly outcomes: number[];
  /** By outcome and price: as the file has it, and as the matcher does. */
  private readonly levels = new Map<number, number>();
  private readonly orders = new Map<number, Order>();
  private readonly touched = new Set<number>();
  private readonly freeSlots: number[] = [];
  private usedSlots = 1;
  private lastId = 0;
  private readonly words = new Int32Array(R.RECORD_WORDS);
  private readonly doubles = new Float64Array(this.words.buffer);
  private readonly command = new CommandRecord().at(this.words, this.doubles, 0);
  private readonly event = new EngineEvent();

  /** @param lines of the whole file: the market has the outcomes that they name, at least two */
  constructor(lines: readonly HistoryLine[]) {
    const ids = new Set(lines.map(({ outcome_id }) => outcome_id ?? 0));
    ids.delete(0);
    this.firstOutcome = ids.size === 0 ? 1 : Math.min(...ids);
    const count = Math.max(2, Math.max(...ids) - this.firstOutcome + 1);
    this.outcomes = Array.from({ length: count }, (_, i) => i + 1);
    this.matcher = createMatcher(this.ring, { capacity: CAPACITY, activeBooks: 64, onRingFull: () => {} });
    this.command.clear();
    this.command.packed = R.CommandKind.openMarket;
    Object.assign(this.command, { market: MARKET, outcome: 1, quantity: count });
    this.execute();
  }

  /** Trades the next commit again. */
  apply(commit: readonly HistoryLine[]): void {
    this.commits++;
    for (const line of commit) if (line.kind === "trade") this.trade(line);
    for (const line of commit) {
      if (line.kind !== "snapshot" && line.kind !== "level") continue;
      const { outcome_id = 0, side, price = 0, quantity = 0 } = line;
      const key = this.keyOf(this.outcomeOf(outcome_id), price);
      if (quantity > 0) this.levels.set(key, side === Side.buy ? quantity : -quantity);
      else if (Math.sign(this.levels.get(key) ?? 0) === (side === Side.buy ? 1 : -1)) this.levels.delete(key);
      this.touched.add(key);
    }
    // Away with what the trades left first: the matcher's books must never be crossed.
    for (const key of this.touched) if (this.sharesAt(key) !== bounded(this.levels.get(key) ?? 0)) this.set(key, 0);
    for (const key of this.touched) this.set(key, this.levels.get(key) ?? 0);
    // What crosses a level pushes it out.
    const arePushedOut = [...this.touched].some((key) => this.sharesAt(key) !== bounded(this.levels.get(key) ?? 0));
    this.touched.clear();
    if (arePushedOut || this.isCrossed()) this.crossed++;
  }

  /** The best bid and ask of each outcome; null for none. */
  best(): { readonly outcome: number; readonly bid: number | null; readonly ask: number | null }[] {
    return this.outcomes.map((outcome) => {
      const [bid, ask] = [this.matcher.bestBid(outcome), this.matcher.bestAsk(outcome)];
      return {
        outcome: this.idOf(outcome),
        bid: bid === 0 ? null : bid,
        ask: ask === NO_ASK ? null : ask,
      };
    });
  }

  // ---------------------------------------------------------------- a trade

  private trade(line: HistoryLine): void {
    const { outcome_id = 0, side = 0, price = 0, quantity = 0, match_type = "" } = line;
    const outcome = this.outcomeOf(outcome_id);
    this.trades++;
    this.volume += quantity;
    this.byType.set(match_type, (this.byType.get(match_type) ?? 0) + 1);
    if (match_type === "direct") this.offerDirectly(outcome, side, price, quantity);
    else this.offerBySets(outcome, side, price, quantity);
    const { command } = this;
    command.clear();
    command.packed =
      R.packCommand(R.CommandKind.placeOrder) | (side << R.SIDE_SHIFT) | (TimeInForce.ioc << R.TIME_IN_FORCE_SHIFT);
    const order = { slot: 1, user: TAKER, outcome, price, quantity, market: MARKET, orderId: ++this.lastId };
    Object.assign(command, order);
    const made = this.execute();
    const expected = [outcome_id, side, price, quantity, match_type].join(" ");
    if (made !== expected) this.differences.push({ seq: line.seq, expected, made });
  }

  /** The best opposite level is at this price, and it has the shares; nothing cheaper can be minted or merged. */
  private offerDirectly(outcome: number, side: number, price: number, quantity: number): void {
    const opposite = side === Side.buy ? Side.sell : Side.buy;
    this.removeBetter(outcome, opposite, price);
    for (const other of this.others(outcome)) {
      // Without an order on this side, no set is complete.
      if (this.isBeaten(outcome, side, price)) this.removeBetter(other, side, side === Side.buy ? 0 : NO_ASK);
    }
    this.ensure(outcome, opposite, price, quantity);
  }

  /** The other outcomes' best levels of the same side leave this price, and nobody offers it directly. */
  private offerBySets(outcome: number, side: number, price: number, quantity: number): void {
    const opposite = side === Side.buy ? Side.sell : Side.buy;
    this.removeBetter(outcome, opposite, side === Side.buy ? price + 1 : price - 1);
    const others = this.others(outcome);
    const target = FULL_PRICE_BPS - price;
    const prices = others.map((other) => this.bestOf(other, side));
    const sum = (list: readonly number[]): number => list.reduce((total, each) => total + each, 0);
    if (sum(prices) !== target) {
      const rest = target - sum(prices.slice(0, -1));
      if (rest > 0 && rest < FULL_PRICE_BPS && prices.slice(0, -1).every(isPrice)) prices[prices.length - 1] = rest;
      else {
        const each = Math.floor(target / others.length);
        prices.fill(each);
        prices[prices.length - 1] = target - each * (others.length - 1);
      }
    }
    others.forEach((other, i) => {
      this.removeBetter(other, side, prices[i]!);
      this.ensure(other, side, prices[i]!, quantity);
    });
  }

  /** A complete set is cheaper for the taker than the price. */
  private isBeaten(outcome: number, side: number, price: number): boolean {
    const best = this.others(outcome).map((other) => this.bestOf(other, side));
    if (!best.every(isPrice)) return false;
    const implied = FULL_PRICE_BPS - best.reduce((sum, each) => sum + each, 0);
    return side === Side.buy ? implied < price : implied > price;
  }

  /** Takes away what is better than a price, until the end of the commit. */
  private removeBetter(outcome: number, side: number, price: number): void {
    for (;;) {
      const best = this.bestOf(outcome, side);
      if (!isPrice(best) || (side === Side.buy ? best <= price : best >= price)) return;
      this.change(outcome, best, 0);
      assert(this.bestOf(outcome, side) !== best, "a level that was taken away is gone");
    }
  }

  /** One order has as many shares. */
  private ensure(outcome: number, side: number, price: number, quantity: number): void {
    const sign = side === Side.buy ? 1 : -1;
    const resting = this.sharesAt(this.keyOf(outcome, price));
    if (resting * sign < quantity) this.change(outcome, price, sign * quantity);
  }

  // ---------------------------------------------------------------- the matcher's book

  private change(outcome: number, price: number, shares: number): void {
    const key = this.keyOf(outcome, price);
    this.touched.add(key);
    this.set(key, shares);
  }

  /** Lets one order be the whole level. @param shares bids positive, asks negative */
  private set(key: number, shares: number): void {
    const wanted = bounded(shares);
    // What a trade took from the order, the matcher knows alone.
    const left = this.sharesAt(key);
    if (left === wanted && wanted !== 0) return;
    const old = this.orders.get(key);
    if (old !== undefined) {
      if (left !== 0) this.cancel(old);
      this.orders.delete(key);
      this.freeSlots.push(old.slot);
    }
    if (wanted !== 0) this.rest(key, wanted);
  }

  /** What rests in the matcher: bids positive, asks negative. */
  private sharesAt(key: number): number {
    const old = this.orders.get(key);
    const left = this.matcher.levelQuantity(Math.floor(key / FULL_PRICE_BPS), key % FULL_PRICE_BPS);
    return old === undefined ? 0 : Math.sign(old.shares) * left;
  }

  private rest(key: number, shares: number): void {
    const [outcome, price] = [Math.floor(key / FULL_PRICE_BPS), key % FULL_PRICE_BPS];
    const side = shares > 0 ? Side.buy : Side.sell;
    if (side === Side.buy) this.removeBetter(outcome, Side.sell, price + 1);
    else this.removeBetter(outcome, Side.buy, price - 1);
    const slot = this.freeSlots.pop() ?? ++this.usedSlots;
    assert(slot <= CAPACITY, "a book has fewer levels than the replay has room for");
    const { command } = this;
    const quantity = Math.abs(shares);
    command.clear();
    command.packed = R.packCommand(R.CommandKind.restoreOrder) | (side << R.SIDE_SHIFT);
    const id = ++this.lastId;
    Object.assign(command, {
      slot,
      user: MAKER,
      outcome,
      price,
      quantity,
      market: MARKET,
      total: quantity,
      orderId: id,
    });
    this.execute();
    this.orders.set(key, { slot, id, shares });
  }

  private cancel({ slot, id }: Order): void {
    const { command } = this;
    command.clear();
    command.packed = R.packCancel(Reason.user);
    Object.assign(command, { slot, orderId: id });
    this.execute();
  }

  /** Executes the command; returns the matches that it caused, in words. */
  private execute(): string {
    this.matcher.execute(this.words, this.doubles, 0);
    this.matcher.endBatch();
    const matches: string[] = [];
    const { event, ring } = this;
    event.at(ring.words, ring.doubles, 0);
    for (let i = 0; i < ring.head; i++, event.next()) {
      if (event.kind !== R.EventKind.orderFilled || !event.endsMatch) continue;
      const { outcome, side, price, quantity, matchType } = event;
      matches.push([this.idOf(outcome), side, price, quantity, MATCH_TYPES[matchType]].join(" "));
    }
    ring.rewind();
    return matches.length === 0 ? "nothing" : matches.join(", ");
  }

  private bestOf(outcome: number, side: number): number {
    return side === Side.buy ? this.matcher.bestBid(outcome) : this.matcher.bestAsk(outcome);
  }

  /** Orders that rest could trade with each other, directly or as complete sets. */
  private isCrossed(): boolean {
    const { matcher, outcomes } = this;
    let [bids, asks] = [0, 0];
    let [allBid, allAsk] = [true, true];
    for (const outcome of outcomes) {
      const [bid, ask] = [matcher.bestBid(outcome), matcher.bestAsk(outcome)];
      if (bid >= ask) return true;
      bids += bid;
      asks += ask;
      allBid &&= isPrice(bid);
      allAsk &&= isPrice(ask);
    }
    return (allBid && bids >= FULL_PRICE_BPS) || (allAsk && asks <= FULL_PRICE_BPS);
  }

  private readonly others = (outcome: number): number[] => this.outcomes.filter((each) => each !== outcome);
  private readonly outcomeOf = (id: number): number => id - this.firstOutcome + 1;
  private readonly idOf = (outcome: number): number => outcome + this.firstOutcome - 1;
  private readonly keyOf = (outcome: number, price: number): number => outcome * FULL_PRICE_BPS + price;
}

/** As much of a level as one order can be. */
const bounded = (shares: number): number => Math.sign(shares) * Math.min(Math.abs(shares), MAX_QUANTITY);

const isPrice = (price: number): boolean => price > 0 && price < FULL_PRICE_BPS;
