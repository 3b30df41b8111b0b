/** What order entry takes and gives: shapes that every room may name. */

import type { ApiError } from "../errors.ts";
import type { Level } from "../markets/depth.ts";
import type { Market, Outcome } from "../markets/types.ts";

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
  /** Its answer and its updates tell when they were received, matched, durable and sent. */
  timestamps: boolean;
}

export interface Amendment {
  price: number | null;
  /** The new total, what is filled included. */
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

/** Which of the user's orders a cancel-all means. */
export interface OrderFilter {
  marketId?: number | undefined;
  outcomeId?: number | undefined;
  side?: number | undefined;
  clientOrderId?: string | undefined;
  /** Those placed before then, ms. */
  placedBefore?: number | undefined;
}

export interface Trader {
  readonly userId: number;
  /** micro-USDC of activity a UTC day. */
  readonly dailyLimit: number;
  /** What the user pays for merging, BPS of 1 USDC a set; null: as everybody. */
  readonly mergeFee: number | null;
  /** Orders at one time, in flight included. */
  readonly maxLiveOrders: number;
  /** The request came with a personal access token. */
  readonly pat: boolean;
}

/** A connection that places orders of its own. */
export interface Connection {
  /** From 1. */
  readonly number: number;
  /** Its orders end when it does. */
  tied: boolean;
  /** It has ended, and was tied. */
  ended: boolean;
}

/** How a request came. */
export interface Origin {
  readonly connection: Connection | null;
  readonly builderCode: string | null;
}

/** An order that has ended, as far as a repeat of its placement must know it. */
export interface EndedOrder {
  readonly userId: number;
  readonly fingerprint: number | null;
  readonly builderCode: string | null;
  readonly createdAt: number;
}

/** Takes the answer to a command once it is committed: the data as JSON text, or the error. Called exactly once. */
export interface Answer {
  data(json: string): void;
  error(error: ApiError): void;
}

/** Delays reads of a user's own state until the messages about what they show are on their way. */
export interface OrderedReads {
  /** Calls `give` once the messages about what memory holds now are on their way. @param now ms */
  afterTold(userId: number, now: number, give: () => void): void;
  /** Calls `give` once the messages about what the database holds now are on their way. @param now ms */
  afterCommitted(userId: number, now: number, give: () => void): void;
  /** Resolves as `afterCommitted` calls back. */
  committed(userId: number): Promise<void>;
}

/** Who is told of what happened. All calls come while committed events are applied, in order. */
export interface ExchangeListener {
  /** True when the user has a connection that hears private events. */
  listens(userId: number): boolean;
  orderUpdated(userId: number, sequence: number, at: number, orderJson: string): void;
  /** Of markets whose trades are watched. */
  tradeCreated(market: Market, sequence: number, at: number, tradeJson: string): void;
  /** Of books that are watched. */
  bookUpdated(market: Market, outcome: Outcome, sequence: number, bids: Level[], asks: Level[]): void;
  /** A market is new, or its state is. */
  marketChanged(market: Market): void;
  /** Balance or positions of the user changed; `sequence` is the last order update that they reflect. */
  accountChanged(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): void;
  /** What the user is told from now on waits until the function that this answers is called. */
  holdBack(userId: number): () => void;
  /** Calls back when what the user was told so far is on its way: at once, unless something is held back. */
  afterMessages(userId: number, callback: () => void): void;
  /** All of a committed batch was told: what was gathered can go out. */
  endBatch(): void;
}
