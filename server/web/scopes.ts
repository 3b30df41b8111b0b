/** Descriptions of token scopes, for users who grant them. */
interface ScopeText {
  readonly scope: string;
  readonly title: string;
  /** What the scope allows, and what it doesn't. */
  readonly description: string;
}

export const SCOPES: readonly ScopeText[] = [
  {
    scope: "portfolio:read",
    title: "View your portfolio",
    description: "Balance, positions, orders, fills and transactions. Read-only.",
  },
  {
    scope: "orders:write",
    title: "Trade on your behalf",
    description: "Place, amend and cancel orders, up to your daily limit. No withdrawals.",
  },
  { scope: "markets:read", title: "View markets", description: "Prices, order books and trades, all of them public." },
  {
    scope: "markets:propose",
    title: "Propose markets",
    description: "On your behalf. An operator reviews each proposal.",
  },
];

/** Returns null for an unknown scope. */
export const scopeText = (scope: string): ScopeText | null => SCOPES.find((each) => each.scope === scope) ?? null;
