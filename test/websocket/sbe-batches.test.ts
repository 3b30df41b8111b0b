/**
 * Batches and quotes in binary: a response to each operation as it becomes known, and Done; what a batch claims never runs by
 * itself; a batch runs to its end without its socket.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PlainMessage } from "../sbe/plain.ts";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { decoded, encode, frameOfRequest, plainMessage, SBE } from "../support/sbe.ts";
import { Socket } from "../support/socket.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import { USDC, World } from "../support/world.ts";

const OFFER = { protocols: [SBE] };

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 12,
    named: { poor: { deposit: 10 * USDC }, leaving: { deposit: 10 * USDC } },
    markets: Array<number>(12).fill(2),
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

/** The binary messages that a socket was sent, as they came. */
function listen(socket: Socket): PlainMessage[] {
  const messages: PlainMessage[] = [];
  socket.socket.on("message", (bytes: Buffer) => messages.push(...decoded(bytes)));
  return messages;
}

/** A batch whose count is stated as given, before the operations. */
function batchFrame(id: number, count: number, operations: readonly object[]): Buffer {
  const frame = frameOfRequest({ op: "order.batch", data: { operations }, id });
  frame.writeUInt16LE(count, 24);
  return frame;
}

const liveOf = async (user: Client): Promise<number> => (await user.all("/orders")).length;

describe("a batch", () => {
  test("gets a response to each operation under its id and index, then Done with the count of rejections", async () => {
    const [user, market] = [world.user(), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    const messages = listen(socket);
    const good = { op: "place", ...terms(market, 0, BUY, 10, 1) };
    const operations = [good, { ...good, price: 10_000 }, { op: "cancel", id: 999_999 }, { ...good, price: 11 }];
    const { data } = await socket.ask({ op: "order.batch", data: { operations } });
    const { results } = data as { results: { code: number; data: OrderJson | null }[] };
    expect(results.map(({ code, data: order }) => [code, order?.price])).toEqual([
      ...[[0, 10], [40000, undefined], [4040, undefined], [0, 11]], // biome-ignore format: pairs
    ]);
    const own = messages.filter(({ header }) => header.index !== null || header.id === "1");
    // A rejection is known at once; an order leaves when it is committed, before its own update.
    expect(own[0]).toMatchObject({ template: "Rejected", header: { index: "1", id: "1", rateRemaining: null } });
    const done = messages.find(({ template }) => template === "Done")!;
    expect(done).toMatchObject({ fields: { count: "4", rejected: "2" }, header: { index: null, id: "1" } });
    for (const index of ["0", "3"]) {
      const at = messages.findIndex(({ template, header }) => template === "OrderAccepted" && header.index === index);
      const orderId = messages[at]!.fields["orderId"];
      const update = messages.findIndex(
        ({ template, fields }) => template === "OrderUpdated" && fields["orderId"] === orderId,
      );
      expect([at >= 0, update > at]).toEqual([true, true]);
    }
    await socket.close();
  });

  test("of operations that JSON has no words for rejects each of them alone", async () => {
    const [user, market] = [world.user(), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    const messages = listen(socket);
    const good = { op: "place", ...terms(market, 0, BUY, 10, 1) };
    const frame = Buffer.concat([
      batchFrame(5, 3, [good]),
      encode([plainMessage("CancelAll", 6, { clientOrderId: null, marketId: null, outcomeId: null, side: null })]),
      frameOfRequest({ op: "order.place", data: terms(market, 0, BUY, 12, 1), id: 7 }),
    ]);
    socket.socket.send(frame);
    const done = await socket.answer(5);
    expect((done.data as { results: { code: number; msg: string }[] }).results).toMatchObject([
      { code: 0 },
      { code: 40000, msg: "templateId: must be one of 1, 2, 3 in a batch" },
      { code: 0 },
    ]);
    expect(messages.filter(({ header }) => header.id === "6" || header.id === "7")).toEqual([]);
    expect(await liveOf(user)).toBe(2);
    await socket.close();
  });

  test.each([
    ["no operations", 0, 1, "operations: must not have fewer than 1 items", 1],
    ["more than it may have", 51, 51, "operations: at most 50 items", 0],
    ["more than follow in the frame", 3, 2, "count: only 2 messages follow in the frame", 0],
  ])("that claims %s is rejected, and what it claims doesn't run", async (_, count, sent, msg, live) => {
    const [user, market] = [world.user(), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    const good = { op: "place", ...terms(market, 0, BUY, 10, 1) };
    socket.socket.send(batchFrame(9, count, Array(sent).fill(good)));
    expect(await socket.answer(9)).toMatchObject({ code: 40000, msg });
    // It commits after whatever ran before.
    await socket.data("order.place", terms(market, 1, BUY, 10, 1));
    // A batch of none claims none: what follows it is a request of its own.
    expect(await liveOf(user)).toBe(live + 1);
    await socket.close();
  });

  test("with a header that isn't understood claims its operations too", async () => {
    const [user, market] = [world.user(), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    const frame = batchFrame(9, 2, Array(2).fill({ op: "place", ...terms(market, 0, BUY, 10, 1) }));
    frame.writeUInt16LE(2, 4);
    socket.socket.send(frame);
    expect(await socket.answer(9)).toMatchObject({ code: 40000, msg: "schemaId: must be 1" });
    await socket.data("order.place", terms(market, 1, BUY, 10, 1));
    expect([socket.acknowledgements.length, await liveOf(user)]).toEqual([2, 1]);
    await socket.close();
  });

  test("whose operations wait for money runs in order, and nothing holds the updates back", async () => {
    const [user, market] = [world.client("poor"), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    const messages = listen(socket);
    const first = await socket.data<OrderJson>("order.place", terms(market, 0, BUY, 5_000, 20));
    const place = { op: "place", ...terms(market, 1, BUY, 5_000, 20) };
    const operations = [{ op: "cancel", id: first.id }, place, { ...place, outcome_id: 0 }];
    const { data } = await socket.ask({ op: "order.batch", data: { operations } });
    const { results } = data as { results: { code: number }[] };
    expect(results.map(({ code }) => code)).toEqual([0, 0, 40000]);
    const names = messages.filter(({ template }) => /Order|Done/.test(template)).map(({ template }) => template);
    // Placed, updated; cancel, its update, the placement that it paid for, its update, and the end.
    expect(names.slice(2, 4)).toEqual(["OrderAccepted", "OrderUpdated"]);
    expect(names.slice(4).sort()).toEqual(["Done", "OrderAccepted", "OrderUpdated"]);
    await socket.close();
  });

  test("runs to its end when its socket closes while an operation waits for another", async () => {
    const [user, market] = [world.client("leaving"), world.market()];
    const watcher = await Socket.open(world.server, user.token);
    const socket = await Socket.open(world.server, user.token, OFFER);
    const first = await socket.data<OrderJson>("order.place", terms(market, 0, BUY, 5_000, 20));
    const place = { op: "place", ...terms(market, 1, BUY, 5_000, 20) };
    socket.post({ op: "order.batch", data: { operations: [{ op: "cancel", id: first.id }, place] } });
    socket.socket.terminate();
    const placed = await watcher.frame<OrderJson>("order.updated", ({ outcome_id, status }) => {
      return outcome_id === market.outcomes[1] && status === "open";
    });
    expect(await user.order(placed.data.id)).toMatchObject({ status: "open", quantity: 20 });
    expect(await user.order(first.id)).toMatchObject({ status: "canceled" });
    await watcher.close();
  });
});

describe("quotes", () => {
  test("get a response to each, those that stand as well, and Done; the same set in JSON changes nothing", async () => {
    const [user, market] = [world.user(), world.market()];
    const [json, binary] = [await Socket.open(world.server, user.token), await Socket.open(world.server, user.token, OFFER)]; // biome-ignore format: pair
    const set = [quote(market, 0, BUY, 3_000, 5), quote(market, 1, BUY, 3_000, 6), quote(market, 0, BUY, 2_900, 7)];
    const ask = async (socket: Socket, quotes: object[], more: object = {}): Promise<OrderJson[]> => {
      const data = { market_id: market.id, quotes, ...more };
      const { results } = await socket.data<{ results: { code: number; data: OrderJson }[] }>("quotes.replace", data);
      expect(results.map(({ code }) => code)).toEqual(quotes.map(() => 0));
      return results.map(({ data: order }) => order);
    };
    const first = await ask(binary, set);
    expect(first.map(({ price, quantity }) => [price, quantity])).toEqual([[3_000, 5], [3_000, 6], [2_900, 7]]); // biome-ignore format: pairs
    const ids = first.map(({ id }) => id);
    expect((await ask(json, set)).map(({ id }) => id)).toEqual(ids);
    expect((await ask(binary, set)).map(({ id }) => id)).toEqual(ids);
    const expires_at = Date.now() + 600_000;
    const extended = await ask(binary, set, { expires_at });
    expect(extended.map(({ id, expires_at: at }) => [id, at])).toEqual(ids.map((id) => [id, expires_at]));
    const changed = await ask(binary, [set[0]!, quote(market, 1, BUY, 3_100, 6)], { expires_at });
    expect([changed[0]!.id, changed[1]!.price, await liveOf(user)]).toEqual([ids[0], 3_100, 2]);
    expect(await ask(binary, [])).toEqual([]);
    await Promise.all([json.fence(), binary.fence()]);
    expect(binary.frames).toEqual(json.frames);
    expect(await liveOf(user)).toBe(0);
    for (const socket of [json, binary]) await socket.close();
  });

  test("that are wrong are rejected as a whole, in JSON's words", async () => {
    const [user, market, foreign] = [world.user(), world.market(), world.market()];
    const [json, binary] = [await Socket.open(world.server, user.token), await Socket.open(world.server, user.token, OFFER)]; // biome-ignore format: pair
    const good = { ...quote(market, 0, BUY, 100, 1) };
    const wrong: object[] = [
      { quotes: [good, { ...good, price: 0 }] },
      { quotes: [{ ...good, price: 10_000 }] },
      { quotes: [good, { ...good, quantity: 0 }] },
      { quotes: [{ ...good, outcome_id: foreign.outcomes[0] }] },
      { quotes: Array(101).fill(good) },
      { quotes: [good], expires_at: 1 },
      { quotes: [{ ...good, side: SELL }] },
      { quotes: [good], market_id: 999_999 },
      { quotes: [good], market_id: 0 },
    ];
    for (const body of wrong) {
      const data = { market_id: market.id, ...body };
      const [ours, theirs] = [await binary.ask({ op: "quotes.replace", data }), await json.ask({ op: "quotes.replace", data })]; // biome-ignore format: pair
      expect([ours.code, ours.msg]).toEqual([theirs.code, theirs.msg.replace(/^data\./, "")]);
      expect(ours.code).not.toBe(0);
    }
    for (const socket of [json, binary]) await socket.close();
  });
});
