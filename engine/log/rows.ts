/** The rows of accounts, access and withdrawals: as writes insert them, and as the tables return them to the gateway. */
import type { UserTerms } from "./user-terms.ts";

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

export interface SocialIdentityRow {
  userId: number;
  issuer: string;
  subject: string;
}

/** A pending withdrawal. */
export interface WithdrawalRow {
  id: number;
  userId: number;
  amount: number;
  address: string;
  createdAt: number;
}

/** The first of two approvals. */
export interface ApprovalRow {
  id: number;
  action: string;
  subject: number;
  /** Distinguishes several approvals of one subject; "" if there can only be one. */
  reference: string;
  details: string;
  actor: string;
  createdAt: number;
}
