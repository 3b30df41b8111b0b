/**
 * The machine's clock is set back and forward, and the machine pauses: what is due by the clock is due, nothing is because of
 * a stamp, and timers that ran out come before requests that waited.
 */
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { BUY, terms } from "../support/terms.ts";
import { post, quotesBody, SELL } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

const PRELOAD = fileURLToPath(new URL("../support/stepped-clock.mjs", import.meta.url));
const [SECOND, HOUR, DAY] = [1_000, 3_600_000, 86_400_000];
const BACK = [-2 * SECOND, -10 * SECOND, -60 * SECOND, -HOUR, -3 * DAY];
const STEPS = [...BACK, ...BACK.map((step) => -step)];
/** micro-USDC a day at tier 1 of the tests' users. */
const SHARE = 1_000_000;

const nowOf = async (client: Client): Promise<number> => (await client.get<{ now: number }>("/time")).now;
const stateOf = async (client: Client, id: number): Promise<unknown[]> => {
  const { status, reason } = await client.get<OrderJson>(`/orders/${id}`);
  return [status, reason];
};

async function step(client: Client, ms: number): Promise<void> {
  const before = await nowOf(client);
  client.server.signal("SIGUSR2");
  await eventually(async () => {
    const moved = (await nowOf(client)) - before;
    expect(ms < 0 ? moved < ms / 2 : moved >= ms).toBe(true);
  });
}

/** An order's end, a quote's, valid_until and the dead man's switch hold at the clock's time, whatever the stamps. */
async function expectClockRules(user: Client, market: TestMarket): Promise<void> {
  const now = await nowOf(user);
  const bid = (more: object): Promise<OrderJson> => user.place(terms(market, 0, BUY, 100, 1, more));
  const long = await bid({ time_in_force: "gtd", expires_at: now + 1_500 + HOUR });
  const short = await bid({ time_in_force: "gtd", expires_at: now + 1_500 });
  const valid = await bid({ valid_until: now + 20_000 });
  const body = { ...quotesBody(market, [[1, BUY, 50, 1]]), expires_at: now + HOUR, valid_until: now + 20_000 };
  const quoted = await user.request<{ results: { data: OrderJson }[] }>("PUT", `/quotes/${market.id}`, { body });
  const quote = quoted.data.results[0]!.data;
  for (const { id } of [long, short, valid, quote]) expect(await stateOf(user, id)).toEqual(["open", null]);
  const late = await bid({ valid_until: now - 1 });
  await eventually(async () => expect(await stateOf(user, late.id)).toEqual(["rejected", "too_late"]));
  await eventually(async () => expect(await stateOf(user, short.id)).toEqual(["expired", "expired"]));
  expect(await nowOf(user)).toBeGreaterThanOrEqual(now + 1_500);
  await user.data("POST", "/orders/cancel-after", { timeout_ms: 1_000 });
  await eventually(async () => {
    for (const { id } of [long, valid, quote]) expect(await stateOf(user, id)).toEqual(["canceled", "cancel_after"]);
  });
}

test("whatever the clock is set to, ends and switches follow it", async () => {
  const env = { NODE_OPTIONS: `--import ${PRELOAD}`, CLOCK_STEPS_MS: STEPS.join() };
  const world = await World.start({ users: 2, markets: [2], env });
  onTestFinished(() => world.server.kill());
  const [user, other] = [world.user(), world.user()];
  const market = world.market();
  for (const ms of STEPS) {
    // Somebody's order has the latest stamp, and one waits with a stamp of before.
    await other.place(terms(market, 0, BUY, 10, 1));
    const before = await user.place(terms(market, 0, BUY, 20, 1));
    await step(user, ms);
    await expectClockRules(user, market);
    expect(await stateOf(user, before.id)).toEqual(["canceled", "cancel_after"]);
  }
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
}, 120_000);

test("the daily limit counts after the clock was set back three days", async () => {
  const env = { NODE_OPTIONS: `--import ${PRELOAD}`, CLOCK_STEPS_MS: String(-3 * DAY) };
  const world = await World.start({ users: 0, named: { first: { tier: 1 }, later: { tier: 1 } }, markets: [2], env });
  onTestFinished(() => world.server.kill());
  const market = world.market();
  const first = world.client("first");
  const split = (user: Client, quantity: number) =>
    user.request("POST", "/wallet/split", { body: { market_id: market.id, quantity } });
  const { limit } = (await first.get<{ daily_activity: { limit: number } }>("/me/limits")).daily_activity;
  const shares = limit / SHARE;
  expect((await split(first, shares * 0.6)).status).toBe(200);
  await step(first, -3 * DAY);
  // Of one who traded before the step, and of one who didn't.
  expect(await split(first, shares * 0.6)).toMatchObject({ status: 429, code: 42901 });
  const later = world.client("later");
  expect((await split(later, shares * 0.6)).status).toBe(200);
  expect(await split(later, shares * 0.6)).toMatchObject({ status: 429, code: 42901 });
  expect((await split(later, shares * 0.4)).status).toBe(200);
  await expectEndsWell(world);
});

test("after a pause of the machine, a switch that ran out comes before the orders that waited", async () => {
  const world = await World.start({ users: 3, markets: [2] });
  onTestFinished(() => world.server.kill());
  const market = world.market();
  const [maker, taker, gone] = [world.user(), world.user(), world.user()];
  await world.split(taker, market, 20);
  for (let round = 0; round < 5; round++) {
    const bid = await maker.place(terms(market, 0, BUY, 4_000, 1));
    const quoted = await gone.place(terms(market, 0, BUY, 3_900, 1));
    for (const user of [maker, gone]) await user.data("POST", "/orders/cancel-after", { timeout_ms: 1_000 });
    world.server.signal("SIGSTOP");
    const sold = post(taker, terms(market, 0, SELL, 3_000, 1));
    // The clock is what the test is about: the switches run out while the machine stands still.
    await delay(1_200);
    world.server.signal("SIGCONT");
    const { data } = await sold;
    for (const [user, { id }] of [
      [maker, bid],
      [gone, quoted],
    ] as const) {
      await eventually(async () => expect(await stateOf(user, id)).toEqual(["canceled", "cancel_after"]));
    }
    expect(await stateOf(taker, data.id)).toEqual(["open", null]);
    await taker.request("DELETE", `/orders/${data.id}`);
  }
  await expectEndsWell(world);
});
