/**
 * The WebSocket at /ws: its connections, and the delivery of what happened to their clients. Private messages (a user's
 * orders and money) leave here; public channels are channels.ts, catching up replay.ts, requests operations.ts.
 *
 * Inside, every message is JSON text; a connection with the subprotocol `msgpack` gets the same objects as MessagePack.
 * A client that lets more than 1 MiB pile up is closed with 4408: the hub waits for no client.
 */
import type { TemplatedApp, WebSocket } from "uWebSockets.js";
import type { Credential, Principal } from "../accounts/types.ts";
import { type ApiError, asApiError } from "../errors.ts";
import type { Connections } from "../http/connections.ts";
import type { CompiledRoute } from "../http/dispatch.ts";
import { MAX_TURN_MS } from "../http/limits.ts";
import { API_BASE } from "../http/route.ts";
import type { History } from "../queries/history.ts";
import type { Authenticator } from "../sign-in/authenticator.ts";
import type { CancelTimers } from "../trading/cancel-timers.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { OrderEntry } from "../trading/order-entry.ts";
import { MAX_CHARACTERS_PER_TURN } from "../util/limits.ts";
import { Channels, subscribedJson } from "./channels.ts";
import {
  CLOSE_GOING_AWAY,
  CLOSE_TOO_BIG,
  CLOSE_UNAUTHENTICATED,
  frame,
  type SocketConnection,
  type SocketData,
} from "./connection.ts";
import { type ActionHost, ConnectionActions } from "./connection-actions.ts";
import { Delivery } from "./delivery.ts";
import {
  HEARTBEAT_MS,
  MAX_MESSAGES_OF_USER_PER_LONG_TURN,
  MAX_MESSAGES_PER_LONG_TURN,
  MAX_SNAPSHOT_AHEAD_BYTES,
  MAX_TURN_OF_USER_MS,
  MAX_WS_BACKPRESSURE_BYTES,
  MAX_WS_FRAME_BYTES,
  MAX_WS_MESSAGE_BYTES,
  SOCKET_TICK_MS,
  WS_IDLE_TIMEOUT_S,
} from "./limits.ts";
import { OperationAdmission } from "./operation-admission.ts";
import { type OperationHost, type OperationOptions, Operations } from "./operations.ts";
import type { ReplayContext } from "./replay.ts";
import { SbeMarketMessages } from "./sbe/market-messages.ts";
import { SbeMessages } from "./sbe/messages.ts";
import { SbeOperations } from "./sbe/operations.ts";
import type { Shutdown } from "./schemas.ts";
import type { Publisher } from "./types.ts";
import { Upgrade, type UpgradeOptions } from "./upgrade.ts";
import { addTo, removeFrom, UserStream } from "./user-stream.ts";

/** A tick sends the heartbeats of one part of the connections; an interval has this many ticks. */
const HEARTBEAT_PARTS = HEARTBEAT_MS / SOCKET_TICK_MS;
/** Parts that a tick searches for slow subscribers: every connection twice a second. */
const PARTS_CHECKED_PER_TICK = HEARTBEAT_PARTS / 5;
/** Up to this size a message counts as one in its turn of the event loop. */
const USUAL_MESSAGE_BYTES = 1_024;
/** Above our own bound, to hold the messages of one commit; past it uWebSockets.js drops messages. */
const SOCKET_BACKPRESSURE_BYTES = 64 * MAX_WS_BACKPRESSURE_BYTES;

/** An open socket with its connection as a field: reading that takes half the time of `getUserData`. */
interface OpenSocket extends WebSocket<SocketData> {
  connection: SocketConnection;
}

const connectionOf = (socket: WebSocket<SocketData>): SocketConnection => (socket as OpenSocket).connection;

export interface SocketOptions extends UpgradeOptions, Omit<OperationOptions, "admission"> {
  readonly routes: readonly CompiledRoute[];
  readonly authenticator: Authenticator;
  readonly entry: OrderEntry;
  readonly cancelTimers: CancelTimers;
  readonly exchange: Exchange;
  readonly history: History;
  /** Sends messages to the subscribers of topics. */
  readonly publisher: Publisher;
  readonly connections: Connections;
  /** ms */
  readonly startedAt: number;
}

export class SocketHub implements OperationHost, ActionHost {
  readonly channels: Channels;
  readonly replays: ReplayContext;
  readonly users: UserStream;
  private readonly delivery: Delivery;
  private readonly options: SocketOptions;
  private readonly exchange: Exchange;
  private readonly upgrade: Upgrade;
  private readonly operations: Operations;
  private readonly sbe: SbeOperations;
  private readonly messages = new SbeMessages();
  private readonly marketMessages = new SbeMarketMessages();
  private readonly connections = new Set<SocketConnection>();
  private readonly byCredential = new Map<Credential, Set<SocketConnection>>();
  private readonly byHeartbeatPart = Array.from({ length: HEARTBEAT_PARTS }, () => new Set<SocketConnection>());
  private nextHeartbeatPart = 0;
  /** uWebSockets.js dropped a message to them: the next tick closes them. */
  private readonly slow = new Set<SocketConnection>();

  constructor(options: SocketOptions) {
    const { publisher, exchange, history, counters, clock, startedAt } = options;
    const { registry, ledger, timeline } = exchange;
    this.options = options;
    this.exchange = exchange;
    this.upgrade = new Upgrade(options, () => this.connections.size);
    this.channels = new Channels(publisher, registry, ledger, counters.webSocket, { timeline, clock, startedAt });
    this.delivery = new Delivery(options.guard);
    this.users = new UserStream(exchange, this.delivery, this.messages);
    this.replays = { exchange, history, delivery: this.delivery, users: this.users };
    const { authenticator, entry, logger, cancelTimers } = options;
    const admission = new OperationAdmission(options.admission, options.routes);
    const actions = new ConnectionActions(this, { authenticator, admission, logger, now: () => clock.now() });
    this.operations = new Operations({ ...options, admission }, this, actions);
    const { delivery, messages, marketMessages } = this;
    this.sbe = new SbeOperations({
      ...{ admission, actions, entry, exchange, cancelTimers },
      ...{ delivery, messages, marketMessages, counters, logger },
    });
  }

  register(app: TemplatedApp): void {
    app.ws<SocketData>(`${API_BASE}/ws`, {
      idleTimeout: WS_IDLE_TIMEOUT_S,
      sendPingsAutomatically: true,
      // For a larger message uWebSockets.js drops the connection without a close code: the client sees 1006.
      maxPayloadLength: MAX_WS_FRAME_BYTES,
      maxBackpressure: SOCKET_BACKPRESSURE_BYTES,
      upgrade: (res, req, context) => this.upgrade.run(res, req, context),
      open: (socket) => this.open(socket),
      message: (socket, message, isBinary) => this.receive(connectionOf(socket), message, isBinary),
      ping: (socket) => void this.endIfFlooding(connectionOf(socket), 1, this.options.clock.now()),
      pong: (socket) => void this.endIfFlooding(connectionOf(socket), 1, this.options.clock.now()),
      drain: (socket) => this.drained(connectionOf(socket)),
      dropped: (socket) => void this.slow.add(connectionOf(socket)),
      close: (socket) => this.close(connectionOf(socket)),
    });
  }

  /** For the metrics. */
  counts(): { connections: number; subscriptions: number } {
    const { subscriptions } = this.channels;
    return { connections: this.connections.size, subscriptions };
  }

  /** Open connections of an address, as rate limits count it. */
  countSocketsOf(client: string): number {
    return this.upgrade.countOf(client);
  }

  /** Cancels the orders that end with their connection: every connection is about to close. */
  cancelOnDisconnect(): void {
    for (const { principal, origin } of this.connections) {
      if (principal !== null) this.options.entry.endConnection(principal.userId, origin.connection);
    }
  }

  /** Announces the shutdown on every connection and closes it. @param next where the clients go on */
  shutDown(next: Shutdown): void {
    const at = this.exchange.timeline.stamp(this.options.clock.now());
    const message = frame("system.shutdown", 0, at, JSON.stringify(next));
    for (const connection of [...this.connections]) {
      if (connection.format === "sbe") {
        const binary = this.delivery.frame(connection);
        if (binary !== null) this.messages.shutdown(binary, at, next);
      } else connection.push(message);
      connection.end(CLOSE_GOING_AWAY, "shutting down");
    }
  }

  // ---------------------------------------------------------------- tokens

  /** Closes the connections whose token is no longer valid: revoked, logged out, expired or suspended. */
  endUnauthenticated(now: number): void {
    for (const [credential, connections] of this.byCredential) {
      for (const connection of connections) {
        if (this.tokenError(connection, now) === null) continue;
        this.endCredential(credential, now);
        break;
      }
    }
  }

  /** Closes the connections of a credential whose tokens are no longer valid. */
  endCredential(credential: Credential, now: number): void {
    for (const connection of [...(this.byCredential.get(credential) ?? [])]) {
      const error = this.tokenError(connection, now);
      if (error !== null) connection.end(CLOSE_UNAUTHENTICATED, error.message);
    }
  }

  private tokenError({ principal }: SocketConnection, now: number): ApiError | null {
    if (principal === null) return null;
    try {
      this.options.authenticator.checkLive(principal, now);
      return null;
    } catch (error) {
      return asApiError(error);
    }
  }

  authenticate(connection: SocketConnection, token: string): Principal | Promise<Principal> {
    return this.upgrade.authenticate(token, connection.address, this.options.clock.now());
  }

  setPrincipal(connection: SocketConnection, principal: Principal): void {
    const { principal: before } = connection;
    connection.setPrincipal(principal);
    if (before === null) return this.join(connection, principal);
    removeFrom(this.byCredential, before.credential, connection);
    addTo(this.byCredential, principal.credential, connection);
    if (!connection.receivesOrders) {
      this.users.remove(principal.userId, connection);
      const { replay } = connection;
      connection.replay = null;
      replay?.ended();
    } else if (!this.users.has(principal.userId, connection)) this.join(connection, principal);
  }

  // ---------------------------------------------------------------- one connection

  private open(socket: WebSocket<SocketData>): void {
    const { connection } = socket.getUserData();
    (socket as OpenSocket).connection = connection;
    connection.socket = socket;
    this.options.connections.upgraded();
    this.connections.add(connection);
    this.heartbeatPartOf(connection)?.add(connection);
    const { principal } = connection;
    if (principal !== null) this.join(connection, principal);
  }

  private close(connection: SocketConnection): void {
    const { principal, origin, replay } = connection;
    connection.closed();
    replay?.ended();
    this.connections.delete(connection);
    this.upgrade.releaseAddress(connection.address);
    this.heartbeatPartOf(connection)?.delete(connection);
    this.delivery.forget(connection);
    this.slow.delete(connection);
    this.channels.closed(connection);
    if (principal === null) return;
    this.users.remove(principal.userId, connection);
    removeFrom(this.byCredential, principal.credential, connection);
    this.options.entry.endConnection(principal.userId, origin.connection);
  }

  private heartbeatPartOf({ origin }: SocketConnection): Set<SocketConnection> | undefined {
    return this.byHeartbeatPart[origin.connection.number % HEARTBEAT_PARTS];
  }

  /** From now on the connection receives what its principal may see. */
  private join(connection: SocketConnection, principal: Principal): void {
    addTo(this.byCredential, principal.credential, connection);
    if (connection.receivesOrders) this.users.add(principal.userId, connection);
    connection.orderSequence = this.exchange.updates.sequenceOf(principal.userId);
    connection.updatedAt = this.exchange.updates.publishedUntil();
    // The token may have been revoked during the upgrade.
    this.endCredential(principal.credential, this.options.clock.now());
  }

  private receive(connection: SocketConnection, message: ArrayBuffer, isBinary: boolean): void {
    const now = this.options.clock.now();
    const { byteLength } = message;
    const isTooLong = byteLength > MAX_WS_MESSAGE_BYTES;
    const isSbe = connection.format === "sbe";
    const messages = isSbe && isBinary && !isTooLong ? this.sbe.count(message) : 0;
    // A frame of many messages counts as that many, and a long message as several.
    const weight = Math.max(messages, 1 + Math.floor(byteLength / USUAL_MESSAGE_BYTES));
    if (this.endIfFlooding(connection, weight, now)) return;
    if (isTooLong) return connection.end(CLOSE_TOO_BIG, `a message has at most ${MAX_WS_MESSAGE_BYTES} bytes`);
    const { webSocket } = this.options.counters;
    webSocket.requests += Math.max(messages, 1);
    webSocket.receivedBytes += byteLength;
    if (!isSbe) this.operations.run(connection, message, isBinary, now);
    else if (messages > 0) this.sbe.run(connection, messages, now);
    else this.sbe.rejectFrame(connection, isBinary);
    this.delivery.flush();
  }

  /**
   * Drops a connection whose messages keep every other client waiting. Without a close frame: to send one, uWebSockets.js
   * would read on.
   */
  private endIfFlooding(connection: SocketConnection, messages: number, now: number): boolean {
    const { guard } = this.options;
    const isUser = connection.principal !== null;
    const isLong = guard.isLong(now, isUser ? MAX_TURN_OF_USER_MS : MAX_TURN_MS);
    const maxMessages = isUser ? MAX_MESSAGES_OF_USER_PER_LONG_TURN : MAX_MESSAGES_PER_LONG_TURN;
    if (connection.countMessages(guard.turn, messages) <= maxMessages || !isLong) return false;
    connection.socket?.close();
    return true;
  }

  /**
   * Sends the snapshots of pending subscriptions in their order, as fast as the peer takes them, and a bounded part in a
   * turn of the event loop: the snapshots of a thousand books are tens of megabytes.
   */
  sendSnapshots(connection: SocketConnection): void {
    // `drained` calls again.
    if (connection.buffered > MAX_SNAPSHOT_AHEAD_BYTES) return;
    let characters = 0;
    let started = 0;
    for (const topic of connection.pendingSubscriptions) {
      if (characters >= MAX_CHARACTERS_PER_TURN) break;
      started++;
      const snapshot = this.channels.start(connection, topic);
      if (snapshot === null) continue;
      characters += snapshot.length;
      this.delivery.deliver(connection, snapshot);
    }
    connection.pendingSubscriptions = connection.pendingSubscriptions.slice(started);
    this.delivery.flush();
    if (connection.pendingSubscriptions.length === 0) return;
    connection.hasSnapshotsScheduled = true;
    setImmediate(() => {
      connection.hasSnapshotsScheduled = false;
      this.sendSnapshots(connection);
    });
  }

  private drained(connection: SocketConnection): void {
    connection.replay?.drained();
    if (connection.pendingSubscriptions.length > 0 && !connection.hasSnapshotsScheduled) this.sendSnapshots(connection);
  }

  respond(connection: SocketConnection, message: string): void {
    this.delivery.send(connection, message);
    this.delivery.flushSoon();
  }

  // ---------------------------------------------------------------- timers

  /** Publishes tickers, sends one part of the heartbeats and closes slow consumers. Called each SOCKET_TICK_MS. */
  tick(now: number): void {
    this.channels.publishTickers(this.exchange.timeline.stamp(now));
    const publishedUntil = this.exchange.updates.publishedUntil();
    for (const connection of this.byHeartbeatPart[this.nextHeartbeatPart] ?? []) {
      this.sendHeartbeat(connection, publishedUntil);
    }
    this.nextHeartbeatPart = (this.nextHeartbeatPart + 1) % HEARTBEAT_PARTS;
    this.delivery.flush();
    for (let i = 0; i < PARTS_CHECKED_PER_TICK; i++) {
      const part = (this.nextHeartbeatPart * PARTS_CHECKED_PER_TICK + i) % HEARTBEAT_PARTS;
      for (const connection of this.byHeartbeatPart[part] ?? []) {
        // Only subscribers are sent anything without a flush, which checks them all.
        if (connection.topics !== null) connection.endIfSlow();
      }
    }
    for (const connection of this.slow) connection.endSlow();
    this.slow.clear();
  }

  /** @param publishedUntil ms: every connection that isn't behind was sent all updates up to this time */
  private sendHeartbeat(connection: SocketConnection, publishedUntil: number): void {
    const { principal, receivesOrders } = connection;
    const isBehind = principal !== null && this.isBehind(connection, principal.userId);
    let orders: number | null = null;
    if (principal !== null && receivesOrders) {
      orders = isBehind ? connection.orderSequence : this.exchange.updates.sequenceOf(principal.userId);
    }
    if (!isBehind) connection.updatedAt = publishedUntil;
    const sequence = ++connection.heartbeats;
    const subscriptions = this.channels.list(connection.topics ?? []);
    if (connection.format === "sbe") {
      const binary = this.delivery.frame(connection);
      if (binary === null) return;
      this.marketMessages.heartbeat(binary, sequence, connection.updatedAt, orders, subscriptions);
      return;
    }
    const data = `{"subscriptions":${subscribedJson(subscriptions)},"orders":${orders}}`;
    this.delivery.send(connection, frame("heartbeat", sequence, connection.updatedAt, data));
  }

  /** Some order updates of its user are still to be sent. */
  private isBehind({ replay }: SocketConnection, userId: number): boolean {
    return replay !== null || this.users.outbox.defers(userId);
  }
}
