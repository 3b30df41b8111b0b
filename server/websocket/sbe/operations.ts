/**
 * A client's binary requests: runs each message of a frame through the admission and the order entry that JSON's operations
 * pass, and responds in the order in which results become known.
 */
import { ApiError, asApiError, badRequest } from "../../errors.ts";
import type { CompiledRoute } from "../../http/dispatch.ts";
import { type Operation, runBatch } from "../../trading/batch.ts";
import { type CancelTimers, checkTimeout } from "../../trading/cancel-timers.ts";
import type { Exchange } from "../../trading/exchange.ts";
import type { OrderEntry } from "../../trading/order-entry.ts";
import { cancelEither } from "../../trading/order-requests.ts";
import type { Trader } from "../../trading/types.ts";
import type { SocketConnection } from "../connection.ts";
import type { ConnectionActions } from "../connection-actions.ts";
import type { OperationAdmission } from "../operation-admission.ts";
import { Template } from "./codec/constants.ts";
import { FrameReader } from "./frame-reader.ts";
import { type ReplyContext, SbeReply } from "./replies.ts";
import { checkBatchCount, SbeRequests } from "./requests.ts";

export interface SbeContext extends ReplyContext {
  readonly admission: OperationAdmission;
  readonly actions: ConnectionActions;
  readonly entry: OrderEntry;
  readonly exchange: Exchange;
  readonly cancelTimers: CancelTimers;
}

/** The routes that count and admit requests. */
function routesOf(admission: OperationAdmission) {
  return {
    place: admission.route("POST /orders"),
    cancel: admission.route("DELETE /orders/:id"),
    amend: admission.route("PATCH /orders/:id"),
    cancelAll: admission.route("DELETE /orders"),
    cancelAfter: admission.route("POST /orders/cancel-after"),
    quotes: admission.route("PUT /quotes/:market_id"),
    batch: admission.route("POST /orders/batch"),
  } as const satisfies Record<string, CompiledRoute>;
}

export class SbeOperations {
  private readonly context: SbeContext;
  private readonly routes: ReturnType<typeof routesOf>;
  private readonly reader = new FrameReader();
  private readonly requests = new SbeRequests();
  /** Messages of the frame that are still to run. */
  private left = 0;

  constructor(context: SbeContext) {
    this.context = context;
    this.routes = routesOf(context.admission);
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
    this.left = count;
    if (count === 1) return this.runNext(connection, now);
    this.context.exchange.times.receiveTogether(() => {
      while (this.left > 0) this.runNext(connection, now);
    });
  }

  private runNext(connection: SocketConnection, now: number): void {
    const { reader } = this;
    this.advance();
    const reply = new SbeReply(this.context, connection, reader.idLow, reader.idHigh);
    try {
      if (reader.template === Template.batch) return this.runBatch(connection, now, reply);
      reader.checkHeader();
      this.runOne(connection, now, reply);
    } catch (error) {
      reply.error(asApiError(error));
    }
  }

  private advance(): void {
    this.reader.advance();
    this.left--;
  }

  private runOne(connection: SocketConnection, now: number, reply: SbeReply): void {
    const { reader, requests, routes } = this;
    const { admission, entry } = this.context;
    switch (reader.template) {
      case Template.placeOrder:
        return this.runOrder(connection, routes.place, now, reply);
      case Template.cancelOrder:
        return this.runOrder(connection, routes.cancel, now, reply);
      case Template.amendOrder:
        return this.runOrder(connection, routes.amend, now, reply);
      case Template.cancelAll: {
        const { userId } = admission.admit(connection, routes.cancelAll, "trade", now, reply);
        return entry.cancelAll(userId, requests.filter(reader), now, reply);
      }
      case Template.replaceQuotes:
        return this.replaceQuotes(connection, now, reply);
      case Template.cancelAfter:
        return this.cancelAfter(connection, now, reply);
      case Template.cancelOnDisconnect: {
        const enabled = requests.enabled(reader);
        this.context.actions.setCancelOnDisconnect(connection, enabled);
        return reply.cancelOnDisconnectSet(enabled);
      }
      case Template.subscribe:
        return this.context.actions.subscribe(connection, requests.subscription(reader, "subscribe"), (list) => {
          reply.subscriptions(list);
        });
      case Template.unsubscribe: {
        const named = requests.subscription(reader, "unsubscribe");
        return reply.subscriptions(this.context.actions.unsubscribe(connection, named));
      }
      case Template.resume: {
        const sequence = requests.sequence(reader);
        return this.context.actions.resume(connection, sequence, reply, {
          started: (last) => reply.resumed(sequence, last),
          rejected: (error) => reply.error(asApiError(error)),
        });
      }
      case Template.authenticate:
        return this.context.actions.presentToken(connection, requests.token(reader), {
          accepted: (principal) => reply.authenticated(principal),
          rejected: (error) => reply.error(asApiError(error)),
        });
      case Template.ping:
        return reply.pong(now);
      default:
        throw badRequest("templateId: unknown");
    }
  }

  private runOrder(connection: SocketConnection, route: CompiledRoute, now: number, reply: SbeReply): void {
    const trader = this.context.admission.admit(connection, route, "trade", now, reply);
    this.operationOf(trader, connection)(now, reply);
  }

  private replaceQuotes(connection: SocketConnection, now: number, reply: SbeReply): void {
    const { admission, entry } = this.context;
    const trader = admission.admit(connection, this.routes.quotes, "trade", now, reply);
    const read = this.requests.quotes(this.reader, connection.origin);
    const { origin } = this.requests;
    entry.quotes.replace({ trader, origin, now, ...read }, () => reply.results(read.quotes.length));
  }

  private cancelAfter(connection: SocketConnection, now: number, reply: SbeReply): void {
    const { admission, exchange, cancelTimers } = this.context;
    const { userId } = admission.admit(connection, this.routes.cancelAfter, "trade", now, reply);
    const timeoutMs = this.requests.timeout(this.reader);
    checkTimeout(timeoutMs);
    exchange.gate.checkRunning();
    cancelTimers.request(userId, timeoutMs, now).then(
      (firesAt) => reply.cancelAfterSet(timeoutMs, firesAt),
      (error) => reply.error(asApiError(error)),
    );
  }

  // ---------------------------------------------------------------- batches

  /** The next messages are the batch's operations, whatever becomes of it: none of them runs by itself. */
  private runBatch(connection: SocketConnection, now: number, reply: SbeReply): void {
    const { reader, requests } = this;
    const { admission, exchange } = this.context;
    let leftAfter = 0;
    try {
      // Where the count can't be read, nothing behind the batch runs: it may be an operation of it.
      const count = requests.batchCount(reader);
      leftAfter = Math.max(0, this.left - count);
      reader.checkHeader();
      const trader = admission.admit(connection, this.routes.batch, "trade", now, reply);
      checkBatchCount(count);
      if (count > this.left) throw badRequest(`count: only ${this.left} messages follow in the frame`);
      const operations = Array.from({ length: count }, () => this.readOperation(trader, connection));
      runBatch(exchange, operations, now, reply.results(count));
    } finally {
      while (this.left > leftAfter) this.advance();
    }
  }

  /** Reads the next operation of a batch now, as its memory is gone when it runs. One that is wrong fails in its turn. */
  private readOperation(trader: Trader, connection: SocketConnection): Operation {
    this.advance();
    try {
      this.reader.checkHeader();
      return this.operationOf(trader, connection);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return () => {
        throw error;
      };
    }
  }

  /** The current message as an operation on orders. @throws ApiError 40000 */
  private operationOf(trader: Trader, connection: SocketConnection): Operation {
    const { reader, requests } = this;
    const { entry } = this.context;
    switch (reader.template) {
      case Template.placeOrder: {
        const placement = requests.placement(reader, connection.origin);
        const { origin } = requests;
        return (now, reply) => entry.place(trader, origin, placement, now, reply);
      }
      case Template.cancelOrder: {
        const named = requests.canceled(reader);
        return (now, reply) => cancelEither(entry, trader.userId, named, now, reply);
      }
      case Template.amendOrder: {
        const amendment = requests.amendment(reader);
        return (now, reply) => entry.amend(trader, connection.origin, amendment, now, reply);
      }
      default:
        throw badRequest("templateId: must be one of 1, 2, 3 in a batch");
    }
  }
}
