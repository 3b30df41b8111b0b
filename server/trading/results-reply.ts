/** The one reply of a batch or of quotes in JSON, with the results of all operations or quotes in their order. */
import type { ApiError } from "../errors.ts";
import { errorBody, successBody } from "../http/reply.ts";
import { type OrderReport, reportJson } from "../orders/order-json.ts";
import { CompositeReply } from "./composite-reply.ts";
import type { Exchange } from "./exchange.ts";
import { REPLY_DEADLINE_MS } from "./limits.ts";
import type { BatchSink, QuotesSink, Reply } from "./types.ts";

export class ResultsReply implements BatchSink, QuotesSink {
  private readonly composite: CompositeReply;
  private readonly requestId: string;
  private readonly results: string[];

  /** @param count operations or quotes @param now ms @param reply gets {results}; its request id is the trace id of 5xx */
  constructor(
    exchange: Exchange,
    userId: number,
    count: number,
    now: number,
    reply: Reply & { readonly requestId: string },
  ) {
    this.composite = new CompositeReply(exchange, userId, reply, now + REPLY_DEADLINE_MS);
    this.requestId = reply.requestId;
    this.results = new Array<string>(count);
  }

  standing(index: number, report: OrderReport): void {
    this.results[index] = successBody(reportJson(report));
  }

  arrived(): void {
    this.composite.arrived();
  }

  order(index: number, report: OrderReport): void {
    this.composite.arrived();
    this.results[index] = successBody(reportJson(report));
  }

  rejected(index: number, error: ApiError): void {
    this.results[index] = errorBody(error, this.requestId);
  }

  done(): void {
    this.composite.finish((reply) => reply.data(`{"results":[${this.results.join(",")}]}`));
  }

  failed(error: ApiError): void {
    this.composite.fail(error);
  }
}
