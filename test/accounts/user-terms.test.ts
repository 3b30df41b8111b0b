/**
 * The terms that an operator sets for one user: the daily limit, fees and rebates, rate limits. Each shows and
 * applies everywhere it should, across kills and races. For random trading under changing terms, see
 * user-terms.property.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_MERGE_FEE_BPS, MAX_MONEY_MICRO, MAX_OWN_RATE_BPS } from "../../engine/limits.ts";
import { MAX_OWN_LIVE_ORDERS, MAX_OWN_REBATE_BPS, MAX_RATE_LIMIT_FACTOR } from "../../server/accounts/limits.ts";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { OPERATOR, operatorOf, setTerms, userNamed } from "../support/operator.ts";
import { expectLimited, expectRate, type LimitsJson, rateOf } from "../support/rates.ts";
import { TestServer } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { PUBLIC_URL, type TestMarket, USDC, World } from "../support/world.ts";
import { expectOneStory, FILLS, type FillRow } from "./fill-rows.ts";

const NAMED = {
  operator: OPERATOR,
  ...{ changing: {}, bounded: {}, capped: {}, racing: {}, limited: { tier: 1 } },
  ...{ maker: { password: PASSWORD }, taker: {} },
  ...{ durable: {}, legacy: {}, patient: { tier: 1 }, resting: {}, seller: {} },
};
let world: World;
let operator: Client;
beforeAll(async () => {
  world = await World.start({ users: 0, named: NAMED, markets: [2, 2, 2, 2], env: { PUBLIC_URL } });
  operator = await operatorOf(world.server, "operator", 4);
});
afterAll(async () => {
  operator.close();
  await expectEndsWell(world);
});

const idOf = async (name: string): Promise<number> => (await userNamed(operator, name)).id;
const changeTerms = (id: number, body: object) => operator.request("PATCH", `/admin/users/${id}/terms`, { body });
async function expectRefusedTerms(id: number, body: object, message: string): Promise<void> {
  const { code, msg } = await changeTerms(id, body);
  expect([body, code, msg]).toEqual([body, 40000, message]);
}
const EXCEEDS = "exceeds the account's trading_fee of";
const ZERO_RATES = { trading_fee: 0, maker_rebate: 0, pat_rebate: 0 };
const limitsOf = (client: Client): Promise<LimitsJson> => client.get("/me/limits");
const place = (client: Client, body: object) => client.request<OrderJson>("POST", "/orders", { body });

const ALL = {
  daily_limit: 5 * USDC,
  trading_fee: 10,
  maker_rebate: 1,
  pat_rebate: 3,
  merge_fee: 7,
  rate_limit_factor: 2,
  max_live_orders: 30_000,
};
/** Changes in this order, and the terms after all of them. */
const CHANGES = [ALL, { trading_fee: 3 }, { daily_limit: null, rate_limit_factor: null }];
const AFTER_CHANGES = { ...ALL, trading_fee: 3, daily_limit: null, rate_limit_factor: null };

describe("setting terms", () => {
  test("setting terms keeps absent fields, and null restores the default", async () => {
    const id = await idOf("changing");
    expect((await setTerms(operator, id, CHANGES[0]!)).terms).toEqual(ALL);
    expect((await setTerms(operator, id, CHANGES[1]!)).terms).toEqual({ ...ALL, trading_fee: 3 });
    expect((await setTerms(operator, id, CHANGES[2]!)).terms).toEqual(AFTER_CHANGES);
  });

  test("setting terms rejects values out of bounds, unknown fields and an empty body, and changes nothing", async () => {
    const id = await idOf("bounded");
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
    expect((await userNamed(operator, "bounded")).terms).toEqual(none);
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

  test("setting terms rejects a rebate above the account's fee, whichever of them changes, also from the shell and seeds", async () => {
    const id = await idOf("capped");
    const change = (body: object) => changeTerms(id, body);
    const refused = (body: object, message: string) => expectRefusedTerms(id, body, message);
    await refused({ trading_fee: 9 }, `pat_rebate: 10 BPS (the default) ${EXCEEDS} 9 BPS`);
    await refused({ trading_fee: 0, pat_rebate: 0 }, `maker_rebate: 5 BPS (the default) ${EXCEEDS} 0 BPS`);
    await refused({ trading_fee: 20, maker_rebate: 21 }, `maker_rebate: 21 BPS ${EXCEEDS} 20 BPS`);
    expect((await change({ trading_fee: 20, pat_rebate: 20 })).code).toBe(0);
    await refused({ pat_rebate: 21 }, `pat_rebate: 21 BPS ${EXCEEDS} 20 BPS`);
    await refused({ trading_fee: 19 }, `pat_rebate: 20 BPS ${EXCEEDS} 19 BPS`);
    expect((await change(ZERO_RATES)).code).toBe(0);
    await refused({ maker_rebate: null }, `maker_rebate: 5 BPS (the default) ${EXCEEDS} 0 BPS`);
    const shell = await admin(world.server.dataDir, "terms", "capped@example.com", "--maker-rebate", "1");
    expect([shell.code, shell.errors]).toEqual([1, expect.stringContaining(`maker_rebate: 1 BPS ${EXCEEDS} 0 BPS`)]);
    expect((await userNamed(operator, "capped")).terms).toMatchObject(ZERO_RATES);
    const users = [{ email: "a@example.com" }, { email: "b@example.com", terms: { trading_fee: 4, pat_rebate: 0 } }];
    const { code, errors } = await TestServer.refuse({ seed: { users } as Seed });
    const reason = `users/1/terms/maker_rebate: 5 BPS (the default) ${EXCEEDS} 4 BPS`;
    expect([code, errors]).toEqual([1, expect.stringContaining(reason)]);
  });

  test("several concurrent changes to different terms all take effect", async () => {
    const id = await idOf("racing");
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
      const { terms: shown } = await userNamed(operator, "racing");
      expect(shown).toEqual({ ...wanted, pat_rebate: null });
      const columns =
        "daily_limit, trading_fee, maker_rebate, pat_rebate, merge_fee, rate_limit_factor, max_live_orders";
      expect(rowsOf(world.server.dataDir, `SELECT ${columns} FROM users WHERE id = ?`, id)).toEqual([shown]);
    }
  });
});

/** Expects a daily limit of 500 USDC, above the tier's 100 USDC, to apply; then lowers it to zero, and removes it. */
async function expectRaisedLimit(client: Client, id: number, market: TestMarket): Promise<void> {
  expect((await place(client, terms(market, 0, BUY, 5_000, 300))).code).toBe(0);
  await setTerms(operator, id, { daily_limit: 0 });
  expect((await place(client, terms(market, 0, BUY, 1, 1))).code).toBe(42901);
  await setTerms(operator, id, { daily_limit: null });
  expect((await limitsOf(client)).daily_activity.limit).toBe(100 * USDC);
  // The user can still cancel live orders.
  expect((await client.request("DELETE", "/orders")).code).toBe(0);
  expect((await place(client, terms(market, 0, BUY, 5_000, 10))).code).toBe(0);
  await client.data("DELETE", "/orders");
}

describe("the daily limit", () => {
  test("the daily limit applies immediately to every kind of order, is shown, and null restores the tier's", async () => {
    const market = world.market();
    const maker = world.client("limited");
    const id = await idOf("limited");
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
    expect((await userNamed(operator, "limited")).daily_activity).toEqual({ used: 10 * USDC, limit });
    await setTerms(operator, id, { daily_limit: 500 * USDC });
    await expectRaisedLimit(maker, id, market);
  });
});

/** Places a matching sell order of the maker's bid at 3,333 BPS, and returns the fee and the rebate of each fill. */
async function sell(client: Client, market: TestMarket): Promise<[fee: number, rebate: number][]> {
  const { id } = await client.place(terms(market, 0, SELL, 3_333, 7));
  await eventually(async () => expect((await client.order(id)).status).toBe("filled"));
  const where = "match_id IN (SELECT match_id FROM fills WHERE order_id = ?)";
  const fills = rowsOf<FillRow>(world.server.dataDir, `${FILLS} WHERE ${where} ORDER BY fills.id`, id);
  return fills.map(({ fee, rebate }) => [fee, rebate]);
}
const allFills = (): FillRow[] => rowsOf<FillRow>(world.server.dataDir, `${FILLS} ORDER BY fills.id`);
/** The value of a sale, in units of a hundredth of a micro-USDC. */
const SOLD = 3_333 * 7 * 100;

test("a user's own fees and rebates, by kind of token, apply to fills and show in transactions and /me/limits", async () => {
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
  await maker.place(terms(market, 0, BUY, 3_333, 7));
  // The seller pays 1 BPS, which caps the rebate.
  expect(await sell(taker, market)).toEqual([
    [0, Math.ceil(SOLD / 10_000)],
    [Math.ceil(SOLD / 10_000), 0],
  ]);
  await setTerms(operator, await idOf("taker"), { trading_fee: 35 });
  await session.client.place(terms(market, 0, BUY, 3_333, 7));
  expect((await sell(taker, market))[0]).toEqual([0, Math.floor((SOLD * 30) / 10_000)]);
  await maker.place(terms(market, 0, BUY, 3_333, 7));
  expect((await sell(taker, market))[0]).toEqual([0, Math.ceil((SOLD * 35) / 10_000)]);
  session.client.close();
  await expectOneStory(maker, makerId, allFills());
});

describe("after a kill -9", () => {
  const USED = 10 * USDC;
  let limited: TestMarket;
  let traded: TestMarket;
  beforeAll(async () => {
    [limited, traded] = [world.market(), world.market()];
    const durable = await idOf("durable");
    for (const change of CHANGES) await setTerms(operator, durable, change);
    await setTerms(operator, await idOf("patient"), { daily_limit: 500 * USDC });
    for (let i = 0; i < 2; i++) await world.client("patient").place(terms(limited, 0, BUY, 5_000, 10));
    await setTerms(operator, await idOf("resting"), { pat_rebate: 40 });
    await setTerms(operator, await idOf("seller"), { trading_fee: 35 });
    await world.split(world.client("seller"), traded, 100);
    await world.client("resting").place(terms(traded, 0, BUY, 3_333, 14));
    await sell(world.client("seller"), traded);
    const legacy = await idOf("legacy");
    await setTerms(operator, legacy, ZERO_RATES);
    operator.close();
    await world.server.kill();
    // Terms from before the rule that no rebate exceeds the fee.
    const sql = "UPDATE users SET maker_rebate = 150 WHERE id = ?";
    withDatabase(world.server.dataDir, (db) => db.prepare(sql).run(legacy));
    world.server = await world.server.restart();
    operator = await operatorOf(world.server, "operator", 4);
  });

  test("after a kill -9, terms and the audit log of their changes are as before", async () => {
    expect((await userNamed(operator, "durable")).terms).toEqual(AFTER_CHANGES);
    const sql = "SELECT details FROM audit_log WHERE action = 'user.set_terms' AND user_id = ? ORDER BY id";
    const lines = rowsOf<{ details: string }>(world.server.dataDir, sql, await idOf("durable"));
    expect(lines.map(({ details }) => JSON.parse(details))).toEqual(CHANGES);
  });

  test("after a kill -9, a daily limit and its use are as before", async () => {
    const id = await idOf("patient");
    expect((await userNamed(operator, "patient")).daily_activity).toEqual({ used: USED, limit: 500 * USDC });
    await expectRaisedLimit(world.client("patient"), id, limited);
  });

  test("after a kill -9, a user's own fees and rebates apply to resting orders", async () => {
    expect(await sell(world.client("seller"), traded)).toEqual([
      [0, Math.ceil((SOLD * 35) / 10_000)],
      [Math.ceil((SOLD * 35) / 10_000), 0],
    ]);
    const fills = allFills();
    for (const name of ["maker", "resting", "seller"]) {
      await expectOneStory(world.client(name), await idOf(name), fills);
    }
  });

  test("after a kill -9, terms with a rebate above the fee reject other changes until the rebates fit", async () => {
    const id = await idOf("legacy");
    // The fees of each match bound its rebates even so.
    await expectRefusedTerms(id, { daily_limit: 1 }, `maker_rebate: 150 BPS ${EXCEEDS} 0 BPS`);
    expect((await changeTerms(id, { daily_limit: 1, maker_rebate: 0 })).code).toBe(0);
  });
});

describe("rate limits", () => {
  const RATE_LIMITS = JSON.stringify({ user: 6, address: 100, order_user: 3, order_address: 8, auth_identifier: 4 });
  const named = { maker: { password: PASSWORD }, other: {} };
  let limited: World;
  beforeAll(async () => {
    limited = await World.start({ users: 0, named, env: { PUBLIC_URL, RATE_LIMITS } });
  });
  afterAll(() => expectEndsWell(limited));

  const setFactor = async (factor: string): Promise<void> => {
    const run = await admin(limited.server.dataDir, "terms", "maker@example.com", "--rate-limit-factor", factor);
    expect(run).toMatchObject({ code: 0, errors: "" });
  };

  test("rate limits are multiplied for one user only, over HTTP and the WebSocket, in headers and in /me/limits", async () => {
    const market = limited.market();
    const [maker, other] = [limited.client("maker"), limited.client("other")];
    expectRate(rateOf(await maker.request("GET", "/me")), 6, 5);
    await setFactor("2");
    expectRate(rateOf(await maker.request("GET", "/me")), 12, 10);
    expectRate(rateOf(await other.request("GET", "/me")), 6, 5);
    // Applies to every token of the user.
    const session = await signIn(limited.server, "maker@example.com");
    expectRate(rateOf(await session.client.request("GET", "/me")), 12, 9);
    const order = terms(market, 0, BUY, 100, 1);
    for (let n = 5; n >= 2; n--) expectRate(rateOf(await place(maker, order)), 6, n);
    const socket = await Socket.open(limited.server, maker.token);
    const reply = await socket.ask({ op: "order.place", data: order });
    expectRate(
      (reply as unknown as { rate_limit: { limit: number; remaining: number; reset: number } }).rate_limit,
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
    session.client.close();
  });

  test("a factor of rate limits outlives a kill -9, the counts don't, and a new factor applies to the current count", async () => {
    await setFactor("2");
    await limited.server.kill();
    limited.server = await limited.server.restart();
    const maker = limited.client("maker");
    for (let n = 11; n >= 6; n--) expectRate(rateOf(await maker.request("GET", "/me")), 12, n);
    // The new limit is below the current count: requests fail until enough of them are a minute old.
    await setFactor("default");
    expect((await maker.request("GET", "/me")).code).toBe(42900);
    expectLimited(await maker.request("GET", "/me"), 6);
    await setFactor("1000");
    expectRate(rateOf(await maker.request("GET", "/me")), 6_000, 5_993);
    await maker.data("DELETE", "/orders");
  });
});
