/**
 * Requests with an ambiguous end, target or head, byte by byte. Each carries another user's order in the bytes behind
 * it; a server that frames the request differently from the proxy in front of it would execute that order (request
 * smuggling). The server never responds to those bytes as a request and places nothing. The status identifies the
 * requests that uWebSockets.js itself rejects.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { majorOf } from "../../engine/util/node-support.ts";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { BUY, terms } from "../support/terms.ts";
import { Wire } from "../support/wire.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";

let world: World;
let market: TestMarket;
beforeAll(async () => {
  world = await World.start({ users: 0, named: { victim: {}, sender: {} }, markets: [2] });
  market = world.market();
});
afterAll(async () => {
  // No request placed an order.
  expect(await world.client("victim").all("/orders?status=all")).toEqual([]);
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

const SMUGGLED = "smuggled";
const lines = (...parts: string[]): string => parts.join("\r\n");

/** A complete placement with the victim's token. */
function smuggled(): string {
  const body = JSON.stringify(terms(market, 0, BUY, 100, 1, { client_order_id: SMUGGLED }));
  const fields = [
    `Authorization: Bearer ${tokenOf("victim")}`,
    `X-Request-Id: ${SMUGGLED}`,
    `Content-Length: ${body.length}`,
  ];
  return lines("POST /api/v1/orders HTTP/1.1", "Host: x", ...fields, "", body);
}

/** A request: start line, Host, the sender's token, more fields, and a body or bytes that look like one. */
function placing(fields: readonly string[], body: string): string {
  const own = ["Host: x", `Authorization: Bearer ${tokenOf("sender")}`, ...fields];
  return lines("POST /api/v1/orders HTTP/1.1", ...own, "", body);
}

/** A read, which may carry a superfluous body. */
const reading = (fields: readonly string[], body = ""): string => {
  return lines("GET /api/v1/time HTTP/1.1", "Host: x", ...fields, "", body);
};

const own = (): string => JSON.stringify(terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" }));
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const length = (text: string): string => `Content-Length: ${text.length}`;
const CHUNKED = "Transfer-Encoding: chunked";

/** uWebSockets.js on an unreadable head: the versions for Node 24 and later respond before they close. */
const [UNREADABLE, NO_VERSION] = majorOf(process.versions.node) < 24 ? ["closed", "closed"] : ["400", "505"];

/** One response for each status, or none ("closed"), before the connection ends or waits for more. */
type Case = readonly [name: string, bytes: () => string, ...outcomes: string[]];

/** Sends the bytes, waits for two orders on another connection, and ends. Returns the responses' statuses or "closed". */
async function outcome(bytes: string): Promise<string> {
  const wire = new Wire(world.server.port);
  wire.socket.write(bytes, "latin1");
  const other = world.client("sender");
  for (let n = 0; n < 2; n++) await other.place(terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" }));
  wire.socket.end();
  await wire.ended;
  const text = wire.received.toString("latin1");
  // A response to the victim's order would name it.
  expect(text).not.toContain(SMUGGLED);
  expect(text).not.toMatch(/HTTP\/1\.1 50[0-4]/);
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) [A-Z]/g)].map(([, status]) => status!);
  return statuses.length === 0 ? "closed" : statuses.join();
}

function holds(cases: readonly Case[]): void {
  test.for(cases)("%s", async ([, bytes, ...outcomes]) => {
    expect(outcomes).toContain(await outcome(bytes()));
  });
}

describe("where a body ends", () => {
  holds([
    [
      "both lengths and chunks",
      () => placing([`Content-Length: ${smuggled().length + 5}`, CHUNKED], `0\r\n\r\n${smuggled()}`),
      "400",
    ],
    ["chunks and a length", () => placing([CHUNKED, "Content-Length: 4"], chunk(smuggled())), "400"],
    ...["identity", "x", "xchunked", "gzip, chunked", "chunked, identity", "chunked;q=1", '"chunked"'].map(
      (coding): Case => {
        return [
          `the coding ${coding}`,
          () => placing([`Transfer-Encoding: ${coding}`], `${chunk(own())}0\r\n\r\n${smuggled()}`),
          "400",
          "closed",
        ];
      },
    ),
    [
      "two codings",
      () => placing([CHUNKED, "Transfer-Encoding: identity"], `${chunk(own())}0\r\n\r\n${smuggled()}`),
      "400",
      "closed",
    ],
    ["a coding that is empty", () => placing(["Transfer-Encoding:"], smuggled()), "closed"],
    [
      "a coding that is empty, and a length",
      () => placing(["Transfer-Encoding:", length(own())], own() + smuggled()),
      "400",
      "closed",
    ],
    [
      "a coding behind a vertical tab",
      () => placing(["Transfer-Encoding: \x0bchunked", length(own())], own() + smuggled()),
      UNREADABLE,
    ],
    [
      "a space before the colon of a coding",
      () => placing(["Transfer-Encoding : chunked", length(own())], own() + smuggled()),
      UNREADABLE,
    ],
    [
      "two lengths, the first less",
      () => placing([length(own()), length(own() + smuggled())], own() + smuggled()),
      "400",
      "closed",
    ],
    [
      "two lengths, the second less",
      () => placing([length(own() + smuggled()), length(own())], own() + smuggled()),
      "400",
      "closed",
    ],
    ["the same length twice", () => placing([length(own()), length(own())], own() + smuggled()), "400", "closed"],
    ["a length that is empty", () => placing(["Content-Length:"], smuggled()), "closed"],
    ["a read with a length that is empty", () => reading(["Content-Length:"], smuggled()), "closed"],
    ["a read with two lengths", () => reading(["Content-Length: 0", length(smuggled())], smuggled()), "closed"],
    ["no length at all", () => placing([], smuggled()), "closed"],
    ["no length that is seen", () => placing([": x", length(smuggled())], smuggled()), "closed"],
    ...["+5", "-1", "0x5", "5,5", "5 5", "5.0", "1e2", "5;", "\u0665", String(2n ** 64n + 5n), "9".repeat(40)].map(
      (text): Case => {
        return [`the length ${text}`, () => placing([`Content-Length: ${text}`], `hello${smuggled()}`), "400"];
      },
    ),
    [
      "a length of four gigabytes and a little",
      () => placing([`Content-Length: ${2 ** 32 + own().length}`], own() + smuggled()),
      "413",
    ],
    ["a length in a name that is almost its own", () => placing(["Content_Length: 5", length(own())], own()), "202"],
    ["a length with zeros before it", () => placing([`Content-Length: 000${own().length}`], own()), "202"],
  ]);
});

describe("a request within a body", () => {
  const carrying = (line: string, token: string, ...more: string[]): (() => string) => {
    return () => lines(line, "Host: x", `Authorization: Bearer ${token}`, ...more, length(smuggled()), "", smuggled());
  };
  holds([
    ["of a read", carrying("GET /api/v1/time HTTP/1.1", "x"), "400"],
    ["of a read in chunks", () => reading([CHUNKED], `${chunk(smuggled())}0\r\n\r\n`), "400"],
    ["of a placement", carrying("POST /api/v1/orders HTTP/1.1", tokenOf("sender")), "400"],
    ["of one that may not place", carrying("POST /api/v1/orders HTTP/1.1", "nobody"), "401"],
    ["of no path", carrying("POST /api/v1/nothing HTTP/1.1", "x"), "404"],
    ["of another method", carrying("POST /api/v1/time HTTP/1.1", "x"), "405"],
    ["of a preflight", carrying("OPTIONS /api/v1/orders HTTP/1.1", "x", "Access-Control-Request-Method: POST"), "204"],
    ["of a HEAD", carrying("HEAD /api/v1/time HTTP/1.1", "x"), "400"],
    ["of a HEAD where no GET is", carrying("HEAD /api/v1/wallet/split HTTP/1.1", "x"), "405"],
    ["of one that is too long", () => placing(["Content-Length: 70000"], smuggled().repeat(300)), "413"],
    [
      "of an upgrade",
      () =>
        reading(
          [
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Content-Length:",
          ],
          smuggled(),
        ),
      "closed",
      "200",
    ],
  ]);
});

describe("chunks", () => {
  const chunks = (text: () => string, ...outcomes: string[]): [() => string, ...string[]] => {
    return [() => placing([CHUNKED], text()), ...outcomes];
  };
  holds([
    ["are one body, and the last request of their connection", ...chunks(() => `${chunk(own())}0\r\n\r\n`, "202")],
    ["a request behind them", ...chunks(() => `${chunk(own())}0\r\n\r\n${smuggled()}`, "closed")],
    ["a request behind a read's", () => reading([CHUNKED], `0\r\n\r\n${smuggled()}`), "closed"],
    ["two bytes that end them, whatever they are", ...chunks(() => `${chunk(own())}0\r\nXX${smuggled()}`, "closed")],
    ["two such bytes of a read", () => reading([CHUNKED], `0\r\nXX${smuggled()}`), "closed"],
    ["a trailer", ...chunks(() => `${chunk(own())}0\r\nX-Trailer: ${smuggled()}`, "505", "closed")],
    ["an extension", ...chunks(() => `${own().length.toString(16)};a=b\r\n${own()}\r\n0\r\n\r\n`, "closed")],
    [
      "an extension of two lines",
      ...chunks(() => `${own().length.toString(16)};a\n${smuggled()}\r\n0\r\n\r\n`, "closed", "400"),
    ],
    ...["FFFFFFFFFFFFFFFFF", `1${"0".repeat(16)}5`, "-5", "0x5", "G", "5g"].map((size): Case => {
      return [`the size ${size}`, ...chunks(() => `${size}\r\nhello\r\n0\r\n\r\n${smuggled()}`, "400")];
    }),
    [
      "the size of four gigabytes and a little",
      ...chunks(() => `100000005\r\nhello\r\n0\r\n\r\n${smuggled()}`, "400", "closed"),
    ],
    ["a size without an end of its line", ...chunks(() => `5\nhello\n0\n\n${smuggled()}`, "400", "closed")],
  ]);
});

describe("heads", () => {
  holds([
    [
      "a line that is folded",
      () => placing(["X: a", " Content-Length: 5", length(own())], own() + smuggled()),
      UNREADABLE,
    ],
    ["a tab that folds", () => placing(["X: a", "\tb", length(own())], own() + smuggled()), UNREADABLE],
    [
      "a bare LF in a value",
      () => placing([`X: a\nContent-Length: ${own().length + smuggled().length}`, length(own())], own() + smuggled()),
      UNREADABLE,
    ],
    ["bare LFs", () => "GET /api/v1/time HTTP/1.1\nHost: x\n\n", "505"],
    ["a bare CR", () => reading(["X: a\rX-Request-Id: smuggled"]), "closed"],
    ["a NUL in a value", () => reading(["X: a\0b"]), UNREADABLE],
    ["a NUL in a name", () => reading(["X\0: a"]), UNREADABLE],
    ["a space before the colon", () => reading(["X : a"]), UNREADABLE],
    ["no colon", () => reading(["X"]), UNREADABLE],
    ["two hosts", () => reading(["Host: y"]), "400"],
    ["no host", () => "GET /api/v1/time HTTP/1.1\r\nX: y\r\n\r\n", "400"],
    [
      "two tokens",
      () => reading([`Authorization: Bearer ${tokenOf("sender")}`, `Authorization: Bearer ${tokenOf("victim")}`]),
      "400",
    ],
    ["a hundred fields", () => reading(Array.from({ length: 100 }, (_, n) => `X-${n}: y`)), "431"],
    ["a thousand fields", () => reading(Array.from({ length: 1_000 }, (_, n) => `X-${n}: y`)), "431"],
    ["a field of 64 KB", () => reading([`X: ${"y".repeat(65_536)}`]), "431"],
    ["a cookie of 15 KB", () => reading([`Cookie: a=${"y".repeat(15_360)}`]), "200"],
    ["a cookie of 17 KB", () => reading([`Cookie: a=${"y".repeat(17_408)}`]), "431"],
    [
      "an override of method and path",
      () => reading(["X-HTTP-Method-Override: DELETE", "X-Original-URL: /metrics", "X-Rewrite-URL: /metrics"]),
      "200",
    ],
    [
      "an upgrade to HTTP/2",
      () => reading(["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"]),
      "200",
    ],
  ]);
});

describe("start lines", () => {
  const line =
    (text: string): (() => string) =>
    () =>
      lines(text, "Host: x", "", "");
  holds([
    ...["1.0", "1.2", "2.0", "0.9"].map(
      (version): Case => [`HTTP/${version}`, line(`GET /api/v1/time HTTP/${version}`), "505"],
    ),
    ["no version", () => "GET /api/v1/time\r\n\r\n", NO_VERSION],
    ["HTTP/2's preface", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"],
    ["a whole URL", line("GET http://x/api/v1/time HTTP/1.1"), "505"],
    ["a URL of somebody else", line("GET http://evil.example/api/v1/time HTTP/1.1"), "505"],
    ["an authority", line("CONNECT evil.example:443 HTTP/1.1"), "505"],
    ["an asterisk", line("OPTIONS * HTTP/1.1"), "505"],
    ["two spaces", line("GET  /api/v1/time HTTP/1.1"), "505"],
    ["a tab", line("GET\t/api/v1/time HTTP/1.1"), "505"],
    ["a space in the target", line("GET /api/v1/time /metrics HTTP/1.1"), "505"],
    ["empty lines before", () => `\r\n\r\n${reading([])}`, "closed"],
    ["a proxy's line before", () => `PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n${reading([])}`, "505"],
    ["a hello of TLS", () => "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", "505", "closed"],
    ...["TRACE", "PROPFIND", "get", "Get", "A".repeat(3_000)].map(
      (method): Case => [`the method ${method.slice(0, 20)}`, line(`${method} /api/v1/time HTTP/1.1`), "405"],
    ),
    ...[
      "/api/v1/time/",
      "//api/v1/time",
      "/./api/v1/time",
      "/api/../api/v1/time",
      "/api/v1/%74ime",
      "/api/v1/time%00",
      "/api/v1/time;a=b",
    ].map((path): Case => [`the path ${path}`, line(`GET ${path} HTTP/1.1`), "404"]),
    ...[
      "/api%2fv1%2ftime",
      "/api/v1/time#a",
      "/api\\v1\\time",
      "/API/V1/TIME",
      "/api/v1/tim\xe9",
      "/..;/api/v1/time",
      "/api/v1/orders/../time",
      "//",
    ].map((path): Case => [`the path ${path}`, line(`GET ${path} HTTP/1.1`), "404"]),
    ["a path beyond all", line(`GET /${"a/".repeat(40_000)} HTTP/1.1`), "431"],
    ["a path of almost all that a head may have", line(`GET /${"a/".repeat(1_500)} HTTP/1.1`), "404"],
  ]);
});
