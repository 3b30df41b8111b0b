/**
 * The caller's balance, positions and live orders, as signals that the private stream keeps up to date: at most so often,
 * whatever a bot of the caller's does. Read whole after a sign-in and wherever messages may have been missed.
 */
import { batch, computed, effect, signal } from "@preact/signals";
import { ApiError } from "./api.ts";
import { reasonText } from "./error-messages.ts";
import { shares } from "./format.ts";
import { request, sessionState } from "./session.ts";
import { onPrivateEvent, onPrivateGap } from "./stream.ts";
import type { Balance, Order, Page, Position } from "./types.ts";
import { toast } from "./ui/toast.tsx";

export const balance = signal<Balance | null>(null);
/** By outcome; null until they are read. */
export const positions = signal<ReadonlyMap<number, Position> | null>(null);
const orders = signal<ReadonlyMap<number, Order> | null>(null);
/** Live, the newest first; null until they are read. */
export const openOrders = computed(() =>
  orders.value === null ? null : [...orders.value.values()].sort((a, b) => b.id - a.id),
);
/** Each update of an order, for who shows fills. */
const listeners = new Set<(order: Order) => void>();

/** What is known, by outcome and by id; the signals show it soon. */
interface Account {
  balance: Balance | null;
  readonly positions: Map<number, Position>;
  readonly orders: Map<number, Order>;
}

const emptyAccount = (): Account => ({ balance: null, positions: new Map(), orders: new Map() });
/** Null until it is read. */
let account: Account | null = null;
/** What was told since the reading began that is under way: it is newer than what is read, or the newest is still told. */
let updatesDuringLoad: Account | null = null;
let isPublishPending = false;
let publishedAt = 0;
const PUBLISH_INTERVAL_MS = 250;
const RETRY_MS = 5_000;

/** Ids of orders that the page placed begin so. */
export const PAGE_ORDER_PREFIX = "page-";
const FINAL_STATUSES = new Set(["filled", "canceled", "expired", "rejected"]);

export function onOrderUpdate(listener: (order: Order) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** All items of a list. */
export async function fetchAll<T>(path: string, most = 1_000): Promise<T[]> {
  const items: T[] = [];
  for (let cursor: string | null = ""; cursor !== null && items.length < most; ) {
    const page: Page<T> = await request("GET", path, { query: { limit: 200, cursor } });
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return items;
}

/** Shows an order as it is now. */
export function addOrder(order: Order): void {
  change(({ orders: known }) => known.set(order.id, order));
}

function change(apply: (known: Account) => unknown): void {
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
  for (const [id, { status }] of account?.orders ?? []) if (FINAL_STATUSES.has(status)) account!.orders.delete(id);
  batch(() => {
    balance.value = account?.balance ?? null;
    positions.value = account === null ? null : new Map(account.positions);
    orders.value = account === null ? null : new Map(account.orders);
  });
}

async function load(): Promise<void> {
  const told = emptyAccount();
  updatesDuringLoad = told;
  try {
    const [foundBalance, foundPositions, foundOrders] = await Promise.all([
      request<Balance>("GET", "/wallet/balance"),
      fetchAll<Position>("/me/positions"),
      fetchAll<Order>("/orders"),
    ]);
    if (updatesDuringLoad !== told) return;
    account = {
      balance: told.balance ?? foundBalance,
      positions: new Map([...foundPositions.map((each) => [each.outcome_id, each] as const), ...told.positions]),
      orders: new Map([...foundOrders.map((each) => [each.id, each] as const), ...told.orders]),
    };
    publish();
  } catch (error) {
    if (updatesDuringLoad !== told) return;
    const seconds = error instanceof ApiError ? error.retryAfter : null;
    setTimeout(loadIfSignedIn, seconds === null ? RETRY_MS : 1_000 * seconds);
  } finally {
    if (updatesDuringLoad === told) updatesDuringLoad = null;
  }
}

function loadIfSignedIn(): void {
  if (sessionState.peek() === "in") void load();
}

/** Of other amounts than a person would want to hear of one by one. */
const MAX_NOTIFICATION_AGE_MS = 30_000;

/** Of what the person ordered here: a bot's orders are its own business. */
function notifyOrder(order: Order): void {
  if (!order.client_order_id?.startsWith(PAGE_ORDER_PREFIX) || Date.now() - order.updated_at > MAX_NOTIFICATION_AGE_MS)
    return;
  const side = order.side === 1 ? "Buy" : "Sell";
  const filled = order.trades.reduce((sum, { quantity }) => sum + quantity, 0);
  if (filled > 0) toast(`${side} order ${order.id}: ${shares(filled)} of ${shares(order.quantity)} shares filled.`);
  if (order.status === "rejected" || (order.status === "canceled" && order.reason !== "user")) {
    toast(`${side} order ${order.id} ${order.status}: ${reasonText(order.reason)}.`);
  }
}

/** Called once. */
export function startAccountState(): void {
  onPrivateEvent("order.updated", ({ data }) => {
    const order = data as Order;
    notifyOrder(order);
    addOrder(order);
    for (const listener of listeners) listener(order);
  });
  onPrivateEvent("balance.updated", ({ data }) => {
    const { available, held, total } = data as Balance;
    change((known) => {
      known.balance = { available, held, total };
    });
  });
  onPrivateEvent("position.updated", ({ data }) => {
    const position = data as Position;
    change((known) => known.positions.set(position.outcome_id, position));
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
