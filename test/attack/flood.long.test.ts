/**
 * Connections that send as fast as they can and never pause: uWebSockets.js would read from one of them without end.
 * The server closes them, and meanwhile executes another client's order.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { BUY, terms } from "../support/terms.ts";
import { head, upgrade, Wire } from "../support/wire.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";
import { frame } from "./fuzz/messages.ts";

/** Usually some tens of ms each; endless if the server closes no connection. */
const SLOWEST_ORDER_MS = 4_000;
const CONNECTIONS = 4;
const UPGRADE = upgrade("/ws");
const UPGRADE_OF_USER = upgrade(`/ws?token=${tokenOf("user0")}`);

let world: World;
let user: Client;
let market: TestMarket;
beforeAll(async () => {
  world = await World.start({ users: 1, markets: [2] });
  user = world.user();
  market = world.market();
});
afterAll(() => expectEndsWell(world));

/** Sends the bytes repeatedly until the connection ends; reads and discards all responses. */
function flood(begin: string, again: Buffer): Wire {
  const wire = new Wire(world.server.port);
  const push = (): void => {
    while (wire.endedAt === null && wire.socket.write(again));
    if (wire.endedAt === null) wire.socket.once("drain", push);
  };
  wire.socket.write(begin);
  wire.socket.removeAllListeners("data").on("data", () => {});
  wire.socket.once("connect", push);
  return wire;
}

const message = (text: string): Buffer => frame(1, Buffer.from(text));

test.for([
  ["messages that are no operation", UPGRADE, message("{}")],
  ["operations", UPGRADE, message('{"op":"ping","id":1}')],
  ["operations of a user", UPGRADE_OF_USER, message('{"op":"ping","id":1}')],
  ["pings", UPGRADE, frame(9, Buffer.alloc(0))],
  ["reads in one piece", "", Buffer.from(head("GET", "/time", null))],
  ["paths that are none", "", Buffer.from(head("GET", "/nothing", null))],
] as const)("%s without end", async ([, begin, bytes]) => {
  const again = Buffer.concat(Array.from({ length: Math.ceil(65_536 / bytes.length) }, () => bytes));
  const since = performance.now();
  const wires = Array.from({ length: CONNECTIONS }, () => flood(begin, again));
  const order = await user.place(terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" }));
  expect(order.status).toBe("queued");
  await Promise.all(wires.map(({ ended }) => ended));
  expect(performance.now() - since).toBeLessThan(SLOWEST_ORDER_MS);
});

test("a body in chunks of one byte is read quickly", async () => {
  const wire = new Wire(world.server.port);
  const body = JSON.stringify(terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" })).padEnd(65_536, " ");
  const chunks = [...body].map((character) => `1\r\n${character}\r\n`).join("");
  wire.socket.write(head("POST", "/orders", user.token, ["Transfer-Encoding: chunked"]));
  wire.socket.write(`${chunks}0\r\n\r\n`);
  await wire.ended;
  expect(wire.answers().map(({ status }) => status)).toEqual([202]);
});
