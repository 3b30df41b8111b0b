/**
 * A response that waits for the end of its turn of the event loop, because its request arrived in chunks, still precedes
 * the messages about its effects.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { BUY, terms } from "../support/terms.ts";
import { head, Wire } from "../support/wire.ts";
import { World } from "../support/world.ts";

const ORDERS = 40;

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 2, markets: [2, 2] });
});
afterAll(() => expectEndsWell(world));

test.for([
  ["with a length", (text: string) => [`Content-Length: ${text.length}`, text]],
  [
    "in chunks",
    (text: string) => ["Transfer-Encoding: chunked", `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`],
  ],
] as const)("the 202 to an order %s leaves before its first order.updated", async ([, framed]) => {
  const [user, market] = [world.user(), world.market()];
  const socket = new Wire(world.server.port);
  const upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
  socket.socket.write(
    head("GET", `/ws?token=${user.token}`, null, [...upgrade, `Sec-WebSocket-Key: ${"x".repeat(22)}==`]),
  );
  await socket.until((text) => text.includes("101 Switching"));
  const body = JSON.stringify(terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" }));
  const [length, bytes] = framed(body);
  let early = 0;
  for (let n = 0; n < ORDERS; n++) {
    const wire = new Wire(world.server.port);
    socket.received = Buffer.alloc(0);
    socket.socket.once("data", () => {
      if (wire.received.length === 0) early++;
    });
    wire.socket.write(`${head("POST", "/orders", user.token, ["Content-Type: application/json", length!])}${bytes}`);
    await socket.until((text) => text.includes('"order.updated"'));
    await wire.until((text) => text.includes('"code":0'));
    expect(wire.answers()[0]!.status).toBe(202);
    wire.socket.destroy();
  }
  socket.socket.destroy();
  // If both connections have data, this process's event loop decides which it reads first.
  expect(early).toBeLessThan(ORDERS / 2);
});
