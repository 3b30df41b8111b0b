/**
 * Sessions: a sign-in or an authorization code opens one, and a rotating refresh token extends it. An access token is a
 * signed JWT that names its session; when the session ends, its tokens end at once.
 *
 * A refresh token consists of a family, constant over the session's life, and a secret for one use. A request with the
 * family and an old secret means that the token leaked, so the session ends (RFC 9700, section 4.14). Only a token that
 * comes in a browser's cookie has a grace period of seconds after its rotation (refresh-grace.ts).
 */
import { randomBytes } from "node:crypto";
import type { SessionRow } from "../../engine/log/rows.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { amrOf } from "../accounts/amr.ts";
import { actorOf, audit, type RequestContext } from "../accounts/audit.ts";
import type { Session } from "../accounts/credentials.ts";
import { MAX_SESSIONS_PER_GRANT, MAX_SESSIONS_PER_USER } from "../accounts/limits.ts";
import { RefreshGrace } from "../accounts/refresh-grace.ts";
import { hashToken, isHashOf } from "../accounts/token-hash.ts";
import type { Grant, Principal, ProofMethod, User } from "../accounts/types.ts";
import { SCOPES } from "../accounts/types.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedAudit, RequestedWrite } from "../writes/types.ts";
import type { Authenticator } from "./authenticator.ts";
import type { SigningKeys } from "./signing-keys.ts";

export interface Tokens {
  readonly session: Session;
  /** Those of the access token. */
  readonly scopes: readonly string[];
  readonly accessToken: string;
  readonly refreshToken: string;
}

const REFRESH_PREFIX = "pm_ref_";
const FAMILY_BYTES = 18;
const SECRET_BYTES = 32;
const REFRESH_TOKEN = new RegExp(`^${REFRESH_PREFIX}([A-Za-z0-9_-]{24})([A-Za-z0-9_-]{43})$`);
const MAX_USER_AGENT_LENGTH = 200;

export interface SessionOptions {
  readonly accounts: Accounts;
  readonly authenticator: Authenticator;
  readonly keys: SigningKeys;
  readonly writer: LogWriter;
  readonly accessTtlMs: number;
  readonly refreshTtlMs: number;
}

/** A refresh token whose session is live; its secret may be an old one. */
export interface RefreshToken {
  readonly session: Session;
  readonly secret: string;
}

/** A session that begins. */
interface SessionOpening {
  readonly user: User;
  /** Null: the user's own. */
  readonly grant: Grant | null;
  /** Such as "password". */
  readonly method: string;
  readonly scopes: readonly string[];
  /** In the audit log. */
  readonly actor: string;
  /** The second factor. */
  readonly by: ProofMethod | null;
}

export class Sessions {
  private readonly options: SessionOptions;
  private readonly grace = new RefreshGrace();

  constructor(options: SessionOptions) {
    this.options = options;
  }

  /** Opens the session of a sign-in, whose tokens have all scopes. @param method such as "password" @param by second factor */
  open(user: User, method: string, context: RequestContext, by: ProofMethod | null = null): Promise<Tokens> {
    const opening = { user, grant: null, method, scopes: [...SCOPES], actor: `user ${user.id}`, by };
    return this.start(opening, context);
  }

  /** Opens the session of a third party's authorization code. */
  openForGrant(grant: Grant, user: User, scopes: readonly string[], context: RequestContext): Promise<Tokens> {
    const actor = `oauth client ${grant.client.row.id}`;
    return this.start({ user, grant, method: "authorization_code", scopes, actor, by: null }, context);
  }

  private async start(opening: SessionOpening, context: RequestContext): Promise<Tokens> {
    const { user, grant, method, scopes, actor, by } = opening;
    const { accounts, writer, refreshTtlMs } = this.options;
    const existing = accounts.sessions.of(user.id).filter((each) => each.grant === grant);
    const most = grant === null ? MAX_SESSIONS_PER_USER : MAX_SESSIONS_PER_GRANT;
    const excess = existing.length >= most ? existing.slice(0, 1) : [];
    const made = this.end(excess, "too_many_sessions", actor, context);
    const { address, userAgent } = context;
    // Verifying a password takes time: the session begins now, not when the request arrived.
    const now = writer.time();
    const family = randomBytes(FAMILY_BYTES).toString("base64url");
    const secret = randomBytes(SECRET_BYTES).toString("base64url");
    const row: SessionRow = {
      id: accounts.nextSessionId(),
      userId: user.id,
      grantId: grant?.row.id ?? null,
      method,
      scopes: scopes.join(" "),
      family,
      refreshHash: hashToken(secret),
      userAgent: userAgent === "" ? null : userAgent.slice(0, MAX_USER_AGENT_LENGTH),
      address: address === "" ? null : address,
      amr: grant === null ? amrOf(method, by) : null,
      createdAt: now,
      lastUsedAt: now,
      expiresAt: now + refreshTtlMs,
    };
    const write: RequestedWrite = { kind: "insert", table: "sessions", row };
    // In memory before it is durable, so that whatever ends all of the user's sessions during the write ends this one too.
    const session = accounts.addSession(row);
    if (session === null) throw new ApiError(ErrorKind.unauthenticated, "the grant was revoked");
    const change = {
      action: "session.start",
      userId: user.id,
      subject: row.id,
      details: { method, scopes: row.scopes, ...(by === null ? {} : { second_factor: by }) },
    };
    await Promise.all([made, writer.insert(write, [audit(context, actor, change)]), this.noteUse(grant, now)]);
    // A third party sends requests from its own address.
    if (grant === null) accounts.knownAddresses.note(user.id, context.client, now);
    const accessToken = await this.sign(session, scopes, now);
    return { session, scopes, accessToken, refreshToken: REFRESH_PREFIX + family + secret };
  }

  private async noteUse(grant: Grant | null, now: number): Promise<void> {
    if (grant === null) return;
    grant.lastUsedAt = now;
    const write = { kind: "update", table: "oauth_grants", id: grant.row.id, set: { lastUsedAt: now } } as const;
    await this.options.writer.write([write]);
  }

  /**
   * Finds the session of a refresh token.
   * @param isOAuth true if it must be a third party's
   * @throws ApiError 40100; a token that was used before also ends its session
   */
  async find(token: string, isOAuth: boolean, context: RequestContext): Promise<RefreshToken> {
    const found = this.findFamily(token, context.now);
    if (found === null || (found.session.grant !== null) !== isOAuth) throw notValid();
    if (!isCurrent(found)) throw await this.endReused(found.session, context);
    return found;
  }

  /** The session of a current refresh token, else null. Changes nothing. */
  peek(token: string, now: number): Session | null {
    const found = this.findFamily(token, now);
    return found !== null && isCurrent(found) ? found.session : null;
  }

  private findFamily(token: string, now: number): RefreshToken | null {
    const [, family = "", secret = ""] = REFRESH_TOKEN.exec(token) ?? [];
    const session = this.options.accounts.sessionByFamily(family);
    return session === undefined || session.row.expiresAt <= now ? null : { session, secret };
  }

  /**
   * Rotates the refresh token and returns new tokens.
   * @param fewer scopes of the access token, a subset of the session's; null: all of them
   * @throws ApiError 40100 when another request rotated it first; 40300
   */
  async rotate(
    refresh: RefreshToken,
    context: RequestContext,
    fewer: readonly string[] | null = null,
  ): Promise<Tokens> {
    const { session } = refresh;
    if (session.isEnded) throw new ApiError(ErrorKind.unauthenticated, "the session has ended");
    if (!isCurrent(refresh)) throw await this.endReused(session, context);
    const { refreshToken, durable } = this.rotateSecret(session, context);
    // A client that sends the token itself has no cookie that could need the grace period.
    this.grace.forget(session);
    return this.issue(session, fewer ?? [...session.scopes], refreshToken, durable, context);
  }

  /**
   * As `rotate`, for a user's own session whose token came in a browser's cookie: the token that was rotated seconds ago,
   * and its successor, both get the successor without another rotation.
   * @throws ApiError 40100, 40300
   */
  async rotateCookie(token: string, context: RequestContext): Promise<Tokens> {
    const found = this.findFamily(token, context.now);
    if (found === null || found.session.grant !== null) throw notValid();
    const { session, secret } = found;
    const recent = this.grace.find(session, secret, context.now);
    if (recent !== null) {
      expectUnsuspended(session);
      session.lastUsedAt = context.now;
      return this.issue(session, [...session.scopes], recent.refreshToken, recent.durable, context);
    }
    if (!isCurrent(found)) throw await this.endReused(session, context);
    const spentHash = session.row.refreshHash;
    const { refreshToken, durable } = this.rotateSecret(session, context);
    this.grace.add(session, { spentHash, refreshToken, durable, at: context.now });
    return this.issue(session, [...session.scopes], refreshToken, durable, context);
  }

  /**
   * Replaces the session's refresh token: from here no other request can use the old one. The new one may leave the
   * process once it is durable.
   * @throws ApiError 40300
   */
  private rotateSecret(session: Session, { now }: RequestContext): { refreshToken: string; durable: Promise<unknown> } {
    expectUnsuspended(session);
    const { row } = session;
    const next = randomBytes(SECRET_BYTES).toString("base64url");
    row.refreshHash = hashToken(next);
    row.expiresAt = now + this.options.refreshTtlMs;
    session.lastUsedAt = now;
    const set = { refreshHash: row.refreshHash, expiresAt: row.expiresAt, lastUsedAt: now };
    const durable = this.options.writer.write([{ kind: "update", table: "sessions", id: row.id, set }]);
    return { refreshToken: REFRESH_PREFIX + row.family + next, durable };
  }

  private async issue(
    session: Session,
    scopes: readonly string[],
    refreshToken: string,
    durable: Promise<unknown>,
    { now }: RequestContext,
  ): Promise<Tokens> {
    const [accessToken] = await Promise.all([this.sign(session, scopes, now), durable]);
    return { session, scopes, accessToken, refreshToken };
  }

  /** Ends sessions, their tokens and their sockets at once; resolves when that is durable. */
  async end(sessions: readonly Session[], reason: string, actor: string, context: RequestContext): Promise<void> {
    const live = sessions.filter(({ isEnded }) => !isEnded);
    if (live.length === 0) return;
    for (const session of live) {
      this.options.accounts.endSession(session);
      this.grace.forget(session);
    }
    const writes = live.map(({ id }): RequestedWrite => {
      return { kind: "update", table: "sessions", id, set: { endedAt: context.now, endReason: reason } };
    });
    const audits = live.map(({ id, user }, write): RequestedAudit => {
      const change = { action: "session.end", userId: user.id, subject: id, details: { reason }, write };
      return audit(context, actor, change);
    });
    await this.options.writer.write(writes, audits);
  }

  /** Ends the caller's other sessions; those of third parties stay. */
  endOthers(principal: Principal, reason: string, context: RequestContext): Promise<void> {
    const own = this.options.accounts.sessions.of(principal.userId).filter(({ grant }) => grant === null);
    const others = own.filter((session) => session !== principal.credential);
    return this.end(others, reason, actorOf(principal), context);
  }

  /** The user proved a second factor in this session: from now on it counts as opened with one. */
  prove({ row }: Session, by: ProofMethod): RequestedWrite {
    row.amr = amrOf(row.method, by);
    return { kind: "update", table: "sessions", id: row.id, set: { amr: row.amr } };
  }

  /** The user has no second factor any more: no session counts as opened with one. */
  unprove({ id: userId }: User): RequestedWrite[] {
    const proven = this.options.accounts.sessions.of(userId).filter(({ hasSecondFactor }) => hasSecondFactor);
    return proven.map(({ row }) => {
      row.amr = amrOf(row.method, null);
      return { kind: "update", table: "sessions", id: row.id, set: { amr: row.amr } };
    });
  }

  /** Drops sessions whose tokens have all expired. */
  forgetExpired(now: number): void {
    const { accounts, accessTtlMs } = this.options;
    for (const session of accounts.sessions.values()) {
      if (session.row.expiresAt + accessTtlMs <= now) accounts.forgetSession(session);
    }
  }

  /** Ends the session of a reused token. @returns the error for the client */
  private async endReused(session: Session, context: RequestContext): Promise<ApiError> {
    await this.end([session], "refresh_token_reused", `user ${session.user.id}`, context);
    return new ApiError(ErrorKind.unauthenticated, "the refresh token was used before: the session has ended");
  }

  private async sign(session: Session, scopes: readonly string[], now: number): Promise<string> {
    const { keys, accessTtlMs, authenticator } = this.options;
    const iat = Math.floor(now / 1_000);
    const exp = iat + accessTtlMs / 1_000;
    const { row, grant, sid } = session;
    const claims = {
      sub: String(row.userId),
      scope: scopes.join(" "),
      iat,
      exp,
      jti: randomBytes(16).toString("base64url"),
      sid,
      ...(row.amr === null ? {} : { amr: row.amr.split(" ") }),
      ...(grant === null ? {} : { client_id: grant.client.row.clientId }),
    };
    // Third parties get the token type of RFC 9068.
    const token = await keys.sign(claims, grant === null ? "JWT" : "at+jwt");
    authenticator.issued(token, session, exp * 1_000, scopes);
    return token;
  }
}

function isCurrent({ session, secret }: RefreshToken): boolean {
  return isHashOf(session.row.refreshHash, secret);
}

const notValid = (): ApiError => new ApiError(ErrorKind.unauthenticated, "the refresh token is not valid");

function expectUnsuspended({ user }: Session): void {
  if (user.suspendedAt !== null) throw new ApiError(ErrorKind.forbidden, "the account is suspended");
}
