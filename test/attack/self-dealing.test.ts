/**
 * Two accounts that trade only with each other earn nothing, whatever the match types, prices, tokens and terms, and
 * whether they merge, or the market is voided or resolved. Also the merge fee.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MICRO_PER_SHARE } from "../../engine/limits.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectEndsWell } from "../support/checks.ts";
import type { Client, OwnFillJson, PositionJson, TransactionJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import type { LimitsJson } from "../support/rates.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import { type TestMarket, USDC, type UserSpec, World } from "../support/world.ts";

const MERGE_FEE = 25;
const DEALER: UserSpec = {
  deposit: 100_000 * USDC,
  terms: { daily_limit: 1_000_000_000 * USDC, merge_fee: 0, pat_rebate: 150 },
};

let world: World;
beforeAll(async () => {
  const named = {
    ...{ ann: DEALER, bea: DEALER },
    // Its terms waive the fee.
    ...{ free: { ...DEALER, terms: { ...DEALER.terms, trading_fee: 0, maker_rebate: 0, pat_rebate: 0 } } },
    ...{ cheap: { ...DEALER, terms: { merge_fee: 7 } } },
  };
  world = await World.start({
    users: 2,
    named,
    markets: [2, 2, 2, 2, 3, 3, 3, 3, 5],
    env: { RATE_LIMITS: "off", MERGE_FEE: String(MERGE_FEE) },
  });
});
afterAll(() => expectEndsWell(world));

const totals = async (clients: readonly Client[]): Promise<number> => {
  const balances = await Promise.all(clients.map((client) => client.balance()));
  return balances.reduce((sum, { total }) => sum + total, 0);
};

/** Repeats `round` and expects the house never to lose. Returns the dealers' profit. */
async function deal(dealers: readonly Client[], rounds: number, round: (n: number) => Promise<void>): Promise<number> {
  const before = await totals(dealers);
  let { house } = await dealers[0]!.solvency();
  for (let n = 0; n < rounds; n++) {
    await round(n);
    const after = await dealers[0]!.solvency();
    expect(after).toMatchObject({ balanced: true });
    expect([n, after.house]).toEqual([n, Math.max(house, after.house)]);
    house = after.house;
  }
  return (await totals(dealers)) - before;
}

/** Closes and voids the market, which pays 1 USDC for each set. */
async function closeOut(market: TestMarket): Promise<void> {
  for (const step of ["close", "void"]) {
    const run = await admin(world.server.dataDir, "market", step, market.slug);
    expect(run).toMatchObject({ code: 0, errors: "" });
  }
}

const filled = async (client: Client, id: number): Promise<void> =>
  eventually(async () => expect((await client.order(id)).status).toBe("filled"));
const merge = (client: Client, market: TestMarket, quantity: number): Promise<unknown> =>
  client.data("POST", "/wallet/merge", { market_id: market.id, quantity });

describe("the attack that drained the house: mint with each other, merge, again", () => {
  test.each([2, 3])(
    "minting with each other, merging and minting again drains nothing, in both directions, in a market of %i outcomes",
    async (count) => {
      const market = world.market(count);
      const dealers = [world.client("ann"), world.client("bea")] as const;
      const rest = Math.floor(9_999 / count);
      const earned = await deal(dealers, 20, async (n) => {
        // One rests bids on all outcomes but one, the other takes the last; then they swap.
        for (const [maker, taker] of [dealers, [dealers[1], dealers[0]] as const]) {
          for (let i = 0; i < count - 1; i++) await maker!.place(terms(market, i, BUY, rest, 1_000));
          const price = 10_000 - rest * (count - 1);
          await filled(taker!, (await taker!.place(terms(market, count - 1, BUY, price, 1_000))).id);
          // Each has the outcomes that the other lacks: the next mint completes both.
          for (let i = 0; i < count - 1; i++) await taker!.place(terms(market, i, BUY, rest, 1_000));
          await filled(maker!, (await maker!.place(terms(market, count - 1, BUY, price, 1_000))).id);
        }
        for (const dealer of dealers) await merge(dealer, market, 2_000);
        if (n === 0) {
          const fills = await dealers[0].all<OwnFillJson>(`/me/fills?market_id=${market.id}`);
          expect(new Set(fills.map(({ match_type }) => match_type))).toEqual(new Set(["mint"]));
          expect(fills.every(({ fee, rebate }) => fee === 0 && rebate === 0)).toBe(true);
        }
      });
      expect(earned).toBe(0);
    },
  );
});

test("direct and merge matches with each other cost at least as much in fees as they earn in rebates", async () => {
  const market = world.market(3);
  const random = Random.printed("self-dealing");
  const dealers = [world.client("ann"), world.client("bea"), world.client("free")] as const;
  for (const dealer of dealers) await world.split(dealer, market, 5_000);
  const before = (await totals(dealers)) + 15_000 * USDC;
  let rebates = 0;
  const kinds = new Set<string>();
  await deal(dealers, 40, async () => {
    const price = random.integer(1, 9_999);
    const outcome = random.integer(0, 2);
    const sides = random.pick([
      [BUY, SELL],
      [SELL, BUY],
    ] as const);
    const [maker, taker] = random.pick([
      [dealers[0], dealers[1]],
      [dealers[0], dealers[2]],
      [dealers[2], dealers[1]],
    ] as const);
    await maker.place(terms(market, outcome, sides[0], price, 100));
    await filled(taker, (await taker.place(terms(market, outcome, sides[1], price, 100))).id);
    // A merge match; in some rounds, one side pays no fee.
    await maker.data("PUT", `/quotes/${market.id}`, {
      quotes: [quote(market, 0, SELL, 3_000, 50), quote(market, 1, SELL, random.integer(2_000, 4_000), 50)],
    });
    await taker.place(terms(market, 2, SELL, 1, 50, { time_in_force: "ioc" }));
    for (const dealer of dealers) await dealer.data("DELETE", `/orders?market_id=${market.id}`);
  });
  for (const dealer of dealers) {
    for (const { id, fee, rebate, match_type } of await dealer.all<OwnFillJson>(`/me/fills?market_id=${market.id}`)) {
      expect([id, fee >= 0]).toEqual([id, true]);
      rebates += rebate;
      kinds.add(match_type);
    }
  }
  expect(rebates).toBeGreaterThan(0);
  expect([...kinds].sort()).toEqual(["direct", "merge"]);
  // Each remaining set finally pays 1 USDC: the payouts of its three outcomes add up to it.
  await closeOut(market);
  expect((await totals(dealers)) - before).toBeLessThanOrEqual(0);
});

test("a voided market pays 1 USDC a set, whoever holds its shares", async () => {
  const market = world.market(3);
  const [ann, bea] = [world.client("ann"), world.client("bea")];
  const before = await totals([ann, bea]);
  const { house } = await ann.solvency();
  await ann.place(terms(market, 0, BUY, 3_334, 777));
  await ann.place(terms(market, 1, BUY, 3_333, 777));
  await filled(bea, (await bea.place(terms(market, 2, BUY, 3_333, 777))).id);
  await closeOut(market);
  const { resolution } = await ann.get<{ resolution: object }>(`/markets/${market.id}`);
  expect(resolution).toMatchObject({ payouts: [3_334, 3_333, 3_333] });
  expect(await totals([ann, bea])).toBe(before);
  expect((await ann.solvency()).house).toBe(house);
});

describe("the merge fee", () => {
  const limits = (client: Client): Promise<LimitsJson> => client.get("/me/limits");

  test("the merge fee is MERGE_FEE of each set, shown in the response, the transactions, the position and the house", async () => {
    const [user, market] = [world.user(), world.market(3)];
    expect(await limits(user)).toMatchObject({ fees: { merge_fee: MERGE_FEE } });
    expect(await user.data("POST", "/wallet/split", { market_id: market.id, quantity: 9 })).toEqual({
      ...{ market_id: market.id, quantity: 9, fee: 0 },
    });
    const { house } = await user.solvency();
    const fee = 3 * MERGE_FEE * 100;
    // A retry returns the same, and costs nothing.
    const body = { market_id: market.id, quantity: 3 };
    for (let i = 0; i < 2; i++) {
      const answer = await user.request("POST", "/wallet/merge", { body, headers: { "Idempotency-Key": "merge" } });
      expect([answer.code, answer.data]).toEqual([0, { ...body, fee }]);
    }
    expect((await user.solvency()).house - house).toBe(fee);
    const rows = await user.all<TransactionJson>("/wallet/transactions", 1);
    const before = 10_000 * USDC;
    expect(rows.map(({ type, amount, balance_after, market_id }) => [type, amount, balance_after, market_id])).toEqual([
      ["fee", -fee, before - 6 * USDC - fee, market.id],
      ["merge", 3 * USDC, before - 6 * USDC, market.id],
      ["split", -9 * USDC, before - 9 * USDC, market.id],
      ["deposit", before, before, null],
    ]);
    expect(await user.balance()).toMatchObject({ available: before - 6 * USDC - fee });
    const positions = await user.all<PositionJson>(`/me/positions?market_id=${market.id}`);
    expect(positions.map(({ quantity }) => quantity)).toEqual([6, 6, 6]);
    expect(positions.reduce((sum, { realized_pnl }) => sum + realized_pnl, 0)).toBe(-fee);
  });

  test("the merge fee is that of the user's terms if they set one, even 0", async () => {
    const market = world.market(2);
    for (const [name, bps] of [
      ["cheap", 7],
      ["ann", 0],
    ] as const) {
      // biome-ignore format: pairs
      const client = world.client(name);
      expect(await limits(client)).toMatchObject({ fees: { merge_fee: bps } });
      await world.split(client, market, 3);
      expect(await merge(client, market, 3)).toEqual({ market_id: market.id, quantity: 3, fee: 3 * bps * 100 });
    }
    const [last] = await world.client("ann").all<TransactionJson>("/wallet/transactions");
    expect(last).toMatchObject({ type: "merge", amount: 3 * USDC });
  });

  test("the merge fee is listed among trading fees, whatever the page size", async () => {
    const [user, other, market] = [world.user(), world.client("ann"), world.market(2)];
    await world.split(user, market, 40);
    for (let i = 0; i < 4; i++) {
      await merge(user, market, 2);
      await user.place(terms(market, 0, SELL, 5_000, 3));
      await filled(other, (await other.place(terms(market, 0, BUY, 5_000, 3))).id);
    }
    const all = await user.all<TransactionJson>("/wallet/transactions", 200);
    let after = 0;
    for (const { id, amount, balance_after } of all.toReversed()) {
      after += amount;
      expect([id, balance_after]).toEqual([id, after]);
    }
    expect(await user.balance()).toMatchObject({ total: after });
    const fees = all.filter(({ type }) => type === "fee");
    expect(fees.map(({ order_id, amount }) => [order_id === null, amount])).toEqual(
      Array.from({ length: 4 }, () => [
        [false, -Math.ceil((3 * MICRO_PER_SHARE * 75) / 10_000)],
        [true, -2 * MERGE_FEE * 100],
      ]).flat(),
    );
    for (const limit of [1, 2, 3, 200]) {
      expect(await user.all<TransactionJson>("/wallet/transactions?type=fee", limit), `by ${limit}`).toEqual(fees);
      expect(await user.all<TransactionJson>("/wallet/transactions", limit), `by ${limit}`).toEqual(all);
    }
  });
});
