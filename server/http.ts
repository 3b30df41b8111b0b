/**
 * The one place that touches uWebSockets.js requests and responses: reads a request whole and synchronously, runs its
 * route, writes the answer once. Handlers are values in, values out and know nothing of sockets.
 *
 * A `Reply` outlives its request: it is answered once, or never where the client went away.
 */

import type { HttpRequest, HttpResponse, TemplatedApp } from "uWebSockets.js";
import { isAscii } from "node:buffer";
import { randomBytes } from "node:crypto";
import { MAX_BODY_BYTES } from "../engine/limits.ts";
import type { Accounts, Principal } from "./accounts.ts";
import { ApiError, badRequest, ErrorKind } from "./errors.ts";
import type { Logger } from "./logger.ts";
import type { Route, RouteRequest } from "./routes.ts";
import { type Check, compileQuery, compileSchema } from "./validate.ts";

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

function successBody(dataJson: string): string {
  return `{"code":0,"msg":"ok","data":${dataJson}}`;
}

/** @param traceId given on 5xx only */
export function errorBody(error: ApiError, traceId: string): string {
  const trace = error.kind.status >= 500 ? `,"trace_id":${JSON.stringify(traceId)}` : "";
  return `{"code":${error.kind.code},"msg":${JSON.stringify(error.message)},"data":null${trace}}`;
}

/** The way back to one client. `data` and `error` make it an exchange `Answer`; later calls do nothing. */
export class Reply {
  readonly requestId: string;
  private readonly res: HttpResponse;
  private readonly status: number;
  private readonly logger: Logger;
  private over = false;

  constructor(res: HttpResponse, requestId: string, status: number, logger: Logger) {
    this.res = res;
    this.requestId = requestId;
    this.status = status;
    this.logger = logger;
    res.onAborted(() => {
      this.over = true;
    });
  }

  get done(): boolean {
    return this.over;
  }

  data(json: string): void {
    this.send(this.status, "application/json", successBody(json), null);
  }

  /** A body that is not enveloped: health and what standards fix. */
  plain(status: number, json: string): void {
    this.send(status, "application/json", json, null);
  }

  /** @param isHead the request was HEAD: its answer has no body */
  error(error: ApiError, allow: string | null = null, isHead = false): void {
    if (this.over) return;
    this.over = true;
    const { kind, retryAfter } = error;
    const body = errorBody(error, this.requestId);
    if (kind.status === 500) this.logger.error({ traceId: this.requestId }, error.message);
    this.res.cork(() => {
      this.res.writeStatus(STATUS_LINES[kind.status]!).writeHeader("Content-Type", "application/json");
      this.res.writeHeader("X-Request-Id", this.requestId);
      if (retryAfter !== null) this.res.writeHeader("Retry-After", String(retryAfter));
      if (kind.status === 401) this.res.writeHeader("WWW-Authenticate", "Bearer");
      if (allow !== null) this.res.writeHeader("Allow", allow);
      // With a length uWebSockets.js would leave the response open.
      if (isHead) this.res.endWithoutBody();
      // A body that was refused unread would be taken for the next request.
      else this.res.end(body, kind.status === 413);
    });
  }

  /** Answers whatever was thrown: user mistakes in their own words, our own with a trace id and nothing else. */
  fail(thrown: unknown): void {
    if (thrown instanceof ApiError) {
      this.error(thrown);
      return;
    }
    this.logger.error({ traceId: this.requestId, err: thrown }, "a handler failed");
    this.error(new ApiError(ErrorKind.internal, "internal error"));
  }

  private send(status: number, type: string, body: string, etag: string | null): void {
    if (this.over) return;
    this.over = true;
    this.res.cork(() => {
      this.res.writeStatus(STATUS_LINES[status]!).writeHeader("Content-Type", type);
      this.res.writeHeader("X-Request-Id", this.requestId);
      if (etag !== null) this.res.writeHeader("ETag", etag);
      this.res.end(body);
    });
  }
}

interface CompiledRoute {
  readonly route: Route;
  readonly query: Check<unknown>;
  readonly body: Check<unknown> | null;
}

export interface HttpOptions {
  readonly accounts: Accounts;
  readonly logger: Logger;
  /** Null while the exchange is open; else what every route outside health is answered with. */
  readonly closed: () => ApiError | null;
}

/** Registers every route of the table, 405 for their other methods and 404 for the rest. */
export function registerRoutes(app: TemplatedApp, routes: readonly Route[], options: HttpOptions): void {
  const methodsOf = new Map<string, string[]>();
  for (const route of routes) {
    const compiled = { route, query: compileQuery(route.query), body: route.body ? compileSchema(route.body) : null };
    const path = (route.unversioned ? "" : API_BASE) + route.path;
    const methods = methodsOf.get(path) ?? [];
    methods.push(route.method);
    methodsOf.set(path, methods);
    const handler = (res: HttpResponse, req: HttpRequest): void => serve(compiled, res, req, options);
    if (route.method === "GET") app.get(path, handler);
    else if (route.method === "POST") app.post(path, handler);
    else app.del(path, handler);
  }
  for (const [path, methods] of methodsOf) {
    const allow = methods.join(", ");
    app.any(path, (res, req) => {
      const reply = new Reply(res, requestIdOf(req), 200, options.logger);
      const error = new ApiError(ErrorKind.methodNotAllowed, `this path takes ${allow}`);
      reply.error(error, allow, req.getMethod() === "head");
    });
  }
  app.any("/*", (res, req) => {
    const reply = new Reply(res, requestIdOf(req), 200, options.logger);
    reply.error(new ApiError(ErrorKind.notFound, "no such path"), null, req.getMethod() === "head");
  });
}

/** One request: everything is read from `req` before this returns, the body comes later. */
function serve(compiled: CompiledRoute, res: HttpResponse, req: HttpRequest, options: HttpOptions): void {
  const { route } = compiled;
  const reply = new Reply(res, requestIdOf(req), route.status, options.logger);
  try {
    const now = Date.now();
    const closed = route.unversioned ? null : options.closed();
    if (closed !== null) throw closed;
    const principal = route.access === "public" ? null : authorize(route, req, options.accounts, now);
    const request: RouteRequest = {
      now,
      principal,
      params: route.path.includes(":") ? [req.getParameter(0) ?? "", req.getParameter(1) ?? ""] : NO_PARAMS,
      query: compiled.query(req.getQuery() ?? ""),
      body: null,
      reply,
    };
    if (compiled.body === null) {
      run(route, request, reply);
      return;
    }
    checkContentType(req.getHeader("content-type"));
    readBody(res, req, reply, (body) => {
      request.body = compiled.body!(body);
      run(route, request, reply);
    });
  } catch (error) {
    reply.fail(error);
  }
}

const NO_PARAMS: readonly [string, string] = ["", ""];

function authorize(route: Route, req: HttpRequest, accounts: Accounts, now: number): Principal {
  const principal = accounts.authenticateHeader(req.getHeader("authorization"), now);
  if (!route.tokens.includes(principal.pat ? "pat" : "session")) {
    throw new ApiError(ErrorKind.forbidden, "this kind of token cannot be used here");
  }
  if (route.scope !== null && !principal.scopes.has(route.scope)) {
    throw new ApiError(ErrorKind.forbidden, `the token lacks the scope ${route.scope}`);
  }
  if (principal.kycTier < route.minTier) {
    throw new ApiError(ErrorKind.forbidden, `requires KYC tier ${route.minTier}, the account has ${principal.kycTier}`);
  }
  return principal;
}

/** Runs the handler: an answer now, one to come, or (undefined) one that the handler gives through the reply. */
function run(route: Route, request: RouteRequest, reply: Reply): void {
  const answer = route.handler(request);
  if (answer === undefined) return;
  if (answer instanceof Promise) {
    answer.then(
      (json) => {
        if (json !== undefined) answerJson(route, reply, json);
      },
      (error) => reply.fail(error),
    );
  } else answerJson(route, reply, answer);
}

function answerJson(route: Route, reply: Reply, json: string): void {
  if (route.enveloped) reply.data(json);
  else reply.plain(route.status, json);
}

function checkContentType(type: string): void {
  if (type === "application/json" || type === "" || /^application\/json\s*(;|$)/i.test(type)) return;
  throw badRequest("Content-Type: must be application/json");
}

/** Collects the body, counting as it comes; the chunks are detached when the callback returns, so each is copied. */
function readBody(res: HttpResponse, req: HttpRequest, reply: Reply, done: (body: unknown) => void): void {
  if (Number(req.getHeader("content-length")) > MAX_BODY_BYTES) throw tooLarge();
  let collected: Buffer | null = null;
  res.onData((chunk, isLast) => {
    if (reply.done) return;
    try {
      if (isLast && collected === null) {
        if (chunk.byteLength > MAX_BODY_BYTES) throw tooLarge();
        done(parseJson(Buffer.from(chunk)));
        return;
      }
      collected = collected === null ? Buffer.from(Buffer.from(chunk)) : Buffer.concat([collected, Buffer.from(chunk)]);
      if (collected.length > MAX_BODY_BYTES) throw tooLarge();
      if (isLast) done(parseJson(collected));
    } catch (error) {
      reply.fail(error);
    }
  });
}

function tooLarge(): ApiError {
  return new ApiError(ErrorKind.tooLarge, `the body is larger than ${MAX_BODY_BYTES} bytes`);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function parseJson(bytes: Buffer): unknown {
  try {
    // Most bodies are ASCII, which needs neither a check for malformed UTF-8 nor a decoder.
    return JSON.parse(isAscii(bytes) ? bytes.toString("latin1") : utf8.decode(bytes));
  } catch {
    throw badRequest("the body is not valid JSON");
  }
}
