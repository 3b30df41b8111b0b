/**
 * The WebSocket at /ws: the upgrade with its token, subscriptions to public channels, and pushes. One `Connection` per
 * socket, alive from open to close. Messages of one committed batch leave a socket in one write.
 *
 * A reader that lets more than 1 MiB pile up is closed with 4408; nobody waits for it.
 */
import type { TemplatedApp, WebSocket } from "uWebSockets.js";
import { MAX_WS_BACKPRESSURE_BYTES, MAX_WS_MESSAGE_BYTES, MAX_WS_SUBSCRIPTIONS } from "../engine/limits.ts";
import type { Accounts, Principal } from "./accounts.ts";
import { ApiError, badRequest, ErrorKind, notFound } from "./errors.ts";
import type { Audience, Exchange } from "./exchange.ts";
import { API_BASE, errorBody, newRequestId, Reply, requestIdOf } from "./http.ts";
import type { Logger } from "./logger.ts";
import type { Level, Market, Outcome } from "./market-registry.ts";
import * as S from "./schemas.ts";
import { compileSchema } from "./validate.ts";
import { balanceView, ladders, positionView } from "./views.ts";

const CLOSE_GOING_AWAY = 1001;
const CLOSE_SLOW_CONSUMER = 4408;
const IDLE_TIMEOUT_S = 60;
/** Above our own bound, so that uWebSockets.js never drops a message before we close the socket. */
const SOCKET_BACKPRESSURE_BYTES = 16 * MAX_WS_BACKPRESSURE_BYTES;

/** What uWebSockets.js keeps for a socket: it copies the fields, so the connection goes in as one of them. */
interface SocketData {
  readonly connection: Connection;
}

/** One user's or one anonymous client's socket. */
class Connection {
  readonly principal: Principal | null;
  readonly topics = new Set<Topic>();
  private readonly outbox: string[] = [];
  private socket: WebSocket<SocketData> | null = null;

  constructor(principal: Principal | null) {
    this.principal = principal;
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

  flush(): void {
    const { socket } = this;
    if (socket === null || this.outbox.length === 0) return;
    socket.cork(() => {
      for (const message of this.outbox) socket.send(message, false);
    });
    this.outbox.length = 0;
    if (socket.getBufferedAmount() > MAX_WS_BACKPRESSURE_BYTES) {
      socket.end(CLOSE_SLOW_CONSUMER, "slow consumer");
    }
  }

  end(code: number, reason: string): void {
    this.flush();
    this.socket?.end(code, reason);
  }
}

const checkRequest = compileSchema(S.SocketRequest);

export interface SocketOptions {
  readonly exchange: Exchange;
  readonly accounts: Accounts;
  readonly logger: Logger;
  readonly closed: () => ApiError | null;
}

export class SocketHub implements Audience {
  private readonly exchange: Exchange;
  private readonly accounts: Accounts;
  private readonly logger: Logger;
  private readonly closedWith: () => ApiError | null;
  private readonly connections = new Set<Connection>();
  private readonly byUser = new Map<number, Set<Connection>>();
  private readonly byTopic = new Map<Topic, Set<Connection>>();
  private readonly waiting = new Set<Connection>();

  constructor(options: SocketOptions) {
    this.exchange = options.exchange;
    this.accounts = options.accounts;
    this.logger = options.logger;
    this.closedWith = options.closed;
  }

  register(app: TemplatedApp): void {
    app.ws<SocketData>(`${API_BASE}/ws`, {
      idleTimeout: IDLE_TIMEOUT_S,
      sendPingsAutomatically: true,
      maxPayloadLength: MAX_WS_MESSAGE_BYTES,
      maxBackpressure: SOCKET_BACKPRESSURE_BYTES,
      upgrade: (res, req, context) => {
        // The token may stand in the URL: nothing of the URL is ever logged.
        const token = new URLSearchParams(req.getQuery() ?? "").get("token");
        let principal: Principal | null;
        try {
          const closed = this.closedWith();
          if (closed !== null) throw closed;
          principal = token === null ? null : this.accounts.authenticate(token, Date.now());
        } catch (error) {
          new Reply(res, requestIdOf(req), 200, this.logger).fail(error);
          return;
        }
        res.upgrade(
          { connection: new Connection(principal) },
          req.getHeader("sec-websocket-key"),
          req.getHeader("sec-websocket-protocol"),
          req.getHeader("sec-websocket-extensions"),
          context,
        );
      },
      open: (socket) => this.open(socket),
      message: (socket, message, isBinary) => this.receive(socket.getUserData().connection, message, isBinary),
      close: (socket) => this.close(socket.getUserData().connection),
    });
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
    if (principal === null || !hearsOrders(principal)) return;
    const mine = this.byUser.get(principal.userId);
    if (mine === undefined) this.byUser.set(principal.userId, new Set([connection]));
    else mine.add(connection);
  }

  private close(connection: Connection): void {
    connection.closed();
    this.connections.delete(connection);
    this.waiting.delete(connection);
    for (const topic of connection.topics) this.leave(connection, topic);
    const { principal } = connection;
    if (principal === null) return;
    const mine = this.byUser.get(principal.userId);
    mine?.delete(connection);
    if (mine?.size === 0) this.byUser.delete(principal.userId);
  }

  private receive(connection: Connection, message: ArrayBuffer, isBinary: boolean): void {
    let id: number | null = null;
    try {
      if (isBinary) throw badRequest("send text frames of JSON");
      const parsed = parseMessage(message);
      // The id is echoed even where the rest is wrong, so that the client can tell which message failed.
      const given = (parsed as { id?: unknown } | null)?.id;
      if (Number.isSafeInteger(given)) id = given as number;
      const request = checkRequest(parsed);
      this.run(connection, request as SocketRequest, id);
    } catch (error) {
      const traceId = newRequestId();
      this.send(connection, refusal(id, this.explain(error, traceId), traceId));
    }
    this.flush();
  }

  private explain(thrown: unknown, traceId: string): ApiError {
    if (thrown instanceof ApiError) return thrown;
    this.logger.error({ traceId, err: thrown }, "a WebSocket operation failed");
    return new ApiError(ErrorKind.internal, "internal error");
  }

  private run(connection: Connection, request: SocketRequest, id: number | null): void {
    if (request.op === "ping") {
      this.send(connection, acknowledgement(id, `{"now":${Date.now()}}`));
      return;
    }
    if (request.channel === undefined) throw badRequest("channel: required");
    if (request.market_id === undefined) throw badRequest("market_id: required");
    const market = this.exchange.registry.get(request.market_id);
    if (market === undefined) throw notFound("market");
    const topics = topicsOf(request, market);
    if (request.op === "unsubscribe") {
      for (const topic of topics) {
        connection.topics.delete(topic);
        this.leave(connection, topic);
      }
      this.send(connection, acknowledgement(id, "null"));
      return;
    }
    if (connection.topics.size + topics.length > MAX_WS_SUBSCRIPTIONS) {
      throw badRequest(`at most ${MAX_WS_SUBSCRIPTIONS} subscriptions a connection`);
    }
    this.send(connection, acknowledgement(id, "null"));
    for (const topic of topics) {
      connection.topics.add(topic);
      this.join(connection, topic);
      if (topic !== market) this.sendSnapshot(connection, market, topic as Outcome);
    }
  }

  private sendSnapshot(connection: Connection, market: Market, outcome: Outcome): void {
    const { registry } = this.exchange;
    const sequence = registry.bookSequence(outcome);
    const now = Date.now();
    const { bids, asks } = ladders(registry, market, outcome, undefined, false);
    const data = JSON.stringify({ market_id: market.id, outcome_id: outcome.id, sequence, ts: now, bids, asks });
    this.send(connection, frame("book.snapshot", sequence, now, data));
  }

  private join(connection: Connection, topic: Topic): void {
    const members = this.byTopic.get(topic);
    if (members !== undefined) {
      members.add(connection);
      return;
    }
    this.byTopic.set(topic, new Set([connection]));
    topic.isWatched = true;
  }

  private leave(connection: Connection, topic: Topic): void {
    const members = this.byTopic.get(topic);
    if (members === undefined || !members.delete(connection) || members.size > 0) return;
    this.byTopic.delete(topic);
    topic.isWatched = false;
  }

  private send(connection: Connection, message: string): void {
    if (connection.push(message)) this.waiting.add(connection);
  }

  private flush(): void {
    for (const connection of this.waiting) connection.flush();
    this.waiting.clear();
  }

  // ---------------------------------------------------------------- what happened

  listens(userId: number): boolean {
    return this.byUser.has(userId);
  }

  orderUpdated(userId: number, sequence: number, at: number, orderJson: string): void {
    const message = frame("order.updated", sequence, at, orderJson);
    for (const connection of this.byUser.get(userId) ?? []) this.send(connection, message);
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
    for (const connection of listeners) for (const message of messages) this.send(connection, message);
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

interface SocketRequest {
  op: "subscribe" | "unsubscribe" | "ping";
  channel?: "book" | "trades";
  market_id?: number;
  outcome_id?: number;
  id?: number | null;
}

/** The topics that a subscription names; a book subscription without outcome means all of the market's. */
function topicsOf(request: SocketRequest, market: Market): readonly Topic[] {
  if (request.channel === "trades") return [market];
  const { outcome_id: wanted } = request;
  const found = market.outcomes.filter(({ id }) => wanted === undefined || id === wanted);
  if (found.length === 0) throw notFound("outcome");
  return found;
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

function acknowledgement(id: number | null, dataJson: string): string {
  return `{"id":${id},"code":0,"msg":"ok","data":${dataJson}}`;
}

function refusal(id: number | null, error: ApiError, traceId: string): string {
  return `{"id":${id},${errorBody(error, traceId).slice(1)}`;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function parseMessage(message: ArrayBuffer): unknown {
  try {
    return JSON.parse(utf8.decode(message));
  } catch {
    throw badRequest("the message is not valid JSON");
  }
}
