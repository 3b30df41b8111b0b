/**
 * KYC tiers and daily activity, as clients see them: who may not trade, what counts towards a tier's limit, and what
 * releases it. Some amounts are in cents for readability: 100 shares at a price of 1 BPS are one cent. For restarts and
 * midnight, see restarts.test.ts.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { type Answer, type Client, type OrderJson, ROUTES } from "../support/client.ts";
import { PASSWORD, phoneCode, signIn, verificationToken } from "../support/identity.ts";
import { Random } from "../support/random.ts";
import { notional } from "../support/reference.ts";
import {
  amend,
  BUY,
  batch,
  cancelAll,
  expectRefused,
  patch,
  post,
  putQuotes,
  quote,
  SELL,
  terms,
} from "../support/trading.ts";
import { USDC, World } from "../support/world.ts";
import {
  activity,
  awayFromMidnight,
  ended,
  expectOverLimit,
  expectUsed,
  PlainActivity,
  TEST_MS,
  TIER_1,
  TIER_2,
  worstOf,
} from "./daily-activity.ts";

let world: World;
beforeAll(async () => {
  const person = (tier: number, deposit = 1_000 * USDC) => ({ tier, deposit });
  const named = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`small${n}`, person(1)]));
  const named0 = { none: person(0), rising: { ...person(0), password: PASSWORD } };
  const large = { large: person(2, 100_000 * USDC) };
  const many = { tier: 1, scopes: [["orders:write"], ["orders:write"], ["portfolio:read"]] };
  world = await World.start({ users: 8, named: { ...named, ...named0, ...large, many }, markets: Array(20).fill(2) });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

let smalls = 0;
/** Creates a user of tier 1 with 1,000 USDC. */
const small = (): Client => world.client(`small${smalls++}`);

test("tier 0 may not trade: 40300 on every endpoint, whatever the request says, and on the WebSocket", async () => {
  const none = world.client("none");
  const market = world.market();
  const trading = ROUTES.filter(({ minTier }) => minTier > 0);
  const expected = [
    "DELETE /orders",
    "DELETE /orders/:id",
    "DELETE /orders/by-client-id/:client_order_id",
    "PATCH /orders/:id",
    "POST /markets/proposals",
    "POST /me/identity",
    "POST /orders",
    "POST /orders/batch",
    "POST /orders/cancel-after",
    "POST /wallet/merge",
    "POST /wallet/split",
    "POST /wallet/withdrawals",
    "PUT /quotes/:market_id",
  ];
  expect(trading.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(expected);
  const good: Record<string, object> = {
    "POST /orders": terms(market, 0, BUY, 1, 1),
    "POST /orders/cancel-after": { timeout_ms: 0 },
    "POST /orders/batch": { operations: [{ op: "place", ...terms(market, 0, BUY, 1, 1) }] },
    "PATCH /orders/:id": { price: 1 },
    "PUT /quotes/:market_id": { quotes: [] },
    "POST /wallet/split": { market_id: market.id, quantity: 1 },
    "POST /wallet/merge": { market_id: market.id, quantity: 1 },
  };
  for (const { method, path, body } of trading) {
    const at = path.replace(/:\w+/, String(market.id));
    const bodies = body === null ? [undefined] : [good[`${method} ${path}`] ?? {}, { nonsense: true }];
    for (const given of bodies) {
      const answer = await none.request(method, at, given === undefined ? {} : { body: given });
      expect([method, path, answer.status, answer.code]).toEqual([method, path, 403, 40300]);
    }
  }
  const socket = await world.socket(none);
  const operations: object[] = [
    { op: "order.place", data: good["POST /orders"] },
    { op: "order.place", data: {} },
    { op: "order.cancel", data: { id: 1 } },
    { op: "order.cancel", data: { client_order_id: "x" } },
    { op: "order.cancel_all", data: {} },
    { op: "order.amend", data: { id: 1, price: 1 } },
    { op: "order.batch", data: good["POST /orders/batch"] },
    { op: "quotes.replace", data: { market_id: market.id, quotes: [] } },
    { op: "cancel_on_disconnect", enabled: true },
  ];
  for (const operation of operations) {
    const { code } = await socket.ask(operation);
    expect([operation, code]).toEqual([operation, 40300]);
  }
  await socket.close();
  expect(await none.balance()).toEqual({ available: 1_000 * USDC, held: 0, total: 1_000 * USDC });
  expect(await none.get("/orders")).toEqual({ items: [], next_cursor: null });
  expect(await activity(none)).toEqual({ used: 0, limit: 0 });
});

test("verified e-mail and phone open trading at once, to tokens and sockets from before as well", async () => {
  await awayFromMidnight(TEST_MS);
  const { server } = world;
  const bot = world.client("rising");
  const market = world.market();
  const socket = await world.socket(bot);
  const data = terms(market, 0, BUY, 5_000, 100);
  const { client: person } = await signIn(server, "rising@example.com");
  await expectRefused(post(bot, data), 403, 40300);
  await person.data("POST", "/auth/resend-verification", { email: "rising@example.com" });
  const token = await verificationToken(server, "rising@example.com");
  expect(await person.data("POST", "/auth/verify-email", { token })).toMatchObject({ kyc_tier: 0 });
  await expectRefused(post(bot, data), 403, 40300);
  const phone = "+14155552671";
  await person.data("POST", "/me/phone", { phone });
  await expectRefused(post(bot, data), 403, 40300);
  const code = await phoneCode(server, phone);
  expect(await person.data("POST", "/me/phone/verify", { code })).toMatchObject({ kyc_tier: 1 });
  expect(await activity(bot)).toEqual({ used: 0, limit: TIER_1 });
  expect((await socket.ask({ op: "order.place", data })).code).toBe(0);
  await bot.place(data);
  expect(await activity(bot)).toEqual({ used: TIER_1, limit: TIER_1 });
  const refused = await socket.ask({ op: "order.place", data: { ...data, price: 1, quantity: 1 } });
  expect(refused).toMatchObject({ code: 42901, data: null, msg: expect.stringMatching(/daily activity/) });
  await expectOverLimit(bot, () => post(bot, { ...data, price: 1, quantity: 1 }));
  await socket.close();
  person.close();
});

test("tier 1 has 100 USDC a day and tier 2 has 10,000, to the last micro-USDC", async () => {
  await awayFromMidnight(TEST_MS);
  const market = world.market();
  for (const [user, limit] of [
    [small(), TIER_1],
    [world.client("large"), TIER_2],
  ] as const) {
    const shares = limit / notional(5_000, 1);
    await expectOverLimit(user, () => post(user, terms(market, 0, BUY, 5_000, shares + 1)));
    await user.place(terms(market, 0, BUY, 5_000, shares - 1));
    await expectOverLimit(user, () => post(user, terms(market, 0, BUY, 5_001, 1)));
    await user.place(terms(market, 0, BUY, 4_999, 1));
    expect(await activity(user)).toEqual({ used: limit - 100, limit });
    await expectOverLimit(user, () => post(user, terms(market, 1, BUY, 2, 1)));
    await user.place(terms(market, 1, BUY, 1, 1));
    expect(await activity(user)).toEqual({ used: limit, limit });
    await expectOverLimit(user, () => post(user, terms(market, 1, BUY, 1, 1)));
    // Cancellation releases all of it.
    await cancelAll(user);
    expect(await activity(user)).toEqual({ used: 0, limit });
  }
});

test("splits count 1 USDC a set, for the day; sells and merges count nothing and release nothing", async () => {
  await awayFromMidnight(TEST_MS);
  const [user, market] = [small(), world.market()];
  const split = (quantity: number) =>
    user.request("POST", "/wallet/split", { body: { market_id: market.id, quantity } });
  await expectOverLimit(user, () => split(101));
  await world.split(user, market, 60);
  await expectUsed(user, 60 * USDC);
  await expectOverLimit(user, () => split(41));
  await expectOverLimit(user, () => post(user, terms(market, 1, BUY, 4_001, 100)));
  await user.place(terms(market, 1, BUY, 4_000, 100));
  await expectUsed(user, 100 * USDC);
  await expectOverLimit(user, () => split(1));
  // Closing the position adds nothing, at any level of activity.
  await user.place(terms(market, 0, SELL, 9_000, 20));
  await user.data("POST", "/wallet/merge", { market_id: market.id, quantity: 40 });
  await expectUsed(user, 100 * USDC);
  expect(await cancelAll(user)).toHaveLength(2);
  await expectUsed(user, 60 * USDC);
  // Split again with the proceeds of the merge: every entry counts.
  await expectOverLimit(user, () => split(41));
  await world.split(user, market, 40);
  await expectUsed(user, 100 * USDC);
});

test("parallel splits count before they are done: of forty of 5 USDC twenty pass", async () => {
  await awayFromMidnight(TEST_MS);
  const market = world.market();
  const user = world.client(`small${smalls++}`, 0, 20);
  const body = { market_id: market.id, quantity: 5 };
  const answers = await Promise.all(Array.from({ length: 40 }, () => user.request("POST", "/wallet/split", { body })));
  expect(answers.map(({ code }) => code).sort()).toEqual([...Array(20).fill(0), ...Array(20).fill(42901)]);
  await expectUsed(user, TIER_1);
});

test("the rejection states what is used, the limit and what the order adds", async () => {
  await awayFromMidnight(TEST_MS);
  const [user, market] = [small(), world.market()];
  await world.split(user, market, 30);
  await user.place(terms(market, 1, BUY, 2_000, 100));
  const { msg } = await post(user, terms(market, 0, BUY, 5_001, 100));
  expect(msg).toBe("daily activity: 50000000 of 100000000 micro-USDC are used, the order adds 50010000");
});

test("a market buy counts and holds at its bound, or at 9999 without one; a market sell counts nothing", async () => {
  await awayFromMidnight(TEST_MS);
  const [user, maker, market] = [small(), world.user(), world.market()];
  const unbound = (quantity: number): object => {
    const { price: _, ...rest } = terms(market, 0, BUY, 1, quantity, { type: "market" });
    return rest;
  };
  await expectOverLimit(user, () => post(user, unbound(101)));
  await expectOverLimit(user, () => post(user, { ...unbound(200), price: 5_001 }));
  // 100 shares at 9999 BPS are 99.99 USDC: the orders pass, match nothing, and leave no activity.
  for (const order of [unbound(100), { ...unbound(200), price: 5_000 }]) {
    const { id } = await user.place(order);
    expect(await ended(user, id)).toMatchObject({ status: "canceled", reason: "ioc_remainder", filled: 0 });
    await expectUsed(user, 0);
  }
  // The final activity counts the fill price.
  await world.split(maker, market, 30);
  await maker.place(terms(market, 0, SELL, 2_000, 30));
  await expectUsed(maker, 30 * USDC);
  const { id } = await user.place(unbound(100));
  expect(await ended(user, id)).toMatchObject({ status: "canceled", filled: 30 });
  await expectUsed(user, notional(2_000, 30));
  await expectUsed(maker, 30 * USDC);
  // 94 USDC remain: 94 shares at 9999 BPS, not 95.
  await expectOverLimit(user, () => post(user, unbound(95)));
  expect((await ended(user, (await user.place(unbound(94))).id)).filled).toBe(0);
  const sale = { ...unbound(30), side: SELL };
  expect(await ended(user, (await user.place(sale)).id)).toMatchObject({ filled: 0, reason: "ioc_remainder" });
  await expectUsed(user, notional(2_000, 30));
});

test("a cancel, an amend, an expiry or a rejection by the book releases its activity at once", async () => {
  // 1. Placements count, amends and cancels release.
  await awayFromMidnight(TEST_MS);
  const [user, other, market] = [small(), world.user(), world.market()];
  const one = await user.place(terms(market, 0, BUY, 4_000, 100));
  const two = await user.place(terms(market, 0, BUY, 3_000, 200));
  await expectUsed(user, 100 * USDC);
  await amend(user, one.id, { quantity: 50 });
  await expectUsed(user, 80 * USDC);
  await amend(user, two.id, { price: 2_000 });
  await expectUsed(user, 60 * USDC);
  await user.cancel(one.id);
  await expectUsed(user, 40 * USDC);
  // 2. Amends up to exactly the limit; a rejected amend leaves the order unchanged.
  await expectOverLimit(user, () => patch(user, two.id, { quantity: 501 }));
  await expectOverLimit(user, () => patch(user, two.id, { price: 5_001 }));
  await expectOverLimit(user, () => patch(user, two.id, { price: 4_000, quantity: 251 }));
  expect(await user.order(two.id)).toMatchObject({ price: 2_000, quantity: 200, status: "open" });
  await amend(user, two.id, { quantity: 500 });
  await expectUsed(user, 100 * USDC);
  await amend(user, two.id, { quantity: 200 });
  // 3. An expiry releases.
  const expires_at = Date.now() + 700;
  const brief = await user.place(terms(market, 1, BUY, 1_000, 600, { time_in_force: "gtd", expires_at }));
  await expectUsed(user, 100 * USDC);
  expect(await ended(user, brief.id)).toMatchObject({ status: "expired" });
  await expectUsed(user, 40 * USDC);
  // 4. Rejections by the book release.
  await world.split(other, market, 10);
  await other.place(terms(market, 1, SELL, 5_000, 10));
  const rejections: [more: object, reason: string][] = [
    [{ post_only: true }, "post_only_would_cross"],
    [{ time_in_force: "fok" }, "fok_unfillable"],
    [{ valid_until: Date.now() - 1_000 }, "too_late"],
  ];
  for (const [more, reason] of rejections) {
    const { id } = await user.place(terms(market, 1, BUY, 5_000, 120, more));
    expect(await ended(user, id)).toMatchObject({ reason, filled: 0 });
    await expectUsed(user, 40 * USDC);
  }
  // 5. Self-trade prevention releases.
  await world.split(user, market, 30);
  await expectUsed(user, 70 * USDC);
  const own = await user.place(terms(market, 0, SELL, 6_000, 30));
  const crossing = await user.place(terms(market, 0, BUY, 6_000, 50));
  expect(await ended(user, crossing.id)).toMatchObject({ status: "canceled", reason: "self_trade" });
  await expectUsed(user, 70 * USDC);
  const cancels = { self_trade_prevention: "cancel_both" };
  await ended(user, (await user.place(terms(market, 0, BUY, 6_000, 50, cancels))).id);
  expect(await ended(user, own.id)).toMatchObject({ status: "canceled" });
  await expectUsed(user, 70 * USDC);
  // 6. In the end only the split has used the limit.
  await cancelAll(user);
  await expectUsed(user, 30 * USDC);
});

test("fills keep counting at their own price; the rest is released when the order closes; sells count nothing", async () => {
  await awayFromMidnight(TEST_MS);
  const [buyer, seller, market] = [small(), small(), world.market()];
  await world.split(seller, market, 100);
  await seller.place(terms(market, 0, SELL, 3_000, 100));
  const order = await buyer.place(terms(market, 0, BUY, 9_000, 111, { time_in_force: "ioc" }));
  expect(await ended(buyer, order.id)).toMatchObject({ filled: 100, reason: "ioc_remainder" });
  await expectUsed(buyer, 30 * USDC);
  // The seller entered with the complete set. At the limit, the seller can still exit.
  await expectUsed(seller, 100 * USDC);
  await expectOverLimit(seller, () => post(seller, terms(market, 0, BUY, 1, 1)));
  const resting = await seller.place(terms(market, 1, SELL, 7_000, 100));
  await buyer.place(terms(market, 1, BUY, 7_000, 20));
  await expectUsed(buyer, 44 * USDC);
  await amend(seller, resting.id, { price: 9_999, quantity: 100 });
  await seller.cancel(resting.id);
  await expectUsed(seller, 100 * USDC);
  // Offers add nothing, and release nothing when they close.
  await seller.cancel((await seller.place(terms(market, 1, SELL, 9_999, 1))).id);
  await buyer.cancel((await buyer.place(terms(market, 1, SELL, 9_999, 20))).id);
  await expectUsed(buyer, 44 * USDC);
  // A resting buy that is partially filled, reduced, and canceled.
  const bid = await buyer.place(terms(market, 1, BUY, 5_000, 100));
  await expectUsed(buyer, 94 * USDC);
  await seller.place(terms(market, 1, SELL, 5_000, 20));
  await amend(buyer, bid.id, { quantity: 60 });
  await expectUsed(buyer, 44 * USDC + notional(5_000, 60));
  await buyer.cancel(bid.id);
  await expectUsed(buyer, 44 * USDC + notional(5_000, 20));
});

test("a mint counts for every leg at its own price; a merge for none", async () => {
  await awayFromMidnight(TEST_MS);
  const [one, two, market] = [small(), small(), world.market()];
  await one.place(terms(market, 0, BUY, 6_000, 50));
  const taker = await two.place(terms(market, 1, BUY, 5_000, 50));
  expect(await ended(two, taker.id)).toMatchObject({ status: "filled" });
  await expectUsed(one, notional(6_000, 50));
  await expectUsed(two, notional(4_000, 50));
  await one.place(terms(market, 0, SELL, 3_000, 50));
  await ended(two, (await two.place(terms(market, 1, SELL, 2_000, 50))).id);
  await expectUsed(one, notional(6_000, 50));
  await expectUsed(two, notional(4_000, 50));
});

test("each operation of a batch counts after those before it", async () => {
  await awayFromMidnight(TEST_MS);
  const [user, market] = [small(), world.market()];
  const place = (price: number, quantity: number): object => {
    return { op: "place", ...terms(market, 0, BUY, price, quantity) };
  };
  const first = await user.place(terms(market, 0, BUY, 1_000, 100));
  const results = await batch(user, [
    place(4_000, 200), // 10 + 80
    place(1_001, 100), // over
    place(1_000, 100), // 100
    place(1, 1), // over
    { op: "amend", id: first.id, quantity: 50 }, // 95
    place(500, 100), // 100
    place(1, 1), // over
    { op: "amend", id: first.id, quantity: 51 }, // over
  ]);
  const codes = results.map(({ code }) => code);
  expect(codes).toEqual([0, 42901, 0, 42901, 0, 0, 42901, 42901]);
  await expectUsed(user, 100 * USDC);
  expect(await user.all<OrderJson>("/orders")).toHaveLength(4);
});

test("quotes count together with other orders; a replacement counts the difference", async () => {
  await awayFromMidnight(TEST_MS);
  const [user, market] = [small(), world.market()];
  await user.place(terms(market, 0, BUY, 100, 1_000));
  await expectOverLimit(user, () =>
    putQuotes(user, market, [
      [0, BUY, 4_000, 100],
      [1, BUY, 5_001, 100],
    ]),
  );
  await quote(user, market, [
    [0, BUY, 4_000, 100],
    [1, BUY, 5_000, 100],
  ]);
  await expectUsed(user, 100 * USDC);
  await expectOverLimit(user, () => post(user, terms(market, 0, BUY, 1, 1)));
  // Send the same quotes again, with one price slightly lower.
  await quote(user, market, [
    [0, BUY, 4_000, 100],
    [1, BUY, 5_000, 100],
  ]);
  await quote(user, market, [
    [0, BUY, 4_000, 100],
    [1, BUY, 4_999, 100],
  ]);
  await expectUsed(user, 100 * USDC - notional(1, 100));
  await quote(user, market, [[0, BUY, 4_000, 100]]);
  await expectUsed(user, 50 * USDC);
  await expectOverLimit(user, () => putQuotes(user, market, [[0, BUY, 9_001, 100]]));
  await quote(user, market, [[0, BUY, 9_000, 100]]);
  await expectUsed(user, 100 * USDC);
  await quote(user, market, []);
  await expectUsed(user, 10 * USDC);
});

test("of forty parallel orders of 5 USDC exactly twenty pass", async () => {
  await awayFromMidnight(TEST_MS);
  const market = world.market();
  const user = world.client(`small${smalls++}`, 0, 20);
  const data = terms(market, 0, BUY, 500, 100);
  const answers = await Promise.all(Array.from({ length: 40 }, () => post(user, data)));
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(20);
  expect(answers.filter(({ code }) => code === 42901)).toHaveLength(20);
  await expectUsed(user, 100 * USDC);
});

test("a repeat by client order id gets the first response and counts once, at the limit too", async () => {
  await awayFromMidnight(TEST_MS);
  const [user, market] = [small(), world.market()];
  const data = terms(market, 0, BUY, 5_000, 200, { client_order_id: "all-of-it" });
  const order = await user.place(data);
  expect(await user.place(data)).toEqual(order);
  await expectUsed(user, 100 * USDC);
});

test("random trading of users at their limits agrees with a plain count at every step", async () => {
  await awayFromMidnight(TEST_MS);
  const random = Random.printed("daily activity");
  const market = world.market();
  const [house, ...users] = [world.client("large"), small(), small(), small()] as [Client, ...Client[]];
  for (const user of users) await world.split(user, market, 30);
  await world.split(house, market, 2_000);
  const everyone = [house, ...users];
  const plain = new PlainActivity();
  for (const user of everyone) plain.add(user, (await activity(user)).used);
  let rejections = 0;
  // Some seeds reach the limits late.
  for (let step = 0; step < 250 || rejections <= 5; step++) {
    expect(step).toBeLessThan(1_500);
    const user = random.chance(0.25) ? house : random.pick(users);
    const limit = user === house ? TIER_2 : TIER_1;
    const live = await user.all<OrderJson>(`/orders?market_id=${market.id}`);
    const kind = random.next();
    let answer: Answer<OrderJson>;
    let adds: number;
    if (kind < 0.6 || live.length === 0) {
      const price = random.integer(100, 9_900);
      const type = random.chance(0.15) ? "market" : "limit";
      const isUnbound = type === "market" && random.chance(0.5);
      const order = terms(market, random.integer(0, 1), random.pick([BUY, SELL]), price, random.integer(1, 60));
      const tif = type === "limit" ? random.pick(["gtc", "gtc", "gtc", "ioc", "fok"]) : "ioc";
      adds = order.side === BUY ? notional(isUnbound ? 9_999 : price, order.quantity) : 0;
      const body = { ...order, price: isUnbound ? null : price, type, time_in_force: tif };
      answer = await post(user, { ...body, self_trade_prevention: random.pick(["cancel_maker", "decrement"]) });
    } else if (kind < 0.8) {
      const order = random.pick(live);
      const [price, quantity] = [random.integer(100, 9_900), order.filled + random.integer(1, 80)];
      adds = order.side === BUY ? worstOf(order, price, quantity) - notional(order.price, order.remaining) : 0;
      answer = await patch(user, order.id, { price, quantity });
    } else {
      adds = 0;
      answer = await user.request("DELETE", `/orders/${random.pick(live).id}`);
    }
    // An order that adds nothing passes at the limit, too.
    const fits = adds <= 0 || plain.used(user) + adds <= limit;
    // The server checks money and shares after the daily limit.
    const isExpected = (fits ? [202, 422] : [429]).includes(answer.status);
    expect({ step, used: plain.used(user), adds, status: answer.status, isExpected }).toMatchObject({
      isExpected: true,
    });
    if (answer.status === 429) rejections++;
    for (const each of everyone) await plain.count(each, market);
    for (const each of everyone) expect([step, await activity(each)]).toMatchObject([step, { used: plain.used(each) }]);
  }
});

test("the limit is the account's: all of its tokens share it", async () => {
  await awayFromMidnight(TEST_MS);
  const market = world.market();
  const [first, second, reader] = [0, 1, 2].map((n) => world.client("many", n)) as [Client, Client, Client];
  await first.place(terms(market, 0, BUY, 5_000, 120));
  await expectRefused(post(second, terms(market, 0, BUY, 5_000, 81)), 429, 42901, /daily activity/);
  await second.place(terms(market, 0, BUY, 5_000, 80));
  for (const each of [first, second, reader]) await expectUsed(each, TIER_1);
});
