/**
 * Several operations in one request, in order, each with its own result. They go to the engine without waiting for each
 * other. Only where one lacks money, shares or activity that an earlier operation may free does the batch wait for the
 * earlier ones and retry it.
 */

import { ApiError, ErrorKind } from "../errors.ts";
import { errorBody, successBody } from "../http/reply.ts";
import { type OrderReport, reportJson } from "../orders/order-json.ts";
import { CompositeReply } from "./composite-reply.ts";
import type { Exchange } from "./exchange.ts";
import { REPLY_DEADLINE_MS } from "./limits.ts";
import type { Reply } from "./types.ts";

/** Starts one operation, which replies now or later. @throws ApiError where it is rejected */
export type Operation = (now: number, reply: Reply) => void;

/** Errors that a commit may resolve. */
const RETRYABLE: readonly ErrorKind[] = [
  ErrorKind.insufficientBalance,
  ErrorKind.insufficientShares,
  ErrorKind.tooManyOrders,
  ErrorKind.activityExceeded,
];

/** The reply to one operation of a batch. */
class OperationReply implements Reply {
  private readonly batch: Batch;
  private readonly index: number;

  constructor(batch: Batch, index: number) {
    this.batch = batch;
    this.index = index;
  }

  order(report: OrderReport): void {
    this.data(reportJson(report));
  }

  data(json: string): void {
    this.batch.complete(this.index, successBody(json));
  }

  error(error: ApiError): void {
    this.batch.complete(this.index, this.batch.rejected(error));
  }
}

class Batch {
  private readonly exchange: Exchange;
  private readonly operations: readonly Operation[];
  private readonly reply: CompositeReply;
  private readonly requestId: string;
  private readonly results: string[];
  private next = 0;
  /** Operations started and without a reply. */
  private outstanding = 0;
  private running = false;

  constructor(exchange: Exchange, operations: readonly Operation[], reply: CompositeReply, requestId: string) {
    this.exchange = exchange;
    this.operations = operations;
    this.reply = reply;
    this.requestId = requestId;
    this.results = new Array<string>(operations.length);
  }

  run(now: number): void {
    this.running = true;
    this.exchange.times.receiveTogether(() => {
      while (this.next < this.operations.length && this.start(this.next, now)) this.next++;
    });
    this.running = false;
    this.continue();
  }

  /** Returns false where the operation must wait for earlier ones. */
  private start(index: number, now: number): boolean {
    this.outstanding++;
    try {
      this.operations[index]!(now, new OperationReply(this, index));
    } catch (error) {
      this.outstanding--;
      const rejection = error instanceof ApiError ? error : null;
      if (rejection === null) throw error;
      if (this.outstanding > 0 && RETRYABLE.includes(rejection.kind)) return false;
      this.results[index] = this.rejected(rejection);
    }
    return true;
  }

  rejected(error: ApiError): string {
    this.exchange.counters.rejected(error);
    return errorBody(error, this.requestId);
  }

  complete(index: number, result: string): void {
    this.outstanding--;
    this.reply.arrived();
    this.results[index] = result;
    if (!this.running) this.continue();
  }

  private continue(): void {
    if (this.outstanding > 0) return;
    // The rest starts once the events of this turn have taken effect.
    if (this.next < this.operations.length) this.exchange.turn.afterTurn(() => this.run(this.exchange.clock.now()));
    else this.reply.finish(`{"results":[${this.results.join(",")}]}`);
  }
}

/** Runs the operations in order; `reply` gets {results} once each has replied. @param reply its request id is the trace id of 5xx */
export function runBatch(
  exchange: Exchange,
  userId: number,
  operations: readonly Operation[],
  now: number,
  reply: Reply & { readonly requestId: string },
): void {
  const composite = new CompositeReply(exchange, userId, reply, now + REPLY_DEADLINE_MS);
  new Batch(exchange, operations, composite, reply.requestId).run(now);
}
