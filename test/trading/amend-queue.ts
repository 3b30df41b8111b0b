/** Amended bids at one price, and the time priority that the amends must leave. Keeps no state. */
import type { Client, OrderJson } from "../support/client.ts";
import { amend, BUY, SELL, terms } from "../support/trading.ts";
import type { TestMarket, World } from "../support/world.ts";

/** Bids at one price by four users, then amends that leave the queue as EXPECTED_QUEUE lists it. */
export async function amendedQueue(market: TestMarket, users: readonly Client[]): Promise<OrderJson[]> {
  const orders: OrderJson[] = [];
  for (const user of users) orders.push(await user.place(terms(market, 0, BUY, 5_000, 3)));
  // More shares cost the first its priority; fewer keep the second's; the third loses it by moving away and back.
  await amend(users[0]!, orders[0]!.id, { quantity: 4 });
  await amend(users[1]!, orders[1]!.id, { quantity: 2 });
  await amend(users[2]!, orders[2]!.id, { price: 4_000 });
  await amend(users[2]!, orders[2]!.id, { price: 5_000 });
  await amend(users[3]!, orders[3]!.id, { price: 5_000, quantity: 3 });
  return orders;
}

/** What each order has left to fill, in the order of `users`. */
export const QUANTITIES = [4, 2, 3, 3];

/** Whose order each share fills: indexes into `users`. */
export const EXPECTED_QUEUE = [1, 1, 3, 3, 3, 0, 0, 0, 0, 2, 2, 2];

/** Sells one share at a time into those bids until all are filled; returns whose order each share filled. */
export async function fillOrder(
  world: World,
  market: TestMarket,
  seller: Client,
  users: readonly Client[],
  ids: readonly number[],
): Promise<number[]> {
  const order: number[] = [];
  const filled = users.map(() => 0);
  const total = QUANTITIES.reduce((sum, quantity) => sum + quantity, 0);
  await world.split(seller, market, total);
  for (let n = 0; n < total; n++) {
    await seller.place(terms(market, 0, SELL, 5_000, 1, { time_in_force: "ioc" }));
    for (const [i, user] of users.entries()) {
      const now = (await user.order(ids[i]!)).filled;
      if (now > filled[i]!) order.push(i);
      filled[i] = now;
    }
  }
  return order;
}
