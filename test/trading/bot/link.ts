/**
 * A bot's connection to the venue, written only from the contract: requests over REST and operations over one
 * WebSocket, in JSON or MessagePack. It knows the envelope, the order of frames and lost responses. It never interprets
 * a response.
 */
import { Agent, request as httpRequest } from "node:http";
import { decode, encode } from "@msgpack/msgpack";
import { WebSocket } from "ws";

export type Encoding = "json" | "msgpack";

/** A response that takes longer than this means that the venue has failed. */
const REPLY_DEADLINE_MS = 15_000;

export interface Envelope<T = unknown> {
  readonly code: number;
  readonly msg: string;
  readonly data: T;
}

export interface PushedEvent {
  readonly event: string;
  readonly sequence: number;
  readonly data: unknown;
}

/** The connection broke before the response: the request has taken effect, or will, or never will. */
export class Lost extends Error {}

interface Waiting {
  readonly taken: (answer: Envelope) => void;
  readonly resolve: (answer: Envelope) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export class Link {
  /** The link calls this for each event, in order of arrival. An error thrown here becomes the link's fault. */
  onEvent: (event: PushedEvent) => void = () => {};
  /** The sequence of the last order.updated on this connection; null before the first. */
  sequence: number | null = null;
  /** The first breach of the contract; every later call throws it. */
  fault: Error | null = null;
  private readonly socket: WebSocket;
  private readonly waiting = new Map<number, Waiting>();
  private lastId = 0;
  /** The content of the last order.updated. */
  private lastOrder: unknown = null;
  private readonly encoding: Encoding;
  private readonly address: { readonly port: number; readonly token: string };
  private agent = new Agent({ keepAlive: true });
  private watchers: (() => void)[] = [];

  private constructor(port: number, token: string, encoding: Encoding) {
    this.encoding = encoding;
    this.address = { port, token };
    const url = `ws://127.0.0.1:${port}/api/v1/ws?token=${token}`;
    this.socket = new WebSocket(url, encoding === "msgpack" ? ["msgpack"] : [], { perMessageDeflate: false });
    this.socket.on("message", (bytes: Buffer, isBinary: boolean) => this.receive(bytes, isBinary));
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      for (const { reject, timer } of this.waiting.values()) {
        clearTimeout(timer);
        reject(new Lost("the socket closed"));
      }
      this.waiting.clear();
      this.changed();
    });
  }

  /** Null if the venue currently rejects the connection. */
  static open(port: number, token: string, encoding: Encoding): Promise<Link | null> {
    const link = new Link(port, token, encoding);
    return new Promise((resolve) => {
      link.socket.once("open", () => resolve(link));
      link.socket.once("close", () => resolve(null));
    });
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN;
  }

  /**
   * Sends an operation over the WebSocket. `taken` receives the response before the link reads any later frame: with
   * only a promise, an event that arrived with the response could overtake it. @throws Lost
   */
  ask(op: string, rest: object = {}, taken: (answer: Envelope) => void = () => {}): Promise<Envelope> {
    if (this.fault !== null) throw this.fault;
    if (!this.isOpen) return Promise.reject(new Lost("the socket is closed"));
    const id = ++this.lastId;
    const answer = new Promise<Envelope>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.fail(new Error(`${op} was not answered in ${REPLY_DEADLINE_MS} ms: ${JSON.stringify(rest)}`));
        reject(this.fault!);
      }, REPLY_DEADLINE_MS);
      this.waiting.set(id, { taken, resolve, reject, timer });
    });
    const message = { op, id, ...rest };
    this.socket.send(this.encoding === "json" ? JSON.stringify(message) : encode(message));
    return answer;
  }

  /** A request over REST; `path` is below /api/v1. @throws Lost */
  rest<T>(method: string, path: string, body?: object): Promise<Envelope<T>> {
    if (this.fault !== null) throw this.fault;
    const json = this.encoding === "json";
    const type = json ? "application/json" : "application/msgpack";
    const headers: Record<string, string> = { Authorization: `Bearer ${this.address.token}`, Accept: type };
    const payload = body === undefined ? null : json ? Buffer.from(JSON.stringify(body)) : Buffer.from(encode(body));
    if (payload !== null) Object.assign(headers, { "Content-Type": type, "Content-Length": payload.length });
    const { agent } = this;
    const options = { host: "127.0.0.1", port: this.address.port, path: `/api/v1${path}`, method, headers, agent };
    return new Promise((resolve, reject) => {
      const lost = () => reject(new Lost("the request broke"));
      const request = httpRequest(options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", lost);
        response.on("end", () => {
          try {
            const bytes = Buffer.concat(chunks);
            resolve((json ? JSON.parse(bytes.toString()) : decode(bytes)) as Envelope<T>);
          } catch (error) {
            reject(error);
          }
        });
      });
      request.on("error", lost);
      request.setTimeout(REPLY_DEADLINE_MS, () => {
        this.fail(new Error(`${method} ${path} was not answered in ${REPLY_DEADLINE_MS} ms`));
        request.destroy();
      });
      request.end(payload);
    });
  }

  /** The data of a read that must succeed. @throws Lost */
  async get<T>(path: string): Promise<T> {
    const { code, msg, data } = await this.rest<T>("GET", path);
    if (code === 50300) throw new Lost(msg);
    if (code !== 0) throw new Error(`GET ${path}: ${code} ${msg}`);
    return data;
  }

  /** Returns a list's items by cursor, newest first, up to but excluding the first that `stop` accepts. @throws Lost */
  async list<T>(path: string, stop: (item: T) => boolean = () => false, limit = 200): Promise<T[]> {
    const items: T[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const query: string = `limit=${limit}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
      const page: { items: T[]; next_cursor: string | null } = await this.get(
        `${path}${path.includes("?") ? "&" : "?"}${query}`,
      );
      for (const item of page.items) {
        if (stop(item)) return items;
        items.push(item);
      }
      cursor = page.next_cursor;
    }
    return items;
  }

  /** Resolves when everything the venue sent on the socket before it read this has arrived. @throws Lost */
  async heard(): Promise<void> {
    await this.ask("ping");
    if (this.fault !== null) throw this.fault;
  }

  /** Waits until `holds` is true, checked after each frame. Returns false on a timeout or if the socket closes. */
  async until(holds: () => boolean, deadlineMs: number): Promise<boolean> {
    const deadline = Date.now() + deadlineMs;
    for (;;) {
      if (this.fault !== null) throw this.fault;
      if (holds()) return true;
      const left = deadline - Date.now();
      if (left <= 0 || !this.isOpen) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.watchers.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Destroys the socket as a broken network would, without a close frame. */
  dropSocket(): void {
    this.socket.terminate();
  }

  /** Destroys the REST connections with the requests on them. */
  dropRequests(): void {
    this.agent.destroy();
    this.agent = new Agent({ keepAlive: true });
  }

  close(): void {
    this.dropSocket();
    this.dropRequests();
  }

  private receive(bytes: Buffer, isBinary: boolean): void {
    // Data left in the buffers of a dropped socket counts as not received.
    if (!this.isOpen) return;
    try {
      if (isBinary !== (this.encoding === "msgpack")) throw new Error("a frame of the other encoding");
      const message = (isBinary ? decode(bytes) : JSON.parse(bytes.toString())) as PushedEvent & Envelope;
      if ("event" in message) this.receiveEvent(message);
      else this.receiveAnswer(message as unknown as Envelope & { id: number });
    } catch (error) {
      this.fail(error as Error);
    }
    this.changed();
  }

  private receiveEvent(event: PushedEvent): void {
    if (event.event === "order.updated") {
      if (this.sequence !== null && event.sequence !== this.sequence + 1) {
        const shown = JSON.stringify([this.lastOrder, event.data]);
        throw new Error(`order.updated: sequence ${event.sequence} follows ${this.sequence}: ${shown}`);
      }
      this.sequence = event.sequence;
      this.lastOrder = event.data;
    }
    this.onEvent(event);
  }

  private receiveAnswer(answer: Envelope & { readonly id: number }): void {
    const waiting = this.waiting.get(answer.id);
    if (waiting === undefined) throw new Error(`an answer to nothing: ${JSON.stringify(answer)}`);
    this.waiting.delete(answer.id);
    clearTimeout(waiting.timer);
    try {
      waiting.taken(answer);
    } finally {
      waiting.resolve(answer);
    }
  }

  private fail(error: Error): void {
    this.fault ??= error;
    this.changed();
  }

  private changed(): void {
    const { watchers } = this;
    this.watchers = [];
    for (const watcher of watchers) watcher();
  }
}
