/**
 * A small REST client for tests. It checks every response: the envelope, the pair of HTTP status and code, the headers
 * that belong to it, the echoed request id, and the data against the route's own schema.
 * It owns one keep-alive agent; with one socket, its requests reach the server in order.
 */

import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { createRoutes, type RouteContext } from "../../server/bootstrap/gateway.ts";
import type { Route } from "../../server/http/route.ts";
import { envelopeOf } from "../../server/http/schemas.ts";
import type { MarketSchema, OutcomeBook, Trade } from "../../server/markets/schemas.ts";
import { errorStatuses } from "../../server/reference/openapi-responses.ts";
import type { Fill, Order, OwnFill } from "../../server/trading/schemas.ts";
import type { Balance, Position, Solvency, Transaction } from "../../server/wallet/schemas.ts";
import type { TestServer } from "./server.ts";

/** The server's route table, without the handlers' dependencies. */
export const ROUTES: readonly Route[] = createRoutes({
  exchange: {},
  history: {},
  totals: {},
  unready: () => null,
  standby: null,
} as unknown as RouteContext);
export const API_BASE = "/api/v1";

/** Of an order that has a price: only a market order without a bound has none. */
export type OrderJson = Omit<Static<typeof Order>, "price"> & { readonly price: number };
export type FillJson = Static<typeof Fill>;
export type OwnFillJson = Static<typeof OwnFill>;
export type BalanceJson = Static<typeof Balance>;
export type PositionJson = Static<typeof Position>;
export type TransactionJson = Static<typeof Transaction>;
export type TradeJson = Static<typeof Trade>;
export type BookJson = Static<typeof OutcomeBook>;
export type MarketJson = Static<typeof MarketSchema>;
export type SolvencyJson = Static<typeof Solvency>;

/** Every pair of HTTP status and code that the contract's table of errors has. */
const ERRORS: readonly (readonly [status: number, code: number])[] = [
  [400, 40000],
  [413, 40000],
  [401, 40100],
  [401, 2002],
  [403, 40300],
  [404, 4040],
  [405, 40500],
  [409, 40900],
  [422, 42201],
  [422, 42202],
  [422, 42203],
  [422, 42204],
  [429, 42900],
  [429, 42901],
  [500, 50000],
  [503, 50300],
];

export interface Answer<T = unknown> {
  readonly status: number;
  readonly code: number;
  readonly msg: string;
  readonly data: T;
  readonly headers: IncomingHttpHeaders;
}

/** This route responds to a page's sign-in with a redirect, and to every other client with JSON. */
const CALLBACK = "/auth/social/:provider/callback";

/** The headers for browsers and caches in every response. */
const POLICY: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
};

export interface Options {
  /** The client sends a value as JSON, and text and bytes unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

interface CheckedRoute {
  readonly route: Route;
  readonly pattern: RegExp;
  readonly envelope: (value: unknown) => void;
}

/** Throws, with the first differences, if a value doesn't match a schema. */
export function checkerOf(schema: TSchema, what: string): (value: unknown) => void {
  const validator = Compile(schema);
  return (value) => {
    if (validator.Check(value)) return;
    const errors = validator.Errors(value).slice(0, 3);
    throw new Error(`${what} is not of its schema: ${JSON.stringify(errors)} in ${JSON.stringify(value)}`);
  };
}

const CHECKED_ROUTES: readonly CheckedRoute[] = ROUTES.map((route) => {
  const path = (route.unversioned ? "" : API_BASE) + route.path;
  const schema = route.enveloped ? envelopeOf(route.response) : route.response;
  return {
    route,
    pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`),
    envelope: checkerOf(schema, `the answer to ${route.method} ${route.path}`),
  };
});

function expectThat(condition: boolean, what: string, raw: RawAnswer): asserts condition {
  if (!condition) throw new Error(`${what}: ${raw.status} ${JSON.stringify(raw.headers)} ${raw.body.toString()}`);
}

/** Less than the 10 s after which the server closes an idle connection: no request may meet that close. */
const IDLE_MS = 5_000;
let requestCount = 0;

/** Only the exchange's own pages may read session responses; caches may store only cacheable responses. */
export function expectPolicy(route: Route | undefined, raw: RawAnswer): void {
  const { status, headers } = raw;
  for (const [name, value] of Object.entries(POLICY)) expectThat(headers[name] === value, name, raw);
  const kept = status < 400 ? (route?.cache ?? "no-store") : "no-store";
  expectThat(headers["cache-control"] === kept, `Cache-Control is ${kept}`, raw);
  const readers = headers["access-control-allow-origin"];
  const isSessions =
    route?.access === "operator" ||
    route?.tokens.join() === "session" ||
    /^\/auth\/|^\/metrics$/.test(route?.path ?? "");
  if (isSessions) expectThat(/^https?:\/\/[^*]+$/.test(String(readers)), "no page of another origin may read it", raw);
  else expectThat(readers === "*", "pages of all origins may read it", raw);
  expectThat(headers["access-control-allow-credentials"] === undefined, "nobody's cookies", raw);
}

/** Lists are newest first unless the request names another order. @throws Error */
function expectNewestFirst(url: string, items: readonly unknown[]): void {
  if (/[?&]sort=|\/(feed|markets|me\/events)(\?|$)/.test(url)) return;
  let before = Number.POSITIVE_INFINITY;
  for (const item of items) {
    const { created_at, at } = item as { created_at?: number; at?: number };
    const time = created_at ?? at;
    if (time === undefined) return;
    if (time > before) throw new Error(`${url}: ${time} stands below ${before} in ${JSON.stringify(items)}`);
    before = time;
  }
}

/** Checks any response of the API and returns it as one object; a body without an envelope becomes `data`. */
export function checkAnswer(method: string, url: string, requestId: string | null, raw: RawAnswer): Answer {
  const path = url.split("?")[0]!;
  const matched = CHECKED_ROUTES.find(({ route, pattern }) => route.method === method && pattern.test(path));
  const { status, headers } = raw;
  expectPolicy(matched?.route, raw);
  const isDocumented = matched === undefined || status < 400 || errorStatuses(matched.route).includes(status);
  expectThat(isDocumented, `the API document has ${status} for ${method} ${matched?.route.path}`, raw);
  const type = status < 400 ? (matched?.route.contentType ?? null) : null;
  expectThat(headers["content-type"] === (type ?? "application/json"), "Content-Type", raw);
  if (requestId === null) expectThat(/^[\x21-\x7e]+$/.test(String(headers["x-request-id"])), "X-Request-Id", raw);
  else expectThat(headers["x-request-id"] === requestId, `X-Request-Id echoes ${requestId}`, raw);
  if (status === 302) {
    const redirects = matched?.route.status === 302 || matched?.route.path === CALLBACK;
    expectThat(redirects && headers.location !== undefined, "a redirect of the route's", raw);
    expectThat(raw.body.length === 0, "a redirect has no body", raw);
    return { status, code: 0, msg: "", data: null, headers };
  }
  if (type !== null) {
    const text = raw.body.toString();
    const data: unknown = type === "application/json" ? JSON.parse(text) : text;
    matched!.envelope(data);
    return { status, code: 0, msg: "", data, headers };
  }
  const body = JSON.parse(raw.body.toString()) as Record<string, unknown>;
  if (matched?.route.oauth === true && status >= 400) {
    // RFC 6749, section 5.2: no envelope, and no code of ours.
    const { error, error_description: text, ...rest } = body;
    expectThat(typeof error === "string" && /^[a-z_]+$/.test(error), "an OAuth error", raw);
    expectThat(Object.keys(rest).length === 0 && (text === undefined || typeof text === "string"), "its fields", raw);
    return { status, code: status, msg: error, data: body, headers };
  }
  if (matched !== undefined && !matched.route.enveloped && !("code" in body)) {
    matched.envelope(body);
    return { status, code: 0, msg: "", data: body, headers };
  }
  const {
    code,
    msg,
    data,
    trace_id: traceId,
  } = body as { code: number; msg: string; data: unknown; trace_id: unknown };
  expectThat(typeof msg === "string" && msg !== "" && msg.length < 300, "msg says something in short", raw);
  if (status < 400) {
    expectThat(matched !== undefined && status === matched.route.status, "the route's own success status", raw);
    expectThat(code === 0, "code 0 on success", raw);
    matched.envelope(body);
    if (method === "GET") expectNewestFirst(url, (data as { items?: readonly unknown[] } | null)?.items ?? []);
    return { status, code, msg, data, headers };
  }
  expectThat(
    ERRORS.some(([s, c]) => s === status && c === code),
    "a pair of status and code of the contract",
    raw,
  );
  expectThat(data === null, "data is null on an error", raw);
  const names = Object.keys(body).sort().join();
  if (status >= 500) {
    expectThat(names === "code,data,msg,trace_id", "trace_id on 5xx and nothing more", raw);
    expectThat(traceId !== "" && traceId === headers["x-request-id"], "trace_id equals X-Request-Id", raw);
  } else expectThat(names === "code,data,msg", "no trace_id below 500", raw);
  if (status === 429 || status === 503) expectThat(Number(headers["retry-after"]) >= 1, "Retry-After", raw);
  if (status === 405) expectThat(headers.allow !== undefined, "Allow", raw);
  return { status, code, msg, data, headers };
}

/** An error response where the test expects success. */
class UnexpectedAnswer extends Error {
  readonly answer: Answer;

  constructor(what: string, answer: Answer) {
    super(`${what}: ${answer.status} ${answer.code} ${answer.msg}`);
    this.answer = answer;
  }
}

export class Client {
  readonly server: TestServer;
  readonly token: string | null;
  private readonly agent: Agent;

  /** @param sockets the most requests in flight at one time */
  constructor(server: TestServer, token: string | null, sockets = 1) {
    this.server = server;
    this.token = token;
    this.agent = new Agent({ keepAlive: true, maxSockets: sockets, timeout: IDLE_MS });
  }

  /** Sends a request and checks its response, whatever the status. `path` is below /api/v1. */
  async request<T = unknown>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
    return (await this.requestRoot(method, API_BASE + path, options)) as Answer<T>;
  }

  async requestRoot(method: string, path: string, options: Options = {}): Promise<Answer> {
    const requestId = `test-${++requestCount}`;
    const headers: Record<string, string> = { "X-Request-Id": requestId };
    if (this.token !== null) headers["Authorization"] = `Bearer ${this.token}`;
    const { body } = options;
    const isRaw = typeof body === "string" || Buffer.isBuffer(body);
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const payload = body === undefined ? null : isRaw ? body : JSON.stringify(body);
    Object.assign(headers, options.headers);
    return checkAnswer(method, path, requestId, await this.send(method, path, headers, payload));
  }

  /** The bare exchange of bytes. */
  send(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: string | Buffer | null,
  ): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      const { agent } = this;
      // Send the raw path: the URL class would normalise it.
      const options = { host: "127.0.0.1", port: this.server.port, path, method, headers, agent };
      const request = httpRequest(options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) });
        });
      });
      request.on("error", reject);
      // With a known length, the body goes out in one write.
      if (body === null) request.end();
      else {
        if (!("Transfer-Encoding" in headers)) request.setHeader("Content-Length", Buffer.byteLength(body));
        request.end(body);
      }
    });
  }

  /** The data of a success. @throws UnexpectedAnswer */
  async data<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.request<T>(method, path, body === undefined ? {} : { body });
    if (answer.code !== 0) throw new UnexpectedAnswer(`${method} ${path}`, answer);
    return answer.data;
  }

  get<T>(path: string): Promise<T> {
    return this.data<T>("GET", path);
  }

  place(order: object): Promise<OrderJson> {
    return this.data("POST", "/orders", order);
  }

  cancel(id: number): Promise<OrderJson> {
    return this.data("DELETE", `/orders/${id}`);
  }

  order(id: number): Promise<OrderJson> {
    return this.get(`/orders/${id}`);
  }

  balance(): Promise<BalanceJson> {
    return this.get("/wallet/balance");
  }

  book(marketId: number, outcomeId: number): Promise<BookJson> {
    return this.get(`/orderbook/${marketId}/${outcomeId}`);
  }

  solvency(): Promise<SolvencyJson> {
    return this.get("/solvency");
  }

  /** Returns every item of a cursor-paginated list. */
  async all<T>(path: string, limit = 200): Promise<T[]> {
    const items: T[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const query = `${path.includes("?") ? "&" : "?"}limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`;
      const page: { items: T[]; next_cursor: string | null } = await this.get(path + query);
      items.push(...page.items);
      cursor = page.next_cursor;
    }
    expectNewestFirst(path, items);
    return items;
  }

  async position(outcomeId: number): Promise<PositionJson | undefined> {
    return (await this.all<PositionJson>("/me/positions")).find((position) => position.outcome_id === outcomeId);
  }

  close(): void {
    this.agent.destroy();
  }
}

/** Sends one request over its own connection and returns the response. */
export async function askOnce<T = unknown>(
  server: TestServer,
  token: string | null,
  method: string,
  path: string,
  options: Options = {},
): Promise<Answer<T>> {
  const client = new Client(server, token);
  try {
    return await client.request<T>(method, path, options);
  } finally {
    client.close();
  }
}
