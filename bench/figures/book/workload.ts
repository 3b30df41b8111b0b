/**
 * The order flow of the book bench, from a seed. Of every ten operations, in random order, five add within 50 ticks of
 * a market's mid, one is marketable (immediate-or-cancel: it takes the best order and part of the next) and four cancel
 * a resting order, so that the number of resting orders stays constant. A plain model of the books tracks resting
 * orders. No engine code runs here: V8 compiles the matcher best in a process that creates only one.
 */
import { OrderType, Reason, Side, TimeInForce } from "../../../engine/constants.ts";
import * as R from "../../../engine/ring/records.ts";
import { randomFrom } from "../../support/random.ts";

const SPREAD_TICKS = 50;
const MAX_ORDER_QUANTITY = 100;
/** Slots of ended orders come back when their batch's events were read. */
export const BATCH_COMMANDS = 1_024;

/** In columns; an entry a command: first the adds that fill the books, then the operations. */
export interface Workload {
  readonly markets: number;
  /** First words of command records. */
  readonly packed: Int32Array;
  readonly slots: Uint16Array;
  readonly outcomes: Uint16Array;
  readonly prices: Uint16Array;
  readonly quantities: Uint16Array;
  readonly orderIds: Int32Array;
  readonly prefill: number;
  readonly operations: number;
  /** Matches that the operations make. */
  readonly trades: number;
}

/**
 * One price level of the model: order indexes in time order; those before `head` and those without quantity are gone.
 */
interface Level {
  orders: number[];
  head: number;
}

class Model {
  /** By order index. */
  readonly remaining: Int32Array;
  readonly slots: Int32Array;
  readonly marketOf: Int32Array;
  readonly sideOf: Int32Array;
  readonly resting: number[] = [];
  trades = 0;
  usedSlots = 0;
  private readonly restingAt: Int32Array;
  private readonly levels: Level[];
  private readonly freeSlots: number[] = [];
  private endedSlots: number[] = [];

  constructor(markets: number, orders: number) {
    this.remaining = new Int32Array(orders);
    this.slots = new Int32Array(orders);
    this.marketOf = new Int32Array(orders);
    this.sideOf = new Int32Array(orders);
    this.restingAt = new Int32Array(orders);
    this.levels = Array.from({ length: markets * 2 * SPREAD_TICKS }, () => ({ orders: [], head: 0 }));
  }

  endBatch(): void {
    this.freeSlots.push(...this.endedSlots);
    this.endedSlots = [];
  }

  allocateSlot(order: number): number {
    return (this.slots[order] = this.freeSlots.pop() ?? ++this.usedSlots);
  }

  /** @param distance from the mid in ticks, 1..50 */
  add(order: number, market: number, side: Side, distance: number, quantity: number): void {
    this.remaining[order] = quantity;
    this.marketOf[order] = market;
    this.sideOf[order] = side;
    this.level(market, side, distance).orders.push(order);
    this.restingAt[order] = this.resting.push(order) - 1;
  }

  end(order: number): void {
    this.remaining[order] = 0;
    this.endSlot(order);
    const last = this.resting.pop()!;
    if (last === order) return;
    this.resting[this.restingAt[order]!] = last;
    this.restingAt[last] = this.restingAt[order]!;
  }

  endSlot(order: number): void {
    this.endedSlots.push(this.slots[order]!);
  }

  /** The quantity that takes the side's best order and part of the next. */
  bitOf(market: number, side: Side, random: () => number): number {
    let bit = 0;
    for (let distance = 1; distance <= SPREAD_TICKS; distance++) {
      const level = this.level(market, side, distance);
      for (let i = this.skipGone(level); i < level.orders.length; i++) {
        const remaining = this.remaining[level.orders[i]!]!;
        if (bit > 0 && remaining > 0) return bit + Math.floor(random() * remaining);
        bit += remaining;
      }
    }
    return bit;
  }

  /** Takes from that side, best first. */
  trade(market: number, side: Side, quantity: number): void {
    for (let distance = 1; distance <= SPREAD_TICKS; distance++) {
      const level = this.level(market, side, distance);
      while (this.skipGone(level) < level.orders.length) {
        const order = level.orders[level.head]!;
        const filled = Math.min(quantity, this.remaining[order]!);
        this.trades++;
        quantity -= filled;
        this.remaining[order]! -= filled;
        if (this.remaining[order] === 0) this.end(order);
        if (quantity === 0) return;
      }
    }
  }

  private level(market: number, side: Side, distance: number): Level {
    return this.levels[(market * 2 + (side - 1)) * SPREAD_TICKS + distance - 1]!;
  }

  /** Moves the level's head past orders that are gone, and returns it. */
  private skipGone(level: Level): number {
    while (level.head < level.orders.length && this.remaining[level.orders[level.head]!] === 0) level.head++;
    if (level.head === level.orders.length) {
      level.orders = [];
      level.head = 0;
    }
    return level.head;
  }
}

/** Markets have two outcomes; the first of them is traded. */
export function outcomeOf(market: number): number {
  return 2 * market + 1;
}

/** The mid of a market's prices: one at 50 cents, more spread over the range. */
function midOf(market: number, markets: number): number {
  return markets === 1 ? 5_000 : 100 + Math.floor((9_800 * market) / markets);
}

/** Yields `count` items: every round uses each item of the pattern once, in random order. Reorders the pattern. */
function* shuffledRounds<T>(pattern: T[], count: number, upTo: (count: number) => number): Generator<T> {
  for (let done = 0; done < count; done++) {
    const next = done % pattern.length;
    const chosen = next + upTo(pattern.length - next);
    [pattern[next], pattern[chosen]] = [pattern[chosen]!, pattern[next]!];
    yield pattern[next]!;
  }
}

/** @param live the number of resting orders at the start, and at the end */
export function makeWorkload(markets: number, live: number, operations: number, seed: number): Workload {
  const random = randomFrom(seed);
  const upTo = (count: number) => Math.floor(random() * count);
  const commands = live + operations;
  const packed = new Int32Array(commands);
  const slots = new Uint16Array(commands);
  const outcomes = new Uint16Array(commands);
  const prices = new Uint16Array(commands);
  const quantities = new Uint16Array(commands);
  const orderIds = new Int32Array(commands);
  const model = new Model(markets, commands);

  function place(index: number, market: number, side: Side, tif: number, price: number, quantity: number): void {
    packed[index] = R.packCommand(R.CommandKind.placeOrder, R.packTerms(side, OrderType.limit, tif, 0, 0));
    slots[index] = model.allocateSlot(index);
    outcomes[index] = outcomeOf(market);
    prices[index] = price;
    quantities[index] = quantity;
    orderIds[index] = index + 1;
  }

  function add(index: number): void {
    const market = upTo(markets);
    const side = random() < 0.5 ? Side.buy : Side.sell;
    const distance = 1 + upTo(SPREAD_TICKS);
    const quantity = 1 + upTo(MAX_ORDER_QUANTITY);
    const price = midOf(market, markets) + (side === Side.buy ? -distance : distance);
    place(index, market, side, TimeInForce.gtc, price, quantity);
    model.add(index, market, side, distance, quantity);
  }

  function cross(index: number): void {
    const target = model.resting[upTo(model.resting.length)]!;
    const market = model.marketOf[target]!;
    const other = model.sideOf[target] as Side;
    const quantity = model.bitOf(market, other, random);
    const price = midOf(market, markets) + (other === Side.buy ? -SPREAD_TICKS : SPREAD_TICKS);
    place(index, market, other === Side.buy ? Side.sell : Side.buy, TimeInForce.ioc, price, quantity);
    model.trade(market, other, quantity);
    model.endSlot(index);
  }

  function cancel(index: number): void {
    const order = model.resting[upTo(model.resting.length)]!;
    packed[index] = R.packCancel(Reason.user);
    slots[index] = model.slots[order]!;
    orderIds[index] = order + 1;
    model.end(order);
  }

  for (let index = 0; index < live; index++) add(index);
  const pattern = [add, add, add, add, add, cross, cancel, cancel, cancel, cancel];
  let index = live;
  for (const operation of shuffledRounds(pattern, operations, upTo)) {
    if ((index - live) % BATCH_COMMANDS === 0) model.endBatch();
    operation(index++);
  }
  return {
    markets,
    packed,
    slots,
    outcomes,
    prices,
    quantities,
    orderIds,
    prefill: live,
    operations,
    trades: model.trades,
  };
}
