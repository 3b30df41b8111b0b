/**
 * The one place that touches uWebSockets.js requests and responses: reads a request whole and synchronously, runs its
 * route, writes the answer once. Handlers are values in, values out and know nothing of sockets.
 *
 * A `Reply` outlives its request: it is answered once, or never where the client went away.
 */

import type { HttpRequest, HttpResponse, TemplatedApp } from "uWebSockets.js";
import { randomBytes } from "node:crypto";
import type { Principal, TokenAuthenticator } from "../accounts/types.ts";
import { ApiError, asApiError, badRequest, ErrorKind } from "../errors.ts";
import { type Logger, logInternal } from "../logger.ts";
import type { OrderedReads, Origin } from "../trading/types.ts";
import type { Counters } from "../util/counters.ts";
import { type AddressReader, type ClientAddress, NO_ADDRESS } from "./client-address.ts";
import { prefers } from "./content-negotiation.ts";
import type { Header } from "./deprecation.ts";
import { authorize, type CompiledRoute, countRequest, creditedTo, DIRECT, execute } from "./dispatch.ts";
import { API_BASE, errorBody, oauthErrorBody, successBody } from "./envelope.ts";
import type { EventLoopGuard } from "./event-loop-guard.ts";
import { MAX_BODY_BYTES, MAX_EMAIL_LENGTH, MAX_SIGN_IN_BODY_BYTES } from "./limits.ts";
import { decodeMessage, encodeJson } from "./message-pack.ts";
import { parseJson } from "./parse-json.ts";
import { RateLimited, type RateLimiter, type RateState } from "./rate-limiter.ts";
import { RequestHead } from "./request-head.ts";
import type { ResponseThrottle } from "./response-throttle.ts";
import type { Responder, Route, RouteRequest } from "./route.ts";
import { isForOwnPages, type SecurityHeaders } from "./security-headers.ts";
import type { SiteResponse, StaticSite } from "./static-site.ts";

const STATUS_LINES: Record<number, string> = {
  200: "200 OK",
  201: "201 Created",
  202: "202 Accepted",
  204: "204 No Content",
  302: "302 Found",
  304: "304 Not Modified",
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
function requestIdOf(given: string): string {
  return given !== "" && REQUEST_ID.test(given) ? given : newRequestId();
}

/** Of the request that is being handed over: read before anything else, and only before its handler returns. */
const head = new RequestHead();

/** How a route's answers look. */
interface ReplyOptions {
  readonly logger: Logger;
  readonly counters: Counters;
  /** Of a success. */
  readonly status: number;
  /** Of a success, null where it is JSON or MessagePack. */
  readonly contentType: string | null;
  /** Errors have the shape of RFC 6749. */
  readonly oauth: boolean;
  /** Refusals leave at a bounded pace. */
  readonly pace: ResponseThrottle | null;
  /** Where a browser is sent in place of an error; null where the error is answered. */
  readonly failurePage: ((error: ApiError) => string) | null;
  /** Of every answer. */
  readonly headers: readonly Header[];
  readonly policy: SecurityHeaders;
  readonly turn: EventLoopGuard;
  /** Pages of other origins may not read it. */
  readonly isOwn: boolean;
  /** The request was HEAD: its answer is GET's without the body. */
  readonly isHead: boolean;
  /** Cache-Control of a success, null where nobody may keep it. */
  readonly cache: string | null;
}

/** The way back to one client. `data` and `error` make it an exchange `Answer`; later calls do nothing. */
export class Reply implements Responder {
  readonly requestId: string;
  /** What is left of the limits that counted the request. */
  rate: RateState | null = null;
  private readonly res: HttpResponse;
  private readonly options: ReplyOptions;
  private readonly packed: boolean;
  /** A person is to read the answer. */
  private readonly isShown: boolean;
  /** The connection ends with it. */
  private readonly isLast: boolean;
  /** Nothing that came behind its request is to be answered in this turn of the event loop. */
  private readonly isHeldBack: boolean;
  /** Its refusals, too, leave at once: the limits let it pass, in the few places that a known address has. */
  private isUnpaced = false;
  private headers: Header[] | null = null;
  private isAnswered = false;
  private isAborted = false;
  /** Called when the client goes away while a piece waits for it. */
  private onAborted: () => void = () => {};

  constructor(res: HttpResponse, { requestId, accept, isLast }: RequestHead, options: ReplyOptions) {
    this.res = res;
    this.requestId = requestIdOf(requestId);
    this.options = options;
    this.isLast = isLast;
    this.isHeldBack = options.turn.isLong(Date.now()) || isLast;
    this.packed = accept !== "" && accept !== "*/*" && prefers(accept, MESSAGE_PACK);
    this.isShown = options.failurePage !== null && prefers(accept, "text/html");
    options.counters.http.requests++;
    res.onAborted(() => {
      this.isAborted = true;
      this.onAborted();
    });
  }

  get done(): boolean {
    return this.isAnswered || this.isAborted;
  }

  /** Pages of other origins have no business with its route. */
  get isOwn(): boolean {
    return this.options.isOwn;
  }

  /** No refusal waits for those of strangers. */
  skipPace(): void {
    this.isUnpaced = true;
  }

  /** So many bytes of the body have come. */
  received(bytes: number): void {
    this.options.counters.http.receivedBytes += bytes;
  }

  header(name: string, value: string): void {
    this.headers ??= [];
    this.headers.push([name, value]);
  }

  data(json: string): void {
    this.send(this.options.status, successBody(json));
  }

  /** A body that is not enveloped: health, redirects, and what standards fix. */
  plain(status: number, body: string | Uint8Array): void {
    if (status < 400 || this.options.pace === null || this.isUnpaced) this.send(status, body);
    else if (!this.done) this.later(() => this.write(status, body));
  }

  redirect(location: string, error?: ApiError): void {
    if (error !== undefined) {
      logInternal(this.options.logger, error, this.requestId);
      this.options.counters.refused(error);
    }
    this.sendTo(location);
  }

  private sendTo(location: string): void {
    this.header("Location", location);
    this.send(302, "");
  }

  stream(type: string, fileName: string, pieces: AsyncIterable<string>): void {
    void this.writePieces(type, fileName, pieces);
  }

  error(error: ApiError, allow: string | null = null): void {
    logInternal(this.options.logger, error, this.requestId);
    if (this.done) return;
    this.options.counters.refused(error);
    if (error instanceof RateLimited) this.rate = error.rate;
    if (this.isShown) this.sendTo(this.options.failurePage!(error));
    else if (this.options.pace === null || this.isUnpaced) this.writeError(error, allow);
    else this.later(() => this.writeError(error, allow));
  }

  /** Answers whatever was thrown: user mistakes in their own words, our own with a trace id and nothing else. */
  fail(thrown: unknown): void {
    this.error(asApiError(thrown));
  }

  private later(give: () => void): void {
    this.isAnswered = true;
    this.options.pace!.pass(give);
  }

  private send(status: number, body: string | Uint8Array): void {
    if (!this.done) this.write(status, body);
  }

  private write(status: number, body: string | Uint8Array): void {
    const type = status < 400 ? this.options.contentType : null;
    this.finish(() => {
      this.writeHead(status, type);
      if (status === 304) this.endEmpty();
      else this.endWith(body === "" ? "" : this.encode(body, type), this.isLast);
    });
  }

  /** Answers an OPTIONS request. @param lines the value of Allow and what follows it */
  allowed(lines: string): void {
    this.finish(() => {
      this.res.writeStatus(STATUS_LINES[204]!).writeHeader("Allow", lines).writeHeader("X-Request-Id", this.requestId);
      this.endEmpty();
    });
  }

  /** Answers with a file of the page. */
  file({ status, lines, body }: SiteResponse): void {
    this.finish(() => {
      this.res.writeStatus(STATUS_LINES[status]!).writeHeader("Content-Type", lines);
      this.res.writeHeader("X-Request-Id", this.requestId);
      if (body === null) this.endEmpty();
      else this.endWith(body, this.isLast);
    });
  }

  /** Ends the answer with its body, or, to HEAD, with the body's length alone. */
  private endWith(body: string | Uint8Array, closes: boolean): void {
    const { res, options } = this;
    if (!options.isHead) {
      if (body !== "") options.counters.http.sent(body);
      res.end(body === "" ? undefined : body, closes);
    } else if (closes) res.endWithoutBody(Buffer.byteLength(body), true);
    else {
      // Told the length, uWebSockets.js would wait for the body.
      res.writeHeader("Content-Length", String(Buffer.byteLength(body)));
      res.endWithoutBody();
    }
  }

  /** Without a length: 204 has none, and that of a 304 is another answer's. */
  private endEmpty(): void {
    if (this.isLast) this.res.end(undefined, true);
    else this.res.endWithoutBody();
  }

  /**
   * Writes the answer now, or, where nothing may follow its request or others have waited long, when all bytes that came
   * with that have been looked at: while an answer is owed, uWebSockets.js closes the connection of who asks for more.
   */
  private finish(give: () => void): void {
    this.isAnswered = true;
    const writeOut = (): void => {
      if (!this.isAborted) this.res.cork(give);
    };
    if (this.isHeldBack) this.options.turn.hold(writeOut);
    else writeOut();
  }

  private async writePieces(type: string, fileName: string, pieces: AsyncIterable<string>): Promise<void> {
    try {
      for await (const piece of pieces) {
        // Not before: an error in its place is no file.
        if (this.options.isHead) return this.writeFileHead(type, fileName);
        if (!this.isAnswered) this.header("Content-Disposition", `attachment; filename="${fileName}"`);
        if (!this.isAborted && !this.writePiece(type, piece)) await this.drained();
        if (this.isAborted) return;
      }
      this.res.cork(() => void this.res.end(undefined, this.isLast));
    } catch (error) {
      if (!this.isAnswered) this.fail(error);
      else this.cutShort(asApiError(error));
    }
  }

  /** To HEAD: a file's length is known to nobody before it is written. */
  private writeFileHead(type: string, fileName: string): void {
    this.header("Content-Disposition", `attachment; filename="${fileName}"`);
    this.finish(() => {
      this.writeHead(this.options.status, type);
      this.endEmpty();
    });
  }

  /** True where there is room for another. */
  private writePiece(type: string, piece: string): boolean {
    let hasRoom = true;
    this.res.cork(() => {
      if (!this.isAnswered) this.writeHead(this.options.status, type);
      this.isAnswered = true;
      hasRoom = this.res.write(piece);
    });
    this.options.counters.http.sent(piece);
    return hasRoom;
  }

  /** Resolves when the client has taken what was written, or has gone: uWebSockets.js gives up one that stands still. */
  private async drained(): Promise<void> {
    if (this.isAborted) return;
    await new Promise<void>((resolve) => {
      this.onAborted = resolve;
      this.res.onWritable(() => {
        resolve();
        return true;
      });
    });
  }

  private cutShort(error: ApiError): void {
    logInternal(this.options.logger, error, this.requestId);
    if (!this.isAborted) this.res.close();
  }

  /** The body as it goes out. @param type null where it is JSON text, to be sent as the client wants it */
  private encode(body: string | Uint8Array, type: string | null): string | Uint8Array {
    return this.packed && type === null && typeof body === "string" ? encodeJson(body) : body;
  }

  private writeError(error: ApiError, allow: string | null): void {
    const { kind, retryAfter } = error;
    const { oauth } = this.options;
    const body = oauth ? oauthErrorBody(error) : errorBody(error, this.requestId);
    this.finish(() => {
      this.writeHead(kind.status, null);
      if (retryAfter !== null) this.res.writeHeader("Retry-After", String(retryAfter));
      if (kind.status === 401) this.res.writeHeader("WWW-Authenticate", "Bearer");
      if (allow !== null) this.res.writeHeader("Allow", allow);
      // Nobody should go on sending a body that was refused unread.
      this.endWith(this.encode(body, null), this.isLast || kind.status === 413);
    });
  }

  private writeHead(status: number, type: string | null): void {
    const { res, rate } = this;
    const { policy, isOwn, cache } = this.options;
    const shown = type ?? (this.packed ? MESSAGE_PACK : "application/json");
    const lines =
      cache === null || status >= 400 ? policy.typeLines(shown, isOwn) : policy.typeLines(shown, isOwn, cache);
    res.writeStatus(STATUS_LINES[status]!).writeHeader("Content-Type", lines);
    res.writeHeader("X-Request-Id", this.requestId);
    for (const [name, value] of this.options.headers) res.writeHeader(name, value);
    for (const [name, value] of this.headers ?? []) res.writeHeader(name, value);
    if (rate === null) return;
    res.writeHeader("RateLimit-Limit", String(rate.limit));
    res.writeHeader("RateLimit-Remaining", String(rate.remaining));
    res.writeHeader("RateLimit-Reset", String(rate.reset));
  }
}

const MESSAGE_PACK = "application/msgpack";

export interface HttpOptions {
  readonly authenticator: TokenAuthenticator;
  readonly logger: Logger;
  readonly counters: Counters;
  readonly policy: SecurityHeaders;
  readonly turn: EventLoopGuard;
  /** Null where nothing is limited. */
  readonly limiter: RateLimiter | null;
  /** Of refusals on the routes that sign in. */
  readonly pace: ResponseThrottle;
  readonly addressOf: AddressReader;
  /** Some peers' X-Forwarded-For counts. */
  readonly hasProxies: boolean;
  /** Whether the account with the e-mail, in lower case, signed in lately from where limits count the client. */
  readonly isKnown: (email: string, client: string, now: number) => boolean;
  /** Null while the exchange is open; else what every route outside health is answered with. */
  readonly closed: () => ApiError | null;
  readonly reads: OrderedReads;
  readonly page: StaticSite;
}

const PAGE_METHODS = "GET, HEAD";

/** Methods of a path: for pages of any origin, and for those of PUBLIC_URL only. */
interface PathMethods {
  readonly open: string[];
  readonly own: string[];
}

/** Registers every route of the table, preflights of their paths, 405 for other methods and 404 for the rest. */
export function registerRoutes(app: TemplatedApp, routes: readonly CompiledRoute[], options: HttpOptions): void {
  const methodsOf = new Map<string, PathMethods>();
  for (const compiled of routes) {
    const { route } = compiled;
    const path = (route.unversioned ? "" : API_BASE) + route.path;
    const isOwn = isForOwnPages(route);
    const methods = methodsOf.get(path) ?? { open: [], own: [] };
    methods[isOwn ? "own" : "open"].push(...(route.method === "GET" ? ["GET", "HEAD"] : [route.method]));
    methodsOf.set(path, methods);
    const { logger, counters, policy, turn, pace } = options;
    const { status, contentType, oauth, cache, failurePage } = route;
    const own = { status, contentType, oauth, cache, failurePage, headers: compiled.headers };
    const answers = {
      logger,
      counters,
      policy,
      turn,
      isOwn,
      isHead: false,
      ...own,
      pace: signsIn(route) ? pace : null,
    };
    const handlerOf = (each: ReplyOptions) => (res: HttpResponse, req: HttpRequest) => {
      head.read(req);
      serve(compiled, res, req, new Reply(res, head, each), options);
    };
    const handler = handlerOf(answers);
    if (route.method === "GET") app.get(path, handler).head(path, handlerOf({ ...answers, isHead: true }));
    else if (route.method === "POST") app.post(path, handler);
    else if (route.method === "PUT") app.put(path, handler);
    else if (route.method === "PATCH") app.patch(path, handler);
    else app.del(path, handler);
  }
  const refuse = (res: HttpResponse, req: HttpRequest, error: ApiError, allow: string | null): void => {
    const { reply } = replyWithoutRoute(res, req, options);
    reply.error(head.fault === null ? error : badRequest(head.fault), allow);
  };
  for (const [path, { open, own }] of methodsOf) {
    const names = [...open, ...own].join(", ");
    const error = new ApiError(ErrorKind.methodNotAllowed, `this path takes ${names}`);
    app.any(path, (res, req) => refuse(res, req, error, names));
    app.options(path, (res, req) => {
      // Without it nobody asks what a page may send: a method as any other.
      if (req.getHeader("access-control-request-method") === "") return refuse(res, req, error, names);
      const { reply } = replyWithoutRoute(res, req, options);
      if (head.fault !== null) reply.error(badRequest(head.fault));
      else reply.allowed(options.policy.allowLines(head.origin, open, own));
    });
  }
  const error = new ApiError(ErrorKind.notFound, "no such path");
  const pageMethods = new ApiError(ErrorKind.methodNotAllowed, `this path takes ${PAGE_METHODS}`);
  app.any("/*", (res, req) => {
    const method = req.getMethod();
    const found = options.page.answer({
      path: req.getUrl(),
      accept: req.getHeader("accept"),
      acceptEncoding: req.getHeader("accept-encoding"),
      ifNoneMatch: req.getHeader("if-none-match"),
    });
    const isAsked = method === "get" || method === "head";
    if (found === null || (found.status === 404 && !isAsked)) return refuse(res, req, error, null);
    if (!isAsked) return refuse(res, req, pageMethods, PAGE_METHODS);
    const { reply } = replyWithoutRoute(res, req, options);
    if (head.fault !== null) reply.error(badRequest(head.fault));
    else reply.file(found);
  });
}

/** For what no route answers. */
export function replyWithoutRoute(
  res: HttpResponse,
  req: HttpRequest,
  { logger, counters, policy, turn }: Pick<ReplyOptions, "logger" | "counters" | "policy" | "turn">,
): { reply: Reply; head: RequestHead } {
  head.read(req);
  const isHead = req.getMethod() === "head";
  const rest = { status: 200, contentType: null, oauth: false, pace: null, headers: [], isOwn: false, cache: null };
  const answers = { logger, counters, policy, turn, failurePage: null, isHead, ...rest };
  return { reply: new Reply(res, head, answers), head };
}

/**
 * One request: everything is read from `req` before this returns. The body comes later, and so does the holder of a
 * token whose signature must be verified first.
 */
function serve(compiled: CompiledRoute, res: HttpResponse, req: HttpRequest, reply: Reply, options: HttpOptions): void {
  const { route } = compiled;
  try {
    if (head.fault !== null) throw badRequest(head.fault);
    const now = Date.now();
    const closed = route.unversioned ? null : options.closed();
    if (closed !== null) throw closed;
    if (reply.isOwn && options.policy.isForeign(head.origin, head.host)) throw forOwnPages();
    // Where nothing is limited, trading and reading need the address only for a token that is bound to some.
    const isPlain = (route.rateClass === "order" || route.method === "GET") && route.headers.length === 0;
    const { forwardedFor } = head;
    const readAddress = (): ClientAddress => clientAddress(res, forwardedFor, options);
    const address = options.limiter === null && isPlain ? NO_ADDRESS : readAddress();
    const credentials = readCredentials(compiled, options, readAddress, now);
    if (credentials instanceof Promise) {
      serveLater(compiled, res, req, reply, options, address, credentials, now);
      return;
    }
    const principal = admit(compiled, reply, address, options, credentials, now);
    const request = readRequest(compiled, req, reply, address, principal, now);
    if (compiled.body === null) {
      execute(route, request, reply, options.reads);
      return;
    }
    const reader = bodyReader(compiled, reply, options, address.client, now);
    readBody(res, reply, reader, (body) => {
      request.now = Date.now();
      stillMay(route, request, options.authenticator);
      request.body = reader.read(body);
      execute(route, request, reply, options.reads);
    });
  } catch (error) {
    reply.fail(error);
  }
}

/** As `serve`, where it takes a while to know who asks: the body is collected meanwhile. */
function serveLater(
  compiled: CompiledRoute,
  res: HttpResponse,
  req: HttpRequest,
  reply: Reply,
  options: HttpOptions,
  address: ClientAddress,
  credentials: Promise<Credentials>,
  now: number,
): void {
  const { route } = compiled;
  // Who asks is put in when it is known; what is wrong with the rest is told after that.
  const request = attempt(() => readRequest(compiled, req, reply, address, null, now));
  const hasBody = compiled.body !== null;
  const reader = hasBody ? attempt(() => bodyReader(compiled, reply, options, address.client, now)) : null;
  const body = new Promise<Buffer>((resolve) => {
    // The bytes are lent for the call only.
    if (reader !== null) readBody(res, reply, reader(), (bytes) => resolve(Buffer.from(bytes)));
  });
  // Who may not use the route isn't told what is wrong with the body.
  body.catch(() => {});
  const run = async (): Promise<void> => {
    const principal = admit(compiled, reply, address, options, await credentials, now);
    const known: RouteRequest = { ...request(), principal };
    if (reader !== null) {
      const bytes = await body;
      known.now = Date.now();
      stillMay(route, known, options.authenticator);
      known.body = reader().read(bytes);
    }
    if (!reply.done) execute(route, known, reply, options.reads);
  };
  run().catch((error) => reply.fail(error));
}

function forOwnPages(): ApiError {
  return new ApiError(ErrorKind.forbidden, "Origin: pages of other sites may not use this");
}

/** What anybody may call without a token, to get one. */
function signsIn({ rateClass, oauth }: Route): boolean {
  return rateClass === "identifier" || rateClass === "mail" || rateClass === "refresh" || oauth;
}

/** A body may come seconds after its headers: what opened the door may have been revoked. @throws ApiError */
function stillMay(route: Route, { principal, now }: RouteRequest, authenticator: TokenAuthenticator): void {
  if (principal === null || route.access === "public") return;
  authenticator.checkLive(principal, now);
  authorize(route, principal);
}

/** Runs it now; what it throws is thrown when its result is asked for. */
function attempt<T>(run: () => T): () => T {
  try {
    const value = run();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function readRequest(
  compiled: CompiledRoute,
  req: HttpRequest,
  reply: Reply,
  address: ClientAddress,
  principal: Principal | null,
  now: number,
): RouteRequest {
  const { route } = compiled;
  return {
    now,
    principal,
    address,
    headers: route.headers.length === 0 ? NO_HEADERS : readHeaders(route.headers, req),
    origin: route.credited ? originOf(head) : DIRECT,
    params: route.path.includes(":") ? [req.getParameter(0) ?? "", req.getParameter(1) ?? ""] : NO_PARAMS,
    query: compiled.query(req.getQuery() ?? ""),
    body: null,
    reply,
  };
}

const NO_HEADERS: Readonly<Record<string, string>> = {};

function readHeaders(names: readonly string[], req: HttpRequest): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, req.getHeader(name)]));
}

/** How a route takes a body. Where an identifier in it is what limits count, the request is counted here. */
interface BodyReader {
  readonly maxBytes: number;
  /** What the route's schema says of the bytes. @throws ApiError */
  readonly read: (bytes: Buffer) => unknown;
  /** @throws ApiError 40000 with 413 */
  readonly refuse: () => never;
}

/** Counts a request by its address where its body names nobody. @throws ApiError 40000 */
function bodyReader(
  compiled: CompiledRoute,
  reply: Reply,
  { limiter, isKnown }: HttpOptions,
  client: string,
  now: number,
): BodyReader {
  const { route } = compiled;
  const maxBytes = signsIn(route) ? MAX_SIGN_IN_BODY_BYTES : MAX_BODY_BYTES;
  const type = head.contentType;
  const count = (identifier: string): void => {
    if (!countsBody(route)) return;
    const isOwner = route.rateClass === "identifier" && identifier !== "" && isKnown(identifier, client, now);
    reply.rate = countRequest(limiter, compiled, null, client, now, identifier, isOwner);
    // Without limits anybody at a known address could have as many refusals as he likes.
    if (isOwner && limiter !== null) reply.skipPace();
  };
  try {
    const parse = parserOf(type, route.oauth);
    return {
      maxBytes,
      read(bytes) {
        const parsed = attempt(() => (bytes.length === 0 && compiled.takesNothing ? {} : parse(bytes)));
        count(identifierIn(parsed));
        return compiled.body!(parsed());
      },
      refuse() {
        count("");
        throw new ApiError(ErrorKind.tooLarge, `the body is larger than ${maxBytes} bytes`);
      },
    };
  } catch (error) {
    count("");
    throw error;
  }
}

/** What limits count stands in the body. */
function countsBody({ rateClass }: Route): boolean {
  return rateClass === "identifier" || rateClass === "mail";
}

/** The e-mail in lower case, "" where there is none. */
function identifierIn(parsed: () => unknown): string {
  try {
    const { email } = parsed() as { email?: unknown };
    return typeof email === "string" && email.length <= MAX_EMAIL_LENGTH ? email.toLowerCase() : "";
  } catch {
    return "";
  }
}

const NO_PARAMS: readonly [string, string] = ["", ""];

function originOf({ builderCode }: RequestHead): Origin {
  return builderCode === "" ? DIRECT : creditedTo(DIRECT, builderCode, "X-Builder-Code");
}

/** Who limits count the request for, where nobody signs in. */
export function clientAddress(
  res: HttpResponse,
  forwardedFor: string,
  options: { readonly addressOf: AddressReader; readonly hasProxies: boolean },
): ClientAddress {
  const peer = Buffer.from(res.getRemoteAddressAsText()).toString("latin1");
  return options.addressOf(peer, options.hasProxies ? forwardedFor : "");
}

/** Who the request says it is from: a token's holder, or nobody and why. */
interface Credentials {
  readonly principal: Principal | null;
  readonly refusal: unknown;
}

const NOBODY: Credentials = { principal: null, refusal: null };
const refused = (refusal: unknown): Credentials => ({ principal: null, refusal });

function readCredentials(
  { route, template }: CompiledRoute,
  { authenticator, limiter }: HttpOptions,
  address: () => ClientAddress,
  now: number,
): Credentials | Promise<Credentials> {
  const isPublic = route.access === "public";
  // On most public routes a token only says whose limit counts.
  const isAsked = route.knowsHolder || (limiter !== null && route.rateClass === "default" && !route.oauth);
  if (isPublic && !isAsked) return NOBODY;
  const header = head.authorization;
  if (isPublic && header === "") return NOBODY;
  try {
    // A forged token would be counted by its address: where that has nothing left its signature is not looked at.
    const mayVerify = (): void => limiter?.checkRoom(template, route.rateClass, address().client, now);
    const found = authenticator.authenticateHeader(header, now, address, mayVerify);
    if (!(found instanceof Promise)) return { principal: found, refusal: null };
    return found.then((principal) => ({ principal, refusal: null }), refused);
  } catch (error) {
    return refused(error);
  }
}

/** Counts the request, a user's among the user's, all others by their address, and lets it in. @throws ApiError */
function admit(
  compiled: CompiledRoute,
  reply: Reply,
  address: ClientAddress,
  { limiter }: HttpOptions,
  { principal, refusal }: Credentials,
  now: number,
): Principal | null {
  const { route } = compiled;
  // What is counted by what its body says is counted when the body is there.
  if (!countsBody(route)) {
    reply.rate = countRequest(limiter, compiled, principal, address.client, now, "");
  }
  if (route.access === "public") return principal;
  if (principal === null) throw refusal;
  authorize(route, principal);
  return principal;
}

/** How the body is read. @throws ApiError 40000 for any other content type */
function parserOf(type: string, isForm: boolean): (bytes: Buffer) => unknown {
  if (isForm) {
    if (/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) return readForm;
    throw badRequest("Content-Type: must be application/x-www-form-urlencoded");
  }
  if (type === "application/json" || type === "" || /^application\/json\s*(;|$)/i.test(type)) return readJson;
  if (/^application\/msgpack\s*(;|$)/i.test(type)) return readMessagePack;
  throw badRequest("Content-Type: must be application/json or application/msgpack");
}

/**
 * Collects the body, counting as it comes. Chunks are detached when the callback returns: those of several are copied,
 * and `done` has the bytes for its call only.
 */
function readBody(
  res: HttpResponse,
  reply: Reply,
  { maxBytes, refuse }: BodyReader,
  done: (body: Buffer) => void,
): void {
  const announced = Number(head.contentLength);
  if (announced > maxBytes) refuse();
  let collected: Buffer | null = null;
  let length = 0;
  res.onData((chunk, isLast) => {
    reply.received(chunk.byteLength);
    if (reply.done) return;
    try {
      if (isLast && collected === null) {
        if (chunk.byteLength > maxBytes) refuse();
        done(Buffer.from(chunk));
        return;
      }
      const end = length + chunk.byteLength;
      if (end > maxBytes) refuse();
      // Room for what was announced, or twice what came: a body in chunks of one byte is not copied with each of them.
      if (collected === null || end > collected.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(announced, Math.min(2 * end, maxBytes)));
        collected?.copy(larger, 0, 0, length);
        collected = larger;
      }
      collected.set(new Uint8Array(chunk), length);
      length = end;
      if (isLast) done(collected.subarray(0, length));
    } catch (error) {
      reply.fail(error);
    }
  });
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

/** @throws ApiError 40000 for a parameter that comes twice (RFC 6749, section 3.2) */
function readForm(bytes: Buffer): Record<string, string> {
  const found: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(bytes.toString())) {
    if (name in found) throw badRequest(`${name.slice(0, 64)}: given twice`);
    found[name] = value;
  }
  return { ...found };
}

const readJson = readerOf("JSON", parseJson);
const readMessagePack = readerOf("MessagePack", decodeMessage);
