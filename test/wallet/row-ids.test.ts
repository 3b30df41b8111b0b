/**
 * Every id in a list of the caller's names a row of the caller's: the transactions of direct, mint and merge matches, in which
 * one user has two legs, join to the user's own fills and orders, in JSON and CSV; settlements and deposits likewise.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson, OwnFillJson, TransactionJson } from "../support/client.ts";
import { download, parse } from "../support/exports.ts";
import type { DepositJson } from "../support/money.ts";
import { type AuditJson, OPERATOR, operatorOf } from "../support/operator.ts";
import { BUY, post, SELL, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

const NEW = { question: "Is it so?", outcomes: ["Yes", "No"] };

let world: World;
let market: TestMarket;
/** Has two legs in the mint and in the merge; the other takes. */
let maker: Client;
let taker: Client;

beforeAll(async () => {
  world = await World.start({ users: 2, markets: [3, 2], named: { operator: OPERATOR } });
  [maker, taker] = [world.user(), world.user()];
  market = world.market(3);
  for (const user of [maker, taker]) await world.split(user, market, 100);
  // Each user's orders are another integration's.
  const place = (user: Client, outcome: number, side: number, price: number, quantity: number) =>
    post(user, terms(market, outcome, side, price, quantity), { "X-Builder-Code": user === maker ? "made" : "taken" });
  // Direct, in two fills of one taker.
  await place(maker, 0, SELL, 4_000, 3);
  await place(maker, 0, SELL, 4_100, 4);
  await place(taker, 0, BUY, 4_100, 7);
  // Mint: two bids of the maker and the taker's make a set.
  await place(maker, 0, BUY, 3_000, 5);
  await place(maker, 1, BUY, 3_000, 5);
  await place(taker, 2, BUY, 4_000, 5);
  // Merge: the three asks return one.
  await place(maker, 0, SELL, 3_000, 6);
  await place(maker, 1, SELL, 3_000, 6);
  await place(taker, 2, SELL, 3_900, 6);
  const operator = await operatorOf(world.server);
  for (const user of [maker, taker]) {
    const [{ id }] = (await user.all<DepositJson>("/wallet/deposits")) as [DepositJson];
    await operator.data("POST", `/admin/deposits/${id}/reverse`, { amount: 5, reference: `back ${id}` });
  }
  operator.close();
});
afterAll(() => expectEndsWell(world));

function expectJoined(
  transactions: readonly TransactionJson[],
  fills: readonly OwnFillJson[],
  orders: readonly OrderJson[],
): void {
  const ofFills = transactions.filter(({ type }) => ["trade", "fee", "rebate"].includes(type));
  const expected = fills.flatMap((fill) => {
    const notional = fill.price * fill.quantity * 100 * (fill.side === BUY ? -1 : 1);
    const amounts: [type: string, amount: number][] = [
      ["trade", notional],
      ["fee", -fill.fee],
      ["rebate", fill.rebate],
    ];
    const { id: trade_id, match_id, order_id, market_id, outcome_id } = fill;
    return amounts
      .filter(([, amount]) => amount !== 0)
      .map(([type, amount]) => ({ type, amount, trade_id, match_id, order_id, market_id, outcome_id }));
  });
  const byKey = (a: { trade_id: number | null; type: string }, b: typeof a): number =>
    a.trade_id! - b.trade_id! || (a.type < b.type ? -1 : 1);
  const found = ofFills.map(({ type, amount, trade_id, match_id, order_id, market_id, outcome_id }) => {
    return { type, amount, trade_id, match_id, order_id, market_id, outcome_id };
  });
  expect(found.sort(byKey)).toEqual(expected.sort(byKey));
  for (const { order_id, outcome_id, side } of fills) {
    expect(orders.find(({ id }) => id === order_id)).toMatchObject({ outcome_id, side });
  }
  for (const other of transactions.filter((each) => !ofFills.includes(each))) {
    expect(other).toMatchObject({ order_id: null, trade_id: null, match_id: null });
  }
}

/** Each transaction of a deposit names one of the listed deposits, or the one that it takes back, and others name none. */
function expectDepositsJoined(transactions: readonly TransactionJson[], deposits: readonly DepositJson[]): void {
  const named = transactions.filter(({ deposit_id }) => deposit_id !== null);
  expect(named.map(({ type, amount, deposit_id, created_at }) => [type, amount, deposit_id, created_at])).toEqual(
    deposits.map(({ id, amount, reverses, created_at }) => ["deposit", amount, reverses ?? id, created_at]),
  );
}

test("transactions name the caller's own fills and their matches, in JSON and CSV", async () => {
  const matches = new Map<number, string[]>();
  for (const user of [maker, taker]) {
    const fills = await user.all<OwnFillJson>("/me/fills");
    const orders = await user.all<OrderJson>("/orders?status=all");
    const deposits = await user.all<DepositJson>("/wallet/deposits");
    expect(deposits.some(({ reverses }) => reverses !== null)).toBe(true);
    for (const transactions of [
      await user.all<TransactionJson>("/wallet/transactions"),
      parse((await download(user)).text) as TransactionJson[],
    ]) {
      expectJoined(transactions, fills, orders);
      expectDepositsJoined(transactions, deposits);
    }
    for (const { match_id, match_type } of fills) {
      matches.set(match_id, [...(matches.get(match_id) ?? []), match_type]);
    }
  }
  // Two direct matches of two fills, a mint and a merge of three.
  const sizes = [...matches.values()].map((types) => `${new Set(types).size} ${types[0]} ${types.length}`);
  expect(sizes.sort()).toEqual(["1 direct 2", "1 direct 2", "1 merge 3", "1 mint 3"]);
});

test("a builder's statistics are the orders and fills that carry its code, and no others", async () => {
  for (const [user, code] of [
    [maker, "made"],
    [taker, "taken"],
  ] as const) {
    const fills = await user.all<OwnFillJson>("/me/fills");
    const orders = await user.all<OrderJson>("/orders?status=all");
    expect(new Set(orders.map(({ builder_code }) => builder_code))).toEqual(new Set([code]));
    const sum = (of: (fill: OwnFillJson) => number): number => fills.reduce((total, fill) => total + of(fill), 0);
    expect(await world.anonymous().data("GET", `/builders/${code}/stats`)).toEqual({
      code,
      orders: orders.length,
      fills: fills.length,
      volume: sum(({ quantity }) => quantity),
      notional: sum(({ price, quantity }) => price * quantity * 100),
      fees: sum(({ fee }) => fee),
    });
  }
});

test("lines of the audit log name the user and the row that they are about, with its amount", async () => {
  const operator = await operatorOf(world.server);
  const trades = world.market(2);
  await maker.data("POST", "/wallet/split", { market_id: trades.id, quantity: 2 });
  await maker.data("POST", "/wallet/merge", { market_id: trades.id, quantity: 1 });
  const makerId = (await maker.data<{ id: number }>("GET", "/me")).id;
  const deposit = { user_id: makerId, amount: 1_234_567, reference: "row-ids" };
  const { id } = await operator.data<{ id: number }>("POST", "/admin/deposits", deposit);
  const made = await operator.data<{ id: number; slug: string }>("POST", "/admin/markets", NEW);
  const lines = await operator.all<AuditJson>("/admin/audit-log");
  const line = (action: string): Partial<AuditJson> => {
    const { user_id, subject, details } = lines.find((each) => each.action === action)!;
    return { user_id, subject, details };
  };
  const sets = { market_id: trades.id, quantity: 2 };
  expect(line("wallet.split")).toEqual({ user_id: makerId, subject: trades.id, details: sets });
  expect(line("wallet.merge")).toEqual({ user_id: makerId, subject: trades.id, details: { ...sets, quantity: 1 } });
  const { amount, reference } = deposit;
  expect(line("wallet.deposit")).toEqual({ user_id: makerId, subject: id, details: { amount, reference } });
  expect(line("market.create")).toEqual({ user_id: null, subject: made.id, details: { slug: made.slug } });
  // The rows that they name are the user's.
  const own = await maker.all<{ id: number; amount: number; reference: string }>("/wallet/deposits");
  expect(own.find((each) => each.id === id)).toMatchObject({ amount, reference });
  const [entry] = await maker.all<TransactionJson>("/wallet/transactions?type=deposit");
  expect(entry).toMatchObject({ amount });
  operator.close();
});

test("settlements name the market and outcome that paid, deposits their account", async () => {
  const operator = await operatorOf(world.server);
  await operator.data("POST", `/admin/markets/${market.id}/close`, {});
  await operator.data("POST", `/admin/markets/${market.id}/resolve`, { payouts: [2_000, 3_000, 5_000] });
  const quantities = new Map<number, number>();
  for (const user of [maker, taker]) {
    const paid = (await user.all<TransactionJson>("/wallet/transactions")).filter(({ type }) => type === "settlement");
    const settlements = await user.all<{ outcome_id: number; market_id: number; quantity: number; amount: number }>(
      "/wallet/settlements",
    );
    const shown = settlements.map(({ market_id, outcome_id, amount }) => [market_id, outcome_id, amount]);
    expect(paid.map(({ market_id, outcome_id, amount }) => [market_id, outcome_id, amount])).toEqual(shown);
    for (const { outcome_id, quantity, amount } of settlements) {
      const payout = [2_000, 3_000, 5_000][market.outcomes.indexOf(outcome_id)]!;
      expect(amount).toBe(quantity * payout * 100);
      quantities.set(outcome_id, (quantities.get(outcome_id) ?? 0) + quantity);
    }
    const deposits = await user.all<{ amount: number; reference: string }>("/wallet/deposits");
    const credited = (await user.all<TransactionJson>("/wallet/transactions?type=deposit")).map(({ amount }) => amount);
    expect(deposits.map(({ amount }) => amount)).toEqual(credited);
  }
  // As many shares of each outcome as there were sets.
  expect(new Set(quantities.values()).size).toBe(1);
  operator.close();
});
