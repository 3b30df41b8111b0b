/**
 * Drives the matcher with an oracle's messages: command records in, event records out, both through rings, as between
 * threads but in one. Owns the gateway's state: the slot of each id, and the current market.
 *
 * Orders of a single outcome make a plain book: the market's other outcome stays empty, so nothing is minted or merged.
 * Each message has its own user, so no self-trade occurs.
 */

import { createMatcher, type Matcher } from "../../engine/book/matcher.ts";
import { warmUp } from "../../engine/book/warm-up.ts";
import { OrderType, Reason, SelfTradePrevention, Side, TimeInForce } from "../../engine/constants.ts";
import { EVENT_RING_RECORDS, MAX_LIVE_ORDERS, MAX_OUTCOME_ID, MAX_PRICE_BPS } from "../../engine/limits.ts";
import * as R from "../../engine/ring/records.ts";
import { createRing, RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import { assert } from "../../engine/util/assert.ts";
import { MessageKind, type Messages } from "./messages.ts";
import { offsetFor, offsetWindow, type PriceWindow, priceRange, rankedWindow } from "./prices.ts";
import { Reports } from "./reports.ts";

const BATCH_MESSAGES = 1_000;
/** A modify is two commands. */
const COMMAND_RING_RECORDS = 2_048;
/** The capacity that the warm-up needs. */
const LEAST_CAPACITY = 1_024;
/** Marks the cancel of a modify: if it is rejected, the following placement is dropped. */
const MODIFY_ID = 1;

export interface Replayed {
  readonly trades: number;
  readonly sha256: string;
  /** The number of price windows; 1 if the price range fits a book. */
  readonly windows: number;
  /** Time in the matcher, over records. */
  readonly engineSeconds: number;
}

/** Runs all messages and writes their reports to a file. @throws Error if they exceed the engine's bounds */
export function replay(messages: Messages, reportPath: string): Replayed {
  return new Replay(messages, reportPath).run();
}

class Replay {
  private readonly messages: Messages;
  private readonly matcher: Matcher;
  private readonly commands: RingProducer;
  private readonly commandsIn: RingConsumer;
  private readonly events: RingProducer;
  private readonly eventsIn: RingConsumer;
  private readonly reports: Reports;
  private readonly capacity: number;
  private readonly slotById = new Map<number, number>();
  private readonly idBySlot: Float64Array;
  private readonly freeSlots: number[] = [];
  private usedSlots = 0;
  private market = 0;
  private window: PriceWindow | undefined;
  /** Resting orders move to another window: no message caused that, so no report is written. */
  private moving = false;

  constructor(messages: Messages, reportPath: string) {
    this.messages = messages;
    this.capacity = Math.min(MAX_LIVE_ORDERS, Math.max(LEAST_CAPACITY, messages.count));
    this.idBySlot = new Float64Array(this.capacity + 1);
    const commandRing = createRing(COMMAND_RING_RECORDS);
    this.commands = new RingProducer(commandRing);
    this.commandsIn = new RingConsumer(commandRing, false);
    const eventRing = createRing(EVENT_RING_RECORDS);
    this.events = new RingProducer(eventRing);
    this.eventsIn = new RingConsumer(eventRing, false);
    this.reports = new Reports(reportPath, messages, (slot, id) => this.freeSlot(slot, id));
    this.matcher = createMatcher(this.events, {
      capacity: this.capacity,
      activeBooks: 4,
      onRingFull: () => this.consumeEvents(),
    });
    // As an engine thread starts.
    warmUp(this.matcher);
  }

  run(): Replayed {
    const { messages } = this;
    const offset = offsetFor(...priceRange(messages));
    let engineMs = 0;
    let windows = 0;
    for (let next = 0; next < messages.count; ) {
      if (next === (this.window?.end ?? 0)) {
        windows++;
        this.openWindow((resting) =>
          offset === undefined ? rankedWindow(messages, next, resting) : offsetWindow(offset, messages.count),
        );
      }
      const end = Math.min(next + BATCH_MESSAGES, this.window!.end);
      while (next < end) this.writeMessage(next++);
      const start = performance.now();
      this.runEngine();
      engineMs += performance.now() - start;
      this.consumeEvents();
    }
    return { trades: this.reports.trades, sha256: this.reports.end(), windows, engineSeconds: engineMs / 1_000 };
  }

  /** An engine thread's work on a batch. */
  private runEngine(): void {
    const { matcher, events, commandsIn } = this;
    const { words, doubles, mask } = commandsIn;
    this.commands.publish();
    for (let count = commandsIn.available(); count > 0; count--) {
      const base = (commandsIn.tail & mask) * R.RECORD_WORDS;
      commandsIn.tail = (commandsIn.tail + 1) | 0;
      matcher.execute(words, doubles, base);
      if (words[base + R.W_CORRELATION] !== MODIFY_ID) continue;
      const answer = events.words[((events.head - 1) & events.mask) * R.RECORD_WORDS]!;
      if (R.kindOf(answer) !== R.EventKind.cancelRejected) continue;
      commandsIn.tail = (commandsIn.tail + 1) | 0;
      count--;
    }
    commandsIn.release();
    matcher.endBatch();
  }

  /** Writes reports of the published events and frees them. */
  private consumeEvents(): void {
    const { eventsIn } = this;
    const { words, doubles, mask } = eventsIn;
    for (let count = eventsIn.available(); count > 0; count--) {
      if (!this.moving) this.reports.add(words, doubles, (eventsIn.tail & mask) * R.RECORD_WORDS, this.window!);
      eventsIn.tail = (eventsIn.tail + 1) | 0;
    }
    eventsIn.release();
    this.reports.flush();
  }

  // ---------------------------------------------------------------- messages to commands

  private writeMessage(sequence: number): void {
    const id = this.messages.ids[sequence]!;
    const kind = this.messages.kinds[sequence];
    if (kind === MessageKind.place) return this.writePlacement(this.allocateSlot(id), sequence);
    const slot = this.slotById.get(id) ?? 0;
    this.writeCancel(slot, sequence, kind === MessageKind.modify ? MODIFY_ID : 0);
    if (kind === MessageKind.modify) this.writePlacement(slot, sequence);
  }

  private writeCancel(slot: number, sequence: number, correlationId: number): void {
    const base = this.writeCommand(R.packCancel(Reason.user), correlationId);
    this.commands.words[base + R.W_SLOT] = slot;
    this.commands.doubles[(base >> 1) + R.D_ORDER_ID] = this.messages.ids[sequence]! + 1;
    this.commands.doubles[(base >> 1) + R.D_AT] = sequence;
  }

  private writePlacement(slot: number, sequence: number): void {
    const { messages } = this;
    const tif = messages.immediate[sequence] === 1 ? TimeInForce.ioc : TimeInForce.gtc;
    const price = this.window!.tick(messages.prices[sequence]!);
    const quantity = messages.quantities[sequence]!;
    const base = this.writeOrder(R.CommandKind.placeOrder, messages.sides[sequence]!, tif, slot, price, quantity);
    this.commands.words[base + R.W_USER] = sequence + 1;
    this.commands.doubles[(base >> 1) + R.D_ORDER_ID] = messages.ids[sequence]! + 1;
    this.commands.doubles[(base >> 1) + R.D_AT] = sequence;
  }

  private writeOrder(
    kind: R.CommandKind,
    side: number,
    tif: number,
    slot: number,
    price: number,
    quantity: number,
  ): number {
    const base = this.writeCommand(
      R.packCommand(kind, R.packTerms(side, OrderType.limit, tif, SelfTradePrevention.cancelTaker, 0)),
      0,
    );
    const { words } = this.commands;
    words[base + R.W_SLOT] = slot;
    words[base + R.W_PRICE] = price;
    words[base + R.W_QUANTITY] = quantity;
    return base;
  }

  /** Writes a record with only kind, market and correlation id; returns its first word. */
  private writeCommand(packed: number, correlationId: number): number {
    const { commands, market } = this;
    const base = (commands.head & commands.mask) * R.RECORD_WORDS;
    commands.words.fill(0, base, base + R.RECORD_WORDS);
    commands.words[base] = packed;
    commands.words[base + R.W_OUTCOME] = 2 * market - 1;
    commands.words[base + R.W_MARKET] = market;
    commands.words[base + R.W_CORRELATION] = correlationId;
    commands.head = (commands.head + 1) | 0;
    return base;
  }

  // ---------------------------------------------------------------- slots and windows

  /** An id may come again, even while its order rests: from then on it names the later one. */
  private allocateSlot(id: number): number {
    const slot = this.freeSlots.pop() ?? ++this.usedSlots;
    if (slot > this.capacity) throw new Error(`more than ${this.capacity} orders rest at one time`);
    this.slotById.set(id, slot);
    this.idBySlot[slot] = id;
    return slot;
  }

  private freeSlot(slot: number, id: number): void {
    this.freeSlots.push(slot);
    if (this.slotById.get(id) === slot) this.slotById.delete(id);
  }

  /** Opens a market for the next window and moves resting orders into it by priority. */
  private openWindow(next: (restingPrices: Iterable<number>) => PriceWindow): void {
    this.moving = true;
    const resting = this.window === undefined ? [] : this.removeResting(this.window);
    this.window = next(resting.map((order) => order.price));
    this.market++;
    assert(2 * this.market <= MAX_OUTCOME_ID, "windows don't outnumber markets");
    this.writeOrder(R.CommandKind.openMarket, 0, 0, 0, 0, 2);
    this.runCommand();
    for (const { slot, side, price, remaining } of resting) {
      const tick = this.window.tick(price);
      const base = this.writeOrder(R.CommandKind.restoreOrder, side, TimeInForce.gtc, slot, tick, remaining);
      // Messages have positive users.
      this.commands.words[base + R.W_USER] = -slot;
      this.commands.words[base + R.W_CORRELATION] = remaining;
      this.commands.doubles[(base >> 1) + R.D_ORDER_ID] = this.idBySlot[slot]! + 1;
      this.runCommand();
    }
    this.moving = false;
  }

  private removeResting(window: PriceWindow): { slot: number; side: number; price: number; remaining: number }[] {
    const outcome = 2 * this.market - 1;
    const resting = [];
    for (let tick = 1; tick <= MAX_PRICE_BPS; tick++) {
      const side = tick <= this.matcher.bestBid(outcome) ? Side.buy : Side.sell;
      for (const [slot, remaining] of this.matcher.ordersAt(outcome, tick))
        resting.push({ slot, side, price: window.price(tick), remaining });
    }
    this.writeCommand(R.packCommand(R.CommandKind.closeMarket), 0);
    this.runCommand();
    return resting;
  }

  private runCommand(): void {
    this.runEngine();
    this.consumeEvents();
  }
}
