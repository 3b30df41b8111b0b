/**
 * The terms that an operator sets for one user: the daily limit, fees and rebates, rate limits. Each appears and
 * applies everywhere it should, across kills and races. A random test compares terms and trades with a plain reference
 * model. TEST_SEED repeats a run.
 */
import { afterEach, describe, expect, test } from "vitest";
import {
  MAKER_REBATE_BPS,
  MAX_MERGE_FEE_BPS,
  MAX_MONEY_MICRO,
  MAX_OWN_RATE_BPS,
  PAT_REBATE_BPS,
  TRADING_FEE_BPS,
} from "../../engine/limits.ts";
import type { UserTerms } from "../../engine/projection/user-terms.ts";
import { MAX_OWN_LIVE_ORDERS, MAX_OWN_REBATE_BPS, MAX_RATE_LIMIT_FACTOR } from "../../server/accounts/limits.ts";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import { Client, type OrderJson, type OwnFillJson, type TransactionJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { OPERATOR, type OperatorUserJson, operatorOf, setTerms, userNamed } from "../support/operator.ts";
import { EFFORT, variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { RandomTrading } from "../support/random-trading.ts";
import { expectLimited, expectRate, type LimitsJson, rateOf } from "../support/rates.ts";
import { TestServer } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { restartWith } from "../support/trading.ts";
import { type TestMarket, tokenOf, USDC, World, type WorldOptions } from "../support/world.ts";

const PUBLIC_URL = "http://exchange.test";

let world: World;
let operator: Client;
async function start(options: WorldOptions): Promise<void> {
  const { named = {}, env = {} } = options;
  world = await World.start({
    users: 0,
    ...options,
    named: { operator: OPERATOR, ...named },
    env: { PUBLIC_URL, ...env },
  });
  operator = await operatorOf(world.server, "operator", 4);
}
async function restart(): Promise<void> {
  operator.close();
  await world.server.kill();
  world.server = await world.server.restart();
  operator = await operatorOf(world.server, "operator", 4);
}
afterEach(async () => {
  operator.close();
  await expectEndsWell(world);
});

const idOf = async (name: string): Promise<number> => (await userNamed(operator, name)).id;
const limitsOf = (client: Client): Promise<LimitsJson> => client.get("/me/limits");
const place = (client: Client, body: object) => client.request<OrderJson>("POST", "/orders", { body });

describe("setting terms", () => {
  test("what is absent stays, null is as for everybody again, and all is noted and durable", async () => {
    await start({ named: { maker: {} } });
    const id = await idOf("maker");
    const all = {
      daily_limit: 5 * USDC,
      trading_fee: 10,
      maker_rebate: 1,
      pat_rebate: 3,
      merge_fee: 7,
      rate_limit_factor: 2,
      max_live_orders: 30_000,
    };
    expect((await setTerms(operator, id, all)).terms).toEqual(all);
    expect((await setTerms(operator, id, { trading_fee: 3 })).terms).toEqual({ ...all, trading_fee: 3 });
    const rest = { ...all, trading_fee: 3, daily_limit: null, rate_limit_factor: null };
    expect((await setTerms(operator, id, { daily_limit: null, rate_limit_factor: null })).terms).toEqual(rest);
    await restart();
    expect((await userNamed(operator, "maker")).terms).toEqual(rest);
    const sql = "SELECT user_id, subject, details FROM audit_log WHERE action = 'user.set_terms' ORDER BY id";
    expect(rowsOf<{ details: string }>(world.server.dataDir, sql).map(({ details }) => JSON.parse(details))).toEqual([
      all,
      { trading_fee: 3 },
      { daily_limit: null, rate_limit_factor: null },
    ]);
  });

  test("out of bounds, unknown or nothing: refused, and nothing changes", async () => {
    await start({ named: { maker: {} } });
    const id = await idOf("maker");
    for (const [body, message] of [
      [
        {},
        /^daily_limit, trading_fee, maker_rebate, pat_rebate, merge_fee, rate_limit_factor, max_live_orders: give one of them or more/,
      ],
      [{ daily_limit: -1 }, /^daily_limit: /],
      [{ daily_limit: MAX_MONEY_MICRO + 1 }, /^daily_limit: /],
      [{ daily_limit: 1.5 }, /^daily_limit: /],
      [{ trading_fee: MAX_OWN_RATE_BPS + 1 }, /^trading_fee: /],
      [{ maker_rebate: -1 }, /^maker_rebate: /],
      [{ maker_rebate: MAX_OWN_REBATE_BPS + 1 }, /^maker_rebate: /],
      [{ pat_rebate: "5" }, /^pat_rebate: /],
      [{ merge_fee: -1 }, /^merge_fee: /],
      [{ merge_fee: MAX_MERGE_FEE_BPS + 1 }, /^merge_fee: /],
      [{ max_live_orders: 0 }, /^max_live_orders: /],
      [{ max_live_orders: MAX_OWN_LIVE_ORDERS + 1 }, /^max_live_orders: /],
      [{ rate_limit_factor: 0 }, /^rate_limit_factor: /],
      [{ rate_limit_factor: MAX_RATE_LIMIT_FACTOR + 1 }, /^rate_limit_factor: /],
      [{ trading_fee: 1, fee: 1 }, /^fee: unknown field/],
    ] as const) {
      const answer = await operator.request("PATCH", `/admin/users/${id}/terms`, { body });
      expect([body, answer.code, answer.msg]).toEqual([body, 40000, expect.stringMatching(message)]);
    }
    const path = "/admin/users/999/terms";
    expect(await operator.request("PATCH", path, { body: { trading_fee: 1 } })).toMatchObject({ code: 4040 });
    const none = {
      daily_limit: null,
      trading_fee: null,
      maker_rebate: null,
      pat_rebate: null,
      merge_fee: null,
      rate_limit_factor: null,
      max_live_orders: null,
    };
    expect((await userNamed(operator, "maker")).terms).toEqual(none);
    const own = await idOf("operator");
    const asked = await operator.request("PATCH", `/admin/users/${own}/terms`, { body: { maker_rebate: 1 } });
    expect([asked.code, asked.msg]).toEqual([40300, expect.stringMatching(/^the account is your own/)]);
    // The bounds are inclusive.
    const most = {
      daily_limit: MAX_MONEY_MICRO,
      trading_fee: MAX_OWN_RATE_BPS,
      maker_rebate: MAX_OWN_REBATE_BPS,
      pat_rebate: 0,
      merge_fee: MAX_MERGE_FEE_BPS,
      rate_limit_factor: MAX_RATE_LIMIT_FACTOR,
      max_live_orders: MAX_OWN_LIVE_ORDERS,
    };
    expect((await setTerms(operator, id, most)).terms).toEqual(most);
  });

  test("no rebate may exceed the fee that the account pays, whichever of them changes, from the shell and seeds too", async () => {
    await start({ named: { maker: {} } });
    const id = await idOf("maker");
    const change = (body: object) => operator.request("PATCH", `/admin/users/${id}/terms`, { body });
    const refused = async (body: object, message: string): Promise<void> => {
      const { code, msg } = await change(body);
      expect([body, code, msg]).toEqual([body, 40000, message]);
    };
    const more = "exceeds the account's trading_fee of";
    await refused({ trading_fee: 9 }, `pat_rebate: 10 BPS (the default) ${more} 9 BPS`);
    await refused({ trading_fee: 0, pat_rebate: 0 }, `maker_rebate: 5 BPS (the default) ${more} 0 BPS`);
    await refused({ trading_fee: 20, maker_rebate: 21 }, `maker_rebate: 21 BPS ${more} 20 BPS`);
    expect((await change({ trading_fee: 20, pat_rebate: 20 })).code).toBe(0);
    await refused({ pat_rebate: 21 }, `pat_rebate: 21 BPS ${more} 20 BPS`);
    await refused({ trading_fee: 19 }, `pat_rebate: 20 BPS ${more} 19 BPS`);
    expect((await change({ trading_fee: 0, maker_rebate: 0, pat_rebate: 0 })).code).toBe(0);
    await refused({ maker_rebate: null }, `maker_rebate: 5 BPS (the default) ${more} 0 BPS`);
    const shell = await admin(world.server.dataDir, "terms", "maker@example.com", "--maker-rebate", "1");
    expect([shell.code, shell.errors]).toEqual([1, expect.stringContaining(`maker_rebate: 1 BPS ${more} 0 BPS`)]);
    const rates = { trading_fee: 0, maker_rebate: 0, pat_rebate: 0 };
    expect((await userNamed(operator, "maker")).terms).toMatchObject(rates);
    // The server rejects terms from before this rule until the rebates fit. Each match's fees bound the payout anyway.
    await restartWith(world, "UPDATE users SET maker_rebate = 150 WHERE id = ?", id);
    operator.close();
    operator = await operatorOf(world.server, "operator", 4);
    await refused({ daily_limit: 1 }, `maker_rebate: 150 BPS ${more} 0 BPS`);
    expect((await change({ daily_limit: 1, maker_rebate: 0 })).code).toBe(0);
    const users = [{ email: "a@example.com" }, { email: "b@example.com", terms: { trading_fee: 4, pat_rebate: 0 } }];
    const { code, errors } = await TestServer.refuse({ seed: { users } as Seed });
    const told = `users/1/terms/maker_rebate: 5 BPS (the default) ${more} 4 BPS`;
    expect([code, errors]).toEqual([1, expect.stringContaining(told)]);
  });

  test("of changes of different terms at one time none is lost", async () => {
    await start({ named: { maker: {} } });
    const id = await idOf("maker");
    for (let round = 1; round <= 20; round++) {
      const wanted = {
        daily_limit: round,
        trading_fee: 100 + round,
        maker_rebate: round,
        merge_fee: round,
        rate_limit_factor: round,
        max_live_orders: round,
      };
      await Promise.all(Object.entries(wanted).map(([name, value]) => setTerms(operator, id, { [name]: value })));
      const { terms: shown } = await userNamed(operator, "maker");
      expect(shown).toEqual({ ...wanted, pat_rebate: null });
      const columns =
        "daily_limit, trading_fee, maker_rebate, pat_rebate, merge_fee, rate_limit_factor, max_live_orders";
      expect(rowsOf(world.server.dataDir, `SELECT ${columns} FROM users WHERE id = ?`, id)).toEqual([shown]);
    }
  });
});

describe("the day's limit", () => {
  test("counts at once for every kind of order, is shown, and goes back to the tier's", async () => {
    await start({ named: { maker: { tier: 1 } } });
    const market = world.market();
    const maker = world.client("maker");
    const id = await idOf("maker");
    const five = terms(market, 0, BUY, 5_000, 10);
    await setTerms(operator, id, { daily_limit: 12 * USDC });
    const limit = 12 * USDC;
    expect((await maker.get<{ daily_activity: object }>("/me")).daily_activity).toEqual({ used: 0, limit });
    expect((await limitsOf(maker)).daily_activity).toEqual({ used: 0, limit });
    expect((await place(maker, five)).code).toBe(0);
    const { data: second } = await place(maker, five);
    expect(await place(maker, five)).toMatchObject({
      code: 42901,
      msg: expect.stringContaining(`of ${limit} micro-USDC`),
    });
    expect((await maker.request("PATCH", `/orders/${second.id}`, { body: { quantity: 20 } })).code).toBe(42901);
    const quotes = { quotes: [{ outcome_id: market.outcomes[1], side: BUY, price: 1_000, quantity: 40 }] };
    expect((await maker.request("PUT", `/quotes/${market.id}`, { body: quotes })).code).toBe(42901);
    expect((await userNamed(operator, "maker")).daily_activity).toEqual({ used: 10 * USDC, limit });
    // Above the tier's limit of 100 USDC, and preserved across a kill -9.
    await setTerms(operator, id, { daily_limit: 500 * USDC });
    await restart();
    const later = world.client("maker");
    expect((await place(later, terms(market, 0, BUY, 5_000, 300))).code).toBe(0);
    await setTerms(operator, id, { daily_limit: 0 });
    expect((await place(later, terms(market, 0, BUY, 1, 1))).code).toBe(42901);
    await setTerms(operator, id, { daily_limit: null });
    expect((await limitsOf(later)).daily_activity.limit).toBe(100 * USDC);
    // The user can still cancel live orders.
    expect((await later.request("DELETE", "/orders")).code).toBe(0);
    expect((await place(later, five)).code).toBe(0);
    await later.data("DELETE", "/orders");
  });
});

describe("rate limits", () => {
  const RATE_LIMITS = JSON.stringify({ user: 6, address: 100, order_user: 3, order_address: 8, auth_identifier: 4 });
  const setFactor = async (factor: string): Promise<void> => {
    const run = await admin(world.server.dataDir, "terms", "maker@example.com", "--rate-limit-factor", factor);
    expect(run).toMatchObject({ code: 0, errors: "" });
  };

  test("are multiplied for the user alone, over HTTP and the WebSocket, in headers and in /me/limits", async () => {
    await start({ named: { maker: { password: PASSWORD }, other: {} }, env: { RATE_LIMITS } });
    const market = world.market();
    const [maker, other] = [world.client("maker"), world.client("other")];
    expectRate(rateOf(await maker.request("GET", "/me")), 6, 5);
    await setFactor("2");
    expectRate(rateOf(await maker.request("GET", "/me")), 12, 10);
    expectRate(rateOf(await other.request("GET", "/me")), 6, 5);
    // Applies to every token of the user.
    const session = await signIn(world.server, "maker@example.com");
    expectRate(rateOf(await session.client.request("GET", "/me")), 12, 9);
    const order = terms(market, 0, BUY, 100, 1);
    for (let n = 5; n >= 2; n--) expectRate(rateOf(await place(maker, order)), 6, n);
    const socket = await Socket.open(world.server, maker.token);
    const answer = await socket.ask({ op: "order.place", data: order });
    expectRate(
      (answer as unknown as { rate_limit: { limit: number; remaining: number; reset: number } }).rate_limit,
      6,
      1,
    );
    await socket.close();
    const shown = (await limitsOf(maker)).rate_limits;
    const of = (route: string, scope: string) => shown.find((each) => each.route === route && each.scope === scope);
    expect(of("GET /wallet/balance", "user")).toMatchObject({ limit: 12, remaining: 12 });
    expect(of("POST /orders", "user")).toMatchObject({ limit: 6, remaining: 1 });
    // The limits per address and on sign-ins are the same for all users.
    expect(of("POST /orders", "address")).toMatchObject({ limit: 8, remaining: 3 });
    expect(of("POST /auth/login", "identifier")).toMatchObject({ limit: 4, remaining: 3 });
    expectRate(rateOf(await place(maker, order)), 6, 0);
    expectLimited(await place(maker, order), 6);

    // The factor survives a kill -9; the counts do not.
    await restart();
    const later = world.client("maker");
    for (let n = 11; n >= 6; n--) expectRate(rateOf(await later.request("GET", "/me")), 12, n);
    // The new limit is below the current count: requests fail until enough of them are a minute old.
    await setFactor("default");
    expect((await later.request("GET", "/me")).code).toBe(42900);
    expectLimited(await later.request("GET", "/me"), 6);
    await setFactor("1000");
    expectRate(rateOf(await later.request("GET", "/me")), 6_000, 5_993);
    session.client.close();
    await later.data("DELETE", "/orders");
  });
});

// ---------------------------------------------------------------- fees

const feeOn = (n: number, bps: number): number => Number((BigInt(n) * BigInt(bps) + 9_999n) / 10_000n);
const rebateOn = (n: number, bps: number): number => Number((BigInt(n) * BigInt(bps)) / 10_000n);
type Rates = Pick<UserTerms, "tradingFee" | "makerRebate" | "patRebate">;
const USUAL: Rates = { tradingFee: null, makerRebate: null, patRebate: null };

const FILLS = `SELECT fills.id, match_id, fills.user_id, order_id, side, fills.price, fills.quantity, role, fee, rebate,
  (SELECT pat FROM orders WHERE id = order_id) AS pat FROM fills`;
interface FillRow {
  readonly id: number;
  readonly match_id: number;
  readonly user_id: number;
  readonly order_id: number;
  readonly side: number;
  readonly price: number;
  readonly quantity: number;
  readonly role: number;
  readonly fee: number;
  readonly rebate: number;
  readonly pat: number;
}

/**
 * Returns the expected fee and rebate of a match's fills. Rebates come out of the match's fees, in the order of the
 * fills.
 */
function expected(rows: readonly FillRow[], ratesOf: (user: number) => Rates): [fee: number, rebate: number][] {
  const fees = rows.map(({ price, quantity, side, user_id }) => {
    return side === SELL ? feeOn(price * quantity * 100, ratesOf(user_id).tradingFee ?? 150) : 0;
  });
  let left = fees.reduce((sum, fee) => sum + fee, 0);
  return rows.map(({ price, quantity, role, pat, user_id }, i) => {
    const { patRebate, makerRebate } = ratesOf(user_id);
    const bps = pat === 1 ? (patRebate ?? 10) : (makerRebate ?? 5);
    const rebate = role === 0 ? Math.min(left, rebateOn(price * quantity * 100, bps)) : 0;
    left -= rebate;
    return [fees[i]!, rebate];
  });
}

/** Expects a user's balance, fills and transactions to agree with each other and with the database. */
async function expectOneStory(client: Client, userId: number, rows: readonly FillRow[]): Promise<void> {
  const own = rows.filter((row) => row.user_id === userId);
  const fills = await client.all<OwnFillJson>("/me/fills");
  expect(fills.map(({ id, fee, rebate }) => [id, fee, rebate])).toEqual(
    own.map(({ id, fee, rebate }) => [id, fee, rebate]).reverse(),
  );
  const transactions = await client.all<TransactionJson>("/wallet/transactions");
  const sum = (type?: string): number =>
    transactions
      .filter((each) => type === undefined || each.type === type)
      .reduce((all, { amount }) => all + amount, 0);
  expect([0 - sum("fee"), sum("rebate")]).toEqual([
    own.reduce((all, { fee }) => all + fee, 0),
    own.reduce((all, { rebate }) => all + rebate, 0),
  ]);
  const { total } = await client.balance();
  expect(sum()).toBe(total);
  const [account] = rowsOf<{ balance: number }>(
    world.server.dataDir,
    "SELECT balance FROM accounts WHERE user_id = ?",
    userId,
  );
  expect(account!.balance).toBe(total);
}

test("fees and rebates of one's own, by the token, in the fill, the transactions, /me/limits and after a kill -9", async () => {
  await start({ named: { maker: { password: PASSWORD }, taker: {} } });
  const market = world.market();
  const [maker, taker] = [world.client("maker"), world.client("taker")];
  const session = await signIn(world.server, "maker@example.com");
  expect(await limitsOf(maker)).toMatchObject({ fees: { trading_fee: 150, maker_rebate: 10 } });
  expect(await limitsOf(session.client)).toMatchObject({ fees: { trading_fee: 150, maker_rebate: 5 } });
  const makerId = await idOf("maker");
  await setTerms(operator, makerId, { maker_rebate: 30, pat_rebate: 40 });
  await setTerms(operator, await idOf("taker"), { trading_fee: 1, maker_rebate: 0, pat_rebate: 1 });
  expect(await limitsOf(maker)).toMatchObject({ fees: { trading_fee: 150, maker_rebate: 40 } });
  expect(await limitsOf(session.client)).toMatchObject({ fees: { trading_fee: 150, maker_rebate: 30 } });
  await world.split(taker, market, 100);
  /** Returns the fills of a match by the taker. */
  const sell = async (client: Client): Promise<FillRow[]> => {
    const { id } = await client.place(terms(market, 0, SELL, 3_333, 7));
    await eventually(async () => expect((await client.order(id)).status).toBe("filled"));
    const where = "match_id IN (SELECT match_id FROM fills WHERE order_id = ?)";
    return rowsOf<FillRow>(world.server.dataDir, `${FILLS} WHERE ${where} ORDER BY fills.id`, id);
  };
  await maker.place(terms(market, 0, BUY, 3_333, 7));
  const n = 3_333 * 7 * 100;
  const sold = async (client: Client) => (await sell(client)).map(({ fee, rebate }) => [fee, rebate]);
  // The seller pays 1 BPS, which caps the rebate.
  expect(await sold(taker)).toEqual([
    [0, Math.ceil(n / 10_000)],
    [Math.ceil(n / 10_000), 0],
  ]);
  await setTerms(operator, await idOf("taker"), { trading_fee: 35 });
  await session.client.place(terms(market, 0, BUY, 3_333, 7));
  expect((await sold(taker))[0]).toEqual([0, Math.floor((n * 30) / 10_000)]);
  await maker.place(terms(market, 0, BUY, 3_333, 14));
  expect((await sold(taker))[0]).toEqual([0, Math.ceil((n * 35) / 10_000)]);
  await restart();
  expect(await sold(world.client("taker"))).toEqual([
    [0, Math.ceil((n * 35) / 10_000)],
    [Math.ceil((n * 35) / 10_000), 0],
  ]);
  session.client.close();
  const rows = rowsOf<FillRow>(world.server.dataDir, `${FILLS} ORDER BY fills.id`);
  await expectOneStory(world.client("maker"), makerId, rows);
});

const NAMES = ["ann", "bob", "cem", "dia"];
const NAMED = Object.fromEntries(NAMES.map((name) => [name, { password: PASSWORD, deposit: 5_000 * USDC }]));
const randomRate = (random: Random, most: number): number | null =>
  random.pick([null, 0, 1, random.integer(0, most), most]);
const randomFee = (random: Random): number | null => randomRate(random, MAX_OWN_RATE_BPS);
const randomRebate = (random: Random): number | null => randomRate(random, MAX_OWN_REBATE_BPS);

describe.each(variants([1], [2]))("with ENGINE_THREADS=%i", (threads) => {
  test("each fill has the fee and the rebate of the terms when its order came", async () => {
    const random = Random.printed(`terms and trades on ${threads}`);
    await start({ named: NAMED, markets: [2, 3, 2], env: { ENGINE_THREADS: String(threads) } });
    const sessions = await Promise.all(NAMES.map((name) => signIn(world.server, `${name}@example.com`)));
    const ids = sessions.map(({ user }) => user.id);
    const rates = new Map<number, Rates>(ids.map((id) => [id, USUAL]));
    /** All users' rates at the arrival of each taker order, by order. */
    const ratesAt = new Map<number, ReadonlyMap<number, Rates>>();
    const changed = async (): Promise<void> => {
      const id = random.pick(ids);
      const tradingFee = randomFee(random);
      // A rebate may not exceed the fee.
      const atMost = (rebate: number | null, usual: number): number | null =>
        (rebate ?? usual) > (tradingFee ?? TRADING_FEE_BPS) ? tradingFee : rebate;
      const makerRebate = atMost(randomRebate(random), MAKER_REBATE_BPS);
      const patRebate = atMost(randomRebate(random), PAT_REBATE_BPS);
      rates.set(id, { tradingFee, makerRebate, patRebate });
      await setTerms(operator, id, { trading_fee: tradingFee, maker_rebate: makerRebate, pat_rebate: patRebate });
    };
    const traders = [...NAMES.map((name) => world.client(name)), ...sessions.map(({ client }) => client)];
    for (const market of world.markets)
      for (const trader of traders.slice(0, NAMES.length)) await world.split(trader, market, 200);
    for (let step = 0; step < 250; step++) {
      if (random.chance(0.2)) await changed();
      const market: TestMarket = random.pick(world.markets);
      const price = Math.floor(10_000 / market.outcomes.length) + random.integer(-400, 400);
      const outcome = random.integer(0, market.outcomes.length - 1);
      const body = terms(market, outcome, random.pick([BUY, SELL]), price, random.integer(1, 9), {
        self_trade_prevention: random.pick(["decrement", "cancel_maker"]),
      });
      const trader = random.pick(traders);
      const { code, data } = await place(trader, body);
      expect([0, 42201, 42202]).toContain(code);
      if (code !== 0) continue;
      ratesAt.set(data.id, new Map(rates));
      await eventually(async () => expect((await trader.order(data.id)).status).not.toBe("queued"));
    }
    const rows = rowsOf<FillRow>(world.server.dataDir, `${FILLS} ORDER BY fills.id`);
    expect(rows.length).toBeGreaterThan(50);
    const takerOf = new Map(
      rows.filter(({ role }) => role === 1).map(({ match_id, order_id }) => [match_id, order_id]),
    );
    const wrong = [...takerOf.keys()].filter((match) => {
      const fills = rows.filter(({ match_id }) => match_id === match);
      const must = expected(fills, (user) => ratesAt.get(takerOf.get(match)!)!.get(user)!);
      return fills.some(({ fee, rebate }, i) => fee !== must[i]![0] || rebate !== must[i]![1]);
    });
    expect([random.seed, wrong]).toEqual([random.seed, []]);
    for (const [i, id] of ids.entries()) await expectOneStory(traders[i]!, id, rows);
    await expectBalanced(world.anonymous());
    for (const { client } of sessions) client.close();
  });

  test("while they change amid trading, gateway and database agree, also after a kill -9", async () => {
    const random = Random.printed(`terms amid trades on ${threads}`);
    await start({ named: NAMED, markets: [2, 3, 5], env: { ENGINE_THREADS: String(threads) } });
    const users = await Promise.all(NAMES.map((name) => userNamed(operator, name)));
    const trading = new RandomTrading(
      random,
      world.markets,
      NAMES.map((name) => tokenOf(name)),
    );
    await trading.prepare(world.server);
    trading.start(world.server);
    const until = trading.answered + 200 * EFFORT;
    while (trading.answered < until) {
      const [user, name] = [random.pick(users), random.pick(["trading_fee", "maker_rebate", "pat_rebate"])];
      const rate = name === "trading_fee" ? randomFee(random) : randomRebate(random);
      const wanted = { ...user.terms, [name]: rate };
      const { trading_fee, maker_rebate, pat_rebate } = wanted;
      const rebate = Math.max(maker_rebate ?? MAKER_REBATE_BPS, pat_rebate ?? PAT_REBATE_BPS);
      const isRefused = rebate > (trading_fee ?? TRADING_FEE_BPS);
      const asked = await operator.request("PATCH", `/admin/users/${user.id}/terms`, { body: { [name]: rate } });
      expect([wanted, asked.code]).toEqual([wanted, isRefused ? 40000 : 0]);
      if (!isRefused) user.terms = wanted;
    }
    await trading.stop();
    const agree = async (): Promise<void> => {
      for (const { id, email } of users) {
        const client = new Client(world.server, tokenOf(email.split("@")[0]!));
        await client.data("DELETE", "/orders");
        await eventually(async () => expect((await client.balance()).held).toBe(0));
        await expectOneStory(client, id, rowsOf<FillRow>(world.server.dataDir, `${FILLS} ORDER BY fills.id`));
        client.close();
      }
    };
    await agree();
    const shown = await operator.all<OperatorUserJson>("/admin/users");
    await restart();
    await agree();
    const later = await operator.all<OperatorUserJson>("/admin/users");
    expect(later.map((user) => [user.id, user.balance, user.terms])).toEqual(
      shown.map((user) => [user.id, user.balance, user.terms]),
    );
  });
});
