/**
 * Orders in binary: the same orders, rejections and updates as in JSON, message by message, and what frames that aren't well
 * formed get. The client encodes and decodes by the schema (test/support/sbe.ts).
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { PlainMessage } from "../sbe/plain.ts";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { API_BASE, type OrderJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import { decoded, encode, plainMessage, SBE } from "../support/sbe.ts";
import { type Acknowledgement, Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { quote } from "../support/trading.ts";
import { tokenOf, USDC, World } from "../support/world.ts";
import { randomFlow, tradersIn } from "./order-flow.ts";
import { expectAnswersFirst, expectNoGap } from "./order-frames.ts";
import { type Mistake, UNKNOWN_ID, wrongAmends, wrongPlacements } from "./wrong-operations.ts";

const OFFER = { protocols: [SBE] };

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 26,
    named: {
      scoped: { scopes: [["portfolio:read"], ["orders:write"]] },
      poor: { deposit: 10 * USDC },
      small: { deposit: 1_000 * USDC },
    },
    markets: Array<number>(16).fill(2),
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

/** A user's two sockets, in JSON and in binary. */
async function pair(token: string): Promise<[json: Socket, binary: Socket]> {
  return [await Socket.open(world.server, token), await Socket.open(world.server, token, OFFER)];
}

describe("the upgrade", () => {
  test.each([
    [["sbe"], "sbe"],
    [["sbe", "json"], "sbe"],
    [["json", "sbe"], "json"],
    [["sbe.v2", "sbe"], "sbe"],
    [["SBE"], ""],
  ])("chooses the first known subprotocol of %j: %j", async (protocols, chosen) => {
    const url = `${world.server.root.replace("http", "ws")}${API_BASE}/ws`;
    const socket = new WebSocket(url, protocols);
    // The `ws` client gives up where the server chooses none of those it offered.
    const opened = await new Promise<string>((resolve) => {
      socket.on("open", () => resolve(socket.protocol));
      socket.on("error", () => resolve(""));
    });
    expect(opened).toBe(chosen);
    socket.terminate();
  });
});

describe("an order", () => {
  test("is placed, amended and canceled as in JSON", async () => {
    const [user, market] = [world.user(), world.market()];
    const [json, binary] = await pair(user.token!);
    const more = { post_only: true, self_trade_prevention: "cancel_both", client_order_id: "one" };
    const order = await binary.data<OrderJson>("order.place", terms(market, 0, BUY, 4_000, 10, more));
    expect(order).toMatchObject({ status: "queued", price: 4_000, remaining: 10, ...more });
    expect(await user.order(order.id)).toMatchObject({ ...order, status: "open", updated_at: expect.any(Number) });
    const amended = await binary.data<OrderJson>("order.amend", { id: order.id, price: 4_100, quantity: 12 });
    expect(amended).toMatchObject({ id: order.id, price: 4_100, quantity: 12, status: "open" });
    const canceled = await binary.data<OrderJson>("order.cancel", { client_order_id: "one" });
    expect(canceled).toMatchObject({ id: order.id, status: "open" });
    await Promise.all([json.fence(), binary.fence()]);
    expect(binary.frames).toEqual(json.frames);
    expect(binary.of<OrderJson>("order.updated").map(({ data }) => data.status)).toEqual(["open", "open", "canceled"]);
    expectAnswersFirst(binary);
    for (const socket of [json, binary]) await socket.close();
  });

  test("each of its terms is read and shown: types, times in force, prevention, expiry, texts", async () => {
    const [user, market] = [world.user(), world.market()];
    const [json, binary] = await pair(user.token!);
    const far = Date.now() + 3_600_000;
    const variants: object[] = [
      ...["gtc", "ioc", "fok"].map((time_in_force) => ({ time_in_force })),
      { time_in_force: "gtd", expires_at: far },
      ...["cancel_taker", "cancel_maker", "cancel_both", "decrement"].map((self_trade_prevention) => {
        return { self_trade_prevention };
      }),
      { type: "market" },
      { type: "market", time_in_force: "fok" },
      { type: "market", price: null },
      { type: "limit", valid_until: far },
      { post_only: true },
    ];
    const seen = new Set<string>();
    for (const variant of variants) {
      const data = terms(market, 0, BUY, 10, 1, variant);
      const [ours, theirs] = [await binary.data<OrderJson>("order.place", data), await json.data<OrderJson>("order.place", data)]; // biome-ignore format: pair
      expect({ ...ours, id: 0, created_at: 0, updated_at: 0 }).toEqual({
        ...theirs,
        id: 0,
        created_at: 0,
        updated_at: 0,
      });
      seen.add(`${ours.type} ${ours.time_in_force}`);
    }
    expect(seen.size).toBe(6);
    const coded = await binary.ask({ op: "order.place", data: terms(market, 0, BUY, 10, 1), builder_code: "desk-7" });
    expect(coded).toMatchObject({ code: 0, data: { builder_code: "desk-7" } });
    await Promise.all([json.fence(), binary.fence()]);
    expect(binary.frames).toEqual(json.frames);
    for (const socket of [json, binary]) await socket.close();
  });

  test("has a client order id in any form: a number and its digits are one id", async () => {
    const [user, market] = [world.user(), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    const names = ["0", "7", "4294967295", "4294967296", "9007199254740993", "18446744073709551614", "007", "a.b:c-d_e", "18446744073709551615", "99999999999999999999", "x".repeat(64)]; // biome-ignore format: list
    for (const client_order_id of names) {
      const data = terms(market, 0, BUY, 10, 1, { client_order_id });
      const { id } = await socket.data<OrderJson>("order.place", data);
      expect(await user.order(id)).toMatchObject({ client_order_id });
      // A repeat places nothing, in JSON or in binary.
      const [again, { data: rest }] = [await socket.data<OrderJson>("order.place", data), await user.request<OrderJson>("POST", "/orders", { body: data })]; // biome-ignore format: pair
      expect([again.id, again.client_order_id, rest.id]).toEqual([id, client_order_id, id]);
      expect(await socket.data<OrderJson>("order.cancel", { client_order_id })).toMatchObject({ id });
    }
    const { number, text } = { number: "8", text: "8" };
    const fields = { ...placeFields(market.id, market.outcomes[0]!), clientOrderId: number };
    const answer = await sendPlain(socket, plainMessage("PlaceOrder", 99, fields, { clientOrderText: text }));
    expect(answer).toMatchObject({ id: 99, code: 40000, msg: "client_order_id: give it as a number or as a text" });
    await socket.close();
  });

  test("has timestamps where they are asked for, in the response and in each update", async () => {
    const [user, market] = [world.user(), world.market()];
    const [json, binary] = await pair(user.token!);
    const data = terms(market, 0, BUY, 10, 1);
    const placed = (await binary.ask({ op: "order.place", data, timestamps: true })).data as OrderJson;
    const { received, matched, durable, sent } = placed.timestamps!;
    expect([received, matched, durable, sent]).toEqual([received, matched, durable, sent].sort((a, b) => a - b));
    await binary.data("order.cancel", { id: placed.id });
    await Promise.all([json.fence(), binary.fence()]);
    const updates = binary.of<OrderJson>("order.updated");
    expect(updates.map(({ data: order }) => order.timestamps !== undefined)).toEqual([true, true]);
    const [ours, theirs] = [updates, json.of<OrderJson>("order.updated")].map((each) =>
      each.map(({ data: { timestamps, ...order } }) => [order, { ...timestamps, sent: 0 }]),
    );
    expect(ours).toEqual(theirs);
    for (const socket of [json, binary]) await socket.close();
  });
});

describe("a rejected request", () => {
  test("has the code and the words of JSON", async () => {
    const [owner, other, [market, foreign]] = [world.client("small"), world.user(), [world.market(), world.market()]]; // biome-ignore format: list
    const [json, binary] = await pair(owner.token!);
    const good = terms(market, 0, BUY, 100, 1);
    await json.data("order.place", { ...good, price: 101, client_order_id: "taken" });
    const resting = await json.data<OrderJson>("order.place", good);
    const finished = await json.data<OrderJson>("order.place", { ...good, time_in_force: "ioc" });
    const theirs = (await other.request<OrderJson>("POST", "/orders", { body: good })).data;
    const late = { id: UNKNOWN_ID - 1 } as OrderJson;
    const placements = wrongPlacements(good, foreign.outcomes[0]!).map(
      ([code, data]): Asked => ["order.place", code, data],
    );
    const amends = wrongAmends({ finished, theirs, late }).map(
      ([code, data]): Asked => ["order.amend", code, { id: resting.id, ...data }],
    );
    const cancels: Asked[] = [
      ["order.cancel", 40000, {}],
      ["order.cancel", 40000, { id: 0 }],
      ["order.cancel", 40000, { id: 1, client_order_id: "taken" }],
      ["order.cancel", 40000, { client_order_id: "a b" }],
      ["order.cancel", 4040, { id: UNKNOWN_ID }],
      ["order.cancel", 4040, { client_order_id: "nobodys" }],
      ["order.cancel", 40900, { id: finished.id }],
    ];
    let compared = 0;
    for (const [op, code, data] of [...placements, ...amends, ...cancels].filter(isExpressible)) {
      const [ours, theirs] = [await binary.ask({ op, data }), await json.ask({ op, data })];
      const { rate_limit: _, ...answer } = ours;
      expect({ ...answer, id: 0, msg: answer.msg }, JSON.stringify(data)).toEqual({ ...withoutRate(theirs), id: 0 });
      expect(ours.code, JSON.stringify(data)).toBe(code);
      compared++;
    }
    expect(compared).toBeGreaterThan(45);
    for (const socket of [json, binary]) await socket.close();
  });

  test("names the field whose code or number JSON can't have", async () => {
    const [user, market] = [world.user(), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    const good = placeFields(market.id, market.outcomes[0]!);
    const wrong: [Record<string, string>, number[], string][] = [
      [{}, [40, 3], "side: must be <= 2"],
      [{}, [41, 2], "type: must be one of limit, market"],
      [{}, [42, 4], "time_in_force: must be one of gtc, gtd, ioc, fok"],
      [{}, [43, 200], "self_trade_prevention: must be one of cancel_taker, cancel_maker, cancel_both, decrement"],
      [{}, [44, 4], "flags: must be a sum of 1, 2"],
      [{ expiresAt: String(2n ** 53n), timeInForce: "gtd" }, [], "expires_at: must be <= 9007199254740991"],
      [{ expiresAt: String(2n ** 64n - 2n), timeInForce: "gtd" }, [], "expires_at: must be >= 0"],
      [{ validUntil: String(2n ** 63n) }, [], "valid_until: must be >= 0"],
      [{ quantity: "4294967295" }, [], "quantity: required"],
      [{ marketId: "4294967295" }, [], "market_id: required"],
    ];
    for (const [fields, [at, byte], msg] of wrong) {
      const frame = encode([plainMessage("PlaceOrder", 5, { ...good, ...fields })]);
      if (at !== undefined) frame[24 + at] = byte!;
      expect(await sendRaw(socket, frame, 5)).toMatchObject({ id: 5, code: 40000, msg });
    }
    await socket.close();
  });

  test("of a token that may not trade, and of none", async () => {
    const market = world.market();
    const data = terms(market, 0, BUY, 10, 1);
    const reader = await Socket.open(world.server, tokenOf("scoped"), OFFER);
    expect(await reader.ask({ op: "order.place", data })).toMatchObject({ code: 40300, msg: /scope/ });
    const writer = await Socket.open(world.server, tokenOf("scoped", 1), OFFER);
    expect(await writer.ask({ op: "order.place", data })).toMatchObject({ code: 0 });
    await writer.fence();
    // Without portfolio:read a socket gets no balance.
    expect(writer.frames.map(({ event }) => event)).toEqual(["order.updated"]);
    const nobody = await Socket.open(world.server, null, OFFER);
    expect(await nobody.ask({ op: "order.place", data })).toMatchObject({
      code: 40100,
      msg: "connect with a token to trade",
    });
    for (const socket of [reader, writer, nobody]) await socket.close();
  });
});

test("the rate limits count each order, and a rejection by them says when to come back", async () => {
  const limited = await World.start({ env: { RATE_LIMITS: "on" }, users: 1, markets: [2] });
  const [user, market] = [limited.user(), limited.market()];
  const socket = await Socket.open(limited.server, user.token, OFFER);
  const messages: PlainMessage[] = [];
  socket.socket.on("message", (bytes: Buffer) => messages.push(...decoded(bytes)));
  const place = (id: number): PlainMessage =>
    plainMessage("PlaceOrder", id, placeFields(market.id, market.outcomes[0]!));
  socket.socket.send(encode(Array.from({ length: 31 }, (_, at) => place(at + 1))));
  await Promise.all(Array.from({ length: 31 }, (_, at) => socket.answer(at + 1)));
  const responses = messages.filter(({ template }) => template === "OrderAccepted" || template === "Rejected");
  const byId = new Map(responses.map((each) => [Number(each.header.id), each]));
  expect([1, 2, 30].map((id) => byId.get(id)!.header.rateRemaining)).toEqual(["29", "28", "0"]);
  expect(byId.get(31)).toMatchObject({
    template: "Rejected",
    header: { rateRemaining: "0" },
    fields: { code: "42900", rateLimit: "30", rateReset: expect.stringMatching(/^[1-9]\d?$/), retryAfter: expect.stringMatching(/^[1-9]\d?$/) }, // biome-ignore format: one line
  });
  await socket.close();
  await limited.server.stop();
});

describe("a frame", () => {
  test("of many messages gets each one's response, under its own id", async () => {
    const [user, market] = [world.user(), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    const good = placeFields(market.id, market.outcomes[0]!);
    const ids = Array.from({ length: 40 }, (_, n) => 1_000 + n);
    const messages = ids.map((id, n) => plainMessage("PlaceOrder", id, { ...good, price: n % 4 === 3 ? "0" : "10" }));
    socket.socket.send(encode([...messages, plainMessage("Ping", 2_000, {})]));
    const answers = await Promise.all([...ids, 2_000].map((id) => socket.answer(id)));
    expect(answers.slice(0, -1).map(({ code }) => code)).toEqual(ids.map((_, n) => (n % 4 === 3 ? 40000 : 0)));
    expect(answers.at(-1)).toMatchObject({ code: 0, data: { now: expect.any(Number) } });
    expect(socket.acknowledgements).toHaveLength(41);
    expect(await user.all("/orders")).toHaveLength(30);
    await socket.close();
  });

  test.each([
    ["that is empty", Buffer.alloc(0)],
    ["shorter than a header", Buffer.alloc(16)],
    ["of an odd length", Buffer.alloc(25)],
    ["whose message is longer than itself", patched(8, 64)],
    ["whose message is shorter than its block", patched(8, 24)],
    ["whose message has no multiple of 8 bytes", patched(8, 28)],
    ["whose length is 0", patched(8, 0)],
    ["whose length is negative", patched(8, -8)],
    ["whose second message is cut", Buffer.concat([cancelOf(1), cancelOf(2).subarray(0, 24)])],
  ])("%s gets one rejection and has no effect", async (_, bytes) => {
    const user = world.user();
    const socket = await Socket.open(world.server, user.token, OFFER);
    socket.socket.send(bytes);
    const answer = await socket.until(() => socket.acknowledgements[0], "the rejection");
    expect(answer).toMatchObject({ id: null, code: 40000, msg: "the frame is not a row of whole messages" });
    // The connection stays open.
    await socket.fence();
    expect(socket.acknowledgements).toHaveLength(2);
    await socket.close();
  });

  test("of text is rejected", async () => {
    const socket = await Socket.open(world.server, world.user().token, OFFER);
    socket.socket.send('{"op":"ping","id":1}');
    const answer = await socket.until(() => socket.acknowledgements[0], "the rejection");
    expect(answer).toMatchObject({ id: null, code: 40000, msg: "send binary frames of SBE" });
    await socket.close();
  });

  test("says what is wrong with a message's header, under the message's id", async () => {
    const socket = await Socket.open(world.server, world.user().token, OFFER);
    const wrong: [at: number, value: number, msg: string][] = [
      [2, 14, "templateId: unknown"],
      [2, 102, "templateId: unknown"],
      [4, 2, "schemaId: must be 1"],
      [6, 0, "version: must be at least 1"],
      [0, 12, "blockLength: must be a multiple of 8"],
    ];
    for (const [at, value, msg] of wrong) {
      const frame = cancelOf(77);
      frame.writeUInt16LE(value, at);
      expect(await sendRaw(socket, frame, 77)).toMatchObject({ id: 77, code: 40000, msg });
    }
    const texts = cancelOf(78);
    texts[24 + 16] = 200;
    expect(await sendRaw(socket, texts, 78)).toMatchObject({
      code: 40000,
      msg: "client_order_id: ends behind its message",
    });
    await socket.close();
  });

  test("of a later version is read: a longer block's end is skipped; one that stops early is refused", async () => {
    const [user, market] = [world.user(), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    const frame = encode([plainMessage("PlaceOrder", 1, placeFields(market.id, market.outcomes[0]!))]);
    const longer = Buffer.concat([frame.subarray(0, 72), Buffer.alloc(8, 0xa5), frame.subarray(72)]);
    longer.writeUInt16LE(56, 0);
    longer.writeUInt16LE(2, 6);
    longer.writeUInt32LE(frame.length + 8, 8);
    expect(await sendRaw(socket, longer, 1)).toMatchObject({ code: 0, data: { price: 10, client_order_id: null } });
    const shorter = Buffer.concat([frame.subarray(0, 56), Buffer.alloc(8)]);
    shorter.writeUInt16LE(32, 0);
    shorter.writeUInt32LE(64, 8);
    shorter.writeUInt32LE(2, 16);
    expect(await sendRaw(socket, shorter, 2)).toMatchObject({ code: 40000, msg: "blockLength: must be 48 or more" });
    await socket.close();
  });

  test("that amends order 0 gets the words of JSON", async () => {
    const user = world.user();
    const [binary, json] = [
      await Socket.open(world.server, user.token, OFFER),
      await Socket.open(world.server, user.token),
    ];
    const frame = encode([plainMessage("AmendOrder", 7, { orderId: "0", price: "10" })]);
    const { msg } = await sendRaw(binary, frame, 7);
    expect(msg).toBe("id: must be >= 1");
    json.socket.send('{"op":"order.amend","id":1,"data":{"id":0,"price":10}}');
    expect(await json.answer(1)).toMatchObject({ code: 40000, msg: `data.${msg}` });
    await Promise.all([binary.close(), json.close()]);
  });

  test("that stops before a group, a text or a field of its block has no effect", async () => {
    const [user, market] = [world.user(), world.market()];
    const socket = await Socket.open(world.server, user.token, OFFER);
    await quote(user, market, [[0, BUY, 10, 1]]);
    const live = (await user.all("/orders")).length;
    expect(live).toBeGreaterThan(0);
    /** The header and so many bytes of the block: as if the rest hadn't been written. */
    const cut = (bytes: Buffer, block: number, id: number): Buffer => {
      const frame = Buffer.from(bytes.subarray(0, 24 + block));
      frame.writeUInt16LE(block, 0);
      frame.writeUInt32LE(frame.length, 8);
      frame.writeUInt32LE(id, 16);
      return frame;
    };
    const replace = encode([plainMessage("ReplaceQuotes", 1, { marketId: String(market.id) })]);
    const all = encode([plainMessage("CancelAll", 1, {})]);
    const subscribe = encode([plainMessage("Subscribe", 1, { channel: "markets" })]);
    const batch = encode([plainMessage("Batch", 1, { count: "1" })]);
    const cases: [bytes: Buffer, block: number, msg: string][] = [
      [replace, 24, "quotes: missing, the message ends before it"],
      [replace, 16, "blockLength: must be 24 or more"],
      [all, 24, "client_order_id: missing, the message ends before it"],
      [all, 16, "blockLength: must be 24 or more"],
      [all, 0, "blockLength: must be 24 or more"],
      [subscribe, 8, "market_ids: missing, the message ends before it"],
      [encode([plainMessage("Authenticate", 1, {})]), 0, "token: missing, the message ends before it"],
      // What may be its operations isn't done by itself.
      [Buffer.concat([cut(batch, 0, 1), all]), -1, "blockLength: must be 8 or more"],
    ];
    for (const [i, [bytes, block, msg]] of cases.entries()) {
      const frame = block < 0 ? bytes : cut(bytes, block, 100 + i);
      if (block < 0) frame.writeUInt32LE(100 + i, 16);
      expect(await sendRaw(socket, frame, 100 + i)).toMatchObject({ code: 40000, msg });
    }
    await socket.fence();
    expect(await user.all("/orders")).toHaveLength(live);
    await socket.close();
  });
});

describe("two sockets of one user", () => {
  test("in JSON and in binary get the same stream, message by message, while many trade", async () => {
    const random = Random.printed("SBE beside JSON");
    const market = world.market();
    const users = await tradersIn(world, market, 3);
    const sockets = await Promise.all(users.map((user) => pair(user.token!)));
    await randomFlow(users, market, random, 60);
    for (const [json, binary] of sockets) {
      await Promise.all([json.fence(), binary.fence()]);
      expect(binary.frames).toEqual(json.frames);
      expectNoGap(binary.of("order.updated"));
      expect(binary.of<OrderJson>("order.updated").some(({ data }) => data.trades.length > 0)).toBe(true);
      for (const socket of [json, binary]) await socket.close();
    }
  });

  test("get it also where a batch in JSON holds it back", async () => {
    const [user, market] = [world.client("poor"), world.market()];
    const [json, binary] = await pair(user.token!);
    let last = await binary.data<OrderJson>("order.place", terms(market, 0, BUY, 5_000, 20));
    for (let n = 0; n < 20; n++) {
      // The placement needs the money that the cancel frees.
      const operations = [{ op: "cancel", id: last.id }, { op: "place", ...terms(market, n % 2, BUY, 5_000, 20) }]; // biome-ignore format: pair
      const { results } = await json.data<{ results: { data: OrderJson }[] }>("order.batch", { operations });
      last = results[1]!.data;
    }
    await Promise.all([json.fence(), binary.fence()]);
    expect(binary.frames).toEqual(json.frames);
    expect(binary.of("order.updated").length).toBe(41);
    for (const socket of [json, binary]) await socket.close();
  });
});

test("a match's two sides get their fills, and REST has the same", async () => {
  const market = world.market();
  const [maker, taker] = await tradersIn(world, market, 2);
  const [making, taking] = [await Socket.open(world.server, maker!.token, OFFER), await Socket.open(world.server, taker!.token, OFFER)]; // biome-ignore format: pair
  const ask = await making.data<OrderJson>("order.place", terms(market, 0, SELL, 6_000, 30));
  const bid = await taking.data<OrderJson>("order.place", terms(market, 0, BUY, 6_100, 12));
  const filled = await taking.frame<OrderJson>("order.updated", ({ status }) => status === "filled");
  expect(filled.data).toMatchObject({
    id: bid.id,
    filled: 12,
    trades: [{ price: 6_000, quantity: 12, role: "taker" }],
  });
  const part = await making.frame<OrderJson>("order.updated", ({ status }) => status === "partially_filled");
  expect(part.data.trades).toMatchObject([{ quantity: 12, role: "maker", match_id: filled.data.trades[0]!.match_id }]);
  expect((await maker!.order(ask.id)).trades).toEqual(part.data.trades);
  for (const socket of [making, taking]) await socket.close();
});

type Asked = readonly [op: string, code: number, data: Mistake[1]];

/** True where the binary protocol has a way to say the same: whole numbers in range, known words, known fields. */
function isExpressible([op, , data]: Asked): boolean {
  const { required, optional } = FIELDS[op]!;
  const isKnown = (name: string): boolean => required.includes(name) || optional.includes(name);
  return Object.keys(data).every(isKnown) && required.every((name) => name in data) && canSay(data);
}

const FIELDS: Readonly<Record<string, Record<"required" | "optional", readonly string[]>>> = {
  "order.place": {
    required: ["market_id", "outcome_id", "side", "quantity"],
    optional: ["price", "client_order_id", "expires_at", "valid_until", "type", "time_in_force", "post_only", "self_trade_prevention"], // biome-ignore format: list
  },
  "order.amend": { required: ["id"], optional: ["price", "quantity", "valid_until"] },
  "order.cancel": { required: [], optional: ["id", "client_order_id"] },
};
const WORDS: Readonly<Record<string, readonly unknown[]>> = {
  side: [1, 2],
  type: ["limit", "market"],
  time_in_force: ["gtc", "gtd", "ioc", "fok"],
  self_trade_prevention: ["cancel_taker", "cancel_maker", "cancel_both", "decrement"],
  post_only: [true, false],
};

function canSay(data: Mistake[1]): boolean {
  return Object.entries(data).every(([name, value]) => {
    const words = WORDS[name];
    if (words !== undefined) return words.includes(value);
    if (name === "client_order_id") return typeof value === "string" && value !== "" && Buffer.byteLength(value) < 255;
    if (value === null) return name === "price";
    return (
      (typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 2 ** 32 - 1) || isTime(name, value)
    );
  });
}

const isTime = (name: string, value: unknown): boolean =>
  (name === "expires_at" || name === "valid_until") &&
  typeof value === "number" &&
  Number.isInteger(value) &&
  value >= 0;

function withoutRate({ rate_limit: _, ...answer }: Acknowledgement): object {
  return answer;
}

function placeFields(marketId: number, outcomeId: number): Record<string, string | null | string[]> {
  return {
    ...{ outcomeId: String(outcomeId), price: "10", quantity: "1", marketId: String(marketId), side: "buy" },
    ...{ expiresAt: null, validUntil: null, clientOrderId: null, flags: [] },
    ...{ orderType: null, timeInForce: null, selfTradePrevention: null },
  };
}

function cancelOf(id: number): Buffer {
  return encode([plainMessage("CancelOrder", id, { orderId: String(UNKNOWN_ID), clientOrderId: null })]);
}

/** A cancel with another number in its header. */
function patched(at: number, value: number): Buffer {
  const frame = cancelOf(1);
  frame.writeInt32LE(value, at);
  return frame;
}

/** Sends bytes, and returns the next response under the id. */
async function sendRaw(socket: Socket, bytes: Buffer, id: number): Promise<Acknowledgement> {
  const before = socket.acknowledgements.length;
  socket.socket.send(bytes);
  const find = () => socket.acknowledgements.slice(before).find((answer) => answer.id === id);
  return socket.until(find, `the answer to ${id}`);
}

const sendPlain = (socket: Socket, message: Parameters<typeof encode>[0][number]): Promise<Acknowledgement> =>
  sendRaw(socket, encode([message]), Number(message.header.id));
