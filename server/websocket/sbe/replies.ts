/** The responses to binary requests, each under its request's id: one message, or one a result and an end. */
import type { Principal } from "../../accounts/types.ts";
import type { ApiError } from "../../errors.ts";
import { RateLimited, type RateState } from "../../http/rate-limiter.ts";
import { newRequestId } from "../../http/reply.ts";
import { type Logger, logInternal } from "../../logger.ts";
import type { OrderReport } from "../../orders/order-json.ts";
import type { BatchSink, QuotesSink, Reply } from "../../trading/types.ts";
import type { Counters } from "../../util/counters.ts";
import type { SocketConnection } from "../connection.ts";
import type { Delivery } from "../delivery.ts";
import type { Addressee, FrameWriter } from "./frame-writer.ts";
import type { SbeMarketMessages, Subscribed } from "./market-messages.ts";
import type { SbeMessages } from "./messages.ts";

export interface ReplyContext {
  readonly delivery: Delivery;
  readonly messages: SbeMessages;
  readonly marketMessages: SbeMarketMessages;
  readonly counters: Counters;
  readonly logger: Logger;
}

/** The header has 16 bits. */
const MOST_REMAINING = 65_534;

const remainingOf = (rate: RateState | null | undefined): number =>
  rate === null || rate === undefined ? -1 : Math.min(rate.remaining, MOST_REMAINING);

/** Logs our own mistake. @returns the trace id that the client is told, null for its own mistakes */
function traceOf({ logger }: ReplyContext, error: ApiError): string | null {
  if (error.kind.status < 500) return null;
  const traceId = newRequestId();
  logInternal(logger, error, traceId);
  return traceId;
}

/** The one response to a request. */
export class SbeReply implements Reply, Addressee {
  readonly idLow: number;
  readonly idHigh: number;
  readonly index = -1;
  /** As `OperationReply.rate`. */
  rate: RateState | null | undefined;
  private readonly context: ReplyContext;
  private readonly connection: SocketConnection;
  private isAnswered = false;
  private opened: SbeResults | null = null;

  constructor(context: ReplyContext, connection: SocketConnection, idLow: number, idHigh: number) {
    this.context = context;
    this.connection = connection;
    this.idLow = idLow;
    this.idHigh = idHigh;
  }

  get rateRemaining(): number {
    return remainingOf(this.rate);
  }

  order(report: OrderReport): void {
    this.answer((frame, messages) => messages.accepted(frame, this, report));
  }

  canceled(orderIds: readonly number[]): void {
    this.answer((frame, messages) => messages.canceled(frame, this, orderIds));
  }

  data(): void {
    throw new Error("a binary request is not answered with JSON");
  }

  cancelAfterSet(timeoutMs: number, firesAt: number | null): void {
    this.answer((frame, messages) => messages.cancelAfterSet(frame, this, timeoutMs, firesAt));
  }

  cancelOnDisconnectSet(enabled: boolean): void {
    this.answer((frame, messages) => messages.cancelOnDisconnectSet(frame, this, enabled));
  }

  authenticated(principal: Principal): void {
    this.answer((frame, messages) => messages.authenticated(frame, this, principal));
  }

  subscriptions(list: readonly Subscribed[]): void {
    this.answer((frame) => this.context.marketMessages.subscriptions(frame, this, list));
  }

  resumed(after: number, last: number): void {
    this.answer((frame, messages) => messages.resumed(frame, this, after, last));
  }

  pong(now: number): void {
    this.answer((frame, messages) => messages.pong(frame, this, now));
  }

  error(error: ApiError): void {
    if (this.opened !== null) return this.opened.failed(error);
    let rate: RateState | null = null;
    if (error instanceof RateLimited) rate = this.rate = error.rate;
    this.context.counters.rejected(error);
    const traceId = traceOf(this.context, error);
    this.answer((frame, messages) => messages.rejected(frame, this, error, rate, traceId));
  }

  /** The results of this request, in place of a response: each as it becomes known, and then the end. */
  results(count: number): SbeResults {
    this.isAnswered = true;
    this.opened = new SbeResults(this.context, this.connection, this, count);
    return this.opened;
  }

  private answer(write: (frame: FrameWriter, messages: SbeMessages) => void): void {
    if (this.isAnswered) return;
    this.isAnswered = true;
    const { delivery, messages } = this.context;
    const frame = delivery.frame(this.connection);
    if (frame === null) return;
    write(frame, messages);
    delivery.flushSoon();
  }
}

/**
 * The results of a batch or of quotes, with the index of each, and then Done, or a rejection without an index. Nothing
 * waits: a result leaves before the updates of its own order.
 */
class SbeResults implements BatchSink, QuotesSink, Addressee {
  readonly idLow: number;
  readonly idHigh: number;
  /** Of the message that is being written. */
  index = -1;
  rateRemaining = -1;
  private readonly context: ReplyContext;
  private readonly connection: SocketConnection;
  private readonly count: number;
  private readonly requestRate: number;
  private rejections = 0;
  private isOver = false;

  constructor(context: ReplyContext, connection: SocketConnection, request: Addressee, count: number) {
    this.context = context;
    this.connection = connection;
    this.count = count;
    this.idLow = request.idLow;
    this.idHigh = request.idHigh;
    this.requestRate = request.rateRemaining;
  }

  arrived(): void {}

  standing(index: number, report: OrderReport): void {
    this.order(index, report);
  }

  order(index: number, report: OrderReport): void {
    const frame = this.begin(index, -1);
    if (frame !== null) this.context.messages.accepted(frame, this, report);
  }

  rejected(index: number, error: ApiError): void {
    this.rejections++;
    const traceId = traceOf(this.context, error);
    const frame = this.begin(index, -1);
    if (frame !== null) this.context.messages.rejected(frame, this, error, null, traceId);
  }

  done(): void {
    if (this.isOver) return;
    this.isOver = true;
    const frame = this.begin(-1, this.requestRate);
    if (frame !== null) this.context.messages.done(frame, this, this.count, this.rejections);
  }

  failed(error: ApiError): void {
    if (this.isOver) return;
    this.isOver = true;
    this.context.counters.rejected(error);
    const traceId = traceOf(this.context, error);
    const frame = this.begin(-1, this.requestRate);
    if (frame !== null) this.context.messages.rejected(frame, this, error, null, traceId);
  }

  private begin(index: number, rateRemaining: number): FrameWriter | null {
    this.index = index;
    this.rateRemaining = rateRemaining;
    const { delivery } = this.context;
    delivery.flushSoon();
    return delivery.frame(this.connection);
  }
}
