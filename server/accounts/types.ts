/** Users, what gives access to them and how a sign-in is proven: shapes that every room may name. */
import type { OAuthClientRow, OAuthGrantRow, UserRow } from "../../engine/projection/load.ts";

export const SCOPES = ["markets:read", "markets:propose", "orders:write", "portfolio:read"] as const;
export type Scope = (typeof SCOPES)[number];

export type TokenKind = "session" | "oauth" | "pat";

/** A third party's registration. */
export interface OAuthClient {
  readonly row: OAuthClientRow;
  readonly redirectUris: readonly string[];
}

/** What a user lets a third party do. */
export interface Grant {
  readonly row: OAuthGrantRow;
  readonly client: OAuthClient;
  /** ms; 0 before the first use */
  lastUsedAt: number;
}

export type User = UserRow & {
  /** A seed made it: it is the operator's word, and no stranger's registration. */
  isSeeded?: true;
};

export const FACTOR_KINDS = ["totp", "passkey"] as const;
export type FactorKind = (typeof FACTOR_KINDS)[number];

export const PROOF_METHODS = [...FACTOR_KINDS, "recovery_code"] as const;
export type ProofMethod = (typeof PROOF_METHODS)[number];
