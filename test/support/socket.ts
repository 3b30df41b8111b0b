/**
 * A WebSocket client for tests, in JSON or (with the subprotocol `msgpack`) in MessagePack, or (with `sbe`) in binary. It
 * records every frame in order of arrival, checks its shape, and waits for a past or future frame by predicate. It never
 * judges the content of frames.
 */

import Type from "typebox";
import { WebSocket } from "ws";
import {
  acknowledgementOf,
  CONNECTION_OPERATIONS,
  frameOf,
  ROUTE_OPERATIONS,
  SOCKET_EVENTS,
} from "../../server/websocket/schemas.ts";
import { type Answer, API_BASE, checkAnswer, checkerOf, ROUTES } from "./client.ts";
import { pack, unpack } from "./packed.ts";
import { SOCKET_PROTOCOLS } from "./projects.ts";
import { frameOfRequest, SBE, SbeTranslator } from "./sbe.ts";
import type { TestServer } from "./server.ts";

/** How long a frame may take before the test has failed. */
const FRAME_DEADLINE_MS = 10_000;

export interface Frame<T = unknown> {
  readonly snapshot?: true;
  readonly event: string;
  readonly sequence: number;
  readonly ts: number;
  readonly data: T;
}

export interface Acknowledgement {
  readonly id: number | null;
  readonly code: number;
  readonly msg: string;
  readonly data: unknown;
  readonly rate_limit?: { limit: number; remaining: number; reset: number } | null;
  readonly retry_after?: number;
}

const frameCheckers = new Map(
  Object.entries(SOCKET_EVENTS).map(([event, { data }]) => [event, checkerOf(frameOf(event, data), event)]),
);
/** By operation. */
const replyCheckers = new Map(
  [
    ...Object.entries(CONNECTION_OPERATIONS).map(([op, { reply }]) => [op, reply] as const),
    ...[...ROUTE_OPERATIONS].map(([op, { template }]) => {
      return [op, ROUTES.find(({ method, path }) => `${method} ${path}` === template)!.response] as const;
    }),
  ].map(([op, reply]) => [op, checkerOf(acknowledgementOf(reply), `the reply to ${op}`)]),
);
const checkRejection = checkerOf(acknowledgementOf(Type.Null()), "a rejection");
/** Acknowledgements of messages that the test sent by other means than `post`. */
const checkAnyAnswer = checkerOf(acknowledgementOf(Type.Any()), "an answer");
/** The key that numbers a channel, by the events that the channel carries. */
const channelOf: Readonly<Record<string, "book" | "trades" | "ticker" | "markets">> = {
  "book.snapshot": "book",
  "book.updated": "book",
  "trade.created": "trades",
  "ticker.updated": "ticker",
  "market.updated": "markets",
};
const MSGPACK = "msgpack";

export interface SocketOptions {
  /** Subprotocols to offer; by default the project's. */
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

interface HeartbeatData {
  readonly subscriptions: {
    channel: string;
    implied: boolean;
    market_id: number | null;
    outcome_id: number | null;
    sequence: number;
  }[];
  readonly orders: number | null;
}

export class Socket {
  /** All frames but heartbeats, which the client checks against these on arrival. */
  readonly frames: Frame[] = [];
  readonly heartbeats: Frame<HeartbeatData>[] = [];
  readonly acknowledgements: Acknowledgement[] = [];
  /** Frames and acknowledgements in order of arrival. */
  readonly arrivals: (Frame | Acknowledgement)[] = [];
  readonly socket: WebSocket;
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
  private isClosed = false;
  /** The last sequence received, by channel and outcome or market, and for "orders". */
  private readonly lastSequences = new Map<string, number>();
  /** The last `ts` received, by the same keys, for all private channels together, and for heartbeats. */
  private readonly lastTimes = new Map<string, number>();
  /** The server is replaying missed messages. Heartbeats arrive in between, with the current time. */
  private isRetold = false;
  private readonly translator = new SbeTranslator();
  private lastId = 0;
  /** The posted operations, by id. */
  private readonly asked = new Map<number, string>();
  private fault: Error | null = null;
  private watchers = new Set<() => void>();
  private readonly answers = new Map<number, Acknowledgement>();

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (bytes: Buffer, isBinary: boolean) => this.receive(bytes, isBinary));
    socket.on("error", (error) => this.fail(error));
    this.closed = new Promise((resolve) => {
      socket.on("close", (code) => {
        this.isClosed = true;
        resolve(code);
        this.notify();
      });
    });
  }

  /** Connects; rejects if the server rejects the upgrade. */
  static async open(server: TestServer, token: string | null, options: SocketOptions = {}): Promise<Socket> {
    const query = token === null ? "" : `?token=${encodeURIComponent(token)}`;
    const url = `${server.root.replace("http", "ws")}${API_BASE}/ws${query}`;
    const { protocols = SOCKET_PROTOCOLS, headers = {} } = options;
    const socket = new WebSocket(url, [...protocols], { perMessageDeflate: false, headers });
    const opened = new Socket(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
    });
    return opened;
  }

  /** Uses MessagePack: the server accepted the subprotocol. */
  get packed(): boolean {
    return this.socket.protocol === MSGPACK;
  }

  /** Resolves with the first result of `find` that isn't undefined, now or after a later frame. */
  async until<T>(find: () => T | undefined, what: string, deadlineMs = FRAME_DEADLINE_MS): Promise<T> {
    const deadline = Date.now() + deadlineMs;
    for (;;) {
      if (this.fault !== null) throw this.fault;
      const found = find();
      if (found !== undefined) return found;
      const left = deadline - Date.now();
      if (this.isClosed || left <= 0) {
        const last = this.frames.slice(-5).map((frame) => JSON.stringify(frame));
        const why = this.isClosed ? "the socket is closed" : "it did not come in time";
        throw new Error(`${what}: ${why}; ${this.frames.length} frames, the last:\n${last.join("\n")}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, left);
        const { watchers } = this;
        watchers.add(done);
        function done(): void {
          clearTimeout(timer);
          watchers.delete(done);
          resolve();
        }
      });
    }
  }

  /** The first frame of `event`, from the `from`th on, that fits. */
  frame<T>(event: string, fits: (data: T, frame: Frame<T>) => boolean = () => true, from = 0): Promise<Frame<T>> {
    let next = from;
    return this.until(() => {
      for (; next < this.frames.length; next++) {
        const frame = this.frames[next] as Frame<T>;
        if (frame.event === event && fits(frame.data, frame)) return frame;
      }
      return undefined;
    }, `a frame ${event}`);
  }

  /** All frames of `event` so far. */
  of<T>(event: string): Frame<T>[] {
    return this.frames.filter((frame) => frame.event === event) as Frame<T>[];
  }

  /** Sends an operation under a new id and awaits its acknowledgement, good or bad. */
  async ask(operation: object): Promise<Acknowledgement> {
    return this.answer(this.post(operation));
  }

  /** Sends an operation under a new id and returns the id without waiting. */
  post(operation: object): number {
    const id = ++this.lastId;
    const message = { ...operation, id };
    this.asked.set(id, String((operation as { op?: unknown }).op));
    this.socket.send(this.bytesOf(message));
    return id;
  }

  private bytesOf(message: object): string | Buffer {
    if (this.socket.protocol === SBE) return frameOfRequest(message as Record<string, unknown>);
    return this.packed ? pack(message) : JSON.stringify(message);
  }

  /** The acknowledgement of the operation with this id. */
  answer(id: number): Promise<Acknowledgement> {
    return this.until(() => this.answers.get(id), `the answer to ${id}`);
  }

  /** Requests an operation of a route and returns its data. @throws Error unless the server accepts it */
  async data<T>(op: string, data: object): Promise<T> {
    const answer = await this.ask({ op, data });
    if (answer.code !== 0) throw new Error(`${op}: ${answer.code} ${answer.msg}`);
    return answer.data as T;
  }

  /** Sets cancel_on_disconnect for this connection. */
  async tie(enabled = true): Promise<void> {
    const { code, msg, data } = await this.ask({ op: "cancel_on_disconnect", enabled });
    if (code !== 0) throw new Error(`cancel_on_disconnect: ${code} ${msg} ${JSON.stringify(data)}`);
  }

  /** Subscribes and fails unless the server accepts it. */
  async subscribe(channel: string, marketId: number, outcomeId?: number, options: object = {}): Promise<void> {
    const outcome = outcomeId === undefined ? {} : { outcome_id: outcomeId };
    const { code, msg } = await this.ask({ op: "subscribe", channel, market_id: marketId, ...outcome, ...options });
    if (code !== 0) throw new Error(`subscribe: ${code} ${msg}`);
  }

  /** Resolves when everything the server sent before has arrived: it responds to a connection in order. */
  async fence(): Promise<void> {
    await this.ask({ op: "ping" });
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.closed;
  }

  private receive(bytes: Buffer, isBinary: boolean): void {
    try {
      const isText = !this.packed && this.socket.protocol !== SBE;
      if (isBinary === isText) throw new Error(`a ${isBinary ? "binary" : "text"} frame on the wrong connection`);
      if (isText) this.receiveMessage(JSON.parse(bytes.toString()));
      else if (this.packed) this.receiveMessage(unpack(bytes) as Frame | Acknowledgement);
      else
        for (const message of this.translator.messagesOf(bytes))
          this.receiveMessage(message as unknown as Frame | Acknowledgement);
    } catch (error) {
      this.fail(error as Error);
    }
    this.notify();
  }

  private receiveMessage(message: Frame | Acknowledgement): void {
    if ("event" in message) {
      const check = frameCheckers.get(message.event);
      if (check === undefined) throw new Error(`an unknown event: ${message.event}`);
      check(message);
      if (message.event === "heartbeat") this.checkHeartbeat(message as Frame<HeartbeatData>);
      else this.take(message);
    } else {
      this.arrivals.push(message);
      // One of several results, each in a message of its own: the last message has them all.
      if ("partial" in message) return;
      const op = this.asked.get(message.id ?? 0) ?? "";
      this.asked.delete(message.id ?? 0);
      const check = message.code === 0 ? (replyCheckers.get(op) ?? checkAnyAnswer) : checkRejection;
      check(message);
      this.acknowledgements.push(message);
      if (message.id !== null && !this.answers.has(message.id)) this.answers.set(message.id, message);
      // A replay begins after the requested sequence.
      const after = (message.data as { after?: number } | null)?.after;
      if (after !== undefined) {
        this.lastSequences.set("orders", after);
        this.lastTimes.delete("private");
        this.isRetold = true;
      }
    }
  }

  private take(frame: Frame): void {
    this.arrivals.push(frame);
    this.frames.push(frame);
    const { event, sequence } = frame;
    const data = (frame.data ?? {}) as { id?: number; market_id?: number; outcome_id?: number; implied?: object };
    const channel = data.implied === undefined ? channelOf[event] : "implied";
    const id = channel === "markets" ? data.id : (data.outcome_id ?? data.market_id);
    this.checkTime(
      channel === undefined ? "private" : `${channel}/${channel === "trades" ? data.market_id : id}`,
      frame,
    );
    if (event === "balance.updated") this.isRetold = false;
    if (event === "order.updated") this.lastSequences.set("orders", sequence);
    else if (channel === "book" || channel === "implied" || channel === "ticker")
      this.lastSequences.set(`${channel}/${data.outcome_id}`, sequence);
    else if (channel === "trades") this.lastSequences.set(`trades/${data.market_id}`, sequence);
    else if (channel === "markets") this.lastSequences.set(`markets/${data.id}`, sequence);
  }

  /** Time never goes backwards in a stream. */
  private checkTime(stream: string, frame: Frame): void {
    const before = this.lastTimes.get(stream) ?? 0;
    if (frame.ts < before) throw new Error(`${stream}: ts ${frame.ts} after ${before} in ${JSON.stringify(frame)}`);
    this.lastTimes.set(stream, frame.ts);
  }

  /** A heartbeat names the last sequence of each channel, which proves that no message was lost. */
  private checkHeartbeat(heartbeat: Frame<HeartbeatData>): void {
    this.heartbeats.push(heartbeat);
    if (!this.isRetold) this.checkTime("private", heartbeat);
    if (heartbeat.sequence !== this.heartbeats.length) throw new Error(`heartbeat ${heartbeat.sequence} out of turn`);
    const { subscriptions, orders } = heartbeat.data;
    for (const { channel, implied, market_id, outcome_id, sequence } of subscriptions) {
      const last = this.lastSequences.get(`${implied ? "implied" : channel}/${outcome_id ?? market_id}`);
      // Messages of all markets have a sequence of their own beside the market's.
      if (last !== undefined && last !== sequence && market_id !== null) {
        throw new Error(`${channel} of ${market_id}: the heartbeat says ${sequence}, ${last} came last`);
      }
    }
    const last = this.lastSequences.get("orders");
    if (last !== undefined && last !== orders)
      throw new Error(`orders: the heartbeat says ${orders}, ${last} came last`);
  }

  private fail(error: Error): void {
    this.fault ??= error;
    this.notify();
  }

  private notify(): void {
    for (const watcher of [...this.watchers]) watcher();
  }
}

/** Returns the response to a rejected upgrade; rejects if the server accepts it. */
export async function upgradeRefusal(
  server: TestServer,
  token: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const requestId = "upgrade-1";
  const url = `${server.root.replace("http", "ws")}${API_BASE}/ws?token=${encodeURIComponent(token)}`;
  const socket = new WebSocket(url, { headers: { "X-Request-Id": requestId, ...headers } });
  const raw = await new Promise<Parameters<typeof checkAnswer>[3]>((resolve, reject) => {
    socket.on("open", () => reject(new Error("the upgrade was granted")));
    socket.on("error", reject);
    socket.on("unexpected-response", (_, response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) });
      });
    });
  });
  return checkAnswer("GET", `${API_BASE}/ws`, requestId, raw);
}

/** Returns the status and code with which the server rejects an upgrade. */
export async function refusedUpgrade(
  server: TestServer,
  token: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<[number, number]> {
  const { status, code } = await upgradeRefusal(server, token, headers);
  return [status, code];
}
