/** Time in force, post_only and self-trade prevention: how much of an order trades, and how it ends. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { notional } from "../support/reference.ts";
import type { Socket } from "../support/socket.ts";
import { BUY, expectRefused, SELL, terms } from "../support/trading.ts";
import { World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 20, markets: Array<number>(20).fill(2) });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

/** The order once it has reached a state that fits. */
async function settled(socket: Socket, id: number, status: string): Promise<OrderJson> {
  const frame = await socket.frame<OrderJson>("order.updated", (order) => order.id === id && order.status === status);
  return frame.data;
}

describe("time in force", () => {
  let socket: Socket;
  let user: Client;
  let other: Client;
  beforeAll(async () => {
    user = world.user();
    other = world.user();
    socket = await world.socket(user);
  });

  test("a gtd order expires by itself and frees its hold", async () => {
    const market = world.market();
    const expires = Date.now() + 800;
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 3, { time_in_force: "gtd", expires_at: expires }));
    const order = await settled(socket, id, "expired");
    expect(order).toMatchObject({ reason: "expired", remaining: 3, filled: 0, expires_at: expires });
    expect(order.updated_at).toBeGreaterThanOrEqual(expires);
    expect(await user.order(id)).toEqual(order);
    expect(await user.book(market.id, market.outcomes[0]!)).toMatchObject({ bids: [] });
    expect(await user.balance()).toMatchObject({ held: 0 });
    await expectRefused(user.request("DELETE", `/orders/${id}`), 409, 40900);
  });

  test("an ioc order fills what it can and cancels the rest", async () => {
    const market = world.market();
    await world.split(other, market, 3);
    await other.place(terms(market, 0, SELL, 5_000, 3));
    const { id } = await user.place(terms(market, 0, BUY, 5_500, 5, { time_in_force: "ioc" }));
    const filled = await settled(socket, id, "partially_filled");
    expect(filled.trades).toMatchObject([{ price: 5_000, quantity: 3 }]);
    const ended = await settled(socket, id, "canceled");
    expect(ended).toMatchObject({ reason: "ioc_remainder", filled: 3, remaining: 2, trades: [] });
    const nothing = await user.place(terms(market, 0, BUY, 5_500, 5, { time_in_force: "ioc" }));
    expect(await settled(socket, nothing.id, "canceled")).toMatchObject({ reason: "ioc_remainder", filled: 0 });
  });

  test("a fok order fills whole or not at all, counting all kinds of match", async () => {
    const market = world.market();
    await world.split(other, market, 3);
    await other.place(terms(market, 0, SELL, 5_000, 3));
    await other.place(terms(market, 1, BUY, 4_900, 2));
    const fok = { time_in_force: "fok" };
    const tooMany = await user.place(terms(market, 0, BUY, 5_100, 6, fok));
    expect(await settled(socket, tooMany.id, "canceled")).toMatchObject({ reason: "fok_unfillable", filled: 0 });
    const tooCheap = await user.place(terms(market, 0, BUY, 5_099, 4, fok));
    expect(await settled(socket, tooCheap.id, "canceled")).toMatchObject({ reason: "fok_unfillable", filled: 0 });
    const { id } = await user.place(terms(market, 0, BUY, 5_100, 5, fok));
    const order = await settled(socket, id, "filled");
    expect(order.trades.map(({ match_type }) => match_type)).toEqual(["direct", "mint"]);
  });

  test("a market order takes what there is and never rests", async () => {
    const market = world.market();
    await world.split(other, market, 3);
    await other.place(terms(market, 0, SELL, 9_999, 3));
    const body = { ...terms(market, 0, BUY, 1, 5), price: undefined, type: "market" };
    const { id } = await user.place(body);
    expect(await settled(socket, id, "canceled")).toMatchObject({ reason: "ioc_remainder", filled: 3, price: null });
    expect(await user.balance()).toMatchObject({ held: 0 });
    const whole = await user.place({ ...body, time_in_force: "fok" });
    expect(await settled(socket, whole.id, "canceled")).toMatchObject({ reason: "fok_unfillable" });
  });

  test("a post_only order rests, or is rejected where it would match in any of the three ways", async () => {
    const market = world.market();
    await world.split(other, market, 3);
    await world.split(user, market, 3);
    await other.place(terms(market, 0, SELL, 6_000, 1));
    await other.place(terms(market, 1, BUY, 3_000, 1));
    const post_only = true;
    const crossings: object[] = [
      terms(market, 0, BUY, 6_000, 1, { post_only }),
      terms(market, 1, SELL, 3_000, 1, { post_only }),
      terms(market, 0, BUY, 7_000, 1, { post_only }),
      terms(market, 1, SELL, 4_000 - 1_000, 1, { post_only }),
    ];
    for (const body of crossings) {
      const { id } = await user.place(body);
      expect(await settled(socket, id, "rejected")).toMatchObject({ reason: "post_only_would_cross", filled: 0 });
    }
    const merging = await user.place(terms(market, 1, SELL, 4_000, 1, { post_only }));
    expect(await settled(socket, merging.id, "rejected")).toMatchObject({ reason: "post_only_would_cross" });
    const { id } = await user.place(terms(market, 1, SELL, 4_001, 1, { post_only }));
    expect(await settled(socket, id, "open")).toMatchObject({ reason: null, post_only: true });
  });

  test("every state on an order's way is reported once, in order", async () => {
    const market = world.market();
    await world.split(other, market, 5);
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 5));
    await other.place(terms(market, 0, SELL, 5_000, 2));
    await other.place(terms(market, 0, SELL, 4_000, 1));
    await user.cancel(id);
    await settled(socket, id, "canceled");
    const seen = socket.of<OrderJson>("order.updated").filter(({ data }) => data.id === id);
    expect(seen.map(({ data: { status, filled, trades } }) => [status, filled, trades.length])).toEqual([
      ["open", 0, 0],
      ["partially_filled", 2, 1],
      ["partially_filled", 3, 1],
      ["canceled", 3, 0],
    ]);
  });
});

describe("self-trade prevention", () => {
  /** An own sell of 3 at the front, another's of 5 behind it; the user buys 4. Answers [own, taker] once done. */
  async function meet(mode: string, quantity = 4): Promise<[OrderJson, OrderJson]> {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    for (const client of [user, other]) await world.split(client, market, 5);
    const own = await user.place(terms(market, 0, SELL, 5_000, 3));
    await other.place(terms(market, 0, SELL, 5_000, 5));
    const taker = await user.place(terms(market, 0, BUY, 5_000, quantity, { self_trade_prevention: mode }));
    const found: [OrderJson, OrderJson] = [await user.order(own.id), await user.order(taker.id)];
    const live = found.filter(({ status }) => status === "open" || status === "partially_filled");
    const held = live.reduce((sum, { side, remaining }) => sum + (side === BUY ? notional(5_000, remaining) : 0), 0);
    expect(await user.balance()).toMatchObject({ held });
    const sold = live.reduce((sum, { side, remaining }) => sum + (side === SELL ? remaining : 0), 0);
    expect(await user.position(market.outcomes[0]!)).toMatchObject({ held: sold });
    return found;
  }
  const selfTrade = { status: "canceled", reason: "self_trade" };

  test("cancel_taker ends the incoming order of a self-trade", async () => {
    const [own, taker] = await meet("cancel_taker");
    expect(own).toMatchObject({ status: "open", remaining: 3 });
    expect(taker).toMatchObject({ ...selfTrade, filled: 0, remaining: 4 });
  });

  test("cancel_maker ends the resting order of a self-trade and goes on", async () => {
    const [own, taker] = await meet("cancel_maker");
    expect(own).toMatchObject({ ...selfTrade, remaining: 3 });
    expect(taker).toMatchObject({ status: "filled", filled: 4 });
  });

  test("cancel_both ends both orders of a self-trade", async () => {
    const [own, taker] = await meet("cancel_both");
    expect(own).toMatchObject(selfTrade);
    expect(taker).toMatchObject({ ...selfTrade, filled: 0 });
  });

  test("decrement takes the smaller quantity from both orders of a self-trade", async () => {
    const [own, taker] = await meet("decrement");
    expect(own).toMatchObject({ ...selfTrade, quantity: 3, remaining: 3, filled: 0 });
    expect(taker).toMatchObject({ status: "filled", quantity: 1, filled: 1, remaining: 0 });
    const [ownLeft, takerGone] = await meet("decrement", 2);
    expect(ownLeft).toMatchObject({ status: "open", quantity: 1, remaining: 1 });
    expect(takerGone).toMatchObject({ ...selfTrade, filled: 0 });
  });

  test("an own order on another leg of a mint counts as a self-trade", async () => {
    const [market, user] = [world.market(), world.user()];
    await user.place(terms(market, 0, BUY, 5_000, 1));
    const taker = await user.place(terms(market, 1, BUY, 5_000, 1));
    expect(await user.order(taker.id)).toMatchObject(selfTrade);
  });
});
