/** Why a market can't be traded. */
import type { Market } from "../types.ts";

/** Nobody can trade in it now, and why; null where one can. */
export function closedReason({ status }: Market): string | null {
  if (status === "open") return null;
  if (status === "halted") return "Trading is halted at the moment. Open orders rest on and can be canceled.";
  if (status === "resolved" || status === "voided") return "This market is over: trading has ended.";
  return status === "proposed" ? "This market was proposed and isn't open yet." : "This market is closed for trading.";
}
