/** The rows of the committed state that must be on record (committed.ts). */
import type { UserTerms } from "../../engine/log/user-terms.ts";

export interface OrderText {
  readonly clientOrderId: string | null;
  readonly builderCode: string | null;
}

export interface CommittedOrder {
  readonly id: number;
  readonly user: number;
  readonly market: number;
  readonly outcome: number;
  readonly side: number;
  terms: number;
  readonly flags: number;
  expiresAt: number;
  readonly createdAt: number;
  readonly text: OrderText;
  tied: boolean;
  price: number;
  quantity: number;
  remaining: number;
  status: number;
  reason: number;
  /** Its time priority: its own number, or the one from an amend. */
  priority: number;
  updatedAt: number;
  /** Fills that no update has reported. */
  untold: number;
  lastFill: number;
}

/** The content of an order.updated. */
export interface Update {
  readonly user: number;
  readonly sequence: number;
  readonly order: number;
  readonly price: number;
  readonly quantity: number;
  readonly remaining: number;
  readonly status: number;
  readonly reason: number;
  readonly fills: number;
  readonly lastFill: number;
  readonly at: number;
}

export interface CommittedMarket {
  readonly id: number;
  readonly first: number;
  readonly count: number;
  status: number;
  sets: number;
}

export interface Holding {
  quantity: number;
  cost: number;
  realized: number;
}

export interface Account {
  balance: number;
  day: number;
  used: number;
  readonly holdings: Map<number, Holding>;
  readonly updates: Update[];
  /** micro-USDC held by pending withdrawals. */
  setAside: number;
  terms: UserTerms | null;
}
