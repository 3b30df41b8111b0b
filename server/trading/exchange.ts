/**
 * The gateway's trading state, as parts with one job each, wired together here. Order entry (order-entry.ts) decides what
 * may enter.
 *
 * One order: 1. `OrderEntry` checks it and holds what it needs  2. `writer` puts the command into its engine's ring  3. the
 * engine matches, the log commits  4. `turn` finds the committed events  5. `projection` applies them: 202 to the
 * client, ledger, book, `order.updated`  6. `users` and `markets` receive the updates.
 */
import type { Ledger } from "../../engine/ledger.ts";
import type { Clock } from "../../engine/util/clock.ts";
import { type ApiError, outcomeUnknown } from "../errors.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import { textReply } from "../orders/json-reply.ts";
import type { Counters } from "../util/counters.ts";
import type { Timeline } from "../util/timeline.ts";
import { TradingGate } from "../writes/trading-gate.ts";
import { BulkCancels } from "./bulk-cancels.ts";
import { Cash } from "./cash.ts";
import type { ClientOrderIds } from "./client-order-ids.ts";
import { CommandWriter } from "./command-writer.ts";
import { CommittedEvents } from "./committed-events.ts";
import { EventProjection } from "./event-projection.ts";
import { Holds } from "./holds.ts";
import { REPLY_DEADLINE_MS } from "./limits.ts";
import { MarketControl } from "./market-control.ts";
import { NO_USER_LISTENER } from "./no-listener.ts";
import { OrderExpiry } from "./order-expiry.ts";
import { MARK_ENDING, type OrderStore } from "./order-store.ts";
import type { OrderTimes } from "./order-times.ts";
import { OrderedReadQueue } from "./ordered-reads.ts";
import { PendingReplies } from "./pending-replies.ts";
import { RecentlyEndedOrders } from "./recently-ended-orders.ts";
import { Restore } from "./restore.ts";
import { Settlement } from "./settlement.ts";
import { TurnLoop, type TurnParts } from "./turn-loop.ts";
import type { EngineLink, GatewayLoop, MarketListener, UserListener } from "./types.ts";
import { UserUpdates } from "./user-updates.ts";

export interface ExchangeOptions {
  readonly links: readonly EngineLink[];
  readonly loop: GatewayLoop;
  /** Reads of the tables that wait for the projector. */
  readonly projected: TurnParts["projected"];
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
  /** Records of a command ring that are kept for what cannot be rejected. */
  readonly reservedCommands?: number;
}

/** Switches that end their users' orders, see `CancelTimers`. */
export interface DueSwitches {
  /** When the earliest may be due, ms; Infinity without one. */
  readonly nextAt: number;
  fireDue(now: number): void;
}

const NO_SWITCHES: DueSwitches = { nextAt: Number.POSITIVE_INFINITY, fireDue() {} };

export class Exchange {
  /** The rings between the gateway and each engine. */
  readonly links: readonly EngineLink[];
  readonly store: OrderStore;
  readonly ledger: Ledger;
  readonly registry: MarketRegistry;
  readonly clientOrderIds: ClientOrderIds;
  readonly counters: Counters;
  readonly times: OrderTimes;
  readonly timeline: Timeline;
  readonly holds: Holds;
  readonly pending: PendingReplies;
  readonly ended = new RecentlyEndedOrders();
  readonly writer: CommandWriter;
  readonly updates: UserUpdates;
  readonly cancels: BulkCancels;
  readonly expiry: OrderExpiry;
  readonly turn: TurnLoop;
  readonly reads: OrderedReadQueue;
  readonly cash: Cash;
  readonly markets: MarketControl;
  readonly settlement: Settlement;
  readonly restore: Restore;
  /** Receives users' messages; nobody until `listen`. */
  users: UserListener = NO_USER_LISTENER;
  readonly gate = new TradingGate();
  /** The dead man's switches; none until they are opened. */
  switches: DueSwitches = NO_SWITCHES;
  readonly clock: Clock;
  private readonly projection: EventProjection;

  constructor(options: ExchangeOptions) {
    const { links, loop, store, ledger, registry, clientOrderIds, counters, times, timeline } = options;
    this.links = links;
    this.store = store;
    this.ledger = ledger;
    this.registry = registry;
    this.clientOrderIds = clientOrderIds;
    this.counters = counters;
    this.times = times;
    this.timeline = timeline;
    this.clock = loop;
    store.raiseLastId(options.lastOrderId);
    const { ended } = this;

    // Commands: written into the rings, each with a correlation id where a client waits.
    const events = new CommittedEvents(links);
    this.writer = new CommandWriter(links, store, timeline, options.reservedCommands);
    this.pending = new PendingReplies(store.capacity);
    this.holds = new Holds(store, ledger);
    const { writer, pending, holds } = this;
    this.expiry = new OrderExpiry(store, writer, (slot, reason, now) => this.cancelOrder(slot, reason, 0, now));
    this.cancels = new BulkCancels(store, pending, (slot, reason, correlationId) => {
      if (!writer.hasReservedRoom(store.markets[slot]!)) return false;
      this.cancelOrder(slot, reason, correlationId, loop.now());
      return true;
    });
    const { expiry, cancels } = this;

    // Events: applied to memory, published to users and markets.
    this.updates = new UserUpdates(events, links.length, timeline, loop);
    this.reads = new OrderedReadQueue(events, (userId, callback) => this.users.afterMessages(userId, callback), loop);
    const { updates, reads } = this;
    for (const [userId, sequence] of options.userSequences) updates.setSequence(userId, sequence);
    const state = { store, holds, ledger, registry, clientOrderIds, ended, expiry };
    this.projection = new EventProjection({
      ...state,
      events,
      loop,
      pending,
      updates,
      reads,
      counters,
      times,
      timeline,
    });
    const { projection } = this;

    // The turn drives both.
    this.turn = new TurnLoop(loop, {
      ...{ writer, events, cancels, pending },
      projected: options.projected,
      projection,
      flush: () => this.users.endBatch(),
    });
    const { turn } = this;

    // What changes markets and money outside the books.
    this.markets = new MarketControl({ registry, writer, pending, turn });
    this.cash = new Cash(ledger, (userId) => {
      updates.accountChanged(userId, 0);
      projection.endBatch();
    });
    this.settlement = new Settlement({
      ...{ loop, turn, ledger, registry, updates },
      endBatch: () => projection.endBatch(),
      marketChanged: (market) => this.markets.publish(market),
    });
    this.restore = new Restore({ store, registry, clientOrderIds, writer, holds, expiry, cancels, turn });
  }

  /** Everything that happens from now on is published to these. */
  listen(users: UserListener, markets: MarketListener): void {
    this.users = users;
    for (const part of [this.updates, this.projection, this.markets]) part.listen(users, markets);
  }

  /** The time for what goes on record now, ms. */
  readonly time = (): number => this.timeline.stamp(this.clock.now());

  /** Writes a cancel of the order in `slot`. The caller has checked for room. */
  cancelOrder(slot: number, reason: number, correlationId: number, now: number): void {
    this.store.marks[slot]! |= MARK_ENDING;
    this.writer.cancelOrder({ slot, at: now, reason, correlationId });
    this.turn.schedule();
  }

  /**
   * Ends what is due by the clock: orders with an end, and those of users whose dead man's switch ran out. Called before
   * anything is admitted that could match them: after a pause of the machine, requests wait in front of its timers.
   */
  endDue(now: number): void {
    const { expiry, switches } = this;
    if (now >= expiry.nextAt) expiry.expireDue(now);
    if (now >= switches.nextAt) switches.fireDue(now);
  }

  /** The machine's clock was set: what waits for a reply waits as long as if it had begun now. */
  clockStepped(now: number): void {
    this.pending.restartDeadlines(now + REPLY_DEADLINE_MS);
  }

  /** Expires what is due and fails replies that wait too long. Called every few hundred milliseconds. */
  tick(now: number): void {
    const { expiry, registry, reads, clientOrderIds, store, pending } = this;
    expiry.sweep();
    this.endDue(now);
    if (registry.implied.dirty.length > 0) registry.implied.publish(() => this.clock.elapsed());
    reads.expire(now);
    clientOrderIds.expire(now, (orderId) => store.find(orderId) !== 0);
    for (const reply of pending.abandonOverdue(now)) reply.error(outcomeUnknown("the exchange is slow"));
  }

  /** Resolves once every command sent so far has come back committed and was applied. */
  async fence(): Promise<void> {
    const { turn, writer, pending } = this;
    await turn.room();
    const returned: Promise<void>[] = [];
    writer.probe(() => {
      let correlationId = 0;
      const deadline = Number.MAX_SAFE_INTEGER;
      returned.push(
        new Promise((resolve) => {
          correlationId = pending.expect(
            textReply(
              () => resolve(),
              () => resolve(),
            ),
            deadline,
          );
        }),
      );
      return correlationId;
    });
    turn.schedule();
    await Promise.all(returned);
  }

  /**
   * The log failed: sends the replies that it committed before, and fails all others with an error that must not say
   * that nothing was done.
   */
  failPending(error: ApiError): void {
    this.turn.drain();
    this.cancels.clear();
    this.reads.end();
    for (const reply of this.pending.abandonOverdue(Number.POSITIVE_INFINITY)) reply.error(error);
  }

  /** Ends the engine threads once everything before it is done. */
  stopEngines(): void {
    this.writer.stop();
  }
}
