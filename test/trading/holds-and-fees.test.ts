/**
 * What orders hold and what matches cost, to the last micro-USDC: direct matches, mints and merges, complete sets, and
 * orders that the money or the shares don't cover. Random flows against a reference are in money.property.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Answer, MarketJson, OwnFillJson, TradeJson } from "../support/client.ts";
import { feeOn, notional, rebateOn } from "../support/reference.ts";
import { BUY, expectRefused, post, SELL, terms } from "../support/trading.ts";
import { USDC, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 40,
    named: { poor: { deposit: 3 * USDC }, splitter: { deposit: 1_000 * USDC }, rich: { deposit: 100_000 * USDC } },
    markets: [...Array<number>(12).fill(2), ...Array<number>(6).fill(3), 32],
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

describe("money", () => {
  test("a buy holds its notional, a sell its shares; a cancel frees both", async () => {
    const [market, user] = [world.market(), world.user()];
    await world.split(user, market, 10);
    const total = 10_000 * USDC - 10 * USDC;
    expect(await user.balance()).toEqual({ available: total, held: 0, total });
    const buy = await user.place(terms(market, 0, BUY, 3_333, 7));
    const sell = await user.place(terms(market, 1, SELL, 9_000, 4));
    const held = notional(3_333, 7);
    expect(await user.balance()).toEqual({ available: total - held, held, total });
    expect(await user.position(market.outcomes[1]!)).toMatchObject({ quantity: 10, held: 4 });
    await user.cancel(buy.id);
    await user.cancel(sell.id);
    expect(await user.balance()).toEqual({ available: total, held: 0, total });
    expect(await user.position(market.outcomes[1]!)).toMatchObject({ quantity: 10, held: 0 });
  });

  test("a direct match: the maker's price, the seller's fee rounded up, the maker's PAT rebate rounded down", async () => {
    const [market, seller, buyer] = [world.market(), world.user(), world.user()];
    const houseBefore = (await seller.solvency()).house;
    await world.split(seller, market, 10);
    await seller.place(terms(market, 0, SELL, 4_321, 7));
    const order = await buyer.place(terms(market, 0, BUY, 5_000, 7));
    const n = notional(4_321, 7);
    const [fee, rebate] = [feeOn(n), rebateOn(n, true)];
    expect([n, fee, rebate]).toEqual([3_024_700, 45_371, 3_024]);
    expect(await buyer.balance()).toEqual({ available: 10_000 * USDC - n, held: 0, total: 10_000 * USDC - n });
    expect(await seller.balance()).toMatchObject({ held: 0, total: 9_990 * USDC + n - fee + rebate });
    expect((await seller.solvency()).house - houseBefore).toBe(fee - rebate);
    const [fill] = (await buyer.order(order.id)).trades;
    expect(fill).toMatchObject({ price: 4_321, quantity: 7, role: "taker", match_type: "direct", fee: 0, rebate: 0 });
    const [sold] = await seller.all<OwnFillJson>("/me/fills");
    expect(sold).toMatchObject({ price: 4_321, role: "maker", side: SELL, fee, rebate, match_id: fill!.match_id });
    expect(await buyer.position(market.outcomes[0]!)).toMatchObject({ quantity: 7, cost: n, average_price: 4_321 });
    expect(await seller.position(market.outcomes[0]!)).toMatchObject({ quantity: 3, held: 0 });
    expect(await buyer.all<TradeJson>(`/markets/${market.id}/trades`)).toEqual([
      {
        id: fill!.match_id,
        market_id: market.id,
        outcome_id: market.outcomes[0],
        side: BUY,
        price: 4_321,
        quantity: 7,
        match_type: "direct",
        created_at: fill!.created_at,
      },
    ]);
  });

  test("a resting buy earns the rebate; its taker pays the fee, and what a better fill leaves returns at once", async () => {
    const [market, buyer, seller] = [world.market(), world.user(), world.user()];
    await world.split(seller, market, 5);
    await buyer.place(terms(market, 0, BUY, 6_501, 3));
    await seller.place(terms(market, 0, SELL, 1, 3));
    const n = notional(6_501, 3);
    expect(await buyer.balance()).toMatchObject({ held: 0, total: 10_000 * USDC - n + rebateOn(n, true) });
    expect(await seller.balance()).toMatchObject({ held: 0, total: 9_995 * USDC + n - feeOn(n) });
    // Price improvement: asks 2000 more than it pays.
    await world.split(buyer, market, 1);
    await buyer.place(terms(market, 1, SELL, 3_000, 1));
    const taken = await seller.place(terms(market, 1, BUY, 5_000, 2));
    expect(await seller.order(taken.id)).toMatchObject({ status: "partially_filled", filled: 1, remaining: 1 });
    expect(await seller.balance()).toMatchObject({ held: notional(5_000, 1) });
  });

  test("a mint: resting buys at their own prices, the taker at the rest, collateral of 1 USDC a set", async () => {
    const market = world.market(3);
    const users = [world.user(), world.user(), world.user()];
    const before = await users[0]!.solvency();
    await users[0]!.place(terms(market, 0, BUY, 2_500, 5));
    await users[1]!.place(terms(market, 1, BUY, 3_003, 8));
    const taker = await users[2]!.place(terms(market, 2, BUY, 5_000, 6));
    const prices = [2_500, 3_003, 10_000 - 2_500 - 3_003];
    const after = await users[0]!.solvency();
    for (const [i, user] of users.entries()) {
      const n = notional(prices[i]!, 5);
      // Nobody sells, so there is no fee that could pay a rebate.
      expect(await user.balance()).toMatchObject({ total: 10_000 * USDC - n });
      const [fill] = await user.all<OwnFillJson>(`/me/fills?market_id=${market.id}`);
      expect(fill).toMatchObject({ role: i === 2 ? "taker" : "maker", match_type: "mint", fee: 0, rebate: 0 });
      expect(await user.position(market.outcomes[i]!)).toMatchObject({ quantity: 5, cost: n });
    }
    expect(after.collateral - before.collateral).toBe(5 * USDC);
    expect(after.house).toBe(before.house);
    const order = await users[2]!.order(taker.id);
    expect(order).toMatchObject({ status: "partially_filled", filled: 5, remaining: 1 });
    expect(order.trades).toMatchObject([{ price: 4_497, quantity: 5, role: "taker", match_type: "mint", fee: 0 }]);
    expect(await users[2]!.balance()).toMatchObject({ held: notional(5_000, 1) });
    expect(await users[0]!.get<MarketJson>(`/markets/${market.id}`)).toMatchObject({ open_interest: 5, volume: 5 });
  });

  test("a mint beyond 10000 costs the taker 1 and leaves the surplus to the house", async () => {
    const market = world.market(3);
    const users = [world.user(), world.user(), world.user()];
    const before = await users[0]!.solvency();
    await users[0]!.place(terms(market, 0, BUY, 6_000, 2));
    await users[1]!.place(terms(market, 1, BUY, 5_000, 2));
    await users[2]!.place(terms(market, 2, BUY, 10, 2));
    const after = await users[0]!.solvency();
    expect(await users[2]!.balance()).toMatchObject({ held: 0, total: 10_000 * USDC - notional(1, 2) });
    expect(after.house - before.house).toBe(notional(11_001 - 10_000, 2));
    expect(after.collateral - before.collateral).toBe(2 * USDC);
  });

  test("a merge: each seller pays its own fee, resting ones at their prices, and the set is dissolved", async () => {
    const market = world.market(3);
    const users = [world.user(), world.user(), world.user()];
    for (const user of users) await world.split(user, market, 4);
    const before = await users[0]!.solvency();
    await users[0]!.place(terms(market, 0, SELL, 1_111, 4));
    await users[1]!.place(terms(market, 1, SELL, 2_222, 4));
    const taker = await users[2]!.place(terms(market, 2, SELL, 100, 3));
    const after = await users[0]!.solvency();
    let house = 0;
    for (const [i, user] of users.entries()) {
      const n = notional([1_111, 2_222, 6_667][i]!, 3);
      const rebate = i === 2 ? 0 : rebateOn(n, true);
      house += feeOn(n) - rebate;
      expect(await user.balance()).toMatchObject({ total: 9_996 * USDC + n - feeOn(n) + rebate });
      expect(await user.position(market.outcomes[i]!)).toMatchObject({ quantity: 1 });
    }
    expect(after.house - before.house).toBe(house);
    expect(before.collateral - after.collateral).toBe(3 * USDC);
    expect((await users[2]!.order(taker.id)).trades).toMatchObject([{ price: 6_667, match_type: "merge" }]);
  });

  test("the better price fills first, direct before implied at the same price", async () => {
    const [market, maker, minter, taker] = [world.market(), world.user(), world.user(), world.user()];
    await world.split(maker, market, 10);
    await maker.place(terms(market, 0, SELL, 6_000, 1));
    await maker.place(terms(market, 0, SELL, 6_500, 1));
    await minter.place(terms(market, 1, BUY, 3_700, 1));
    await minter.place(terms(market, 1, BUY, 3_500, 1));
    const { id } = await taker.place(terms(market, 0, BUY, 6_500, 4));
    const trades = (await taker.order(id)).trades.map(({ price, match_type }) => [price, match_type]);
    expect(trades).toEqual([
      [6_000, "direct"],
      [6_300, "mint"],
      [6_500, "direct"],
      [6_500, "mint"],
    ]);
  });

  test("the smallest orders and prices: one share at 1 and at 9999", async () => {
    const [market, seller, buyer] = [world.market(), world.user(), world.user()];
    await world.split(seller, market, 2);
    await seller.place(terms(market, 0, SELL, 1, 1));
    await buyer.place(terms(market, 0, BUY, 1, 1));
    expect(await seller.balance()).toMatchObject({ total: 9_998 * USDC + 100 - 2 });
    await seller.place(terms(market, 0, SELL, 9_999, 1));
    await buyer.place(terms(market, 0, BUY, 9_999, 1));
    const n = 999_900;
    expect(await seller.balance()).toMatchObject({ total: 9_998 * USDC + 98 + n - 14_999 + 999 });
    expect(await buyer.balance()).toMatchObject({ total: 10_000 * USDC - 100 - n });
  });

  test("a market of 32 outcomes mints one set from 32 buyers", async () => {
    const market = world.market(32);
    const user = world.client("rich");
    const other = world.user();
    for (let i = 0; i < 31; i++) await user.place(terms(market, i, BUY, 300, 1));
    const { id } = await other.place(terms(market, 31, BUY, 700, 1));
    expect(await other.order(id)).toMatchObject({ status: "filled", trades: [{ price: 700, match_type: "mint" }] });
    expect(await user.get<MarketJson>(`/markets/${market.id}`)).toMatchObject({ open_interest: 1 });
    await user.all("/me/fills", 7).then((fills) => expect(fills).toHaveLength(31));
  });

  test("split and merge move complete sets and reject what isn't there", async () => {
    const [market, user] = [world.market(3), world.client("splitter")];
    const sets = (name: string, quantity: number): Promise<Answer> =>
      user.request("POST", `/wallet/${name}`, { body: { market_id: market.id, quantity } });
    expect(await sets("split", 7)).toMatchObject({ status: 200, data: { market_id: market.id, quantity: 7 } });
    expect(await user.balance()).toMatchObject({ total: 993 * USDC, held: 0 });
    await expectRefused(sets("split", 994), 422, 42201);
    await expectRefused(sets("merge", 8), 422, 42202);
    await user.place(terms(market, 2, SELL, 9_999, 5));
    await expectRefused(sets("merge", 3), 422, 42202);
    expect(await sets("merge", 2)).toMatchObject({ status: 200 });
    expect(await user.balance()).toMatchObject({ total: 995 * USDC, held: 0 });
    expect(await user.get<MarketJson>(`/markets/${market.id}`)).toMatchObject({ open_interest: 5 });
    const rows = await user.all<{ type: string; amount: number; balance_after: number }>("/wallet/transactions");
    expect(rows.map(({ type, amount, balance_after }) => [type, amount, balance_after])).toEqual([
      ["merge", 2 * USDC, 995 * USDC],
      ["split", -7 * USDC, 993 * USDC],
      ["deposit", 1_000 * USDC, 1_000 * USDC],
    ]);
  });
});

describe("insufficient funds", () => {
  test("a buy beyond what is available is 42201 and holds nothing, to the last micro-USDC", async () => {
    const [market, user] = [world.market(), world.client("poor")];
    await expectRefused(post(user, terms(market, 0, BUY, 6_001, 5)), 422, 42201, /3000500.*3000000/);
    const { id } = await user.place(terms(market, 0, BUY, 6_000, 5));
    expect(await user.balance()).toEqual({ available: 0, held: 3 * USDC, total: 3 * USDC });
    await expectRefused(post(user, terms(market, 0, BUY, 1, 1)), 422, 42201);
    await expectRefused(post(user, { ...terms(market, 1, BUY, 1, 1), type: "market", price: undefined }), 422, 42201);
    await user.cancel(id);
    expect(await user.balance()).toMatchObject({ available: 3 * USDC, held: 0 });
  });

  test("a sale of shares that aren't held free is 42202", async () => {
    const [market, user] = [world.market(), world.user()];
    await expectRefused(post(user, terms(market, 0, SELL, 5_000, 1)), 422, 42202);
    await world.split(user, market, 3);
    await user.place(terms(market, 0, SELL, 9_000, 2));
    await expectRefused(post(user, terms(market, 0, SELL, 9_000, 2)), 422, 42202, /2.*1/);
    await user.place(terms(market, 0, SELL, 9_000, 1));
    await user.place(terms(market, 1, SELL, 9_000, 3));
  });
});
