/** What the scopes of tokens allow, for who gives them away. */
interface ScopeText {
  readonly scope: string;
  readonly title: string;
  /** What whoever has it may do, and what not. */
  readonly means: string;
}

export const SCOPES: readonly ScopeText[] = [
  {
    scope: "portfolio:read",
    title: "See your portfolio",
    means: "Balance, positions, orders, trades and transactions. Changes nothing.",
  },
  {
    scope: "orders:write",
    title: "Trade for you",
    means: "Place, change and cancel orders with your money, up to your daily limit. Can't withdraw.",
  },
  { scope: "markets:read", title: "See markets", means: "Prices, order books and trades, which are public anyway." },
  { scope: "markets:propose", title: "Propose markets", means: "As yours. An operator decides on each." },
];

/** Null of one that the exchange doesn't know. */
export const scopeText = (scope: string): ScopeText | null => SCOPES.find((each) => each.scope === scope) ?? null;
