/**
 * Every kind of caller and a harmless request to every route: who may pass, and what the others get. The file's tests
 * make the tokens.
 */
import type { Scope, TokenKind } from "../../server/accounts/types.ts";
import type { Route } from "../../server/http/route.ts";
import { type Answer, API_BASE, Client, ROUTES } from "../support/client.ts";
import type { TestServer } from "../support/server.ts";
import { FORM } from "../support/third-party.ts";
import { ALL_SCOPES } from "../support/world.ts";

export const SCOPES = ALL_SCOPES as readonly Scope[];
export const UNKNOWN_ID = 999_999_999;

export const nameOf = ({ method, path, unversioned }: Route): string => `${method} ${unversioned ? "*" : ""}${path}`;

// ---------------------------------------------------------------- callers

/** The server's response to a token on every route that requires one. */
export interface Rejection {
  readonly status: number;
  readonly code: number;
  readonly msg: string;
}

export const MISSING: Rejection = { status: 401, code: 40100, msg: "a bearer token is required" };
export const OTHER_SCHEME: Rejection = {
  status: 401,
  code: 40100,
  msg: "the Authorization header is not a bearer token",
};
export const INVALID: Rejection = { status: 401, code: 40100, msg: "the token is not valid" };
const EXPIRED: Rejection = { status: 401, code: 2002, msg: "the token has expired" };
export const SUSPENDED: Rejection = { status: 403, code: 40300, msg: "the account is suspended" };
const ELSEWHERE: Rejection = { status: 403, code: 40300, msg: "the token cannot be used from this address" };

export interface Holder {
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
export const tokens = new Map<string, string | (() => string)>();

/** The name of each token, and its holder or the rejection that it receives. */
export const CALLERS: readonly (readonly [name: string, what: Rejection | Holder])[] = [
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
export function headerOf(name: string): string | null {
  if (name === "no token") return null;
  const token = tokens.get(name);
  if (token === undefined) throw new Error(`nobody made ${name}`);
  const text = typeof token === "string" ? token : token();
  if (name === "another scheme") return `Token ${text}`;
  return name === "the scheme alone" ? "Bearer" : `Bearer ${text}`;
}

// ---------------------------------------------------------------- requests

/** A request to a route that changes nothing for any caller. */
export interface Probe {
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
  "POST /me/second-factors/recovery-codes": 40900, // no second factor
  "GET /auth/social/:provider/callback": 40100, // no pending sign-in
};

/** With access granted, these would end tokens of other tests. */
export const ENDS_SESSIONS: readonly string[] = ["POST /auth/logout", "DELETE /me/sessions"];

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

export const PROBES = ROUTES.map(probeOf);

/** Sends the request to each route in sequence. */
export async function ask(server: TestServer, name: string, probes: readonly Probe[]): Promise<Map<Probe, Answer>> {
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
export function rejectionOf(
  { access, tokens, scope, orScope, minTier }: Route,
  what: Rejection | Holder,
): Rejection | null {
  if ("code" in what) return what;
  const forbidden = (msg: string): Rejection => ({ status: 403, code: 40300, msg });
  if (!tokens.includes(what.kind)) return forbidden("this kind of token cannot be used here");
  if (access === "operator" && what.isOperator !== true) return forbidden("for operators only");
  const wanted = [scope, orScope].filter((each) => each !== null);
  if (wanted.length > 0 && !wanted.some((each) => what.scopes.includes(each))) {
    return forbidden(`the token lacks the scope ${wanted.join(" or ")}`);
  }
  if (what.tier < minTier) return forbidden(`requires KYC tier ${minTier}, the account has ${what.tier}`);
  return null;
}

export const shown = ({ status, code, msg }: Answer): Rejection => ({ status, code, msg });
