/** Formats the details of a first approval. */
import { exactMoney, humanize, percent } from "../../../util/format.ts";

/** Formats one detail. */
export function detailText(name: string, value: unknown): string {
  if (name === "daily_limit" && typeof value === "number") return `${exactMoney(value)} USDC a day`;
  if (value === null) return name.endsWith("note") || name.endsWith("reference") ? "none" : "default";
  if (name === "amount" && typeof value === "number") return `${exactMoney(value)} USDC`;
  if (/_(fee|rebate)$/.test(name) && typeof value === "number") return percent(value);
  if (name === "payouts" && Array.isArray(value)) return value.map((bps) => percent(Number(bps))).join(", ");
  return String(value);
}

/** "Maker rebate: 0.1 %, daily limit: 500 USDC a day". */
export function termsText(changes: object): string {
  return Object.entries(changes)
    .map(([name, value]) => `${humanize(name)}: ${detailText(name, value)}`)
    .join(", ");
}
