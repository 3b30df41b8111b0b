/**
 * A client of the public channels over a third-party WebSocket library: follows books and trades, compares them with their
 * sequences and with REST, and records every difference. Judges nothing else; a test reads `differences` and the number of
 * comparisons.
 */

import websocket from "websocket";
import { WebSocket } from "ws";
import { API_BASE, type BookJson, type Client, type TradeJson } from "../support/client.ts";
import { FollowedBook } from "../support/followed-book.ts";
import { pack, unpack } from "../support/packed.ts";
import type { TestServer } from "../support/server.ts";

const REPLY_DEADLINE_MS = 20_000;
/** The most differences in a report; one fault causes thousands. */
const KEPT_DIFFERENCES = 20;

/** A WebSocket connection of any library, for values. */
export interface Line {
  send(message: object): void;
  close(): Promise<void>;
}

/** @param receive is called with each message @param ended once, unless `close` was called */
export type Dial = (
  server: TestServer,
  receive: (message: unknown) => void,
  ended: (why: string) => void,
) => Promise<Line>;

const urlOf = (server: TestServer): string => `${server.root.replace("http", "ws")}${API_BASE}/ws`;

/** The package `ws`. */
export const dialWs =
  (encoding: "json" | "msgpack"): Dial =>
  async (server, receive, ended) => {
    const packed = encoding === "msgpack";
    const socket = new WebSocket(urlOf(server), packed ? ["msgpack"] : []);
    socket.on("message", (bytes: Buffer, isBinary: boolean) => {
      if (isBinary !== packed) ended(`a ${isBinary ? "binary" : "text"} frame`);
      receive(packed ? unpack(bytes) : JSON.parse(bytes.toString()));
    });
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
    });
    let isClosing = false;
    const closed = new Promise<void>((resolve) => {
      socket.once("close", (code) => {
        if (!isClosing) ended(`closed with ${code}`);
        resolve();
      });
    });
    return {
      send: (message) => socket.send(packed ? pack(message) : JSON.stringify(message)),
      async close() {
        isClosing = true;
        socket.close();
        await closed;
      },
    };
  };

/** The package `websocket`. */
export const dialWebsocket: Dial = async (server, receive, ended) => {
  const client = new websocket.client();
  const connection = await new Promise<websocket.connection>((resolve, reject) => {
    client.once("connect", resolve);
    client.once("connectFailed", reject);
    client.connect(urlOf(server));
  });
  connection.on("message", (message) => {
    if (message.type === "utf8") receive(JSON.parse(message.utf8Data));
    else ended("a binary frame");
  });
  let isClosing = false;
  const closed = new Promise<void>((resolve) => {
    connection.once("close", (code) => {
      if (!isClosing) ended(`closed with ${code}`);
      resolve();
    });
  });
  return {
    send: (message) => connection.sendUTF(JSON.stringify(message)),
    async close() {
      isClosing = true;
      connection.close();
      await closed;
    },
  };
};

interface Acknowledgement {
  readonly id: number;
  readonly code: number;
  readonly msg: string;
  readonly data: unknown;
}

interface Subscribed {
  readonly channel: string;
  readonly market_id: number;
  readonly outcome_id: number | null;
  readonly sequence: number;
}

interface Message extends Partial<Acknowledgement> {
  readonly event?: string;
  readonly sequence?: number;
}

/** The trades of a market since its subscription, which numbers them from there. */
interface FollowedTrades {
  sequence: number;
  readonly trades: TradeJson[];
}

export class Follower {
  readonly name: string;
  /** The first of them. */
  readonly differences: string[] = [];
  differenceCount = 0;
  messages = 0;
  heartbeats = 0;
  /** Snapshots of books that were followed already, which it compared. */
  repeatedSnapshots = 0;
  /** By outcome. */
  readonly books = new Map<number, FollowedBook>();
  /** By market. */
  readonly trades = new Map<number, FollowedTrades>();
  /** Books followed earlier, until an unsubscribe. */
  readonly finished: FollowedBook[] = [];
  private line: Line | null = null;
  private lastId = 0;
  private readonly asked = new Map<number, (answer: Acknowledgement) => void>();
  /** Outcomes whose snapshot is due. */
  private readonly awaited = new Set<number>();

  constructor(name: string) {
    this.name = name;
  }

  static async open(server: TestServer, name: string, dial: Dial): Promise<Follower> {
    const follower = new Follower(name);
    follower.line = await dial(
      server,
      (message) => follower.receive(message as Message),
      (why) => follower.differ(why),
    );
    return follower;
  }

  /** Subscribes, even if already subscribed: each book then restarts with a snapshot. */
  async subscribe(channel: "book" | "trades", ...marketIds: number[]): Promise<void> {
    await this.ask({ op: "subscribe", channel, market_ids: marketIds }, ({ market_id, outcome_id, sequence }) => {
      const known = this.trades.get(market_id);
      if (outcome_id !== null) this.awaited.add(outcome_id);
      else if (known === undefined) this.trades.set(market_id, { sequence, trades: [] });
      else this.checkSequence(`trades of ${market_id}, asked for again`, known.sequence, sequence);
    });
  }

  /** Ends the books of a market, or one of them. */
  async unsubscribe(marketId: number, outcomeId?: number): Promise<void> {
    const outcome = outcomeId === undefined ? {} : { outcome_id: outcomeId };
    const operation = { op: "unsubscribe", channel: "book", market_id: marketId, ...outcome };
    await this.ask(operation, ({ outcome_id, sequence }) => {
      const book = this.books.get(outcome_id!);
      if (book === undefined) return this.differ(`the end of ${outcome_id}, which was not followed`);
      this.checkSequence(`${book.name} at its end`, book.sequence, sequence);
      this.books.delete(outcome_id!);
      this.finished.push(book);
    });
  }

  /** Resolves when everything that the server sent before has arrived. */
  async fence(): Promise<void> {
    await this.ask({ op: "ping" });
  }

  async close(): Promise<void> {
    await this.line!.close();
  }

  /** Compares REST's book, or each book of a market, with its own state at the same sequence. */
  compare(books: readonly BookJson[]): void {
    for (const book of books) this.books.get(book.outcome_id)?.compare(book);
  }

  /** Compares all books and trades with REST once trading has ended. */
  async finish(reader: Client): Promise<void> {
    await this.fence();
    for (const outcomeId of this.awaited) this.differ(`no snapshot of ${outcomeId}`);
    for (const [outcomeId, book] of this.books) {
      const marketId = Number(book.name.split("/")[0]);
      book.finish(await reader.book(marketId, outcomeId));
    }
    for (const [marketId, { trades }] of this.trades) {
      const listed = (await reader.all<TradeJson>(`/markets/${marketId}/trades`)).reverse();
      const from = listed.length - trades.length;
      const at = trades.findIndex((trade, i) => JSON.stringify(trade) !== JSON.stringify(listed[from + i]));
      if (at >= 0) this.differ(`trade ${JSON.stringify(trades[at])}, REST ${JSON.stringify(listed[from + at])}`);
    }
  }

  /** Of all books, with those that were left. */
  count(what: (book: FollowedBook) => number): number {
    return [...this.books.values(), ...this.finished].reduce((sum, book) => sum + what(book), 0);
  }

  private differ(what: string): void {
    if (this.differenceCount++ < KEPT_DIFFERENCES) this.differences.push(`${this.name}: ${what}`);
  }

  private checkSequence(what: string, own: number, theirs: number): void {
    if (own !== theirs) this.differ(`${what}: ${own} came last, the server says ${theirs}`);
  }

  /** Sends an operation and awaits its success. @param take is called with each subscription, before any later message */
  private ask(operation: object, take: (subscription: Subscribed) => void = () => {}): Promise<void> {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      const what = `${this.name}: ${JSON.stringify(operation)}`;
      const late = setTimeout(() => reject(new Error(`${what}: no answer`)), REPLY_DEADLINE_MS);
      this.asked.set(id, ({ code, msg, data }) => {
        clearTimeout(late);
        if (code !== 0) return reject(new Error(`${what}: ${code} ${msg}`));
        (data as { subscriptions?: Subscribed[] }).subscriptions?.forEach(take);
        resolve();
      });
      this.line!.send({ ...operation, id });
    });
  }

  private receive(message: Message): void {
    this.messages++;
    const { event, sequence = 0, data } = message;
    if (event === undefined) {
      this.asked.get(message.id!)?.(message as Acknowledgement);
      this.asked.delete(message.id!);
    } else if (event === "book.updated") this.takeUpdate(sequence, data as BookJson);
    else if (event === "book.snapshot") this.takeSnapshot(sequence, data as BookJson);
    else if (event === "trade.created") this.takeTrade(sequence, data as TradeJson);
    else if (event === "heartbeat") this.takeHeartbeat((data as { subscriptions: Subscribed[] }).subscriptions);
    else this.differ(`an event ${event} without a subscription`);
  }

  private takeUpdate(sequence: number, data: BookJson): void {
    const book = this.books.get(data.outcome_id);
    if (book === undefined) return this.differ(`an update of ${data.outcome_id} without a snapshot`);
    book.update(sequence, data.bids, data.asks);
  }

  private takeSnapshot(sequence: number, data: BookJson): void {
    const { market_id, outcome_id } = data;
    this.awaited.delete(outcome_id);
    if (sequence !== data.sequence) this.differ(`a snapshot ${sequence} of the book at ${data.sequence}`);
    const book = this.books.get(outcome_id);
    if (book !== undefined) {
      this.checkSequence(`${book.name} at another snapshot`, book.sequence, sequence);
      this.repeatedSnapshots++;
      return book.compare(data);
    }
    const name = `${market_id}/${outcome_id}`;
    this.books.set(outcome_id, new FollowedBook(name, data, (difference) => this.differ(difference)));
  }

  private takeTrade(sequence: number, data: TradeJson): void {
    const followed = this.trades.get(data.market_id);
    if (followed === undefined) return this.differ(`a trade of ${data.market_id}, without a subscription`);
    this.checkSequence(`trades of ${data.market_id}`, ++followed.sequence, sequence);
    followed.trades.push(data);
  }

  /** A heartbeat names the last sequences: nothing is missing at the end either. */
  private takeHeartbeat(subscriptions: readonly Subscribed[]): void {
    this.heartbeats++;
    for (const { channel, market_id, outcome_id, sequence } of subscriptions) {
      if (channel === "trades") {
        const trades = this.trades.get(market_id);
        if (trades !== undefined)
          this.checkSequence(`trades of ${market_id} at a heartbeat`, trades.sequence, sequence);
      } else {
        const book = this.books.get(outcome_id!);
        if (book !== undefined) this.checkSequence(`${book.name} at a heartbeat`, book.sequence, sequence);
      }
    }
  }
}
