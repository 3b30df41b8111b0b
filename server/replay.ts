/**
 * Tells a connection again what it missed of its user's order updates, from the database, page by page as fast as its
 * peer takes them, and goes over into what happens now without a gap and without a repetition.
 *
 * Meanwhile what happens is held, up to a bound; past it, it is let go and read from the database in its turn.
 */
import { MAX_HELD_UPDATES, REPLAY_PAGE } from "../engine/limits.ts";
import { ApiError, badRequest, ErrorKind } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import { orderFrame } from "./frames.ts";
import type { History } from "./history.ts";
import type { UpdatesPage } from "./history-worker.ts";
import type { SocketConnection } from "./socket-connection.ts";

/** Bytes that the peer may have before it, when the next page is read. */
const MAX_AHEAD_BYTES = 256 * 1024;

/** What the hub does for a replay. */
export interface ReplayContext {
  readonly exchange: Exchange;
  readonly history: History;
  /** Sends the connection a message, and lets it go out. */
  send(connection: SocketConnection, message: string): void;
  flush(): void;
  /** Tells the connection its balance and positions. */
  sendAccount(connection: SocketConnection): void;
}

export class Replay {
  private readonly context: ReplayContext;
  private readonly connection: SocketConnection;
  private readonly userId: number;
  /** What to go on behind. */
  private sequence: number;
  /** All up to this must come from the database. */
  private missed: number;
  private held: { sequence: number; message: string }[] = [];
  private resume: (() => void) | null = null;

  private constructor(context: ReplayContext, connection: SocketConnection, userId: number, sequence: number) {
    this.context = context;
    this.connection = connection;
    this.userId = userId;
    this.sequence = sequence;
    this.missed = context.exchange.userSequence(userId);
  }

  /**
   * Replays what came after `sequence`; `begin` is called with the last number so far before the first of it is sent.
   * Resolves when the connection is live again, or gone. Rejects with an ApiError where nothing was begun: 40000 for a
   * number that was not given yet, 4040 for one so old that what came after it is gone, 40900 while another is under way.
   */
  static async run(
    context: ReplayContext,
    connection: SocketConnection,
    userId: number,
    sequence: number,
    begin: (last: number) => void,
  ): Promise<void> {
    const last = context.exchange.userSequence(userId);
    if (sequence > last) throw badRequest(`sequence: the last is ${last}`);
    if (connection.replay !== null) throw new ApiError(ErrorKind.conflict, "a replay is under way");
    const replay = new Replay(context, connection, userId, sequence);
    connection.replay = replay;
    try {
      const first = sequence < last ? await replay.read() : null;
      if (first !== null) checkKept(first, "sequence");
      if (!replay.isOver) begin(last);
      await replay.goOn(first);
    } catch (error) {
      if (connection.replay === replay) connection.replay = null;
      throw error;
    }
  }

  /** Keeps what happens until what was missed is told. */
  hold(sequence: number, message: string): void {
    if (this.held.length >= MAX_HELD_UPDATES) {
      this.missed = this.held.at(-1)!.sequence;
      this.held = [];
    }
    this.held.push({ sequence, message });
  }

  /** The peer has taken something. */
  drained(): void {
    this.resume?.();
  }

  /** The connection has ended: nothing more is read. */
  ended(): void {
    this.resume?.();
  }

  private get isOver(): boolean {
    return this.connection.socket === null;
  }

  private async goOn(first: UpdatesPage | null): Promise<void> {
    let page = first;
    while (this.sequence < this.missed && !this.isOver) {
      page ??= await this.read();
      // It may tell of orders whose answers are still to be sent, and those come first.
      await this.afterAnswers();
      if (this.isOver) return;
      this.tell(page);
      page = null;
      await this.room();
    }
    if (!this.isOver) this.goLive();
  }

  private read(): Promise<UpdatesPage> {
    return this.context.history.updates({ userId: this.userId, after: this.sequence, limit: REPLAY_PAGE });
  }

  private afterAnswers(): Promise<void> {
    const { reads } = this.context.exchange;
    return new Promise((resolve) => reads.afterCommitted(this.userId, Date.now(), resolve));
  }

  private tell({ items }: UpdatesPage): void {
    const { context, connection } = this;
    if (items.length === 0) throw new Error(`no order update after ${this.sequence} is kept`);
    for (const { sequence, at, json } of items) {
      context.send(connection, orderFrame(sequence, at, json));
      this.sequence = sequence;
    }
    connection.orderSequence = this.sequence;
    context.flush();
  }

  private async room(): Promise<void> {
    while (!this.isOver && this.connection.buffered > MAX_AHEAD_BYTES) {
      await new Promise<void>((resolve) => {
        this.resume = resolve;
      });
    }
  }

  private goLive(): void {
    const { context, connection } = this;
    connection.replay = null;
    for (const { sequence, message } of this.held) {
      if (sequence <= connection.orderSequence) continue;
      context.send(connection, message);
      connection.orderSequence = sequence;
    }
    context.sendAccount(connection);
    context.flush();
  }
}

/** @param name of the parameter that asked @throws ApiError 4040 where what was asked for is not kept any more */
export function checkKept({ oldest }: UpdatesPage, name: string): void {
  if (oldest === null) return;
  throw new ApiError(
    ErrorKind.notFound,
    `${name}: updates before ${oldest} are no longer kept, go on from ${oldest - 1}; orders and fills have all`,
  );
}
