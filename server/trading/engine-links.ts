/**
 * The gateway's ends of the rings: writes commands, hands them over to the engine threads, and reads what they committed.
 * Commands go over sixteen at a time or when `publish` is called; those of a chain go over together. Knows no orders.
 */

import { MAX_CHAIN_COMMANDS } from "../../engine/limits.ts";
import * as R from "../../engine/ring/records.ts";
import type { RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Timeline } from "../util/timeline.ts";

export interface EngineLink {
  readonly commands: RingProducer;
  readonly events: RingConsumer;
  readonly waker: Waker;
}

const RESERVED_COMMANDS = 1024;
/** Commands after which the engine gets what there is without waiting for the turn's end, so that both work at once. */
const HANDOVER_COMMANDS = 16;
/** The same for the long lists of a start, where each wake-up of an engine that is done already costs 12 µs. */
const RESTORE_HANDOVER_COMMANDS = 2_048;

export class EngineLinks {
  readonly links: readonly EngineLink[];
  /** By link: the position up to which commands are handed over. */
  private readonly published: number[];
  private unpublished = 0;
  private handover = HANDOVER_COMMANDS;
  /** Commands of the chain at hand that are still to be written. */
  private chained = 0;
  /** By link: events that the turn at hand applies. */
  private readonly counts: number[] = [];

  private readonly reserved: number;
  private readonly timeline: Timeline;

  /** @param reserved records kept free in a command ring for what cannot be refused: cancels, expiries, market changes */
  constructor(links: readonly EngineLink[], timeline: Timeline, reserved = RESERVED_COMMANDS) {
    this.links = links;
    this.timeline = timeline;
    this.reserved = reserved;
    this.published = links.map((link) => link.commands.head);
  }

  of(marketId: number): EngineLink {
    return this.links[marketId % this.links.length]!;
  }

  /** True when so many commands can be written that may be refused. */
  hasRoom(link: EngineLink, count = 1): boolean {
    return link.commands.hasRoom(this.reserved + count);
  }

  /** True when a command can be written that cannot be refused. */
  hasReservedRoom(link: EngineLink): boolean {
    return link.commands.hasRoom(2);
  }

  /** True when every ring has room for what may be refused. */
  get haveRoom(): boolean {
    return this.links.every((link) => this.hasRoom(link));
  }

  /**
   * The next `count` commands, of one market and written in this turn, are a chain: one batch of the engine, one commit.
   * The caller has asked for the room.
   */
  beginChain(count: number): void {
    assert(this.chained === 0 && count <= MAX_CHAIN_COMMANDS, "one chain at a time, no longer than the engine takes");
    this.chained = count;
  }

  /** Writes a command. @param at what the machine's clock says, ms: the command gets its time from the timeline */
  push(
    link: EngineLink,
    packed: number,
    slot: number,
    user: number,
    outcome: number,
    price: number,
    quantity: number,
    market: number,
    reference: number,
    orderId: number,
    at: number,
    expiresAt: number,
    validUntil: number,
  ): void {
    const ring = link.commands;
    const index = ring.head & ring.mask;
    const w = index * R.RECORD_WORDS;
    const d = index * R.RECORD_DOUBLES;
    const { words, doubles } = ring;
    words[w] = this.chained > 1 ? packed | R.FLAG_MORE : packed;
    words[w + R.W_SLOT] = slot;
    words[w + R.W_USER] = user;
    words[w + R.W_OUTCOME] = outcome;
    words[w + R.W_PRICE] = price;
    words[w + R.W_QUANTITY] = quantity;
    words[w + R.W_MARKET] = market;
    words[w + R.W_REFERENCE] = reference;
    doubles[d + R.D_ORDER_ID] = orderId;
    const time = this.timeline.stamp(at);
    doubles[d + R.D_AT] = time;
    doubles[d + R.D_EXPIRES_AT] = expiresAt;
    // The sender means the machine's clock: where that was set back, the engine compares with a later time.
    doubles[d + R.D_VALID_UNTIL] = validUntil === 0 ? 0 : validUntil + time - at;
    ring.head = (ring.head + 1) | 0;
    this.unpublished++;
    if (this.chained > 0 && --this.chained > 0) return;
    if (this.unpublished >= this.handover) this.publish();
  }

  /** While a start puts orders back commands go over in long rows. */
  setRestoring(isRestoring: boolean): void {
    this.handover = isRestoring ? RESTORE_HANDOVER_COMMANDS : HANDOVER_COMMANDS;
  }

  /** Hands over all that was written. */
  publish(): void {
    this.unpublished = 0;
    for (let i = 0; i < this.links.length; i++) {
      const { commands, waker } = this.links[i]!;
      if (commands.head === this.published[i]) continue;
      this.published[i] = commands.head;
      commands.publish();
      waker.wake();
    }
  }

  /** True when every command was carried out and all that came of it was applied: nothing is under way. */
  get areIdle(): boolean {
    // An engine publishes a command's events before it lets go of the command.
    return this.links.every(({ commands, events }) => commands.depth() === 0 && events.depth() === 0);
  }

  readonly hasEvents = (): boolean => this.links.some(({ events }) => events.available() > 0);

  /** By link: the position that its engine has filled events up to. All that is committed stands before it. */
  eventsPublished(): number[] {
    return this.links.map(({ events }) => events.published());
  }

  /** True when all events before these positions were given to `drain`'s `apply`. */
  haveApplied(positions: readonly number[]): boolean {
    return positions.every((position, i) => ((this.links[i]!.events.tail - position) | 0) >= 0);
  }

  /** Gives each committed event to `apply`, link by link; true when there was one. */
  drain(apply: (words: Int32Array, doubles: Float64Array, base: number) => void): boolean {
    let any = false;
    this.countCommitted();
    for (let i = 0; i < this.links.length; i++) {
      const count = this.counts[i]!;
      if (count === 0) continue;
      any = true;
      const { events, waker } = this.links[i]!;
      for (let n = 0; n < count; n++) {
        const index = (events.tail + n) & events.mask;
        apply(events.words, events.doubles, index * R.RECORD_WORDS);
      }
      events.tail = (events.tail + count) | 0;
      events.release();
      // An engine that waits for room has filled its ring; one that waits for commands shall sleep on.
      if (count > events.mask >> 3) waker.wake();
    }
    return any;
  }

  /**
   * Counts what each ring holds committed, as of one moment, into `counts`. The journal numbers order updates over all
   * rings, pass by pass, and opens the rings in turn: a ring that was looked at early could lack updates whose numbers
   * come before those of a ring looked at late. Two looks alike mean that all counts stood so between them.
   */
  private countCommitted(): void {
    const { links, counts } = this;
    for (let i = 0; i < links.length; i++) counts[i] = links[i]!.events.available();
    if (links.length === 1) return;
    for (let i = 0; i < links.length; i++) {
      const count = links[i]!.events.available();
      if (count === counts[i]) continue;
      counts[i] = count;
      i = -1;
    }
  }
}
