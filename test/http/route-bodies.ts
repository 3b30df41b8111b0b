/** A valid body for each route of the table that takes one, and how long it may be. */
import type { Route } from "../../server/http/route.ts";
import { PASSWORD } from "../support/identity.ts";
import type { TestMarket } from "../support/world.ts";

const email = "nobody@example.com";
const ACCOUNT_BODIES: Readonly<Record<string, Record<string, unknown>>> = {
  "/auth/register": { email, password: PASSWORD },
  "/auth/login": { email, password: PASSWORD },
  "/auth/login/second-factor": { challenge: "x", code: "000000" },
  "/auth/verify-email": { token: "x" },
  "/auth/resend-verification": { email },
  "/auth/forgot-password": { email },
  "/auth/reset-password": { token: "x", password: PASSWORD },
  "/auth/refresh": { refresh_token: "x" },
  "/me/password": { current: PASSWORD, new: PASSWORD },
  "/me/phone": { phone: "+14155552671" },
  "/me/phone/verify": { code: "000000" },
  "/me/identity": { document_type: "passport", document_number: "X1", country: "DE" },
  "/me/notifications": { seen_at: 0 },
  "/me/notification-settings": { page: { fills: true } },
  "/me/price-alerts": { outcome_id: 1, direction: "above", price: 9_999 },
  "/me/watchlist": { add: [{ kind: "market", id: 1 }], remove: [{ kind: "event", id: 1 }] },
  "/me/second-factors": { kind: "totp", name: "app" },
  "/me/second-factors/proof": { password: PASSWORD },
  "/me/second-factors/:id/confirm": { code: "000000" },
  "/me/personal-access-tokens": { name: "bot", scopes: ["orders:write"] },
  "/me/oauth-clients": { name: "app", redirect_uris: ["https://example.com/"], confidential: true },
  "/oauth/authorize": { client_id: "x", redirect_uri: "https://example.com/", decision: "deny" },
  "/wallet/withdrawals": { amount: 1, address: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" },
  "/admin/deposits": { user_id: 1, amount: 1, reference: "x" },
  "/admin/deposits/:id/reverse": { amount: 1, reference: "x", note: "x" },
  "/admin/house/deposits": { amount: 1, reference: "x" },
  "/admin/house/withdrawals": { amount: 1, reference: "x" },
  "/admin/withdrawals/:id/pay": { reference: "x", note: "x" },
  "/admin/withdrawals/:id/refuse": { note: "x" },
};
const NEW_MARKET = { question: "Is it so?", outcomes: ["Yes", "No"] };
const MARKET_BODIES: Readonly<Record<string, Record<string, unknown>>> = {
  "/markets/proposals": NEW_MARKET,
  "/admin/markets": NEW_MARKET,
  "/admin/events": { slug: "event", title: "An event" },
  "/admin/markets/:id": { category: "x" },
  "/admin/users/:id/terms": { trading_fee: 1 },
  "/admin/markets/:id/resolve": { payouts: [10_000, 0] },
};
/** Routes whose body has optional fields only. */
export const TAKE_NOTHING: readonly string[] = [
  ...["suspend", "restore", "second-factors/reset"].map((step) => `/admin/users/:id/${step}`),
  ...["approve", "refuse"].map((decision) => `/admin/identity-applications/:id/${decision}`),
  ...["pay", "refuse"].map((decision) => `/admin/withdrawals/:id/${decision}`),
  ...["open", "halt", "resume", "close", "void"].map((step) => `/admin/markets/:id/${step}`),
  ...["approve", "refuse"].map((decision) => `/admin/proposals/:id/${decision}`),
];

/** A body that the route accepts. */
export function bodyOf(path: string, market: TestMarket): Record<string, unknown> {
  const quote = { outcome_id: market.outcomes[0], side: 1, price: 10, quantity: 1 };
  if (path === "/orders") return { market_id: market.id, ...quote };
  if (path === "/orders/:id") return { price: 11, quantity: 2 };
  if (path === "/orders/batch") return { operations: [{ op: "place", market_id: market.id, ...quote }] };
  if (path === "/orders/cancel-after") return { timeout_ms: 60_000 };
  if (path === "/quotes/:market_id") return { quotes: [quote] };
  if (path in ACCOUNT_BODIES) return ACCOUNT_BODIES[path]!;
  if (path in MARKET_BODIES) return MARKET_BODIES[path]!;
  if (TAKE_NOTHING.includes(path)) return { note: "x" };
  return { market_id: market.id, quantity: 1 };
}

/** The longest body in bytes that the route reads: less for sign-ins, which anybody may send. */
export const bodyLimitOf = ({ path }: Route): number =>
  /^\/auth\/(?!verify|reset|logout)/.test(path) ? 8_192 : 65_536;
