import { reportJson } from "../orders/order-json.ts";
import type { Reply } from "./types.ts";

/** A reply for callers who want JSON text, or only to know. */
export const textReply = (data: Reply["data"], error: Reply["error"]): Reply => ({
  order: (report) => data(reportJson(report)),
  data,
  error,
});
