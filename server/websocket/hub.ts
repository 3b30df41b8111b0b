/**
 * The WebSocket at /ws: the upgrade with its token, operations (of routes, and of the connection itself), and what a user
 * hears of its own orders and money. Public channels are channels.ts's business, a replay replay.ts's.
 *
 * Inside, every message is JSON text; a connection with the subprotocol `msgpack` gets the same objects as MessagePack.
 * A reader that lets more than 1 MiB pile up is closed with 4408; nobody waits for it.
 */

import type { HttpRequest, HttpResponse, TemplatedApp, us_socket_context_t, WebSocket } from "uWebSockets.js";
import { type Authenticator, checkLive } from "../accounts/authenticator.ts";
import type { Credential, Principal } from "../accounts/types.ts";
import { cancelEither } from "../bootstrap/routes.ts";
import { ApiError, asApiError, badRequest, ErrorKind, overloaded } from "../errors.ts";
import { parseJson } from "../http/body.ts";
import type { AddressReader, ClientAddress } from "../http/client-address.ts";
import { clientAddress } from "../http/credentials.ts";
import { authorize, type CompiledRoute, countRequest, creditedTo, execute } from "../http/dispatch.ts";
import type { EventLoopGuard } from "../http/event-loop-guard.ts";
import { MAX_TURN_MS } from "../http/limits.ts";
import { decodeMessage } from "../http/message-pack.ts";
import { RateLimited, type RateLimiter, type RateState } from "../http/rate-limiter.ts";
import { errorFields, newRequestId } from "../http/reply.ts";
import { API_BASE, type Responder } from "../http/route.ts";
import * as S from "../http/schemas.ts";
import type { SecurityHeaders } from "../http/security-headers.ts";
import { replyWithoutRoute } from "../http/server.ts";
import { compileSchema } from "../http/validate.ts";
import { type Logger, logInternal } from "../logger.ts";
import { balanceView, positionsOf, positionView } from "../markets/views.ts";
import type { History } from "../queries/history.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { OrderEntry } from "../trading/order-entry.ts";
import type { UserSink } from "../trading/types.ts";
import { UserOutbox } from "../trading/user-outbox.ts";
import type { Counters } from "../util/counters.ts";
import { MAX_CHARACTERS_PER_TURN } from "../util/limits.ts";
import { Channels } from "./channels.ts";
import {
  CLOSE_GOING_AWAY,
  CLOSE_INTERNAL_ERROR,
  CLOSE_TOO_BIG,
  CLOSE_UNAUTHENTICATED,
  SocketConnection,
  type SocketData,
} from "./connection.ts";
import { frame, orderFrame } from "./frames.ts";
import {
  HEARTBEAT_MS,
  MAX_BEGINNING_AHEAD_BYTES,
  MAX_MESSAGES_OF_USER_PER_LONG_TURN,
  MAX_MESSAGES_PER_LONG_TURN,
  MAX_TURN_OF_USER_MS,
  MAX_WS_BACKPRESSURE_BYTES,
  MAX_WS_CONNECTIONS,
  MAX_WS_FRAME_BYTES,
  MAX_WS_MESSAGE_BYTES,
  SOCKET_TICK_MS,
  WS_IDLE_TIMEOUT_S,
} from "./limits.ts";
import { Replay, type ReplayContext } from "./replay.ts";
import { CONNECTION_OPERATIONS, type OperationRoute, ROUTE_OPERATIONS } from "./schemas.ts";
import { type SocketTickets, TICKET_PREFIX } from "./tickets.ts";
import type { Subscription } from "./types.ts";

/** Names the rate bucket of tokens to verify. */
const UPGRADE = "GET /ws";
/** The route that gives what a replay tells. */
const EVENTS = "GET /me/events";
/** Each connection's heartbeat comes in its part of the interval. */
const HEARTBEAT_PARTS = HEARTBEAT_MS / SOCKET_TICK_MS;
/** Parts in which slow subscribers are looked for at a tick: in all of them twice a second. */
const WATCHED_PARTS = HEARTBEAT_PARTS / 5;
/** When an address with as many connections as it may have may try again, seconds. */
const SOCKET_WAIT_S = 10;
/** Above our own bound, for what one commit may bring at once; past it uWebSockets.js drops messages. */
const SOCKET_BACKPRESSURE_BYTES = 64 * MAX_WS_BACKPRESSURE_BYTES;

/** The way back to the operation `id` of a connection. */
class OperationReply implements Responder {
  /** As the client gave it. */
  id: number | null = null;
  /** What is left of the limits that counted it, null where nothing is limited; undefined where it isn't of a route. */
  rate: RateState | null | undefined;
  private readonly hub: SocketHub;
  private readonly connection: SocketConnection;
  /** Seconds after which it may be asked again, where it was refused for now. */
  private retryAfter: number | null = null;
  private madeId: string | null = null;
  private over = false;

  constructor(hub: SocketHub, connection: SocketConnection) {
    this.hub = hub;
    this.connection = connection;
  }

  get requestId(): string {
    this.madeId ??= newRequestId();
    return this.madeId;
  }

  data(json: string): void {
    this.give(`"code":0,"msg":"ok","data":${json}`);
  }

  plain(_status: number, json: string): void {
    this.data(json);
  }

  redirect(): void {
    throw new Error("no operation sends a browser anywhere");
  }

  stream(): void {
    throw new Error("no operation answers in pieces");
  }

  header(): void {}

  error(error: ApiError): void {
    if (error instanceof RateLimited) this.rate = error.rate;
    this.retryAfter = error.retryAfter;
    this.hub.refused(error, this.requestId);
    this.give(errorFields(error, this.requestId));
  }

  fail(thrown: unknown): void {
    this.error(asApiError(thrown));
  }

  private give(fields: string): void {
    if (this.over) return;
    this.over = true;
    const rate = this.rate === undefined ? "" : `,"rate_limit":${rateJson(this.rate)}`;
    const retry = this.retryAfter === null ? "" : `,"retry_after":${this.retryAfter}`;
    this.hub.answer(this.connection, `{"id":${this.id},${fields}${rate}${retry}}`);
  }
}

function rateJson(rate: RateState | null): string {
  if (rate === null) return "null";
  return `{"limit":${rate.limit},"remaining":${rate.remaining},"reset":${rate.reset}}`;
}

interface RouteOperation {
  data?: Record<string, unknown>;
  builder_code?: string | null;
  timestamps?: boolean;
}

const { subscribe, ping, cancel_on_disconnect, auth, resume } = CONNECTION_OPERATIONS;
const checkSubscription = compileSchema(subscribe.request);
const checkPing = compileSchema(ping.request);
const checkTie = compileSchema(cancel_on_disconnect.request);
const checkAuth = compileSchema(auth.request);
const checkResume = compileSchema(resume.request);
const OTHER_OPERATIONS = Object.keys(CONNECTION_OPERATIONS);
const checkRouteOperation = compileSchema(S.RouteOperation);
const checkCancel = compileSchema(S.CancelOrder);

export interface SocketOptions {
  readonly exchange: Exchange;
  readonly entry: OrderEntry;
  readonly history: History;
  readonly routes: readonly CompiledRoute[];
  readonly authenticator: Authenticator;
  readonly tickets: SocketTickets;
  readonly app: TemplatedApp;
  /** ms */
  readonly startedAt: number;
  readonly logger: Logger;
  readonly counters: Counters;
  readonly securityHeaders: SecurityHeaders;
  readonly guard: EventLoopGuard;
  /** Null where nothing is limited. */
  readonly limiter: RateLimiter | null;
  readonly addressOf: AddressReader;
  /** Some peers' X-Forwarded-For counts. */
  readonly hasProxies: boolean;
  /** Connections at one time. */
  readonly maxSocketsPerAddress: number;
  readonly closed: () => ApiError | null;
}

/** An account's change as its connections receive it. */
interface AccountUpdate {
  readonly connections: readonly SocketConnection[];
  /** ms since the epoch */
  readonly at: number;
  readonly messages: readonly string[];
}

export class SocketHub implements UserSink<AccountUpdate> {
  private readonly exchange: Exchange;
  private readonly entry: OrderEntry;
  private readonly authenticator: Authenticator;
  private readonly logger: Logger;
  private readonly limiter: RateLimiter | null;
  private readonly closedWith: () => ApiError | null;
  private readonly options: SocketOptions;
  private readonly routes: ReadonlyMap<string, CompiledRoute>;
  private readonly connections = new Set<SocketConnection>();
  private readonly byUser = new Map<number, Set<SocketConnection>>();
  private readonly byCredential = new Map<Credential, Set<SocketConnection>>();
  /** By the part of the heartbeats' interval. */
  private readonly byHeartbeat = Array.from({ length: HEARTBEAT_PARTS }, () => new Set<SocketConnection>());
  private nextHeartbeat = 0;
  /** Let go what uWebSockets.js dropped a message of. */
  private readonly slow = new Set<SocketConnection>();
  readonly channels: Channels;
  private readonly replays: ReplayContext;
  private readonly waiting = new Set<SocketConnection>();
  /** Holds users' messages back while a composite reply is incomplete. */
  readonly outbox = new UserOutbox(this);
  private lastConnection = 0;
  /** Connections, and those under way, by client address. */
  private readonly byAddress = new Map<string, number>();
  private isFlushDue = false;

  constructor(options: SocketOptions) {
    this.options = options;
    this.exchange = options.exchange;
    this.entry = options.entry;
    this.authenticator = options.authenticator;
    this.logger = options.logger;
    this.limiter = options.limiter;
    this.closedWith = options.closed;
    const { registry, ledger } = options.exchange;
    this.channels = new Channels(
      options.app,
      registry,
      ledger,
      options.counters.webSocket,
      options.exchange.timeline,
      options.startedAt,
    );
    this.replays = {
      exchange: options.exchange,
      history: options.history,
      send: (connection, message) => this.send(connection, message),
      flush: () => this.flush(),
      sendAccount: (connection) => this.tellAccount(connection),
    };
    this.routes = new Map(options.routes.map((compiled) => [compiled.template, compiled]));
  }

  register(): void {
    this.options.app.ws<SocketData>(`${API_BASE}/ws`, {
      idleTimeout: WS_IDLE_TIMEOUT_S,
      sendPingsAutomatically: true,
      // Past it uWebSockets.js cuts the connection off and says nothing: the client sees 1006.
      maxPayloadLength: MAX_WS_FRAME_BYTES,
      maxBackpressure: SOCKET_BACKPRESSURE_BYTES,
      upgrade: (res, req, context) => this.upgrade(res, req, context),
      open: (socket) => this.open(socket),
      message: (socket, message, isBinary) => this.receive(socket.getUserData().connection, message, isBinary),
      ping: (socket) => void this.endIfFlooding(socket.getUserData().connection, 0),
      pong: (socket) => void this.endIfFlooding(socket.getUserData().connection, 0),
      drain: (socket) => this.drained(socket.getUserData().connection),
      dropped: (socket) => void this.slow.add(socket.getUserData().connection),
      close: (socket) => this.close(socket.getUserData().connection),
    });
  }

  /** Lets a client in, once it is known who asks. */
  private upgrade(res: HttpResponse, req: HttpRequest, context: us_socket_context_t): void {
    const { reply, head } = replyWithoutRoute(res, req, this.options);
    const { forwardedFor, fault } = head;
    // The token may stand in the URL: nothing of the URL is ever logged.
    const token = new URLSearchParams(req.getQuery() ?? "").get("token");
    const protocol = protocolOf(req);
    const [key, extensions] = [req.getHeader("sec-websocket-key"), req.getHeader("sec-websocket-extensions")];
    const address = clientAddress(res, forwardedFor, this.options);
    const accept = (principal: Principal | null): void => {
      if (reply.done) return this.releaseAddress(address);
      // Numbers of orders' connections are 32 bits; so many later no order of the first ones is left.
      this.lastConnection = (this.lastConnection % 0x7fff_ffff) + 1;
      const isPacked = protocol === "msgpack";
      const { webSocket } = this.options.counters;
      const connection = new SocketConnection(principal, address, isPacked, this.lastConnection, webSocket);
      res.cork(() => res.upgrade({ connection }, key, protocol, extensions, context));
    };
    try {
      if (fault !== null) throw badRequest(fault);
      const closed = this.closedWith();
      if (closed !== null) throw closed;
      if (this.connections.size >= MAX_WS_CONNECTIONS) throw overloaded("too many connections: try again");
      this.claimAddress(address);
    } catch (error) {
      return reply.fail(error);
    }
    const fail = (error: unknown): void => {
      this.releaseAddress(address);
      reply.fail(error);
    };
    try {
      const found = token === null ? null : this.holderOf(token, address, Date.now());
      if (!(found instanceof Promise)) accept(found);
      else found.then(accept).catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  /** Counts a connection until it is closed, or didn't come about. @throws ApiError 42900 beyond what one address may have */
  private claimAddress({ client }: ClientAddress): void {
    const count = this.byAddress.get(client) ?? 0;
    const most = this.options.maxSocketsPerAddress;
    if (count >= most) {
      const text = `at most ${most} WebSocket connections from one IP address`;
      throw new ApiError(ErrorKind.limitExceeded, text, SOCKET_WAIT_S);
    }
    this.byAddress.set(client, count + 1);
  }

  private releaseAddress({ client }: ClientAddress): void {
    const left = this.byAddress.get(client)! - 1;
    if (left === 0) this.byAddress.delete(client);
    else this.byAddress.set(client, left);
  }

  /** @throws ApiError 40100, 2002, 40300, 42900 */
  private holderOf(token: string, address: ClientAddress, now: number): Principal | Promise<Principal> {
    const { authenticator, options } = this;
    if (token.startsWith(TICKET_PREFIX)) {
      const principal = options.tickets.redeem(token, now);
      if (principal !== null) return authenticator.admit(principal, now, () => address);
      throw new ApiError(ErrorKind.unauthenticated, "the ticket is not valid: used, or older than a minute");
    }
    // What costs a look at a signature is counted; what is known, or plainly wrong, costs nothing.
    const mayVerify = (): void => {
      this.limiter?.take(UPGRADE, "default", null, address.client, now);
    };
    return authenticator.authenticate(token, now, () => address, mayVerify);
  }

  /** Ends the sockets of whose token is no longer good: revoked, logged out, expired or suspended. */
  endUnauthenticated(now: number): void {
    for (const [credential, connections] of this.byCredential) {
      for (const { principal } of connections) {
        try {
          checkLive(principal!, now);
        } catch {
          this.endCredential(credential, now);
          break;
        }
      }
    }
  }

  /** Ends the sockets of a credential whose tokens are not good any more. */
  endCredential(credential: Credential, now: number): void {
    for (const connection of [...(this.byCredential.get(credential) ?? [])]) {
      try {
        checkLive(connection.principal!, now);
      } catch (error) {
        connection.end(CLOSE_UNAUTHENTICATED, (error as ApiError).message);
      }
    }
  }

  /** What is open, for the metrics. */
  counts(): { connections: number; subscriptions: number } {
    const { subscriptions } = this.channels;
    return { connections: this.connections.size, subscriptions };
  }

  /** Cancels what is tied to a connection: all of them are about to end. */
  untie(): void {
    for (const { principal, origin } of this.connections) {
      if (principal !== null) this.entry.endConnection(principal.userId, origin.connection);
    }
  }

  /** Tells everyone that the exchange goes down, and ends their sockets. */
  shutDown(): void {
    const message = frame("system.shutdown", 0, this.exchange.timeline.stamp(Date.now()), "null");
    for (const connection of [...this.connections]) {
      connection.push(message);
      connection.end(CLOSE_GOING_AWAY, "shutting down");
    }
  }

  // ---------------------------------------------------------------- one socket

  private open(socket: WebSocket<SocketData>): void {
    const { connection } = socket.getUserData();
    connection.socket = socket;
    this.connections.add(connection);
    this.byHeartbeat[connection.origin.connection.number % HEARTBEAT_PARTS]!.add(connection);
    const { principal } = connection;
    if (principal !== null) this.listen(connection, principal);
  }

  private close(connection: SocketConnection): void {
    const { principal, origin, replay } = connection;
    connection.closed();
    replay?.ended();
    this.connections.delete(connection);
    this.releaseAddress(connection.address);
    this.byHeartbeat[origin.connection.number % HEARTBEAT_PARTS]!.delete(connection);
    this.waiting.delete(connection);
    this.slow.delete(connection);
    this.channels.closed(connection);
    if (principal === null) return;
    leave(this.byUser, principal.userId, connection);
    leave(this.byCredential, principal.credential, connection);
    this.entry.endConnection(principal.userId, origin.connection);
  }

  /** Lets the connection hear what its principal may, from now on. */
  private listen(connection: SocketConnection, principal: Principal): void {
    join(this.byCredential, principal.credential, connection);
    if (connection.hearsOrders) join(this.byUser, principal.userId, connection);
    connection.orderSequence = this.exchange.updates.sequenceOf(principal.userId);
    connection.toldAt = this.exchange.updates.publishedUntil();
    // It may have been revoked while the connection was made.
    this.endCredential(principal.credential, Date.now());
  }

  /** Cuts a connection off that sends so much that all others wait: for a farewell one would have to go on reading. */
  private endIfFlooding(connection: SocketConnection, bytes: number): boolean {
    const { guard } = this.options;
    const isUser = connection.principal !== null;
    const isLong = guard.isLong(Date.now(), isUser ? MAX_TURN_OF_USER_MS : MAX_TURN_MS);
    const most = isUser ? MAX_MESSAGES_OF_USER_PER_LONG_TURN : MAX_MESSAGES_PER_LONG_TURN;
    if (connection.countIn(guard.number, bytes) <= most || !isLong) return false;
    connection.socket?.close();
    return true;
  }

  private receive(connection: SocketConnection, message: ArrayBuffer, isBinary: boolean): void {
    if (this.endIfFlooding(connection, message.byteLength)) return;
    if (message.byteLength > MAX_WS_MESSAGE_BYTES) {
      connection.end(CLOSE_TOO_BIG, `a message has at most ${MAX_WS_MESSAGE_BYTES} bytes`);
      return;
    }
    const reply = new OperationReply(this, connection);
    const { webSocket } = this.options.counters;
    webSocket.requests++;
    webSocket.receivedBytes += message.byteLength;
    try {
      const parsed = parseMessage(message, isBinary, connection.packed) as { id?: unknown; op?: unknown } | null;
      // The id is echoed even where the rest is wrong, so that the client can tell which message failed.
      const id = parsed?.id;
      if (Number.isSafeInteger(id)) reply.id = id as number;
      const op = typeof parsed?.op === "string" ? parsed.op : "";
      const operation = ROUTE_OPERATIONS.get(op);
      if (operation !== undefined) {
        this.runRoute(connection, operation, parsed, reply);
      } else if (OTHER_OPERATIONS.includes(op)) this.runOther(connection, op, parsed, reply);
      else throw badRequest(`op: must be one of ${[...OTHER_OPERATIONS, ...ROUTE_OPERATIONS.keys()].join(", ")}`);
    } catch (error) {
      reply.fail(error);
    }
    this.flush();
  }

  refused(error: ApiError, traceId: string): void {
    this.options.counters.refused(error);
    logInternal(this.logger, error, traceId);
  }

  /** Runs an operation through its route: the same limits, access, schemas and handler as over HTTP. */
  private runRoute(
    connection: SocketConnection,
    operation: OperationRoute,
    parsed: unknown,
    reply: OperationReply,
  ): void {
    const now = Date.now();
    reply.rate = null;
    const closed = this.closedWith();
    if (closed !== null) throw closed;
    const compiled = this.routes.get(operation.template)!;
    const { route } = compiled;
    const { principal, address } = connection;
    reply.rate = countRequest(this.limiter, compiled, principal, address.client, now, "");
    if (principal === null) throw new ApiError(ErrorKind.unauthenticated, "connect with a token to trade");
    checkLive(principal, now);
    authorize(route, principal);
    const { data = {}, builder_code, timestamps } = checkRouteOperation(parsed) as RouteOperation;
    const isCredited = builder_code !== undefined && builder_code !== null;
    if (isCredited && !route.credited) throw badRequest("builder_code: not for this operation");
    if (timestamps !== undefined && route.query !== S.PlaceQuery) throw badRequest("timestamps: only for order.place");
    if (route.method === "DELETE" && operation.param !== null) {
      cancelEither(this.entry, principal.userId, checkCancel(data), now, reply);
      return;
    }
    let rest = data;
    let param = "";
    if (operation.param !== null) {
      const { [operation.param]: named, ...others } = data;
      if (!Number.isSafeInteger(named) || (named as number) < 1) {
        throw badRequest(`data.${operation.param}: required, a positive integer`);
      }
      param = String(named);
      rest = others;
    }
    const { origin: own } = connection;
    const origin = isCredited ? creditedTo(own, builder_code, "builder_code") : own;
    const request = {
      now,
      principal,
      address,
      headers: {},
      origin,
      params: [param, ""] as const,
      query: compiled.body === null ? compiled.values(rest) : timestamps === undefined ? {} : { timestamps },
      body: compiled.body === null ? null : compiled.body(rest),
      reply,
    };
    execute(route, request, reply, this.exchange.reads);
  }

  private runOther(connection: SocketConnection, op: string, parsed: unknown, reply: OperationReply): void {
    if (op === "ping") {
      checkPing(parsed);
      reply.data(`{"now":${Date.now()}}`);
    } else if (op === "cancel_on_disconnect") this.tie(connection, checkTie(parsed).enabled, reply);
    else if (op === "auth") this.presentToken(connection, checkAuth(parsed).token, reply);
    else if (op === "resume") this.resume(connection, checkResume(parsed).sequence, reply);
    else this.changeSubscription(connection, op, checkSubscription(parsed) as Subscription, reply);
  }

  /** A fresh token of the same user takes the place of the connection's own; who had none signs in. */
  private presentToken(connection: SocketConnection, token: string, reply: OperationReply): void {
    const adopt = (principal: Principal): void => {
      const { principal: before, socket } = connection;
      if (socket === null) return;
      checkLive(principal, Date.now());
      if (before !== null && before.userId !== principal.userId) {
        throw new ApiError(ErrorKind.forbidden, "the token is another user's: open another connection");
      }
      connection.principal = principal;
      reply.data(`{"user_id":${principal.userId},"expires_at":${principal.expiresAt}}`);
      if (before === null) return this.listen(connection, principal);
      leave(this.byCredential, before.credential, connection);
      join(this.byCredential, principal.credential, connection);
      if (!connection.hearsOrders) {
        leave(this.byUser, principal.userId, connection);
        const { replay } = connection;
        connection.replay = null;
        replay?.ended();
      } else if (this.byUser.get(principal.userId)?.has(connection) !== true) this.listen(connection, principal);
    };
    const found = this.holderOf(token, connection.address, Date.now());
    if (found instanceof Promise) found.then(adopt).catch((error) => reply.fail(error));
    else adopt(found);
  }

  private resume(connection: SocketConnection, sequence: number, reply: OperationReply): void {
    const { principal, address } = connection;
    // It reads what the route does, and counts as such.
    reply.rate = null;
    const events = this.routes.get(EVENTS)!;
    reply.rate = countRequest(this.limiter, events, principal, address.client, Date.now(), "");
    if (principal === null) throw new ApiError(ErrorKind.unauthenticated, "connect with a token to resume");
    authorize(events.route, principal);
    Replay.start(this.replays, connection, principal.userId, sequence, {
      begun: (last) => reply.data(`{"after":${sequence},"last":${last}}`),
      refused: (error) => reply.fail(error),
      failed: (error) => {
        logInternal(this.logger, asApiError(error), reply.requestId);
        connection.end(CLOSE_INTERNAL_ERROR, "the replay failed: resume again");
      },
    });
  }

  private tie(connection: SocketConnection, enabled: boolean, reply: OperationReply): void {
    const { principal, origin } = connection;
    if (principal === null) throw new ApiError(ErrorKind.unauthenticated, "connect with a token to trade");
    authorize(this.routes.get("POST /orders")!.route, principal);
    origin.connection.cancelOnDisconnect = enabled;
    reply.data(`{"enabled":${enabled}}`);
  }

  private changeSubscription(
    connection: SocketConnection,
    op: string,
    named: Subscription,
    reply: OperationReply,
  ): void {
    if (op === "unsubscribe") {
      reply.data(`{"subscriptions":${this.channels.unsubscribe(connection, named)}}`);
      return;
    }
    const { json, topics } = this.channels.subscribe(connection, named);
    reply.data(`{"subscriptions":${json}}`);
    const isUnderWay = connection.starting.length > 0;
    connection.starting = [...connection.starting, ...topics];
    if (!isUnderWay) this.beginTopics(connection);
  }

  /**
   * Begins subscriptions in their order, as fast as the peer takes what they begin with, and so much a turn of the event
   * loop: a thousand books are tens of megabytes.
   */
  private beginTopics(connection: SocketConnection): void {
    // What the peer takes calls again.
    if (connection.buffered > MAX_BEGINNING_AHEAD_BYTES) return;
    const { starting } = connection;
    let characters = 0;
    let begun = 0;
    while (begun < starting.length && characters < MAX_CHARACTERS_PER_TURN) {
      const beginning = this.channels.begin(connection, starting[begun++]!);
      if (beginning === null) continue;
      characters += beginning.length;
      this.send(connection, beginning);
    }
    connection.starting = starting.slice(begun);
    this.flush();
    if (connection.starting.length === 0) return;
    connection.startsSoon = true;
    setImmediate(() => {
      connection.startsSoon = false;
      this.beginTopics(connection);
    });
  }

  private drained(connection: SocketConnection): void {
    connection.replay?.drained();
    if (connection.starting.length > 0 && !connection.startsSoon) this.beginTopics(connection);
  }

  private send(connection: SocketConnection, message: string): void {
    if (connection.push(message)) this.waiting.add(connection);
  }

  /** Sends an answer, soon where nothing else flushes. */
  answer(connection: SocketConnection, message: string): void {
    this.send(connection, message);
    if (this.isFlushDue) return;
    this.isFlushDue = true;
    queueMicrotask(this.flushDue);
  }

  private readonly flushDue = (): void => {
    this.isFlushDue = false;
    this.flush();
  };

  /** Writes out what every connection was sent. */
  flush(): void {
    // Answers come before the messages about what they answer, and reads before the news of what came after them.
    this.options.guard.release();
    for (const connection of this.waiting) connection.flush();
    this.waiting.clear();
  }

  // ---------------------------------------------------------------- what happened

  listens(userId: number): boolean {
    return this.byUser.has(userId);
  }

  /** A connection opened after the update was published starts behind it: its `orderSequence` says so. */
  orderUpdated(userId: number, sequence: number, at: number, orderJson: string): void {
    const connections = this.byUser.get(userId);
    if (connections === undefined) return;
    const message = orderFrame(sequence, at, orderJson);
    for (const connection of connections) {
      if (connection.replay !== null) connection.replay.hold(sequence, message);
      else if (sequence > connection.orderSequence) {
        connection.orderSequence = sequence;
        connection.toldAt = at;
        this.send(connection, message);
      }
    }
  }

  accountUpdate(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): AccountUpdate | null {
    const connections = [...(this.byUser.get(userId) ?? [])].filter(receivesAccount);
    if (connections.length === 0) return null;
    const { ledger } = this.exchange;
    const positions = [...outcomeIds].map((outcomeId) => ledger.findPosition(userId, outcomeId));
    return { connections, at, messages: this.accountMessages(userId, sequence, at, positions) };
  }

  sendAccountUpdate({ connections, at, messages }: AccountUpdate): void {
    for (const connection of connections.filter(receivesAccount)) {
      connection.toldAt = at;
      for (const message of messages) this.send(connection, message);
    }
  }

  private accountMessages(userId: number, sequence: number, at: number, positions: readonly number[]): string[] {
    const { ledger, registry } = this.exchange;
    const balance = JSON.stringify(balanceView(ledger, userId));
    const messages = [frame("balance.updated", sequence, at, balance)];
    for (const position of positions) {
      const view = JSON.stringify(positionView(ledger, registry, position));
      messages.push(frame("position.updated", sequence, at, view));
    }
    return messages;
  }

  /** Tells a connection its balance and all positions, as of what it was told of its orders. */
  private tellAccount(connection: SocketConnection): void {
    if (!connection.hearsAccount) return;
    const { exchange } = this;
    const { userId } = connection.principal!;
    const positions = positionsOf(exchange.ledger, userId);
    connection.toldAt = exchange.updates.publishedUntil();
    const messages = this.accountMessages(userId, exchange.updates.sequenceOf(userId), connection.toldAt, positions);
    for (const message of messages) this.send(connection, message);
  }

  // ---------------------------------------------------------------- as time goes by

  /** Tells tickers, sends a part of the heartbeats and ends slow consumers. Called each SOCKET_TICK_MS. */
  tick(now: number): void {
    this.channels.tellTickers(this.exchange.timeline.stamp(now));
    const toldUntil = this.exchange.updates.publishedUntil();
    const part = this.byHeartbeat[this.nextHeartbeat]!;
    this.nextHeartbeat = (this.nextHeartbeat + 1) % HEARTBEAT_PARTS;
    for (const connection of part) this.send(connection, this.heartbeat(connection, toldUntil));
    this.flush();
    for (let i = 0; i < WATCHED_PARTS; i++) {
      for (const connection of this.byHeartbeat[(this.nextHeartbeat * WATCHED_PARTS + i) % HEARTBEAT_PARTS]!) {
        // The others have nothing that comes without a flush.
        if (connection.topics !== null) connection.endIfSlow();
      }
    }
    for (const connection of this.slow) connection.endSlow();
    this.slow.clear();
  }

  /** @param toldUntil the time up to which every connection was told everything, ms, unless it is behind */
  private heartbeat(connection: SocketConnection, toldUntil: number): string {
    const subscriptions = this.channels.list(connection.topics ?? []);
    const data = `{"subscriptions":${subscriptions},"orders":${this.orderSequenceOf(connection)}}`;
    if (!this.isBehind(connection)) connection.toldAt = toldUntil;
    return frame("heartbeat", ++connection.heartbeats, connection.toldAt, data);
  }

  /** The last order update that the connection should have; null where it hears none. */
  private orderSequenceOf(connection: SocketConnection): number | null {
    if (!connection.hearsOrders) return null;
    return this.isBehind(connection)
      ? connection.orderSequence
      : this.exchange.updates.sequenceOf(connection.principal!.userId);
  }

  /** Some of what happened to its user's orders is still to be told. */
  private isBehind({ principal, replay }: SocketConnection): boolean {
    return principal !== null && (replay !== null || this.outbox.isHeld(principal.userId));
  }
}

/** A connection with a replay under way receives its account at the replay's end. */
function receivesAccount(connection: SocketConnection): boolean {
  connection.replay?.holdAccount();
  return connection.hearsAccount && connection.replay === null;
}

function join<K>(groups: Map<K, Set<SocketConnection>>, key: K, connection: SocketConnection): void {
  const members = groups.get(key);
  if (members === undefined) groups.set(key, new Set([connection]));
  else members.add(connection);
}

function leave<K>(groups: Map<K, Set<SocketConnection>>, key: K, connection: SocketConnection): void {
  const members = groups.get(key);
  members?.delete(connection);
  if (members?.size === 0) groups.delete(key);
}

/** The subprotocol to speak: the first that the client offers and we know, or none. */
function protocolOf(req: HttpRequest): string {
  const offered = req.getHeader("sec-websocket-protocol").split(",");
  return offered.map((name) => name.trim()).find((name) => name === "msgpack" || name === "json") ?? "";
}

function parseMessage(message: ArrayBuffer, isBinary: boolean, packed: boolean): unknown {
  if (isBinary !== packed) throw badRequest(packed ? "send binary frames of MessagePack" : "send text frames of JSON");
  try {
    return packed ? decodeMessage(new Uint8Array(message)) : parseJson(Buffer.from(message));
  } catch {
    throw badRequest(`the message is not valid ${packed ? "MessagePack" : "JSON"}`);
  }
}
