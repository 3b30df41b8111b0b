/** Orders that end with their connection, and what must be left of a user's orders. */
import { expect } from "vitest";
import type { Client, OrderJson } from "../support/client.ts";
import type { Socket } from "../support/socket.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import type { TestMarket } from "../support/world.ts";

export const REASON = "cancel_on_disconnect";

export interface Results {
  readonly results: readonly { readonly code: number; readonly data: OrderJson | null }[];
}

const heldBy = (orders: readonly OrderJson[]): number =>
  orders.reduce((sum, { side, price, remaining }) => sum + (side === BUY ? price * 100 * remaining : 0), 0);

/** The user's live orders are exactly these; nothing else is held. */
export async function expectLive(user: Client, ids: readonly number[]): Promise<void> {
  const live = await user.all<OrderJson>("/orders");
  expect(live.map(({ id }) => id).sort((a, b) => a - b)).toEqual([...ids].sort((a, b) => a - b));
  expect((await user.balance()).held).toBe(heldBy(live));
}

/** Orders of each kind that a connection can place; returns their ids. */
export async function placeAll(socket: Socket, market: TestMarket, price: number): Promise<number[]> {
  const order = await socket.data<OrderJson>("order.place", terms(market, 0, BUY, price, 3));
  const operations = [
    { op: "place", ...terms(market, 0, SELL, 9_990, 2) },
    { op: "place", ...terms(market, 1, BUY, price, 2, { client_order_id: `tied-${price}` }) },
  ];
  const batch = await socket.data<Results>("order.batch", { operations });
  const quotes = [quote(market, 1, BUY, price + 1, 4), quote(market, 1, SELL, 9_991, 1)];
  const quoted = await socket.data<Results>("quotes.replace", { market_id: market.id, quotes });
  return [order.id, ...[...batch.results, ...quoted.results].map(({ data }) => data!.id)];
}
