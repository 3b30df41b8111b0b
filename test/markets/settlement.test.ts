/**
 * What a resolution pays: every number of outcomes, fractions, voids, holders of several outcomes and of worthless ones;
 * what clients receive, what remains readable, and that a crash leaves a settlement complete or undone.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectBalanced, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import type { BalanceJson, Client, MarketJson, PositionJson, TradeJson, TransactionJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { ask, asOperator, newMarket, OPERATORS, type SettlementJson, settle, take } from "../support/markets.ts";
import { Random } from "../support/random.ts";
import { feeOn, notional, rebateOn } from "../support/reference.ts";
import type { Socket } from "../support/socket.ts";
import { BUY, books, expectRefused, post, SELL, terms } from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

const DEPOSIT = 10_000 * USDC;
/** Users with sets in the markets that a kill interrupts. */
const HOLDERS = 12;
const SETS = 25;
const tradable = ({ id, slug, outcomes }: MarketJson): TestMarket => ({
  id,
  slug,
  outcomes: outcomes.map((each) => each.id),
});

describe("on one server", () => {
  let world: World;
  let operator: Client;
  beforeAll(async () => {
    const holders = Object.fromEntries(Array.from({ length: HOLDERS }, (_, i) => [`holder${i}`, {}]));
    world = await World.start({ users: 30, named: { ...OPERATORS, ...holders }, markets: [2, 3, 3, 3, 3, 3] });
    operator = await asOperator(world);
  });
  afterAll(async () => {
    await expectBalanced(world.anonymous());
    operator.close();
    await expectEndsWell(world);
  });

  const made = async (outcomes: number): Promise<TestMarket> => {
    const names = Array.from({ length: outcomes }, (_, i) => `Outcome ${i}`);
    return tradable(await operator.data<MarketJson>("POST", "/admin/markets", newMarket({ outcomes: names })));
  };
  /** Sells shares at a price; returns what the buyer paid and the seller received. */
  async function sell(
    seller: Client,
    buyer: Client,
    market: TestMarket,
    outcome: number,
    price: number,
    quantity: number,
  ) {
    await seller.place(terms(market, outcome, SELL, price, quantity));
    const { id } = await buyer.place(terms(market, outcome, BUY, price, quantity));
    await eventually(async () => expect((await buyer.order(id)).status).toBe("filled"));
    const n = notional(price, quantity);
    return { paid: n, got: n - feeOn(n) + rebateOn(n, true) };
  }

  const WORTH: readonly (readonly [outcomes: number, body: { payouts: number[] } | null, pays: number[]])[] = [
    [2, { payouts: [10_000, 0] }, [10_000, 0]],
    [2, { payouts: [1, 9_999] }, [1, 9_999]],
    [2, { payouts: [2_345, 7_655] }, [2_345, 7_655]],
    [2, null, [5_000, 5_000]],
    [3, { payouts: [0, 10_000, 0] }, [0, 10_000, 0]],
    [3, { payouts: [3_333, 3_334, 3_333] }, [3_333, 3_334, 3_333]],
    [3, null, [3_334, 3_333, 3_333]],

    [5, { payouts: [0, 0, 1, 0, 9_999] }, [0, 0, 1, 0, 9_999]],
    [5, null, [2_000, 2_000, 2_000, 2_000, 2_000]],
    [7, null, [1_429, 1_429, 1_429, 1_429, 1_428, 1_428, 1_428]],
  ];
  test.each(WORTH)(
    "a resolution with %i outcomes, %j: holders receive what their shares pay, and a set 1 USDC",
    async (count, body, pays) => {
      const market = await made(count);
      // Ann keeps some of every outcome, Ben buys two of them, Cem only the last.
      const users = [world.client("user0"), world.client("user1"), world.client("user2")] as const;
      const [ann, ben, cem] = users;
      const before = await Promise.all(users.map((user) => user.balance()));
      await world.split(ann, market, 100);
      const last = count - 1;
      const sales = [
        await sell(ann, ben, market, 0, 4_000, 30),
        await sell(ann, ben, market, last, 1_500, 20),
        await sell(ann, cem, market, last, 2_500, 41),
      ] as const;
      const sockets = await Promise.all(users.map((user) => world.socket(user)));
      await take(operator, market, "close");
      const atClose = await operator.solvency();
      expectResolved(await settle(operator, market, body), market, body, pays);
      const shares = [
        pays.map((_, i) => 100 - (i === 0 ? 30 : 0) - (i === last ? 61 : 0)),
        pays.map((_, i) => (i === 0 ? 30 : i === last ? 20 : 0)),
        pays.map((_, i) => (i === last ? 41 : 0)),
      ];
      const due = shares.map((held) => held.reduce((sum, quantity, i) => sum + quantity * pays[i]! * 100, 0));
      const traded = [
        sales[0].got + sales[1].got + sales[2].got - 100 * USDC,
        -sales[0].paid - sales[1].paid,
        -sales[2].paid,
      ];
      expect(due.reduce((sum, each) => sum + each, 0)).toBe(100 * USDC);
      const { collateral, house } = atClose;
      expect(await operator.solvency()).toMatchObject({ balanced: true, collateral: collateral - 100 * USDC, house });
      for (const [i, user] of users.entries()) {
        const total = before[i]!.total + traded[i]! + due[i]!;
        await expectPaid(user, sockets[i]!, market, { total, shares: shares[i]!, pays });
      }
      // A position's result: what it paid out less the price paid.
      expect(await cem.position(market.outcomes[last]!)).toMatchObject({
        quantity: 0,
        held: 0,
        cost: 0,
        average_price: null,
        realized_pnl: 41 * pays[last]! * 100 - sales[2].paid,
      });
      for (const socket of sockets) await socket.close();
    },
  );

  function expectResolved(settled: MarketJson, market: TestMarket, body: object | null, pays: readonly number[]): void {
    const { resolution, open_interest, status } = settled;
    const winner = pays.indexOf(10_000);
    expect([status, open_interest]).toEqual([body === null ? "voided" : "resolved", 0]);
    expect(resolution).toMatchObject({
      payouts: pays,
      outcome_id: winner < 0 ? null : market.outcomes[winner],
      note: null,
    });
  }

  interface Paid {
    /** micro-USDC after the settlement */
    readonly total: number;
    /** By outcome, held before the settlement. */
    readonly shares: readonly number[];
    readonly pays: readonly number[];
  }

  /** The user's balance, transactions and socket show that the settlement paid for each outcome held. */
  async function expectPaid(user: Client, socket: Socket, market: TestMarket, { total, shares, pays }: Paid) {
    expect(await user.balance()).toEqual({ available: total, held: 0, total });
    const update = await socket.frame<BalanceJson>("balance.updated", (data) => data.total === total);
    const entries = await user.all<TransactionJson>("/wallet/transactions?type=settlement");
    const own = entries.filter(({ market_id }) => market_id === market.id).reverse();
    const held = market.outcomes.flatMap((outcome, n) =>
      shares[n]! > 0 ? [[outcome, shares[n]! * pays[n]! * 100]] : [],
    );
    expect(own.map(({ outcome_id, amount }) => [outcome_id, amount])).toEqual(held);
    expect(own.at(-1)!.balance_after).toBe(total);
    expect(update.data.available).toBe(total);
    for (const [outcome] of held) {
      const isClosed = (data: PositionJson): boolean => data.outcome_id === outcome && data.quantity === 0;
      await socket.frame<PositionJson>("position.updated", isClosed);
    }
  }

  test("a market without holders resolves and voids too", async () => {
    const market = await made(2);
    expect(await settle(operator, market, { outcome_id: market.outcomes[0] })).toMatchObject({
      status: "resolved",
      open_interest: 0,
    });
    const [user, other] = [world.client("user3"), await made(2)];
    await world.split(user, other, 5);
    await user.data("POST", "/wallet/merge", { market_id: other.id, quantity: 5 });
    expect(await settle(operator, other, null)).toMatchObject({ status: "voided", open_interest: 0 });
    expect(await user.all("/wallet/transactions?type=settlement")).toEqual([]);
  });

  test("merges in flight complete before a resolution, later ones are rejected; every set is paid once", async () => {
    const random = Random.printed("merges while a market is resolved");
    for (let round = 0; round < 8; round++) {
      const market = await made(2);
      const user = world.client("user4", 0, 8);
      const before = (await user.balance()).total;
      await world.split(user, market, 40);
      await take(operator, market, "close");
      const merge = () => user.request("POST", "/wallet/merge", { body: { market_id: market.id, quantity: 1 } });
      const merges = Array.from({ length: random.integer(0, 10) }, merge);
      const resolving = ask<SettlementJson>(operator, market, "resolve", { payouts: [4_000, 6_000] });
      merges.push(...Array.from({ length: random.integer(0, 10) }, merge));
      const codes = (await Promise.all(merges)).map(({ code }) => code);
      expect(codes.filter((code) => code !== 0 && code !== 42203)).toEqual([]);
      expect((await resolving).data.market).toMatchObject({ status: "resolved", open_interest: 0 });
      expect((await user.balance()).total).toBe(before);
      await expectRefused(merge(), 422, 42203, /resolved/);
    }
  });

  test("a resolved market stays readable over a restart, and rejects every trade", async () => {
    const market = await made(3);
    const [maker, taker] = [world.client("user5"), world.client("user6")];
    await world.split(maker, market, 20);
    await sell(maker, taker, market, 1, 4_200, 7);
    const candles = `/markets/${market.id}/candles?outcome_id=${market.outcomes[1]}&interval=1d`;
    const read = async (user: Client) => ({
      books: await books(user, market),
      trades: await user.all<TradeJson>(`/markets/${market.id}/trades`),
      candle: (await user.get<{ items: number[][] }>(candles)).items.at(-1),
      transactions: await user.all("/wallet/transactions"),
      positions: await user.all(`/me/positions?market_id=${market.id}`),
      market: await user.get<MarketJson>(`/markets/${market.id}`),
    });
    await settle(operator, market, { payouts: [0, 2_500, 7_500], note: "in the end" });
    const found = await read(maker);
    expect(found).toMatchObject({
      books: Array(3).fill({ bids: [], asks: [] }),
      trades: [{ price: 4_200, quantity: 7 }],
      market: { volume: 7, resolution: { payouts: [0, 2_500, 7_500], outcome_id: null, note: "in the end" } },
    });
    expect(found.candle!.slice(1)).toEqual([4_200, 4_200, 4_200, 4_200, 7]);
    const body = { market_id: market.id, quantity: 1 };
    await expectRefused(post(maker, terms(market, 0, BUY, 100, 1)), 422, 42203, /resolved/);
    for (const path of ["/wallet/split", "/wallet/merge"]) {
      await expectRefused(maker.request("POST", path, { body }), 422, 42203, /resolved/);
    }
    for (const step of ["open", "halt", "resume", "close", "void"])
      expect((await ask(operator, market, step)).code).toBe(40900);
    operator.close();
    await world.server.stop();
    world.server = await world.server.restart();
    operator = await asOperator(world);
    const again = world.client("user5");
    expect(await read(again)).toEqual(found);
    await expectRefused(post(again, terms(market, 0, BUY, 100, 1)), 422, 42203, /resolved/);
  });

  test("kill -9 right after the response to a resolution, and at any moment before: all holders are paid, or none", async () => {
    const random = Random.printed("kill -9 while a market is settled");
    const rounds = 5;
    const names = Array.from({ length: HOLDERS }, (_, i) => `holder${i}`);
    const seen = new Set<string>();
    for (let round = 0; round < rounds; round++) {
      const market = world.market(3);
      for (const name of names) await world.split(world.client(name), market, SETS);
      await take(operator, market, "close");
      const resolving = ask<SettlementJson>(operator, market, "resolve", { payouts: [1_000, 2_000, 7_000] });
      const answered = resolving.then(({ code }) => code, () => null); // biome-ignore format: one line
      const isAwaited = round % 4 === 0;
      if (isAwaited) expect(await answered).toBe(0);
      else await busyFor(random.next() * 12);
      await world.server.kill();
      const code = await answered;
      operator.close();
      expectSoundDatabase(world.server.dataDir);
      world.server = await world.server.restart();
      operator = await asOperator(world);
      const { status } = await world.client(names[0]!).get<MarketJson>(`/markets/${market.id}`);
      seen.add(status);
      // An acknowledged resolution is done; any other may be.
      if (code === 0) expect(status).toBe("resolved");
      expect(["closed", "resolved"]).toContain(status);
      const [paid] = rowsOf<{ entries: number }>(
        world.server.dataDir,
        "SELECT count(*) AS entries FROM entries WHERE type = 'settlement' AND market_id = ?",
        market.id,
      );
      expect(paid!.entries).toBe(status === "resolved" ? 3 * HOLDERS : 0);
      if (status === "closed") {
        await settle(operator, market, { payouts: [1_000, 2_000, 7_000] });
      }
      for (const name of names) expect((await world.client(name).balance()).total).toBe(DEPOSIT);
    }
    process.stdout.write(`after the kills: ${[...seen].join(", ")}\n`);
    expect(seen).toContain("resolved");
  });

  /** Waits for a fraction of a millisecond: too short for a timer. */
  async function busyFor(ms: number): Promise<void> {
    for (const until = performance.now() + ms; performance.now() < until; )
      await new Promise((resolve) => setImmediate(resolve));
  }
});
