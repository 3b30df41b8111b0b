/**
 * The user's balance, positions and open orders, as signals. The private stream updates them at a bounded rate, however
 * busy the user's bots are. Loads everything after a sign-in and whenever events may have been missed.
 */

import { batch, computed, effect, signal } from "@preact/signals";
import { ApiError } from "./api.ts";
import { request, sessionState } from "./session.ts";
import { onPrivateEvent, onPrivateGap } from "./stream.ts";
import type { Balance, Order, Page, Position } from "./types.ts";

export const balance = signal<Balance | null>(null);
/** By outcome id; null until loaded. */
export const positions = signal<ReadonlyMap<number, Position> | null>(null);
const orders = signal<ReadonlyMap<number, Order> | null>(null);
/** Newest first; null until loaded. */
export const openOrders = computed(() =>
  orders.value === null ? null : [...orders.value.values()].sort((a, b) => b.id - a.id),
);
/** Orders and positions that are loaded: the newest of each, where there are more. */
export const MAX_LOADED = 1_000;
/** Whether there are open orders and positions beyond those. */
export const hasMoreOrders = signal(false);
export const hasMorePositions = signal(false);
/** Called with each order update. */
const listeners = new Set<(order: Order) => void>();

/** The state behind the signals, by outcome id and order id. */
interface Account {
  balance: Balance | null;
  readonly positions: Map<number, Position>;
  readonly orders: Map<number, Order>;
}

const emptyAccount = (): Account => ({ balance: null, positions: new Map(), orders: new Map() });
/** Null until loaded. */
let account: Account | null = null;
/** Updates received during a load: they are newer than the loaded data, or a newer update is still to come. Null if idle. */
let updatesDuringLoad: Account | null = null;
let isPublishPending = false;
let publishedAt = 0;
const PUBLISH_INTERVAL_MS = 250;
const RETRY_MS = 5_000;

/** Prefix of the client order ids that this page assigns. */
export const PAGE_ORDER_PREFIX = "page-";
const FINAL_STATUSES = new Set(["filled", "canceled", "expired", "rejected"]);

export function onOrderUpdate(listener: (order: Order) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Fetches all pages of a list, up to MAX_LOADED items. */
export async function fetchAll<T>(path: string): Promise<{ items: T[]; hasMore: boolean }> {
  const items: T[] = [];
  let cursor: string | null = "";
  while (cursor !== null && items.length < MAX_LOADED) {
    const page: Page<T> = await request("GET", path, { query: { limit: 200, cursor } });
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return { items, hasMore: cursor !== null };
}

/** Adds or replaces an order. */
export function addOrder(order: Order): void {
  change(({ orders: state }) => state.set(order.id, order));
}

function change(apply: (state: Account) => unknown): void {
  if (updatesDuringLoad !== null) apply(updatesDuringLoad);
  if (account === null) return;
  apply(account);
  publishSoon();
}

function publishSoon(): void {
  if (isPublishPending) return;
  isPublishPending = true;
  setTimeout(publish, publishedAt + PUBLISH_INTERVAL_MS - performance.now());
}

function publish(): void {
  isPublishPending = false;
  publishedAt = performance.now();
  const liveOrders = account?.orders ?? new Map<number, Order>();
  for (const [id, { status }] of liveOrders) if (FINAL_STATUSES.has(status)) liveOrders.delete(id);
  batch(() => {
    balance.value = account?.balance ?? null;
    positions.value = account === null ? null : new Map(account.positions);
    orders.value = account === null ? null : new Map(account.orders);
  });
}

async function load(): Promise<void> {
  const updates = emptyAccount();
  updatesDuringLoad = updates;
  try {
    const [foundBalance, foundPositions, foundOrders] = await Promise.all([
      request<Balance>("GET", "/wallet/balance"),
      fetchAll<Position>("/me/positions"),
      fetchAll<Order>("/orders"),
    ]);
    if (updatesDuringLoad !== updates) return;
    account = {
      balance: updates.balance ?? foundBalance,
      positions: new Map([
        ...foundPositions.items.map((each) => [each.outcome_id, each] as const),
        ...updates.positions,
      ]),
      orders: new Map([...foundOrders.items.map((each) => [each.id, each] as const), ...updates.orders]),
    };
    hasMoreOrders.value = foundOrders.hasMore;
    hasMorePositions.value = foundPositions.hasMore;
    publish();
  } catch (error) {
    if (updatesDuringLoad !== updates) return;
    const seconds = error instanceof ApiError ? error.retryAfter : null;
    setTimeout(loadIfSignedIn, seconds === null ? RETRY_MS : 1_000 * seconds);
  } finally {
    if (updatesDuringLoad === updates) updatesDuringLoad = null;
  }
}

function loadIfSignedIn(): void {
  if (sessionState.peek() === "in") void load();
}

/** Call once. */
export function startAccountState(): void {
  onPrivateEvent("order.updated", ({ data }) => {
    const order = data as Order;
    addOrder(order);
    for (const listener of listeners) listener(order);
  });
  onPrivateEvent("balance.updated", ({ data }) => {
    const { available, held, total } = data as Balance;
    change((state) => {
      state.balance = { available, held, total };
    });
  });
  onPrivateEvent("position.updated", ({ data }) => {
    const position = data as Position;
    change((state) => state.positions.set(position.outcome_id, position));
  });
  onPrivateGap(loadIfSignedIn);
  effect(() => {
    if (sessionState.value === "in") loadIfSignedIn();
    else if (sessionState.value === "out") {
      account = null;
      updatesDuringLoad = null;
      publish();
    }
  });
}
