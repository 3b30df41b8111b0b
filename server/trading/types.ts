/** The shapes that order entry and the turn loop take and return; every room may import them. */
import type { LedgerTotals } from "../../engine/ledger.ts";
import type { ClientOrderId } from "../../engine/ring/order-texts.ts";
import type { RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import type { Clock } from "../../engine/util/clock.ts";
import type { ApiError } from "../errors.ts";
import type { Level } from "../markets/depth.ts";
import type { Market, Outcome, Trade } from "../markets/types.ts";
import type { OrderReport } from "../orders/order-json.ts";

/** An order as its sender describes it; numbers are codes of constants.ts. */
export interface Placement {
  marketId: number;
  outcomeId: number;
  /** What its sender chose of them (engine/ring/order-terms.ts). */
  terms: number;
  /** Null only for a market order without bound. */
  price: number | null;
  quantity: number;
  clientOrderId: ClientOrderId | null;
  expiresAt: number | null;
  validUntil: number | null;
  /** Its reply and its updates carry when they were received, matched, durable and sent. */
  timestamps: boolean;
}

export interface Amendment {
  orderId: number;
  price: number | null;
  /** The new total, filled shares included. */
  quantity: number | null;
  validUntil: number | null;
}

export interface Quote {
  outcomeId: number;
  side: number;
  price: number;
  quantity: number;
}

/** What all quotes of one request share; ms. */
export interface QuoteTerms {
  readonly expiresAt: number | null;
  readonly validUntil: number | null;
}

/** Which of the user's orders a cancel-all cancels. */
export interface OrderFilter {
  marketId?: number | undefined;
  outcomeId?: number | undefined;
  side?: number | undefined;
  clientOrderId?: ClientOrderId | undefined;
  /** The newest order's id that counts. */
  lastOrderId?: number | undefined;
}

/**
 * The gateway's event loop as the exchange uses it: the clock, callbacks in a later turn, and sleep until events arrive.
 * Passed in, so that a simulation controls all of it.
 */
export interface GatewayLoop extends Clock {
  /** Turns that look for committed events before the gateway sleeps, while replies are pending. */
  readonly spinTurns: number;
  /** Calls back in a later turn. */
  soon(callback: () => void): void;
  /** Calls back when `hasEvents` holds (at once if it does already) or the timeout expires. One call at a time. */
  sleep(hasEvents: () => boolean, callback: () => void): void;
}

export interface Trader {
  readonly userId: number;
  /** micro-USDC of activity a UTC day. */
  readonly dailyLimit: number;
  /** The user's own merge fee, BPS of 1 USDC per set; null for the usual one. */
  readonly mergeFee: number | null;
  /** Live orders at one time, in flight included. */
  readonly maxLiveOrders: number;
  /** The request carries a personal access token. */
  readonly pat: boolean;
}

/** A connection that places orders. */
export interface Connection {
  /** From 1. */
  readonly number: number;
  /** Its orders are canceled when it ends. */
  cancelOnDisconnect: boolean;
  /** It has ended, with cancelOnDisconnect set. */
  ended: boolean;
}

/** Where a request came from. */
export interface Origin {
  readonly connection: Connection | null;
  readonly builderCode: string | null;
}

/** An order that has ended, as far as a repeat of its placement needs it. */
export interface EndedOrder {
  readonly userId: number;
  readonly fingerprint: number | null;
  readonly builderCode: string | null;
  readonly createdAt: number;
}

export interface OrderEntryOptions {
  /** Reads an order from the database, on behalf of a user. */
  readonly findEnded: (userId: number, orderId: number) => Promise<EndedOrder | null>;
  /** Makes it durable that orders end with their connections, should the exchange crash, or no longer do. */
  readonly saveCancelOnDisconnect: (orderIds: readonly number[], isSet: boolean) => Promise<unknown>;
  /** The merge fee of users without terms of their own, BPS of 1 USDC per set. */
  readonly defaultMergeFeeBps: number;
}

/**
 * Receives the result of a command once it is committed: an order, the orders that were canceled, other data as JSON text,
 * or an error. One call exactly.
 */
export interface Reply {
  /** @param report valid during the call */
  order(report: OrderReport): void;
  canceled(orderIds: readonly number[]): void;
  data(json: string): void;
  error(error: ApiError): void;
}

/** Receives the results of a batch: one of each operation, in the order in which they become known, and then the end. */
export interface BatchSink {
  /** The operation's order, committed. @param report valid during the call */
  order(index: number, report: OrderReport): void;
  rejected(index: number, error: ApiError): void;
  done(): void;
}

/** Receives the result of each quote of a set as its last event is committed, and then the end, or why there is none. */
export interface QuotesSink {
  /** The quote stands as requested. @param report valid during the call */
  standing(index: number, report: OrderReport): void;
  /** An event of the replacement was applied, and nothing published about it yet. */
  arrived(): void;
  /** The quote's order. @param report valid during the call */
  order(index: number, report: OrderReport): void;
  done(): void;
  /** Nothing else comes. */
  failed(error: ApiError): void;
}

/** Delays reads of a user's own state until the messages about what they show are queued. */
export interface OrderedReads {
  /** Calls `give` once the messages about what memory has now are queued. @param now ms */
  afterMessagesSent(userId: number, now: number, give: () => void): void;
  /** Calls `give` once the messages about what the tables have now are queued. */
  afterCommitted(userId: number, give: () => void): void;
  /** Resolves as `afterCommitted` calls back. */
  committed(userId: number): Promise<void>;
}

/** Messages of one user wait until it is released. */
export interface Deferral {
  release(): void;
}

/** Receives what happens to users. The exchange calls it while it applies committed events, in their order. */
export interface UserListener {
  /** True when the user has a connection that receives private events. */
  listens(userId: number): boolean;
  /** True while messages of the user wait. */
  defers(userId: number): boolean;
  /** @param report valid during the call */
  orderUpdated(userId: number, sequence: number, at: number, report: OrderReport): void;
  /** Balance or positions changed. @param sequence the last order update that they reflect */
  accountChanged(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): void;
  /** Makes the user's messages from now on wait. */
  defer(userId: number): Deferral;
  /** Calls back once the user's messages so far were sent: at once, unless some wait. */
  afterMessages(userId: number, callback: () => void): void;
  /** A committed batch is complete: send what it gathered. */
  endBatch(): void;
}

/** Receives what happens in markets, as `UserListener` does for users. */
export interface MarketListener {
  /** Called for markets whose trades have subscribers. */
  tradeCreated(market: Market, sequence: number, trade: Trade): void;
  /** Called for books that have subscribers. */
  bookUpdated(market: Market, outcome: Outcome, sequence: number, bids: Level[], asks: Level[]): void;
  /** A market is new, or its status or texts changed. */
  marketChanged(market: Market): void;
}

/**
 * Sends users' messages: at once or, where they must wait, formatted when something happens and sent in their turn.
 * @typeParam Message about an order @typeParam Update an account's change
 */
export interface UserSink<Message, Update> extends Pick<UserListener, "listens" | "orderUpdated" | "accountChanged"> {
  /** @param report valid during the call */
  orderMessage(userId: number, sequence: number, at: number, report: OrderReport): Message;
  sendOrder(userId: number, sequence: number, at: number, message: Message): void;
  /** Returns null where no connection receives it. */
  accountUpdate(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): Update | null;
  sendAccountUpdate(update: Update): void;
  /** Writes out what was gathered. */
  flush(): void;
}

/** The gateway's ends of the rings between it and one engine. */
export interface EngineLink {
  readonly commands: RingProducer;
  readonly events: RingConsumer;
  readonly waker: Waker;
}

/** The sums of all money, micro-USDC. */
export interface ExchangeTotals extends LedgerTotals {
  /** The last batch of the log. */
  readonly sequence: number;
  /** When it was committed, ms. */
  readonly at: number;
}
