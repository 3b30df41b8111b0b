/** The documentation of accounts, sign-in, OAuth and the wallet. */

import type { Static } from "typebox";
import type {
  CreatedPat,
  Credentials,
  EmailOnly,
  EmailVerification,
  IdentityDocument,
  JurisdictionQuery,
  NewPat,
  PasswordChange,
  PasswordReset,
  PhoneCode,
  PhoneNumber,
  RefreshToken,
  Registration,
  SignIn,
  SocialProviders,
  Tokens,
} from "../accounts/schemas.ts";
import type { PageQuery } from "../http/schemas.ts";
import type {
  NewPriceAlert,
  NotificationSettingsChange,
  Notifications,
  SeenNotifications,
} from "../notifications/schemas.ts";
import type {
  AskingClient,
  AuthorizeDecision,
  AuthorizeQuery,
  CreatedOAuthClient,
  Introspection,
  Jwks,
  NewOAuthClient,
  RedirectTo,
  ServerMetadata,
  TokenAnswer,
  TokenForm,
  TokenOnlyForm,
} from "../oauth/schemas.ts";
import type { Limits } from "../trading/schemas.ts";
import type {
  ChangeSets,
  FillsExport,
  NewWithdrawal,
  OrdersExport,
  PortfolioHistoryQuery,
  PositionsExport,
  PositionsQuery,
  SetsChange,
  SettlementsExport,
  SettlementsQuery,
  TransactionsExport,
  TransactionsQuery,
  WithdrawalsQuery,
} from "../wallet/schemas.ts";
import type { SocketTicket } from "../websocket/schemas.ts";
import { csvExample } from "./csv-example.ts";
import type { OperationText, OperationTexts } from "./operation-text.ts";
import * as example from "./samples.ts";

const EMAIL = example.user.email;
const PAGE = { limit: 10 } satisfies Static<typeof PageQuery>;
/** RFC 7636, appendix B. */
const VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const AUTHORIZATION = {
  client_id: example.oauthClient.client_id,
  redirect_uri: "https://client.example/callback",
  response_type: "code",
  scope: "portfolio:read",
  state: "af0ifjsldkj",
  code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  code_challenge_method: "S256",
} satisfies Static<typeof AuthorizeQuery>;
const CREDENTIALS = { client_id: example.oauthClient.client_id, client_secret: example.CLIENT_SECRET };
const AUTHENTICATION =
  "A confidential client sends its secret in the form or with HTTP Basic; a public client sends only its `client_id`.";

export const SIGN_IN_TEXTS: OperationTexts = {
  "POST /auth/register": {
    id: "register",
    tag: "Sign-in",
    description: "The account has KYC tier 0 until email and phone are verified.",
    errors: [409],
    body: { email: EMAIL, password: example.PASSWORD } satisfies Static<typeof Registration>,
    response: example.newUser,
  },
  "POST /auth/verify-email": {
    id: "verifyEmail",
    tag: "Sign-in",
    description:
      "Anybody can register any address, so the link alone gives no access. If somebody else registered your address, use " +
      "`POST /auth/forgot-password`: a reset transfers the account to you. A wrong password leaves the link valid: 40100, " +
      "or 40300 with the account's own session. An invalid token, or another account's, counts as no token.",
    errors: [401, 403],
    body: { token: example.MAILED_TOKEN, password: example.PASSWORD } satisfies Static<typeof EmailVerification>,
    response: { ...example.newUser, email_verified: true },
  },
  "POST /auth/resend-verification": {
    id: "resendVerification",
    tag: "Sign-in",
    body: { email: EMAIL } satisfies Static<typeof EmailOnly>,
    response: null,
  },
  "POST /auth/login": {
    id: "login",
    tag: "Sign-in",
    description:
      "The access token is valid for 15 minutes, unless the exchange sets another time. For an account with a second factor, " +
      "the response is a challenge instead of tokens.",
    errors: [401],
    body: { email: EMAIL, password: example.PASSWORD } satisfies Static<typeof Credentials>,
    response: {
      access_token: example.ACCESS_TOKEN,
      refresh_token: example.REFRESH_TOKEN,
      user: example.user,
    } satisfies Static<typeof SignIn>,
  },
  "POST /auth/refresh": {
    id: "refresh",
    tag: "Sign-in",
    description:
      "Call it after a 401 with code 2002. Keep the refresh token of the response: the one you sent is spent.",
    errors: [401],
    body: { refresh_token: example.REFRESH_TOKEN } satisfies Static<typeof RefreshToken>,
    response: { access_token: example.ACCESS_TOKEN, refresh_token: "pm_ref_9Kq1examplexx" } satisfies Static<
      typeof Tokens
    >,
  },
  "POST /auth/logout": { id: "logout", tag: "Sign-in", response: null },
  "POST /auth/forgot-password": {
    id: "forgotPassword",
    tag: "Sign-in",
    body: { email: EMAIL } satisfies Static<typeof EmailOnly>,
    response: null,
  },
  "POST /auth/reset-password": {
    id: "resetPassword",
    tag: "Sign-in",
    description:
      "If the address was never verified, the reset also removes phone, KYC tier and third-party clients: whoever registered " +
      "the account never proved ownership of the address.",
    body: { token: example.MAILED_TOKEN, password: example.NEW_PASSWORD } satisfies Static<typeof PasswordReset>,
    response: null,
  },
  "GET /auth/social": {
    id: "listProviders",
    tag: "Sign-in",
    query: { jurisdiction: "DE" } satisfies Static<typeof JurisdictionQuery>,
    response: { providers: ["example"], jurisdictions: ["DE"] } satisfies Static<typeof SocialProviders>,
  },
  "GET /auth/social/:provider": {
    id: "startSocialSignIn",
    tag: "Sign-in",
    description: "A page to visit with a browser, not to fetch.",
    params: { provider: "example" },
    query: { jurisdiction: "DE" } satisfies Static<typeof JurisdictionQuery>,
    response: null,
  },
  "GET /auth/social/:provider/callback": {
    id: "finishSocialSignIn",
    tag: "Sign-in",
    description: "Needs the cookie that was set at the start of the sign-in.",
    errors: [401, 409],
    params: { provider: "example" },
    query: { code: "SplxlOBeZQQYbYS6WxSbIA", state: "af0ifjsldkj" },
    response: { access_token: example.ACCESS_TOKEN, refresh_token: example.REFRESH_TOKEN, user: example.user },
  },
};

export const OAUTH_TEXTS: OperationTexts = {
  "GET /oauth/authorize": {
    id: "authorize",
    tag: "OAuth",
    description:
      "A page to visit with a browser. If the client or the redirect URI is invalid, the response is 40000 instead of a redirect.",
    query: AUTHORIZATION,
    response: null,
  },
  "GET /oauth/clients/:client_id": {
    id: "getAskingClient",
    tag: "OAuth",
    description: "The details that the consent page shows of a client.",
    params: { client_id: example.oauthClient.client_id },
    response: {
      client_id: example.oauthClient.client_id,
      name: example.oauthClient.name,
      redirect_uris: example.oauthClient.redirect_uris,
      created_at: example.oauthClient.created_at,
    } satisfies Static<typeof AskingClient>,
  },
  "POST /oauth/authorize": {
    id: "decideAuthorization",
    tag: "OAuth",
    description: "The consent page calls it to approve or deny.",
    errors: [409],
    body: { ...AUTHORIZATION, decision: "approve" } satisfies Static<typeof AuthorizeDecision>,
    response: {
      redirect_to: "https://client.example/callback?code=SplxlOBeZQQYbYS6WxSbIA&state=af0ifjsldkj",
    } satisfies Static<typeof RedirectTo>,
  },
  "POST /oauth/token": {
    id: "requestToken",
    tag: "OAuth",
    description: `${AUTHENTICATION} A second use of a code, or of a refresh token, revokes the access that it gave.`,
    body: {
      ...CREDENTIALS,
      grant_type: "authorization_code",
      code: "SplxlOBeZQQYbYS6WxSbIA",
      redirect_uri: AUTHORIZATION.redirect_uri,
      code_verifier: VERIFIER,
    } satisfies Static<typeof TokenForm>,
    response: {
      access_token: example.ACCESS_TOKEN,
      token_type: "Bearer",
      expires_in: 900,
      refresh_token: example.REFRESH_TOKEN,
      scope: "portfolio:read",
    } satisfies Static<typeof TokenAnswer>,
  },
  "POST /oauth/revoke": {
    id: "revokeToken",
    tag: "OAuth",
    description: `${AUTHENTICATION} An unknown token is no error.`,
    body: { ...CREDENTIALS, token: example.REFRESH_TOKEN } satisfies Static<typeof TokenOnlyForm>,
    response: {},
  },
  "POST /oauth/introspect": {
    id: "introspectToken",
    tag: "OAuth",
    body: { ...CREDENTIALS, token: example.ACCESS_TOKEN } satisfies Static<typeof TokenOnlyForm>,
    response: {
      active: true,
      scope: "portfolio:read",
      client_id: example.oauthClient.client_id,
      token_type: "Bearer",
      sub: "3",
      exp: 1_763_770_500,
    } satisfies Static<typeof Introspection>,
  },
  "GET /.well-known/jwks.json": {
    id: "getKeys",
    tag: "OAuth",
    response: {
      keys: [
        {
          kty: "RSA",
          n: "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc",
          e: "AQAB",
          kid: "k1",
          alg: "RS256",
          use: "sig",
        },
      ],
    } satisfies Static<typeof Jwks>,
  },
  "GET /.well-known/oauth-authorization-server": {
    id: "getOAuthMetadata",
    tag: "OAuth",
    response: {
      issuer: "https://exchange.example",
      authorization_endpoint: "https://exchange.example/api/v1/oauth/authorize",
      token_endpoint: "https://exchange.example/api/v1/oauth/token",
      revocation_endpoint: "https://exchange.example/api/v1/oauth/revoke",
      introspection_endpoint: "https://exchange.example/api/v1/oauth/introspect",
      jwks_uri: "https://exchange.example/api/v1/.well-known/jwks.json",
      scopes_supported: ["markets:read", "markets:propose", "orders:write", "portfolio:read"],
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    } satisfies Static<typeof ServerMetadata>,
  },
};

export const ACCOUNT_TEXTS: OperationTexts = {
  "GET /me": { id: "getAccount", tag: "Account", response: example.user },
  "POST /me/password": {
    id: "changePassword",
    tag: "Account",
    errors: [409],
    body: { current: example.PASSWORD, new: example.NEW_PASSWORD } satisfies Static<typeof PasswordChange>,
    response: null,
  },
  "POST /me/phone": {
    id: "sendPhoneCode",
    tag: "Account",
    errors: [409],
    body: { phone: "+14155552671" } satisfies Static<typeof PhoneNumber>,
    response: null,
  },
  "POST /me/phone/verify": {
    id: "verifyPhone",
    tag: "Account",
    errors: [409],
    body: { code: "123456" } satisfies Static<typeof PhoneCode>,
    response: example.user,
  },
  "POST /me/identity": {
    id: "applyForTier2",
    tag: "Account",
    errors: [409],
    body: { document_type: "passport", document_number: "C01X00T47", country: "DE" } satisfies Static<
      typeof IdentityDocument
    >,
    response: example.identityApplication,
  },
  "GET /me/identity": {
    id: "getIdentityApplication",
    tag: "Account",
    response: example.identityApplication,
  },
  "GET /me/sessions": { id: "listSessions", tag: "Account", query: PAGE, response: example.pageOf(example.session) },
  "DELETE /me/sessions": { id: "endOtherSessions", tag: "Account", response: null },
  "DELETE /me/sessions/:id": { id: "endSession", tag: "Account", params: { id: 5 }, response: null },
  "GET /me/personal-access-tokens": {
    id: "listPersonalAccessTokens",
    tag: "Account",
    query: PAGE,
    response: example.pageOf(example.pat),
  },
  "POST /me/personal-access-tokens": {
    id: "createPersonalAccessToken",
    tag: "Account",
    description: "For bots: it outlives sessions and earns a maker rebate of 10 bps instead of 5.",
    errors: [409],
    body: {
      name: "quoting bot",
      scopes: ["orders:write", "portfolio:read"],
      expires_at: example.FAR_OFF,
      allowed_ips: ["203.0.113.7", "2001:db8::/32"],
    } satisfies Static<typeof NewPat>,
    response: { ...example.pat, token: "pm_pat_Zm9vexampleexampleexampleexampleexample" } satisfies Static<
      typeof CreatedPat
    >,
  },
  "DELETE /me/personal-access-tokens/:id": {
    id: "revokePersonalAccessToken",
    tag: "Account",
    params: { id: 4 },
    response: null,
  },
  "GET /me/oauth-grants": {
    id: "listOAuthGrants",
    tag: "Account",
    query: PAGE,
    response: example.pageOf(example.oauthGrant),
  },
  "DELETE /me/oauth-grants/:id": { id: "revokeOAuthGrant", tag: "Account", params: { id: 8 }, response: null },
  "GET /me/oauth-clients": {
    id: "listOAuthClients",
    tag: "Account",
    query: PAGE,
    response: example.pageOf(example.oauthClient),
  },
  "GET /me/oauth-clients/:id": {
    id: "getOAuthClient",
    tag: "Account",
    params: { id: 6 },
    response: example.oauthClient,
  },
  "POST /me/oauth-clients": {
    id: "createOAuthClient",
    tag: "Account",
    errors: [409],
    body: {
      name: "Portfolio tracker",
      redirect_uris: ["https://client.example/callback"],
      confidential: true,
    } satisfies Static<typeof NewOAuthClient>,
    response: { ...example.oauthClient, client_secret: example.CLIENT_SECRET } satisfies Static<
      typeof CreatedOAuthClient
    >,
  },
  "DELETE /me/oauth-clients/:id": { id: "removeOAuthClient", tag: "Account", params: { id: 6 }, response: null },
  "GET /me/limits": {
    id: "getLimits",
    tag: "Account",
    response: {
      kyc_tier: 1,
      daily_activity: { used: 42_000_000, limit: 100_000_000 },
      live_orders: { used: 12, limit: 500 },
      fees: { trading_fee: 150, maker_rebate: 10, merge_fee: 0 },
      rate_limits: [{ route: "POST /orders", scope: "user", limit: 30, remaining: 29, reset: 60 }],
    } satisfies Static<typeof Limits>,
  },
  "POST /ws-tickets": {
    id: "createSocketTicket",
    tag: "Account",
    response: { ticket: "ws_t1ck3texample", expires_at: example.THEN + 60_000 } satisfies Static<typeof SocketTicket>,
  },
};

const balanceText = (id: string): OperationText => ({ id, tag: "Wallet", response: example.balance });

export const WALLET_TEXTS: OperationTexts = {
  "GET /wallet/balance": balanceText("getBalance"),
  "GET /me/balance": balanceText("getMyBalance"),
  "GET /users/me/balance": balanceText("getUserBalance"),
  "POST /wallet/split": {
    id: "splitSets",
    tag: "Wallet",
    errors: [404, 409, 422],
    body: { market_id: 1, quantity: 100 } satisfies Static<typeof ChangeSets>,
    response: { market_id: 1, quantity: 100, fee: 0 } satisfies Static<typeof SetsChange>,
  },
  "POST /wallet/merge": {
    id: "mergeSets",
    tag: "Wallet",
    errors: [404, 409, 422],
    body: { market_id: 1, quantity: 40 } satisfies Static<typeof ChangeSets>,
    response: { market_id: 1, quantity: 40, fee: 0 } satisfies Static<typeof SetsChange>,
  },
  "GET /me/positions": {
    id: "listPositions",
    tag: "Wallet",
    query: { market_id: 1, limit: 10 } satisfies Static<typeof PositionsQuery>,
    response: example.pageOf(example.position),
  },
  "GET /wallet/transactions": {
    id: "listTransactions",
    tag: "Wallet",
    query: { type: "trade", from: 1_700_000_000_000 } satisfies Static<typeof TransactionsQuery>,
    response: example.pageOf(example.transaction),
    csv: csvExample("transactions", example.transaction),
  },
  "GET /me/portfolio": { id: "getPortfolio", tag: "Wallet", response: example.portfolio },
  "GET /me/portfolio/history": {
    id: "getPortfolioHistory",
    tag: "Wallet",
    query: { interval: "1d" } satisfies Static<typeof PortfolioHistoryQuery>,
    response: example.portfolioHistory,
  },
  "GET /wallet/deposits": {
    id: "listDeposits",
    tag: "Wallet",
    query: PAGE,
    response: example.pageOf(example.ownDeposit),
  },
  "GET /wallet/deposit-instructions": {
    id: "getDepositInstructions",
    tag: "Wallet",
    response: example.depositInstructions,
  },
  "GET /wallet/settlements": {
    id: "listSettlements",
    tag: "Wallet",
    query: { market_id: 1 } satisfies Static<typeof SettlementsQuery>,
    response: example.pageOf(example.settlement),
  },
  "GET /me/notifications": {
    id: "listNotifications",
    tag: "Account",
    response: { items: [example.notification], unseen: 1, seen_at: example.notification.at - 1 } satisfies Static<
      typeof Notifications
    >,
  },
  "PATCH /me/notifications": {
    id: "markNotificationsSeen",
    tag: "Account",
    body: { seen_at: example.notification.at } satisfies Static<typeof SeenNotifications>,
    response: { seen_at: example.notification.at } satisfies Static<typeof SeenNotifications>,
  },
  "GET /me/notification-settings": {
    id: "getNotificationSettings",
    tag: "Account",
    response: example.notificationSettings,
  },
  "PATCH /me/notification-settings": {
    id: "changeNotificationSettings",
    tag: "Account",
    body: { mail: { fills: false } } satisfies Static<typeof NotificationSettingsChange>,
    response: example.notificationSettings,
  },
  "GET /auth/unsubscribe/:token": {
    id: "openUnsubscribePage",
    tag: "Account",
    description: "A page to visit with a browser, not to fetch.",
    errors: [404],
    params: { token: "7.Jm2f0wZ3kq8vT1xYc5RbNA" },
    response: null,
  },
  "POST /auth/unsubscribe/:token": {
    id: "unsubscribe",
    tag: "Account",
    description: "Mail programs may post the form of RFC 8058.",
    errors: [404],
    params: { token: "7.Jm2f0wZ3kq8vT1xYc5RbNA" },
    response: null,
  },
  "GET /me/price-alerts": { id: "listPriceAlerts", tag: "Account", response: { items: [example.priceAlert] } },
  "POST /me/price-alerts": {
    id: "createPriceAlert",
    tag: "Account",
    errors: [404, 409],
    body: { outcome_id: 1, direction: "above", price: 9_900 } satisfies Static<typeof NewPriceAlert>,
    response: example.priceAlert,
  },
  "DELETE /me/price-alerts/:id": { id: "deletePriceAlert", tag: "Account", params: { id: 1 }, response: null },
  "GET /me/exports/orders": {
    id: "exportOrders",
    tag: "Wallet",
    query: { market_id: 1, status: "all" } satisfies Static<typeof OrdersExport>,
    response: csvExample("orders", example.restingOrder),
  },
  "GET /me/exports/fills": {
    id: "exportFills",
    tag: "Wallet",
    query: { market_id: 1 } satisfies Static<typeof FillsExport>,
    response: csvExample("fills", example.ownFill),
  },
  "GET /me/exports/positions": {
    id: "exportPositions",
    tag: "Wallet",
    query: { market_id: 1 } satisfies Static<typeof PositionsExport>,
    response: csvExample("positions", example.position),
  },
  "GET /me/exports/settlements": {
    id: "exportSettlements",
    tag: "Wallet",
    query: { market_id: 1 } satisfies Static<typeof SettlementsExport>,
    response: csvExample("settlements", example.settlement),
  },
  "GET /me/exports/transactions": {
    id: "exportTransactions",
    tag: "Wallet",
    query: { type: "trade", layout: "fields" } satisfies Static<typeof TransactionsExport>,
    response: csvExample("transactions", example.transaction),
  },
  "POST /wallet/withdrawals": {
    id: "requestWithdrawal",
    tag: "Wallet",
    errors: [409, 422],
    body: { amount: 25_000_000, address: example.ownWithdrawal.address } satisfies Static<typeof NewWithdrawal>,
    response: example.ownWithdrawal,
  },
  "GET /wallet/withdrawals": {
    id: "listWithdrawals",
    tag: "Wallet",
    query: { status: "pending" } satisfies Static<typeof WithdrawalsQuery>,
    response: example.pageOf(example.ownWithdrawal),
  },
  "GET /wallet/withdrawals/:id": {
    id: "getWithdrawal",
    tag: "Wallet",
    params: { id: 11 },
    response: example.ownWithdrawal,
  },
  "DELETE /wallet/withdrawals/:id": {
    id: "cancelWithdrawal",
    tag: "Wallet",
    errors: [409],
    params: { id: 11 },
    response: { ...example.ownWithdrawal, status: "canceled", decided_at: example.THEN },
  },
};
