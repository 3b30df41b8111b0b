/** Requests on one connection: bodies up to and above the limit, and many requests in one write. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_BODY_BYTES } from "../../server/http/limits.ts";
import { eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { OrderJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import { BUY, terms } from "../support/terms.ts";
import { head, Wire } from "../support/wire.ts";
import { World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 15, markets: Array<number>(12).fill(2) });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

describe("bodies", () => {
  /** A placement, padded with spaces. */
  const bodyOf = (order: object, length: number): string => JSON.stringify(order).padEnd(length, " ");

  test.each(["Content-Length", "chunks"])("bodies of 64 KiB are read, longer ones are 413, by %s", async (how) => {
    const [user, market] = [world.user(), world.market()];
    for (const [length, status] of [
      [MAX_BODY_BYTES, 202],
      [MAX_BODY_BYTES + 1, 413],
      [100_000, 413],
    ] as const) {
      const body = bodyOf(terms(market, 0, BUY, 100, 1), length);
      const wire = new Wire(world.server.port);
      if (how === "chunks") {
        wire.socket.write(head("POST", "/orders", user.token, ["Transfer-Encoding: chunked"]));
        for (let at = 0; at < length; at += 8_192) {
          const chunk = body.slice(at, at + 8_192);
          wire.socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
        }
        wire.socket.write("0\r\n\r\n");
      } else wire.socket.write(head("POST", "/orders", user.token, [`Content-Length: ${length}`]) + body);
      await wire.until((text) => text.includes("}"));
      expect(wire.answers().map((answer) => [length, answer.status, answer.body["code"]])).toEqual([
        [length, status, status === 202 ? 0 : 40000],
      ]);
      // The server must close: it would take the rest of a rejected body for a request.
      if (status === 413) await wire.ended;
      else wire.socket.destroy();
    }
    expect(await user.all("/orders")).toHaveLength(1);
  });

  test("bodies with too large a Content-Length are rejected before they arrive, and endless ones are cut off", async () => {
    const user = world.user();
    const announced = new Wire(world.server.port);
    announced.socket.write(head("POST", "/orders", user.token, ["Content-Length: 4000000000"]));
    await announced.ended;
    expect(announced.answers().map(({ status }) => status)).toEqual([413]);
    const endless = new Wire(world.server.port);
    endless.socket.write(head("POST", "/orders", user.token, ["Transfer-Encoding: chunked"]));
    const chunk = `1000\r\n${"x".repeat(4_096)}\r\n`;
    let sent = 0;
    while (endless.endedAt === null && sent < 64 * 1024 * 1024) {
      sent += chunk.length;
      if (!endless.socket.write(chunk)) await Promise.race([new Promise((resolve) => endless.socket.once("drain", resolve)), endless.ended]); // biome-ignore format: one wait
    }
    expect(endless.endedAt).not.toBeNull();
    // The bytes in flight when the server closes are in the kernel's buffers.
    expect(sent).toBeLessThan(32 * 1024 * 1024);
  });
});

describe("pipelined requests", () => {
  test("pipelined reads in one write get their responses in order", async () => {
    const [user, market] = [world.user(), world.market()];
    const paths = [
      "/time",
      `/markets/${market.id}`,
      "/wallet/balance",
      "/nothing",
      `/orderbook/${market.id}/1`,
      "/orders",
    ];
    const requests = Array.from({ length: 60 }, (_, n) => {
      return head("GET", paths[n % paths.length]!, user.token, [`X-Request-Id: read-${n}`]);
    });
    const ids = Array.from({ length: 60 }, (_, n) => `read-${n}`);
    // A turn of the event loop that takes long, as on a machine that is busy otherwise, closes the connection: then the
    // client repeats what has no response.
    const answers = await eventually(async () => {
      const wire = new Wire(world.server.port);
      wire.socket.write(requests.join(""));
      await wire.until(() => wire.answers().length === 60);
      wire.socket.destroy();
      const received = wire.answers();
      expect(received.map(({ id }) => id)).toEqual(ids);
      return received;
    });
    for (const [n, { status, body }] of answers.entries()) {
      const data = (body["data"] ?? {}) as object;
      const field = ["now", "slug", "held", "", "", "items"][n % paths.length]!;
      if (field === "") expect([n, [404, 200].includes(status)]).toEqual([n, true]);
      else expect([n, status, field in data]).toEqual([n, 200, true]);
    }
  });

  test("pipelined orders in one write get their own responses; after a close, at most the first is placed, and a retry is safe", async () => {
    const random = Random.printed("pipelined orders");
    let lost = 0;
    for (let round = 0; round < 10; round++) {
      const [user, market] = [world.client(`user${round}`), world.markets[round % 12]!];
      const count = random.integer(2, 6);
      const bodies = Array.from({ length: count }, (_, n) => {
        return terms(market, 0, BUY, 100 + n, 1, { client_order_id: `pipelined-${round}-${n}` });
      });
      const wire = new Wire(world.server.port);
      const requests = bodies.map((body, n) => {
        const text = JSON.stringify(body);
        const fields = [`X-Request-Id: order-${n}`, `Content-Length: ${text.length}`];
        return head("POST", "/orders", user.token, fields) + text;
      });
      wire.socket.write(requests.join(""));
      await wire.until(() => wire.answers().length === count);
      for (const [n, { status, id, body }] of wire.answers().entries()) {
        const order = body["data"] as OrderJson;
        expect([status, id, order.client_order_id]).toEqual([202, `order-${n}`, bodies[n]!.client_order_id]);
      }
      const answered = wire.answers().map(({ body }) => body["data"] as OrderJson);
      if (answered.length < count) lost++;
      wire.socket.destroy();
      const named = `/orders?market_id=${market.id}`;
      const placed = (await user.all<OrderJson>(named)).filter((order) => order.client_order_id?.startsWith(`pipelined-${round}-`) === true); // biome-ignore format: one filter
      if (answered.length < count) expect(placed.length).toBeLessThanOrEqual(1);
      for (const order of placed) expect(order.client_order_id).toBe(`pipelined-${round}-0`);
      const retried: OrderJson[] = [];
      for (const body of bodies) retried.push(await user.place(body));
      for (const order of [...answered, ...placed]) expect(retried.map(({ id }) => id)).toContain(order.id);
      const live = (await user.all<OrderJson>(named)).map((order) => order.client_order_id);
      for (const body of bodies) expect(live.filter((name) => name === body.client_order_id)).toHaveLength(1);
      await user.data("DELETE", named);
    }
    process.stdout.write(`pipelined orders: ${lost} of 10 connections were closed before the last response\n`);
  });
});
