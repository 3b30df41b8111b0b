/**
 * The gateway's side of trading: checks a placement, holds for it, hands the command to its engine thread, and applies
 * what comes back committed. Owns the live orders, the gateway's ledger and the markets' public state.
 *
 * Nothing that a client sees comes from here before its commit: answers and pushes are made while committed events are
 * applied. For one order: 1. checks and hold (`place`)  2. command published, with fifteen others or at the end of the
 * turn (`push`, `pump`)  3. orderPlaced committed: the 202  4. its fills and end: ledger, public state, `order.updated`.
 */
import { check } from "../engine/check.ts";
import {
  isFinal,
  OrderStatus,
  OrderType,
  Reason,
  Role,
  SelfTradePrevention,
  Side,
  TimeInForce,
} from "../engine/constants.ts";
import type { LiveOrderRow } from "../engine/journal/load.ts";
import type { Ledger } from "../engine/ledger.ts";
import {
  ANSWER_DEADLINE_MS,
  DAILY_ACTIVITY_LIMIT_MICRO,
  MAX_LIVE_ORDERS,
  MAX_PRICE_BPS,
  MICRO_PER_SHARE,
  MIN_PRICE_BPS,
} from "../engine/limits.ts";
import { MS_PER_DAY, notionalMicro, utcDay } from "../engine/money.ts";
import * as R from "../engine/records.ts";
import type { RingConsumer, RingProducer, Waker } from "../engine/ring.ts";
import { withIndex } from "../engine/typed-arrays.ts";
import { ApiError, badRequest, ErrorKind, notFound, overloaded } from "./errors.ts";
import { ExpiryQueue } from "./expiry-queue.ts";
import {
  isTradable,
  type Level,
  type Market,
  type MarketRegistry,
  marketStatusName,
  type Outcome,
} from "./market-registry.ts";
import { fillJson, orderJson, tradeJson } from "./order-json.ts";
import type { OrderStore } from "./order-store.ts";
import { WaitingAnswers } from "./waiting-answers.ts";

/** Records kept free in a command ring for what cannot be refused: cancels, expiries, market changes. */
const RESERVED_COMMANDS = 1024;
/**
 * Turns of the event loop that look for committed events before the gateway parks: a turn costs a microsecond or two,
 * a wake-up 25 to 40, and a gateway that spins on takes the core that the engine or the client needs.
 */
const SPIN_TURNS = 20;
/** Commands after which the engine gets what there is without waiting for the turn's end, so that both work at once. */
const HANDOVER_COMMANDS = 16;
/** A slot's status between its placement and the commit of it: not yet to be seen by anyone. */
const IN_FLIGHT = 255;
/** Expiries of ended orders that are kept before they are swept out, beside as many as there are live orders twice. */
const ENDED_EXPIRIES = 10_000;

/** An order as its sender describes it; numbers are codes of constants.ts. */
export interface Placement {
  marketId: number;
  outcomeId: number;
  side: number;
  /** Null only for a market order without bound. */
  price: number | null;
  quantity: number;
  type: number;
  timeInForce: number;
  postOnly: boolean;
  selfTradePrevention: number;
  clientOrderId: string | null;
  expiresAt: number | null;
  validUntil: number | null;
}

export interface Trader {
  readonly userId: number;
  readonly kycTier: number;
  /** The request came with a personal access token. */
  readonly pat: boolean;
}

/** Takes the answer to a command once it is committed: the data as JSON text, or the error. Called exactly once. */
export interface Answer {
  data(json: string): void;
  error(error: ApiError): void;
}

/** Who is told of what happened. All calls come while committed events are applied, in order. */
export interface Audience {
  /** True when the user has a connection that hears private events. */
  listens(userId: number): boolean;
  orderUpdated(userId: number, sequence: number, at: number, orderJson: string): void;
  /** Of markets whose trades are watched. */
  tradeCreated(market: Market, sequence: number, at: number, tradeJson: string): void;
  /** Of books that are watched. */
  bookUpdated(market: Market, outcome: Outcome, sequence: number, bids: Level[], asks: Level[]): void;
  /** Balance or positions of these users changed; `sequence` is the last order update that they reflect. */
  accountChanged(userId: number, sequence: number, outcomeIds: ReadonlySet<number>): void;
  /** All of a committed batch was told: what was gathered can go out. */
  endBatch(): void;
}

export interface EngineLink {
  readonly commands: RingProducer;
  readonly events: RingConsumer;
  readonly waker: Waker;
}

export interface ExchangeOptions {
  readonly links: readonly EngineLink[];
  readonly gatewayWaker: Waker;
  readonly store: OrderStore;
  readonly ledger: Ledger;
  readonly registry: MarketRegistry;
  readonly lastOrderId: number;
  /** What every user's order sequence starts from. */
  readonly firstUserSequence: number;
}

export class Exchange {
  readonly store: OrderStore;
  readonly ledger: Ledger;
  readonly registry: MarketRegistry;
  private audience: Audience | null = null;
  private readonly links: readonly EngineLink[];
  private readonly gatewayWaker: Waker;
  private lastOrderId: number;
  private readonly firstUserSequence: number;
  /** By user; 0 where the user has had no update since the start. */
  private userSequences = new Float64Array(1024);

  private readonly waiting = new WaitingAnswers();
  /** By slot of an order in flight: where its answer waits. */
  private readonly placements = new Int32Array(MAX_LIVE_ORDERS + 1);
  private readonly expiries = new ExpiryQueue();
  /** Fills of the command at hand's taker, JSON texts, until its order.updated. */
  private takerFills = "";
  private readonly changedUsers = new Map<number, Set<number>>();
  private pumping = false;
  private spin = SPIN_TURNS;
  private parked = false;
  private refusing: ApiError | null = null;
  private readonly published: number[];
  private unpublished = 0;
  /** By link: events that the turn at hand applies. */
  private readonly counts: number[] = [];
  /** With several links: order updates of the turn at hand. */
  private readonly updates: { user: number; sequence: number; at: number; json: string }[] = [];

  constructor(options: ExchangeOptions) {
    this.links = options.links;
    this.gatewayWaker = options.gatewayWaker;
    this.store = options.store;
    this.ledger = options.ledger;
    this.registry = options.registry;
    this.lastOrderId = options.lastOrderId;
    this.firstUserSequence = options.firstUserSequence;
    this.published = options.links.map((link) => link.commands.head);
    this.park();
  }

  setAudience(audience: Audience): void {
    this.audience = audience;
  }

  /** Answers still owed. */
  get pendingCount(): number {
    return this.waiting.size;
  }

  /** Every trading request is refused with this from now on (null: trading goes on). */
  refuse(error: ApiError | null): void {
    this.refusing = error;
  }

  /** Answers all that is pending with an error: the journal failed, nothing of it was committed. */
  failPending(error: ApiError): void {
    for (const answer of this.waiting.takeOverdue(Number.POSITIVE_INFINITY)) answer.error(error);
  }

  /** The last number of the user's order updates. */
  userSequence(userId: number): number {
    return this.userSequences[userId] || this.firstUserSequence;
  }

  private setUserSequence(userId: number, sequence: number): void {
    this.userSequences = withIndex(this.userSequences, userId);
    this.userSequences[userId] = sequence;
  }

  // ---------------------------------------------------------------- placing

  /**
   * Places an order; `answer` gets the queued order once it is durable.
   * @throws ApiError where it is refused; then nothing was done
   */
  place(trader: Trader, order: Placement, now: number, answer: Answer): void {
    const market = this.registry.get(order.marketId);
    if (market === undefined) throw notFound("market");
    const index = order.outcomeId - market.firstOutcomeId;
    if (index < 0 || index >= market.outcomes.length) throw badRequest("outcome_id: not an outcome of this market");
    checkTerms(order, now);
    if (order.clientOrderId !== null) {
      const slot = this.store.findByClientId(trader.userId, order.clientOrderId);
      if (slot !== 0) return this.repeat(slot, order, now, answer);
    }
    if (this.refusing !== null) throw this.refusing;
    if (!isTradable(market)) throw new ApiError(ErrorKind.marketNotOpen, `the market is ${marketStatusName(market)}`);
    const buy = order.side === Side.buy;
    const price = order.price ?? (buy ? MAX_PRICE_BPS : MIN_PRICE_BPS);
    const activityPrice = order.price ?? MAX_PRICE_BPS;
    const activity = notionalMicro(activityPrice, order.quantity);
    this.checkActivity(trader, activity, now);
    const { userId } = trader;
    const { ledger } = this;
    if (buy) {
      const needed = notionalMicro(price, order.quantity);
      const available = ledger.available(userId);
      if (needed > available) {
        throw new ApiError(ErrorKind.insufficientBalance, `needs ${needed} micro-USDC, ${available} are available`);
      }
    } else {
      const available = ledger.availableShares(userId, order.outcomeId);
      if (order.quantity > available) {
        throw new ApiError(ErrorKind.insufficientShares, `sells ${order.quantity} shares, ${available} are available`);
      }
    }
    const link = this.linkOf(market.id);
    const slot = link.commands.hasRoom(RESERVED_COMMANDS) ? this.store.takeSlot() : 0;
    if (slot === 0) throw overloaded("too many orders in flight: try again");
    // From here it must succeed.
    if (buy) ledger.hold(userId, notionalMicro(price, order.quantity));
    else ledger.holdShares(userId, order.outcomeId, order.quantity);
    ledger.changeLiveActivity(userId, activity);
    const id = ++this.lastOrderId;
    const flags =
      (order.postOnly ? R.FLAG_POST_ONLY : 0) |
      (trader.pat ? R.FLAG_PAT : 0) |
      (order.clientOrderId === null ? 0 : R.FLAG_TEXT);
    const packed = R.packCommand(
      R.CommandKind.placeOrder,
      order.side,
      order.type,
      order.timeInForce,
      order.selfTradePrevention,
      flags,
    );
    const { store } = this;
    store.ids[slot] = id;
    store.users[slot] = userId;
    store.markets[slot] = market.id;
    store.outcomes[slot] = order.outcomeId;
    store.prices[slot] = price;
    store.activityPrices[slot] = activityPrice;
    store.quantities[slot] = order.quantity;
    store.remaining[slot] = order.quantity;
    store.packed[slot] = packed;
    store.statuses[slot] = IN_FLIGHT;
    store.expiresAt[slot] = order.expiresAt ?? 0;
    store.createdAt[slot] = now;
    store.updatedAt[slot] = now;
    store.link(slot, order.clientOrderId);
    // In a command 0 stands for none; what was due in 1970 is as late at 1 ms.
    const validUntil = order.validUntil === null ? 0 : Math.max(1, order.validUntil);
    this.pushOrder(link, packed, slot, order.quantity, 0, validUntil, now);
    this.placements[slot] = this.waiting.add(answer, now + ANSWER_DEADLINE_MS);
    this.schedule();
  }

  /** A client order id that is in use: the same order again is answered as at first, another one is a conflict. */
  private repeat(slot: number, order: Placement, now: number, answer: Answer): void {
    const { store } = this;
    const packed = store.packed[slot]!;
    const price = order.price ?? (order.side === Side.buy ? MAX_PRICE_BPS : MIN_PRICE_BPS);
    const same =
      store.markets[slot] === order.marketId &&
      store.outcomes[slot] === order.outcomeId &&
      store.prices[slot] === price &&
      store.quantities[slot] === order.quantity &&
      store.expiresAt[slot] === (order.expiresAt ?? 0) &&
      R.sideOf(packed) === order.side &&
      R.typeOf(packed) === order.type &&
      R.timeInForceOf(packed) === order.timeInForce &&
      R.selfTradePreventionOf(packed) === order.selfTradePrevention &&
      ((packed & R.FLAG_POST_ONLY) !== 0) === order.postOnly;
    if (!same) throw new ApiError(ErrorKind.conflict, "client_order_id: in use by another order");
    if (store.statuses[slot] !== IN_FLIGHT) return answer.data(this.queuedJson(slot));
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

  private checkActivity(trader: Trader, activity: number, now: number): void {
    const day = utcDay(now);
    const limit = DAILY_ACTIVITY_LIMIT_MICRO[trader.kycTier] ?? 0;
    const used = this.ledger.activity(trader.userId, day);
    if (used + activity <= limit) return;
    const retryAfter = Math.ceil(((day + 1) * MS_PER_DAY - now) / 1000);
    const text = `daily activity: ${used} of ${limit} micro-USDC are used, the order adds ${activity}`;
    throw new ApiError(ErrorKind.limitExceeded, text, retryAfter);
  }

  private linkOf(marketId: number): EngineLink {
    return this.links[marketId % this.links.length]!;
  }

  /** Writes a placement or restoration of the order in `slot`. */
  private pushOrder(
    link: EngineLink,
    packed: number,
    slot: number,
    quantity: number,
    reference: number,
    validUntil: number,
    at: number,
  ): void {
    const { store } = this;
    this.push(
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
      store.expiresAt[slot]!,
      validUntil,
    );
  }

  private push(
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
    words[w] = packed;
    words[w + R.W_SLOT] = slot;
    words[w + R.W_USER] = user;
    words[w + R.W_OUTCOME] = outcome;
    words[w + R.W_PRICE] = price;
    words[w + R.W_QUANTITY] = quantity;
    words[w + R.W_MARKET] = market;
    words[w + R.W_REFERENCE] = reference;
    doubles[d + R.D_ORDER_ID] = orderId;
    doubles[d + R.D_AT] = at;
    doubles[d + R.D_EXPIRES_AT] = expiresAt;
    doubles[d + R.D_VALID_UNTIL] = validUntil;
    ring.head = (ring.head + 1) | 0;
    if (++this.unpublished >= HANDOVER_COMMANDS) this.publish();
  }

  // ---------------------------------------------------------------- other commands

  /**
   * Cancels a live order of the user; `answer` gets the order as it stood when the cancel reached it.
   * Answers false where the user has no such live order: it may be finished, or not exist.
   */
  cancel(userId: number, orderId: number, now: number, answer: Answer): boolean {
    const slot = this.store.find(orderId);
    if (slot === 0 || this.store.users[slot] !== userId || this.store.statuses[slot] === IN_FLIGHT) return false;
    if (this.refusing !== null) throw this.refusing;
    const reference = this.expect(answer, now);
    this.pushCancel(slot, Reason.user, reference, now);
    return true;
  }

  private pushCancel(slot: number, reason: number, reference: number, now: number): void {
    const { store } = this;
    const link = this.linkOf(store.markets[slot]!);
    if (!link.commands.hasRoom(2)) throw overloaded("too many commands in flight: try again");
    const packed = R.packCancel(R.CommandKind.cancelOrder, 0, reason);
    this.push(
      link, packed, slot, store.users[slot]!, store.outcomes[slot]!, 0, 0, store.markets[slot]!, reference,
      store.ids[slot]!, now, 0, 0,
    ); // biome-ignore format: one record
    this.schedule();
  }

  /** Turns USDC into complete sets (or back); `answer` gets {market_id, quantity}. @throws ApiError */
  changeSets(trader: Trader, marketId: number, quantity: number, split: boolean, now: number, answer: Answer): void {
    const market = this.registry.get(marketId);
    if (market === undefined) throw notFound("market");
    if (this.refusing !== null) throw this.refusing;
    const status = marketStatusName(market);
    const allowed = split ? ["open", "halted"] : ["open", "halted", "closed"];
    if (!allowed.includes(status)) throw new ApiError(ErrorKind.marketNotOpen, `the market is ${status}`);
    const { ledger } = this;
    const { userId } = trader;
    const amount = quantity * MICRO_PER_SHARE;
    if (split && amount > ledger.available(userId)) {
      const text = `needs ${amount} micro-USDC, ${ledger.available(userId)} are available`;
      throw new ApiError(ErrorKind.insufficientBalance, text);
    }
    if (!split) {
      for (const outcome of market.outcomes) {
        const available = ledger.availableShares(userId, outcome.id);
        if (quantity <= available) continue;
        const text = `needs ${quantity} shares of outcome ${outcome.id}, ${available} are available`;
        throw new ApiError(ErrorKind.insufficientShares, text);
      }
    }
    const link = this.linkOf(marketId);
    if (!link.commands.hasRoom(RESERVED_COMMANDS)) throw overloaded("too many commands in flight: try again");
    // From here it must succeed.
    if (split) ledger.hold(userId, amount);
    else for (const outcome of market.outcomes) ledger.holdShares(userId, outcome.id, quantity);
    const kind = split ? R.CommandKind.splitSets : R.CommandKind.mergeSets;
    const reference = this.expect(answer, now);
    this.push(link, R.packCancel(kind, 0, 0), 0, userId, 0, 0, quantity, marketId, reference, 0, now, 0, 0);
    this.schedule();
  }

  /** Takes a committed deposit into the gateway's ledger. */
  deposited(userId: number, amount: number): void {
    this.ledger.deposit(userId, amount);
    this.changed(userId, 0);
    this.endBatch();
  }

  /** Tells the market's engine thread that it exists. At start, and when one is made. */
  openMarket(market: Market): void {
    const kind = R.packCancel(R.CommandKind.openMarket, 0, 0);
    const { firstOutcomeId, outcomes } = market;
    this.push(this.linkOf(market.id), kind, 0, 0, firstOutcomeId, 0, outcomes.length, market.id, 0, 0, 0, 0, 0);
    this.schedule();
  }

  /** Halts, resumes or closes a market; `answer` gets an empty object once it is durable. */
  changeMarket(market: Market, kind: "halt" | "resume" | "close", now: number, answer: Answer): void {
    const kinds = {
      halt: R.CommandKind.haltMarket,
      resume: R.CommandKind.resumeMarket,
      close: R.CommandKind.closeMarket,
    };
    const link = this.linkOf(market.id);
    if (!link.commands.hasRoom(2)) throw overloaded("too many commands in flight: try again");
    const reference = this.expect(answer, now);
    this.push(link, R.packCancel(kinds[kind], 0, 0), 0, 0, 0, 0, 0, market.id, reference, 0, now, 0, 0);
    this.schedule();
  }

  /** Tells the engines to end once all before it is done. */
  stopEngines(): void {
    for (const link of this.links) {
      this.push(link, R.packCancel(R.CommandKind.stop, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }
    this.publish();
  }

  private expect(answer: Answer, now: number): number {
    return this.waiting.add(answer, now + ANSWER_DEADLINE_MS);
  }

  // ---------------------------------------------------------------- recovery

  /** Puts a live order of the database back: slot, hold, activity and its place in the book. False: the ring is full. */
  restore(row: LiveOrderRow): boolean {
    const [id, user, outcome, side, type, tif, stp, postOnly, pat, price, quantity, remaining, status] = row;
    const [expiresAt, clientOrderId, createdAt, updatedAt] = row.slice(13) as [
      number | null,
      string | null,
      number,
      number,
    ];
    const market = this.registry.ofOutcome(outcome)!;
    const link = this.linkOf(market.id);
    if (!link.commands.hasRoom(2)) return false;
    const { store, ledger } = this;
    const slot = store.takeSlot();
    check(slot !== 0, "the database holds no more live orders than the exchange can");
    const flags =
      (postOnly === 1 ? R.FLAG_POST_ONLY : 0) |
      (pat === 1 ? R.FLAG_PAT : 0) |
      (clientOrderId === null ? 0 : R.FLAG_TEXT);
    store.ids[slot] = id;
    store.users[slot] = user;
    store.markets[slot] = market.id;
    store.outcomes[slot] = outcome;
    store.prices[slot] = price;
    store.activityPrices[slot] = price;
    store.quantities[slot] = quantity;
    store.remaining[slot] = remaining;
    store.packed[slot] = R.packCommand(R.CommandKind.placeOrder, side, type, tif, stp, flags);
    store.statuses[slot] = status;
    store.expiresAt[slot] = expiresAt ?? 0;
    store.createdAt[slot] = createdAt;
    store.updatedAt[slot] = updatedAt;
    if (side === Side.buy) ledger.hold(user, notionalMicro(price, remaining));
    else ledger.holdShares(user, outcome, remaining);
    ledger.changeLiveActivity(user, notionalMicro(price, remaining));
    const packed = R.packCommand(R.CommandKind.restoreOrder, side, type, tif, stp, flags);
    this.pushOrder(link, packed, slot, remaining, quantity, 0, updatedAt);
    if (tif === TimeInForce.gtd) this.expiries.add(expiresAt!, slot, id);
    this.restored.push([slot, clientOrderId]);
    // The journal was cut off in the middle of this order's matching: what is left of it ends.
    if (status === OrderStatus.queued) this.interrupted.push(slot);
    return true;
  }

  private restored: [slot: number, clientOrderId: string | null][] = [];
  private interrupted: number[] = [];

  /** Links restored orders to their users, in the order of their ids, and ends what a crash interrupted. */
  async endRestore(now: number): Promise<void> {
    await this.roomForCommands();
    const { ids } = this.store;
    this.restored.sort((a, b) => ids[a[0]]! - ids[b[0]]!);
    for (const [slot, clientOrderId] of this.restored) this.store.link(slot, clientOrderId);
    for (const slot of this.interrupted) this.pushCancel(slot, Reason.operator, 0, now);
    this.restored = [];
    this.interrupted = [];
  }

  /** Resolves when every command ring has room again; for the long lists of a start. */
  async roomForCommands(): Promise<void> {
    while (!this.links.every(({ commands }) => commands.hasRoom(RESERVED_COMMANDS))) {
      this.schedule();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Resolves when every command sent so far has come back committed and was applied. */
  async settled(): Promise<void> {
    await this.roomForCommands();
    await Promise.all(
      this.links.map(
        (link) =>
          new Promise<void>((resolve) => {
            const answer: Answer = { data: () => resolve(), error: () => resolve() };
            // A cancel of no order is always refused, and so comes back behind everything else.
            const reference = this.expect(answer, Number.MAX_SAFE_INTEGER - ANSWER_DEADLINE_MS);
            const packed = R.packCancel(R.CommandKind.cancelOrder, 0, 0);
            this.push(link, packed, 0, 0, 0, 0, 0, 0, reference, 0, 0, 0, 0);
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
      this.expiries.keep(({ slot, orderId }) => this.store.ids[slot] === orderId);
    }
    for (let next = this.expiries.peek(); next !== undefined && next.at <= now; next = this.expiries.peek()) {
      const { slot, orderId } = next;
      if (this.store.ids[slot] === orderId) {
        // With a full ring the rest expires at the next tick.
        if (!this.linkOf(this.store.markets[slot]!).commands.hasRoom(2)) break;
        this.pushCancel(slot, Reason.expired, 0, now);
      }
      this.expiries.take();
    }
    for (const answer of this.waiting.takeOverdue(now)) {
      answer.error(new ApiError(ErrorKind.internal, "no answer in time: look the order up before you retry"));
    }
  }

  /** Publishes at the end of this turn of the event loop, with whatever else arrives in it. */
  private schedule(): void {
    if (this.pumping) return;
    this.pumping = true;
    setImmediate(this.pump);
  }

  private publish(): void {
    this.unpublished = 0;
    for (let i = 0; i < this.links.length; i++) {
      const { commands, waker } = this.links[i]!;
      if (commands.head === this.published[i]) continue;
      this.published[i] = commands.head;
      commands.publish();
      waker.wake();
    }
  }

  /** One turn: hand commands over, apply what was committed; again at once while answers are owed. */
  private readonly pump = (): void => {
    this.publish();
    this.drain();
    if (this.pendingCount > 0 && this.spin-- > 0) {
      setImmediate(this.pump);
      return;
    }
    this.spin = SPIN_TURNS;
    this.pumping = false;
    this.publish();
    this.park();
  };

  private readonly hasEvents = (): boolean => this.links.some(({ events }) => events.available() > 0);

  /** Sleeps until events come that nobody waits for (expiries, what another turn's end missed). One sleep at a time. */
  private park(): void {
    if (this.parked) return;
    this.parked = true;
    void this.gatewayWaker.sleepAsync(this.hasEvents, 1_000).then(() => {
      this.parked = false;
      if (this.pumping) return;
      this.drain();
      if (!this.pumping) this.park();
    });
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

  /** Applies all committed events. */
  private drain(): void {
    let any = false;
    this.countCommitted();
    for (let ring = 0; ring < this.links.length; ring++) {
      const link = this.links[ring]!;
      const { events } = link;
      const count = this.counts[ring]!;
      if (count === 0) continue;
      any = true;
      for (let i = 0; i < count; i++) {
        const index = (events.tail + i) & events.mask;
        this.apply(events.words, events.doubles, index * R.RECORD_WORDS);
      }
      events.tail = (events.tail + count) | 0;
      events.release();
      // An engine that waits for room has filled its ring; one that waits for commands shall sleep on.
      if (count > events.mask >> 3) link.waker.wake();
    }
    if (any) this.endBatch();
  }

  private endBatch(): void {
    const { audience } = this;
    this.registry.drainChanges(this.tellBook);
    if (this.updates.length > 0) this.tellUpdates();
    for (const [user, outcomes] of this.changedUsers) audience?.accountChanged(user, this.userSequence(user), outcomes);
    this.changedUsers.clear();
    audience?.endBatch();
  }

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

  private apply(words: Int32Array, doubles: Float64Array, w: number): void {
    const packed = words[w]!;
    switch (R.kindOf(packed)) {
      case R.EventKind.levelChanged: {
        const detail = doubles[(w >> 1) + R.D_DETAIL]!;
        return this.registry.setLevel(words[w + R.W_OUTCOME]!, R.sideOf(packed), words[w + R.W_PRICE]!, detail);
      }
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
      case R.EventKind.amendRefused: {
        const error = new ApiError(ErrorKind.conflict, "the order is finished");
        return this.waiting.take(words[w + R.W_REFERENCE]!)?.error(error);
      }
      case R.EventKind.marketChanged: {
        const market = this.registry.get(words[w + R.W_SLOT]!)!;
        market.status = R.statusOf(packed);
        return this.waiting.take(words[w + R.W_REFERENCE]!)?.data("{}");
      }
      case R.EventKind.setsSplit:
      case R.EventKind.setsMerged:
        return this.setsChanged(words, w);
      case R.EventKind.stopped:
        return;
      default:
        check(false, "the gateway knows every event kind");
    }
  }

  private queuedJson(slot: number): string {
    const { store } = this;
    return orderJson(store, slot, OrderStatus.queued, Reason.none, store.quantities[slot]!, store.createdAt[slot]!, "");
  }

  private orderPlaced(words: Int32Array, doubles: Float64Array, w: number): void {
    const slot = words[w + R.W_SLOT]!;
    const status = R.statusOf(words[w]!);
    this.takerFills = "";
    this.store.statuses[slot] = OrderStatus.queued;
    this.waiting.take(this.placements[slot]!)?.data(this.queuedJson(slot));
    this.placements[slot] = 0;
    const sells = R.sideOf(words[w]!) === Side.sell;
    this.changed(this.store.users[slot]!, sells ? this.store.outcomes[slot]! : 0);
    if (R.timeInForceOf(this.store.packed[slot]!) === TimeInForce.gtd && !isFinal(status)) {
      this.expiries.add(this.store.expiresAt[slot]!, slot, this.store.ids[slot]!);
    }
    if (status === OrderStatus.queued) return;
    if (isFinal(status)) this.releaseRest(slot);
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
    const matchId = id - words[w + R.W_REFERENCE]!;
    const role = R.roleOf(packed);
    const side = R.sideOf(packed);
    const matchType = R.matchTypeOf(packed);
    const ends = (packed & R.FLAG_MATCH_END) !== 0;
    const market = store.markets[slot]!;
    this.releasePart(slot, quantity);
    const pat = (packed & R.FLAG_PAT) !== 0;
    ledger.fill(user, market, outcome, side, price, quantity, matchType, role, pat, ends, at);
    this.changed(user, outcome);
    if (ends) this.trade(outcome, side, price, quantity, matchType, matchId, at);
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

  private trade(
    outcome: number,
    side: number,
    price: number,
    quantity: number,
    matchType: number,
    matchId: number,
    at: number,
  ): void {
    const market = this.registry.recordTrade(outcome, price, quantity, at);
    const sequence = ++market.tradeSequence;
    if (!market.isWatched) return;
    const json = tradeJson(matchId, market.id, outcome, side, price, quantity, matchType, at);
    this.audience?.tradeCreated(market, sequence, at, json);
  }

  private orderCanceled(words: Int32Array, doubles: Float64Array, w: number): void {
    const slot = words[w + R.W_SLOT]!;
    const { store } = this;
    const answer = this.waiting.take(words[w + R.W_REFERENCE]!);
    if (answer !== null) {
      const before = store.remaining[slot]!;
      answer.data(orderJson(store, slot, store.statuses[slot]!, Reason.none, before, store.updatedAt[slot]!, ""));
    }
    this.releaseRest(slot);
    const packed = words[w]!;
    this.setState(slot, R.statusOf(packed), R.reasonOf(packed), words[w + R.W_REMAINING]!, doubles, w, "");
  }

  /** A decrement or an amend: price, total and what remains may all be new, and holds with them. */
  private orderChanged(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store } = this;
    const slot = words[w + R.W_SLOT]!;
    const packed = words[w]!;
    this.releaseRest(slot);
    store.prices[slot] = words[w + R.W_PRICE]!;
    store.quantities[slot] = words[w + R.W_QUANTITY]!;
    store.remaining[slot] = words[w + R.W_REMAINING]!;
    if (R.kindOf(packed) === R.EventKind.orderAmended) store.activityPrices[slot] = store.prices[slot]!;
    this.holdRest(slot);
    const answer = this.waiting.take(words[w + R.W_REFERENCE]!);
    if (R.kindOf(packed) === R.EventKind.orderReduced && R.roleOf(packed) === Role.taker) return;
    if (answer !== null) {
      const status = R.statusOf(packed);
      const at = doubles[(w >> 1) + R.D_AT]!;
      answer.data(orderJson(store, slot, status, Reason.none, store.remaining[slot]!, at, ""));
    }
    this.setState(slot, R.statusOf(packed), Reason.none, words[w + R.W_REMAINING]!, doubles, w, "");
  }

  private setsChanged(words: Int32Array, w: number): void {
    const user = words[w + R.W_USER]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const market = this.registry.get(words[w + R.W_SLOT]!)!;
    const { ledger } = this;
    const count = market.outcomes.length;
    if (R.kindOf(words[w]!) === R.EventKind.setsSplit) {
      ledger.release(user, quantity * MICRO_PER_SHARE);
      ledger.split(user, market.id, market.firstOutcomeId, count, quantity);
    } else {
      for (const { id } of market.outcomes) ledger.releaseShares(user, id, quantity);
      ledger.merge(user, market.id, market.firstOutcomeId, count, quantity);
    }
    for (const { id } of market.outcomes) this.changed(user, id);
    this.waiting.take(words[w + R.W_REFERENCE]!)?.data(`{"market_id":${market.id},"quantity":${quantity}}`);
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
    const sequence = doubles[(w >> 1) + R.D_USER_SEQUENCE]!;
    store.statuses[slot] = status;
    store.remaining[slot] = remaining;
    store.updatedAt[slot] = at;
    if (sequence > this.userSequence(user)) this.setUserSequence(user, sequence);
    if (this.audience?.listens(user) === true) {
      const json = orderJson(store, slot, status, reason, remaining, at, trades);
      if (this.links.length === 1) this.audience.orderUpdated(user, sequence, at, json);
      else this.updates.push({ user, sequence, at, json });
    }
    if (!isFinal(status)) return;
    store.remove(slot, (store.packed[slot]! & R.FLAG_TEXT) === 0 ? null : store.texts.read(slot));
  }

  /** Gives back the hold and the live activity of `quantity` shares of an order. */
  private releasePart(slot: number, quantity: number): void {
    const { store, ledger } = this;
    const user = store.users[slot]!;
    if (R.sideOf(store.packed[slot]!) === Side.buy) ledger.release(user, notionalMicro(store.prices[slot]!, quantity));
    else ledger.releaseShares(user, store.outcomes[slot]!, quantity);
    ledger.changeLiveActivity(user, -notionalMicro(store.activityPrices[slot]!, quantity));
  }

  private releaseRest(slot: number): void {
    this.releasePart(slot, this.store.remaining[slot]!);
    this.changed(
      this.store.users[slot]!,
      R.sideOf(this.store.packed[slot]!) === Side.sell ? this.store.outcomes[slot]! : 0,
    );
  }

  private holdRest(slot: number): void {
    const { store, ledger } = this;
    const user = store.users[slot]!;
    const quantity = store.remaining[slot]!;
    if (R.sideOf(store.packed[slot]!) === Side.buy) ledger.hold(user, notionalMicro(store.prices[slot]!, quantity));
    else ledger.holdShares(user, store.outcomes[slot]!, quantity);
    ledger.changeLiveActivity(user, notionalMicro(store.activityPrices[slot]!, quantity));
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

  /** JSON texts of the user's active orders, newest first, from those with ids below `before`. */
  activeOrders(
    userId: number,
    before: number,
    limit: number,
    wanted: (store: OrderStore, slot: number) => boolean,
  ): { items: string[]; next: number | null } {
    const { store } = this;
    const items: string[] = [];
    let last = 0;
    for (let slot = store.newestOf(userId); slot !== 0; slot = store.olderOf(slot)) {
      const id = store.ids[slot]!;
      if (id >= before || store.statuses[slot] === IN_FLIGHT || !wanted(store, slot)) continue;
      if (items.length === limit) return { items, next: last };
      items.push(
        orderJson(store, slot, store.statuses[slot]!, Reason.none, store.remaining[slot]!, store.updatedAt[slot]!, ""),
      );
      last = id;
    }
    return { items, next: null };
  }
}

/** What the fields of one placement ask of each other. @throws ApiError 40000 */
function checkTerms(order: Placement, now: number): void {
  const { type, timeInForce, expiresAt, postOnly } = order;
  if (type === OrderType.limit && order.price === null) throw badRequest("price: required for a limit order");
  if (type === OrderType.market && timeInForce !== TimeInForce.ioc && timeInForce !== TimeInForce.fok) {
    throw badRequest("time_in_force: a market order is ioc or fok");
  }
  if (timeInForce === TimeInForce.gtd) {
    if (expiresAt === null) throw badRequest("expires_at: required for gtd");
    if (expiresAt <= now) throw badRequest("expires_at: must lie in the future");
  } else if (expiresAt !== null) throw badRequest("expires_at: only for gtd");
  const rests = type === OrderType.limit && timeInForce <= TimeInForce.gtd;
  if (postOnly && !rests) throw badRequest("post_only: only for limit orders that may rest");
  check(order.selfTradePrevention <= SelfTradePrevention.decrement, "the schema lets known modes through");
}
