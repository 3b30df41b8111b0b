/**
 * Access control: the test requests every route and every WebSocket operation with every kind of token. It derives the
 * expected responses from the route table, and compares that table with a second one written from the contract.
 */
import { createPrivateKey, randomBytes, sign } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Scope, TokenKind } from "../../server/accounts/types.ts";
import type { Route } from "../../server/http/route.ts";
import { eventually, expectBalanced, expectEndsWell, expectQuiet, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, Client, type OrderJson, ROUTES } from "../support/client.ts";
import { signingKeys, withDatabase } from "../support/data-dir.ts";
import { createPat, login, PASSWORD, type SignedIn, signIn } from "../support/identity.ts";
import { HIGH_LIMITS } from "../support/rates.ts";
import type { TestServer } from "../support/server.ts";
import { type Frame, Socket, upgradeRefusal } from "../support/socket.ts";
import { BUY, quote, terms } from "../support/terms.ts";
import { CALLBACK, FORM, ThirdParty } from "../support/third-party.ts";
import { ALL_SCOPES, PUBLIC_URL, type TestMarket, tokenOf, World } from "../support/world.ts";

const SCOPES = ALL_SCOPES as readonly Scope[];
const EVERY_SCOPE = ALL_SCOPES.join(" ");
const UNKNOWN_ID = 999_999_999;

// ---------------------------------------------------------------- the contract

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
  ["GET /wallet/deposits", "portfolio:read", 0],
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
  ["GET /markets/:id/orderbook", "public", 0],
  ["GET /orderbook/:market_id/:outcome_id", "public", 0],
  ["GET /events", "public", 0],
  ["GET /events/:id", "public", 0],
  ["GET /feed", "public", 0],
  ["GET /time", "public", 0],
  ["GET /solvency", "public", 0],
  ["GET /builders/:code/stats", "public", 0],
  ["GET */livez", "public", 0],
  ["GET */readyz", "public", 0],
  ["GET */metrics", "public", 0],
  ["GET */openapi.json", "public", 0],
  ["GET */asyncapi.json", "public", 0],
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

/** "With orders:write: order.place, order.cancel, ..."; public channels need nothing. */
const OPERATIONS: readonly (readonly [op: string, rule: "none" | "orders:write", message: object, letIn: number])[] = [
  ["ping", "none", {}, 0],
  ["subscribe", "none", { channel: "trades", market_id: 1 }, 0],
  ["unsubscribe", "none", { channel: "trades", market_id: 1 }, 0],
  ["order.place", "orders:write", { data: { nothing: 1 } }, 40000],
  ["order.cancel", "orders:write", { data: { id: UNKNOWN_ID } }, 4040],
  ["order.cancel_all", "orders:write", { data: { nothing: 1 } }, 40000],
  ["order.cancel_after", "orders:write", { data: { nothing: 1 } }, 40000],
  ["order.amend", "orders:write", { data: { id: UNKNOWN_ID, price: 1 } }, 4040],
  ["order.batch", "orders:write", { data: { operations: [] } }, 40000],
  ["quotes.replace", "orders:write", { data: { market_id: UNKNOWN_ID, quotes: [] } }, 4040],
  ["cancel_on_disconnect", "orders:write", { enabled: false }, 0],
];
/** The minimum tier of every operation that needs a token. */
const OPERATION_TIER = 1;

function ruleOf({ access, tokens, scope, orScope }: Route): string {
  if (access === "public") return "public";
  if (access === "operator" && tokens.join() === "session" && scope === null) return "operator";
  const isAny = access === "user" && tokens.length === 3 && new Set(tokens).size === 3;
  if (isAny) return (orScope === null ? scope : `${scope} or ${orScope}`) ?? "any token";
  const isSessionOnly = access === "user" && tokens.join() === "session" && scope === null;
  return isSessionOnly ? "session only" : `${access} by ${tokens.join()} with ${scope}`;
}

const nameOf = ({ method, path, unversioned }: Route): string => `${method} ${unversioned ? "*" : ""}${path}`;

// ---------------------------------------------------------------- callers

/** The server's response to a token on every route that requires one. */
interface Refusal {
  readonly status: number;
  readonly code: number;
  readonly msg: string;
}

const MISSING: Refusal = { status: 401, code: 40100, msg: "a bearer token is required" };
const OTHER_SCHEME: Refusal = { status: 401, code: 40100, msg: "the Authorization header is not a bearer token" };
const INVALID: Refusal = { status: 401, code: 40100, msg: "the token is not valid" };
const EXPIRED: Refusal = { status: 401, code: 2002, msg: "the token has expired" };
const SUSPENDED: Refusal = { status: 403, code: 40300, msg: "the account is suspended" };
const ELSEWHERE: Refusal = { status: 403, code: 40300, msg: "the token cannot be used from this address" };

interface Holder {
  readonly kind: TokenKind;
  readonly scopes: readonly Scope[];
  readonly tier: number;
  readonly isOperator?: true;
}

const session = (tier: number): Holder => ({ kind: "session", scopes: SCOPES, tier });
const operators = (holder: Holder): Holder => ({ ...holder, isOperator: true });
const pat = (tier: number, ...scopes: Scope[]): Holder => ({ kind: "pat", scopes, tier });
const oauth = (tier: number, ...scopes: Scope[]): Holder => ({ kind: "oauth", scopes, tier });

/**
 * Tokens by name, created before the tests. A function creates a token for each request that the server has not seen.
 */
const tokens = new Map<string, string | (() => string)>();

/** The name of each token, and its holder or the refusal that it receives. */
const CALLERS: readonly (readonly [name: string, what: Refusal | Holder])[] = [
  ["no token", MISSING],
  ["another scheme", OTHER_SCHEME],
  ["the scheme alone", OTHER_SCHEME],
  ["garbage", INVALID],
  ["a personal access token that never was", INVALID],
  ["a damaged session token", INVALID],
  ["a refresh token", INVALID],
  ["a revoked personal access token", INVALID],
  ["a session that logged out", INVALID],
  ["a session that another one ended", INVALID],
  ["an OAuth token whose grant was revoked", INVALID],
  ["a session that expired and had ended", INVALID],
  ["an expired session token", EXPIRED],
  ["an expired OAuth token", EXPIRED],
  ["an expired personal access token", EXPIRED],
  ["a personal access token from elsewhere", ELSEWHERE],
  ["a session of a suspended user", SUSPENDED],
  ["a personal access token of a suspended user", SUSPENDED],
  ["an OAuth token of a suspended user", SUSPENDED],
  ["a session of tier 0", session(0)],
  ["a session of tier 1", session(1)],
  ["a session of tier 2", session(2)],
  ["a session of tier 2 by tokens not seen before", session(2)],
  ["an operator's session", operators(session(2))],
  ["a personal access token of tier 0", pat(0, ...SCOPES)],
  ["a personal access token of tier 1", pat(1, ...SCOPES)],
  ["a personal access token of tier 2", pat(2, ...SCOPES)],
  ["an operator's personal access token", operators(pat(2, ...SCOPES))],
  ...SCOPES.map((scope) => [`a personal access token with ${scope}`, pat(2, scope)] as const),
  ...SCOPES.map((scope) => [`a personal access token of tier 0 with ${scope}`, pat(0, scope)] as const),
  ["an OAuth token of tier 0", oauth(0, ...SCOPES)],
  ["an OAuth token of tier 2", oauth(2, ...SCOPES)],
  ["OAuth tokens of tier 2 not seen before", oauth(2, ...SCOPES)],
  ...SCOPES.map((scope) => [`an OAuth token with ${scope}`, oauth(2, scope)] as const),
];

/** Returns the caller's Authorization header; null for none. */
function headerOf(name: string): string | null {
  if (name === "no token") return null;
  const token = tokens.get(name);
  if (token === undefined) throw new Error(`nobody made ${name}`);
  const text = typeof token === "string" ? token : token();
  if (name === "another scheme") return `Token ${text}`;
  return name === "the scheme alone" ? "Bearer" : `Bearer ${text}`;
}

// ---------------------------------------------------------------- probes

/** A request to a route that changes nothing for any caller. */
interface Probe {
  readonly route: Route;
  readonly name: string;
  readonly path: string;
  readonly options: { body?: unknown; headers: Record<string, string> };
  /** The response code for a caller with access. */
  readonly letIn: number;
}

/** The exceptions to the rule below. */
const LET_IN: Readonly<Record<string, number>> = {
  "GET /oauth/authorize": 40000, // no parameters
  "GET /me/identity": 4040, // no application
  "POST /me/second-factors/recovery-codes": 40900, // no second factor
  "GET /auth/social/:provider/callback": 40100, // no pending sign-in
};

/** With access granted, these would end tokens of other tests. */
const ENDS_SESSIONS: readonly string[] = ["POST /auth/logout", "DELETE /me/sessions"];

/** The server reports invalid fields of the body before an unknown id in the path, but only to callers with access. */
function probeOf(route: Route): Probe {
  const name = nameOf(route);
  const path = (route.unversioned ? "" : API_BASE) + route.path.replaceAll(/:\w+/g, String(UNKNOWN_ID));
  const rest = { route, name, path };
  if (route.oauth) return { ...rest, options: { body: "nothing=1", headers: FORM }, letIn: 0 };
  if (route.body !== null) return { ...rest, options: { body: { nothing: 1 }, headers: {} }, letIn: 40000 };
  const letIn = LET_IN[name] ?? (route.path.includes(":") ? 4040 : 0);
  return { ...rest, options: { headers: {} }, letIn };
}

const PROBES = ROUTES.map(probeOf);

/** Sends the request to each route in sequence. */
async function ask(server: TestServer, name: string, probes: readonly Probe[]): Promise<Map<Probe, Answer>> {
  const client = new Client(server, null);
  const answers = new Map<Probe, Answer>();
  for (const probe of probes) {
    const header = headerOf(name);
    const { options } = probe;
    const headers = header === null ? options.headers : { ...options.headers, Authorization: header };
    answers.set(probe, await client.requestRoot(probe.route.method, probe.path, { ...options, headers }));
  }
  client.close();
  return answers;
}

/** Checks in order of precedence: the caller, the kind of token, the scopes, the tier. */
function refusalOf({ access, tokens, scope, orScope, minTier }: Route, what: Refusal | Holder): Refusal | null {
  if ("code" in what) return what;
  const forbidden = (msg: string): Refusal => ({ status: 403, code: 40300, msg });
  if (!tokens.includes(what.kind)) return forbidden("this kind of token cannot be used here");
  if (access === "operator" && what.isOperator !== true) return forbidden("for operators only");
  const wanted = [scope, orScope].filter((each) => each !== null);
  if (wanted.length > 0 && !wanted.some((each) => what.scopes.includes(each))) {
    return forbidden(`the token lacks the scope ${wanted.join(" or ")}`);
  }
  if (what.tier < minTier) return forbidden(`requires KYC tier ${minTier}, the account has ${what.tier}`);
  return null;
}

const shown = ({ status, code, msg }: Answer): Refusal => ({ status, code, msg });

// ---------------------------------------------------------------- tokens

/**
 * Returns a genuine token with a new `jti`, signed with the server's own key: a valid token that the server has not
 * seen.
 */
function another(dataDir: string, token: string): string {
  const key = createPrivateKey({ key: signingKeys(dataDir)[0]!, format: "jwk" });
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const claims = { ...decodeJwt(token), jti: randomBytes(16).toString("base64url") };
  const input = `${encode(decodeProtectedHeader(token))}.${encode(claims)}`;
  return `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`;
}

type Attempt = [method: string, path: string, body?: object];
type Row = Record<string, unknown> & { readonly id: number };

// ---------------------------------------------------------------- one exchange, restarted repeatedly

const NAMES = ["tier0", "tier1", "tier2", "operator", "suspended"] as const;
type Name = (typeof NAMES)[number];

let world: World;
let market: TestMarket;
let people: Record<Name, SignedIn>;
let party: ThirdParty;
const servers: TestServer[] = [];

async function startAgain(env: Record<string, string>): Promise<void> {
  for (const { client } of Object.values(people ?? {})) client.close();
  if (world.server.alive) await world.server.stop();
  world.server = await world.server.restart(env);
  servers.push(world.server);
}

/** Creates the tokens that need an active user or long-lived access tokens. */
async function makeTokens(): Promise<void> {
  const { server } = world;
  const made = NAMES.map(async (name) => [name, await signIn(server, `${name}@example.com`)] as const);
  people = Object.fromEntries(await Promise.all(made)) as Record<Name, SignedIn>;
  const { tier0, tier1, tier2, operator, suspended } = people;
  const set = (name: string, token: string | (() => string)): void => void tokens.set(name, token);

  set("another scheme", tier2.accessToken);
  set("the scheme alone", "");
  set("garbage", "garbage");
  set("a personal access token that never was", `pm_pat_${randomBytes(32).toString("base64url")}`);
  set("a damaged session token", tier2.accessToken.slice(0, -8));
  set("a refresh token", tier2.refreshToken);

  set("a session of tier 0", tier0.accessToken);
  set("a session of tier 1", tier1.accessToken);
  set("a session of tier 2", tier2.accessToken);
  set("a session of tier 2 by tokens not seen before", () => another(server.dataDir, tier2.accessToken));
  set("an operator's session", operator.accessToken);
  set("a session of a suspended user", suspended.accessToken);
  set("a personal access token of tier 0", tokenOf("tier0"));
  set("a personal access token of tier 1", tokenOf("tier1"));
  set("a personal access token of tier 2", tokenOf("tier2"));
  set("an operator's personal access token", tokenOf("operator"));
  set("a personal access token of a suspended user", tokenOf("suspended"));
  for (const [i, scope] of SCOPES.entries()) {
    set(`a personal access token with ${scope}`, tokenOf("tier2", i + 1));
    set(`a personal access token of tier 0 with ${scope}`, tokenOf("tier0", i + 1));
  }

  const revoked = await createPat(tier2.client);
  await tier2.client.data("DELETE", `/me/personal-access-tokens/${revoked.id}`);
  set("a revoked personal access token", revoked.token);
  const bound = await createPat(tier2.client, { allowed_ips: ["192.0.2.1", "2001:db8::/32"] });
  set("a personal access token from elsewhere", bound.token);
  const brief = await createPat(tier2.client, { expires_at: Date.now() + 1_500 });
  set("an expired personal access token", brief.token);

  const [loggedOut, ended] = [await signIn(server, "tier2@example.com"), await signIn(server, "tier2@example.com")];
  await loggedOut.client.data("POST", "/auth/logout");
  loggedOut.client.close();
  ended.client.close();
  await endNewest(tier2.client);
  set("a session that logged out", loggedOut.accessToken);
  set("a session that another one ended", ended.accessToken);

  party = await ThirdParty.register(world, tier1.client);
  // Create the narrow ones first and last: neither the grant nor another of its sessions may widen them.
  for (const [i, scope] of SCOPES.entries()) {
    set(`an OAuth token with ${scope}`, (await party.tokens(tier2.client, scope)).access_token);
    if (i > 0) continue;
    const all = await party.tokens(tier2.client, EVERY_SCOPE);
    set("an OAuth token of tier 2", all.access_token);
    set("OAuth tokens of tier 2 not seen before", () => another(server.dataDir, all.access_token));
  }
  set("an OAuth token of tier 0", (await party.tokens(tier0.client, EVERY_SCOPE)).access_token);
  set("an OAuth token of a suspended user", (await party.tokens(suspended.client, EVERY_SCOPE)).access_token);
  const other = await ThirdParty.register(world, tier1.client);
  set("an OAuth token whose grant was revoked", (await other.tokens(tier2.client, EVERY_SCOPE)).access_token);
  const grants = await tier2.client.all<{ id: number; client_id: string }>("/me/oauth-grants");
  const grant = grants.find((row) => row.client_id === other.clientId);
  await tier2.client.data("DELETE", `/me/oauth-grants/${grant!.id}`);
}

/** Creates tokens on a server whose access tokens live for a second. */
async function makeExpired(): Promise<void> {
  const { server } = world;
  const tier2 = new Client(server, people.tier2.accessToken);
  const [brief, ended] = [await signIn(server, "tier2@example.com"), await signIn(server, "tier2@example.com")];
  await endNewest(tier2);
  const third = await party.tokens(tier2, EVERY_SCOPE);
  tokens.set("an expired session token", brief.accessToken);
  tokens.set("a session that expired and had ended", ended.accessToken);
  tokens.set("an expired OAuth token", third.access_token);
  brief.client.close();
  ended.client.close();
  for (const name of ["an expired session token", "an expired OAuth token", "an expired personal access token"]) {
    await eventually(async () => {
      expect((await tier2.request("GET", "/me", { headers: { Authorization: headerOf(name)! } })).code).toBe(2002);
    });
  }
  tier2.close();
}

/** Ends the newest session from another session. */
async function endNewest(client: Client): Promise<void> {
  const [newest] = await client.all<{ id: number; current: boolean }>("/me/sessions");
  expect(newest!.current).toBe(false);
  await client.data("DELETE", `/me/sessions/${newest!.id}`);
}

beforeAll(async () => {
  const scopes = [ALL_SCOPES, ...ALL_SCOPES.map((scope) => [scope])];
  const named = Object.fromEntries(
    NAMES.map((name) => {
      const tier = name === "tier0" ? 0 : name === "tier1" ? 1 : 2;
      const role = name === "operator" ? ("operator" as const) : ("user" as const);
      return [name, { tier, role, password: PASSWORD, scopes }];
    }),
  );
  world = await World.start({ users: 1, named, env: { PUBLIC_URL } });
  servers.push(world.server);
  market = world.market();
  await makeTokens();
  await world.server.stop();
  withDatabase(world.server.dataDir, (db) => {
    db.prepare("UPDATE users SET suspended_at = ? WHERE email = 'suspended@example.com'").run(Date.now());
  });
});

afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
  const secrets = [...tokens.values()].filter((token) => typeof token === "string").filter((token) => token !== "");
  for (const server of servers) {
    expectQuiet(server);
    expectUnlogged(secrets, server);
  }
});

// ---------------------------------------------------------------- the table

describe("the route table", () => {
  test("has the routes that the contract gives a rule, and no others", () => {
    const names = CONTRACT.map(([name]) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(ROUTES.map(nameOf).sort()).toEqual([...names].sort());
  });

  test.each(CONTRACT)("%s: %s, tier %i", (name, rule, minTier) => {
    const found = ROUTES.filter((route) => nameOf(route) === name);
    expect(found.map((route) => [ruleOf(route), route.minTier])).toEqual([[rule, minTier]]);
  });

  test("on a public route it asks for nothing more", () => {
    const asking = ROUTES.filter(
      ({ access, scope, minTier }) => access === "public" && (scope !== null || minTier > 0),
    );
    expect(asking.map(nameOf)).toEqual([]);
  });
});

describe.each([
  ["without limits", { ACCESS_TOKEN_TTL: "1", RATE_LIMITS: "off" }],
  ["with limits, started again", { ACCESS_TOKEN_TTL: "900", RATE_LIMITS: HIGH_LIMITS }],
])("%s", (_mode, env) => {
  let strangers: Map<Probe, Answer>;
  beforeAll(async () => {
    await startAgain(env);
    if (!tokens.has("an expired session token")) await makeExpired();
    strangers = await ask(world.server, "no token", PROBES);
  });

  test("public routes let everybody in", () => {
    for (const [{ route, name, letIn }, answer] of strangers) {
      if (route.access !== "public") continue;
      // OAuth errors of a third party carry no code of the exchange.
      if (route.oauth) expect([name, answer.status === 400 || answer.status === 401]).toEqual([name, true]);
      else expect([name, answer.code]).toEqual([name, letIn]);
    }
  });

  test.each(CALLERS)("%s", async (caller, what) => {
    // A session with access would log itself out and end other sessions of the user.
    const isSession = "kind" in what && what.kind === "session";
    const probes = PROBES.filter(({ name }) => !(isSession && ENDS_SESSIONS.includes(name)));
    const answers = await ask(world.server, caller, probes);
    const found: unknown[] = [];
    const expected: unknown[] = [];
    for (const [probe, answer] of answers) {
      const { route, name, letIn } = probe;
      const refusal = route.access === "public" ? null : refusalOf(route, what);
      if (route.oauth && caller !== "no token") {
        // A client that authenticates by an unsupported scheme: RFC 6749, section 5.2.
        found.push([name, answer.status >= 400 && answer.status <= 401]);
        expected.push([name, true]);
      } else if (refusal !== null) {
        found.push([name, shown(answer)]);
        expected.push([name, refusal]);
        if (answer.status === 401) expect([name, answer.headers["www-authenticate"]]).toEqual([name, "Bearer"]);
      } else {
        const isBodyRead = route.body !== null && !route.oauth;
        found.push(isBodyRead ? [name, answer.code, answer.msg] : [name, answer.code]);
        expected.push(isBodyRead ? [name, letIn, "nothing: unknown field"] : [name, route.oauth ? answer.code : letIn]);
        // A public route responds the same to every caller.
        if (route.access === "public") expect([name, shown(answer)]).toEqual([name, shown(strangers.get(probe)!)]);
      }
    }
    expect(found).toEqual(expected);
  });

  test.each(CALLERS)("%s over the WebSocket", async (caller, what) => {
    const { server } = world;
    if (what === OTHER_SCHEME) return;
    const token = headerOf(caller)?.slice("Bearer ".length) ?? null;
    const isLetIn = what === MISSING || "kind" in what;
    if (!isLetIn) {
      expect(shown(await upgradeRefusal(server, token!))).toEqual(what);
      return;
    }
    const socket = await Socket.open(server, token);
    const found: unknown[] = [];
    const expected: unknown[] = [];
    for (const [op, rule, message, letIn] of OPERATIONS) {
      const { code, msg } = await socket.ask({ op, ...message });
      const forbidden = (why: string): unknown[] => [op, 40300, why];
      const isRefused = code !== letIn;
      found.push(isRefused ? [op, code, msg] : [op, code]);
      if (rule === "none") expected.push([op, letIn]);
      else if (!("kind" in what)) expected.push([op, 40100, "connect with a token to trade"]);
      else if (!what.scopes.includes(rule)) expected.push(forbidden(`the token lacks the scope ${rule}`));
      else if (what.tier < OPERATION_TIER) {
        expected.push(forbidden(`requires KYC tier ${OPERATION_TIER}, the account has ${what.tier}`));
      } else expected.push([op, letIn]);
    }
    expect(found).toEqual(expected);
    await socket.close();
  });

  test("what happens to an account is told to the scopes that may know", async () => {
    const { server } = world;
    const names = [
      ...SCOPES.flatMap((scope) => [`a personal access token with ${scope}`, `an OAuth token with ${scope}`]),
      "a session of tier 2",
      "a session of tier 1",
    ];
    const sockets = await Promise.all(names.map((name) => Socket.open(server, headerOf(name)!.slice(7))));
    const trader = new Client(server, tokenOf("tier2"));
    const { id } = await trader.place(terms(market, 0, BUY, 100, 1));
    const full = sockets[names.indexOf("a session of tier 2")]!;
    await full.frame<OrderJson>("order.updated", (order) => order.id === id && order.status === "open");
    await full.frame("balance.updated");
    const heard: unknown[] = [];
    for (const socket of sockets) {
      await socket.settled();
      heard.push(
        [...new Set(socket.frames.map(({ event }: Frame) => event))].filter((event) => event !== "heartbeat").sort(),
      );
    }
    const orders = ["order.updated"];
    const account = ["balance.updated", "order.updated"];
    const expected = SCOPES.flatMap((scope) => {
      const own = scope === "orders:write" ? orders : scope === "portfolio:read" ? account : [];
      return [own, own];
    });
    expect(heard).toEqual([...expected, account, []]);
    await Promise.all(sockets.map((socket) => socket.close()));
    await trader.cancel(id);
    trader.close();
  });

  test("a refusal changes nothing, and what is another's isn't there", async () => {
    const { server } = world;
    const session = new Client(server, people.tier2.accessToken);
    const trader = new Client(server, tokenOf("tier2"));
    const order = await trader.place(terms(market, 0, BUY, 100, 1));
    /** All state that a refused request might change, except the time of the last use, which may advance. */
    const state = async (): Promise<Row[][]> => {
      const lists = ["/me/personal-access-tokens", "/me/sessions", "/me/oauth-grants", "/me/oauth-clients", "/orders"];
      const rows = await Promise.all(lists.map((list) => session.all<Row>(list)));
      return rows.map((list) => list.map((row) => ({ ...row, last_used_at: null })));
    };
    const before = await state();
    const [pats, sessions, grants] = before as [Row[], Row[], Row[], ...Row[][]];
    const own: Attempt[] = [
      ...pats.map(({ id }): Attempt => ["DELETE", `/me/personal-access-tokens/${id}`]),
      ...sessions.map(({ id }): Attempt => ["DELETE", `/me/sessions/${id}`]),
      ...grants.map(({ id }): Attempt => ["DELETE", `/me/oauth-grants/${id}`]),
    ];
    const others: Attempt[] = [
      ["POST", "/auth/logout"],
      ["DELETE", "/me/sessions"],
      ["POST", "/me/personal-access-tokens", { name: "more", scopes: ALL_SCOPES }],
      ["POST", "/me/oauth-clients", { name: "more", redirect_uris: [CALLBACK], confidential: false }],
      ["POST", "/me/password", { current: PASSWORD, new: "another quiet harbour" }],
      ["POST", "/me/phone", { phone: "+14155552671" }],
    ];
    const ownOrder: Attempt[] = [
      ["DELETE", `/orders/${order.id}`],
      ["PATCH", `/orders/${order.id}`, { price: 90 }],
    ];
    const more = terms(market, 0, BUY, 100, 1);
    const trades: Attempt[] = [
      ["POST", "/orders", more],
      ["DELETE", "/orders"],
      ["POST", "/orders/batch", { operations: [{ op: "cancel", id: order.id }] }],
      ["PUT", `/quotes/${market.id}`, { quotes: [quote(market, 0, BUY, 10, 1)] }],
      ["POST", "/wallet/split", { market_id: market.id, quantity: 1 }],
    ];
    const refuse = async (name: string, attempts: Attempt[], expected: number): Promise<void> => {
      for (const [method, path, body] of attempts) {
        const headers = { Authorization: headerOf(name)! };
        const { code } = await trader.request(method, path, body === undefined ? { headers } : { headers, body });
        expect([name, method, path, code]).toEqual([name, method, path, expected]);
      }
    };
    const balance = await trader.balance();
    await refuse("a personal access token of tier 2", [...own, ...others], 40300);
    await refuse("an OAuth token of tier 2", [...own, ...others], 40300);
    await refuse("a personal access token with portfolio:read", [...ownOrder, ...trades], 40300);
    await refuse("an OAuth token with markets:propose", [...ownOrder, ...trades], 40300);
    await refuse("a session of a suspended user", [...own, ...others, ...trades], 40300);
    await refuse("a personal access token from elsewhere", [...own, ...others, ...ownOrder, ...trades], 40300);
    await refuse("a session of tier 1", [...own, ...ownOrder], 4040);
    await refuse("an operator's session", [...own, ...ownOrder], 4040);
    expect(await state()).toEqual(before);
    expect(await trader.balance()).toEqual(balance);
    await trader.cancel(order.id);
    for (const client of [session, trader]) client.close();
  });

  test("no other spelling of a path is let in", async () => {
    const client = new Client(world.server, null);
    const spellings = ["/me/", "//me", "/ME", "/Me", "/%6de", "/me%2f", "/me%00", "/me;x", "/me/.", "\\me", "/me#"];
    const longer = ["/markets/../me", "/./me", "/markets/%2e%2e/me", "/wallet//balance", "/wallet/balance/"];
    for (const path of [...spellings, ...longer]) {
      const { status, code, data } = await client.request("GET", path);
      expect([path, [`404 4040`, `401 40100`].includes(`${status} ${code}`), data]).toEqual([path, true, null]);
    }
    for (const method of ["HEAD", "OPTIONS", "TRACE", "PROPFIND", "QUERY"]) {
      const { status } = await client.send(method, `${API_BASE}/me`, {}, null);
      expect([method, status]).toEqual([method, method === "HEAD" ? 401 : 405]);
    }
    client.close();
  });

  test("a token anywhere but in its header is none", async () => {
    const client = new Client(world.server, null);
    const { accessToken } = people.tier2;
    const ways: [path: string, headers: Record<string, string>][] = [
      [`/me?token=${accessToken}`, {}],
      [`/me?access_token=${accessToken}`, {}],
      ["/me", { Cookie: `access_token=${accessToken}; token=${accessToken}` }],
      ["/me", { "X-Access-Token": accessToken, "X-Authorization": `Bearer ${accessToken}` }],
      ["/me", { "Proxy-Authorization": `Bearer ${accessToken}` }],
      ["/me", { "Sec-WebSocket-Protocol": accessToken }],
    ];
    for (const [path, headers] of ways) expect(shown(await client.request("GET", path, { headers }))).toEqual(MISSING);
    client.close();
  });

  test("logging out ends the session that asks at once, and nothing else of the user", async () => {
    // Needs an access token that lives longer than one second.
    if (env.ACCESS_TOKEN_TTL === "1") return;
    const { server } = world;
    const { client, accessToken } = await signIn(server, "tier1@example.com");
    const logout = PROBES.find(({ name }) => name === "POST /auth/logout")!;
    tokens.set("the session that logs out", accessToken);
    for (const name of ["a personal access token of tier 1", "an OAuth token of tier 2"]) {
      expect((await ask(server, name, [logout])).get(logout)!.code).toBe(40300);
    }
    const unseen = another(server.dataDir, accessToken);
    expect((await ask(server, "the session that logs out", [logout])).get(logout)!.code).toBe(0);
    for (const answer of (await ask(server, "the session that logs out", PROBES)).entries()) {
      if (answer[0].route.access === "user") expect(shown(answer[1])).toEqual(INVALID);
    }
    const headers = { Authorization: `Bearer ${unseen}` };
    expect(shown(await client.request("GET", "/me", { headers }))).toEqual(INVALID);
    const others = { Authorization: headerOf("a session of tier 1")! };
    expect((await client.request("GET", "/me", { headers: others })).code).toBe(0);
    client.close();
  });

  test("a request by a token that was not seen before is read whole", async () => {
    const { server } = world;
    const client = new Client(server, null);
    const fresh = (): Record<string, string> => ({
      Authorization: headerOf("a session of tier 2 by tokens not seen before")!,
    });
    const order = terms(market, 0, BUY, 100, 1);
    const placed = await client.request<OrderJson>("POST", "/orders", { headers: fresh(), body: order });
    const uri = `https://client.example/${"x".repeat(1_900)}`;
    const wish = { name: "A third party", redirect_uris: Array(10).fill(uri), confidential: false };
    const large = await client.request("POST", "/me/oauth-clients", { headers: fresh(), body: wish });
    const listed = await client.request("GET", "/orders?client_order_id=none&status=all", { headers: fresh() });
    const first = { status: placed.status, price: placed.data?.price };
    expect([first, large.status, listed.data]).toEqual([
      { status: 202, price: 100 },
      201,
      { items: [], next_cursor: null },
    ]);
    await client.request("DELETE", "/orders", { headers: fresh() });
    client.close();
  });

  test("and so is one that comes in pieces", async () => {
    const text = JSON.stringify(terms(market, 0, BUY, 100, 1));
    const socket = connect(world.server.port, "127.0.0.1");
    const answer = once(socket, "data") as Promise<[Buffer]>;
    socket.setNoDelay(true);
    const head = [
      `POST ${API_BASE}/orders HTTP/1.1`,
      "Host: x",
      `Authorization: ${headerOf("a session of tier 2 by tokens not seen before")}`,
      `Content-Length: ${text.length}`,
    ];
    for (const piece of [`${head.join("\r\n")}\r\n\r\n${text.slice(0, 20)}`, text.slice(20, 40), text.slice(40)]) {
      await new Promise<void>((resolve) => socket.write(piece, () => setImmediate(resolve)));
    }
    expect((await answer)[0].toString()).toMatch(/^HTTP\/1\.1 202 .*"status":"queued"/s);
    socket.destroy();
    const client = new Client(world.server, headerOf("a session of tier 2")!.slice("Bearer ".length));
    await client.data("DELETE", "/orders");
    client.close();
  });

  test("who is suspended can't sign in, and nobody learns it without the password", async () => {
    const { server } = world;
    const right = await login(server, "suspended@example.com");
    expect(shown(right as Answer)).toEqual(SUSPENDED);
    const wrong = await login(server, "suspended@example.com", "not the password");
    expect([wrong.status, wrong.code]).toEqual([401, 40100]);
    const client = new Client(server, null);
    const body = { refresh_token: people.suspended.refreshToken };
    expect(shown(await client.request("POST", "/auth/refresh", { body }))).toEqual(SUSPENDED);
    client.close();
  });
});
