/** Deposits of users and of the house, the house's earnings, settlements, and what positions are worth. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MarketStatus } from "../../engine/constants.ts";
import { MAX_MONEY_MICRO } from "../../engine/limits.ts";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { MAX_PAYMENT_MICRO } from "../../server/wallet/limits.ts";
import { expectBalanced, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import type { Answer, BalanceJson, Client, PositionJson, TransactionJson } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import { Guests, PASSWORD, type UserJson } from "../support/identity.ts";
import { writeInto } from "../support/journal.ts";
import { auditOf, type DepositJson, deposit, expectAddsUp, type NewDepositJson } from "../support/money.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { alone, BUY, expectRefused, SELL, terms } from "../support/trading.ts";
import { PUBLIC_URL, USDC, World } from "../support/world.ts";

const FIRST = 10_000 * USDC;

let world: World;
let operator: Client;
let operatorName: string;
const guests = new Guests();
beforeAll(async () => {
  const named = { chief: { role: "operator" as const, password: PASSWORD, deposit: 0 } };
  world = await World.start({ users: 20, named, markets: [...Array<number>(6).fill(2), 3, 3], env: { PUBLIC_URL } });
  const { client, user } = await guests.signIn(world.server, "chief@example.com");
  operator = client;
  operatorName = `operator ${user.id}`;
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  guests.close();
  await expectEndsWell(world);
});

const idOf = async (user: Client): Promise<number> => (await user.get<UserJson>("/me")).id;
const credit = (user_id: number, amount: unknown, reference: string): Promise<Answer<NewDepositJson>> =>
  operator.request("POST", "/admin/deposits", { body: { user_id, amount, reference } });
const fund = (amount: number, reference: string): Promise<Answer<NewDepositJson>> =>
  operator.request("POST", "/admin/house/deposits", { body: { amount, reference } });
const takeOut = (amount: number, reference: string): Promise<Answer> =>
  operator.request("POST", "/admin/house/withdrawals", { body: { amount, reference } });

describe("deposits", () => {
  test("are credited once for a reference, told to the user, listed and audited", async () => {
    const user = world.user();
    const userId = await idOf(user);
    const socket = await world.socket(user);
    const before = await world.anonymous().solvency();
    const answer = await credit(userId, 5 * USDC, "wire 1 (a)");
    expect(answer.status).toBe(201);
    const { approval, ...made } = answer.data;
    const { id, created_at } = made;
    expect(approval).toBeNull();
    expect(made).toEqual({ id, user_id: userId, amount: 5 * USDC, reference: "wire 1 (a)", created_at });
    expect(await user.balance()).toEqual({ available: FIRST + 5 * USDC, held: 0, total: FIRST + 5 * USDC });
    await socket.frame<BalanceJson>("balance.updated", ({ total }) => total === FIRST + 5 * USDC);
    expect((await world.anonymous().solvency()).deposits).toBe(before.deposits + 5 * USDC);
    expect(auditOf(world.server.dataDir, answer)).toEqual([
      {
        ...{ action: "wallet.deposit", actor: operatorName, user_id: userId, subject: id },
        details: { amount: 5 * USDC, reference: "wire 1 (a)" },
      },
    ]);
    const repeated = await credit(userId, 5 * USDC, "wire 1 (a)");
    expect([repeated.status, repeated.data]).toEqual([201, answer.data]);
    expect(auditOf(world.server.dataDir, repeated)).toEqual([]);
    const other = await idOf(world.user());
    await expectRefused(credit(userId, 5 * USDC + 1, "wire 1 (a)"), 409, 40900, /^reference/);
    await expectRefused(credit(other, 5 * USDC, "wire 1 (a)"), 409, 40900, /^reference/);
    await expectRefused(fund(5 * USDC, "wire 1 (a)"), 409, 40900, /^reference/);
    await expectRefused(takeOut(1, "wire 1 (a)"), 409, 40900, /^reference/);
    expect((await user.balance()).total).toBe(FIRST + 5 * USDC);
    const own = await user.all<DepositJson>("/wallet/deposits", 1);
    expect(own[0]).toEqual({ id, amount: 5 * USDC, reference: "wire 1 (a)", created_at });
    expect(own.map(({ amount }) => amount)).toEqual([5 * USDC, FIRST]);
    const ofUser = await operator.all<DepositJson>(`/admin/deposits?user_id=${userId}`, 1);
    expect(ofUser.map((row) => row.user_id)).toEqual([userId, userId]);
    expect(ofUser[0]).toEqual(made);
    expect((await operator.all<DepositJson>("/admin/deposits", 3))[0]).toEqual(made);
    await expectAddsUp(user);
    await socket.close();
  });

  test("many with one reference at once are one, with its own each are all", async () => {
    const user = world.user();
    const userId = await idOf(user);
    const wide = guests.client(world.server, operator.token, 8);
    const same = await Promise.all(Array.from({ length: 8 }, () => deposit(wide, userId, USDC, "at once")));
    expect(new Set(same.map(({ id }) => id)).size).toBe(1);
    const own = await Promise.all(Array.from({ length: 8 }, (_, i) => deposit(wide, userId, USDC, `one of many ${i}`)));
    expect(new Set(own.map(({ id }) => id)).size).toBe(8);
    expect((await user.balance()).total).toBe(FIRST + 9 * USDC);
    await expectAddsUp(user);
  });

  test("bad ones name what is wrong, and credit nothing", async () => {
    const user = world.user();
    const userId = await idOf(user);
    const bad: [amount: unknown, reference: string, message: RegExp][] = [
      [0, "x", /^amount/],
      [-5, "x", /^amount/],
      [0.5, "x", /^amount/],
      ["5", "x", /^amount/],
      [MAX_PAYMENT_MICRO + 1, "x", /^amount/],
      // None may look like another.
      ...[
        "",
        "x".repeat(129),
        "\u00fc",
        "u\u0308",
        " x",
        "x ",
        "x  y",
        "x\u00a0y",
        "a\tb",
        "a\u2028b",
        "\u202e",
        "seed:x",
      ].map((reference): [number, string, RegExp] => [1, reference, /^reference/]),
    ];
    for (const [amount, reference, message] of bad) {
      await expectRefused(credit(userId, amount, reference), 400, 40000, message);
      const house = operator.request("POST", "/admin/house/deposits", { body: { amount, reference } });
      await expectRefused(house, 400, 40000, message);
      const out = operator.request("POST", "/admin/house/withdrawals", { body: { amount, reference } });
      await expectRefused(out, 400, 40000, message);
    }
    await expectRefused(credit(999_999, 1, "nobody's"), 404, 4040, /user/);
    await deposit(operator, userId, 1, "x".repeat(128));
    expect((await user.balance()).total).toBe(FIRST + 1);
  });

  test("are no more than the exchange can count, all together", async () => {
    await alone(
      { users: 1, named: { chief: { role: "operator", password: PASSWORD } }, env: { PUBLIC_URL } },
      async (own) => {
        const chief = guests.client(own.server, (await guests.signIn(own.server, "chief@example.com")).accessToken, 8);
        const most = Math.floor(MAX_MONEY_MICRO / MAX_PAYMENT_MICRO);
        const pay = (n: number) => {
          const body = { amount: MAX_PAYMENT_MICRO, reference: `n ${n}` };
          return chief.request("POST", "/admin/house/deposits", { body });
        };
        const answers = await Promise.all(Array.from({ length: most + 2 }, (_, n) => pay(n)));
        // The users have some already.
        expect(answers.filter(({ code }) => code === 0)).toHaveLength(most - 1);
        for (const { code, msg } of answers)
          if (code !== 0) expect([code, msg]).toEqual([40900, expect.stringMatching(/maximum of deposits/)]);
        await expectBalanced(chief);
      },
    );
  });

  test("of a seed that asks for too much are in the log as far as they went; the start ends", async () => {
    const users = ["a", "b"].map((name) => ({ email: `${name}@example.com`, deposit: MAX_MONEY_MICRO }));
    const dataDir = temporaryFolder();
    const { code, errors } = await TestServer.refuse({ dataDir, seed: { users } as Seed });
    expect([code, errors]).toEqual([1, expect.stringMatching(/SEED_FILE: .*maximum of deposits/)]);
    expectSoundDatabase(dataDir);
    const credited = rowsOf<{ reference: string }>(dataDir, "SELECT reference FROM entries");
    const told = rowsOf<{ details: string }>(dataDir, "SELECT details FROM audit_log WHERE action = 'wallet.deposit'");
    expect(credited.map(({ reference }) => reference)).toEqual(["seed:a@example.com"]);
    expect(told.map(({ details }) => JSON.parse(details).reference)).toEqual(["seed:a@example.com"]);
  });

  test("survive a kill -9 that follows the answer, and stay one with their reference", async () => {
    await alone(
      { users: 1, named: { chief: { role: "operator", password: PASSWORD } }, env: { PUBLIC_URL } },
      async (own) => {
        const chief = await guests.signIn(own.server, "chief@example.com");
        const userId = await idOf(own.client("user0"));
        const before = await deposit(chief.client, userId, USDC, "durable");
        await own.server.kill();
        expectSoundDatabase(own.server.dataDir);
        own.server = await own.server.restart();
        const again = guests.client(own.server, chief.accessToken);
        expect(await deposit(again, userId, USDC, "durable")).toEqual(before);
        expect((await own.client("user0").balance()).total).toBe(FIRST + USDC);
      },
    );
  });
});

describe("the house", () => {
  test("is funded, and its money taken out, once for each reference and never below nothing", async () => {
    const { house } = await world.anonymous().solvency();
    const funded = await fund(7 * USDC, "house 1");
    expect(funded.data).toMatchObject({ user_id: null, amount: 7 * USDC, reference: "house 1" });
    expect((await fund(7 * USDC, "house 1")).data).toEqual(funded.data);
    expect(auditOf(world.server.dataDir, funded)).toEqual([
      {
        ...{ action: "house.deposit", actor: operatorName, user_id: null, subject: funded.data.id },
        details: { amount: 7 * USDC, reference: "house 1" },
      },
    ]);
    expect((await world.anonymous().solvency()).house).toBe(house + 7 * USDC);
    await expectRefused(takeOut(house + 7 * USDC + 1, "house 2"), 422, 42201, /the house has/);
    const taken = await takeOut(3 * USDC, "house 2");
    expect(taken.status).toBe(201);
    expect(taken.data).toMatchObject({ withdrawal: { amount: 3 * USDC, reference: "house 2" }, approval: null });
    expect(auditOf(world.server.dataDir, taken)).toMatchObject([
      { action: "house.withdraw", actor: operatorName, user_id: null, details: { amount: 3 * USDC } },
    ]);
    const repeated = await takeOut(3 * USDC, "house 2");
    expect([repeated.data, auditOf(world.server.dataDir, repeated)]).toEqual([taken.data, []]);
    await expectRefused(takeOut(2 * USDC, "house 2"), 409, 40900, /^reference/);
    await expectRefused(takeOut(7 * USDC, "house 1"), 409, 40900, /^reference/);
    const wide = guests.client(world.server, operator.token, 8);
    const body = { amount: house + 3 * USDC, reference: "" };
    const racing = Array.from({ length: 4 }, (_, i) => {
      return wide.request("POST", "/admin/house/withdrawals", { body: { ...body, reference: `race ${i}` } });
    });
    const codes = (await Promise.all(racing)).map(({ code }) => code);
    expect(codes.filter((code) => code === 0)).toHaveLength(1);
    expect(codes.filter((code) => code === 42201 || code === 40900)).toHaveLength(3);
    expect((await world.anonymous().solvency()).house).toBe(USDC);
    const [newest] = await operator.all<DepositJson>("/admin/deposits");
    expect({ ...newest, approval: null }).toEqual(funded.data);
    await expectBalanced(world.anonymous());
  });
});

describe("positions", () => {
  const positions = async (user: Client): Promise<Map<number, PositionJson>> =>
    new Map((await user.all<PositionJson>("/me/positions")).map((position) => [position.outcome_id, position]));

  test("are worth the last price, or what the others' leave of a set, and their profit is told", async () => {
    const [market, maker, taker] = [world.market(), world.user(), world.user()];
    const [yes, no] = market.outcomes as [number, number];
    const socket = await world.socket(maker);
    await world.split(maker, market, 10);
    for (const outcome of [yes, no]) {
      expect((await positions(maker)).get(outcome)).toMatchObject({ market_value: null, unrealized_pnl: null });
    }
    await maker.place(terms(market, 0, SELL, 7_000, 4));
    await taker.place(terms(market, 0, BUY, 7_000, 4));
    const held = await positions(maker);
    expect(held.get(yes)).toMatchObject({
      quantity: 6,
      cost: 3 * USDC,
      market_value: 4_200_000,
      unrealized_pnl: 1_200_000,
    });
    expect(held.get(no)).toMatchObject({
      quantity: 10,
      cost: 5 * USDC,
      market_value: 3 * USDC,
      unrealized_pnl: -2 * USDC,
    });
    const told = await socket.frame<PositionJson>("position.updated", ({ outcome_id, quantity }) => {
      return outcome_id === yes && quantity === 6;
    });
    expect(told.data).toEqual(held.get(yes));
    // A mint names the price of the outcome that it traded; the resting side's follows from it.
    const [second, buyer, seller] = [world.market(), world.user(), world.user()];
    await buyer.place(terms(second, 0, BUY, 4_000, 3));
    await seller.place(terms(second, 1, BUY, 6_000, 3));
    const outcomes = await world
      .anonymous()
      .get<{ outcomes: { last_price: number | null }[] }>(`/markets/${second.id}`);
    const prices = outcomes.outcomes.map(({ last_price }) => last_price);
    expect(prices.filter((price) => price === null).length).toBeLessThan(2);
    expect((await positions(buyer)).get(second.outcomes[0]!)).toMatchObject({
      market_value: 1_200_000,
      unrealized_pnl: 0,
    });
    expect((await positions(seller)).get(second.outcomes[1]!)).toMatchObject({
      market_value: 1_800_000,
      unrealized_pnl: 0,
    });
    await socket.close();
  });

  test("sold out they are worth nothing, and among three outcomes two prices must be known", async () => {
    const [market, maker, taker] = [world.market(3), world.user(), world.user()];
    const [a, b, c] = market.outcomes as [number, number, number];
    await world.split(maker, market, 5);
    const trade = async (outcome: number, price: number, quantity: number): Promise<void> => {
      await maker.place(terms(market, outcome, SELL, price, quantity));
      await taker.place(terms(market, outcome, BUY, price, quantity));
    };
    await trade(0, 6_000, 5);
    const first = await positions(maker);
    expect(first.get(a)).toMatchObject({ quantity: 0, market_value: 0, unrealized_pnl: 0 });
    expect(first.get(b)).toMatchObject({ market_value: null, unrealized_pnl: null });
    await trade(1, 5_000, 1);
    const second = await positions(maker);
    expect(second.get(b)).toMatchObject({ quantity: 4, market_value: 2 * USDC });
    // The two known prices alone pass a set's worth.
    expect(second.get(c)).toMatchObject({ quantity: 5, market_value: 0, unrealized_pnl: -second.get(c)!.cost });
  });
});

test("settlements: each holder is told what its shares were paid, losers too", async () => {
  await alone(
    { users: 3, named: { chief: { role: "operator", password: PASSWORD } }, markets: [2, 3], env: { PUBLIC_URL } },
    async (own) => {
      const [first, second] = [own.market(2), own.market(3)];
      let [maker, taker, stranger] = [own.user(), own.user(), own.user()];
      await own.split(maker, first, 10);
      await own.split(maker, second, 7);
      await maker.place(terms(first, 0, SELL, 4_000, 6));
      await taker.place(terms(first, 0, BUY, 4_000, 6));
      await own.server.stop();
      const { dataDir } = own.server;
      withDatabase(dataDir, (db) => db.prepare("UPDATE markets SET status = ?").run(MarketStatus.closed));
      const at = Date.now();
      const rest = { kind: "settleMarket", note: null, at } as const;
      writeInto(
        dataDir,
        { ...rest, marketId: first.id, status: MarketStatus.resolved, payouts: [10_000, 0] },
        { ...rest, marketId: second.id, status: MarketStatus.voided, payouts: [3_334, 3_333, 3_333] },
      );
      expectSoundDatabase(dataDir);
      own.server = await own.server.restart();
      [maker, taker, stranger] = ["user0", "user1", "user2"].map((name) => own.client(name)) as [
        Client,
        Client,
        Client,
      ];
      type Settled = Record<string, number>;
      const settled = await maker.all<Settled>("/wallet/settlements", 2);
      const row = (outcome_id: number, quantity: number, payout: number, amount: number, cost: number): object => ({
        ...{ outcome_id, quantity, payout, amount, cost, realized_pnl: amount - cost, created_at: at },
      });
      const part = 2_333_100;
      expect(settled.map(({ id: _, market_id: __, ...shown }) => shown)).toEqual([
        row(second.outcomes[2]!, 7, 3_333, part, settled[0]!["cost"]!),
        row(second.outcomes[1]!, 7, 3_333, part, settled[1]!["cost"]!),
        row(second.outcomes[0]!, 7, 3_334, part + 700, settled[2]!["cost"]!),
        row(first.outcomes[1]!, 10, 0, 0, 5 * USDC),
        row(first.outcomes[0]!, 4, 10_000, 4 * USDC, 2 * USDC),
      ]);
      expect(settled.slice(0, 3).reduce((sum, { cost }) => sum + cost!, 0)).toBe(7 * USDC);
      expect(await maker.all(`/wallet/settlements?market_id=${first.id}`, 1)).toEqual(settled.slice(3));
      expect(await taker.all("/wallet/settlements")).toMatchObject([
        row(first.outcomes[0]!, 6, 10_000, 6 * USDC, 2_400_000),
      ]);
      expect(await stranger.all("/wallet/settlements")).toEqual([]);
      const told = await maker.all<TransactionJson>("/wallet/transactions?type=settlement", 2);
      expect(told.map(({ amount, market_id, outcome_id }) => ({ amount, market_id, outcome_id }))).toEqual(
        settled.map(({ amount, market_id, outcome_id }) => ({ amount, market_id, outcome_id })),
      );
      const [position] = await maker.all<PositionJson>(`/me/positions?market_id=${first.id}`);
      expect(position).toMatchObject({
        quantity: 0,
        cost: 0,
        market_value: 0,
        unrealized_pnl: 0,
        realized_pnl: -5 * USDC,
      });
      for (const user of [maker, taker]) await expectAddsUp(user);
      await expectBalanced(own.anonymous());
    },
  );
});
