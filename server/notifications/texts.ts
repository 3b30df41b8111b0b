/** What happened, in words: for the list on the page and for mails. */
import { notionalMicro } from "../../engine/money.ts";
import { alertPrice, cents, money, shares } from "../util/format.ts";

export interface Happening {
  readonly kind: "fill" | "resolution" | "deposit" | "withdrawal" | "alert";
  /** 1: bought, 2: sold. */
  readonly side: number | null;
  readonly quantity: number | null;
  /** BPS. */
  readonly price: number | null;
  /** micro-USDC. */
  readonly amount: number | null;
  readonly profit: number | null;
  readonly status: string | null;
  readonly direction: string | null;
}

/** Names of what it is about; "" where it is about none. */
export interface HappeningNames {
  readonly market: string;
  readonly outcome: string;
  /** The outcome that pays in full, of a resolved market. */
  readonly winner: string | undefined;
}

/** A title, and a line that says more. */
export function happeningTexts(
  { kind, side, quantity, price, amount: change, profit, status, direction }: Happening,
  { market, outcome, winner }: HappeningNames,
): { readonly title: string; readonly detail: string } {
  const amount = change ?? 0;
  switch (kind) {
    case "fill":
      return {
        title: `${side === 1 ? "Bought" : "Sold"} ${shares(quantity ?? 0)} ${outcome} at ${cents(Math.round(price ?? 0))}`,
        detail: `${market} · ${money(Math.round(notionalMicro(price ?? 0, quantity ?? 0)))} USDC`,
      };
    case "resolution": {
      const result = `${(profit ?? 0) < 0 ? "loss" : "profit"} ${money(Math.abs(profit ?? 0))}`;
      return {
        title: `${winner === undefined ? "Settled" : `Resolved: ${winner}`}, you received ${money(amount)}`,
        detail: `${market} · ${shares(quantity ?? 0)} ${outcome}, ${result}`,
      };
    }
    case "deposit":
      return amount < 0
        ? { title: `Deposit of ${money(-amount)} taken back`, detail: "Ask the exchange if you don't expect this." }
        : { title: `Deposit of ${money(amount)} credited`, detail: "Available now." };
    case "withdrawal":
      return status === "paid"
        ? { title: `Withdrawal of ${money(amount)} paid`, detail: "On its way to your address." }
        : { title: `Withdrawal of ${money(amount)} rejected`, detail: "The amount is available again." };
    case "alert":
      return {
        title: `${outcome} reached ${cents(price)}`,
        detail: `Your alert: ${alertPrice(price, direction)} · ${market}`,
      };
  }
}
