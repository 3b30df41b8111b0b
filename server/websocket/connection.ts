/**
 * One client's socket, a user's or an anonymous one, alive from open to close, and the frame of the messages that it is
 * sent. Gathers the messages to this socket alone, so that those of one committed batch leave in one write; messages to
 * many sockets leave through uWebSockets.js's topics.
 */
import type { WebSocket } from "uWebSockets.js";
import type { Principal } from "../accounts/types.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { ClientAddress } from "../http/client-address.ts";
import { encodeJson } from "../http/message-pack.ts";
import type { Connection, Origin } from "../trading/types.ts";
import type { Traffic } from "../util/counters.ts";
import { MAX_SNAPSHOTS, MAX_WS_BACKPRESSURE_BYTES, SNAPSHOTS_PER_SECOND } from "./limits.ts";
import type { FrameWriter } from "./sbe/frame-writer.ts";
import type { Topic } from "./topic.ts";
import type { ActiveReplay, Format } from "./types.ts";

export const CLOSE_GOING_AWAY = 1001;
export const CLOSE_TOO_BIG = 1009;
export const CLOSE_INTERNAL_ERROR = 1011;
export const CLOSE_UNAUTHENTICATED = 4401;
const CLOSE_SLOW_CONSUMER = 4408;
/** Returned by `send` of uWebSockets.js for a message that it dropped. */
const SEND_DROPPED = 2;

/** A message that no operation asked for. @param ts ms @param dataJson JSON text */
export function frame(event: string, sequence: number, ts: number, dataJson: string): string {
  return `{"event":"${event}","sequence":${sequence},"ts":${ts},"data":${dataJson}}`;
}

/** The current state at the start of a subscription, under the sequence of the message that may have brought it before. */
export function snapshotFrame(event: string, sequence: number, ts: number, dataJson: string): string {
  return `{"event":"${event}","sequence":${sequence},"ts":${ts},"snapshot":true,"data":${dataJson}}`;
}

/** What uWebSockets.js keeps for a socket: it copies the fields, so the connection is one of them. */
export interface SocketData {
  readonly connection: SocketConnection;
}

/** Of connections without pending subscriptions; never added to. */
const NO_TOPICS: Topic[] = [];

export class SocketConnection {
  /** Null: anonymous. `setPrincipal` writes this and the next two. */
  principal: Principal | null = null;
  /** It is sent its user's order updates. */
  receivesOrders = false;
  /** It is sent its user's balance and positions. */
  receivesAccount = false;
  readonly address: ClientAddress;
  readonly format: Format;
  /** The origin of the orders that it places. */
  readonly origin: Origin & { connection: Connection };
  socket: WebSocket<SocketData> | null = null;
  /** Null before the first subscription. */
  topics: Set<Topic> | null = null;
  /** Subscriptions that wait for their snapshot. */
  pendingSubscriptions: Topic[] = NO_TOPICS;
  /** More snapshots leave with the next turn of the event loop. */
  hasSnapshotsScheduled = false;
  /** The number of the last order update that it was sent. */
  orderSequence = 0;
  /** The `ts` of the last update that it was sent about its user's orders and money, ms. */
  updatedAt = 0;
  /** Set while it catches up on order updates that it missed. */
  replay: ActiveReplay | null = null;
  heartbeats = 0;
  private turn = 0;
  private messagesInTurn = 0;
  private snapshotAllowance = MAX_SNAPSHOTS;
  private allowanceAt = 0;
  private readonly outbox: string[] = [];
  /** What it is sent next where it speaks SBE; null while that is nothing. `Delivery` gives and takes it. */
  frame: FrameWriter | null = null;
  private readonly traffic: Traffic;

  constructor(principal: Principal | null, address: ClientAddress, format: Format, number: number, traffic: Traffic) {
    this.traffic = traffic;
    this.address = address;
    this.format = format;
    this.origin = { connection: { number, cancelOnDisconnect: false, ended: false }, builderCode: null };
    if (principal !== null) this.setPrincipal(principal);
  }

  setPrincipal(principal: Principal): void {
    const { scopes } = principal;
    this.principal = principal;
    this.receivesAccount = scopes.has("portfolio:read");
    this.receivesOrders = this.receivesAccount || scopes.has("orders:write");
  }

  closed(): void {
    this.socket = null;
    this.replay = null;
    this.pendingSubscriptions = NO_TOPICS;
    this.outbox.length = 0;
  }

  /** Counts messages; returns how many arrived in this turn of the event loop. */
  countMessages(turn: number, count: number): number {
    if (turn !== this.turn) this.messagesInTurn = 0;
    this.turn = turn;
    this.messagesInTurn += count;
    return this.messagesInTurn;
  }

  /** Counts subscriptions against its allowance. @param now ms @throws ApiError 42900 where the allowance is smaller */
  consumeSnapshots(count: number, now: number): void {
    const earned = (Math.max(0, now - this.allowanceAt) * SNAPSHOTS_PER_SECOND) / 1_000;
    const left = Math.min(MAX_SNAPSHOTS, this.snapshotAllowance + earned);
    if (count > left) {
      const text = `subscriptions: at most ${MAX_SNAPSHOTS} at once, then ${SNAPSHOTS_PER_SECOND} a second`;
      throw new ApiError(ErrorKind.limitExceeded, text, Math.ceil((count - left) / SNAPSHOTS_PER_SECOND));
    }
    this.snapshotAllowance = left - count;
    this.allowanceAt = now;
  }

  /** Bytes that its peer has not taken yet. */
  get buffered(): number {
    return this.socket?.getBufferedAmount() ?? 0;
  }

  /** Gathers a message for the next `flush`; returns true for the first one. */
  push(message: string): boolean {
    if (this.socket === null) return false;
    return this.outbox.push(message) === 1;
  }

  /**
   * Sends the gathered messages, or closes the socket where earlier ones still pile up. The messages of one commit may
   * exceed the bound (the updates of a large cancel-all are megabytes): they count when the next message is due.
   */
  flush(): void {
    const { socket, outbox, frame: binary } = this;
    if (socket === null || (outbox.length === 0 && (binary === null || binary.isEmpty))) return;
    if (socket.getBufferedAmount() > MAX_WS_BACKPRESSURE_BYTES) return this.endSlow();
    const isComplete = this.sendAll(socket, binary === null ? outbox : binary.frames());
    outbox.length = 0;
    binary?.clear();
    if (!isComplete) this.endSlow();
  }

  /** Returns false where a message was dropped. A single one needs no cork: uWebSockets.js writes it at once. */
  private sendAll(socket: WebSocket<SocketData>, messages: readonly (string | Uint8Array)[]): boolean {
    if (messages.length === 1) return this.sendOne(socket, messages[0]!);
    let isComplete = true;
    socket.cork(() => {
      for (const message of messages) isComplete = this.sendOne(socket, message) && isComplete;
    });
    return isComplete;
  }

  private sendOne(socket: WebSocket<SocketData>, message: string | Uint8Array): boolean {
    const sent = typeof message === "string" && this.format === "msgpack" ? encodeJson(message) : message;
    this.traffic.sent(sent);
    return socket.send(sent, typeof sent !== "string") !== SEND_DROPPED;
  }

  /** Closes the socket where its peer lets too much pile up. */
  endIfSlow(): void {
    if (this.buffered > MAX_WS_BACKPRESSURE_BYTES) this.endSlow();
  }

  endSlow(): void {
    this.outbox.length = 0;
    this.frame?.clear();
    this.socket?.end(CLOSE_SLOW_CONSUMER, "slow consumer");
  }

  end(code: number, reason: string): void {
    this.flush();
    this.socket?.end(code, reason);
  }
}
