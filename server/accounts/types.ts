/** Users, their credentials and second factors: shapes that every room may name. */
import type { OAuthClientRow, OAuthGrantRow, UserRow } from "../../engine/log/rows.ts";
import type { ClientAddress } from "../http/client-address.ts";

export const SCOPES = ["markets:read", "markets:propose", "orders:write", "portfolio:read"] as const;
export type Scope = (typeof SCOPES)[number];

export type TokenKind = "session" | "oauth" | "pat";

/** Gives access until it ends: every token derived from it stops working with it. */
export interface Credential {
  readonly kind: TokenKind;
  readonly id: number;
  readonly user: User;
  readonly scopes: ReadonlySet<string>;
  isEnded: boolean;
  /** A session that was opened with a second factor. */
  readonly hasSecondFactor: boolean;
  /** ms */
  lastUsedAt: number;
}

/** The holder of a token, as routes see it. */
export interface Principal {
  readonly credential: Credential;
  readonly kind: TokenKind;
  readonly userId: number;
  readonly role: string;
  readonly scopes: ReadonlySet<string>;
  /** ms since the epoch; null: the token doesn't expire. */
  readonly expiresAt: number | null;
  /** The token is a personal access token. */
  readonly pat: boolean;
  readonly kycTier: number;
  /** micro-USDC of activity a UTC day. */
  readonly dailyLimit: number;
  /** BPS; null: the general fee. */
  readonly mergeFee: number | null;
  readonly maxLiveOrders: number;
  /** Multiplies the user's own rate limits. */
  readonly rateLimitFactor: number;
  /** The account can do nothing but verify its email address. */
  readonly mustVerify: boolean;
  /** The session was made with a second factor. */
  readonly hasSecondFactor: boolean;
  readonly isSuspended: boolean;
}

/** Finds and checks the holder of a bearer token. */
export interface TokenAuthenticator {
  /**
   * @param header the Authorization header, or ""
   * @param address of the client; called only where the token is bound to addresses
   * @param mayVerify throws where verifying another unknown token's signature would be too much
   * @throws ApiError 40100, 2002 for a genuine token that expired, 40300
   */
  authenticateHeader(
    header: string,
    now: number,
    address: () => ClientAddress,
    mayVerify: () => void,
  ): Principal | Promise<Principal>;
  /** Checks what can end while a connection lives. @throws ApiError 40100, 2002, 40300 */
  checkLive(principal: Principal, now: number): void;
}

/** A third party's registration. */
export interface OAuthClient {
  readonly row: OAuthClientRow;
  readonly redirectUris: readonly string[];
}

/** What a user allows a third party to do. */
export interface Grant {
  readonly row: OAuthGrantRow;
  readonly client: OAuthClient;
  /** ms; 0 before the first use */
  lastUsedAt: number;
}

export type User = UserRow & {
  /** An operator's seed created the account, not a stranger's registration. */
  isSeeded?: true;
};

export const FACTOR_KINDS = ["totp", "passkey"] as const;
export type FactorKind = (typeof FACTOR_KINDS)[number];

export const PROOF_METHODS = [...FACTOR_KINDS, "recovery_code"] as const;
export type ProofMethod = (typeof PROOF_METHODS)[number];
