/** Requests and checks that many trading tests need: placements, amends, batches, quotes, rejections. Keeps no state. */

import type { Static } from "typebox";
import { expect } from "vitest";
import type { Results } from "../../server/trading/schemas.ts";

import { expectBalanced, expectSoundDatabase } from "./checks.ts";
import { type Answer, API_BASE, type BookJson, type Client, type OrderJson, type OwnFillJson } from "./client.ts";
import { withDatabase } from "./data-dir.ts";
import { feeOn, notional, rebateOn } from "./reference.ts";
import { BUY } from "./terms.ts";
import { type TestMarket, USDC, World, type WorldOptions } from "./world.ts";

export { BUY, SELL, terms } from "./terms.ts";

export type ResultJson = Omit<Static<typeof Results>["results"][number], "data"> & {
  readonly data: OrderJson | null;
};

/** [outcome's index, side, price, quantity] */
export type QuoteSpec = readonly [outcome: number, side: number, price: number, quantity: number];

export async function expectRefused(
  answer: Promise<Answer>,
  status: number,
  code: number,
  message = /./,
): Promise<Answer> {
  const given = await answer;
  expect([given.status, given.code, given.msg]).toEqual([status, code, expect.stringMatching(message)]);
  return given;
}

export const post = (client: Client, body: object, headers: Record<string, string> = {}): Promise<Answer<OrderJson>> =>
  client.request("POST", "/orders", { body, headers });

export const patch = (client: Client, id: number, body: object): Promise<Answer<OrderJson>> =>
  client.request("PATCH", `/orders/${id}`, { body });

export const amend = (client: Client, id: number, body: object): Promise<OrderJson> =>
  client.data("PATCH", `/orders/${id}`, body);

/** Cancels the orders that match the query (all without one); returns their ids. */
export async function cancelAll(client: Client, query = ""): Promise<number[]> {
  const { order_ids } = await client.data<{ order_ids: number[] }>("DELETE", `/orders${query}`);
  return order_ids;
}

/** Runs a batch that must be accepted; returns one result for each operation. */
export async function batch(client: Client, operations: readonly object[]): Promise<ResultJson[]> {
  const { results } = await client.data<{ results: ResultJson[] }>("POST", "/orders/batch", { operations });
  expect(results).toHaveLength(operations.length);
  return results;
}

export const quotesBody = (market: TestMarket, quotes: readonly QuoteSpec[]): object => ({
  quotes: quotes.map(([outcome, side, price, quantity]) => {
    return { outcome_id: market.outcomes[outcome], side, price, quantity };
  }),
});

export const putQuotes = (client: Client, market: TestMarket, quotes: readonly QuoteSpec[]): Promise<Answer> =>
  client.request("PUT", `/quotes/${market.id}`, { body: quotesBody(market, quotes) });

/** Replaces the quotes; each must be accepted. Returns the orders in the results. */
export async function quote(client: Client, market: TestMarket, quotes: readonly QuoteSpec[]): Promise<OrderJson[]> {
  const body = quotesBody(market, quotes);
  const { results } = await client.data<{ results: ResultJson[] }>("PUT", `/quotes/${market.id}`, body);
  expect(results.map(({ code }) => code)).toEqual(quotes.map(() => 0));
  return results.map(({ data }) => data!);
}

/** The bytes of a response to POST /orders, with its status. */
export async function rawPlacement(client: Client, body: string, headers: Record<string, string> = {}) {
  const usual = { Authorization: `Bearer ${client.token}`, "Content-Type": "application/json" };
  const { status, body: bytes } = await client.send("POST", `${API_BASE}/orders`, { ...usual, ...headers }, body);
  return `${status} ${bytes.toString()}`;
}

export const idsOf = (orders: readonly OrderJson[]): number[] => orders.map(({ id }) => id);
export const liveOrders = (client: Client, market: TestMarket): Promise<OrderJson[]> =>
  client.all<OrderJson>(`/orders?market_id=${market.id}`);

/** The user's resting orders in the market are exactly these. */
export async function expectStanding(client: Client, market: TestMarket, ids: readonly number[]): Promise<void> {
  const standing = idsOf(await liveOrders(client, market));
  expect(standing.toSorted((a, b) => a - b)).toEqual(ids.toSorted((a, b) => a - b));
}

/** The balance and the positions of a user without live orders are what the fills make of the deposit and the sets of each market. */
export async function expectAccounted(
  user: Client,
  markets: readonly TestMarket[],
  deposit: number,
  sets: number,
): Promise<void> {
  let total = deposit - markets.length * sets * USDC;
  const shares = new Map(markets.flatMap(({ outcomes }) => outcomes.map((outcome) => [outcome, sets])));
  for (const { outcome_id, side, price, quantity, role, match_type } of await user.all<OwnFillJson>("/me/fills")) {
    const n = notional(price, quantity);
    total += (side === BUY ? -n : n - feeOn(n)) + (role === "maker" && match_type !== "mint" ? rebateOn(n, true) : 0);
    shares.set(outcome_id, shares.get(outcome_id)! + (side === BUY ? quantity : -quantity));
  }
  expect(await user.balance()).toEqual({ available: total, held: 0, total });
  for (const [outcome, quantity] of shares) {
    const position = (await user.position(outcome)) ?? { quantity: 0, held: 0 };
    expect(position).toMatchObject({ quantity, held: 0 });
  }
}

/** Outcome by outcome: bids and asks. */
export async function books(client: Client, market: TestMarket): Promise<Pick<BookJson, "bids" | "asks">[]> {
  const { outcomes } = await client.get<{ outcomes: BookJson[] }>(`/markets/${market.id}/orderbook`);
  return outcomes.map(({ bids, asks }) => ({ bids, asks }));
}

/** Runs a test on its own server, which it may stop, kill and restart; finally the server must stop with a sound database. */
export async function alone(options: WorldOptions, run: (world: World) => Promise<void>): Promise<void> {
  const world = await World.start(options);
  try {
    await run(world);
    await expectBalanced(world.anonymous());
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  } catch (error) {
    await world.server.kill();
    // A server that crashed has reported why.
    if (/\n {4}at /.test(world.server.errors)) (error as Error).message += `\n${world.server.errors}`;
    throw error;
  } finally {
    await world.server.kill();
  }
}

/** Stops the server, changes its database by SQL, and restarts it. Earlier clients are no longer usable. */
export async function restartWith(world: World, sql: string, ...values: (string | number)[]): Promise<void> {
  await world.server.stop();
  withDatabase(world.server.dataDir, (db) => db.prepare(sql).run(...values));
  world.server = await world.server.restart();
}
