/**
 * What users are told: fills of resting orders as one notification an order, payouts, deposits, decided withdrawals, price
 * alerts; which topics the page lists; what was seen; and what a restart keeps.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_FIRED_ALERTS, MAX_PRICE_ALERTS } from "../../server/notifications/limits.ts";
import { eventually, expectEndsWell } from "../support/checks.ts";
import type { Answer, Client } from "../support/client.ts";
import { withDatabase } from "../support/data-dir.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { asOperator, OPERATORS, settle } from "../support/markets.ts";
import { BUY, expectRefused, SELL, terms } from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

interface Notification {
  readonly kind: string;
  readonly at: number;
  readonly [field: string]: unknown;
}
interface List {
  readonly items: readonly Notification[];
  readonly unseen: number;
  readonly seen_at: number;
}
interface Alert {
  readonly id: number;
  readonly outcome_id: number;
  readonly direction: string;
  readonly price: number;
}

let world: World;
let user: Client;
let other: Client;
let operator: Client;
let market: TestMarket;

const NOTHING = {
  ...{ market_id: null, outcome_id: null, order_id: null, side: null, quantity: null, price: null },
  ...{ amount: null, profit: null, status: null, direction: null },
};
const list = (client = user): Promise<List> => client.get<List>("/me/notifications");
const alertsOf = async (client = user): Promise<readonly Alert[]> =>
  (await client.get<{ items: Alert[] }>("/me/price-alerts")).items;
const ask = (body: object, client = user): Promise<Answer<Alert>> =>
  client.request("POST", "/me/price-alerts", { body });

/** A trade at a price, between two users who hold sets. */
async function trade(outcome: number, price: number): Promise<void> {
  await world.client("taker").place(terms(market, outcome, SELL, price, 1));
  await world.client("maker").place(terms(market, outcome, BUY, price, 1));
}

async function open(): Promise<void> {
  user = (await signIn(world.server, "teller@example.com")).client;
  other = (await signIn(world.server, "other@example.com")).client;
  operator = await asOperator(world);
}
function close(): void {
  for (const client of [user, other, operator]) client.close();
}

beforeAll(async () => {
  const signed = { password: PASSWORD };
  const named = { ...OPERATORS, teller: signed, other: signed, quiet: signed, maker: {}, taker: {} };
  world = await World.start({ users: 1, named, markets: [2, 2, 2] });
  market = world.market();
  await world.split(world.client("taker"), market, 1_000);
  await open();
});
afterAll(async () => {
  close();
  await expectEndsWell(world);
});

describe("the list", () => {
  test("the list has one notification for an order that rested, at the average of its fills, and none for a taker's", async () => {
    const taker = world.client("taker");
    const order = await user.place(terms(market, 0, BUY, 4_000, 30));
    const better = await user.place(terms(market, 0, BUY, 4_100, 10));
    await taker.place(terms(market, 0, SELL, 4_000, 25));
    await taker.place(terms(market, 0, SELL, 4_000, 15));
    await world.client("maker").place(terms(market, 0, BUY, 3_900, 5));
    await user.place(terms(market, 0, SELL, 3_900, 5));
    const { items, unseen } = await list();
    const of = (id: number, quantity: number, price: number): object => ({
      ...NOTHING,
      ...{ kind: "fill", at: expect.any(Number), order_id: id, side: BUY, quantity, price },
      ...{ market_id: market.id, outcome_id: market.outcomes[0] },
    });
    expect(items.filter(({ kind }) => kind === "fill")).toEqual([of(order.id, 30, 4_000), of(better.id, 10, 4_100)]);
    expect(unseen).toBe(items.length);
    expect(items.map(({ at }) => at)).toEqual(items.map(({ at }) => at).toSorted((a, b) => b - a));
  });

  test("the list of notifications has deposits, reversals, payouts and decided withdrawals", async () => {
    const paid = world.market();
    await world.split(user, paid, 7);
    await settle(operator, paid, { outcome_id: paid.outcomes[1] });
    const { items } = await list();
    const payouts = items.filter(({ kind }) => kind === "resolution");
    expect(payouts).toMatchObject([
      { market_id: paid.id, outcome_id: paid.outcomes[1], quantity: 7, amount: 7 * USDC, profit: 3.5 * USDC },
      { market_id: paid.id, outcome_id: paid.outcomes[0], quantity: 7, amount: 0, profit: -3.5 * USDC },
    ]);
    expect(items.filter(({ kind }) => kind === "deposit")).toMatchObject([{ amount: 10_000 * USDC, order_id: null }]);
  });

  test("the list of notifications has the topics that the user wants, and counts what was not seen", async () => {
    const { items } = await list();
    const settings = await user.data<object>("PATCH", "/me/notification-settings", { page: { fills: false } });
    const others = { resolutions: true, payments: true, alerts: true };
    expect(settings).toEqual({ page: { fills: false, ...others }, mail: { fills: false, ...others } });
    expect((await list()).items).toEqual(items.filter(({ kind }) => kind !== "fill"));
    await user.data("PATCH", "/me/notification-settings", { page: { fills: true, payments: false } });
    expect((await list()).items).toEqual(items.filter(({ kind }) => kind !== "deposit"));
    await user.data("PATCH", "/me/notification-settings", { page: { payments: true } });
    expect((await list()).items).toEqual(items);

    const { at } = items[1]!;
    expect(await user.data("PATCH", "/me/notifications", { seen_at: at })).toEqual({ seen_at: at });
    const later = items.filter((item) => item.at > at).length;
    expect(await list()).toMatchObject({ unseen: later, seen_at: at });
    // A tab that is behind takes nothing back, and nobody sees the future.
    expect(await user.data("PATCH", "/me/notifications", { seen_at: 0 })).toEqual({ seen_at: at });
    const ahead = await user.data<{ seen_at: number }>("PATCH", "/me/notifications", { seen_at: Date.now() + 1e9 });
    expect(ahead.seen_at).toBeLessThanOrEqual(Date.now());
    expect((await list()).unseen).toBe(0);
    // Everyone has a list of their own.
    expect((await list(other)).items.map(({ kind }) => kind)).toEqual(["deposit"]);
  });

  test("wrong requests change no notification and no setting", async () => {
    const settings = await user.get("/me/notification-settings");
    for (const body of [{}, { page: { money: true } }, { page: { fills: 1 } }, { sms: {} }]) {
      await expectRefused(user.request("PATCH", "/me/notification-settings", { body }), 400, 40000);
    }
    for (const body of [{}, { seen_at: -1 }, { seen_at: "now" }]) {
      await expectRefused(user.request("PATCH", "/me/notifications", { body }), 400, 40000);
    }
    expect(await user.get("/me/notification-settings")).toEqual(settings);
    for (const path of ["/me/notifications", "/me/notification-settings", "/me/price-alerts"]) {
      await expectRefused(world.client("maker").request("GET", path), 403, 40300);
      await expectRefused(world.anonymous().request("GET", path), 401, 40100);
    }
  });
});

describe("a price alert", () => {
  test("a price alert fires once, at a trade at its price or beyond", async () => {
    const [yes] = market.outcomes;
    await trade(0, 5_000);
    const above = await ask({ outcome_id: yes, direction: "above", price: 5_500 });
    expect(above).toMatchObject({ status: 201, data: { market_id: market.id, outcome_id: yes, price: 5_500 } });
    const below = await ask({ outcome_id: yes, direction: "below", price: 4_500 });
    expect((await alertsOf()).map(({ id }) => id)).toEqual([below.data.id, above.data.id]);
    // Inside the band, nothing fires.
    await trade(0, 5_499);
    await trade(0, 4_501);
    expect((await alertsOf()).length).toBe(2);
    await trade(0, 5_700);
    await eventually(async () => expect((await alertsOf()).map(({ id }) => id)).toEqual([below.data.id]));
    const fired = (await list()).items.filter(({ kind }) => kind === "alert");
    expect(fired).toEqual([
      {
        ...NOTHING,
        ...{ kind: "alert", at: expect.any(Number), market_id: market.id, outcome_id: yes },
        ...{ direction: "above", price: 5_500 },
      },
    ]);
    await trade(0, 5_800);
    await trade(0, 4_500);
    await eventually(async () => expect(await alertsOf()).toEqual([]));
    const all = (await list()).items.filter(({ kind }) => kind === "alert");
    expect(all.map(({ direction }) => direction)).toEqual(["below", "above"]);
  });

  test("several price alerts of several users fire at one trade, each for its own price", async () => {
    const [, no] = market.outcomes;
    await trade(1, 3_000);
    const prices = [3_100, 3_200, 3_300];
    for (const price of prices) {
      for (const client of [user, other]) await ask({ outcome_id: no, direction: "above", price }, client);
    }
    await trade(1, 3_200);
    for (const client of [user, other]) {
      await eventually(async () => expect((await alertsOf(client)).map(({ price }) => price)).toEqual([3_300]));
      const [last] = await alertsOf(client);
      await client.data("DELETE", `/me/price-alerts/${last!.id}`);
      await expectRefused(client.request("DELETE", `/me/price-alerts/${last!.id}`), 404, 4040);
    }
    await trade(1, 3_400);
    expect((await list(other)).items.filter(({ kind }) => kind === "alert").length).toBe(2);
  });

  test("a price alert is rejected where its price has been reached, for what isn't there, and beyond the bound", async () => {
    const [yes, no] = market.outcomes;
    await trade(0, 5_000);
    await expectRefused(ask({ outcome_id: yes, direction: "above", price: 5_000 }), 409, 40900, /last price is 5000/);
    await expectRefused(ask({ outcome_id: yes, direction: "below", price: 5_001 }), 409, 40900, /last price/);
    await expectRefused(ask({ outcome_id: 99_999, direction: "above", price: 5_001 }), 404, 4040);
    for (const body of [
      { outcome_id: yes, direction: "up", price: 6_000 },
      { outcome_id: yes, direction: "above", price: 10_000 },
      { outcome_id: yes, direction: "above", price: 0 },
      { outcome_id: yes, direction: "above", price: 55.5 },
      { outcome_id: yes, direction: "above" },
    ]) {
      await expectRefused(ask(body), 400, 40000);
    }
    const { client: quiet } = await signIn(world.server, "quiet@example.com");
    for (let i = 0; i < MAX_PRICE_ALERTS; i++) {
      await quiet.data("POST", "/me/price-alerts", { outcome_id: no, direction: "above", price: 9_000 + i });
    }
    await expectRefused(
      ask({ outcome_id: no, direction: "above", price: 9_999 }, quiet),
      409,
      40900,
      /at most 50 price alerts/,
    );
    // One trade fires all of them; the latest stay in the list.
    await trade(1, 9_000 + MAX_PRICE_ALERTS);
    await eventually(async () => expect(await alertsOf(quiet)).toEqual([]));
    const fired = (await list(quiet)).items.filter(({ kind }) => kind === "alert").map(({ price }) => Number(price));
    const latest = Array.from({ length: MAX_FIRED_ALERTS }, (_, i) => 9_000 + MAX_PRICE_ALERTS - MAX_FIRED_ALERTS + i);
    expect(fired.toSorted((a, b) => a - b)).toEqual(latest);
    quiet.close();
  });

  test("price alerts and settings outlive a crash; the start fires what a trade before it reached", async () => {
    const [yes] = market.outcomes;
    await ask({ outcome_id: yes, direction: "above", price: 6_000 });
    await ask({ outcome_id: yes, direction: "above", price: 7_000 });
    await user.data("PATCH", "/me/notification-settings", { page: { payments: false } });
    const before = await list();
    close();
    await world.server.kill();
    world.server = await world.server.restart();
    await open();
    expect((await alertsOf()).map(({ price }) => price)).toEqual([7_000, 6_000]);
    expect(await list()).toEqual(before);
    expect(await user.get("/me/notification-settings")).toMatchObject({ page: { payments: false, alerts: true } });
    await trade(0, 6_500);
    await eventually(async () => expect((await alertsOf()).map(({ price }) => price)).toEqual([7_000]));
    expect((await list()).items[0]).toMatchObject({ kind: "alert", price: 6_000 });

    // As if the crash had come between the trade and the alert's write.
    close();
    await world.server.stop();
    withDatabase(world.server.dataDir, (db) => {
      const changed = db.prepare(
        "UPDATE users SET price_alerts = replace(price_alerts, '7000', '6400') WHERE email = ?",
      );
      expect(changed.run("teller@example.com").changes).toBe(1);
    });
    world.server = await world.server.restart();
    await open();
    await eventually(async () => expect(await alertsOf()).toEqual([]));
    expect((await list()).items[0]).toMatchObject({ kind: "alert", price: 6_400 });
  });
});
