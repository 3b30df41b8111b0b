/**
 * Writes commands into the engines' rings, one method per command, and publishes them: 64 at a time, or all at
 * `publish`; the commands of a chain go over together. Reads an order's fields from the order store by slot, writes straight
 * into the ring's record and allocates nothing. Callers check for room first: a write never fails.
 */
import { MAX_CHAIN_COMMANDS } from "../../engine/limits.ts";
import { CommandRecord } from "../../engine/ring/command-record.ts";
import * as R from "../../engine/ring/records.ts";
import type { RingProducer } from "../../engine/ring/ring.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Market } from "../markets/types.ts";
import type { Timeline } from "../util/timeline.ts";
import type { OrderStore } from "./order-store.ts";
import type { EngineLink } from "./types.ts";

const RESERVED_COMMANDS = 1024;
/** After so many commands the engine gets them before the turn ends, so that both threads work at once. */
const HANDOVER_COMMANDS = 64;
/** The same at startup, where a wake-up costs 12 µs and an engine would be done before the next one. */
const RESTORE_HANDOVER_COMMANDS = 2_048;

/** What a change of a market does. */
export type MarketChange = "halt" | "resume" | "close";

const MARKET_COMMANDS = {
  halt: R.CommandKind.haltMarket,
  resume: R.CommandKind.resumeMarket,
  close: R.CommandKind.closeMarket,
} as const;

/** Times are ms since the epoch by the machine's clock; `correlationId` comes back with the event, 0 for none. */
interface Written {
  readonly at: number;
}

interface PlaceOrder extends Written {
  readonly slot: number;
  /** Past it the engine rejects the order; 0 for never. */
  readonly validUntil: number;
}

interface ReplaceOrder extends Written {
  readonly slot: number;
  /** The slot of the quote that this one takes over from. */
  readonly replaced: number;
  /** What the gateway last knew to remain of it. */
  readonly expected: number;
}

interface CancelOrder extends Written {
  readonly slot: number;
  /** A code of `Reason`. */
  readonly reason: number;
  readonly correlationId: number;
}

interface AmendOrder extends Written {
  readonly slot: number;
  /** BPS; 0 keeps it. */
  readonly price: number;
  /** The new total; 0 keeps it. */
  readonly quantity: number;
  readonly priority: number;
  readonly validUntil: number;
  readonly correlationId: number;
}

interface ExtendOrder extends Written {
  readonly slot: number;
  /** 0 for never. */
  readonly expiresAt: number;
  readonly correlationId: number;
}

interface ChangeMarket extends Written {
  readonly marketId: number;
  readonly change: MarketChange;
  readonly correlationId: number;
}

interface ChangeSets extends Written {
  readonly userId: number;
  readonly marketId: number;
  readonly quantity: number;
  readonly correlationId: number;
}

interface MergeSets extends ChangeSets {
  /** BPS of 1 USDC a set. */
  readonly feeBps: number;
}

interface Link extends EngineLink {
  /** The cursor up to which commands are handed over. */
  published: number;
}

export class CommandWriter {
  private readonly links: readonly Link[];
  private readonly store: OrderStore;
  private readonly timeline: Timeline;
  private readonly reserved: number;
  private readonly command = new CommandRecord();
  /** Commands written and not handed over. */
  unpublished = 0;
  private handover = HANDOVER_COMMANDS;
  /** Commands still to write of the open chain. */
  private chained = 0;

  /** @param reserved records kept free in a command ring for what cannot be rejected: cancels, expiries, market changes */
  constructor(
    links: readonly EngineLink[],
    store: OrderStore,
    timeline: Timeline,
    reserved: number = RESERVED_COMMANDS,
  ) {
    this.links = links.map((link) => ({ ...link, published: link.commands.head }));
    this.store = store;
    this.timeline = timeline;
    this.reserved = reserved;
  }

  // ---------------------------------------------------------------- room

  /** True when `count` commands that may be rejected can be written for the market. */
  hasRoom(marketId: number, count = 1): boolean {
    return this.ringOf(marketId).hasRoom(this.reserved + count);
  }

  /** True when a command that cannot be rejected can be written for the market. */
  hasReservedRoom(marketId: number): boolean {
    return this.ringOf(marketId).hasRoom(2);
  }

  /** True when every ring has room for commands that may be rejected. */
  get haveRoom(): boolean {
    return this.links.every(({ commands }) => commands.hasRoom(this.reserved + 1));
  }

  // ---------------------------------------------------------------- orders

  /** Places the order in `slot`. */
  placeOrder({ slot, at, validUntil }: PlaceOrder): void {
    const ring = this.ringOf(this.store.markets[slot]!);
    const command = this.begin(ring, this.placing(slot), at);
    this.writeOrder(command, slot, this.store.quantities[slot]!);
    writeValidUntil(command, validUntil, at);
    this.end(ring);
  }

  /** Places the quote in `slot`, which takes over what another one holds. Valid at any time: `valid_until` was checked. */
  replaceOrder({ slot, at, replaced, expected }: ReplaceOrder): void {
    const ring = this.ringOf(this.store.markets[slot]!);
    const command = this.begin(ring, this.placing(slot) | R.FLAG_REPLACES, at);
    this.writeOrder(command, slot, this.store.quantities[slot]!);
    command.replacedSlot = replaced;
    command.expectedRemaining = expected;
    this.end(ring);
  }

  /** Puts an order of the database back into its book. @param isLast it entered its market's books after all others */
  restoreOrder(slot: number, isLast: boolean): void {
    const { store } = this;
    const ring = this.ringOf(store.markets[slot]!);
    const packed = R.packCommand(R.CommandKind.restoreOrder, store.terms[slot]!) | (isLast ? R.FLAG_LAST : 0);
    const command = this.begin(ring, packed, store.updatedAt[slot]!);
    this.writeOrder(command, slot, store.remaining[slot]!);
    command.total = store.quantities[slot]!;
    this.end(ring);
  }

  cancelOrder({ slot, at, reason, correlationId }: CancelOrder): void {
    const ring = this.ringOf(this.store.markets[slot]!);
    const command = this.begin(ring, R.packCancel(reason), at);
    this.writeTarget(command, slot);
    command.correlationId = correlationId;
    this.end(ring);
  }

  amendOrder({ slot, at, price, quantity, priority, validUntil, correlationId }: AmendOrder): void {
    const ring = this.ringOf(this.store.markets[slot]!);
    const command = this.begin(ring, R.CommandKind.amendOrder, at);
    this.writeTarget(command, slot);
    command.price = price;
    command.quantity = quantity;
    command.correlationId = correlationId;
    command.priority = priority;
    writeValidUntil(command, validUntil, at);
    this.end(ring);
  }

  /** Changes when the order in `slot` expires; it keeps its place in the book. */
  extendOrder({ slot, at, expiresAt, correlationId }: ExtendOrder): void {
    const ring = this.ringOf(this.store.markets[slot]!);
    const command = this.begin(ring, R.CommandKind.amendOrder | R.FLAG_EXTENDS, at);
    this.writeTarget(command, slot);
    command.correlationId = correlationId;
    command.expiresAt = expiresAt;
    this.end(ring);
  }

  // ---------------------------------------------------------------- markets and complete sets

  openMarket({ id, firstOutcomeId, outcomes }: Market): void {
    const ring = this.ringOf(id);
    const command = this.begin(ring, R.CommandKind.openMarket, 0);
    command.outcome = firstOutcomeId;
    command.quantity = outcomes.length;
    command.market = id;
    this.end(ring);
  }

  changeMarket({ marketId, at, change, correlationId }: ChangeMarket): void {
    const ring = this.ringOf(marketId);
    const command = this.begin(ring, MARKET_COMMANDS[change], at);
    command.market = marketId;
    command.correlationId = correlationId;
    this.end(ring);
  }

  splitSets(split: ChangeSets): void {
    this.changeSets(R.CommandKind.splitSets, split, 0);
  }

  mergeSets(merge: MergeSets): void {
    this.changeSets(R.CommandKind.mergeSets, merge, merge.feeBps);
  }

  private changeSets(kind: R.CommandKind, change: ChangeSets, feeBps: number): void {
    const { userId, marketId, at, quantity, correlationId } = change;
    const ring = this.ringOf(marketId);
    const command = this.begin(ring, kind, at);
    command.user = userId;
    command.price = feeBps;
    command.quantity = quantity;
    command.market = marketId;
    command.correlationId = correlationId;
    this.end(ring);
  }

  // ---------------------------------------------------------------- threads

  /** Sends a fence through each ring, behind everything written so far. @param expect returns a correlation id */
  probe(expect: () => number): void {
    for (const { commands } of this.links) {
      // The engine always rejects a cancel of no order.
      this.begin(commands, R.CommandKind.cancelOrder, 0).correlationId = expect();
      this.end(commands);
    }
  }

  /** Tells the engines to end once everything before it is done. */
  stop(): void {
    for (const { commands } of this.links) {
      this.begin(commands, R.CommandKind.stop, 0);
      this.end(commands);
    }
    this.publish();
  }

  // ---------------------------------------------------------------- handing over

  /**
   * The next `count` commands, of one market and written in this turn, form a chain: one batch of the engine, one commit.
   * The caller has checked for the room.
   */
  beginChain(count: number): void {
    assert(this.chained === 0 && count <= MAX_CHAIN_COMMANDS, "one chain at a time, no longer than the engine takes");
    this.chained = count;
  }

  /** Startup restores orders: until `false`, commands are published in large batches. */
  setRestoring(isRestoring: boolean): void {
    this.handover = isRestoring ? RESTORE_HANDOVER_COMMANDS : HANDOVER_COMMANDS;
  }

  /** Hands over everything written. */
  publish(): void {
    this.unpublished = 0;
    for (const link of this.links) {
      const { commands, waker } = link;
      if (commands.head === link.published) continue;
      link.published = commands.head;
      commands.publish();
      waker.wake();
    }
  }

  // ---------------------------------------------------------------- records

  private ringOf(marketId: number): RingProducer {
    return this.links[marketId % this.links.length]!.commands;
  }

  /** Clears the next record, writes its first word and its time, and returns it. */
  private placing(slot: number): number {
    return R.packCommand(R.CommandKind.placeOrder, this.store.terms[slot]!);
  }

  private begin(ring: RingProducer, packed: number, at: number): CommandRecord {
    const command = this.command.at(ring.words, ring.doubles, (ring.head & ring.mask) * R.RECORD_WORDS);
    command.clear();
    command.packed = this.chained > 1 ? packed | R.FLAG_MORE : packed;
    command.time = this.timeline.stamp(at);
    return command;
  }

  private writeOrder(command: CommandRecord, slot: number, quantity: number): void {
    const { store } = this;
    this.writeTarget(command, slot);
    command.price = store.prices[slot]!;
    command.quantity = quantity;
    command.expiresAt = store.expiresAt[slot]!;
  }

  /** Names the order that the command means. */
  private writeTarget(command: CommandRecord, slot: number): void {
    const { store } = this;
    command.slot = slot;
    command.user = store.users[slot]!;
    command.outcome = store.outcomes[slot]!;
    command.market = store.markets[slot]!;
    command.orderId = store.ids[slot]!;
  }

  private end(ring: RingProducer): void {
    ring.head = (ring.head + 1) | 0;
    this.unpublished++;
    if (this.chained > 0 && --this.chained > 0) return;
    if (this.unpublished >= this.handover) this.publish();
  }
}

/**
 * The sender means the machine's clock: where it was set back, the engine compares with a later time, and an end that the
 * stamp has passed is still to come.
 */
function writeValidUntil(command: CommandRecord, validUntil: number, at: number): void {
  if (validUntil !== 0) command.validUntil = validUntil + command.time - at;
  else if (command.time > at) command.validUntil = Number.MAX_SAFE_INTEGER;
}
