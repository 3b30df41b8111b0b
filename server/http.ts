/**
 * The one place that touches uWebSockets.js requests and responses: reads a request whole and synchronously, runs its
 * route, writes the answer once. Handlers are values in, values out and know nothing of sockets.
 *
 * A `Reply` outlives its request: it is answered once, or never where the client went away.
 */

import type { HttpRequest, HttpResponse, TemplatedApp } from "uWebSockets.js";
import { randomBytes } from "node:crypto";
import { MAX_BODY_BYTES } from "../engine/limits.ts";
import type { Accounts, Principal } from "./accounts.ts";
import type { AddressReader } from "./client-address.ts";
import { authorize, type CompiledRoute, countRequest, creditedTo, DIRECT, execute } from "./dispatch.ts";
import { errorBody, successBody } from "./envelope.ts";
import { ApiError, asApiError, badRequest, ErrorKind } from "./errors.ts";
import { type Logger, logInternal } from "./logger.ts";
import { decodeMessage, encodeJson } from "./msgpack.ts";
import type { Origin } from "./order-entry.ts";
import type { OrderedReads } from "./ordered-reads.ts";
import { parseJson } from "./parse-json.ts";
import { RateLimited, type RateLimiter, type RateState } from "./rate-limiter.ts";
import type { Responder, RouteRequest } from "./routes.ts";

export const API_BASE = "/api/v1";

const STATUS_LINES: Record<number, string> = {
  200: "200 OK",
  201: "201 Created",
  202: "202 Accepted",
  400: "400 Bad Request",
  401: "401 Unauthorized",
  403: "403 Forbidden",
  404: "404 Not Found",
  405: "405 Method Not Allowed",
  409: "409 Conflict",
  413: "413 Payload Too Large",
  422: "422 Unprocessable Entity",
  429: "429 Too Many Requests",
  500: "500 Internal Server Error",
  503: "503 Service Unavailable",
};

/** A request id that a client may choose: visible ASCII, so that it can be echoed and logged as it is. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;
const bootId = randomBytes(6).toString("hex");
let requestCount = 0;

/** Unique over the life of this process, and most likely over others. */
export function newRequestId(): string {
  requestCount++;
  return `${bootId}-${requestCount.toString(36)}`;
}

/** The client's own id where it is usable, else a new one. */
export function requestIdOf(req: HttpRequest): string {
  const given = req.getHeader("x-request-id");
  return given !== "" && REQUEST_ID.test(given) ? given : newRequestId();
}

/** The way back to one client. `data` and `error` make it an exchange `Answer`; later calls do nothing. */
export class Reply implements Responder {
  readonly requestId: string;
  /** What is left of the limits that counted the request. */
  rate: RateState | null = null;
  private readonly res: HttpResponse;
  private readonly status: number;
  private readonly logger: Logger;
  private readonly packed: boolean;
  private over = false;

  /** @param accept the request's Accept header */
  constructor(res: HttpResponse, requestId: string, status: number, accept: string, logger: Logger) {
    this.res = res;
    this.requestId = requestId;
    this.status = status;
    this.packed = accept !== "" && accept !== "*/*" && prefersMessagePack(accept);
    this.logger = logger;
    res.onAborted(() => {
      this.over = true;
    });
  }

  get done(): boolean {
    return this.over;
  }

  data(json: string): void {
    this.send(this.status, successBody(json));
  }

  /** A body that is not enveloped: health and what standards fix. */
  plain(status: number, json: string): void {
    this.send(status, json);
  }

  /** @param isHead the request was HEAD: its answer has no body */
  error(error: ApiError, allow: string | null = null, isHead = false): void {
    logInternal(this.logger, error, this.requestId);
    if (this.over) return;
    this.over = true;
    const { kind, retryAfter } = error;
    const body = errorBody(error, this.requestId);
    if (error instanceof RateLimited) this.rate = error.rate;
    this.res.cork(() => {
      this.writeHead(kind.status);
      if (retryAfter !== null) this.res.writeHeader("Retry-After", String(retryAfter));
      if (kind.status === 401) this.res.writeHeader("WWW-Authenticate", "Bearer");
      if (allow !== null) this.res.writeHeader("Allow", allow);
      // With a length uWebSockets.js would leave the response open.
      if (isHead) this.res.endWithoutBody();
      // A body that was refused unread would be taken for the next request.
      else this.res.end(this.packed ? encodeJson(body) : body, kind.status === 413);
    });
  }

  /** Answers whatever was thrown: user mistakes in their own words, our own with a trace id and nothing else. */
  fail(thrown: unknown): void {
    this.error(asApiError(thrown));
  }

  private send(status: number, body: string): void {
    if (this.over) return;
    this.over = true;
    this.res.cork(() => {
      this.writeHead(status);
      this.res.end(this.packed ? encodeJson(body) : body);
    });
  }

  private writeHead(status: number): void {
    const { res, rate } = this;
    res.writeStatus(STATUS_LINES[status]!).writeHeader("Content-Type", this.packed ? MESSAGE_PACK : "application/json");
    res.writeHeader("X-Request-Id", this.requestId);
    if (rate === null) return;
    res.writeHeader("RateLimit-Limit", String(rate.limit));
    res.writeHeader("RateLimit-Remaining", String(rate.remaining));
    res.writeHeader("RateLimit-Reset", String(rate.reset));
  }
}

const MESSAGE_PACK = "application/msgpack";

/** True where the Accept header names MessagePack and wants no JSON more. RFC 9110, section 12.5.1. */
function prefersMessagePack(accept: string): boolean {
  if (!/msgpack/i.test(accept)) return false;
  const weights = new Map<string, number>();
  for (const entry of accept.toLowerCase().split(",")) {
    const [type, ...params] = entry.split(";").map((part) => part.trim());
    const quality = params.find((param) => param.startsWith("q="));
    weights.set(type!, quality === undefined ? 1 : Number(quality.slice(2)) || 0);
  }
  const packed = weights.get(MESSAGE_PACK) ?? 0;
  // The most specific range counts.
  const json = weights.get("application/json") ?? weights.get("application/*") ?? weights.get("*/*") ?? 0;
  return packed > 0 && packed >= json;
}

export interface HttpOptions {
  readonly accounts: Accounts;
  readonly logger: Logger;
  /** Null where nothing is limited. */
  readonly limiter: RateLimiter | null;
  readonly addressOf: AddressReader;
  /** Some peers' X-Forwarded-For counts. */
  readonly hasProxies: boolean;
  /** Null while the exchange is open; else what every route outside health is answered with. */
  readonly closed: () => ApiError | null;
  readonly reads: OrderedReads;
}

/** Registers every route of the table, 405 for their other methods and 404 for the rest. */
export function registerRoutes(app: TemplatedApp, routes: readonly CompiledRoute[], options: HttpOptions): void {
  const methodsOf = new Map<string, string[]>();
  for (const compiled of routes) {
    const { route } = compiled;
    const path = (route.unversioned ? "" : API_BASE) + route.path;
    const methods = methodsOf.get(path) ?? [];
    methods.push(route.method);
    methodsOf.set(path, methods);
    const handler = (res: HttpResponse, req: HttpRequest): void => serve(compiled, res, req, options);
    if (route.method === "GET") app.get(path, handler);
    else if (route.method === "POST") app.post(path, handler);
    else if (route.method === "PUT") app.put(path, handler);
    else if (route.method === "PATCH") app.patch(path, handler);
    else app.del(path, handler);
  }
  const refuse = (res: HttpResponse, req: HttpRequest, error: ApiError, allow: string | null): void => {
    const reply = new Reply(res, requestIdOf(req), 200, req.getHeader("accept"), options.logger);
    reply.error(error, allow, req.getMethod() === "head");
  };
  for (const [path, methods] of methodsOf) {
    const allow = methods.join(", ");
    const error = new ApiError(ErrorKind.methodNotAllowed, `this path takes ${allow}`);
    app.any(path, (res, req) => refuse(res, req, error, allow));
  }
  const error = new ApiError(ErrorKind.notFound, "no such path");
  app.any("/*", (res, req) => refuse(res, req, error, null));
}

/** One request: everything is read from `req` before this returns, the body comes later. */
function serve(compiled: CompiledRoute, res: HttpResponse, req: HttpRequest, options: HttpOptions): void {
  const { route } = compiled;
  const reply = new Reply(res, requestIdOf(req), route.status, req.getHeader("accept"), options.logger);
  try {
    const now = Date.now();
    const closed = route.unversioned ? null : options.closed();
    if (closed !== null) throw closed;
    const address = options.limiter === null ? "" : clientAddress(res, req, options);
    const principal = identify(compiled, req, reply, address, options, now);
    const request: RouteRequest = {
      now,
      principal,
      address,
      origin: route.credited ? originOf(req) : DIRECT,
      params: route.path.includes(":") ? [req.getParameter(0) ?? "", req.getParameter(1) ?? ""] : NO_PARAMS,
      query: compiled.query(req.getQuery() ?? ""),
      body: null,
      reply,
    };
    if (compiled.body === null) {
      execute(route, request, reply, options.reads);
      return;
    }
    const parse = parserOf(req.getHeader("content-type"));
    readBody(res, req, reply, (body) => {
      request.body = compiled.body!(parse(body));
      execute(route, request, reply, options.reads);
    });
  } catch (error) {
    reply.fail(error);
  }
}

const NO_PARAMS: readonly [string, string] = ["", ""];

function originOf(req: HttpRequest): Origin {
  const builderCode = req.getHeader("x-builder-code");
  return builderCode === "" ? DIRECT : creditedTo(DIRECT, builderCode, "X-Builder-Code");
}

/** Who limits count the request for, where nobody signs in. */
export function clientAddress(
  res: HttpResponse,
  req: HttpRequest,
  options: { readonly addressOf: AddressReader; readonly hasProxies: boolean },
): string {
  const peer = Buffer.from(res.getRemoteAddressAsText()).toString("latin1");
  return options.addressOf(peer, options.hasProxies ? forwardedFor(req) : "");
}

/** All lines of the header as one: a proxy may add a line of its own below the client's, and `getHeader` gives the first. */
function forwardedFor(req: HttpRequest): string {
  const lines: string[] = [];
  req.forEach((name, value) => {
    if (name === "x-forwarded-for") lines.push(value);
  });
  return lines.join(",");
}

/** Who asks, once the request is counted: a user's among the user's, all others by their address. @throws ApiError */
function identify(
  compiled: CompiledRoute,
  req: HttpRequest,
  reply: Reply,
  address: string,
  { accounts, limiter }: HttpOptions,
  now: number,
): Principal | null {
  const isPublic = compiled.route.access === "public";
  // On a public route a token only says whose limit counts.
  if (isPublic && limiter === null) return null;
  const header = req.getHeader("authorization");
  let principal: Principal | null = null;
  let refusal: unknown = null;
  if (!isPublic || header !== "") {
    try {
      principal = accounts.authenticateHeader(header, now);
    } catch (error) {
      refusal = error;
    }
  }
  reply.rate = countRequest(limiter, compiled, principal, address, now);
  if (isPublic) return principal;
  if (principal === null) throw refusal;
  authorize(compiled.route, principal);
  return principal;
}

/** How the body is read. @throws ApiError 40000 for any other content type */
function parserOf(type: string): (bytes: Buffer) => unknown {
  if (type === "application/json" || type === "" || /^application\/json\s*(;|$)/i.test(type)) return readJson;
  if (/^application\/msgpack\s*(;|$)/i.test(type)) return readMessagePack;
  throw badRequest("Content-Type: must be application/json or application/msgpack");
}

/** Collects the body, counting as it comes; the chunks are detached when the callback returns, so each is copied. */
function readBody(res: HttpResponse, req: HttpRequest, reply: Reply, done: (body: Buffer) => void): void {
  if (Number(req.getHeader("content-length")) > MAX_BODY_BYTES) throw tooLarge();
  let collected: Buffer | null = null;
  res.onData((chunk, isLast) => {
    if (reply.done) return;
    try {
      if (isLast && collected === null) {
        if (chunk.byteLength > MAX_BODY_BYTES) throw tooLarge();
        done(Buffer.from(chunk));
        return;
      }
      collected = collected === null ? Buffer.from(Buffer.from(chunk)) : Buffer.concat([collected, Buffer.from(chunk)]);
      if (collected.length > MAX_BODY_BYTES) throw tooLarge();
      if (isLast) done(collected);
    } catch (error) {
      reply.fail(error);
    }
  });
}

function tooLarge(): ApiError {
  return new ApiError(ErrorKind.tooLarge, `the body is larger than ${MAX_BODY_BYTES} bytes`);
}

/** @param read throws where the bytes are not of the format `name` */
function readerOf(name: string, read: (bytes: Buffer) => unknown): (bytes: Buffer) => unknown {
  return (bytes) => {
    try {
      return read(bytes);
    } catch {
      throw badRequest(`the body is not valid ${name}`);
    }
  };
}

const readJson = readerOf("JSON", parseJson);
const readMessagePack = readerOf("MessagePack", decodeMessage);
