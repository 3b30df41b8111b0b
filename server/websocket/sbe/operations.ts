/**
 * A client's binary requests: runs each message of a frame through the admission and the order entry that JSON's operations
 * pass, and responds in the order in which results become known.
 */
import { type ApiError, asApiError, badRequest } from "../../errors.ts";
import type { CompiledRoute } from "../../http/dispatch.ts";
import { RateLimited, type RateState } from "../../http/rate-limiter.ts";
import { newRequestId } from "../../http/reply.ts";
import { type Logger, logInternal } from "../../logger.ts";
import type { OrderReport } from "../../orders/order-json.ts";
import type { OrderEntry } from "../../trading/order-entry.ts";
import type { OrderTimes } from "../../trading/order-times.ts";
import type { Reply } from "../../trading/types.ts";
import type { Counters } from "../../util/counters.ts";
import type { SocketConnection } from "../connection.ts";
import type { Delivery } from "../delivery.ts";
import type { OperationAdmission } from "../operation-admission.ts";
import { Template } from "./codec/constants.ts";
import { FrameReader } from "./frame-reader.ts";
import type { Addressee, FrameWriter } from "./frame-writer.ts";
import type { SbeMessages } from "./messages.ts";
import { SbeRequests } from "./requests.ts";

export interface SbeContext {
  readonly admission: OperationAdmission;
  readonly entry: OrderEntry;
  readonly times: OrderTimes;
  readonly delivery: Delivery;
  readonly messages: SbeMessages;
  readonly counters: Counters;
  readonly logger: Logger;
}

/** The header has 16 bits. */
const MOST_REMAINING = 65_534;

/** The response to one request: an order, or why there is none. */
class SbeReply implements Reply, Addressee {
  readonly idLow: number;
  readonly idHigh: number;
  readonly index = -1;
  /** As `OperationReply.rate`. */
  rate: RateState | null | undefined;
  private readonly context: SbeContext;
  private readonly connection: SocketConnection;
  private isAnswered = false;

  constructor(context: SbeContext, connection: SocketConnection, idLow: number, idHigh: number) {
    this.context = context;
    this.connection = connection;
    this.idLow = idLow;
    this.idHigh = idHigh;
  }

  get rateRemaining(): number {
    const { rate } = this;
    return rate === null || rate === undefined ? -1 : Math.min(rate.remaining, MOST_REMAINING);
  }

  order(report: OrderReport): void {
    this.answer((frame) => this.context.messages.accepted(frame, this, report));
  }

  pong(now: number): void {
    this.answer((frame) => this.context.messages.pong(frame, this, now));
  }

  data(): void {
    throw new Error("a binary request is answered with an order");
  }

  error(error: ApiError): void {
    const { counters, logger, messages } = this.context;
    let rate: RateState | null = null;
    if (error instanceof RateLimited) rate = this.rate = error.rate;
    counters.rejected(error);
    const traceId = error.kind.status >= 500 ? newRequestId() : null;
    if (traceId !== null) logInternal(logger, error, traceId);
    this.answer((frame) => messages.rejected(frame, this, error, rate, traceId));
  }

  private answer(write: (frame: FrameWriter) => void): void {
    if (this.isAnswered) return;
    this.isAnswered = true;
    const { delivery } = this.context;
    const frame = delivery.frame(this.connection);
    if (frame === null) return;
    write(frame);
    delivery.flushSoon();
  }
}

export class SbeOperations {
  private readonly context: SbeContext;
  private readonly placeRoute: CompiledRoute;
  private readonly cancelRoute: CompiledRoute;
  private readonly amendRoute: CompiledRoute;
  private readonly reader = new FrameReader();
  private readonly requests = new SbeRequests();

  constructor(context: SbeContext) {
    this.context = context;
    const { admission } = context;
    this.placeRoute = admission.route("POST /orders");
    this.cancelRoute = admission.route("DELETE /orders/:id");
    this.amendRoute = admission.route("PATCH /orders/:id");
  }

  /** Reads the lengths of a frame. @returns the number of its messages; 0 where they don't add up */
  count(frame: ArrayBuffer): number {
    return this.reader.start(frame);
  }

  /** Rejects what is no frame of messages, as a whole. */
  rejectFrame(connection: SocketConnection, isBinary: boolean): void {
    const text = isBinary ? "the frame is not a row of whole messages" : "send binary frames of SBE";
    new SbeReply(this.context, connection, -1, -1).error(badRequest(text));
  }

  /** Runs the messages of the frame that was counted last. @param now ms */
  run(connection: SocketConnection, count: number, now: number): void {
    if (count === 1) return this.runNext(connection, now);
    this.context.times.receiveTogether(() => {
      for (let i = 0; i < count; i++) this.runNext(connection, now);
    });
  }

  private runNext(connection: SocketConnection, now: number): void {
    const { reader } = this;
    reader.advance();
    const reply = new SbeReply(this.context, connection, reader.idLow, reader.idHigh);
    try {
      reader.checkHeader();
      this.runOne(connection, now, reply);
    } catch (error) {
      reply.error(asApiError(error));
    }
  }

  private runOne(connection: SocketConnection, now: number, reply: SbeReply): void {
    const { reader, requests } = this;
    const { admission, entry } = this.context;
    switch (reader.template) {
      case Template.placeOrder: {
        const trader = admission.admit(connection, this.placeRoute, "trade", now, reply);
        const placement = requests.placement(reader, connection.origin);
        return entry.place(trader, requests.origin, placement, now, reply);
      }
      case Template.cancelOrder: {
        const { userId } = admission.admit(connection, this.cancelRoute, "trade", now, reply);
        const { id, clientOrderId } = requests.canceled(reader);
        if (clientOrderId === null) return entry.cancel(userId, id, now, reply);
        return entry.cancelByClientId(userId, clientOrderId, now, reply);
      }
      case Template.amendOrder: {
        const trader = admission.admit(connection, this.amendRoute, "trade", now, reply);
        return entry.amend(trader, connection.origin, requests.amendment(reader), now, reply);
      }
      case Template.ping:
        return reply.pong(now);
      default:
        throw badRequest("templateId: unknown");
    }
  }
}
