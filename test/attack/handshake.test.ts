/**
 * Invalid WebSocket handshakes and frames: the server rejects each immediately and closes only its own connection, while
 * an order on another connection is executed. The fuzz covers random ones.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { BUY, terms } from "../support/terms.ts";
import { Wire } from "../support/wire.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";
import { frame } from "./fuzz/messages.ts";

let world: World;
let market: TestMarket;
beforeAll(async () => {
  world = await World.start({ users: 1, named: { other: {} }, markets: [2] });
  market = world.market();
});
afterAll(() => expectEndsWell(world));

const OWN = tokenOf("user0");
const KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
const FIELDS = ["Host: x", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", KEY];

function handshake(fields: readonly string[], line = "GET /api/v1/ws HTTP/1.1"): string {
  return [line, ...fields, "", ""].join("\r\n");
}

/** The response's head; the wire keeps the rest. */
async function ask(wire: Wire, bytes: string): Promise<string> {
  wire.socket.write(bytes, "latin1");
  await wire.until((text) => text.includes("\r\n\r\n"));
  return wire.received.toString("latin1").split("\r\n\r\n")[0]!;
}

describe("handshakes", () => {
  const without = (name: string): string[] => FIELDS.filter((field) => !field.startsWith(`${name}:`));
  const cases: readonly (readonly [name: string, status: number, fields: readonly string[], line?: string])[] = [
    ["no key", 404, without("Sec-WebSocket-Key")],
    ["an empty key", 404, [...without("Sec-WebSocket-Key"), "Sec-WebSocket-Key:"]],
    ["a short key", 404, [...without("Sec-WebSocket-Key"), "Sec-WebSocket-Key: dGhlIHNhbXBs"]],
    ["a key beyond all", 404, [...without("Sec-WebSocket-Key"), `Sec-WebSocket-Key: ${"a".repeat(1_000)}`]],
    ["another method", 404, [...FIELDS, "Content-Length: 0"], "POST /api/v1/ws HTTP/1.1"],
    ["another path", 404, FIELDS, "GET /api/v1/ws/ HTTP/1.1"],
    ["another route", 200, FIELDS, "GET /api/v1/time HTTP/1.1"],
    ["another protocol of the web", 505, FIELDS, "GET /api/v1/ws HTTP/1.0"],
    ["long fields", 101, [...FIELDS, `Cookie: ${"y".repeat(15_000)}`]],
    ["fields beyond all", 431, [...FIELDS, `X: ${"y".repeat(20_000)}`]],
    ["two lengths", 400, [...FIELDS, "Content-Length: 0", "Content-Length: 1"]],
    ["a body", 101, [...FIELDS, "Content-Length: 0"]],
    ["a page of another site: it has no cookie to misuse", 101, [...FIELDS, "Origin: https://evil.example"]],
    ["unknown subprotocols", 101, [...FIELDS, "Sec-WebSocket-Protocol: a, __proto__, msgpackx, "]],
    ["unknown extensions", 101, [...FIELDS, "Sec-WebSocket-Extensions: permessage-deflate; x=1, y"]],
    ["a token that is none", 401, FIELDS, "GET /api/v1/ws?token=%00%ff%E0%80 HTTP/1.1"],
    ["a token without an end", 401, FIELDS, `GET /api/v1/ws?token=${"a".repeat(3_000)} HTTP/1.1`],
    ["a bearer token that is none", 401, [...FIELDS, "Authorization: Bearer x"]],
    ["a bearer token that is missing", 401, [...FIELDS, "Authorization: Bearer"]],
    ["an empty token", 401, FIELDS, "GET /api/v1/ws?token= HTTP/1.1"],
    // A credential in the wrong place is no anonymous connection.
    ...["Token", "access_token", "api_key", "apiKey", "__proto__[token]", "a"].map(
      (name) => [`?${name}=`, 400, FIELDS, `GET /api/v1/ws?${name}=${OWN} HTTP/1.1`] as const,
    ),
    ["a parameter beside the token", 400, FIELDS, `GET /api/v1/ws?token=${OWN}&stream=orders HTTP/1.1`],
    ["two tokens", 400, FIELDS, `GET /api/v1/ws?token=${OWN}&token=x HTTP/1.1`],
    ["one token twice", 400, FIELDS, `GET /api/v1/ws?token=${OWN}&token=${OWN} HTTP/1.1`],
    ["Basic", 400, [...FIELDS, `Authorization: Basic ${btoa(`user0:${OWN}`)}`]],
    ["a bare token", 400, [...FIELDS, `Authorization: ${OWN}`]],
    ["Authorization twice", 400, [...FIELDS, `Authorization: Bearer ${OWN}`, `Authorization: Bearer ${OWN}`]],
    [
      "a bearer token beside another",
      400,
      [...FIELDS, "Authorization: Bearer x"],
      `GET /api/v1/ws?token=${OWN} HTTP/1.1`,
    ],
    ...["X-API-Key", "Api-Key", "X-Auth-Token", "X-Access-Token"].map(
      (name) => [name, 400, [...FIELDS, `${name}: ${OWN}`]] as const,
    ),
    ...[`bearer, ${OWN}`, `json, ${OWN}`, "access_token, x"].map(
      (names) => [`subprotocols ${names}`, 400, [...FIELDS, `Sec-WebSocket-Protocol: ${names}`]] as const,
    ),
  ];
  test.for(cases)("handshake: %s: %i", async ([, status, fields, line]) => {
    const wire = new Wire(world.server.port);
    const head = await ask(wire, handshake(fields, line));
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    if (status === 101) expect(head).not.toMatch(/sec-websocket-(protocol|extensions)/i);
    wire.socket.destroy();
    await wire.ended;
  });
});

test.for([
  ["Authorization: Bearer", [`Authorization: Bearer ${OWN}`], ""],
  ["in small letters", [`authorization: bearer ${OWN}`], ""],
  ["both places", [`Authorization: Bearer ${OWN}`], `?token=${OWN}`],
] as const)("a connection with %s is the token's owner's", async ([, fields, query]) => {
  const wire = new Wire(world.server.port);
  await ask(wire, handshake([...FIELDS, ...fields], `GET /api/v1/ws${query} HTTP/1.1`));
  const order = await world.client("user0").place(terms(market, 0, BUY, 1, 1));
  await wire.until((text) => text.includes('"order.updated"'));
  expect(wire.received.toString("latin1")).toContain(`"id":${order.id},`);
  wire.socket.destroy();
  await wire.ended;
});

describe("frames", () => {
  const [TEXT, CLOSE, PING, LAST] = [0x1, 0x8, 0x9, 0x80];
  const ping = Buffer.from('{"op":"ping","id":1}');
  const bytes = (hex: string): Buffer => Buffer.from(hex, "hex");
  const bad: readonly (readonly [string, Buffer])[] = [
    ["a reserved bit", frame(TEXT, ping, LAST | 0x40 | TEXT)],
    ["all reserved bits", frame(TEXT, ping, LAST | 0x70 | TEXT)],
    ["an opcode of a later protocol", frame(3, ping)],
    ["a control opcode of a later protocol", frame(11, ping)],
    ["a ping in pieces", frame(PING, Buffer.alloc(5), PING)],
    ["a ping of 126 bytes", frame(PING, Buffer.alloc(126))],
    ["a piece without a beginning", frame(0, ping, LAST)],
    ["a message within a message", Buffer.concat([frame(TEXT, ping, TEXT), frame(TEXT, ping)])],
    [
      "a character that never ends, in two pieces",
      Buffer.concat([frame(TEXT, bytes("f09f"), TEXT), frame(0, bytes("2880"), LAST)]),
    ],
    ["a length of 2^63", bytes("81ff800000000000000000000000")],
    ["a length of 2^63 - 1", bytes("81ff7fffffffffffffff00000000")],
    ["a length of 64 KiB and one", frame(TEXT, Buffer.alloc(65_537, 0x20))],
    [
      "pieces of more than 64 KiB",
      Buffer.concat([frame(TEXT, Buffer.alloc(60_000, 0x20), TEXT), frame(0, Buffer.alloc(60_000, 0x20), LAST)]),
    ],
    ["16 MiB", frame(TEXT, Buffer.alloc(1 << 24, 0x20))],
    ["half a close code", frame(CLOSE, bytes("03"))],
    ["a reserved close code", frame(CLOSE, bytes("03ed"))],
    ["a close whose reason is no UTF-8", frame(CLOSE, bytes("03e8c328"))],
  ];
  test.for(bad)("a WebSocket frame: %s ends its connection", async ([, sent]) => {
    const wire = new Wire(world.server.port);
    const other = world.client("other");
    expect(await ask(wire, handshake(FIELDS))).toMatch(/^HTTP\/1\.1 101 /);
    wire.socket.write(sent);
    const order = await other.place(terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" }));
    expect(order.status).toBe("queued");
    await wire.ended;
    // The server executed none of it as an operation.
    expect(wire.received.toString("latin1")).not.toContain('"now"');
  });

  test("a frame without a mask is not executed as an operation", async () => {
    const wire = new Wire(world.server.port);
    await ask(wire, handshake(FIELDS));
    wire.socket.write(Buffer.concat([Buffer.from([LAST | TEXT, ping.length]), ping]));
    await world.client("other").place(terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" }));
    wire.socket.end();
    await wire.ended;
    expect(wire.received.toString("latin1")).not.toContain('"now"');
  });

  test("hundreds of the smallest frames are answered in order, without delaying other connections", async () => {
    const wire = new Wire(world.server.port);
    await ask(wire, handshake(FIELDS));
    const count = 450;
    wire.socket.write(Buffer.concat(Array.from({ length: count }, () => frame(PING, Buffer.alloc(0)))));
    wire.socket.write(Buffer.concat(Array.from({ length: count }, () => frame(TEXT, Buffer.from("{}")))));
    wire.socket.write(frame(TEXT, ping));
    await world.client("other").place(terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" }));
    await wire.until((text) => text.includes('"now"'));
    const refused = wire.received.toString("latin1").match(/"code":40000/g);
    expect(refused).toHaveLength(count);
    wire.socket.destroy();
  });
});
