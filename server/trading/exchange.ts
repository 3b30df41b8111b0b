/**
 * The gateway's trading state and its turn: hands commands to the engine threads and applies what comes back committed.
 * Owns the live orders, the gateway's ledger and the markets' public state; what may enter is order-entry.ts's business.
 *
 * Nothing that a client sees comes from here before its commit: answers and pushes are made while committed events are
 * applied. For one order: 1. checks and hold (order-entry.ts)  2. command handed over, with fifteen others or at the end
 * of the turn (`pump`)  3. orderPlaced committed: the 202  4. its fills and end: ledger, public state, `order.updated`.
 */

import { matchFeesMicro } from "../../engine/book/match-fees.ts";
import {
  isFinal,
  OrderStatus,
  OrderType,
  Reason,
  Role,
  restingTimeInForce,
  Side,
  TimeInForce,
} from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import { ANSWER_DEADLINE_MS, MAX_LIVE_WALKED, MICRO_PER_SHARE } from "../../engine/limits.ts";
import type { LiveOrderRow } from "../../engine/projection/load/orders.ts";
import * as R from "../../engine/ring/records.ts";
import { assert } from "../../engine/util/assert.ts";
import { MinHeap } from "../../engine/util/min-heap.ts";
import { withIndex } from "../../engine/util/typed-arrays.ts";
import { ApiError, ErrorKind, outcomeUnknown, overloaded } from "../errors.ts";
import type { Level } from "../markets/depth.ts";
import { isProposed, isTradable, type MarketRegistry } from "../markets/registry.ts";
import { tradeJson } from "../markets/trade-json.ts";
import type { Market, Outcome, Trade } from "../markets/types.ts";
import type { Counters } from "../util/counters.ts";
import type { Timeline } from "../util/timeline.ts";
import { BulkCancels } from "./bulk-cancels.ts";
import type { ClientOrderIds } from "./client-order-ids.ts";
import { type EngineLink, EngineLinks } from "./engine-links.ts";
import type { GatewayLoop } from "./gateway-loop.ts";
import { Holds } from "./holds.ts";
import { fillJson, liveOrderJson, orderJson, withTimestamps } from "./order-json.ts";
import { IN_FLIGHT, MARK_ENDING, MARK_TIMESTAMPS, type OrderStore } from "./order-store.ts";
import type { OrderTimes } from "./order-times.ts";
import { OrderedReadQueue } from "./ordered-reads.ts";
import { PendingReplies } from "./pending-replies.ts";
import { RecentlyEndedOrders } from "./recently-ended-orders.ts";
import type { Answer, ExchangeListener } from "./types.ts";

/**
 * Turns of the event loop that look for committed events before the gateway parks: a turn costs a microsecond or two,
 * a wake-up 25 to 40, and a gateway that spins on takes the core that the engine or the client needs.
 */
const SPIN_TURNS = 20;
/** Expiries of ended orders that are kept before they are swept out, beside as many as there are live orders twice. */
const ENDED_EXPIRIES = 10_000;

/** A settlement goes on so long at a time, and until so many must be told; it looks at the clock after so many holders. */
const SETTLING_SLICE_MS = 5;
const MAX_TOLD_PER_SLICE = 128;
const HOLDERS_PER_CLOCK_LOOK = 64;

export interface ExchangeOptions {
  readonly links: readonly EngineLink[];
  readonly loop: GatewayLoop;
  readonly store: OrderStore;
  readonly ledger: Ledger;
  readonly registry: MarketRegistry;
  readonly clientOrderIds: ClientOrderIds;
  readonly lastOrderId: number;
  /** The last number of each user's order updates. */
  readonly userSequences: readonly (readonly [userId: number, sequence: number])[];
  readonly counters: Counters;
  readonly times: OrderTimes;
  readonly timeline: Timeline;
  /** Records of a command ring that are kept for what cannot be refused. */
  readonly reservedCommands?: number;
}

/** When an order is due. */
interface Expiry {
  readonly at: number;
  readonly slot: number;
  readonly orderId: number;
}

export class Exchange {
  readonly store: OrderStore;
  readonly ledger: Ledger;
  readonly registry: MarketRegistry;
  readonly clientOrderIds: ClientOrderIds;
  readonly links: EngineLinks;
  readonly counters: Counters;
  readonly times: OrderTimes;
  readonly timeline: Timeline;
  readonly holds: Holds;
  readonly waiting = new PendingReplies();
  readonly cancels: BulkCancels;
  readonly reads: OrderedReadQueue;
  readonly ended = new RecentlyEndedOrders();
  /** When gtd orders expire. Orders that ended meanwhile stay until their time or the next sweep. */
  readonly expiries = new MinHeap<Expiry>();
  private audience: ExchangeListener | null = null;
  private readonly loop: GatewayLoop;
  private lastOrderId: number;
  /** By user: the last number of its order updates. */
  private userSequences = new Float64Array(1024);

  /** By slot of an order in flight: where its answer waits. */
  private readonly placements: Int32Array;
  /** Fills of the command at hand's taker, JSON texts, until its order.updated. */
  private takerFills = "";
  private readonly changedUsers = new Map<number, Set<number>>();
  /** Called once what the turn at hand applies is told. */
  private readonly afterwards: (() => void)[] = [];
  /** The last of those who wait for room in a ring. */
  private waitingForRoom: Promise<void> | null = null;
  private pumping = false;
  private spin = SPIN_TURNS;
  private parked = false;
  private refusing: ApiError | null = null;
  /** The latest time of what was applied, ms. */
  private appliedAt: number;
  /** With several links: order updates of the turn at hand. */
  private readonly updates: { user: number; sequence: number; at: number; json: string }[] = [];

  constructor(options: ExchangeOptions) {
    this.timeline = options.timeline;
    this.links = new EngineLinks(options.links, options.timeline, options.reservedCommands);
    this.loop = options.loop;
    this.appliedAt = this.time();
    this.store = options.store;
    this.placements = new Int32Array(this.store.capacity + 1);
    this.ledger = options.ledger;
    this.registry = options.registry;
    this.clientOrderIds = options.clientOrderIds;
    this.lastOrderId = options.lastOrderId;
    for (const [userId, sequence] of options.userSequences) this.setUserSequence(userId, sequence);
    this.counters = options.counters;
    this.times = options.times;
    this.holds = new Holds(this.store, this.ledger);
    this.cancels = new BulkCancels(this.store, (slot, reason, reference) => {
      if (!this.links.hasReservedRoom(this.links.of(this.store.markets[slot]!))) return false;
      this.pushCancel(slot, reason, reference, this.loop.now());
      return true;
    });
    this.reads = new OrderedReadQueue(this.links, (userId, callback) => {
      if (this.audience === null) callback();
      else this.audience.afterMessages(userId, callback);
    });
    this.park();
  }

  setAudience(audience: ExchangeListener): void {
    this.audience = audience;
  }

  /** Answers still owed. */
  get pendingCount(): number {
    return this.waiting.size;
  }

  /** What every trading request is refused with, null while there is trading. */
  get refusal(): ApiError | null {
    return this.refusing;
  }

  /** Every trading request is refused with this from now on (null: trading goes on). */
  refuse(error: ApiError | null): void {
    this.refusing = error;
  }

  /**
   * The journal failed: answers what it had committed before, and all else that is pending with an error that must not
   * say that nothing was done.
   */
  failPending(error: ApiError): void {
    this.drain();
    this.cancels.clear();
    this.reads.end();
    for (const answer of this.waiting.takeOverdue(Number.POSITIVE_INFINITY)) answer.error(error);
  }

  /** The time for what goes on record now, ms. */
  time(): number {
    return this.timeline.stamp(this.loop.now());
  }

  /**
   * The time up to which everything was told, ms: now where nothing is under way, else that of the last event applied. No
   * order update to come has an earlier one.
   */
  toldUntil(): number {
    if (this.links.areIdle) this.appliedAt = this.time();
    return this.appliedAt;
  }

  /** The last number of the user's order updates. */
  userSequence(userId: number): number {
    return this.userSequences[userId] ?? 0;
  }

  private setUserSequence(userId: number, sequence: number): void {
    this.userSequences = withIndex(this.userSequences, userId);
    this.userSequences[userId] = sequence;
  }

  /** What the user is told from now on waits until the function that this answers is called. */
  holdBack(userId: number): () => void {
    return this.audience?.holdBack(userId) ?? nothing;
  }

  /** Calls back once what is being applied now is applied and told. */
  afterTurn(callback: () => void): void {
    this.afterwards.push(callback);
    this.schedule();
  }

  // ---------------------------------------------------------------- commands

  /** True when an order may have this id. */
  hasGiven(orderId: number): boolean {
    return orderId <= this.lastOrderId;
  }

  /** A number above all orders and priorities before it. */
  nextOrderId(): number {
    return ++this.lastOrderId;
  }

  /** Lets `answer` wait for an event that brings the place's number back. */
  expect(answer: Answer, now: number): number {
    return this.waiting.add(answer, now + ANSWER_DEADLINE_MS);
  }

  /** Lets `answer` wait for the commit of the order in `slot`, whose command was just written. */
  awaitPlacement(slot: number, answer: Answer, now: number): void {
    this.placements[slot] = this.expect(answer, now);
    this.schedule();
  }

  /** Lets `answer` wait beside the one that the order in flight already has. */
  joinPlacement(slot: number, answer: Answer, now: number): void {
    const place = this.placements[slot]!;
    const first = this.waiting.get(place);
    if (first === null) {
      // It isn't durable, and whoever waited for it was told to come back.
      if (this.refusing !== null) throw this.refusing;
      this.waiting.replace(place, answer, now + ANSWER_DEADLINE_MS);
      return;
    }
    this.waiting.replace(place, {
      data(json) {
        first.data(json);
        answer.data(json);
      },
      error(error) {
        first.error(error);
        answer.error(error);
      },
    });
  }

  /** Writes a placement or restoration of the order in `slot`. */
  pushOrder(
    link: EngineLink,
    packed: number,
    slot: number,
    quantity: number,
    reference: number,
    expiresAt: number,
    validUntil: number,
    at: number,
  ): void {
    const { store } = this;
    this.links.push(
      link,
      packed,
      slot,
      store.users[slot]!,
      store.outcomes[slot]!,
      store.prices[slot]!,
      quantity,
      store.markets[slot]!,
      reference,
      store.ids[slot]!,
      at,
      expiresAt,
      validUntil,
    );
  }

  /** Writes a cancel of the order in `slot`. The caller has seen that there is room. */
  pushCancel(slot: number, reason: number, reference: number, now: number): void {
    const { store, links } = this;
    store.marks[slot]! |= MARK_ENDING;
    const packed = R.packCancel(R.CommandKind.cancelOrder, 0, reason);
    const market = store.markets[slot]!;
    links.push(
      links.of(market), packed, slot, store.users[slot]!, store.outcomes[slot]!, 0, 0, market, reference,
      store.ids[slot]!, now, 0, 0,
    ); // biome-ignore format: one record
    this.schedule();
  }

  /** Takes a committed deposit into the gateway's ledger. */
  deposited(userId: number, amount: number): void {
    this.ledger.deposit(userId, amount);
    this.tellBalance(userId);
  }

  /** Holds what a withdrawal asks for, or gives it back. The caller has seen that it is available. */
  setAside(userId: number, amount: number): void {
    this.ledger.hold(userId, amount);
    this.tellBalance(userId);
  }

  giveBack(userId: number, amount: number): void {
    this.ledger.release(userId, amount);
    this.tellBalance(userId);
  }

  /** Takes a committed payment of a withdrawal into the gateway's ledger. */
  withdrew(userId: number, amount: number): void {
    this.ledger.release(userId, amount);
    this.ledger.withdraw(userId, amount);
    this.tellBalance(userId);
  }

  private tellBalance(userId: number): void {
    this.changed(userId, 0);
    this.endBatch();
  }

  /**
   * Takes a committed settlement in, some holders at a time so that the thread can do other things in between: each is
   * told of the money and the positions, then everybody of the market.
   */
  async settle(
    market: Market,
    status: number,
    resolution: NonNullable<Market["resolution"]>,
    users: Int32Array,
    outcomes: Int32Array,
  ): Promise<void> {
    for (let next = 0; next < users.length; ) {
      const until = this.loop.elapsed() + SETTLING_SLICE_MS;
      while (next < users.length && this.changedUsers.size < MAX_TOLD_PER_SLICE) {
        const user = users[next]!;
        const outcome = outcomes[next]!;
        this.ledger.settle(
          this.ledger.findPosition(user, outcome),
          resolution.payouts[outcome - market.firstOutcomeId]!,
        );
        this.changed(user, outcome);
        next++;
        if (next % HOLDERS_PER_CLOCK_LOOK === 0 && this.loop.elapsed() > until) break;
      }
      this.endBatch();
      await this.turnEnd();
    }
    this.ledger.endSets(market.id);
    market.resolution = resolution;
    market.isSettling = false;
    this.registry.setStatus(market, status);
    this.tellMarket(market);
  }

  /** What the market is by now, told to those who listen. */
  private tellMarket(market: Market): void {
    this.audience?.marketChanged(market);
    this.audience?.endBatch();
  }

  /** Has the market's engine told of it by `run`: at once, or where its ring is full when there is room. */
  whenRoom(marketId: number, run: () => void): Promise<void> | undefined {
    if (this.waitingForRoom === null && this.links.hasReservedRoom(this.links.of(marketId))) return void run();
    // Behind those that wait already: markets are kept in the order in which they were made.
    const waiting = (this.waitingForRoom ?? Promise.resolve()).then(() => this.roomForCommands()).then(run);
    this.waitingForRoom = waiting;
    return waiting.then(() => {
      if (this.waitingForRoom === waiting) this.waitingForRoom = null;
    });
  }

  /** Takes a market's new texts or end in, and tells of them where it was told of the market. */
  describe(market: Market, changes: Parameters<MarketRegistry["describe"]>[1]): void {
    this.registry.describe(market, changes);
    if (!isProposed(market)) this.tellMarket(market);
  }

  /** Takes a market in that was just made, or whose trading begins. */
  marketCreated(market: Market): void {
    // Proposals are found by their status, and shown nowhere else.
    if (!isTradable(market)) return;
    this.openMarket(market);
    this.tellMarket(market);
  }

  /** Tells the market's engine thread that it exists. At start, and when one is made. */
  openMarket(market: Market): void {
    const kind = R.packCancel(R.CommandKind.openMarket, 0, 0);
    const { id, firstOutcomeId, outcomes } = market;
    this.links.push(this.links.of(id), kind, 0, 0, firstOutcomeId, 0, outcomes.length, id, 0, 0, 0, 0, 0);
    this.schedule();
  }

  /**
   * Halts, resumes or closes a market; `answer` gets an empty object once it is durable.
   * @param begin called once nothing can refuse it any more, before it is done @throws ApiError
   */
  changeMarket(
    market: Market,
    kind: "halt" | "resume" | "close",
    now: number,
    answer: Answer,
    begin: () => void = nothing,
  ): void {
    const kinds = {
      halt: R.CommandKind.haltMarket,
      resume: R.CommandKind.resumeMarket,
      close: R.CommandKind.closeMarket,
    };
    const link = this.links.of(market.id);
    if (!this.links.hasReservedRoom(link)) throw overloaded("too many commands in flight: try again");
    // From here it must succeed.
    begin();
    const reference = this.expect(answer, now);
    this.links.push(link, R.packCancel(kinds[kind], 0, 0), 0, 0, 0, 0, 0, market.id, reference, 0, now, 0, 0);
    this.schedule();
  }

  /** Tells the engines to end once all before it is done. */
  stopEngines(): void {
    for (const link of this.links.links) {
      this.links.push(link, R.packCancel(R.CommandKind.stop, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }
    this.links.publish();
  }

  // ---------------------------------------------------------------- recovery

  /**
   * Puts a live order of the database back: slot, hold, activity and its place in the book. False: the ring is full.
   * @param firstNamed from this id on the client order ids of the last 24 hours come by themselves
   */
  restore(row: LiveOrderRow, firstNamed: number): boolean {
    const [id, user, outcome, side, type, tif, stp, postOnly, pat, price, quantity, remaining, status, ...rest] = row;
    const [expiresAt, clientOrderId, createdAt, updatedAt, fingerprint, builderCode, quote, tied, priority] = rest;
    const market = this.registry.ofOutcome(outcome)!;
    const link = this.links.of(market.id);
    if (!this.links.hasReservedRoom(link)) return false;
    const { store } = this;
    this.links.setRestoring(true);
    const flags =
      (postOnly === 1 ? R.FLAG_POST_ONLY : 0) |
      (pat === 1 ? R.FLAG_PAT : 0) |
      (quote === 1 ? R.FLAG_QUOTE : 0) |
      (tied === 1 ? R.FLAG_CANCEL_ON_DISCONNECT : 0) |
      (clientOrderId === null && builderCode === null ? 0 : R.FLAG_TEXT);
    const slot = store.take({
      id,
      user,
      market: market.id,
      outcome,
      price,
      quantity,
      remaining,
      packed: R.packCommand(R.CommandKind.placeOrder, side, type, tif, stp, flags),
      status,
      connection: 0,
      expiresAt: expiresAt ?? 0,
      createdAt,
      updatedAt,
    });
    if ((flags & R.FLAG_TEXT) !== 0) store.texts.write(slot, clientOrderId, builderCode, fingerprint ?? 0);
    if (clientOrderId !== null && (id < firstNamed || this.clientOrderIds.isForgotten(createdAt))) {
      this.clientOrderIds.add(user, clientOrderId, id, createdAt);
    }
    this.lastOrderId = Math.max(this.lastOrderId, priority ?? 0);
    const before = this.newestRestored.get(market.id);
    if (before !== undefined) this.pushRestored(before, 0);
    this.newestRestored.set(market.id, slot);
    if (tif === TimeInForce.gtd) this.expiries.add({ at: expiresAt!, slot, orderId: id });
    this.restored.push(slot);
    return true;
  }

  private restored: number[] = [];
  /** By market: the order that entered its books last, whose command waits until it is linked and has its hold. */
  private readonly newestRestored = new Map<number, number>();

  /** Writes the restoration of the order in `slot`. */
  private pushRestored(slot: number, flags: number): void {
    const { store } = this;
    const link = this.links.of(store.markets[slot]!);
    const packed = R.withKind(store.packed[slot]!, R.CommandKind.restoreOrder) | flags;
    const [remaining, quantity] = [store.remaining[slot]!, store.quantities[slot]!];
    this.pushOrder(link, packed, slot, remaining, quantity, store.expiresAt[slot]!, 0, store.updatedAt[slot]!);
  }

  /**
   * Links restored orders to their users, in the order of their ids, and ends those that a crash interrupted: what is left
   * of an order in the middle of its matching, and what was tied to a connection. Of a market's orders only the last one
   * can have been in the middle of its matching; where what rests would match it, the engine ends it.
   */
  async endRestore(): Promise<void> {
    this.links.setRestoring(false);
    const { ids, statuses, packed } = this.store;
    this.restored.sort((a, b) => ids[a]! - ids[b]!);
    for (const slot of this.restored) {
      this.store.link(slot);
      this.holds.hold(slot);
    }
    for (const slot of this.newestRestored.values()) {
      await this.roomForCommands();
      this.pushRestored(slot, R.FLAG_LAST);
    }
    this.newestRestored.clear();
    const mayRest = (slot: number): boolean =>
      R.typeOf(packed[slot]!) === OrderType.limit && R.timeInForceOf(packed[slot]!) <= TimeInForce.gtd;
    const isLive = (slot: number): boolean => ids[slot] !== 0;
    this.restored = this.restored.filter(isLive);
    const interrupted = this.restored.filter((slot) => statuses[slot] === OrderStatus.queued || !mayRest(slot));
    const tied = this.restored.filter((slot) => (packed[slot]! & R.FLAG_CANCEL_ON_DISCONNECT) !== 0);
    this.restored = [];
    this.cancels.add(interrupted, Reason.operator, null);
    this.cancels.add(tied, Reason.cancelOnDisconnect, null);
    await this.cancelsDone();
  }

  /** Resolves when all cancels are handed over. */
  async cancelsDone(): Promise<void> {
    while (this.cancels.isBusy) {
      this.schedule();
      await this.turnEnd();
    }
  }

  /** Resolves when every command ring has room again; for the long lists of a start. */
  async roomForCommands(): Promise<void> {
    while (!this.links.haveRoom) {
      this.schedule();
      await this.turnEnd();
    }
  }

  /** Resolves when every command sent so far has come back committed and was applied. */
  async settled(): Promise<void> {
    await this.roomForCommands();
    await Promise.all(
      this.links.links.map(
        (link) =>
          new Promise<void>((resolve) => {
            const answer: Answer = { data: () => resolve(), error: () => resolve() };
            // A cancel of no order is always refused, and so comes back behind everything else.
            const reference = this.expect(answer, Number.MAX_SAFE_INTEGER - ANSWER_DEADLINE_MS);
            const packed = R.packCancel(R.CommandKind.cancelOrder, 0, 0);
            this.links.push(link, packed, 0, 0, 0, 0, 0, 0, reference, 0, 0, 0, 0);
            this.schedule();
          }),
      ),
    );
  }

  // ---------------------------------------------------------------- the turn

  /** Expires what is due and gives up on answers that wait too long. Called each few hundred milliseconds. */
  tick(now: number): void {
    // An order that ended early waits for a time that its sender chose: such ones must not pile up.
    if (this.expiries.size > 2 * this.store.liveCount + ENDED_EXPIRIES) {
      this.expiries.keep((expiry) => this.counts(expiry));
    }
    this.expireDue(now);
    this.registry.implied.tell(this.elapsed);
    this.reads.expire(now);
    this.clientOrderIds.expire(now, (orderId) => this.store.find(orderId) !== 0);
    for (const answer of this.waiting.takeOverdue(now)) {
      answer.error(outcomeUnknown("the exchange is slow"));
    }
  }

  /** Cancels each order whose time is over. Before any command that could match it, so that none trades late. */
  expireDue(now: number): void {
    for (let next = this.expiries.peek(); next !== undefined && next.at <= now; next = this.expiries.peek()) {
      const { slot } = next;
      if (this.counts(next)) {
        // With a full ring the rest expires at the next tick; until then placements are refused, cancels are not.
        if (!this.links.hasRoom(this.links.of(this.store.markets[slot]!))) return;
        this.pushCancel(slot, Reason.expired, 0, now);
      }
      this.expiries.pop();
    }
  }

  /** False where the order has ended, or its end was put off. */
  private counts({ at, slot, orderId }: Expiry): boolean {
    return this.store.ids[slot] === orderId && this.store.expiresAt[slot] === at;
  }

  /** Resolves in a later turn. */
  private turnEnd(): Promise<void> {
    return new Promise((resolve) => this.loop.soon(resolve));
  }

  /** Hands commands over at the end of this turn of the event loop, with whatever else arrives in it. */
  schedule(): void {
    if (this.pumping) return;
    this.pumping = true;
    this.loop.soon(this.pump);
  }

  /** One turn: hand commands over, apply what was committed; again at once while answers are owed. */
  private readonly pump = (): void => {
    this.cancels.advance();
    this.links.publish();
    this.drain();
    if (this.pendingCount > 0 && this.spin-- > 0) {
      this.loop.soon(this.pump);
      return;
    }
    this.spin = SPIN_TURNS;
    this.pumping = false;
    this.cancels.advance();
    this.links.publish();
    this.park();
  };

  /** Sleeps until events come that nobody waits for (expiries, what another turn's end missed). One sleep at a time. */
  private park(): void {
    if (this.parked) return;
    this.parked = true;
    this.loop.sleep(this.links.hasEvents, () => {
      this.parked = false;
      if (this.pumping) return;
      this.drain();
      if (this.cancels.isBusy) this.schedule();
      if (!this.pumping) this.park();
    });
  }

  /** Applies all committed events. */
  private drain(): void {
    if (this.links.drain(this.apply)) {
      this.endBatch();
      this.reads.advance();
    }
    if (this.afterwards.length === 0) return;
    for (const callback of this.afterwards.splice(0)) callback();
    this.audience?.endBatch();
  }

  private endBatch(): void {
    const { audience } = this;
    this.registry.drainChanges(this.time(), this.tellBook);
    this.registry.implied.tell(this.elapsed);
    if (this.updates.length > 0) this.tellUpdates();
    if (this.changedUsers.size > 0) {
      const at = this.toldUntil();
      for (const [user, outcomes] of this.changedUsers) {
        audience?.accountChanged(user, this.userSequence(user), at, outcomes);
      }
      this.changedUsers.clear();
    }
    audience?.endBatch();
  }

  private readonly elapsed = (): number => this.loop.elapsed();

  private readonly tellBook = (outcome: Outcome, sequence: number, bids: Level[], asks: Level[]): void => {
    this.audience?.bookUpdated(this.registry.ofOutcome(outcome.id)!, outcome, sequence, bids, asks);
  };

  /** Tells what several rings brought in the order of its numbers. */
  private tellUpdates(): void {
    this.updates.sort((a, b) => a.sequence - b.sequence);
    for (const { user, sequence, at, json } of this.updates) this.audience?.orderUpdated(user, sequence, at, json);
    this.updates.length = 0;
  }

  // ---------------------------------------------------------------- committed events

  private readonly apply = (words: Int32Array, doubles: Float64Array, w: number): void => {
    const packed = words[w]!;
    switch (R.kindOf(packed)) {
      case R.EventKind.levelChanged: {
        const detail = doubles[(w >> 1) + R.D_DETAIL]!;
        return this.registry.setLevel(words[w + R.W_OUTCOME]!, R.sideOf(packed), words[w + R.W_PRICE]!, detail);
      }
      case R.EventKind.batchMatched:
        return this.times.beginBatch(doubles, w);
      case R.EventKind.orderPlaced:
        return this.orderPlaced(words, doubles, w);
      case R.EventKind.orderFilled:
        return this.orderFilled(words, doubles, w);
      case R.EventKind.orderCanceled:
        return this.orderCanceled(words, doubles, w);
      case R.EventKind.orderReduced:
      case R.EventKind.orderAmended:
        return this.orderChanged(words, doubles, w);
      case R.EventKind.cancelRefused:
        return this.cancelRefused(words[w + R.W_REFERENCE]!);
      case R.EventKind.amendRefused:
        return this.amendRefused(words, doubles, w);
      case R.EventKind.marketChanged: {
        const market = this.registry.get(words[w + R.W_SLOT]!)!;
        this.registry.setStatus(market, R.statusOf(packed));
        this.audience?.marketChanged(market);
        return this.waiting.take(words[w + R.W_REFERENCE]!)?.data("{}");
      }
      case R.EventKind.setsSplit:
      case R.EventKind.setsMerged:
        return this.setsChanged(words, doubles, w);
      case R.EventKind.stopped:
        return;
      default:
        assert(false, "the gateway knows every event kind");
    }
  };

  private orderPlaced(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store } = this;
    const slot = words[w + R.W_SLOT]!;
    const status = R.statusOf(words[w]!);
    this.takerFills = "";
    store.statuses[slot] = OrderStatus.queued;
    // One that replaces another may have become smaller on its way.
    store.quantities[slot] = words[w + R.W_QUANTITY]!;
    store.remaining[slot] = words[w + R.W_REMAINING]!;
    if (!isFinal(status)) this.holds.settleChange(slot);
    this.waiting.take(this.placements[slot]!)?.data(liveOrderJson(store, slot));
    this.placements[slot] = 0;
    this.counters.orders++;
    this.times.observe(slot);
    const sells = R.sideOf(words[w]!) === Side.sell;
    this.changed(store.users[slot]!, sells ? store.outcomes[slot]! : 0);
    if (status === OrderStatus.queued) return;
    this.setState(slot, status, R.reasonOf(words[w]!), words[w + R.W_REMAINING]!, doubles, w, "");
  }

  private orderFilled(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, ledger } = this;
    const d = w >> 1;
    const packed = words[w]!;
    const slot = words[w + R.W_SLOT]!;
    const user = words[w + R.W_USER]!;
    const outcome = words[w + R.W_OUTCOME]!;
    const price = words[w + R.W_PRICE]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const at = doubles[d + R.D_AT]!;
    const id = doubles[d + R.D_FILL_ID]!;
    const reference = words[w + R.W_REFERENCE]!;
    const matchId = id - R.legOf(reference);
    const role = R.roleOf(packed);
    const side = R.sideOf(packed);
    const matchType = R.matchTypeOf(packed);
    const ends = (packed & R.FLAG_MATCH_END) !== 0;
    const market = store.markets[slot]!;
    this.holds.releasePart(slot, quantity);
    const pat = (packed & R.FLAG_PAT) !== 0;
    if (R.legOf(reference) === 0) ledger.beginMatch(matchFeesMicro(words, w));
    ledger.fill(user, market, outcome, side, price, quantity, matchType, role, pat, ends, at, R.ratesOf(reference));
    this.changed(user, outcome);
    this.counters.fills++;
    if (ends) this.traded({ outcomeId: outcome, side, price, quantity, matchType, matchId, fillId: id, at });
    const updates = role === Role.maker || (packed & R.FLAG_UPDATE_END) !== 0;
    const listens = this.audience?.listens(user) === true;
    const fill = listens
      ? fillJson(id, matchId, price, quantity, role, matchType, ledger.lastFee, ledger.lastRebate, at)
      : "";
    let trades = fill;
    if (role === Role.taker) {
      this.takerFills = this.takerFills === "" ? fill : `${this.takerFills},${fill}`;
      trades = this.takerFills;
    }
    const remaining = words[w + R.W_REMAINING]!;
    store.remaining[slot] = remaining;
    if (!updates) return;
    if (role === Role.taker) this.takerFills = "";
    this.setState(slot, R.statusOf(packed), Reason.none, remaining, doubles, w, trades);
  }

  private traded(trade: Trade): void {
    const market = this.registry.recordTrade(trade);
    const sequence = ++market.tradeSequence;
    this.counters.trades++;
    if (!market.isWatched) return;
    this.audience?.tradeCreated(market, sequence, trade.at, tradeJson(market.id, trade));
  }

  private orderCanceled(words: Int32Array, doubles: Float64Array, w: number): void {
    const slot = words[w + R.W_SLOT]!;
    const reference = words[w + R.W_REFERENCE]!;
    const { store } = this;
    if (reference < 0) this.cancels.settle(reference, store.ids[slot]!);
    else if (reference > 0) this.waiting.take(reference)?.data(liveOrderJson(store, slot));
    this.changed(store.users[slot]!, R.sideOf(store.packed[slot]!) === Side.sell ? store.outcomes[slot]! : 0);
    const packed = words[w]!;
    this.setState(slot, R.statusOf(packed), R.reasonOf(packed), words[w + R.W_REMAINING]!, doubles, w, "");
  }

  private cancelRefused(reference: number): void {
    if (reference < 0) this.cancels.settle(reference, null);
    else this.waiting.take(reference)?.error(orderFinished());
  }

  /** A decrement or an amend: price, total and what remains may all be new, and holds with them. */
  private orderChanged(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, holds } = this;
    const slot = words[w + R.W_SLOT]!;
    const packed = words[w]!;
    const isAmend = R.kindOf(packed) === R.EventKind.orderAmended;
    const before = store.remaining[slot]!;
    const remaining = words[w + R.W_REMAINING]!;
    const reference = words[w + R.W_REFERENCE]!;
    if (!isAmend) holds.reduce(slot, before - remaining);
    store.quantities[slot] = words[w + R.W_QUANTITY]!;
    store.remaining[slot] = remaining;
    if (isAmend && (packed & R.FLAG_EXTENDS) !== 0) this.setExpiry(slot, doubles[(w >> 1) + R.D_DETAIL]!);
    else if (isAmend) {
      store.prices[slot] = words[w + R.W_PRICE]!;
      // Without a reference it tells where the amended order came to rest after it lost a part to a self-trade.
      if (reference !== 0) holds.settleChange(slot);
    }
    this.changed(store.users[slot]!, R.sideOf(store.packed[slot]!) === Side.sell ? store.outcomes[slot]! : 0);
    const answer = this.waiting.take(reference);
    if (!isAmend && R.roleOf(packed) === Role.taker) return;
    const status = R.statusOf(packed);
    const at = doubles[(w >> 1) + R.D_AT]!;
    answer?.data(orderJson(store, slot, status, Reason.none, remaining, at, ""));
    this.setState(slot, status, Reason.none, remaining, doubles, w, "");
  }

  /** An order's end in time is new; 0: it has none. */
  private setExpiry(slot: number, expiresAt: number): void {
    const { store } = this;
    store.expiresAt[slot] = expiresAt;
    store.packed[slot] = R.withTimeInForce(store.packed[slot]!, restingTimeInForce(expiresAt));
    if (expiresAt > 0) this.expiries.add({ at: expiresAt, slot, orderId: store.ids[slot]! });
  }

  /** Writes a new end in time of the order in `slot`, 0 for none; `answer` gets the order with it. */
  pushExpiry(link: EngineLink, slot: number, expiresAt: number, answer: Answer, now: number): void {
    const { store, links } = this;
    const packed = R.packCancel(R.CommandKind.amendOrder, 0, 0) | R.FLAG_EXTENDS;
    const reference = this.expect(answer, now);
    links.push(
      link, packed, slot, store.users[slot]!, store.outcomes[slot]!, 0, 0, store.markets[slot]!, reference,
      store.ids[slot]!, now, expiresAt, 0,
    ); // biome-ignore format: one record
    this.schedule();
  }

  private amendRefused(words: Int32Array, doubles: Float64Array, w: number): void {
    const slot = words[w + R.W_SLOT]!;
    const reason = R.reasonOf(words[w]!);
    // The slot may be another order's by now.
    if (this.store.ids[slot] === doubles[(w >> 1) + R.D_ORDER_ID]) this.holds.settleChange(slot);
    this.waiting.take(words[w + R.W_REFERENCE]!)?.error(amendRefusal(reason));
  }

  private setsChanged(words: Int32Array, doubles: Float64Array, w: number): void {
    const user = words[w + R.W_USER]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const market = this.registry.get(words[w + R.W_SLOT]!)!;
    const { ledger } = this;
    const count = market.outcomes.length;
    let fee = 0;
    if (R.kindOf(words[w]!) === R.EventKind.setsSplit) {
      const amount = quantity * MICRO_PER_SHARE;
      ledger.release(user, amount);
      ledger.changeLiveActivity(user, -amount);
      ledger.split(user, market.id, market.firstOutcomeId, count, quantity, doubles[(w >> 1) + R.D_AT]!);
    } else {
      for (const { id } of market.outcomes) ledger.releaseShares(user, id, quantity);
      fee = ledger.merge(user, market.id, market.firstOutcomeId, count, quantity, words[w + R.W_PRICE]!);
    }
    for (const { id } of market.outcomes) this.changed(user, id);
    this.waiting.take(words[w + R.W_REFERENCE]!)?.data(setsJson(market.id, quantity, fee));
  }

  /** Takes an order's new state in, reports it, and forgets the order where the state is final. */
  private setState(
    slot: number,
    status: number,
    reason: number,
    remaining: number,
    doubles: Float64Array,
    w: number,
    trades: string,
  ): void {
    const { store } = this;
    const user = store.users[slot]!;
    const at = doubles[(w >> 1) + R.D_AT]!;
    if (at > this.appliedAt) this.appliedAt = at;
    const sequence = doubles[(w >> 1) + R.D_USER_SEQUENCE]!;
    store.statuses[slot] = status;
    store.remaining[slot] = remaining;
    store.updatedAt[slot] = at;
    this.counters.orderUpdates[status]!++;
    if (sequence > this.userSequence(user)) this.setUserSequence(user, sequence);
    if (this.audience?.listens(user) === true) {
      const plain = orderJson(store, slot, status, reason, remaining, at, trades);
      const isTimed = (store.marks[slot]! & MARK_TIMESTAMPS) !== 0;
      const json = isTimed ? withTimestamps(plain, this.times.json(slot)) : plain;
      if (this.links.links.length === 1) this.audience.orderUpdated(user, sequence, at, json);
      else this.updates.push({ user, sequence, at, json });
    }
    if (!isFinal(status)) return;
    // A change that is still on its way will find the order gone.
    this.holds.end(slot);
    this.ended.add(store.ids[slot]!, user);
    if (this.clientOrderIds.isForgotten(store.createdAt[slot]!)) {
      const clientOrderId = store.clientOrderId(slot);
      if (clientOrderId !== null) this.clientOrderIds.free(user, clientOrderId);
    }
    store.remove(slot);
  }

  /** Notes that a user's balance (and position in `outcome`, unless 0) changed, if anyone listens. */
  private changed(user: number, outcome: number): void {
    if (this.audience?.listens(user) !== true) return;
    let outcomes = this.changedUsers.get(user);
    if (outcomes === undefined) {
      outcomes = new Set();
      this.changedUsers.set(user, outcomes);
    }
    if (outcome !== 0) outcomes.add(outcome);
  }

  // ---------------------------------------------------------------- reading

  /** JSON texts of the user's active orders, newest first, from those with ids below `before`; of so many that it looks at. */
  activeOrders(
    userId: number,
    before: number,
    limit: number,
    wanted: (store: OrderStore, slot: number) => boolean,
  ): { items: string[]; next: number | null } {
    const { store } = this;
    const items: string[] = [];
    let last = 0;
    // Usually the order that the page before ended with is still there, and the list goes on behind it.
    const known = store.find(before);
    const start = known !== 0 && store.users[known] === userId ? store.olderOf(known) : store.newestOf(userId);
    let walked = 0;
    let lastWalked = 0;
    for (let slot = start; slot !== 0; slot = store.olderOf(slot)) {
      const id = store.ids[slot]!;
      if (id >= before) continue;
      if (++walked > MAX_LIVE_WALKED) return { items, next: lastWalked };
      lastWalked = id;
      if (store.statuses[slot] === IN_FLIGHT || !wanted(store, slot)) continue;
      if (items.length === limit) return { items, next: last };
      items.push(liveOrderJson(store, slot));
      last = id;
    }
    return { items, next: null };
  }
}

/** The answer to a split or merge. @param fee micro-USDC that it cost */
export function setsJson(marketId: number, quantity: number, fee: number): string {
  return `{"market_id":${marketId},"quantity":${quantity},"fee":${fee}}`;
}

const nothing = (): void => {};

/** Why the book left an order as it was. */
function amendRefusal(reason: number): ApiError {
  switch (reason) {
    case Reason.none:
      return orderFinished();
    case Reason.tooLate:
      return new ApiError(ErrorKind.conflict, "too_late: valid_until was over, the order is as it was");
    case Reason.postOnlyWouldCross:
      return new ApiError(ErrorKind.conflict, "post_only_would_cross: the post-only order is as it was");
    default:
      return new ApiError(
        ErrorKind.marketNotOpen,
        `the market is ${reason === Reason.marketHalted ? "halted" : "closed"}`,
      );
  }
}

/** A cancel or an amend of it comes too late. */
export function orderFinished(): ApiError {
  return new ApiError(ErrorKind.conflict, "the order is finished");
}
