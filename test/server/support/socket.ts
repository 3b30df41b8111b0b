/**
 * A WebSocket client for tests: records every frame with the order of its arrival, checks its shape, and waits for a
 * frame by predicate, arrived or to come. Knows nothing of what the frames should say.
 */
import Type from "typebox";
import { WebSocket } from "ws";
import * as S from "../../../server/schemas.ts";
import { API_BASE, checkerOf } from "./client.ts";
import type { TestServer } from "./server.ts";

/** How long a frame may take before the test has failed. */
const FRAME_DEADLINE_MS = 10_000;

export interface Frame<T = unknown> {
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
}

const Levels = S.OutcomeBook.properties.bids;
const { market_id, outcome_id } = S.OutcomeBook.properties;
const closed = { additionalProperties: false };
const dataCheckers: Readonly<Record<string, (value: unknown) => void>> = {
  "order.updated": checkerOf(S.Order, "order.updated"),
  "balance.updated": checkerOf(S.Balance, "balance.updated"),
  "position.updated": checkerOf(S.Position, "position.updated"),
  "book.snapshot": checkerOf(S.OutcomeBook, "book.snapshot"),
  "book.updated": checkerOf(Type.Object({ market_id, outcome_id, bids: Levels, asks: Levels }, closed), "book.updated"),
  "trade.created": checkerOf(S.Trade, "trade.created"),
};
const checkFrame = checkerOf(
  Type.Object(
    { event: Type.String(), sequence: Type.Integer({ minimum: 0 }), ts: Type.Integer(), data: Type.Any() },
    closed,
  ),
  "a frame",
);
const checkAcknowledgement = checkerOf(
  Type.Object(
    {
      id: Type.Union([Type.Integer(), Type.Null()]),
      code: Type.Integer(),
      msg: Type.String({ minLength: 1 }),
      data: Type.Any(),
      trace_id: Type.Optional(Type.String({ minLength: 1 })),
    },
    closed,
  ),
  "an acknowledgement",
);

export class Socket {
  readonly frames: Frame[] = [];
  readonly acknowledgements: Acknowledgement[] = [];
  readonly socket: WebSocket;
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
  private isClosed = false;
  private lastId = 0;
  private fault: Error | null = null;
  private watchers = new Set<() => void>();

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

  /** Connects; rejects where the upgrade is refused. */
  static async open(server: TestServer, token: string | null): Promise<Socket> {
    const query = token === null ? "" : `?token=${encodeURIComponent(token)}`;
    const url = `${server.root.replace("http", "ws")}${API_BASE}/ws${query}`;
    const socket = new WebSocket(url, { perMessageDeflate: false });
    const opened = new Socket(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
    });
    return opened;
  }

  /** The first frame or acknowledgement-independent state for which `find` answers something, now or to come. */
  async until<T>(find: () => T | undefined, what: string): Promise<T> {
    const deadline = Date.now() + FRAME_DEADLINE_MS;
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
    const id = ++this.lastId;
    this.socket.send(JSON.stringify({ ...operation, id }));
    return this.until(() => this.acknowledgements.find((found) => found.id === id), `the answer to ${id}`);
  }

  /** Subscribes and fails unless it is granted. */
  async subscribe(channel: string, marketId: number, outcomeId?: number): Promise<void> {
    const outcome = outcomeId === undefined ? {} : { outcome_id: outcomeId };
    const { code, msg } = await this.ask({ op: "subscribe", channel, market_id: marketId, ...outcome });
    if (code !== 0) throw new Error(`subscribe: ${code} ${msg}`);
  }

  /** Resolves when everything that the server had sent before is here: it answers a connection's messages in order. */
  async settled(): Promise<void> {
    await this.ask({ op: "ping" });
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.closed;
  }

  private receive(bytes: Buffer, isBinary: boolean): void {
    try {
      if (isBinary) throw new Error("a binary frame on a JSON connection");
      const message = JSON.parse(bytes.toString()) as Frame & Acknowledgement;
      if ("event" in message) {
        checkFrame(message);
        dataCheckers[message.event]?.(message.data);
        this.frames.push(message);
      } else {
        checkAcknowledgement(message);
        this.acknowledgements.push(message);
      }
    } catch (error) {
      this.fail(error as Error);
    }
    this.notify();
  }

  private fail(error: Error): void {
    this.fault ??= error;
    this.notify();
  }

  private notify(): void {
    for (const watcher of [...this.watchers]) watcher();
  }
}
