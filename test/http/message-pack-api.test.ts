/**
 * The API in MessagePack, read and written by another implementation than the server's: every route, every error, and a
 * WebSocket session beside the same session in JSON. Both carry the same objects; whole numbers are integers. The last test
 * stops the server.
 */
import { ExtData, encode } from "@msgpack/msgpack";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_BODY_BYTES } from "../../server/http/limits.ts";
import { expectBalanced, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import { type Answer, API_BASE, type Client, type OrderJson, ROUTES } from "../support/client.ts";
import { pack, requestPacked, unpack } from "../support/packed.ts";
import { Random } from "../support/random.ts";
import { type Acknowledgement, type Frame, Socket } from "../support/socket.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

const MESSAGE_PACK = "application/msgpack";
const PACKED = { protocols: ["msgpack"] };
const UNKNOWN_ID = 999_999_999;

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 30,
    named: { small: { tier: 1, deposit: 1_000 * USDC }, reader: { scopes: [["portfolio:read"]] } },
    markets: Array<number>(20).fill(2).concat([3, 3, 3]),
  });
});
afterAll(async () => {
  if (world.server.alive) await world.stop();
  expectQuiet(world.server);
  expectSoundDatabase(world.server.dataDir);
});

/** Without the fields of the clock. */
function timeless(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, field) => (["ts", "now"].includes(key) ? null : field)));
}

/** Bytes that are no message of the API, though some are valid MessagePack. */
const MALFORMED: readonly (readonly [string, Buffer])[] = [
  ["nothing", Buffer.alloc(0)],
  ["the byte that is never used", Buffer.from([0xc1])],
  ["a map cut short", pack({ op: "ping", id: 1 }).subarray(0, 5)],
  ["bytes behind the end", Buffer.concat([pack({ op: "ping" }), Buffer.from([0])])],
  ["a length of four gigabytes", Buffer.from([0xdf, 0xff, 0xff, 0xff, 0xff])],
  ["a string that is no UTF-8", Buffer.from([0x81, 0xa2, 0x6f, 0x70, 0xa2, 0xc3, 0x28])],
  ["a date", Buffer.from(encode({ op: "ping", at: new Date() }))],
  ["an extension", Buffer.from(encode({ op: "ping", at: new ExtData(7, new Uint8Array([1, 2, 3])) }))],
  ["a record of msgpackr's own", Buffer.from([0xd4, 0x72, 0x40, 0x91, 0xa2, 0x6f, 0x70, 0xa4, 0x70, 0x69, 0x6e, 0x67])],
  ["bytes", Buffer.from(encode({ op: "ping", id: new Uint8Array([1]) }))],
  ["__proto__", pack(JSON.parse('{"op":"ping","__proto__":{"id":1}}'))],
  ["__proto__ further in", pack(JSON.parse('{"op":"ping","data":{"a":{"__proto__":{"id":1}}}}'))],
  ["a key that is a number", Buffer.from([0x81, 0x01, 0x02])],
  ["containers in containers", Buffer.concat([Buffer.alloc(5_000, 0x91), Buffer.from([0])])],
  ["JSON", Buffer.from('{"op":"ping"}')],
];

describe("reading over REST", () => {
  let user: Client;
  let paths: Record<string, string>;
  beforeAll(async () => {
    const market = world.market();
    const taker = world.user();
    user = world.user();
    await world.split(user, market, 100);
    const resting = await user.place(terms(market, 0, SELL, 6_000, 50, { client_order_id: "resting" }));
    const header = { headers: { "X-Builder-Code": "packed" } };
    await user.request("POST", "/orders", { ...header, body: terms(market, 1, BUY, 3_000, 7) });
    await taker.place(terms(market, 0, BUY, 6_500, 20));
    // Money beyond 32 bits.
    await user.place(terms(market, 0, BUY, 100, 900_000));
    paths = {
      "/orders": "/orders?status=all",
      "/orders/:id": `/orders/${resting.id}`,
      "/orders/by-client-id/:client_order_id": "/orders/by-client-id/resting",
      "/me/fills": "/me/fills",
      "/builders/:code/stats": "/builders/packed/stats",
      "/events/:id": "/events/event-0",
      "/markets": "/markets",
      "/markets/:id": `/markets/${market.slug}`,
      "/markets/:id/trades": `/markets/${market.id}/trades`,
      "/markets/:id/history": `/markets/${market.id}/history`,
      "/markets/:id/candles": `/markets/${market.id}/candles?interval=1d`,
      "/markets/:id/orderbook": `/markets/${market.id}/orderbook?implied=true`,
      "/orderbook/:market_id/:outcome_id": `/orderbook/${market.id}/${market.outcomes[0]}`,
    };
  });

  /** Routes that a personal access token may read, without redirects and files. */
  const readable = ROUTES.filter(({ method, unversioned, tokens, status, contentType }) => {
    return method === "GET" && !unversioned && tokens.includes("pat") && status === 200 && contentType === null;
  });
  test.each(readable.filter(({ path }) => !path.endsWith("/callback")).map(({ path }) => [path]))(
    "reading over REST: %s returns the same in JSON and MessagePack",
    async (template) => {
      const path = paths[template] ?? template;
      expect(path).not.toContain(":");
      // The two requests are sequential: limits are off here, and nobody trades meanwhile.
      const json = await user.request("GET", path);
      const packed = await requestPacked(user, "GET", path);
      expect(packed.status).toBe(200);
      expect(timeless([packed.code, packed.msg, packed.data])).toEqual(timeless([json.code, json.msg, json.data]));
      expect(JSON.stringify(packed.data).length).toBeGreaterThan(10);
    },
  );

  test("health responds in MessagePack too", async () => {
    for (const path of ["/livez", "/readyz"]) {
      const { status, headers, body } = await user.send("GET", path, { Accept: MESSAGE_PACK }, null);
      expect([status, headers["content-type"], unpack(body)]).toEqual([200, MESSAGE_PACK, { status: "ok" }]);
    }
  });

  test.each([
    [MESSAGE_PACK, true],
    ["Application/MsgPack", true],
    ["application/msgpack, application/json;q=0.9", true],
    ["application/json;q=0.5, application/msgpack", true],
    ["application/json; q=0.5 , application/msgpack ; q=0.6", true],
    ["text/html, application/msgpack;q=0.9, */*;q=0.8", true],
    ["application/msgpack;q=0.001", true],
    ["application/json", false],
    ["*/*", false],
    ["application/*", false],
    ["text/html", false],
    ["application/json, application/msgpack;q=0.9", false],
    ["application/msgpack;q=0.5, application/json", false],
    ["application/msgpack;q=0.1, */*", false],
    ["application/msgpack;q=0", false],
    ["application/msgpack;q=0, */*", false],
    ["application/msgpackx", false],
    ["application/x-msgpack-of-our-own", false],
    ["msgpack", false],
    [";;,,application/msgpack;q=x;", false],
  ])("reading over REST with Accept: %s", async (accept, isPacked) => {
    const { headers, body } = await user.send("GET", `${API_BASE}/time`, { Accept: accept }, null);
    expect(headers["content-type"]).toBe(isPacked ? MESSAGE_PACK : "application/json");
    const read = (isPacked ? unpack(body) : JSON.parse(body.toString())) as { data: { now: number } };
    expect(Math.abs(read.data.now - Date.now())).toBeLessThan(60_000);
  });
});

/** A request in one of the two encodings. */
type Asking = <T>(method: string, path: string, body?: unknown) => Promise<Answer<T>>;

describe("writing over REST", () => {
  /** The answer without what differs from one user and market to another. */
  function likeness(answer: Answer): unknown {
    const varying = [
      "id",
      "market_id",
      "outcome_id",
      "created_at",
      "updated_at",
      "order_ids",
      "order_id",
      "match_id",
      "deposit_id",
    ];
    const data = JSON.stringify(answer.data, (key, field) => {
      if (!varying.includes(key) || field === null) return field;
      return Array.isArray(field) ? field.length : typeof field;
    });
    return [answer.status, answer.code, answer.msg, JSON.parse(data.replaceAll(/outcome \d+/g, "outcome"))];
  }

  /** A user's day in a market: every writing route, and its effects. */
  async function day(ask: Asking, market: TestMarket): Promise<unknown[]> {
    const answers: Answer[] = [];
    const send = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
      const answer = await ask<T>(method, path, body);
      answers.push(answer);
      return answer.data;
    };
    await send("POST", "/wallet/split", { market_id: market.id, quantity: 50 });
    const first = terms(market, 0, SELL, 6_000, 20, {
      client_order_id: "a",
      time_in_force: "gtd",
      expires_at: 4_000_000_000_000,
    });
    const { id } = await send<OrderJson>("POST", "/orders", first);
    await send("POST", "/orders", first);
    await send("POST", "/orders", { ...first, price: 5_000 });
    await send("POST", "/orders", terms(market, 0, BUY, 6_000, 5, { self_trade_prevention: "decrement" }));
    await send("PATCH", `/orders/${id}`, { price: 6_100, quantity: 12, valid_until: 4_000_000_000_000 });
    const operations = [
      { op: "place", ...terms(market, 1, BUY, 2_000, 3, { post_only: true }) },
      { op: "amend", id, quantity: 11 },
      { op: "cancel", id: UNKNOWN_ID },
      { op: "place", ...terms(market, 1, SELL, 9_000, 1_000) },
    ];
    await send("POST", "/orders/batch", { operations });
    const quotes = [quote(market, 0, BUY, 1_000, 4), quote(market, 1, SELL, 9_500, 5)];
    await send("PUT", `/quotes/${market.id}`, { quotes });
    await send("PUT", `/quotes/${market.id}`, { quotes: [...quotes, quote(market, 0, BUY, 900, 1)] });
    await send("GET", "/orders?status=all");
    await send("DELETE", `/orders/${id}`);
    await send("DELETE", `/orders?market_id=${market.id}&side=1`);
    await send("DELETE", "/orders");
    await send("POST", "/wallet/merge", { market_id: market.id, quantity: 45 });
    for (const path of ["/orders?status=all", "/wallet/balance", "/me/positions", "/wallet/transactions"])
      await send("GET", path);
    expect(answers.filter(({ code }) => code === 0).length).toBeGreaterThan(14);
    return answers.map(likeness);
  }

  test("every writing route returns the same in JSON and MessagePack", async () => {
    const [first, second] = [world.user(), world.user()];
    const inJson = await day(
      (method, path, body) => first.request(method, path, body === undefined ? {} : { body }),
      world.market(),
    );
    const inPacked = await day((method, path, body) => requestPacked(second, method, path, { body }), world.market());
    expect(inPacked).toEqual(inJson);
  });

  test("request and response may differ in encoding: JSON and MessagePack", async () => {
    const [user, market] = [world.user(), world.market()];
    const body = terms(market, 0, BUY, 100, 1, { client_order_id: "mixed" });
    const intoJson = await user.send(
      "POST",
      `${API_BASE}/orders`,
      { Authorization: `Bearer ${user.token}`, "Content-Type": "application/msgpack; charset=binary" },
      pack(body),
    );
    expect([intoJson.status, intoJson.headers["content-type"]]).toEqual([202, "application/json"]);
    const { data } = JSON.parse(intoJson.body.toString()) as { data: OrderJson };
    const headers = { "Content-Type": "application/json" };
    const packed = await requestPacked<OrderJson>(user, "POST", "/orders", {
      body: Buffer.from(JSON.stringify(body)),
      headers,
    });
    expect(packed.data).toEqual(data);
    expect((await requestPacked<OrderJson>(user, "POST", "/orders", { body })).data).toEqual(data);
    expect(await user.place(body)).toEqual(data);
    expect(await user.all("/orders")).toHaveLength(1);
  });

  test("MessagePack's numbers may have any width, integers as floats too", async () => {
    const [user, market] = [world.user(), world.market()];
    // {"market_id": float 64, "outcome_id": uint 64, "side": int 8, "price": uint 32, "quantity": float 32}
    const bytes = Buffer.alloc(9 + 9 + 2 + 5 + 5);
    let at = bytes.writeUInt8(0xcb, 0);
    at = bytes.writeDoubleBE(market.id, at);
    at = bytes.writeUInt8(0xcf, at);
    at = bytes.writeBigUInt64BE(BigInt(market.outcomes[0]!), at);
    at = bytes.writeUInt8(0xd0, at);
    at = bytes.writeInt8(1, at);
    at = bytes.writeUInt8(0xce, at);
    at = bytes.writeUInt32BE(100, at);
    at = bytes.writeUInt8(0xca, at);
    bytes.writeFloatBE(3, at);
    const pieces = [
      bytes.subarray(0, 9),
      bytes.subarray(9, 18),
      bytes.subarray(18, 20),
      bytes.subarray(20, 25),
      bytes.subarray(25),
    ];
    const names = ["market_id", "outcome_id", "side", "price", "quantity"];
    const body = Buffer.concat([Buffer.from([0x85]), ...names.flatMap((name, i) => [pack(name), pieces[i]!])]);
    const { data } = await requestPacked<OrderJson>(user, "POST", "/orders", { body });
    expect(data).toMatchObject(terms(market, 0, BUY, 100, 3));
  });
});

describe("errors over REST", () => {
  test("errors over REST are MessagePack, with the status, the message and the headers of JSON", async () => {
    const [user, market] = [world.user(), world.market()];
    const nobody = world.anonymous();
    const small = world.client("small");
    const good = terms(market, 0, BUY, 5_000, 1);
    const finished = await user.place(good);
    await user.cancel(finished.id);
    const wrong: [client: Client, method: string, path: string, body: unknown, status: number, code: number][] = [
      [user, "POST", "/orders", { ...good, price: 0 }, 400, 40000],
      [user, "POST", "/orders", { ...good, nothing: 1 }, 400, 40000],
      [user, "POST", "/orders", [], 400, 40000],
      [user, "GET", "/orders?limit=0", undefined, 400, 40000],
      [nobody, "POST", "/orders", good, 401, 40100],
      [nobody, "GET", "/me/limits", undefined, 401, 40100],
      [world.client("reader"), "POST", "/orders", good, 403, 40300],
      [user, "GET", "/nothing", undefined, 404, 4040],
      [user, "GET", `/orders/${UNKNOWN_ID}`, undefined, 404, 4040],
      [user, "PUT", "/orders", undefined, 405, 40500],
      [user, "DELETE", `/orders/${finished.id}`, undefined, 409, 40900],
      [user, "POST", "/orders", { ...good, side: SELL }, 422, 42202],
      [small, "POST", "/orders", { ...good, quantity: 1_000 }, 429, 42901],
    ];
    for (const [client, method, path, body, status, code] of wrong) {
      const json = await client.request(method, path, body === undefined ? {} : { body });
      const packed = await requestPacked(client, method, path, { body });
      expect([path, packed.status, packed.code, packed.msg]).toEqual([path, status, code, json.msg]);
      for (const name of ["www-authenticate", "allow"]) expect(packed.headers[name]).toBe(json.headers[name]);
      if (status === 429) expect(Number(packed.headers["retry-after"])).toBeGreaterThan(0);
    }
    const large = pack({ ...good, client_order_id: "x".repeat(MAX_BODY_BYTES) });
    expect(await requestPacked(user, "POST", "/orders", { body: large })).toMatchObject({ status: 413, code: 40000 });
    const type = { "Content-Type": "application/x-msgpack" };
    expect(await requestPacked(user, "POST", "/orders", { body: good, headers: type })).toMatchObject({ code: 40000 });
    expect(await user.all("/orders")).toEqual([]);
  });

  test.each(MALFORMED)("a MessagePack body of %s is 40000", async (_, body) => {
    const user = world.client("small");
    expect(await requestPacked(user, "POST", "/orders", { body })).toMatchObject({ status: 400, code: 40000 });
    const headers = { "Content-Type": MESSAGE_PACK };
    expect(await user.request("POST", "/orders", { body, headers })).toMatchObject({ status: 400, code: 40000 });
  });

  test("MessagePack declared as JSON, and JSON declared as MessagePack, are rejected", async () => {
    const [user, market] = [world.user(), world.market()];
    const good = terms(market, 0, BUY, 100, 1);
    expect(await user.request("POST", "/orders", { body: pack(good) })).toMatchObject({ status: 400, code: 40000 });
    const headers = { "Content-Type": MESSAGE_PACK };
    const body = JSON.stringify(good);
    expect(await user.request("POST", "/orders", { body, headers })).toMatchObject({ status: 400, code: 40000 });
  });

  test("a refused upgrade responds in MessagePack too", async () => {
    const headers = { Accept: MESSAGE_PACK, Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==" }; // biome-ignore format: one request
    const {
      status,
      headers: sent,
      body,
    } = await world.anonymous().send("GET", `${API_BASE}/ws?token=x`, headers, null);
    expect([status, sent["content-type"]]).toEqual([401, MESSAGE_PACK]);
    expect(unpack(body)).toMatchObject({ code: 40100, data: null });
  });
});

describe("the WebSocket", () => {
  test.each([
    [["msgpack"], "msgpack"],
    [["json"], "json"],
    [["msgpack", "json"], "msgpack"],
    [["json", "msgpack"], "json"],
    [["other", "msgpack"], "msgpack"],
    [[], ""],
  ])("a WebSocket offered %j speaks %j", async (protocols, granted) => {
    const socket = await Socket.open(world.server, null, { protocols });
    expect(socket.socket.protocol).toBe(granted);
    const { code, data } = await socket.ask({ op: "ping" });
    expect(code).toBe(0);
    expect(Math.abs((data as { now: number }).now - Date.now())).toBeLessThan(60_000);
    await socket.close();
  });

  test("a WebSocket offered unknown subprotocols only grants none", async () => {
    // A client must fail where the server grants nothing that it offered.
    await expect(Socket.open(world.server, null, { protocols: ["MsgPack", "other"] })).rejects.toThrow(/subprotocol/);
  });

  /** The next answer without an id. */
  async function rejection(socket: Socket, send: () => void): Promise<Acknowledgement> {
    const count = socket.acknowledgements.length;
    send();
    return socket.until(() => socket.acknowledgements[count], "an answer");
  }

  test("text on a MessagePack connection and bytes on a JSON one are 40000, and the connection stays open", async () => {
    const [packed, json] = [await Socket.open(world.server, null, PACKED), await Socket.open(world.server, null)];
    for (const [socket, message] of [
      [packed, '{"op":"ping","id":1}'],
      [json, pack({ op: "ping", id: 1 })],
    ] as const) {
      const answer = await rejection(socket, () => socket.socket.send(message));
      expect(answer).toMatchObject({ id: null, code: 40000, data: null });
      await socket.fence();
      await socket.close();
    }
  });

  test.each(MALFORMED)("a MessagePack message of %s is 40000, and the connection stays open", async (_, bytes) => {
    const socket = await Socket.open(world.server, null, PACKED);
    const answer = await rejection(socket, () => socket.socket.send(bytes, { binary: true }));
    expect(answer).toMatchObject({ id: null, code: 40000, data: null });
    await socket.fence();
    await socket.close();
  });

  test("wrong operations in MessagePack get the responses of a JSON connection", async () => {
    const [user, market] = [world.user(), world.market()];
    const [packed, json] = [await Socket.open(world.server, user.token, PACKED), await world.socket(user)];
    const good = terms(market, 0, BUY, 100, 1);
    for (const operation of [
      {},
      { op: "nothing" },
      { op: "order.place" },
      { op: "order.place", data: { ...good, price: "100" } },
      { op: "order.place", data: { ...good, quantity: 2 ** 40 } },
      { op: "order.place", data: { ...good, client_order_id: "ä" } },
      { op: "order.place", data: { ...good, side: SELL } },
      { op: "order.cancel", data: { id: UNKNOWN_ID } },
      { op: "subscribe", channel: "book", market_id: UNKNOWN_ID },
    ]) {
      const { id: _, ...ours } = await packed.ask(operation);
      const { id: __, ...theirs } = await json.ask(operation);
      expect(ours).toEqual(theirs);
      expect(ours.code).toBeGreaterThan(0);
    }
    for (const socket of [packed, json]) await socket.close();
  });

  test.each([2, 3])(
    "a session of %i outcomes is the same in JSON and MessagePack, frame by frame",
    async (outcomes) => {
      const random = Random.printed(`a session in both, ${outcomes} outcomes`);
      const market = world.market(outcomes);
      const users = [world.user(), world.user()];
      for (const user of users) await world.split(user, market, 300);
      const pairs = await Promise.all(
        users.map(
          async (user) => [await world.socket(user), await Socket.open(world.server, user.token, PACKED)] as const,
        ),
      );
      for (const sockets of pairs) {
        for (const socket of sockets) {
          await socket.subscribe("book", market.id);
          await socket.subscribe("trades", market.id);
        }
      }
      const even = Math.floor(10_000 / outcomes);
      const placement = (): object =>
        terms(
          market,
          random.integer(0, outcomes - 1),
          random.pick([BUY, SELL]),
          even + 10 * random.integer(-5, 5),
          random.integer(1, 9),
          {
            time_in_force: random.pick(["gtc", "gtc", "ioc"]),
            self_trade_prevention: random.pick(["cancel_taker", "cancel_maker", "cancel_both", "decrement"]),
          },
        );
      const placed: number[][] = [[], []];
      for (let n = 0; n < 240; n++) {
        const who = n % 2;
        const own = placed[who]!;
        const socket = random.pick(pairs[who]!);
        const kind = random.next();
        if (kind < 0.6 || own.length === 0) {
          const { id } = await socket.data<OrderJson>("order.place", placement());
          own.push(id);
          expect(await users[who]!.order(id)).toMatchObject({ id });
        } else if (kind < 0.75) await socket.ask({ op: "order.cancel", data: { id: random.pick(own) } });
        else if (kind < 0.9)
          await socket.ask({ op: "order.amend", data: { id: random.pick(own), quantity: random.integer(1, 9) } });
        else {
          const operations = Array.from({ length: 5 }, () => ({ op: "place", ...placement() }));
          const { results } = await socket.data<{ results: { data: OrderJson | null }[] }>("order.batch", {
            operations,
          });
          own.push(...results.flatMap(({ data }) => (data === null ? [] : [data.id])));
        }
      }
      const kinds = new Set<string>();
      for (const [i, [json, packed]] of pairs.entries()) {
        await json.fence();
        await packed.fence();
        // Only snapshots are made for each connection, at its own moment.
        const isShared = ({ event }: Frame): boolean => event !== "book.snapshot";
        expect(packed.frames.filter(isShared)).toEqual(json.frames.filter(isShared));
        expect(timeless(packed.of("book.snapshot"))).toEqual(timeless(json.of("book.snapshot")));
        for (const { event } of packed.frames) kinds.add(event);
        const last = packed.of("balance.updated").at(-1)!;
        expect(last.data).toEqual(await users[i]!.balance());
      }
      expect([...kinds].sort()).toEqual(["balance.updated", "book.snapshot", "book.updated", "order.updated", "position.updated", "trade.created"]); // biome-ignore format: kinds
      expect(pairs[0]![1].of("trade.created").length).toBeGreaterThan(20);
      for (const sockets of pairs) for (const socket of sockets) await socket.close();
    },
  );

  test("a shutdown is announced in MessagePack too", async () => {
    await expectBalanced(world.anonymous());
    const socket = await Socket.open(world.server, world.user().token, PACKED);
    await world.stop();
    expect(await socket.closed).toBe(1001);
    expect(socket.frames.at(-1)).toMatchObject({
      event: "system.shutdown",
      data: { reason: "restart", url: null },
    });
  });
});
