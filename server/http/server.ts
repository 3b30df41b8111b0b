/**
 * Registers every route with uWebSockets.js and serves its requests: reads a request whole and synchronously, finds its
 * sender, runs its handler. Handlers are values in, values out and know nothing of sockets; reply.ts writes the response.
 */
import type { HttpRequest, HttpResponse, TemplatedApp } from "uWebSockets.js";
import type { Clock } from "../../engine/util/clock.ts";
import type { Principal } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { OrderedReads } from "../trading/types.ts";
import type { Sender } from "./admission.ts";
import { type BodyOptions, BodyReader, type BodySink, collectNothing, type HttpEntry, NO_BYTES } from "./body.ts";
import { type AddressOptions, type ClientAddress, clientAddress, NO_ADDRESS } from "./client-address.ts";
import { allowsEncoding } from "./content-negotiation.ts";
import type { Header } from "./deprecation.ts";
import { type CompiledRoute, creditedTo, DIRECT, execute } from "./dispatch.ts";
import type { EventLoopGuard } from "./event-loop-guard.ts";
import { checkKeyUse } from "./idempotency.ts";
import { HttpReply, type ReplyOptions } from "./reply.ts";
import type { ReplyDeadlines } from "./reply-deadlines.ts";
import { RequestHead } from "./request-head.ts";
import type { ResponseThrottle } from "./response-throttle.ts";
import { API_BASE, type RouteRequest } from "./route.ts";
import { METHODS, type SecurityHeaders } from "./security-headers.ts";
import type { StaticSite } from "./static-site.ts";

/** The head of the request being served: read first, and valid only until its handler returns. */
const head = new RequestHead();

/** What serving the routes of a table takes. */
export interface RouteOptions extends AddressOptions, BodyOptions {
  readonly logger: Logger;
  readonly securityHeaders: SecurityHeaders;
  readonly guard: EventLoopGuard;
  readonly clock: Clock;
  /** Slows error responses on the routes that sign in; null where there are none. */
  readonly throttle: ResponseThrottle | null;
  readonly reads: OrderedReads;
  /** Null where a write never waits for other boxes. */
  readonly deadlines: ReplyDeadlines | null;
}

export interface HttpOptions extends RouteOptions {
  readonly site: StaticSite;
}

// ---------------------------------------------------------------- registration

/** Methods of a path: those for pages of any origin, and those for pages of PUBLIC_URL only. */
interface PathMethods {
  readonly open: readonly string[];
  readonly own: readonly string[];
}

/** Registers every route of the table, the preflights of their paths, 405 for other methods, the site and 404. */
export function registerRoutes(app: TemplatedApp, routes: readonly CompiledRoute[], options: HttpOptions): void {
  registerTable(app, routes, options);
  registerSite(app, options);
}

/** What a box that serves nothing else says to a request. */
export interface Rejection {
  readonly error: ApiError;
  readonly headers: readonly Header[];
}

/** Registers the routes of a box that isn't active, as `registerRoutes` does; everything else gets `reject`'s error. */
export function registerRejection(
  app: TemplatedApp,
  routes: readonly CompiledRoute[],
  reject: () => Rejection,
  options: RouteOptions,
): void {
  registerTable(app, routes, options);
  app.any("/*", (res, req) => {
    if (isPreflight(req)) return replyToPreflight(res, req, NONE, options);
    const { error, headers } = reject();
    refuse(res, req, error, null, options, headers);
  });
}

function registerTable(app: TemplatedApp, routes: readonly CompiledRoute[], options: RouteOptions): void {
  const methodsOf = new Map<string, PathMethods>();
  for (const compiled of routes) {
    const { route, isOwn } = compiled;
    const path = (route.unversioned ? "" : API_BASE) + route.path;
    const methods = methodsOf.get(path) ?? { open: [], own: [] };
    const added = route.method === "GET" ? ["GET", "HEAD"] : [route.method];
    const { open, own } = methods;
    methodsOf.set(path, isOwn ? { open, own: [...own, ...added] } : { open: [...open, ...added], own });
    registerRoute(app, path, compiled, options);
  }
  for (const [path, methods] of methodsOf) registerOtherMethods(app, path, methods, options);
}

function registerRoute(app: TemplatedApp, path: string, compiled: CompiledRoute, options: RouteOptions): void {
  const { route, headers, isOwn } = compiled;
  const { logger, counters, securityHeaders, guard } = options;
  const { status, contentType, oauth, cache, failurePage } = route;
  const throttle = compiled.signsIn ? options.throttle : null;
  const look = { status, contentType, oauth, cache, failurePage, headers, isOwn, isHead: false };
  const replyOptions: ReplyOptions = { logger, counters, securityHeaders, guard, throttle, ...look };
  const handlerOf = (each: ReplyOptions) => (res: HttpResponse, req: HttpRequest) => {
    head.read(req);
    const reply = new HttpReply(res, head, each);
    if (route.compressed && allowsEncoding(req.getHeader("accept-encoding"), "gzip")) reply.compress();
    serve(compiled, res, req, reply, options);
  };
  const handler = handlerOf(replyOptions);
  if (route.method === "GET") app.get(path, handler).head(path, handlerOf({ ...replyOptions, isHead: true }));
  else if (route.method === "POST") app.post(path, handler);
  else if (route.method === "PUT") app.put(path, handler);
  else if (route.method === "PATCH") app.patch(path, handler);
  else app.del(path, handler);
}

/** Registers the preflight of a path, and 405 for the methods that it doesn't take. */
function registerOtherMethods(
  app: TemplatedApp,
  path: string,
  { open, own }: PathMethods,
  options: RouteOptions,
): void {
  const names = [...open, ...own].join(", ");
  const error = new ApiError(ErrorKind.methodNotAllowed, `this path takes ${names}`);
  app.any(path, (res, req) => refuse(res, req, error, names, options));
  app.options(path, (res, req) => {
    if (isPreflight(req)) replyToPreflight(res, req, { open, own }, options);
    else refuse(res, req, error, names, options);
  });
}

/** OPTIONS without this header is a method like any other. */
function isPreflight(req: HttpRequest): boolean {
  return req.getMethod() === "options" && req.getHeader("access-control-request-method") !== "";
}

function replyToPreflight(
  res: HttpResponse,
  req: HttpRequest,
  { open, own }: PathMethods,
  options: RouteOptions,
): void {
  const { reply } = replyWithoutRoute(res, req, options);
  if (head.fault !== null) reply.error(badRequest(head.fault));
  else reply.allowed(options.securityHeaders.allowLines(head.origin, open, own));
}

const SITE: PathMethods = { open: ["GET", "HEAD"], own: [] };
const SITE_METHODS = SITE.open.join(", ");
/** The methods of a path that neither the site nor a route has: what a page may send to learn so. */
const NONE: PathMethods = { open: METHODS, own: [] };

/** Registers the static site, and 404 for every path that neither it nor a route has. */
function registerSite(app: TemplatedApp, options: HttpOptions): void {
  const notFound = new ApiError(ErrorKind.notFound, "no such path");
  const wrongMethod = new ApiError(ErrorKind.methodNotAllowed, `this path takes ${SITE_METHODS}`);
  app.any("/*", (res, req) => {
    const method = req.getMethod();
    const found = options.site.respond({
      path: req.getUrl(),
      accept: req.getHeader("accept"),
      acceptEncoding: req.getHeader("accept-encoding"),
      ifNoneMatch: req.getHeader("if-none-match"),
    });
    const isRead = method === "get" || method === "head";
    // A page of another origin that mistypes a path learns so from the 404.
    if (isPreflight(req)) return replyToPreflight(res, req, found?.status === 200 ? SITE : NONE, options);
    if (found === null || (found.status === 404 && !isRead)) return refuse(res, req, notFound, null, options);
    if (!isRead) return refuse(res, req, wrongMethod, SITE_METHODS, options);
    const { reply } = replyWithoutRoute(res, req, options);
    if (head.fault !== null) reply.error(badRequest(head.fault));
    else reply.siteFile(found);
  });
}

function refuse(
  res: HttpResponse,
  req: HttpRequest,
  error: ApiError,
  allow: string | null,
  options: RouteOptions,
  headers: readonly Header[] = [],
): void {
  const { reply } = replyWithoutRoute(res, req, options);
  for (const [name, value] of headers) reply.header(name, value);
  reply.error(head.fault === null ? error : badRequest(head.fault), allow);
}

/** For requests that no route serves. The head is valid until the caller's handler returns. */
export function replyWithoutRoute(
  res: HttpResponse,
  req: HttpRequest,
  { logger, counters, securityHeaders, guard }: Pick<ReplyOptions, "logger" | "counters" | "securityHeaders" | "guard">,
): { reply: HttpReply; head: RequestHead } {
  head.read(req);
  const isHead = req.getMethod() === "head";
  const look = { status: 200, contentType: null, oauth: false, cache: null, failurePage: null, headers: [], isHead };
  const replyOptions = { logger, counters, securityHeaders, guard, throttle: null, isOwn: false, ...look };
  return { reply: new HttpReply(res, head, replyOptions), head };
}

// ---------------------------------------------------------------- one request

/** Reads everything from `req` before it returns; the body and, where a signature must be verified, the sender follow. */
function serve(
  compiled: CompiledRoute,
  res: HttpResponse,
  req: HttpRequest,
  reply: HttpReply,
  options: RouteOptions,
): void {
  const { admission, clock, securityHeaders } = options;
  try {
    if (head.fault !== null) throw badRequest(head.fault);
    if (!compiled.route.unversioned) admission.checkOpen();
    if (compiled.isOwn && securityHeaders.isForeign(head.origin, head.host)) {
      throw new ApiError(ErrorKind.forbidden, "Origin: pages of other sites may not use this");
    }
    const { authorization, forwardedFor } = head;
    const readAddress = (): ClientAddress => clientAddress(res, forwardedFor, options);
    const address = admission.needsAddress(compiled) ? readAddress() : NO_ADDRESS;
    const entry: HttpEntry = { compiled, address, now: clock.now(), reply };
    const sender = admission.findSender(entry, authorization, readAddress);
    const arrival = new Arrival(entry, options);
    if (sender instanceof Promise) void sender.then((found) => arrival.enter(found));
    else arrival.enter(sender);
    if (!reply.done) arrival.read(res, req);
  } catch (error) {
    reply.fail(error);
  }
}

/**
 * A request of which sender and body arrive in either order. Runs the handler once both are there. A sender who may not use
 * the route doesn't learn what is wrong with the rest of the request: its errors wait for the sender.
 */
class Arrival implements BodySink {
  private readonly entry: HttpEntry;
  private readonly options: RouteOptions;
  private principal: Principal | null = null;
  private isAdmitted = false;
  private request: RouteRequest | null = null;
  private reader: BodyReader | null = null;
  /** Null until the body is complete. */
  private bytes: Buffer | null = null;
  private fault: { readonly error: unknown } | null = null;

  constructor(entry: HttpEntry, options: RouteOptions) {
    this.entry = entry;
    this.options = options;
  }

  /** The sender is known. */
  enter(sender: Sender): void {
    const { entry, options } = this;
    try {
      this.principal = options.admission.enter(entry, sender);
      this.isAdmitted = true;
      if (this.fault !== null) throw this.fault.error;
      if (this.bytes !== null) this.run(this.bytes);
    } catch (error) {
      entry.reply.fail(error);
    }
  }

  /** Reads all of `req`, and collects the body. */
  read(res: HttpResponse, req: HttpRequest): void {
    const { entry, options } = this;
    const { body: check } = entry.compiled;
    try {
      this.request = readRequest(entry, req, this.principal);
      if (check !== null) {
        this.reader = new BodyReader(entry, check, head, options);
        this.reader.collect(res, this);
      } else if (head.hasBody) collectNothing(res, head, entry, this);
      else if (this.isAdmitted) this.execute(this.request);
      else this.bytes = NO_BYTES;
    } catch (error) {
      this.fail(error);
    }
  }

  /** The body is complete. @param bytes valid during the call only */
  complete(bytes: Buffer): void {
    if (this.isAdmitted) this.run(bytes);
    else this.bytes = Buffer.from(bytes);
  }

  /** Something is wrong with the request. */
  fail(error: unknown): void {
    if (this.isAdmitted) this.entry.reply.fail(error);
    else this.fault ??= { error };
  }

  private run(bytes: Buffer): void {
    const { entry, options, reader, principal } = this;
    const { compiled, reply } = entry;
    if (reply.done || this.request === null) return;
    const request: RouteRequest = this.request.principal === principal ? this.request : { ...this.request, principal };
    // Seconds may have passed since the head.
    request.now = options.clock.now();
    options.admission.admit(compiled.route, principal, request.now);
    if (reader !== null) request.body = reader.read(bytes);
    this.execute(request);
  }

  private execute(request: RouteRequest): void {
    const { reads, deadlines } = this.options;
    const { compiled, reply } = this.entry;
    execute(compiled.route, request, reply, reads);
    const { writes, rateClass } = compiled.route;
    // Orders and cancels have a deadline of their own.
    if (deadlines !== null && !reply.done && writes && rateClass !== "order") deadlines.add(reply, request.now);
  }
}

const NO_HEADERS: Readonly<Record<string, string>> = {};
const NO_PARAMS: readonly [string, string] = ["", ""];

/** @param principal null where the sender isn't known yet */
function readRequest(
  { compiled, address, now, reply }: HttpEntry,
  req: HttpRequest,
  principal: Principal | null,
): RouteRequest {
  const { route, query, hasParams } = compiled;
  const { builderCode, idempotencyKey } = head;
  if (idempotencyKey !== "") checkKeyUse(route, idempotencyKey);
  return {
    now,
    principal,
    address,
    idempotencyKey,
    headers:
      route.headers.length === 0
        ? NO_HEADERS
        : Object.fromEntries(route.headers.map((name) => [name, headerOf(req, name)])),
    origin: route.credited && builderCode !== "" ? creditedTo(DIRECT, builderCode, "X-Builder-Code") : DIRECT,
    params: hasParams ? [req.getParameter(0) ?? "", req.getParameter(1) ?? ""] : NO_PARAMS,
    query: query(req.getQuery() ?? ""),
    body: null,
    reply,
  };
}

/** Ranges are for GET alone (RFC 9110, section 14.2): HEAD tells of the whole file. */
function headerOf(req: HttpRequest, name: string): string {
  return name === "range" && req.getMethod() === "head" ? "" : req.getHeader(name);
}
