/**
 * The WebSocket at /ws: the upgrade with its token, subscriptions to public channels, operations of routes, and pushes.
 * One `SocketConnection` per socket, alive from open to close. Messages of one committed batch leave a socket in one write.
 *
 * Inside, every message is JSON text; a connection with the subprotocol `msgpack` gets the same objects as MessagePack.
 * A reader that lets more than 1 MiB pile up is closed with 4408; nobody waits for it.
 */
import type { HttpRequest, HttpResponse, TemplatedApp, us_socket_context_t, WebSocket } from "uWebSockets.js";
import {
  MAX_WS_BACKPRESSURE_BYTES,
  MAX_WS_MESSAGE_BYTES,
  MAX_WS_SUBSCRIPTIONS,
  WS_IDLE_TIMEOUT_S,
} from "../engine/limits.ts";
import type { Credential, Principal } from "./accounts.ts";
import { type Authenticator, checkLive } from "./authenticator.ts";
import type { AddressReader, ClientAddress } from "./client-address.ts";
import type { Counters, Traffic } from "./counters.ts";
import { authorize, type CompiledRoute, countRequest, creditedTo, execute } from "./dispatch.ts";
import { API_BASE, errorFields, successFields } from "./envelope.ts";
import { ApiError, asApiError, badRequest, ErrorKind, notFound } from "./errors.ts";
import type { Audience, Exchange } from "./exchange.ts";
import { clientAddress, newRequestId, replyWithoutRoute } from "./http.ts";
import { type Logger, logInternal } from "./logger.ts";
import type { Level, Market, Outcome } from "./market-registry.ts";
import { decodeMessage, encodeJson } from "./msgpack.ts";
import type { Connection, OrderEntry, Origin } from "./order-entry.ts";
import { OutgoingMail } from "./outgoing-mail.ts";
import { parseJson } from "./parse-json.ts";
import { RateLimited, type RateLimiter, type RateState } from "./rate-limiter.ts";
import type { Responder } from "./route.ts";
import { cancelEither } from "./routes.ts";
import * as S from "./schemas.ts";
import { compileSchema } from "./validate.ts";
import { balanceView, ladders, positionView } from "./views.ts";

/** Names the rate bucket of tokens to verify. */
const UPGRADE = "GET /ws";
const CLOSE_GOING_AWAY = 1001;
const CLOSE_UNAUTHENTICATED = 4401;
const CLOSE_SLOW_CONSUMER = 4408;
/** What uWebSockets.js says of a message that it dropped. */
const SEND_DROPPED = 2;
/** Above our own bound, for what one commit may bring at once; past it uWebSockets.js drops messages. */
const SOCKET_BACKPRESSURE_BYTES = 64 * MAX_WS_BACKPRESSURE_BYTES;

/** What uWebSockets.js keeps for a socket: it copies the fields, so the connection goes in as one of them. */
interface SocketData {
  readonly connection: SocketConnection;
}

/** One user's or one anonymous client's socket. */
class SocketConnection {
  readonly principal: Principal | null;
  readonly address: ClientAddress;
  readonly packed: boolean;
  readonly topics = new Set<Topic>();
  /** What orders that it places know of it. */
  readonly origin: Origin & { connection: Connection };
  private readonly outbox: string[] = [];
  private readonly traffic: Traffic;
  private socket: WebSocket<SocketData> | null = null;

  constructor(principal: Principal | null, address: ClientAddress, packed: boolean, number: number, traffic: Traffic) {
    this.traffic = traffic;
    this.principal = principal;
    this.address = address;
    this.packed = packed;
    this.origin = { connection: { number, tied: false, ended: false }, builderCode: null };
  }

  opened(socket: WebSocket<SocketData>): void {
    this.socket = socket;
  }

  closed(): void {
    this.socket = null;
    this.outbox.length = 0;
  }

  /** Gathers a message for the next `flush`; true when it is the first. */
  push(message: string): boolean {
    if (this.socket === null) return false;
    return this.outbox.push(message) === 1;
  }

  /**
   * Sends what was gathered, unless what was sent before still piles up. What one commit brings at once may be more than
   * the bound (the updates of a large cancel-all are megabytes): it counts when the next message comes.
   */
  flush(): void {
    const { socket } = this;
    if (socket === null || this.outbox.length === 0) return;
    if (socket.getBufferedAmount() > MAX_WS_BACKPRESSURE_BYTES) {
      this.outbox.length = 0;
      socket.end(CLOSE_SLOW_CONSUMER, "slow consumer");
      return;
    }
    let isWhole = true;
    socket.cork(() => {
      for (const message of this.outbox) {
        const bytes = this.packed ? encodeJson(message) : message;
        this.traffic.sentBytes += Buffer.byteLength(bytes);
        const sent = socket.send(bytes, this.packed);
        if (sent === SEND_DROPPED) isWhole = false;
      }
    });
    this.outbox.length = 0;
    if (!isWhole) socket.end(CLOSE_SLOW_CONSUMER, "slow consumer");
  }

  end(code: number, reason: string): void {
    this.flush();
    this.socket?.end(code, reason);
  }
}

/** The way back to the operation `id` of a connection. */
class OperationReply implements Responder {
  /** As the client gave it. */
  id: number | null = null;
  /** What is left of the limits that counted it, null where nothing is limited; undefined where it isn't of a route. */
  rate: RateState | null | undefined;
  private readonly hub: SocketHub;
  private readonly connection: SocketConnection;
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
    this.give(successFields(json));
  }

  plain(_status: number, json: string): void {
    this.data(json);
  }

  header(): void {}

  error(error: ApiError): void {
    if (error instanceof RateLimited) this.rate = error.rate;
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
    this.hub.answer(this.connection, `{"id":${this.id},${fields}${rate}}`);
  }
}

function rateJson(rate: RateState | null): string {
  if (rate === null) return "null";
  return `{"limit":${rate.limit},"remaining":${rate.remaining},"reset":${rate.reset}}`;
}

interface Subscription {
  channel: "book" | "trades";
  market_id: number;
  outcome_id?: number;
}

interface RouteOperation {
  data?: Record<string, unknown>;
  builder_code?: string | null;
  timestamps?: boolean;
}

const checkSubscription = compileSchema(S.Subscription);
const checkPing = compileSchema(S.Ping);
const checkTie = compileSchema(S.CancelOnDisconnect);
const checkRouteOperation = compileSchema(S.RouteOperation);
const checkCancel = compileSchema(S.CancelOrder);

/** An operation's route, and what of its data are path parameters; the rest is the route's query or body. */
interface OperationRoute {
  readonly template: string;
  readonly param: string | null;
}

const ROUTE_OPERATIONS: ReadonlyMap<string, OperationRoute> = new Map([
  ["order.place", { template: "POST /orders", param: null }],
  ["order.cancel", { template: "DELETE /orders/:id", param: "id" }],
  ["order.cancel_all", { template: "DELETE /orders", param: null }],
  ["order.amend", { template: "PATCH /orders/:id", param: "id" }],
  ["order.batch", { template: "POST /orders/batch", param: null }],
  ["quotes.replace", { template: "PUT /quotes/:market_id", param: "market_id" }],
]);
const OTHER_OPERATIONS = ["subscribe", "unsubscribe", "ping", "cancel_on_disconnect"];

export interface SocketOptions {
  readonly exchange: Exchange;
  readonly entry: OrderEntry;
  readonly routes: readonly CompiledRoute[];
  readonly authenticator: Authenticator;
  readonly logger: Logger;
  readonly counters: Counters;
  /** Null where nothing is limited. */
  readonly limiter: RateLimiter | null;
  readonly addressOf: AddressReader;
  /** Some peers' X-Forwarded-For counts. */
  readonly hasProxies: boolean;
  readonly closed: () => ApiError | null;
}

export class SocketHub implements Audience {
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
  private readonly byTopic = new Map<Topic, Set<SocketConnection>>();
  private readonly waiting = new Set<SocketConnection>();
  private readonly mail = new OutgoingMail();
  private lastConnection = 0;
  private isFlushDue = false;

  constructor(options: SocketOptions) {
    this.options = options;
    this.exchange = options.exchange;
    this.entry = options.entry;
    this.authenticator = options.authenticator;
    this.logger = options.logger;
    this.limiter = options.limiter;
    this.closedWith = options.closed;
    this.routes = new Map(options.routes.map((compiled) => [compiled.template, compiled]));
  }

  register(app: TemplatedApp): void {
    app.ws<SocketData>(`${API_BASE}/ws`, {
      idleTimeout: WS_IDLE_TIMEOUT_S,
      sendPingsAutomatically: true,
      maxPayloadLength: MAX_WS_MESSAGE_BYTES,
      maxBackpressure: SOCKET_BACKPRESSURE_BYTES,
      upgrade: (res, req, context) => this.upgrade(res, req, context),
      open: (socket) => this.open(socket),
      message: (socket, message, isBinary) => this.receive(socket.getUserData().connection, message, isBinary),
      close: (socket) => this.close(socket.getUserData().connection),
    });
  }

  /** Lets a client in, once it is known who asks. */
  private upgrade(res: HttpResponse, req: HttpRequest, context: us_socket_context_t): void {
    const reply = replyWithoutRoute(res, req, this.options);
    // The token may stand in the URL: nothing of the URL is ever logged.
    const token = new URLSearchParams(req.getQuery() ?? "").get("token");
    const protocol = protocolOf(req);
    const [key, extensions] = [req.getHeader("sec-websocket-key"), req.getHeader("sec-websocket-extensions")];
    const address = clientAddress(res, req, this.options);
    const accept = (principal: Principal | null): void => {
      if (reply.done) return;
      // Numbers of orders' connections are 32 bits; so many later no order of the first ones is left.
      this.lastConnection = (this.lastConnection % 0x7fff_ffff) + 1;
      const isPacked = protocol === "msgpack";
      const { webSocket } = this.options.counters;
      const connection = new SocketConnection(principal, address, isPacked, this.lastConnection, webSocket);
      res.cork(() => res.upgrade({ connection }, key, protocol, extensions, context));
    };
    try {
      const closed = this.closedWith();
      if (closed !== null) throw closed;
      const now = Date.now();
      // What costs a look at a signature is counted; what is known, or plainly wrong, costs nothing.
      const mayVerify = (): void => {
        this.limiter?.take(UPGRADE, "default", null, address.client, now);
      };
      const found = token === null ? null : this.authenticator.authenticate(token, now, () => address, mayVerify);
      if (!(found instanceof Promise)) accept(found);
      else found.then(accept).catch((error) => reply.fail(error));
    } catch (error) {
      reply.fail(error);
    }
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
    let subscriptions = 0;
    for (const { topics } of this.connections) subscriptions += topics.size;
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
    const message = frame("system.shutdown", 0, Date.now(), "null");
    for (const connection of [...this.connections]) {
      connection.push(message);
      connection.end(CLOSE_GOING_AWAY, "shutting down");
    }
  }

  // ---------------------------------------------------------------- one socket

  private open(socket: WebSocket<SocketData>): void {
    const { connection } = socket.getUserData();
    connection.opened(socket);
    this.connections.add(connection);
    const { principal } = connection;
    if (principal === null) return;
    join(this.byCredential, principal.credential, connection);
    if (hearsOrders(principal)) join(this.byUser, principal.userId, connection);
    // It may have been revoked while the connection was made.
    this.endCredential(principal.credential, Date.now());
  }

  private close(connection: SocketConnection): void {
    connection.closed();
    this.connections.delete(connection);
    this.waiting.delete(connection);
    for (const topic of connection.topics) this.leave(connection, topic);
    const { principal } = connection;
    if (principal === null) return;
    leave(this.byUser, principal.userId, connection);
    leave(this.byCredential, principal.credential, connection);
    this.entry.endConnection(principal.userId, connection.origin.connection);
  }

  private receive(connection: SocketConnection, message: ArrayBuffer, isBinary: boolean): void {
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
    else this.changeSubscription(connection, op, checkSubscription(parsed) as Subscription, reply);
  }

  private tie(connection: SocketConnection, enabled: boolean, reply: OperationReply): void {
    const { principal, origin } = connection;
    if (principal === null) throw new ApiError(ErrorKind.unauthenticated, "connect with a token to trade");
    authorize(this.routes.get("POST /orders")!.route, principal);
    origin.connection.tied = enabled;
    reply.data(`{"enabled":${enabled}}`);
  }

  private changeSubscription(
    connection: SocketConnection,
    op: string,
    request: Subscription,
    reply: OperationReply,
  ): void {
    const market = this.exchange.registry.get(request.market_id);
    if (market === undefined) throw notFound("market");
    const topics = topicsOf(request, market);
    if (op === "unsubscribe") {
      for (const topic of topics) {
        connection.topics.delete(topic);
        this.leave(connection, topic);
      }
      reply.data("null");
      return;
    }
    if (connection.topics.size + topics.length > MAX_WS_SUBSCRIPTIONS) {
      throw badRequest(`at most ${MAX_WS_SUBSCRIPTIONS} subscriptions a connection`);
    }
    reply.data("null");
    for (const topic of topics) {
      connection.topics.add(topic);
      this.join(connection, topic);
      if (topic !== market) this.sendSnapshot(connection, market, topic as Outcome);
    }
  }

  private sendSnapshot(connection: SocketConnection, market: Market, outcome: Outcome): void {
    const { registry } = this.exchange;
    const sequence = registry.bookSequence(outcome);
    const now = Date.now();
    const { bids, asks } = ladders(registry, market, outcome, undefined, false);
    const data = JSON.stringify({ market_id: market.id, outcome_id: outcome.id, sequence, ts: now, bids, asks });
    this.send(connection, frame("book.snapshot", sequence, now, data));
  }

  private join(connection: SocketConnection, topic: Topic): void {
    join(this.byTopic, topic, connection);
    topic.isWatched = true;
  }

  private leave(connection: SocketConnection, topic: Topic): void {
    leave(this.byTopic, topic, connection);
    topic.isWatched = this.byTopic.has(topic);
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

  private flush(): void {
    for (const connection of this.waiting) connection.flush();
    this.waiting.clear();
  }

  // ---------------------------------------------------------------- what happened

  listens(userId: number): boolean {
    return this.byUser.has(userId);
  }

  holdBack(userId: number): () => void {
    return this.mail.hold(userId);
  }

  afterMessages(userId: number, callback: () => void): void {
    this.mail.send(userId, callback);
  }

  orderUpdated(userId: number, sequence: number, at: number, orderJson: string): void {
    const message = frame("order.updated", sequence, at, orderJson);
    const listeners = this.byUser.get(userId) ?? [];
    // One that opens while this waits starts after it: what came in between it is not told either.
    const told = this.mail.isHeld(userId) ? [...listeners] : listeners;
    this.mail.send(userId, () => {
      for (const connection of told) this.send(connection, message);
    });
  }

  tradeCreated(market: Market, sequence: number, at: number, tradeJson: string): void {
    this.publish(market, frame("trade.created", sequence, at, tradeJson));
  }

  bookUpdated(market: Market, outcome: Outcome, sequence: number, bids: Level[], asks: Level[]): void {
    const data = JSON.stringify({ market_id: market.id, outcome_id: outcome.id, bids, asks });
    this.publish(outcome, frame("book.updated", sequence, Date.now(), data));
  }

  accountChanged(userId: number, sequence: number, outcomeIds: ReadonlySet<number>): void {
    const { ledger, registry } = this.exchange;
    const listeners = [...(this.byUser.get(userId) ?? [])].filter(({ principal }) => hearsAccount(principal!));
    if (listeners.length === 0) return;
    const now = Date.now();
    const messages = [frame("balance.updated", sequence, now, JSON.stringify(balanceView(ledger, userId)))];
    for (const outcomeId of outcomeIds) {
      const position = ledger.findPosition(userId, outcomeId);
      const view = JSON.stringify(positionView(ledger, registry, position));
      messages.push(frame("position.updated", sequence, now, view));
    }
    this.mail.send(userId, () => {
      for (const connection of listeners) for (const message of messages) this.send(connection, message);
    });
  }

  endBatch(): void {
    this.flush();
  }

  private publish(topic: Topic, message: string): void {
    for (const connection of this.byTopic.get(topic) ?? []) this.send(connection, message);
  }
}

/** What can be subscribed to: a market stands for its trades, an outcome for its book. */
type Topic = Market | Outcome;

/** The topics that a subscription names; a book subscription without outcome means all of the market's. */
function topicsOf(request: Subscription, market: Market): readonly Topic[] {
  if (request.channel === "trades") return [market];
  const { outcome_id: wanted } = request;
  const found = market.outcomes.filter(({ id }) => wanted === undefined || id === wanted);
  if (found.length === 0) throw notFound("outcome");
  return found;
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

function hearsOrders(principal: Principal): boolean {
  return principal.scopes.has("portfolio:read") || principal.scopes.has("orders:write");
}

function hearsAccount(principal: Principal): boolean {
  return principal.scopes.has("portfolio:read");
}

function frame(event: string, sequence: number, ts: number, dataJson: string): string {
  return `{"event":"${event}","sequence":${sequence},"ts":${ts},"data":${dataJson}}`;
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
