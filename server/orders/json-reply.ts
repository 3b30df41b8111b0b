/** Replies of trading that write text. */
import type { ApiError } from "../errors.ts";
import type { Reply } from "../trading/types.ts";
import { type OrderReport, reportJson } from "./order-json.ts";

/** A reply that takes every result as JSON text. */
export abstract class JsonReply implements Reply {
  order(report: OrderReport): void {
    this.data(reportJson(report));
  }

  canceled(orderIds: readonly number[]): void {
    this.data(canceledJson(orderIds));
  }

  abstract data(json: string): void;
  abstract error(error: ApiError): void;
}

const canceledJson = (orderIds: readonly number[]): string => `{"order_ids":[${orderIds.join(",")}]}`;

/** A reply for callers who want the text, or only to know. */
export const textReply = (data: Reply["data"], error: Reply["error"]): Reply => ({
  order: (report) => data(reportJson(report)),
  canceled: (orderIds) => data(canceledJson(orderIds)),
  data,
  error,
});
