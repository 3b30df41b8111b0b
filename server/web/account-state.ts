/**
 * The caller's balance, positions and live orders, as signals that the private stream keeps up to date. Read whole after
 * a sign-in and wherever messages may have been missed.
 */
import { computed, effect, signal } from "@preact/signals";
import { shares } from "./format.ts";
import { onOwn, onOwnGap } from "./live.ts";
import { request, sessionState } from "./session.ts";
import type { Balance, Order, Page, Position } from "./types.ts";
import { toast } from "./ui/toast.tsx";
import { reason } from "./words.ts";

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

const FINAL = new Set(["filled", "canceled", "expired", "rejected"]);

export function onOrder(listener: (order: Order) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** All items of a list. */
export async function readAll<T>(path: string, most = 1_000): Promise<T[]> {
  const items: T[] = [];
  for (let cursor: string | null = ""; cursor !== null && items.length < most; ) {
    const page: Page<T> = await request("GET", path, { query: { limit: 200, cursor } });
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return items;
}

/** Shows an order before its first update comes, unless that was faster. */
export function addOrder(order: Order): void {
  if (orders.peek()?.has(order.id) === false && !ended.has(order.id)) putOrder(order);
}

/** Orders that ended while their answer was under way. */
const ended = new Set<number>();
let reading = 0;

async function read(): Promise<void> {
  const turn = ++reading;
  const [foundBalance, foundPositions, foundOrders] = await Promise.all([
    request<Balance>("GET", "/wallet/balance"),
    readAll<Position>("/me/positions"),
    readAll<Order>("/orders"),
  ]);
  if (turn !== reading || sessionState.peek() !== "in") return;
  balance.value = foundBalance;
  positions.value = new Map(foundPositions.map((position) => [position.outcome_id, position]));
  orders.value = new Map(foundOrders.filter(({ id }) => !ended.has(id)).map((order) => [order.id, order]));
}

function putOrder(order: Order): void {
  const next = new Map(orders.peek());
  if (FINAL.has(order.status)) {
    next.delete(order.id);
    ended.add(order.id);
  } else next.set(order.id, order);
  orders.value = next;
}

/** Of other amounts than a person would want to hear of one by one. */
const MAX_TOLD_AGE_MS = 30_000;

function tell(order: Order): void {
  if (Date.now() - order.updated_at > MAX_TOLD_AGE_MS) return;
  const side = order.side === 1 ? "Buy" : "Sell";
  const filled = order.trades.reduce((sum, { quantity }) => sum + quantity, 0);
  if (filled > 0) toast(`${side} order ${order.id}: ${shares(filled)} of ${shares(order.quantity)} shares filled.`);
  if (order.status === "rejected" || (order.status === "canceled" && order.reason !== "user")) {
    toast(`${side} order ${order.id} ${order.status}: ${reason(order.reason)}.`);
  }
}

/** Called once. */
export function startAccountState(): void {
  onOwn("order.updated", ({ data }) => {
    const order = data as Order;
    tell(order);
    putOrder(order);
    for (const listener of listeners) listener(order);
  });
  onOwn("balance.updated", ({ data }) => {
    const { available, held, total } = data as Balance;
    balance.value = { available, held, total };
  });
  onOwn("position.updated", ({ data }) => {
    const position = data as Position;
    positions.value = new Map(positions.peek()).set(position.outcome_id, position);
  });
  const readSoon = (): void => {
    // Where it fails the stream is stale too, and the next one brings another try.
    if (sessionState.peek() === "in") read().catch(() => {});
  };
  onOwnGap(readSoon);
  effect(() => {
    if (sessionState.value === "in") readSoon();
    else if (sessionState.value === "out") {
      reading++;
      balance.value = null;
      positions.value = null;
      orders.value = null;
      ended.clear();
    }
  });
}
