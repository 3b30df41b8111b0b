/** Why a market can't be traded. */
import type { Market } from "../types.ts";

/** Returns the reason for the user; null if the market is open for trading. */
export function closedReason({ status }: Market): string | null {
  if (status === "open") return null;
  if (status === "halted") return "Trading is halted. Open orders stay in the book and can be canceled.";
  if (status === "resolved" || status === "voided") return "Trading has ended: this market is resolved.";
  return status === "proposed" ? "This market is a proposal and not open yet." : "This market is closed for trading.";
}
