/**
 * Requests of every route, well framed, with something wrong in path, query, header or body as often as not; and what
 * any answer to them must be. The framing itself is attacked in bytes.ts.
 */
import type { Route } from "../../../server/http/route.ts";
import { API_BASE, checkAnswer, ROUTES } from "../../support/client.ts";
import { unpack } from "../../support/packed.ts";
import type { Random } from "../../support/random.ts";
import type { Attacker } from "./attacker.ts";
import type { RawAnswer } from "./link.ts";
import { type Schema, validObject, validValue } from "./valid.ts";
import { Exact, Fields, hostileText, mutated, NAMES, type Tree, toJson, toMessagePack } from "./values.ts";
import { MARKETS_TO_TRADE, OUTCOMES_TO_TRADE, UNIMPORTANT_ID } from "./world.ts";

const MESSAGE_PACK = "application/msgpack";
const CSV = "text/csv; charset=utf-8";
const HTML = "text/html; charset=utf-8";
/** uWebSockets.js takes so much of a request's head. */
const MAX_HEAD_BYTES = 4_096;

export interface FuzzRequest {
  readonly bytes: Buffer;
  readonly method: string;
  readonly target: string;
  readonly requestId: string;
  /** Came with a token that was good. */
  readonly isTokenGood: boolean;
}

/** Passwords are hashed on purpose slowly: such routes come less often, that the others get their turn. */
const SLOW = /^\/auth\/(login|register|reset-password)$|^\/me\/password$/;
/** They end the session that the others need. */
const ENDING = /^\/auth\/logout$|^\/me\/sessions\/:id$/;

function pickRoute(random: Random): Route {
  for (;;) {
    const route = random.pick(ROUTES);
    if (SLOW.test(route.path) ? random.chance(0.05) : !ENDING.test(route.path) || random.chance(0.1)) return route;
  }
}

/** The text's bytes as allowed in a request's head: without control characters, which break the framing. */
function headText(text: string): string {
  return Buffer.from(text)
    .toString("latin1")
    .replaceAll(/\p{Cc}/gu, encodeURIComponent);
}

/** The text as allowed in a target, where spaces and "?" have a meaning. */
function asTarget(text: string): string {
  return headText(text).replaceAll(/[ ?#]/g, encodeURIComponent);
}

function encoded(random: Random, text: string): string {
  if (random.chance(0.3)) return asTarget(text.slice(0, 600));
  try {
    return encodeURIComponent(text.slice(0, 300));
  } catch {
    return random.pick(["%ED%A0%80", "%ff", "%", "%u0041", "%00"]);
  }
}

function pathOf(random: Random, { path, unversioned, access }: Route): string {
  const ids = access === "operator" ? UNIMPORTANT_ID : path.includes("market") ? MARKETS_TO_TRADE : [1, 2, 3, 20, 60];
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => {
    if (random.chance(0.2)) return encoded(random, hostileText(random)) || "0";
    if (name === "code") return "builder";
    return String(
      random.pick(name === "outcome_id" ? OUTCOMES_TO_TRADE : name === "market_id" ? MARKETS_TO_TRADE : ids),
    );
  });
  const base = (unversioned ? "" : API_BASE) + filled;
  if (!random.chance(0.05)) return base;
  const at = random.integer(0, base.length);
  const trick = random.pick([
    "/",
    "//",
    "/./",
    "/../",
    "%2e%2e/",
    "%2F",
    ";a=b",
    "%00",
    "\\",
    "..;/",
    "*",
    ":",
    "%",
    "@",
  ]);
  return `/${(base.slice(0, at) + trick + base.slice(at)).replace(/^\/+/, "")}`;
}

function queryOf(random: Random, schema: Schema): string {
  const parts: string[] = [];
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const isNeeded = schema.required?.includes(name) === true;
    if (!isNeeded && !random.chance(0.4)) continue;
    const value = random.chance(0.3) ? hostileText(random) : plainText(validValue(random, field, name));
    parts.push(`${name}=${encoded(random, value)}`);
  }
  if (random.chance(0.1)) parts.push(`${encoded(random, random.pick(NAMES))}=1`);
  if (random.chance(0.1) && parts.length > 0) parts.push(random.pick(parts));
  if (random.chance(0.1)) parts.push(random.pick(["", "&", "=", "%", "a", "+", "?", "a=b=c", "%00=%00", "limit[]=1"]));
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function plainText(value: Tree): string {
  return typeof value === "string" ? value : value instanceof Exact ? value.json : String(toJson(value));
}

interface Body {
  readonly type: string;
  readonly bytes: Buffer;
}

function bodyOf(random: Random, route: Route): Body {
  const valid = route.path === "/orders/batch" ? batch(random) : validObject(random, route.body as unknown as Schema);
  let tree: Tree = valid;
  while (random.chance(0.55)) tree = mutated(random, tree);
  if (route.oauth && random.chance(0.9))
    return { type: "application/x-www-form-urlencoded", bytes: form(random, valid) };
  const isPacked = random.chance(0.3);
  let bytes = isPacked ? toMessagePack(tree) : Buffer.from(toJson(tree));
  if (random.chance(0.05)) bytes = damaged(random, bytes);
  const odd = [
    "text/plain",
    "application/json;charset=utf-7",
    "application/x-www-form-urlencoded",
    MESSAGE_PACK,
    "",
    "a/b/c",
  ];
  const type = random.chance(0.05) ? random.pick(odd) : isPacked ? MESSAGE_PACK : "application/json";
  return { type, bytes };
}

const BATCH_SCHEMAS = ["POST /orders", "PATCH /orders/:id"].map((template) => {
  return ROUTES.find(({ method, path }) => `${method} ${path}` === template)!.body as unknown as Schema;
});

export function batch(random: Random): Fields {
  const operations = Array.from({ length: random.integer(1, 4) }, (): Tree => {
    const kind = random.integer(0, 2);
    if (kind === 0)
      return new Fields([
        ["op", "cancel"],
        ["id", random.integer(1, 400)],
      ]);
    const { pairs } = validObject(random, BATCH_SCHEMAS[kind - 1]!);
    const head: [string, Tree][] =
      kind === 1
        ? [["op", "place"]]
        : [
            ["op", "amend"],
            ["id", random.integer(1, 400)],
          ];
    return new Fields([...head, ...pairs]);
  });
  return new Fields([["operations", operations]]);
}

function form(random: Random, { pairs }: Fields): Buffer {
  const parts = pairs.map(([name, value]) => {
    return `${name}=${encoded(random, random.chance(0.3) ? hostileText(random) : plainText(value))}`;
  });
  if (random.chance(0.1) && parts.length > 0) parts.push(random.pick(parts));
  return Buffer.from(parts.join("&"));
}

export function damaged(random: Random, bytes: Buffer): Buffer {
  const at = random.integer(0, bytes.length);
  if (random.chance(0.4)) return bytes.subarray(0, at);
  const piece = Buffer.from(Array.from({ length: random.integer(1, 4) }, () => random.integer(0, 255)));
  return Buffer.concat([
    bytes.subarray(0, at),
    piece,
    bytes.subarray(random.chance(0.5) ? at : Math.min(at + 2, bytes.length)),
  ]);
}

function fieldValue(random: Random): string {
  return headText(hostileText(random).slice(0, 300));
}

const ODD_FIELDS = [
  ...["Accept", "X-Builder-Code", "Origin", "Cookie", "User-Agent", "X-Forwarded-For", "Forwarded", "Content-Encoding"],
  ...[
    "Idempotency-Key",
    "If-None-Match",
    "If-Modified-Since",
    "Range",
    "TE",
    "X-HTTP-Method-Override",
    "X-Original-URL",
  ],
  ...[
    "Accept-Encoding",
    "Accept-Charset",
    "Referer",
    "Via",
    "Sec-Fetch-Site",
    "__proto__",
    "constructor",
    "Cache-Control",
  ],
];

/** @param index tells it from others of the run */
export function fuzzRequest(random: Random, attacker: Attacker, operator: Attacker, index: number): FuzzRequest {
  const route = pickRoute(random);
  const method = random.chance(0.02)
    ? random.pick(["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])
    : route.method;
  const target = pathOf(random, route) + queryOf(random, route.query as unknown as Schema);
  const requestId = `fuzz-${index}`;
  const token =
    route.access === "operator" ? operator.session : route.tokens.includes("pat") ? attacker.token : attacker.session;
  const isTokenGood = random.chance(0.93);
  const authorization = isTokenGood
    ? `Bearer ${token}`
    : random.pick([
        "",
        "Bearer",
        `Bearer ${fieldValue(random)}`,
        `Basic ${token}`,
        `Bearer ${token}x`,
        `bearer  ${token}`,
        `Bearer eyJhbGciOiJub25lIn0.e30.`,
      ]);
  const fields = ["Host: x", `X-Request-Id: ${requestId}`];
  if (!route.oauth) fields.push(`Authorization: ${authorization}`);
  if (random.chance(0.2))
    fields.push(
      `Accept: ${random.pick([MESSAGE_PACK, "text/csv", "*/*", "text/html;q=NaN, application/msgpack;q=1e9"])}`,
    );
  while (random.chance(0.15)) fields.push(`${random.pick(ODD_FIELDS)}: ${fieldValue(random)}`);
  let content: Buffer = Buffer.alloc(0);
  if (route.body !== null && !(method === "GET" && random.chance(0.9))) {
    const { type, bytes } = bodyOf(random, route);
    if (type !== "") fields.push(`Content-Type: ${type}`);
    if (random.chance(0.1)) {
      fields.push("Transfer-Encoding: chunked");
      content = Buffer.concat([...chunked(random, bytes), Buffer.from("0\r\n\r\n")]);
    } else {
      fields.push(`Content-Length: ${bytes.length}`);
      content = bytes;
    }
  }
  const head = `${method} ${target} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`;
  return { bytes: Buffer.concat([Buffer.from(head, "latin1"), content]), method, target, requestId, isTokenGood };
}

function chunked(random: Random, bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + random.integer(1, 5_000));
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
    at += piece.length;
  }
  return pieces;
}

/** Throws where the answer isn't what the contract has for any request. */
export function judge({ bytes, method, target, requestId }: FuzzRequest, answer: RawAnswer): void {
  const { status, headers, body } = answer;
  const headLength = bytes.indexOf("\r\n\r\n");
  if (status === 431 && headLength > MAX_HEAD_BYTES - 1_000) return;
  if (status === 500) throw new Error(`500: ${body.toString()}`);
  const type = headers["content-type"];
  if (type === CSV && status === 200) return;
  // Who asks for a page is shown that there is none; never where a program looks.
  if (type === HTML && status === 404 && !target.startsWith("/api/")) return;
  const isPacked = type === MESSAGE_PACK;
  const json = isPacked && body.length > 0 ? Buffer.from(JSON.stringify(unpack(body))) : body;
  const shown = isPacked ? { ...headers, "content-type": "application/json" } : headers;
  checkAnswer(method, target, requestId, { status, headers: shown, body: json });
}
