/**
 * Tells a connection again what it missed of its user's order updates, from the database, page by page as fast as its
 * peer takes them, and goes over into what happens now without a gap and without a repetition.
 *
 * Meanwhile what happens is held, up to a bound; past it, it is let go and read from the database in its turn.
 */

import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import type { History } from "../queries/history.ts";
import type { UpdatesPage } from "../queries/types.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { SocketConnection } from "./connection.ts";
import { orderFrame } from "./frames.ts";
import { MAX_HELD_UPDATE_BYTES, MAX_REPLAY_AHEAD_BYTES, REPLAY_PAGE, REPLAY_SLICE_BYTES } from "./limits.ts";
import type { ActiveReplay } from "./types.ts";

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

/** Hears how a replay goes: one of the first two, and after it perhaps the third. Nothing once its connection is gone. */
interface ReplayOutcome {
  /** It starts now. @param last the number of the last update so far */
  begun(last: number): void;
  /** Nothing is replayed, and the connection is live as before. */
  refused(error: unknown): void;
  /** It broke off: the connection has a gap and must end. */
  failed(error: unknown): void;
}

export class Replay implements ActiveReplay {
  private readonly context: ReplayContext;
  private readonly connection: SocketConnection;
  private readonly userId: number;
  /** What to go on behind. */
  private sequence: number;
  /** All up to this must come from the database. */
  private missed: number;
  private held: { sequence: number; message: string }[] = [];
  private heldBytes = 0;
  /** Some of what happened meanwhile was let go. */
  private hasLetGo = false;
  private isAccountDue = false;
  private resume: (() => void) | null = null;

  private constructor(context: ReplayContext, connection: SocketConnection, userId: number, sequence: number) {
    this.context = context;
    this.connection = connection;
    this.userId = userId;
    this.sequence = sequence;
    this.missed = context.exchange.updates.sequenceOf(userId);
  }

  /**
   * Replays what came after `sequence`. Refused with an ApiError: 4040 for a number so old that what came after it is
   * gone, 50300 where too much is being read.
   * @throws ApiError 40000 for a number that was not given yet, 40900 while another replay is under way
   */
  static start(
    context: ReplayContext,
    connection: SocketConnection,
    userId: number,
    sequence: number,
    outcome: ReplayOutcome,
  ): void {
    const last = context.exchange.updates.sequenceOf(userId);
    if (sequence > last) throw badRequest(`sequence: the last is ${last}`);
    if (connection.replay !== null) throw new ApiError(ErrorKind.conflict, "a replay is under way");
    const replay = new Replay(context, connection, userId, sequence);
    connection.replay = replay;
    void replay.run(last, outcome);
  }

  /** Keeps what happens until what was missed is told. */
  hold(sequence: number, message: string): void {
    this.held.push({ sequence, message });
    this.heldBytes += message.length;
    if (this.heldBytes <= MAX_HELD_UPDATE_BYTES) return;
    this.hasLetGo = true;
    this.missed = Math.max(this.missed, sequence);
    this.held = [];
    this.heldBytes = 0;
  }

  /** Balance or positions changed, and the connection was not told. */
  holdAccount(): void {
    this.isAccountDue = true;
  }

  /** The peer has taken something. */
  drained(): void {
    this.resume?.();
  }

  /** The connection has ended, or hears no orders any more: nothing more is read. */
  ended(): void {
    this.resume?.();
  }

  private get isOver(): boolean {
    return this.connection.replay !== this;
  }

  private async run(last: number, outcome: ReplayOutcome): Promise<void> {
    let first: UpdatesPage | null = null;
    let refusal: unknown = null;
    try {
      first = this.sequence < last ? await this.read() : null;
    } catch (error) {
      refusal = error;
    }
    if (this.isOver) {
      // Where the connection is still there, a token without the scope took its place.
      const error = new ApiError(ErrorKind.forbidden, "the connection hears no orders any more");
      if (this.connection.socket !== null) outcome.refused(error);
      return;
    }
    try {
      if (refusal === null) {
        outcome.begun(last);
        this.isAccountDue = true;
        this.connection.orderSequence = this.sequence;
        await this.goOn(first);
      } else {
        await this.backOut();
        outcome.refused(refusal);
      }
    } catch (error) {
      if (!this.isOver) outcome.failed(error);
    }
  }

  /** Tells what happened since the question, as if nobody had asked. */
  private async backOut(): Promise<void> {
    this.sequence = this.connection.orderSequence;
    if (this.hasLetGo) await this.goOn(null);
    else this.goLive();
  }

  private async goOn(first: UpdatesPage | null): Promise<void> {
    for (let page = first; ; page = null) {
      if (page === null && this.sequence < this.missed) page = await this.read();
      // It may tell of orders whose answers are still to be sent, and those come first; so does what was told before.
      await this.context.exchange.reads.committed(this.userId);
      if (this.isOver) return;
      if (page !== null) await this.tell(page);
      else if (this.sequence >= this.missed) return this.goLive();
      if (this.isOver) return;
    }
  }

  /** What comes next, of which some may have been taken away while the peer was reading. */
  private async read(): Promise<UpdatesPage> {
    const { history } = this.context;
    const page = await history.updates({ userId: this.userId, after: this.sequence, limit: REPLAY_PAGE });
    checkKept(page, "sequence");
    return page;
  }

  private async tell({ items }: UpdatesPage): Promise<void> {
    const { context, connection } = this;
    if (items.length === 0) throw new Error(`no order update after ${this.sequence} is kept`);
    let bytes = 0;
    for (const { sequence, at, json } of items) {
      this.checkNext(sequence);
      context.send(connection, orderFrame(sequence, at, json));
      this.sequence = sequence;
      connection.orderSequence = sequence;
      connection.toldAt = at;
      bytes += json.length;
      if (bytes < REPLAY_SLICE_BYTES) continue;
      bytes = 0;
      await this.room();
      if (this.isOver) return;
    }
    await this.room();
  }

  /** Whatever goes wrong, there is no gap that nobody hears of. */
  private checkNext(sequence: number): void {
    const { orderSequence } = this.connection;
    if (sequence !== orderSequence + 1) throw new Error(`order update ${sequence} follows ${orderSequence}`);
  }

  /** Sends what was told, and waits until the peer has taken most of it: a replay makes no slow consumer of anyone. */
  private async room(): Promise<void> {
    this.context.flush();
    while (!this.isOver && this.connection.buffered > MAX_REPLAY_AHEAD_BYTES) {
      await new Promise<void>((resolve) => {
        this.resume = resolve;
      });
    }
  }

  private goLive(): void {
    const { context, connection } = this;
    for (const { sequence, message } of this.held) {
      if (sequence <= connection.orderSequence) continue;
      this.checkNext(sequence);
      context.send(connection, message);
      connection.orderSequence = sequence;
    }
    connection.replay = null;
    if (this.isAccountDue) context.sendAccount(connection);
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
