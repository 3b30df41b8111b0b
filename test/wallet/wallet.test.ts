/**
 * Deposits of users and of the house, the house's withdrawals, the value of positions, and settlements. The tests of the
 * second half restart the shared server, and the last one fills the exchange with all the money that it can count.
 */
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
import { BUY, expectRefused, SELL, terms } from "../support/trading.ts";
import { PUBLIC_URL, type TestMarket, USDC, World } from "../support/world.ts";

const FIRST = 10_000 * USDC;

let world: World;
let operator: Client;
let operatorName: string;
const guests = new Guests();
beforeAll(async () => {
  const chief = { role: "operator" as const, password: PASSWORD, deposit: 0 };
  const named = { chief, depositor: {}, settled0: {}, settled1: {}, settled2: {} };
  world = await World.start({ users: 20, named, markets: [...Array<number>(7).fill(2), 3, 3, 3], env: { PUBLIC_URL } });
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
  test("deposits are credited once for a reference, sent to the user, listed and audited", async () => {
    // 1. The credit is answered, sent to the user, summed and audited.
    const user = world.user();
    const userId = await idOf(user);
    const socket = await world.socket(user);
    const before = await world.anonymous().solvency();
    const answer = await credit(userId, 5 * USDC, "wire 1 (a)");
    expect(answer.status).toBe(201);
    const { approval, ...made } = answer.data;
    const { id, created_at } = made;
    expect(approval).toBeNull();
    const kept = { id, amount: 5 * USDC, reference: "wire 1 (a)", reverses: null, created_at };
    expect(made).toEqual({ ...kept, user_id: userId });
    expect(await user.balance()).toEqual({ available: FIRST + 5 * USDC, held: 0, total: FIRST + 5 * USDC });
    await socket.frame<BalanceJson>("balance.updated", ({ total }) => total === FIRST + 5 * USDC);
    expect((await world.anonymous().solvency()).deposits).toBe(before.deposits + 5 * USDC);
    expect(auditOf(world.server.dataDir, answer)).toEqual([
      {
        ...{ action: "wallet.deposit", actor: operatorName, user_id: userId, subject: id },
        details: { amount: 5 * USDC, reference: "wire 1 (a)" },
      },
    ]);
    // 2. A repeat, in any case, returns the first response.
    const repeated = await credit(userId, 5 * USDC, "wire 1 (a)");
    expect([repeated.status, repeated.data]).toEqual([201, answer.data]);
    expect(auditOf(world.server.dataDir, repeated)).toEqual([]);
    // Whoever types a transaction's hash in capitals means the same transaction, and is told so.
    const shouted = await credit(userId, 5 * USDC, "WIRE 1 (A)");
    expect([shouted.status, shouted.data]).toEqual([201, { ...answer.data, repeats: id }]);
    // 3. Other terms under the reference are rejected.
    const other = await idOf(world.user());
    const has = new RegExp(`^reference: deposit ${id} of 5000000 micro-USDC to user ${userId} has it$`);
    await expectRefused(credit(userId, 5 * USDC + 1, "wire 1 (a)"), 409, 40900, has);
    await expectRefused(credit(userId, 5 * USDC + 1, "Wire 1 (A)"), 409, 40900, has);
    await expectRefused(credit(other, 5 * USDC, "wire 1 (a)"), 409, 40900, /^reference/);
    await expectRefused(fund(5 * USDC, "wire 1 (a)"), 409, 40900, /^reference/);
    await expectRefused(takeOut(1, "wire 1 (a)"), 409, 40900, /^reference/);
    expect((await user.balance()).total).toBe(FIRST + 5 * USDC);
    // 4. The deposit is on the lists of the user and of operators.
    const own = await user.all<DepositJson>("/wallet/deposits", 1);
    expect(own[0]).toEqual(kept);
    expect(own.map(({ amount }) => amount)).toEqual([5 * USDC, FIRST]);
    const ofUser = await operator.all<DepositJson>(`/admin/deposits?user_id=${userId}`, 1);
    expect(ofUser.map((row) => row.user_id)).toEqual([userId, userId]);
    expect(ofUser[0]).toEqual(made);
    expect((await operator.all<DepositJson>("/admin/deposits", 3))[0]).toEqual(made);
    await expectAddsUp(user);
    await socket.close();
  });

  test("many deposits at once with one reference are one, and with a reference each are as many", async () => {
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

  test("deposits that are malformed name the bad field, and credit nothing", async () => {
    const user = world.user();
    const userId = await idOf(user);
    const bad: [amount: unknown, reference: string, message: RegExp][] = [
      [0, "x", /^amount/],
      [-5, "x", /^amount/],
      [0.5, "x", /^amount/],
      ["5", "x", /^amount/],
      [MAX_PAYMENT_MICRO + 1, "x", /^amount/],
      // No reference may look like another.
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
        "SEED:x",
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

  test("deposits of a seed that is too large are in the audit log up to the first that fails, and the start fails", async () => {
    const users = ["a", "b"].map((name) => ({ email: `${name}@example.com`, deposit: MAX_MONEY_MICRO }));
    const dataDir = temporaryFolder();
    const { code, errors } = await TestServer.refuse({ dataDir, seed: { users } as Seed });
    expect([code, errors]).toEqual([1, expect.stringMatching(/SEED_FILE: .*total deposit limit/)]);
    expectSoundDatabase(dataDir);
    const credited = rowsOf<{ reference: string }>(dataDir, "SELECT reference FROM entries");
    const audited = rowsOf<{ details: string }>(
      dataDir,
      "SELECT details FROM audit_log WHERE action = 'wallet.deposit'",
    );
    expect(credited.map(({ reference }) => reference)).toEqual(["seed:a@example.com"]);
    expect(audited.map(({ details }) => JSON.parse(details).reference)).toEqual(["seed:a@example.com"]);
  });
});

describe("a reversal of a deposit", () => {
  const reverse = (id: number, amount: unknown, reference: string, note?: string): Promise<Answer<NewDepositJson>> =>
    operator.request("POST", `/admin/deposits/${id}/reverse`, { body: { amount, reference, note } });

  test("a reversal of a deposit takes back what went to the wrong account, once for a reference, and names the deposit", async () => {
    // 1. A part of the deposit is taken back: answered, sent, audited.
    const user = world.user();
    const userId = await idOf(user);
    const { id: depositId } = await deposit(operator, userId, 5 * USDC, "0xAB wrong");
    const socket = await world.socket(user);
    const before = await world.anonymous().solvency();
    const part = await reverse(depositId, 2 * USDC, "back 1", "wrong account");
    expect(part.status).toBe(201);
    const { id, created_at } = part.data;
    const row = { id, amount: -2 * USDC, reference: "back 1", reverses: depositId, created_at };
    expect(part.data).toEqual({ ...row, user_id: userId, approval: null });
    await socket.frame<BalanceJson>("balance.updated", ({ total }) => total === FIRST + 3 * USDC);
    expect(await user.balance()).toEqual({ available: FIRST + 3 * USDC, held: 0, total: FIRST + 3 * USDC });
    const details = { deposit: depositId, amount: 2 * USDC, reference: "back 1", note: "wrong account" };
    expect(auditOf(world.server.dataDir, part)).toEqual([
      { action: "wallet.reverse_deposit", actor: operatorName, user_id: userId, subject: id, details },
    ]);
    // 2. A repeat returns the first response; other terms under the reference are rejected.
    const repeated = await reverse(depositId, 2 * USDC, "back 1", "wrong account");
    expect([repeated.data, auditOf(world.server.dataDir, repeated)]).toEqual([part.data, []]);
    expect((await reverse(depositId, 2 * USDC, "BACK 1")).data).toEqual({ ...part.data, repeats: id });
    const has = new RegExp(`^reference: the reversal of deposit ${depositId}, ${id}, of 2000000 micro-USDC from user`);
    await expectRefused(reverse(depositId, 2 * USDC + 1, "back 1"), 409, 40900, has);
    await expectRefused(credit(userId, 2 * USDC, "Back 1"), 409, 40900, has);
    await expectRefused(reverse(depositId, 1, "0xab WRONG"), 409, 40900, /^reference: deposit \d+ of 5000000/);
    // 3. Nothing is reversed beyond the deposit.
    await expectRefused(reverse(depositId, 3 * USDC + 1, "back 2"), 409, 40900, /^amount: of deposit \d+, 3000000 /);
    await reverse(depositId, 3 * USDC, "back 3");
    await expectRefused(reverse(depositId, 1, "back 4"), 409, 40900, /^amount: of deposit \d+, 0 /);
    const after = await world.anonymous().solvency();
    expect([after.deposits, after.balanced]).toEqual([before.deposits - 5 * USDC, true]);
    // 4. The reversal is on every list, in the export and in the trail.
    const own = await user.all<DepositJson>("/wallet/deposits");
    expect(own.slice(0, 3).map(({ amount, reverses }) => [amount, reverses])).toEqual([
      ...[[-3 * USDC, depositId], [-2 * USDC, depositId], [5 * USDC, null]],
    ]); // biome-ignore format: pairs
    expect((await operator.all<DepositJson>(`/admin/deposits?user_id=${userId}`))[1]).toEqual({
      ...row,
      user_id: userId,
    });
    const transactions = await user.all<TransactionJson & { deposit_id: number }>("/wallet/transactions?type=deposit");
    expect(transactions.map(({ amount, deposit_id }) => [amount, deposit_id])).toEqual([
      ...[[-3 * USDC, depositId], [-2 * USDC, depositId], [5 * USDC, depositId]],
      [FIRST, own.at(-1)!.id],
    ]); // biome-ignore format: pairs
    const trail = await operator.data<{ deposits: object[] }>("GET", `/admin/users/${userId}/trail`);
    expect(trail.deposits[1]).toMatchObject({ id, amount: -2 * USDC, reverses: depositId, credited_by: operatorName });
    await expectAddsUp(user);
    await expectBalanced(world.anonymous());
    await socket.close();
  });

  test("a reversal of a deposit takes at most what is available: holds and shares stay", async () => {
    const [market, user] = [world.market(), world.user()];
    const userId = await idOf(user);
    const { id } = await deposit(operator, userId, 5 * USDC, "mostly spent");
    const order = await user.place(terms(market, 0, BUY, 5_000, 2));
    await user.data("POST", "/wallet/split", { market_id: market.id, quantity: 7 });
    // A seed's deposit can be taken back as well.
    const [seeded] = (await user.all<DepositJson>("/wallet/deposits")).slice(-1);
    await reverse(seeded!.id, FIRST - 7 * USDC, "seeded too much");
    const available = 4 * USDC;
    expect((await user.balance()).available).toBe(available);
    const poor = new RegExp(`^amount: user ${userId} has ${available} micro-USDC available$`);
    await expectRefused(reverse(id, available + 1, "too much"), 422, 42201, poor);
    expect((await reverse(id, available, "what is left")).data.amount).toBe(-available);
    expect(await user.balance()).toEqual({ available: 0, held: USDC, total: USDC });
    await user.cancel(order.id);
    expect((await reverse(id, USDC, "the rest")).code).toBe(0);
    expect((await user.balance()).total).toBe(0);
    await expectAddsUp(user);
  });

  test("a reversal of a deposit, an order and a split that race for the money: it goes to one of them", async () => {
    const [market, user] = [world.market(), world.user()];
    const userId = await idOf(user);
    const [seeded] = await user.all<DepositJson>("/wallet/deposits");
    await reverse(seeded!.id, FIRST - 5 * USDC, "all but 5");
    for (let round = 0; round < 10; round++) {
      const { available } = await user.balance();
      const { id } = await deposit(operator, userId, USDC, `raced ${round}`);
      const all = available + USDC;
      const quantity = Math.floor(all / USDC);
      const [reversal, placed, split] = await Promise.all([
        reverse(id, USDC, `back from race ${round}`),
        user.request("POST", "/orders", { body: terms(market, 0, BUY, 9_999, quantity) }),
        user.request("POST", "/wallet/split", { body: { market_id: market.id, quantity } }),
      ]);
      const codes = [reversal.code, placed.code, split.code];
      expect([round, codes.filter((code) => code === 0).length]).toEqual([round, 1]);
      for (const code of codes) expect([0, 42201]).toContain(code);
      await user.data("DELETE", "/orders");
      if (split.code === 0) await user.data("POST", "/wallet/merge", { market_id: market.id, quantity });
      await expectAddsUp(user);
    }
    await expectBalanced(world.anonymous());
  });

  test("a reversal of a deposit to the house comes out of the house", async () => {
    const { house, deposits, withdrawals } = await world.anonymous().solvency();
    const { id } = (await fund(2 * USDC, "meant for a user")).data;
    const taken = await reverse(id!, 2 * USDC, "house back");
    expect(taken.data).toMatchObject({ amount: -2 * USDC, user_id: null, reverses: id });
    expect(auditOf(world.server.dataDir, taken)).toMatchObject([{ action: "house.reverse_deposit", user_id: null }]);
    expect(await world.anonymous().solvency()).toMatchObject({ house, deposits, withdrawals, balanced: true });
    const again = (await fund(2 * USDC, "lent and spent")).data;
    await takeOut(house + USDC, "spent");
    await expectRefused(reverse(again.id!, 2 * USDC, "too late"), 422, 42201, /^amount: the house has 1000000 /);
    expect((await reverse(again.id!, USDC, "a part")).code).toBe(0);
    if (house > 0) await fund(house, "as before");
  });

  test("a reversal of a deposit that is malformed, of nothing, or of an own account is rejected", async () => {
    const user = world.user();
    const userId = await idOf(user);
    const { id } = await deposit(operator, userId, 5 * USDC, "stays");
    const reversed = (await reverse(id, 1, "one")).data.id!;
    for (const amount of [0, -1, 0.5, "1", null, undefined, MAX_PAYMENT_MICRO + 1]) {
      await expectRefused(reverse(id, amount, "x"), 400, 40000, /^amount/);
    }
    for (const reference of ["", " x", "seed:x", "Seed:x", "x".repeat(129)]) {
      await expectRefused(reverse(id, 1, reference), 400, 40000, /^reference/);
    }
    await expectRefused(operator.request("POST", `/admin/deposits/${id}/reverse`, { body: { amount: 1 } }), 400, 40000);
    // Of nothing, of a reversal, and of an entry that is no deposit.
    await user.data("POST", "/wallet/split", { market_id: world.market().id, quantity: 1 });
    const [split] = await user.all<TransactionJson>("/wallet/transactions");
    for (const other of [999_999_999, reversed, split!.id / 4]) {
      await expectRefused(reverse(other, 1, "x"), 404, 4040, /deposit/);
    }
    for (const wrong of ["0", "x", "1.5", "-1"]) {
      await expectRefused(operator.request("POST", `/admin/deposits/${wrong}/reverse`, { body: {} }), 400, 40000);
    }
    await expectRefused(user.request("POST", `/admin/deposits/${id}/reverse`, { body: {} }), 403, 40300);
    expect((await user.balance()).total).toBe(FIRST + 5 * USDC - 1 - USDC);
  });
});

describe("the house", () => {
  test("the house is funded, and its money withdrawn, once for each reference and never below zero", async () => {
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

  test("positions have the value of the last price, or of what the other outcomes leave of a set, and a profit", async () => {
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
    const update = await socket.frame<PositionJson>("position.updated", ({ outcome_id, quantity }) => {
      return outcome_id === yes && quantity === 6;
    });
    expect(update.data).toEqual(held.get(yes));
    // A mint sets the price of the taker's outcome; the other outcome's follows from it.
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

  test("positions have no value when sold out, and a third outcome's has one when two prices are known", async () => {
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
    // The sum of the two known prices exceeds a set's value.
    expect(second.get(c)).toMatchObject({ quantity: 5, market_value: 0, unrealized_pnl: -second.get(c)!.cost });
  });
});

describe("over a restart", () => {
  test("deposits survive a kill -9 that follows the response, and stay one with their reference", async () => {
    const userId = await idOf(world.client("depositor"));
    const before = await deposit(operator, userId, USDC, "durable");
    await world.server.kill();
    expectSoundDatabase(world.server.dataDir);
    world.server = await world.server.restart();
    operator = guests.client(world.server, operator.token);
    expect(await deposit(operator, userId, USDC, "durable")).toEqual(before);
    expect((await world.client("depositor").balance()).total).toBe(FIRST + USDC);
    const path = `/admin/deposits/${before.id}/reverse`;
    const body = { amount: USDC, reference: "durable too" };
    const back = await operator.data<DepositJson>("POST", path, body);
    await world.server.kill();
    expectSoundDatabase(world.server.dataDir);
    world.server = await world.server.restart();
    operator = guests.client(world.server, operator.token);
    expect(await operator.data<DepositJson>("POST", path, body)).toEqual(back);
    await expectRefused(operator.request("POST", path, { body: { ...body, reference: "again" } }), 409, 40900, /, 0 /);
    expect((await world.client("depositor").balance()).total).toBe(FIRST);
  });

  test("settlements list for each holder what its shares were paid, losing shares too, over a restart", async () => {
    const [first, second] = [world.market(2), world.market(3)];
    const at = await settle(first, second);
    const [maker, taker, stranger] = ["settled0", "settled1", "settled2"].map((name) => world.client(name)) as [
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
    const listed = await maker.all<TransactionJson>("/wallet/transactions?type=settlement", 2);
    expect(listed.map(({ amount, market_id, outcome_id }) => ({ amount, market_id, outcome_id }))).toEqual(
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
    await expectBalanced(world.anonymous());
  });

  /** Two users trade in the markets; then the server restarts, with the first market resolved and the second voided. */
  async function settle(first: TestMarket, second: TestMarket): Promise<number> {
    const [maker, taker] = [world.client("settled0"), world.client("settled1")];
    await world.split(maker, first, 10);
    await world.split(maker, second, 7);
    await maker.place(terms(first, 0, SELL, 4_000, 6));
    await taker.place(terms(first, 0, BUY, 4_000, 6));
    await world.server.stop();
    const { dataDir } = world.server;
    const holders: number[] = [];
    withDatabase(dataDir, (db) => {
      const close = db.prepare("UPDATE markets SET status = ? WHERE id = ?");
      for (const { id } of [first, second]) close.run(MarketStatus.closed, id);
      const positions = db.prepare(
        `SELECT count(*) FROM positions WHERE quantity > 0
           AND outcome_id IN (SELECT id FROM outcomes WHERE market_id = ?)`,
      );
      for (const { id } of [first, second]) holders.push(Number(positions.pluck().get(id)));
    });
    const at = Date.now();
    const rest = { kind: "settleMarket", note: null, at } as const;
    writeInto(
      dataDir,
      { ...rest, marketId: first.id, status: MarketStatus.resolved, payouts: [10_000, 0], holders: holders[0]! },
      {
        ...rest,
        marketId: second.id,
        status: MarketStatus.voided,
        payouts: [3_334, 3_333, 3_333],
        holders: holders[1]!,
      },
    );
    expectSoundDatabase(dataDir);
    world.server = await world.server.restart();
    operator = guests.client(world.server, operator.token);
    return at;
  }
});

test("all deposits together are no more than the exchange can count", async () => {
  const chief = guests.client(world.server, operator.token, 8);
  const most = Math.floor(MAX_MONEY_MICRO / MAX_PAYMENT_MICRO);
  const pay = (n: number) => {
    const body = { amount: MAX_PAYMENT_MICRO, reference: `n ${n}` };
    return chief.request("POST", "/admin/house/deposits", { body });
  };
  const answers = await Promise.all(Array.from({ length: most + 2 }, (_, n) => pay(n)));
  // The users' deposits count too.
  expect(answers.filter(({ code }) => code === 0)).toHaveLength(most - 1);
  for (const { code, msg } of answers) {
    if (code !== 0) expect([code, msg]).toEqual([40900, expect.stringMatching(/total deposit limit/)]);
  }
  await expectBalanced(chief);
});
