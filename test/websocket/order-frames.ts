/**
 * What the frames and acknowledgements of one connection say about its orders, and the order in which they must arrive.
 * Reads a test's socket; sends nothing.
 */
import { expect } from "vitest";
import type { OrderJson } from "../support/client.ts";
import type { Frame, Socket } from "../support/socket.ts";

export interface Result<T = OrderJson | null> {
  readonly code: number;
  readonly msg: string;
  readonly data: T;
}

export interface Results {
  readonly results: readonly Result[];
}

export function expectNoGap(frames: readonly { readonly sequence: number }[]): void {
  const first = frames[0]?.sequence ?? 0;
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => first + i));
}

/** By order id, the position among all arrivals of the first acknowledgement that shows the order as placed. */
export function placedAt(socket: Socket): Map<number, number> {
  const placed = new Map<number, number>();
  socket.arrivals.forEach((message, at) => {
    if ("event" in message || message.code !== 0) return;
    const data = message.data as Partial<OrderJson & Results> | null;
    const orders = data?.results === undefined ? [data] : data.results.map((result) => result.data);
    for (const order of orders) {
      if (order?.status === "queued" && !placed.has(order.id!)) placed.set(order.id!, at);
    }
  });
  return placed;
}

/** Every order's acknowledgement precedes its first update, and a cancel-all's precedes the last updates of its orders. */
export function expectAnswersFirst(socket: Socket): void {
  const placed = placedAt(socket);
  const updates = new Map<number, number[]>();
  socket.arrivals.forEach((message, at) => {
    if (!("event" in message) || message.event !== "order.updated") return;
    const { id } = message.data as OrderJson;
    updates.set(id, [...(updates.get(id) ?? []), at]);
  });
  const early = [...placed].filter(([id, at]) => (updates.get(id)?.[0] ?? -1) < at);
  expect(early, "orders without an update after their acknowledgement").toEqual([]);
  socket.arrivals.forEach((message, at) => {
    if ("event" in message || message.code !== 0) return;
    const { order_ids: ids } = (message.data ?? {}) as { order_ids?: number[] };
    for (const id of ids ?? []) expect(updates.get(id)!.at(-1)).toBeGreaterThan(at);
  });
}

export const isFinal = ({ status }: OrderJson): boolean => !["queued", "open", "partially_filled"].includes(status);

/** Each order's updates only go forward, and none follows a final one. */
export function expectStates(frames: readonly Frame<OrderJson>[]): void {
  const seen = new Map<number, OrderJson>();
  for (const { data } of frames) {
    const last = seen.get(data.id);
    if (last !== undefined && isFinal(last)) throw new Error(`order ${data.id} has an update after ${last.status}`);
    expect(data.filled).toBe((last?.filled ?? 0) + data.trades.reduce((sum, { quantity }) => sum + quantity, 0));
    seen.set(data.id, data);
  }
}
