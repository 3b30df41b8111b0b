/**
 * What a box says while it doesn't trade, byte by byte: methods, paths, upgrades, preflights and malformed requests. A box
 * that starts, stops or stands by responds as the exchange's own port does, with 50300 in the place of the rest.
 */
import { expect } from "vitest";
import { Wire } from "../support/wire.ts";

const FOREIGN = "Origin: https://page.example";
const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Version: 13",
];
const PREFLIGHT = [FOREIGN, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"];

/** By status and code of the envelope; a HEAD has no code, "closed" is the end of the connection without a response. */
type Expected = "400" | "503 50300" | "503" | "200" | "204" | "400 40000" | "405 40500" | "403 40300" | "closed";
type Case = readonly [line: string, fields: readonly string[], body: string, ...expected: Expected[]];

const BODY = '{"market_id":1}';
const length = (text: string): string => `Content-Length: ${text.length}`;

const CASES: readonly Case[] = [
  ...["GET", "DELETE"].map((method): Case => [`${method} /api/v1/orders`, [FOREIGN], "", "503 50300"]),
  ...["POST /api/v1/orders", "PATCH /api/v1/orders/1", "PUT /api/v1/quotes/1"].map(
    (line): Case => [line, [FOREIGN, "Content-Type: application/json", length(BODY)], BODY, "503 50300"],
  ),
  ["HEAD /api/v1/markets", [], "", "503"],
  ["HEAD /api/v1/orders", [], "", "503"],
  ["GET /livez", [], "", "200"],
  ["HEAD /livez", [], "", "200"],
  ["HEAD /readyz", [], "", "503"],
  ["GET /readyz", [FOREIGN], "", "503"],
  ["GET /metrics", [], "", "200"],
  ["HEAD /metrics", [], "", "200"],
  ["GET /metrics", [FOREIGN], "", "403 40300"],
  ["POST /readyz", [length(BODY)], BODY, "405 40500"],
  ["DELETE /livez", [], "", "405 40500"],
  ["OPTIONS /readyz", PREFLIGHT, "", "204"],
  ["OPTIONS /api/v1/orders", PREFLIGHT, "", "204"],
  ["OPTIONS /nowhere", PREFLIGHT, "", "204"],
  ["GET /api/v1/ws", UPGRADE, "", "503 50300"],
  ["GET /api/v1/ws?token=x", UPGRADE, "", "503 50300"],
  ["GET /api/v1/markets", ["Accept: application/msgpack"], "", "503"],
  // Chunks are the last request of their connection, and so is a request whose end is in doubt.
  ["GET /api/v1/time", ["Transfer-Encoding: chunked"], "0\r\n\r\n", "503 50300"],
  // These two uWebSockets.js refuses by itself.
  ["POST /api/v1/orders", ["Transfer-Encoding: identity", length(BODY)], BODY, "400"],
  ["POST /api/v1/orders", ["Transfer-Encoding: gzip, chunked"], "0\r\n\r\n", "400 40000", "400", "closed"],
  ["GET /livez", ["Host: y"], "", "400 40000"],
  ["GET /readyz", ["Authorization: a", "Authorization: b"], "", "400 40000"],
  ["GET /api/v1/time", ["Authorization: a", "Authorization: b"], "", "400 40000"],
  ["POST /api/v1/orders", ["Idempotency-Key: a", "Idempotency-Key: b", length(BODY)], BODY, "400 40000"],
];

/** Resolves once a box responded to every case. @param wires a connection for each */
export async function expectEveryCase(wires: readonly Wire[]): Promise<void> {
  for (const [i, [line, fields, body, ...expected]] of CASES.entries()) {
    const wire = wires[i]!;
    const start = wire.received.length;
    wire.socket.write([`${line} HTTP/1.1`, "Host: x", "X-Request-Id: own-id", ...fields, "", body].join("\r\n"));
    const isHead = line.startsWith("HEAD");
    const text = (): string => wire.received.subarray(start).toString("latin1");
    await wire.until(() => isComplete(text(), isHead));
    expect([line, fields, outcomeOf(text())]).toEqual([line, fields, expect.toBeOneOf(expected)]);
    if (!expected.includes("closed") && !expected.includes("400")) expectPolicy(text(), isHead);
  }
}

/** As many connections as there are cases. */
export const connections = (port: number): Wire[] => CASES.map(() => new Wire(port));

function isComplete(text: string, isHead: boolean): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const given = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1];
  return isHead || text.length >= end + 4 + Number(given ?? 0);
}

function outcomeOf(text: string): string {
  const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1];
  if (status === undefined) return "closed";
  const code = /"code":(\d+)/.exec(text)?.[1];
  return code === undefined ? status : `${status} ${code}`;
}

function expectPolicy(text: string, isHead: boolean): void {
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const fields = new Map(
    head
      .split("\r\n")
      .slice(1)
      .map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 2)]),
  );
  expect(fields.get("x-request-id")).toBe("own-id");
  expect(fields.get("x-content-type-options")).toBe("nosniff");
  expect(fields.get("cache-control")).toBe("no-store");
  if (isHead) expect(body).toBe("");
  const status = head.slice(9, 12);
  if (status !== "204" || isHead) expect(Number(fields.get("content-length"))).toBeGreaterThanOrEqual(body.length);
  if (body.includes('"code":50300')) {
    expect(JSON.parse(body)).toEqual({ code: 50_300, msg: expect.any(String), data: null, trace_id: "own-id" });
    expect([fields.get("retry-after"), fields.get("access-control-allow-origin")]).toEqual(["1", "*"]);
    expect(fields.get("access-control-expose-headers")).toContain("Exchange-Active");
  }
}
