/** The shapes of what the history is asked for and gives: plain objects that pass between threads. */
import type { OwnPageOptions, PageOptions } from "../http/paging.ts";

/** When rows were made: ms, both included. */
interface Span {
  from?: number | undefined;
  to?: number | undefined;
}

/** The same, where null stands for no bound too. */
export interface AnySpan {
  readonly from?: number | null | undefined;
  readonly to?: number | null | undefined;
}

/** Filters of fills; null stands for any. */
export interface FillFilters {
  marketId?: number | null;
  /** ms, both included. */
  from?: number | null;
  to?: number | null;
  side?: number | null;
  /** 1: only fills with a rebate. */
  rebated?: number | null;
}

export interface OrdersOptions extends OwnPageOptions, Span {
  /** A status code; any where it is missing. */
  status?: number | undefined;
  marketId?: number | undefined;
  outcomeId?: number | undefined;
  side?: number | undefined;
  clientOrderId?: string | undefined;
}

export interface FillsOptions extends OwnPageOptions, Span {
  marketId?: number | undefined;
  orderId?: number | undefined;
}

export interface TradesOptions extends PageOptions, Span {
  marketId: number;
  outcomeId?: number | undefined;
}

export interface UpdatesOptions {
  userId: number;
  /** The number to go on after; null for the oldest that is kept. */
  after: number | null;
  limit: number;
}

/**
 * Order updates as order.updated sent them, in the order of their numbers. @typeParam T an update's order: JSON text, or as
 * numbers
 */
export interface UpdatesPage<T> {
  items: { sequence: number; at: number; order: T }[];
  /** The first number that is kept, where some of the requested ones no longer are; else null. */
  oldest: number | null;
  /** Whether there are more. */
  hasMore: boolean;
  /** What is wrong with the log there, for the operator; null if the page could be read. */
  damage: string | null;
}

export interface FillRow {
  id: number;
  match_id: number;
  user_id: number;
  order_id: number;
  market_id: number;
  outcome_id: number;
  side: number;
  price: number;
  quantity: number;
  role: number;
  match_type: number;
  fee: number;
  rebate: number;
  balance_after: number;
  created_at: number;
  builder_code: string | null;
}

export type SearchTable = "markets" | "events";

/** What is kept of a request that was carried out. */
export interface DoneRequest {
  readonly request: string;
  /** The id of its result: a withdrawal, or the entry of a split or merge. */
  readonly subject: number;
  /** micro-USDC. */
  readonly fee: number;
  /** ms since the epoch. */
  readonly createdAt: number;
}

/** The result of a lookup of a user's key, and how many keys the user has. */
export interface KeyLookup {
  readonly found: DoneRequest | null;
  readonly count: number;
  /** When the oldest that counts was made, ms since the epoch; null where there is none. */
  readonly oldest: number | null;
}
