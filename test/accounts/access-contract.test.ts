/**
 * Access control as the contract states it: a table of every route, written from the contract and not from the code,
 * which the route table must match. Needs no server; access.test.ts sends the requests.
 */
import { describe, expect, test } from "vitest";
import type { Scope } from "../../server/accounts/types.ts";
import type { Route } from "../../server/http/route.ts";
import { ROUTES } from "../support/client.ts";
import { nameOf } from "./access-callers.ts";

type Rule = "public" | "any token" | "session only" | "operator" | Scope | "portfolio:read or orders:write";

/**
 * Every route, by the contract: "Session tokens only: tokens, grants, clients, sessions, phone, identity, password";
 * "orders:write for everything that places, amends or cancels"; "portfolio:read for GET /orders, /wallet/*,
 * /me/positions"; "Market data needs no scope"; "Tier 0: every trading endpoint is 40300". A route that none of these
 * phrases covers has a comment with the reason. Paths with a star are at the root.
 */
const CONTRACT: readonly (readonly [route: string, rule: Rule, minTier: 0 | 1 | 2])[] = [
  // Trading. Splitting and merging sets converts money into shares and back, so it is trading.
  ["POST /orders", "orders:write", 1],
  ["DELETE /orders", "orders:write", 1],
  ["POST /orders/batch", "orders:write", 1],
  ["POST /orders/cancel-after", "orders:write", 1],
  ["DELETE /orders/:id", "orders:write", 1],
  ["DELETE /orders/by-client-id/:client_order_id", "orders:write", 1],
  ["PATCH /orders/:id", "orders:write", 1],
  ["PUT /quotes/:market_id", "orders:write", 1],
  ["POST /wallet/split", "orders:write", 1],
  ["POST /wallet/merge", "orders:write", 1],
  // The user's holdings: "view positions, balances, trade history". Reading is not trading.
  ["GET /orders", "portfolio:read", 0],
  ["GET /orders/:id", "portfolio:read", 0],
  ["GET /orders/by-client-id/:client_order_id", "portfolio:read", 0],
  ["GET /me/fills", "portfolio:read", 0],
  // The same scopes as `resume`: "For the same scopes".
  ["GET /me/events", "portfolio:read or orders:write", 0],
  ["GET /wallet/balance", "portfolio:read", 0],
  ["GET /me/balance", "portfolio:read", 0],
  ["GET /users/me/balance", "portfolio:read", 0],
  ["GET /wallet/transactions", "portfolio:read", 0],
  ["GET /me/positions", "portfolio:read", 0],
  ["GET /me/portfolio", "portfolio:read", 0],
  ["GET /me/exports/orders", "portfolio:read", 0],
  ["GET /me/exports/fills", "portfolio:read", 0],
  ["GET /me/exports/positions", "portfolio:read", 0],
  ["GET /me/exports/settlements", "portfolio:read", 0],
  ["GET /me/exports/transactions", "portfolio:read", 0],
  ["GET /me/portfolio/history", "portfolio:read", 0],
  ["GET /wallet/deposits", "portfolio:read", 0],
  ["GET /wallet/deposit-instructions", "portfolio:read", 0],
  ["GET /wallet/settlements", "portfolio:read", 0],
  // "Session tokens only: ... withdrawals"; "Withdrawals below tier 2 are 40300": a user below tier 2 can still view
  // and cancel earlier requests.
  ["POST /wallet/withdrawals", "session only", 2],
  ["GET /wallet/withdrawals", "session only", 0],
  ["GET /wallet/withdrawals/:id", "session only", 0],
  ["DELETE /wallet/withdrawals/:id", "session only", 0],
  // "Operators (role operator, session tokens only) under /admin".
  ["POST /admin/deposits", "operator", 0],
  ["GET /admin/deposits", "operator", 0],
  ["POST /admin/deposits/:id/reverse", "operator", 0],
  ["POST /admin/house/deposits", "operator", 0],
  ["POST /admin/house/withdrawals", "operator", 0],
  ["GET /admin/withdrawals", "operator", 0],
  ["GET /admin/withdrawals/:id", "operator", 0],
  ["POST /admin/withdrawals/:id/pay", "operator", 0],
  ["POST /admin/withdrawals/:id/refuse", "operator", 0],
  ["GET /admin/approvals", "operator", 0],
  ["DELETE /admin/approvals/:id", "operator", 0],
  // The caller's own account; the contract names no scope.
  ["GET /me", "any token", 0],
  ["GET /me/limits", "any token", 0],
  ["POST /ws-tickets", "any token", 0],
  // Market data, and data about no user.
  ["GET /markets", "public", 0],
  ["GET /markets/:id", "public", 0],
  ["GET /markets/:id/trades", "public", 0],
  ["GET /markets/:id/candles", "public", 0],
  ["GET /markets/:id/pictures/:hash", "public", 0],
  ["GET /markets/:id/history", "public", 0],
  ["GET /markets/:id/history/:file", "public", 0],
  ["GET /markets/:id/orderbook", "public", 0],
  ["GET /orderbook/:market_id/:outcome_id", "public", 0],
  ["GET /events", "public", 0],
  ["GET /events/:id", "public", 0],
  ["GET /categories", "public", 0],
  ["GET /feed", "public", 0],
  // What a person watches concerns their own pages alone.
  ["GET /me/notifications", "session only", 0],
  ["PATCH /me/notifications", "session only", 0],
  ["GET /me/notification-settings", "session only", 0],
  ["PATCH /me/notification-settings", "session only", 0],
  ["GET /me/price-alerts", "session only", 0],
  ["POST /me/price-alerts", "session only", 0],
  ["DELETE /me/price-alerts/:id", "session only", 0],
  ["GET /me/watchlist", "session only", 0],
  ["PATCH /me/watchlist", "session only", 0],
  ["GET /time", "public", 0],
  ["GET /solvency", "public", 0],
  ["GET /builders/:code/stats", "public", 0],
  ["GET */livez", "public", 0],
  ["GET */readyz", "public", 0],
  ["GET */metrics", "public", 0],
  ["GET */openapi.json", "public", 0],
  ["GET */asyncapi.json", "public", 0],
  ["GET /sbe.xml", "public", 0],
  ["GET /.well-known/jwks.json", "public", 0],
  ["GET */.well-known/jwks.json", "public", 0],
  ["GET */.well-known/oauth-authorization-server", "public", 0],
  // The client has no token yet, or authenticates with a refresh token, a mailed link or a client secret.
  ["POST /auth/register", "public", 0],
  ["POST /auth/login", "public", 0],
  ["POST /auth/login/second-factor", "public", 0],
  ["POST /auth/refresh", "public", 0],
  ["POST /auth/verify-email", "public", 0],
  ["POST /auth/resend-verification", "public", 0],
  ["POST /auth/forgot-password", "public", 0],
  ["POST /auth/reset-password", "public", 0],
  ["GET /auth/social", "public", 0],
  ["GET /auth/social/:provider", "public", 0],
  ["GET /auth/social/:provider/callback", "public", 0],
  // The link of a mail.
  ["GET /auth/unsubscribe/:token", "public", 0],
  ["POST /auth/unsubscribe/:token", "public", 0],
  ["GET /oauth/authorize", "public", 0],
  ["POST /oauth/token", "public", 0],
  ["POST /oauth/revoke", "public", 0],
  ["POST /oauth/introspect", "public", 0],
  // Sessions.
  ["POST /auth/logout", "session only", 0],
  ["GET /me/sessions", "session only", 0],
  ["DELETE /me/sessions", "session only", 0],
  ["DELETE /me/sessions/:id", "session only", 0],
  // The second step of a sign-in.
  ["GET /me/second-factors", "session only", 0],
  ["POST /me/second-factors", "session only", 0],
  ["POST /me/second-factors/proof", "session only", 0],
  ["POST /me/second-factors/:id/confirm", "session only", 0],
  ["POST /me/second-factors/recovery-codes", "session only", 0],
  ["DELETE /me/second-factors/:id", "session only", 0],
  // Password, phone and identity; tier 2 comes after tier 1.
  ["POST /me/password", "session only", 0],
  ["POST /me/phone", "session only", 0],
  ["POST /me/phone/verify", "session only", 0],
  ["GET /me/identity", "session only", 0],
  ["POST /me/identity", "session only", 1],
  // Tokens.
  ["GET /me/personal-access-tokens", "session only", 0],
  ["POST /me/personal-access-tokens", "session only", 0],
  ["DELETE /me/personal-access-tokens/:id", "session only", 0],
  // Grants and clients; the consent is a grant.
  ["GET /me/oauth-grants", "session only", 0],
  ["DELETE /me/oauth-grants/:id", "session only", 0],
  ["GET /me/oauth-clients", "session only", 0],
  ["GET /me/oauth-clients/:id", "session only", 0],
  ["POST /me/oauth-clients", "session only", 0],
  ["DELETE /me/oauth-clients/:id", "session only", 0],
  ["GET /oauth/clients/:client_id", "session only", 0],
  ["POST /oauth/authorize", "session only", 0],
  // Proposals: "markets:propose for proposals", from users who may trade.
  ["POST /markets/proposals", "markets:propose", 1],
  ["GET /markets/proposals", "markets:propose", 0],
  // "Operators (role operator, session tokens only) under /admin": markets and events.
  ["GET /admin/proposals", "operator", 0],
  ["POST /admin/proposals/:id/approve", "operator", 0],
  ["POST /admin/proposals/:id/refuse", "operator", 0],
  ["POST /admin/events", "operator", 0],
  ["POST /admin/markets", "operator", 0],
  ["GET /admin/markets/:id", "operator", 0],
  ["PATCH /admin/markets/:id", "operator", 0],
  ["POST /admin/markets/:id/open", "operator", 0],
  ["POST /admin/markets/:id/halt", "operator", 0],
  ["POST /admin/markets/:id/resume", "operator", 0],
  ["POST /admin/markets/:id/close", "operator", 0],
  ["POST /admin/markets/:id/resolve", "operator", 0],
  ["POST /admin/markets/:id/void", "operator", 0],
  // Operators: users, and the audit log.
  ["GET /admin/users", "operator", 0],
  ["GET /admin/users/:id", "operator", 0],
  ["GET /admin/users/:id/trail", "operator", 0],
  ["POST /admin/users/:id/suspend", "operator", 0],
  ["POST /admin/users/:id/restore", "operator", 0],
  ["PATCH /admin/users/:id/terms", "operator", 0],
  ["POST /admin/users/:id/second-factors/reset", "operator", 0],
  ["GET /admin/identity-applications", "operator", 0],
  ["POST /admin/identity-applications/:id/approve", "operator", 0],
  ["POST /admin/identity-applications/:id/refuse", "operator", 0],
  ["GET /admin/audit-log", "operator", 0],
];

function ruleOf({ access, tokens, scope, orScope }: Route): string {
  if (access === "public") return "public";
  if (access === "operator" && tokens.join() === "session" && scope === null) return "operator";
  const isAny = access === "user" && tokens.length === 3 && new Set(tokens).size === 3;
  if (isAny) return (orScope === null ? scope : `${scope} or ${orScope}`) ?? "any token";
  const isSessionOnly = access === "user" && tokens.join() === "session" && scope === null;
  return isSessionOnly ? "session only" : `${access} by ${tokens.join()} with ${scope}`;
}

describe("the route table", () => {
  test("the route table has the routes that the contract gives a rule, and no others", () => {
    const names = CONTRACT.map(([name]) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(ROUTES.map(nameOf).sort()).toEqual([...names].sort());
  });

  test.each(CONTRACT)("a route's scope and tier: %s: %s, tier %i", (name, rule, minTier) => {
    const found = ROUTES.filter((route) => nameOf(route) === name);
    expect(found.map((route) => [ruleOf(route), route.minTier])).toEqual([[rule, minTier]]);
  });

  test("a public route asks for no scope and no tier", () => {
    const asking = ROUTES.filter(
      ({ access, scope, minTier }) => access === "public" && (scope !== null || minTier > 0),
    );
    expect(asking.map(nameOf)).toEqual([]);
  });
});
