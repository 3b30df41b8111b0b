/**
 * Several operations in one request, in order, each with its own result. They go to the engine without waiting for each
 * other. Only where one lacks money, shares or activity that an earlier operation may free does the batch wait for the
 * earlier ones and retry it. Formats nothing.
 */
import { ApiError, ErrorKind } from "../errors.ts";
import type { OrderReport } from "../orders/order-json.ts";
import type { Exchange } from "./exchange.ts";
import type { BatchSink, Reply } from "./types.ts";

/** Starts one operation, which replies with an order, now or later. @throws ApiError where it is rejected */
export type Operation = (now: number, reply: Reply) => void;

/** Errors that a commit may resolve. */
const RETRYABLE: readonly ErrorKind[] = [
  ErrorKind.insufficientBalance,
  ErrorKind.insufficientShares,
  ErrorKind.tooManyOrders,
  ErrorKind.activityExceeded,
];

/** The reply to one operation of a batch. */
class BatchOperationReply implements Reply {
  private readonly batch: Batch;
  private readonly index: number;

  constructor(batch: Batch, index: number) {
    this.batch = batch;
    this.index = index;
  }

  order(report: OrderReport): void {
    this.batch.succeeded(this.index, report);
  }

  canceled(): void {
    throw new Error("an operation of a batch replies with an order");
  }

  data(): void {
    throw new Error("an operation of a batch replies with an order");
  }

  error(error: ApiError): void {
    this.batch.failed(this.index, error);
  }
}

class Batch {
  private readonly exchange: Exchange;
  private readonly operations: readonly Operation[];
  private readonly sink: BatchSink;
  private next = 0;
  /** Operations started and without a reply. */
  private outstanding = 0;
  private running = false;

  constructor(exchange: Exchange, operations: readonly Operation[], sink: BatchSink) {
    this.exchange = exchange;
    this.operations = operations;
    this.sink = sink;
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
      this.operations[index]!(now, new BatchOperationReply(this, index));
    } catch (error) {
      this.outstanding--;
      const rejection = error instanceof ApiError ? error : null;
      if (rejection === null) throw error;
      if (this.outstanding > 0 && RETRYABLE.includes(rejection.kind)) return false;
      this.reject(index, rejection);
    }
    return true;
  }

  succeeded(index: number, report: OrderReport): void {
    this.outstanding--;
    this.sink.order(index, report);
    if (!this.running) this.continue();
  }

  failed(index: number, error: ApiError): void {
    this.outstanding--;
    this.reject(index, error);
    if (!this.running) this.continue();
  }

  private reject(index: number, error: ApiError): void {
    this.exchange.counters.rejected(error);
    this.sink.rejected(index, error);
  }

  private continue(): void {
    if (this.outstanding > 0) return;
    // The rest starts once the events of this turn have taken effect.
    if (this.next < this.operations.length) this.exchange.turn.afterTurn(() => this.run(this.exchange.clock.now()));
    else this.sink.done();
  }
}

/** Runs the operations in order; `sink` gets the result of each, and is done once all have replied. */
export function runBatch(exchange: Exchange, operations: readonly Operation[], now: number, sink: BatchSink): void {
  new Batch(exchange, operations, sink).run(now);
}
