/**
 * Loads accounts at startup: users with their terms, tokens, sessions, second factors, OAuth clients and grants.
 * Never writes.
 */
import type Database from "better-sqlite3";
import { columnOf } from "../columns.ts";
import { TERM_NAMES, type UserTerms } from "../user-terms.ts";

export interface UserRow extends UserTerms {
  id: number;
  email: string;
  role: string;
  kycTier: number;
  createdAt: number;
  passwordHash: string | null;
  emailVerifiedAt: number | null;
  phone: string | null;
  phoneVerifiedAt: number | null;
  suspendedAt: number | null;
  /** "market 12 event 3", newest first; null: nothing. */
  watchlist: string | null;
  /** JSON: what the user is told of, and until when; null: the defaults. */
  notifications: string | null;
  /** JSON, oldest first; null: none. */
  priceAlerts: string | null;
}

export interface TokenRow {
  id: number;
  userId: number;
  name: string;
  tokenHash: string;
  prefix: string;
  scopes: string;
  allowedAddresses: string | null;
  createdAt: number;
  lastUsedAt: number | null;
  expiresAt: number | null;
}

export interface SessionRow {
  id: number;
  userId: number;
  grantId: number | null;
  method: string;
  scopes: string;
  family: string;
  refreshHash: string;
  userAgent: string | null;
  address: string | null;
  /** The sign-in's authentication methods, as space-separated values of RFC 8176; null if unknown. */
  amr: string | null;
  createdAt: number;
  lastUsedAt: number;
  expiresAt: number;
}

export interface EmailTokenRow {
  id: number;
  userId: number;
  purpose: string;
  tokenHash: string;
  createdAt: number;
  expiresAt: number;
}

export interface OAuthClientRow {
  id: number;
  userId: number;
  clientId: string;
  name: string;
  /** One URI per line. */
  redirectUris: string;
  secretHash: string | null;
  createdAt: number;
}

export interface OAuthGrantRow {
  id: number;
  userId: number;
  /** The id of the client's row. */
  clientId: number;
  scopes: string;
  createdAt: number;
  lastUsedAt: number | null;
}

export interface IdentityApplicationRow {
  id: number;
  userId: number;
  documentType: string;
  country: string;
  status: string;
  /** The operator's note. */
  note: string | null;
  createdAt: number;
  decidedAt: number | null;
}

/** An active second factor. */
interface FactorColumns {
  readonly id: number;
  readonly userId: number;
  readonly name: string;
  readonly createdAt: number;
  lastUsedAt: number | null;
}

export interface TotpRow extends FactorColumns {
  readonly kind: "totp";
  /** Sealed. */
  secret: string;
  /** The time step of the last accepted code. */
  lastStep: number;
  readonly rpId: null;
  readonly credentialId: null;
  readonly publicKey: null;
  readonly counter: null;
  readonly transports: null;
  readonly userHandle: null;
}

export interface PasskeyRow extends FactorColumns {
  readonly kind: "passkey";
  readonly secret: null;
  readonly lastStep: null;
  /** The relying party's host. */
  readonly rpId: string;
  /** base64url, as is the public key. */
  readonly credentialId: string;
  readonly publicKey: string;
  /** The signature counter. */
  counter: number;
  /** Separated by spaces. */
  readonly transports: string | null;
  /** base64url; null for passkeys from before handles were random. */
  readonly userHandle: string | null;
}

export type SecondFactorRow = TotpRow | PasskeyRow;

/** An unused recovery code. */
export interface RecoveryCodeRow {
  id: number;
  userId: number;
  codeHash: string;
}

export interface SecondFactorRows {
  readonly factors: SecondFactorRow[];
  readonly codes: RecoveryCodeRow[];
  /** The largest id ever assigned to a second factor; 0 for none. */
  readonly lastId: number;
}

export interface SocialIdentityRow {
  userId: number;
  issuer: string;
  subject: string;
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

/** The users with a cancel-after timer, and when it fires, ms. */
export function loadCancelTimers(db: Database.Database): [userId: number, firesAt: number][] {
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
