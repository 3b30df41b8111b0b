/**
 * Several operations in one request, taken in turn, each with a result of its own. All go to the engine in that order
 * without waiting for each other; only where one lacks money, shares or activity that an operation before it may yet set
 * free does the batch wait for those before it, and tries once more.
 */

import { ApiError, ErrorKind } from "../errors.ts";
import { errorBody, successBody } from "../http/reply.ts";
import { CompositeReply } from "./composite-reply.ts";
import type { Exchange } from "./exchange.ts";
import { ANSWER_DEADLINE_MS } from "./limits.ts";
import type { Answer } from "./types.ts";

/** Starts one operation, which answers now or later. @throws ApiError where it is refused */
export type Operation = (now: number, answer: Answer) => void;

/** What may be there a commit later. */
const MEANS: readonly ErrorKind[] = [
  ErrorKind.insufficientBalance,
  ErrorKind.insufficientShares,
  ErrorKind.tooManyOrders,
  ErrorKind.activityExceeded,
];

class Batch {
  private readonly exchange: Exchange;
  private readonly operations: readonly Operation[];
  private readonly gathered: CompositeReply;
  private readonly requestId: string;
  private readonly results: string[];
  private next = 0;
  /** Operations that were started and have not answered. */
  private outstanding = 0;
  private running = false;

  constructor(exchange: Exchange, operations: readonly Operation[], gathered: CompositeReply, requestId: string) {
    this.exchange = exchange;
    this.operations = operations;
    this.gathered = gathered;
    this.requestId = requestId;
    this.results = new Array<string>(operations.length);
  }

  run(now: number): void {
    this.running = true;
    while (this.next < this.operations.length && this.start(this.next, now)) this.next++;
    this.running = false;
    this.goOn();
  }

  /** False where the operation has to wait for those before it. */
  private start(index: number, now: number): boolean {
    this.outstanding++;
    try {
      this.operations[index]!(now, {
        data: (json) => this.settle(index, successBody(json)),
        error: (error) => this.settle(index, this.refused(error)),
      });
    } catch (error) {
      this.outstanding--;
      const refusal = error instanceof ApiError ? error : null;
      if (refusal === null) throw error;
      if (this.outstanding > 0 && MEANS.includes(refusal.kind)) return false;
      this.results[index] = this.refused(refusal);
    }
    return true;
  }

  private refused(error: ApiError): string {
    this.exchange.counters.refused(error);
    return errorBody(error, this.requestId);
  }

  private settle(index: number, result: string): void {
    this.outstanding--;
    this.gathered.arrived();
    this.results[index] = result;
    if (!this.running) this.goOn();
  }

  private goOn(): void {
    if (this.outstanding > 0) return;
    // The rest starts when what was just answered has also taken effect.
    if (this.next < this.operations.length) this.exchange.turn.afterTurn(() => this.run(Date.now()));
    else this.gathered.finish(`{"results":[${this.results.join(",")}]}`);
  }
}

/** Runs the operations in turn; `answer` gets {results}, once each has answered. @param requestId the trace id of 5xx */
export function runBatch(
  exchange: Exchange,
  userId: number,
  operations: readonly Operation[],
  now: number,
  answer: Answer,
  requestId: string,
): void {
  const gathered = new CompositeReply(exchange, userId, answer, now + ANSWER_DEADLINE_MS);
  new Batch(exchange, operations, gathered, requestId).run(now);
}
