/** Builder codes: their statistics, and trades that credit them in every way the contract names. Keeps no state. */
import { expect } from "vitest";
import type { Client, OrderJson, OwnFillJson } from "../support/client.ts";
import { feeOn, notional } from "../support/reference.ts";
import { amend, BUY, expectRefused, post, quote, quotesBody, type ResultJson, SELL, terms } from "../support/trading.ts"; // biome-ignore format: one list
import type { TestMarket, World } from "../support/world.ts";

export interface BuilderStats {
  code: string;
  orders: number;
  fills: number;
  volume: number;
  notional: number;
  fees: number;
}

export const statsOf = (world: World, code: string): Promise<BuilderStats> =>
  world.anonymous().get<BuilderStats>(`/builders/${code}/stats`);

export const builderHeader = (code: string): Record<string, string> => ({ "X-Builder-Code": code });

/** A sale of 10 shares credited to one code, partly bought under another; returns the sale and the maker's statistics. */
async function creditMakerAndTaker(world: World, market: TestMarket, [a, b]: readonly Client[], prefix: string) {
  const [maker, taker] = [`${prefix}maker.1`, `${prefix}Taker_2`];
  for (const user of [a!, b!]) await world.split(user, market, 50);
  const { data: sale } = await post(a!, terms(market, 0, SELL, 5_000, 10), builderHeader(maker));
  expect(sale.builder_code).toBe(maker);
  const { data: bought } = await post(b!, terms(market, 0, BUY, 5_000, 4), builderHeader(taker));
  await b!.place(terms(market, 0, BUY, 5_000, 3));
  const n = notional(5_000, 4);
  const fees = feeOn(n) + feeOn(notional(5_000, 3));
  const stats = { code: maker, orders: 1, fills: 2, volume: 7, notional: notional(5_000, 7), fees };
  expect(await statsOf(world, maker)).toEqual(stats);
  expect(await statsOf(world, taker)).toEqual({ code: taker, orders: 1, fills: 1, volume: 4, notional: n, fees: 0 });
  expect((await b!.order(bought.id)).builder_code).toBe(taker);
  const fills = await b!.all<OwnFillJson>("/me/fills");
  expect(fills.map(({ builder_code }) => builder_code)).toEqual([null, taker]);
  return { sale, stats };
}

/** Credits a code by a batch, by quotes and by a mint; returns its statistics. */
async function creditBatchAndQuotes(world: World, three: TestMarket, [a, b, c]: readonly Client[], prefix: string) {
  const [both, other] = [`${prefix}both`, `${prefix}other`];
  const none = { fills: 0, volume: 0, notional: 0, fees: 0 };
  // A batch's placements; canceled, rejected and repeated orders.
  const operations = [
    { op: "place", ...terms(three, 0, BUY, 3_000, 2, { client_order_id: "x" }) },
    { op: "place", ...terms(three, 0, BUY, 3_000, 2, { client_order_id: "x" }) },
    { op: "place", ...terms(three, 1, BUY, 3_000, 2) },
    { op: "cancel", client_order_id: "x" },
    { op: "place", ...terms(three, 0, BUY, 3_100, 2) },
    { op: "place", ...terms(three, 0, SELL, 1, 2) },
  ];
  const sent = await c!.request<{ results: ResultJson[] }>("POST", "/orders/batch", {
    body: { operations },
    headers: builderHeader(both),
  });
  expect(sent.data.results.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 42202]);
  expect(await statsOf(world, both)).toEqual({ code: both, orders: 3, ...none });
  const put = (code: string) =>
    a!.request<{ results: ResultJson[] }>("PUT", `/quotes/${three.id}`, {
      body: quotesBody(three, [[2, BUY, 3_000, 2]]),
      headers: builderHeader(code),
    });
  const [quoted] = (await put(both)).data.results;
  expect(quoted!.data!.builder_code).toBe(both);
  // An unchanged quote keeps its first code.
  const [unchanged] = (await put(other)).data.results;
  expect(unchanged!.data).toMatchObject({ id: quoted!.data!.id, builder_code: both });
  await expectRefused(a!.request("GET", `/builders/${other}/stats`), 404, 4040);
  expect(await statsOf(world, both)).toEqual({ code: both, orders: 4, ...none });
  // A mint of 2 between two of c's orders and b's: 3100 + 3000, and 3900 for the taker.
  await quote(a!, three, []);
  await post(b!, terms(three, 2, BUY, 3_900, 2), builderHeader(both));
  const stats = { code: both, orders: 5, fills: 3, volume: 6, notional: notional(10_000, 2), fees: 0 };
  expect(await statsOf(world, both)).toEqual(stats);
  return stats;
}

/**
 * Credits codes that begin with `prefix` as maker and as taker, by every way of placing, with three fresh users in a
 * market of two outcomes and one of three. Returns the maker's sale, of which 2 shares stay live at 4500, and the
 * statistics expected of the two codes.
 */
export async function creditEveryWay(
  world: World,
  users: readonly Client[],
  [market, three]: readonly [TestMarket, TestMarket],
  prefix: string,
): Promise<{ sale: OrderJson; maker: BuilderStats; both: BuilderStats }> {
  const { sale, stats: maker } = await creditMakerAndTaker(world, market, users, prefix);
  const both = await creditBatchAndQuotes(world, three, users, prefix);
  // An amended order keeps its code.
  await amend(users[0]!, sale.id, { price: 4_500 });
  await users[1]!.place(terms(market, 0, BUY, 4_500, 1));
  maker.fills++;
  maker.volume++;
  maker.notional += notional(4_500, 1);
  maker.fees += feeOn(notional(4_500, 1));
  expect(await statsOf(world, maker.code)).toEqual(maker);
  return { sale, maker, both };
}
