/**
 * The OAuth 2.0 authorization server for third-party clients: code flow with PKCE S256, refresh with rotation,
 * revocation (RFC 7009), introspection (RFC 7662), metadata (RFC 8414), practice of RFC 9700. The protocol is
 * @node-oauth/oauth2-server's; this file keeps what it knows (clients, grants, codes) and gives it our sessions.
 *
 * A user has at most one grant per client; each authorization code opens a session of it. Codes live in memory: a
 * restart spends them.
 */
import { randomBytes } from "node:crypto";
import OAuth2Server from "@node-oauth/oauth2-server";
import {
  AUTHORIZATION_CODE_MS,
  MAX_AUTHORIZATION_CODES,
  MAX_CLIENTS_PER_USER,
  MAX_GRANTS_PER_USER,
  MAX_REDIRECT_BYTES,
} from "../../engine/limits.ts";
import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import type { AccountWriter } from "../accounts/account-writer.ts";
import { type Accounts, hashToken, isHashOf, Session } from "../accounts/accounts.ts";
import { actorOf, audit, type RequestContext } from "../accounts/audit.ts";
import type { Authenticator } from "../accounts/authenticator.ts";
import { clientRemoval } from "../accounts/oauth-client-removal.ts";
import type { Refresh, Sessions, Tokens } from "../accounts/sessions.ts";
import { claimsOf } from "../accounts/signing-keys.ts";
import { type Credential, type Grant, type OAuthClient, type Principal, SCOPES, type User } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind, notFound, refusedAs } from "../errors.ts";
import { evictOldest } from "../util/bounded-map.ts";
import { InFlightCounter } from "../util/in-flight-counter.ts";

const CODE_BYTES = 32;
const CLIENT_ID_BYTES = 12;
const SECRET_BYTES = 32;
const SECRET_PREFIX = "pm_sec_";
const S256 = /^[A-Za-z0-9_-]{43}$/;

/** Form or query parameters; those that come twice are refused before. */
export type Params = Readonly<Record<string, string>>;

/** What goes back over HTTP: a body of the standard's shape. */
export interface OAuthAnswer {
  readonly status: number;
  readonly body: object | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** A code that was given out; a used one is remembered for what its second use means. */
interface Code {
  readonly client: OAuthClient;
  readonly user: User;
  readonly grant: Grant;
  readonly scopes: readonly string[];
  readonly redirectUri: string;
  readonly challenge: string;
  readonly expiresAt: number;
  /** The session that approved: a code doesn't outlive it. */
  readonly approvedBy: Credential;
  uses: number;
  /** What it opened. */
  session: Session | null;
}

export interface OAuthOptions {
  readonly accounts: Accounts;
  readonly authenticator: Authenticator;
  readonly sessions: Sessions;
  readonly writer: AccountWriter;
  readonly accessTtlMs: number;
  readonly refreshTtlMs: number;
  readonly issuer: () => string;
}

type LibraryClient = OAuth2Server.Client & { readonly own: OAuthClient };

const { InvalidClientError, InvalidRequestError, InvalidScopeError, InvalidGrantError, ServerError } = OAuth2Server;

export class OAuth {
  private readonly options: OAuthOptions;
  /** By SHA-256 of the code, oldest first. */
  private readonly codes = new Map<string, Code>();
  /** Grants on their way to the database, by user and client: one each. */
  private readonly coming = new Map<string, Promise<Grant>>();
  private readonly comingGrants = new InFlightCounter();
  private readonly comingClients = new InFlightCounter();

  constructor(options: OAuthOptions) {
    this.options = options;
  }

  // ---------------------------------------------------------------- authorization endpoint

  /**
   * Looks at an authorization request. Answers where to send the browser: back to the client with an error, or (null)
   * on to the consent page.
   * @throws ApiError 40000 where the client or its redirect URI is wrong: then nobody is sent anywhere
   */
  async inspect(params: Params, context: RequestContext): Promise<string | null> {
    return this.authorize(params, null, null, context);
  }

  /** The user's decision: answers the client's address with a code, or with an error. @throws ApiError 40000, 40900 */
  async decide(params: Params, principal: Principal, isApproved: boolean, context: RequestContext): Promise<string> {
    const location = await this.authorize(params, principal, isApproved, context);
    return location!;
  }

  private async authorize(
    params: Params,
    principal: Principal | null,
    isApproved: boolean | null,
    context: RequestContext,
  ): Promise<string | null> {
    // The library would take the first registered one.
    if ((params["redirect_uri"] ?? "") === "") throw badRequest("redirect_uri: required");
    const known = Object.entries(params).filter(([name]) => AUTHORIZATION_PARAMS.includes(name));
    const body = { ...Object.fromEntries(known), ...(isApproved === null ? {} : { allowed: String(isApproved) }) };
    const request = new OAuth2Server.Request({ headers: {}, method: "GET", query: {}, body });
    const response = new OAuth2Server.Response({});
    const model = {
      getClient: async (id: string) => this.libraryClient(id),
      validateScope: async (_user: object, _client: object, scopes?: string[]) => knownScopes(scopes),
      saveAuthorizationCode: async (code: OAuth2Server.AuthorizationCode, client: OAuth2Server.Client) => {
        const { codeChallenge = "" } = code;
        // The library takes no method for S256; RFC 7636 takes it for plain.
        if (params["code_challenge_method"] !== "S256" || !S256.test(codeChallenge)) {
          throw new InvalidRequestError("code_challenge with code_challenge_method S256 is required");
        }
        if (principal === null) return { ...code, client, user: {} };
        const { own } = client as LibraryClient;
        const authorizationCode = await this.giveCode(principal, own, code, codeChallenge, context);
        return { ...code, authorizationCode, client, user: {} };
      },
    };
    const server = new OAuth2Server({ model: model as unknown as OAuth2Server.AuthorizationCodeModel });
    const options = {
      authenticateHandler: { handle: () => ({}) },
      allowEmptyState: true,
      authorizationCodeLifetime: AUTHORIZATION_CODE_MS / 1_000,
    };
    try {
      await server.authorize(request, response, options);
    } catch (error) {
      if (error instanceof ServerError) throw innermost(error);
      // Without a place to go to, client or redirect URI are what is wrong.
      if (response.get("location") === undefined) throw badRequest((error as Error).message);
      const { name, message } = error as OAuth2Server.OAuthError;
      const { redirect_uri = "", state } = params;
      return this.answerTo(redirect_uri, { error: name, error_description: message, ...(state ? { state } : {}) });
    }
    return principal === null ? null : this.answerTo(response.get("location") as string, {});
  }

  /** An answer to the client, in which it sees who gives it (RFC 9207). */
  private answerTo(location: string, answer: Params): string {
    const url = new URL(location);
    for (const [name, value] of Object.entries(answer)) url.searchParams.set(name, value);
    url.searchParams.set("iss", this.options.issuer());
    return url.href;
  }

  private async giveCode(
    principal: Principal,
    client: OAuthClient,
    code: OAuth2Server.AuthorizationCode,
    challenge: string,
    context: RequestContext,
  ): Promise<string> {
    const scopes = code.scope!;
    const grant = await this.grantFor(principal, client, scopes, context);
    const text = randomBytes(CODE_BYTES).toString("base64url");
    evictOldest(this.codes, MAX_AUTHORIZATION_CODES);
    this.codes.set(hashToken(text), {
      client,
      user: principal.credential.user,
      grant,
      scopes,
      redirectUri: code.redirectUri,
      challenge,
      expiresAt: context.now + AUTHORIZATION_CODE_MS,
      approvedBy: principal.credential,
      uses: 0,
      session: null,
    });
    return text;
  }

  /** The user's grant to the client, with these scopes too. @throws ApiError 40900 where the user gave too many */
  private async grantFor(
    principal: Principal,
    client: OAuthClient,
    scopes: readonly string[],
    context: RequestContext,
  ): Promise<Grant> {
    const { accounts, writer } = this.options;
    const { userId } = principal;
    const key = `${userId} ${client.row.id}`;
    const found = accounts.grantOf(userId, client) ?? (await this.coming.get(key));
    if (found === undefined) {
      const making = this.makeGrant(principal, client, scopes, context);
      this.coming.set(key, making);
      return making.finally(() => this.coming.delete(key));
    }
    const had = found.row.scopes.split(" ");
    const all = SCOPES.filter((scope) => had.includes(scope) || scopes.includes(scope));
    if (all.length === had.length) return found;
    found.row.scopes = all.join(" ");
    const { id } = found.row;
    const change = { action: "grant.extend", userId, subject: id, details: { scopes: all } };
    const write: AccountWrite = { kind: "update", table: "oauth_grants", id, set: { scopes: found.row.scopes } };
    await writer.write([write], [audit(context, actorOf(principal), change)]);
    return found;
  }

  private async makeGrant(
    principal: Principal,
    client: OAuthClient,
    scopes: readonly string[],
    context: RequestContext,
  ): Promise<Grant> {
    const { accounts, writer } = this.options;
    const { userId } = principal;
    if (accounts.grants.countOf(userId) + this.comingGrants.of(userId) >= MAX_GRANTS_PER_USER) {
      throw new ApiError(ErrorKind.conflict, `at most ${MAX_GRANTS_PER_USER} grants: revoke one first`);
    }
    const made = { userId, clientId: client.row.id, scopes: scopes.join(" "), createdAt: context.now };
    const change = { action: "grant.create", userId, details: { client: client.row.clientId, scopes: made.scopes } };
    const write: AccountWrite = { kind: "insert", table: "oauth_grants", row: made };
    const id = await this.comingGrants.during(userId, () => {
      return writer.insert(write, [audit(context, actorOf(principal), change)]);
    });
    const grant = accounts.addGrant({ ...made, id, lastUsedAt: null });
    if (grant === null) throw new ApiError(ErrorKind.conflict, "the client was removed");
    // All access may have been taken away while it was written.
    if (principal.credential.isEnded) {
      await this.endGrant(grant, actorOf(principal), context);
      throw new ApiError(ErrorKind.unauthenticated, "the session has ended");
    }
    return grant;
  }

  // ---------------------------------------------------------------- token endpoint

  /** @param authorization the request's Authorization header, or "" */
  async token(params: Params, authorization: string, context: RequestContext): Promise<OAuthAnswer> {
    // Whoever asks: the library would first have those authenticate that can't, and names grants of its own.
    const grantType = params["grant_type"] ?? "";
    if (grantType !== "" && !GRANT_TYPES.includes(grantType)) {
      return { status: 400, body: { error: "unsupported_grant_type" }, headers: NO_STORE };
    }
    const known = withClient(params, authorization);
    if ("status" in known) return known;
    const request = new OAuth2Server.Request({ headers: FORM, method: "POST", query: {}, body: known.params });
    const response = new OAuth2Server.Response({});
    const { accessTtlMs, refreshTtlMs } = this.options;
    const server = new OAuth2Server({ model: this.tokenModel(params, context) });
    const options = {
      accessTokenLifetime: accessTtlMs / 1_000,
      refreshTokenLifetime: refreshTtlMs / 1_000,
      // Public clients show no secret; the model sees to it that the others do.
      requireClientAuthentication: { authorization_code: false, refresh_token: false },
    };
    try {
      await server.token(request, response, options);
    } catch (error) {
      if (error instanceof ServerError) throw innermost(error);
      if (error instanceof InvalidClientError) return invalidClient(authorization);
      return { status: (error as OAuth2Server.OAuthError).code, body: response.body as object, headers: NO_STORE };
    }
    // The library would leave out a lifetime of which less than a second is left.
    const body = { ...(response.body as object), expires_in: accessTtlMs / 1_000 };
    return { status: 200, body, headers: NO_STORE };
  }

  /** What the library asks of us during one token request. */
  private tokenModel(
    params: Params,
    context: RequestContext,
  ): OAuth2Server.AuthorizationCodeModel & OAuth2Server.RefreshTokenModel {
    const { sessions } = this.options;
    let code: Code | null = null;
    let refresh: Refresh | null = null;
    const model = {
      getClient: async (id: string, secret: string | undefined) => {
        const client = this.authenticated(id, secret);
        return client === null ? null : libraryClientOf(client);
      },
      getAuthorizationCode: async (text: string) => {
        code = await this.findCode(text, context);
        if (code === null) return null;
        const { client, user, scopes, challenge, expiresAt } = code;
        return {
          authorizationCode: text,
          expiresAt: new Date(expiresAt),
          scope: scopes,
          codeChallenge: challenge,
          codeChallengeMethod: "S256",
          client: libraryClientOf(client),
          user,
        };
      },
      // Of two requests with one code only the first comes here with a first use.
      revokeAuthorizationCode: async () => ++code!.uses === 1,
      getRefreshToken: async (text: string) => {
        refresh = await sessions.find(text, true, context).catch(refusedAs(null));
        if (refresh === null) return null;
        const { row, user, grant } = refresh.session;
        const expires = { refreshToken: text, refreshTokenExpiresAt: new Date(row.expiresAt) };
        return { ...expires, scope: row.scopes.split(" "), client: libraryClientOf(grant!.client), user };
      },
      // It is spent when its successor is made.
      revokeToken: async () => true,
      validateScope: async (_user: object, _client: object, scope: string[]) => scope,
      generateAccessToken: async () => MADE_LATER,
      generateRefreshToken: async () => MADE_LATER,
      saveToken: async (token: OAuth2Server.Token, client: OAuth2Server.Client, user: OAuth2Server.User) => {
        // The library would call it an invalid request.
        if (code !== null && params["redirect_uri"] !== code.redirectUri) {
          throw new InvalidGrantError("Invalid grant: `redirect_uri` is another than the code was asked for with");
        }
        const made = code === null ? sessions.rotate(refresh!, context, token.scope!) : this.redeem(code, context);
        const tokens = await made.catch(refusedAs(null));
        if (tokens === null) throw new InvalidGrantError("Invalid grant: it is over");
        const { accessToken, refreshToken } = tokens;
        const scope = [...tokens.scopes];
        return { accessToken, refreshToken, scope, client, user };
      },
    };
    return model as unknown as OAuth2Server.AuthorizationCodeModel & OAuth2Server.RefreshTokenModel;
  }

  /** The code, unless it is wrong or was used: then what it opened ends. RFC 9700, section 4.5. */
  private async findCode(text: string, context: RequestContext): Promise<Code | null> {
    const code = this.codes.get(hashToken(text));
    if (code === undefined || this.options.accounts.grants.get(code.grant.row.id) !== code.grant) return null;
    if (code.uses === 0) return code.approvedBy.isEnded ? null : code;
    code.uses++;
    if (code.session !== null) await this.endReused(code.session, code, context);
    return null;
  }

  private async redeem(code: Code, context: RequestContext): Promise<Tokens> {
    if (code.approvedBy.isEnded) throw new ApiError(ErrorKind.unauthenticated, "the session has ended");
    if (code.user.suspendedAt !== null) throw new ApiError(ErrorKind.forbidden, "the account is suspended");
    const tokens = await this.options.sessions.openForGrant(code.grant, code.user, code.scopes, context);
    code.session = tokens.session;
    // A second use came while this was made.
    if (code.uses > 1) {
      await this.endReused(tokens.session, code, context);
      throw new ApiError(ErrorKind.unauthenticated, "the code was used twice");
    }
    return tokens;
  }

  private endReused(session: Session, code: Code, context: RequestContext): Promise<void> {
    const actor = `oauth client ${code.client.row.id}`;
    return this.options.sessions.end([session], "authorization_code_reused", actor, context);
  }

  /** Forgets codes that nobody can mean any more. */
  forgetExpired(now: number): void {
    for (const [hash, { expiresAt }] of this.codes) {
      if (expiresAt > now - CODE_MEMORY_MS) return;
      this.codes.delete(hash);
    }
  }

  // ---------------------------------------------------------------- revocation and introspection

  /** RFC 7009: ends the session that the token is of. A token that is none, or another client's, changes nothing. */
  async revoke(params: Params, authorization: string, context: RequestContext): Promise<OAuthAnswer> {
    const known = withClient(params, authorization);
    if ("status" in known) return known;
    const client = this.authenticatedBy(known.params);
    if (client === null) return invalidClient(authorization);
    const token = params["token"] ?? "";
    if (token === "") return { status: 400, body: { error: "invalid_request" }, headers: NO_STORE };
    const session = await this.sessionOf(token, client, context.now);
    if (session !== null) {
      await this.options.sessions.end([session], "revoked", `oauth client ${client.row.id}`, context);
    }
    return { status: 200, body: {}, headers: NO_STORE };
  }

  /** RFC 7662, for confidential clients and their own tokens. */
  async introspect(params: Params, authorization: string, now: number): Promise<OAuthAnswer> {
    const known = withClient(params, authorization);
    if ("status" in known) return known;
    const client = this.authenticatedBy(known.params);
    if (client === null || client.row.secretHash === null) return invalidClient(authorization);
    const token = params["token"] ?? "";
    if (token === "") return { status: 400, body: { error: "invalid_request" }, headers: NO_STORE };
    const session = await this.sessionOf(token, client, now);
    if (session === null || session.user.suspendedAt !== null) {
      return { status: 200, body: { active: false }, headers: NO_STORE };
    }
    const isRefresh = this.options.sessions.peek(token, now) !== null;
    const claims = isRefresh ? { exp: Math.floor(session.row.expiresAt / 1_000) } : claimsOf(token);
    const body = {
      active: true,
      scope: session.row.scopes,
      client_id: client.row.clientId,
      sub: String(session.user.id),
      ...claims,
      ...(isRefresh ? {} : { token_type: "Bearer" }),
    };
    return { status: 200, body, headers: NO_STORE };
  }

  /** The live session of this client that an access or refresh token is of. */
  private async sessionOf(token: string, client: OAuthClient, now: number): Promise<Session | null> {
    const { sessions, authenticator } = this.options;
    const session = sessions.peek(token, now) ?? (await authenticator.verify(token, now).catch(refusedAs(null)));
    const found = session === null || session instanceof Session ? session : session.credential;
    if (found === null || found.isEnded || found.kind !== "oauth") return null;
    return (found as Session).grant?.client === client ? (found as Session) : null;
  }

  // ---------------------------------------------------------------- clients and grants

  /** The secret is null for a public client. @throws ApiError 40000, 40900 where the user has as many as may be */
  async createClient(
    principal: Principal,
    wish: { name: string; redirectUris: readonly string[]; isConfidential: boolean },
    context: RequestContext,
  ): Promise<{ client: OAuthClient; secret: string | null }> {
    const { accounts, writer } = this.options;
    const { userId } = principal;
    for (const uri of wish.redirectUris) checkRedirectUri(uri);
    const redirectUris = [...new Set(wish.redirectUris)].join("\n");
    if (Buffer.byteLength(redirectUris) > MAX_REDIRECT_BYTES) {
      throw badRequest(`redirect_uris: at most ${MAX_REDIRECT_BYTES} bytes together`);
    }
    if (accounts.clients.countOf(userId) + this.comingClients.of(userId) >= MAX_CLIENTS_PER_USER) {
      throw new ApiError(ErrorKind.conflict, `at most ${MAX_CLIENTS_PER_USER} clients: remove one first`);
    }
    const secret = wish.isConfidential ? SECRET_PREFIX + randomBytes(SECRET_BYTES).toString("base64url") : null;
    const made = {
      userId,
      clientId: randomBytes(CLIENT_ID_BYTES).toString("hex"),
      name: wish.name,
      redirectUris,
      secretHash: secret === null ? null : hashToken(secret),
      createdAt: context.now,
    };
    const change = { action: "client.create", userId, details: { client: made.clientId, name: made.name } };
    const write: AccountWrite = { kind: "insert", table: "oauth_clients", row: made };
    const id = await this.comingClients.during(userId, () => {
      return writer.insert(write, [audit(context, actorOf(principal), change)]);
    });
    const client = accounts.addClient({ ...made, id });
    if (principal.credential.isEnded) {
      await this.removeClient(principal, id, context);
      throw new ApiError(ErrorKind.unauthenticated, "the session has ended");
    }
    return { client, secret };
  }

  /** Ends every grant to the client too. @throws ApiError 4040 unless it is one of the caller's */
  async removeClient(principal: Principal, id: number, context: RequestContext): Promise<void> {
    const { accounts, writer } = this.options;
    const client = accounts.clients.get(id);
    if (client === undefined || client.row.userId !== principal.userId) throw notFound("client");
    accounts.removeClient(client);
    const grants = [...accounts.grants.values()].filter((grant) => grant.client === client);
    const ended = grants.map((grant) => this.endGrant(grant, actorOf(principal), context));
    const change = { action: "client.remove", userId: principal.userId, subject: id };
    const write = clientRemoval(id, context.now);
    await Promise.all([...ended, writer.write([write], [audit(context, actorOf(principal), change)])]);
  }

  /** @throws ApiError 4040 unless it is one of the caller's */
  async revokeGrant(principal: Principal, id: number, context: RequestContext): Promise<void> {
    const grant = this.options.accounts.grants.get(id);
    if (grant === undefined || grant.row.userId !== principal.userId) throw notFound("grant");
    await this.endGrant(grant, actorOf(principal), context);
  }

  private async endGrant(grant: Grant, actor: string, context: RequestContext): Promise<void> {
    const { accounts, writer, sessions } = this.options;
    const { id, userId } = grant.row;
    const ended = sessions.end(accounts.sessionsOfGrant(grant), "grant_revoked", actor, context);
    accounts.removeGrant(grant);
    const change = { action: "grant.revoke", userId, subject: id };
    const write: AccountWrite = { kind: "update", table: "oauth_grants", id, set: { revokedAt: context.now } };
    await Promise.all([ended, writer.write([write], [audit(context, actor, change)])]);
  }

  // ---------------------------------------------------------------- who asks

  private libraryClient(id: string): LibraryClient | null {
    const client = this.options.accounts.clientByName(id);
    return client === undefined ? null : libraryClientOf(client);
  }

  /** The client, where it shows its secret, or has none and shows none. */
  private authenticated(id: string, secret: string | undefined): OAuthClient | null {
    const client = this.options.accounts.clientByName(id);
    if (client === undefined) return null;
    const { secretHash } = client.row;
    if (secretHash === null) return secret === undefined || secret === "" ? client : null;
    return isHashOf(secretHash, secret ?? "") ? client : null;
  }

  private authenticatedBy(params: Params): OAuthClient | null {
    return this.authenticated(params["client_id"] ?? "", params["client_secret"]);
  }
}

/** How long after its end a code is remembered, for what another use of it means. */
const CODE_MEMORY_MS = 600_000;
const MADE_LATER = "-";
const FORM = { "content-type": "application/x-www-form-urlencoded", "content-length": "1" };
/** What of a request the library reads. */
const AUTHORIZATION_PARAMS = [
  "client_id",
  "redirect_uri",
  "response_type",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
];
const GRANT_TYPES: readonly string[] = ["authorization_code", "refresh_token"];
/** RFC 6749, section 5.1, beside what every answer says. */
const NO_STORE = { Pragma: "no-cache" };

function libraryClientOf(client: OAuthClient): LibraryClient {
  const redirectUris = [...client.redirectUris];
  return { id: client.row.clientId, redirectUris, grants: [...GRANT_TYPES], own: client };
}

/** @throws InvalidScopeError */
function knownScopes(scopes: readonly string[] | undefined): string[] {
  const asked = new Set(scopes ?? []);
  if (asked.size === 0) throw new InvalidScopeError(`scope: required, of ${SCOPES.join(", ")}`);
  const known = SCOPES.filter((scope) => asked.has(scope));
  if (known.length < asked.size) throw new InvalidScopeError(`scope: must be of ${SCOPES.join(", ")}`);
  return known;
}

/** What the library wrapped. */
function innermost(error: unknown): unknown {
  const { inner } = error as { inner?: unknown };
  return inner === undefined ? error : innermost(inner);
}

/**
 * Puts a client's credentials of the Authorization header into the form, decoded as RFC 6749, section 2.3.1, has them
 * encoded. Answers an error where they come in two places.
 */
function withClient(params: Params, authorization: string): { readonly params: Params } | OAuthAnswer {
  if (authorization === "") return { params };
  const [, encoded] = /^basic ([A-Za-z0-9+/=_-]+)$/i.exec(authorization) ?? [];
  if (encoded === undefined) return invalidClient(authorization);
  const [id = "", ...secret] = Buffer.from(encoded, "base64").toString().split(":").map(formDecoded);
  if ("client_secret" in params || (params["client_id"] ?? id) !== id) {
    const description = "Invalid request: credentials in the header and in the form";
    return { status: 400, body: { error: "invalid_request", error_description: description }, headers: NO_STORE };
  }
  return { params: { ...params, client_id: id, client_secret: secret.join(":") } };
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** RFC 6749, section 5.2. */
function invalidClient(authorization: string): OAuthAnswer {
  const error = new InvalidClientError("Invalid client: client is invalid");
  const body = { error: error.name, error_description: error.message };
  const headers = authorization === "" ? NO_STORE : { ...NO_STORE, "WWW-Authenticate": 'Basic realm="oauth"' };
  return { status: 401, body, headers };
}

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** HTTPS, HTTP on the user's own machine, or an app's own scheme (RFC 8252). @throws ApiError 40000 */
function checkRedirectUri(uri: string): void {
  const url = URL.canParse(uri) ? new URL(uri) : null;
  const isOwnScheme = url !== null && /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(url.protocol);
  const isWeb = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.includes(url.hostname));
  if (
    url === null ||
    !(isWeb || isOwnScheme) ||
    /[\p{Cc}\s#*\\]/u.test(uri) ||
    url.username !== "" ||
    url.password !== ""
  ) {
    throw badRequest("redirect_uris: each an https URL, http on localhost, or an app's own scheme; without # or *");
  }
}
