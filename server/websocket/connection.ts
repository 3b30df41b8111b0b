/**
 * One user's or one anonymous client's socket, alive from open to close. Gathers what is sent to it alone, so that the
 * messages of one committed batch leave in one write; what goes to many comes from uWebSockets.js's topics.
 */

import type { WebSocket } from "uWebSockets.js";
import type { Principal } from "../accounts/types.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { ClientAddress } from "../http/client-address.ts";
import { encodeJson } from "../http/message-pack.ts";
import type { Connection, Origin } from "../trading/types.ts";
import type { Traffic } from "../util/counters.ts";
import { BEGINNINGS_PER_SECOND, MAX_BEGINNINGS, MAX_WS_BACKPRESSURE_BYTES } from "./limits.ts";
import type { Topic } from "./topic.ts";
import type { ActiveReplay } from "./types.ts";

export const CLOSE_GOING_AWAY = 1001;
export const CLOSE_TOO_BIG = 1009;
export const CLOSE_INTERNAL_ERROR = 1011;
export const CLOSE_UNAUTHENTICATED = 4401;
const CLOSE_SLOW_CONSUMER = 4408;
/** What uWebSockets.js says of a message that it dropped. */
const SEND_DROPPED = 2;

/** What uWebSockets.js keeps for a socket: it copies the fields, so the connection goes in as one of them. */
export interface SocketData {
  readonly connection: SocketConnection;
}

/** Up to here a message counts as one in its turn of the event loop. */
const USUAL_MESSAGE_BYTES = 1_024;

/** Of those that have nothing to begin; never added to. */
const NO_TOPICS: Topic[] = [];

export class SocketConnection {
  principal: Principal | null;
  readonly address: ClientAddress;
  /** It speaks MessagePack. */
  readonly packed: boolean;
  /** What orders that it places know of it. */
  readonly origin: Origin & { connection: Connection };
  /** What it is subscribed to; null where it never was. */
  topics: Set<Topic> | null = null;
  /** Subscriptions that are still to begin. */
  starting: Topic[] = NO_TOPICS;
  /** Some of them begin with the next turn of the event loop. */
  startsSoon = false;
  private turn = 0;
  private inTurn = 0;
  private beginnings = MAX_BEGINNINGS;
  private beginningsAt = 0;
  /** The last order update that it was told. */
  orderSequence = 0;
  /** The `ts` of what it was told last of its user's orders and money, ms. */
  toldAt = 0;
  /** While it is told again what it missed. */
  replay: ActiveReplay | null = null;
  heartbeats = 0;
  socket: WebSocket<SocketData> | null = null;
  private readonly outbox: string[] = [];

  private readonly traffic: Traffic;

  constructor(principal: Principal | null, address: ClientAddress, packed: boolean, number: number, traffic: Traffic) {
    this.traffic = traffic;
    this.principal = principal;
    this.address = address;
    this.packed = packed;
    this.origin = { connection: { number, cancelOnDisconnect: false, ended: false }, builderCode: null };
  }

  closed(): void {
    this.socket = null;
    this.replay = null;
    this.starting = NO_TOPICS;
    this.outbox.length = 0;
  }

  /** Counts a message, a long one as several: answers how many came in this turn of the event loop. */
  countIn(turn: number, bytes: number): number {
    if (turn !== this.turn) this.inTurn = 0;
    this.turn = turn;
    this.inTurn += 1 + Math.floor(bytes / USUAL_MESSAGE_BYTES);
    return this.inTurn;
  }

  /** Counts what it wants begun. @param now ms @throws ApiError 42900 where that is more than it may have by now */
  takeBeginnings(count: number, now: number): void {
    const earned = ((now - this.beginningsAt) * BEGINNINGS_PER_SECOND) / 1_000;
    const left = Math.min(MAX_BEGINNINGS, this.beginnings + earned);
    if (count > left) {
      const text = `subscriptions: ${MAX_BEGINNINGS} begin at one time and ${BEGINNINGS_PER_SECOND} a second after that`;
      throw new ApiError(ErrorKind.limitExceeded, text, Math.ceil((count - left) / BEGINNINGS_PER_SECOND));
    }
    this.beginnings = left - count;
    this.beginningsAt = now;
  }

  get hearsOrders(): boolean {
    const scopes = this.principal?.scopes;
    return scopes !== undefined && (scopes.has("portfolio:read") || scopes.has("orders:write"));
  }

  get hearsAccount(): boolean {
    return this.principal?.scopes.has("portfolio:read") === true;
  }

  /** Bytes that its peer has not taken yet. */
  get buffered(): number {
    return this.socket?.getBufferedAmount() ?? 0;
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
    if (this.endIfSlow()) return;
    let isWhole = true;
    socket.cork(() => {
      for (const message of this.outbox) {
        const bytes = this.packed ? encodeJson(message) : message;
        this.traffic.sent(bytes);
        const sent = socket.send(bytes, this.packed);
        if (sent === SEND_DROPPED) isWhole = false;
      }
    });
    this.outbox.length = 0;
    if (!isWhole) this.endSlow();
  }

  /** Closes it where it lets too much pile up. */
  endIfSlow(): boolean {
    if (this.buffered <= MAX_WS_BACKPRESSURE_BYTES) return false;
    this.endSlow();
    return true;
  }

  endSlow(): void {
    this.outbox.length = 0;
    this.socket?.end(CLOSE_SLOW_CONSUMER, "slow consumer");
  }

  end(code: number, reason: string): void {
    this.flush();
    this.socket?.end(code, reason);
  }
}
