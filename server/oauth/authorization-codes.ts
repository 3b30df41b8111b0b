/**
 * Authorization codes: issued on consent, redeemed once for a session. Codes live in memory, so a restart invalidates
 * them. A second use is an attack, and ends the session that the first one opened: RFC 9700, section 4.5.
 */
import { randomBytes } from "node:crypto";
import type { Accounts } from "../accounts/accounts.ts";
import type { RequestContext } from "../accounts/audit.ts";
import type { Session } from "../accounts/credentials.ts";
import { hashToken } from "../accounts/token-hash.ts";
import type { Credential, Grant, OAuthClient, User } from "../accounts/types.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { Sessions, Tokens } from "../sign-in/sessions.ts";
import { BoundedMap } from "../util/bounded-map.ts";
import { AUTHORIZATION_CODE_MS, MAX_AUTHORIZATION_CODES, MAX_AUTHORIZATION_CODES_PER_USER } from "./limits.ts";

const CODE_BYTES = 32;
/** How long after its expiry a code is remembered, to detect a second use. */
const CODE_MEMORY_MS = 600_000;

/** What the user consented to, and what the client must show to redeem the code. */
export interface Consent {
  readonly client: OAuthClient;
  readonly user: User;
  readonly grant: Grant;
  readonly scopes: readonly string[];
  readonly redirectUri: string;
  /** PKCE, S256. */
  readonly challenge: string;
  /** The session that approved: a code does not outlive it. */
  readonly approvedBy: Credential;
}

export interface AuthorizationCode extends Consent {
  readonly expiresAt: number;
  uses: number;
  /** The session that the code opened. */
  session: Session | null;
}

export class AuthorizationCodes {
  private readonly accounts: Accounts;
  private readonly sessions: Sessions;
  /** By SHA-256 of the code, oldest first; used codes stay, to detect a second use. */
  private readonly codes = new BoundedMap<string, AuthorizationCode>(MAX_AUTHORIZATION_CODES);

  constructor(accounts: Accounts, sessions: Sessions) {
    this.accounts = accounts;
    this.sessions = sessions;
  }

  /** Returns the text of a new code. */
  issue(consent: Consent, now: number): string {
    this.makeRoom(consent.user);
    const text = randomBytes(CODE_BYTES).toString("base64url");
    this.codes.set(hashToken(text), { ...consent, expiresAt: now + AUTHORIZATION_CODE_MS, uses: 0, session: null });
    return text;
  }

  /** Drops the user's oldest code where there are too many: codes of others stay. */
  private makeRoom(user: User): void {
    const own = [...this.codes].filter(([, code]) => code.user === user);
    if (own.length >= MAX_AUTHORIZATION_CODES_PER_USER) this.codes.delete(own[0]![0]);
  }

  /** The code; null for a wrong one and for a used one, whose session then ends. The caller checks its expiry. */
  async find(text: string, context: RequestContext): Promise<AuthorizationCode | null> {
    const code = this.codes.get(hashToken(text));
    if (code === undefined || this.accounts.grants.get(code.grant.row.id) !== code.grant) return null;
    if (code.uses === 0) return code.approvedBy.isEnded ? null : code;
    code.uses++;
    if (code.session !== null) await this.endReused(code.session, code, context);
    return null;
  }

  /** Opens the code's session. The caller has counted the use. @throws ApiError 40100, 40300 */
  async redeem(code: AuthorizationCode, context: RequestContext): Promise<Tokens> {
    if (code.approvedBy.isEnded) throw new ApiError(ErrorKind.unauthenticated, "the session has ended");
    if (code.user.suspendedAt !== null) throw new ApiError(ErrorKind.forbidden, "the account is suspended");
    const tokens = await this.sessions.openForGrant(code.grant, code.user, code.scopes, context);
    code.session = tokens.session;
    // A second request used the code while this one opened the session.
    if (code.uses > 1) {
      await this.endReused(tokens.session, code, context);
      throw new ApiError(ErrorKind.unauthenticated, "the code was used twice");
    }
    return tokens;
  }

  private endReused(session: Session, code: AuthorizationCode, context: RequestContext): Promise<void> {
    const actor = `oauth client ${code.client.row.id}`;
    return this.sessions.end([session], "authorization_code_reused", actor, context);
  }

  /** Drops codes that expired long ago. */
  forgetExpired(now: number): void {
    for (const [hash, { expiresAt }] of this.codes) {
      if (expiresAt > now - CODE_MEMORY_MS) return;
      this.codes.delete(hash);
    }
  }
}
