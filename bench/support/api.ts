/**
 * The few calls that a replay makes besides placing orders, over a fixed number of keep-alive connections. Any
 * unexpected response becomes an error with a message.
 */
import { HttpConnection, requestBytes } from "./http-connection.ts";
import { itemAt } from "./item-at.ts";

export interface Envelope<T> {
  readonly code: number;
  readonly msg: string;
  readonly data: T;
}

/** The ids that orders of a market name. */
export interface ListedMarket {
  readonly id: number;
  readonly outcomes: readonly { readonly id: number }[];
}

/** The exchange can't be reached or violates the API. */
export class ExchangeError extends Error {}

export class Api {
  /** The API's base: scheme, host and path prefix. */
  readonly base: string;
  private readonly url: URL;
  private readonly connections: readonly HttpConnection[];

  /** @param root the server's URL, with or without /api/v1 */
  constructor(root: string, connections: number) {
    this.base = `${root.replace(/\/+$/, "").replace(/\/api\/v1$/, "")}/api/v1`;
    this.url = new URL(this.base);
    this.connections = Array.from({ length: connections }, () => new HttpConnection(this.url));
  }

  /** Opens all connections. @throws ExchangeError if the exchange can't be reached */
  async open(): Promise<void> {
    await Promise.all(this.connections.map((connection) => connection.open().catch((error) => this.give(error))));
  }

  /** The bytes of a request to `path` below the base. */
  bytes(method: string, path: string, token: string | null, body?: object): Buffer {
    const text = body === undefined ? null : JSON.stringify(body);
    return requestBytes(this.url, method, this.url.pathname + path, token, text);
  }

  /**
   * Runs `work` for every index below `count`, in order; each connection takes the next index when it is free.
   * @param work must await its responses before it resolves
   */
  async each(count: number, work: (index: number, send: Send) => Promise<void>): Promise<void> {
    let next = 0;
    const run = async (connection: HttpConnection): Promise<void> => {
      const send: Send = (request) => this.exchange(connection, request);
      while (next < count) await work(next++, send);
    };
    await Promise.all(this.connections.map(run));
  }

  /** The data of one GET. */
  async get<T>(path: string, token: string | null = null): Promise<T> {
    return dataOf<T>(path, await this.exchange(itemAt(this.connections, 0), this.bytes("GET", path, token)));
  }

  /** A market by each of the slugs. */
  async markets(slugs: readonly string[]): Promise<ListedMarket[]> {
    const markets: ListedMarket[] = [];
    await this.each(slugs.length, async (i, send) => {
      const path = `/markets/${slugs[i]}`;
      markets[i] = dataOf<ListedMarket>(path, await send(this.bytes("GET", path, null)));
    });
    return markets;
  }

  /** All items of a paginated list. */
  async all<T>(send: Send, path: string, token: string, query: Record<string, string> = {}): Promise<T[]> {
    const items: T[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const parameters: Record<string, string> = { ...query, limit: "200", ...(cursor === "" ? {} : { cursor }) };
      const page = `${path}?${new URLSearchParams(parameters)}`;
      const data: { items: T[]; next_cursor: string | null } = dataOf(page, await send(this.bytes("GET", page, token)));
      items.push(...data.items);
      cursor = data.next_cursor;
    }
    return items;
  }

  close(): void {
    for (const connection of this.connections) connection.close();
  }

  private async exchange(connection: HttpConnection, request: Buffer): Promise<Envelope<unknown>> {
    const { status, body } = await connection.send(request).catch((error) => this.give(error));
    try {
      const answer = JSON.parse(body.toString()) as Envelope<unknown>;
      if (typeof answer.code === "number") return answer;
    } catch {
      // Falls through to the error for any other body.
    }
    throw new ExchangeError(`${this.base}: HTTP ${status} with a body that isn't this API's`);
  }

  private give(error: NodeJS.ErrnoException): never {
    throw new ExchangeError(`${this.base}: ${error.code === "ECONNREFUSED" ? "nothing listens there" : error.message}`);
  }
}

/** Sends one request and resolves with its envelope, success or not. */
export type Send = (request: Buffer) => Promise<Envelope<unknown>>;

/** @throws ExchangeError if the exchange rejected */
export function dataOf<T>(path: string, { code, msg, data }: Envelope<unknown>): T {
  if (code !== 0) throw new ExchangeError(`GET ${path}: ${code} ${msg}`);
  return data as T;
}
