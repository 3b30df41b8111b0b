/**
 * Catches a connection up on the order updates of its user that it missed: sends them from the tables, page by page, as
 * fast as its peer reads, then goes live without a gap and without a repetition.
 *
 * Meanwhile it defers new updates, up to a bound; past the bound it drops them and reads them from the tables later.
 */
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import type { OrderReport } from "../orders/order-json.ts";
import type { History } from "../queries/history.ts";
import type { UpdatesPage } from "../queries/types.ts";
import type { Exchange } from "../trading/exchange.ts";
import { frame, type SocketConnection } from "./connection.ts";
import type { Delivery } from "./delivery.ts";
import { MAX_DEFERRED_UPDATE_BYTES, MAX_REPLAY_AHEAD_BYTES, REPLAY_PAGE, REPLAY_SLICE_BYTES } from "./limits.ts";
import type { ActiveReplay } from "./types.ts";
import type { UserStream } from "./user-stream.ts";

/** In what the connection speaks. */
type Message = string | Uint8Array;
type Page = UpdatesPage<string | OrderReport>;

/** What a replay needs of the hub. */
export interface ReplayContext {
  readonly exchange: Exchange;
  readonly history: History;
  readonly delivery: Delivery;
  readonly users: Pick<UserStream, "sendAccount" | "encoded">;
}

/**
 * How a replay goes: `rejected`, or `started` and perhaps `failed` after it. Nothing is called once the connection is
 * closed.
 */
export interface ReplayOutcome {
  /** @param last the number of the last update so far */
  started(last: number): void;
  /** Nothing is replayed, and the connection is live as before. */
  rejected(error: unknown): void;
  /** The replay stopped halfway: the connection has a gap and must close. */
  failed(error: unknown): void;
}

export class Replay implements ActiveReplay {
  private readonly context: ReplayContext;
  private readonly connection: SocketConnection;
  private readonly userId: number;
  /** The last update that was sent. */
  private sequence: number;
  /** All updates up to this one must come from the tables. */
  private missed: number;
  private deferred: { sequence: number; message: Message }[] = [];
  private deferredBytes = 0;
  /** New updates exceeded the bound and were dropped. */
  private hasDropped = false;
  private isAccountDue = false;
  private wake: (() => void) | null = null;

  private constructor(context: ReplayContext, connection: SocketConnection, userId: number, sequence: number) {
    this.context = context;
    this.connection = connection;
    this.userId = userId;
    this.sequence = sequence;
    this.missed = context.exchange.updates.sequenceOf(userId);
  }

  /**
   * Replays the updates after `sequence`. Rejects with an ApiError: 4040 for a number so old that the updates after it
   * are gone, 50300 where too many reads are under way.
   * @throws ApiError 40000 for a number in the future, 40900 while another replay is under way
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

  defer(sequence: number, message: Message): void {
    this.deferred.push({ sequence, message });
    this.deferredBytes += message.length;
    if (this.deferredBytes <= MAX_DEFERRED_UPDATE_BYTES) return;
    this.hasDropped = true;
    this.missed = Math.max(this.missed, sequence);
    this.deferred = [];
    this.deferredBytes = 0;
  }

  deferAccount(): void {
    this.isAccountDue = true;
  }

  drained(): void {
    this.wake?.();
  }

  ended(): void {
    this.wake?.();
  }

  private get isOver(): boolean {
    return this.connection.replay !== this;
  }

  private async run(last: number, outcome: ReplayOutcome): Promise<void> {
    let first: Page | null = null;
    let rejection: unknown = null;
    try {
      first = this.sequence < last ? await this.readPage() : null;
    } catch (error) {
      rejection = error;
    }
    if (this.isOver) {
      // If the connection is still open, a token without the scope replaced its own.
      const error = new ApiError(ErrorKind.forbidden, "the connection no longer receives order updates");
      if (this.connection.socket !== null) outcome.rejected(error);
      return;
    }
    try {
      if (rejection === null) {
        outcome.started(last);
        this.isAccountDue = true;
        this.connection.orderSequence = this.sequence;
        await this.catchUp(first);
      } else {
        await this.backOut();
        outcome.rejected(rejection);
      }
    } catch (error) {
      if (!this.isOver) outcome.failed(error);
    }
  }

  /** Sends the updates since the request, as if no replay had been requested. */
  private async backOut(): Promise<void> {
    this.sequence = this.connection.orderSequence;
    if (this.hasDropped) await this.catchUp(null);
    else this.goLive();
  }

  private async catchUp(first: Page | null): Promise<void> {
    for (let page = first; ; page = null) {
      if (page === null && this.sequence < this.missed) page = await this.readPage();
      // A page may show orders whose responses are still to leave: those go first, and so do earlier messages.
      await this.context.exchange.reads.committed(this.userId);
      if (this.isOver) return;
      if (page !== null) await this.sendPage(page);
      else if (this.sequence >= this.missed) return this.goLive();
      if (this.isOver) return;
    }
  }

  /** Reads the next updates; retention may have removed some of them while the peer was reading. */
  private async readPage(): Promise<Page> {
    const { history } = this.context;
    const options = { userId: this.userId, after: this.sequence, limit: REPLAY_PAGE };
    const isBinary = this.connection.format === "sbe";
    const page = isBinary ? await history.updateReports(options) : await history.updates(options);
    checkKept(page, "sequence");
    return page;
  }

  private async sendPage({ items }: Page): Promise<void> {
    const { context, connection } = this;
    if (items.length === 0) throw new Error(`no order update after ${this.sequence} is kept`);
    let bytes = 0;
    for (const { sequence, at, order } of items) {
      this.assertNext(sequence);
      const isText = typeof order === "string";
      const message = isText ? frame("order.updated", sequence, at, order) : context.users.encoded(sequence, order);
      context.delivery.deliver(connection, message);
      this.sequence = sequence;
      connection.orderSequence = sequence;
      connection.updatedAt = at;
      bytes += message.length;
      if (bytes < REPLAY_SLICE_BYTES) continue;
      bytes = 0;
      await this.waitForRoom();
      if (this.isOver) return;
    }
    await this.waitForRoom();
  }

  /** Whatever goes wrong, no gap stays unnoticed. */
  private assertNext(sequence: number): void {
    const { orderSequence } = this.connection;
    if (sequence !== orderSequence + 1) throw new Error(`order update ${sequence} follows ${orderSequence}`);
  }

  /** Flushes, and waits until the peer has read most of it: a replay makes no client a slow consumer. */
  private async waitForRoom(): Promise<void> {
    this.context.delivery.flush();
    while (!this.isOver && this.connection.buffered > MAX_REPLAY_AHEAD_BYTES) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  private goLive(): void {
    const { context, connection } = this;
    for (const { sequence, message } of this.deferred) {
      if (sequence <= connection.orderSequence) continue;
      this.assertNext(sequence);
      context.delivery.deliver(connection, message);
      connection.orderSequence = sequence;
    }
    connection.replay = null;
    if (this.isAccountDue) context.users.sendAccount(connection);
    context.delivery.flush();
  }
}

/** @param name of the parameter to blame @throws ApiError 4040 where retention removed the requested updates */
export function checkKept({ oldest }: Pick<UpdatesPage<unknown>, "oldest">, name: string): void {
  if (oldest === null) return;
  throw new ApiError(
    ErrorKind.notFound,
    `${name}: updates before ${oldest} are no longer kept, go on from ${oldest - 1}; orders and fills have all`,
  );
}
