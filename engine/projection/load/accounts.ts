/**
 * Loads accounts at startup: users with their terms, tokens, sessions, second factors, OAuth clients and grants.
 * Never writes.
 */
import type Database from "better-sqlite3";
import type {
  EmailTokenRow,
  IdentityApplicationRow,
  OAuthClientRow,
  OAuthGrantRow,
  RecoveryCodeRow,
  SecondFactorRow,
  SessionRow,
  SocialIdentityRow,
  TokenRow,
  UserRow,
} from "../../log/rows.ts";
import { TERM_NAMES, type UserTerms } from "../../log/user-terms.ts";
import { columnOf } from "../columns.ts";

export interface SecondFactorRows {
  readonly factors: SecondFactorRow[];
  readonly codes: RecoveryCodeRow[];
  /** The largest id ever assigned to a second factor; 0 for none. */
  readonly lastId: number;
}

/** The gateway's view of accounts: everything that is still active. */
export interface AccountRows {
  readonly users: UserRow[];
  readonly tokens: TokenRow[];
  readonly sessions: SessionRow[];
  /** The families of the sessions that ended last, oldest first. */
  readonly endedFamilies: string[];
  readonly lastSessionId: number;
  readonly emailTokens: EmailTokenRow[];
  readonly clients: OAuthClientRow[];
  readonly grants: OAuthGrantRow[];
  readonly identityApplications: IdentityApplicationRow[];
  readonly socialIdentities: SocialIdentityRow[];
  /** Users that a seed created. */
  readonly seededUsers: number[];
  /** Users who have entries although their email address is unverified: an operator funded them. */
  readonly fundedUsers: number[];
  /** Users whose terms a seed set. */
  readonly seededTerms: number[];
  /** The last sign-in of each user from each address, oldest first. */
  readonly signIns: SignInRow[];
}

/**
 * The users with a cancel-after timer, and when it fires, ms. One that fired, and whose cancels may not be durable, has the
 * last order's id below 0 in its place.
 */
export function loadCancelTimers(db: Database.Database): [userId: number, state: number][] {
  const rows = db.prepare("SELECT id, cancels_at FROM users WHERE cancels_at IS NOT NULL").raw();
  return rows.all() as [number, number][];
}

/** Active second factors and unused recovery codes. */
export function loadSecondFactors(db: Database.Database): SecondFactorRows {
  return {
    factors: db
      .prepare(
        `SELECT id, user_id AS userId, kind, name, secret, last_step AS lastStep, rp_id AS rpId,
         credential_id AS credentialId, public_key AS publicKey, counter, transports, user_handle AS userHandle, created_at AS createdAt,
         last_used_at AS lastUsedAt FROM second_factors WHERE removed_at IS NULL ORDER BY id`,
      )
      .all() as SecondFactorRow[],
    codes: db
      .prepare("SELECT id, user_id AS userId, code_hash AS codeHash FROM recovery_codes WHERE ended_at IS NULL")
      .all() as RecoveryCodeRow[],
    lastId: Number(db.prepare("SELECT coalesce(max(id), 0) FROM second_factors").pluck().get()),
  };
}

/** The terms of users with individual fees or rebates. */
export function loadUserRates(db: Database.Database): ({ id: number } & UserTerms)[] {
  const terms = TERM_NAMES.map((name) => `${columnOf(name)} AS ${name}`);
  return db
    .prepare(
      `SELECT id, ${terms.join(", ")} FROM users
       WHERE coalesce(trading_fee, maker_rebate, pat_rebate, merge_fee) IS NOT NULL`,
    )
    .all() as ({ id: number } & UserTerms)[];
}

interface SignInRow {
  readonly userId: number;
  readonly address: string;
  /** ms */
  readonly at: number;
}

/** Each part of the union uses its own index: a session created since then can't have ended or expired before. */
const SIGN_INS = `
  SELECT user_id AS userId, address, max(created_at) AS at FROM (
    SELECT user_id, grant_id, address, created_at FROM sessions WHERE ended_at IS NULL AND expires_at >= @since
    UNION ALL
    SELECT user_id, grant_id, address, created_at FROM sessions WHERE ended_at IS NOT NULL AND ended_at >= @since)
  WHERE created_at >= @since AND grant_id IS NULL AND address IS NOT NULL
  GROUP BY user_id, address ORDER BY at DESC, userId DESC LIMIT @most`;

/**
 * @param since ms; rows that expired earlier are skipped
 * @param ended the number of last ended sessions to return
 * @param signIns the number of last sign-ins to return, and their earliest time, ms
 */
export function loadAccounts(
  db: Database.Database,
  since: number,
  ended: number,
  signIns: { readonly since: number; readonly most: number },
): AccountRows {
  const rows = <T>(table: string, columns: readonly (keyof T & string)[], rest: string, ...values: number[]): T[] => {
    const named = columns.map((name) => `${columnOf(name)} AS ${name}`);
    // Callers rely on creation order, oldest first.
    return db.prepare(`SELECT ${named.join(", ")} FROM ${table} ${rest} ORDER BY id`).all(...values) as T[];
  };
  const user = [
    ...(["passwordHash", "emailVerifiedAt", "phone", "phoneVerifiedAt", "suspendedAt"] as const),
    ...(["watchlist", "notifications", "priceAlerts"] as const),
    ...TERM_NAMES,
  ] as const;
  const token = ["name", "tokenHash", "prefix", "scopes", "allowedAddresses", "lastUsedAt", "expiresAt"] as const;
  const session = ["grantId", "method", "scopes", "family", "refreshHash", "userAgent", "address", "amr"] as const;
  const client = ["clientId", "name", "redirectUris", "secretHash"] as const;
  const made = ["id", "userId", "createdAt"] as const;
  const last = db
    .prepare("SELECT family FROM sessions WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT ?")
    .pluck();
  const seeded = db.prepare("SELECT subject FROM audit_log WHERE actor = 'seed' AND action = ?").pluck();
  const funded = db
    .prepare(
      "SELECT id FROM users WHERE email_verified_at IS NULL AND EXISTS (SELECT 1 FROM entries WHERE user_id = users.id)",
    )
    .pluck();
  return {
    users: rows<UserRow>("users", ["id", "email", "role", "kycTier", "createdAt", ...user], ""),
    tokens: rows<TokenRow>("personal_access_tokens", [...made, ...token], "WHERE revoked_at IS NULL"),
    sessions: rows<SessionRow>(
      "sessions",
      [...made, ...session, "lastUsedAt", "expiresAt"],
      "WHERE ended_at IS NULL AND expires_at > ?",
      since,
    ),
    endedFamilies: last.all(ended).reverse() as string[],
    lastSessionId: Number(db.prepare("SELECT coalesce(max(id), 0) FROM sessions").pluck().get()),
    emailTokens: rows<EmailTokenRow>(
      "email_tokens",
      [...made, "purpose", "tokenHash", "expiresAt"],
      "WHERE used_at IS NULL AND expires_at > ?",
      since,
    ),
    clients: rows<OAuthClientRow>("oauth_clients", [...made, ...client], "WHERE deleted_at IS NULL"),
    grants: rows<OAuthGrantRow>(
      "oauth_grants",
      [...made, "clientId", "scopes", "lastUsedAt"],
      "WHERE revoked_at IS NULL",
    ),
    identityApplications: rows<IdentityApplicationRow>(
      "identity_applications",
      [...made, "documentType", "country", "status", "note", "decidedAt"],
      "WHERE id IN (SELECT max(id) FROM identity_applications GROUP BY user_id)",
    ),
    socialIdentities: rows<SocialIdentityRow>("social_identities", ["userId", "issuer", "subject"], ""),
    seededUsers: seeded.all("user.create") as number[],
    fundedUsers: funded.all() as number[],
    seededTerms: seeded.all("user.set_terms") as number[],
    signIns: (db.prepare(SIGN_INS).all(signIns) as SignInRow[]).reverse(),
  };
}
