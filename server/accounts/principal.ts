/** The holder of a token, as routes and order entry see it: its credential, and the limits of its user at this moment. */
import { DAILY_ACTIVITY_LIMIT_MICRO } from "../../engine/limits.ts";
import { LIVE_ORDERS_OF_TIER } from "./limits.ts";
import type { Credential, Principal, TokenKind, User } from "./types.ts";
import { mustVerify } from "./users.ts";

export class TokenPrincipal implements Principal {
  readonly credential: Credential;
  /** ms since the epoch; null: the token does not expire. */
  readonly expiresAt: number | null;
  readonly userId: number;
  readonly scopes: ReadonlySet<string>;
  /** Orders placed with a personal access token earn the higher maker rebate. */
  readonly pat: boolean;
  private readonly user: User;

  /** @param scopes the token's, when they are fewer than the credential's */
  constructor(credential: Credential, expiresAt: number | null, scopes: ReadonlySet<string> = credential.scopes) {
    this.credential = credential;
    this.expiresAt = expiresAt;
    this.user = credential.user;
    this.userId = credential.user.id;
    this.scopes = scopes;
    this.pat = credential.kind === "pat";
  }

  get kind(): TokenKind {
    return this.credential.kind;
  }

  get kycTier(): number {
    return this.user.kycTier;
  }

  get role(): string {
    return this.user.role;
  }

  get dailyLimit(): number {
    return dailyLimitOf(this.user);
  }

  get mergeFee(): number | null {
    return this.user.mergeFee;
  }

  /** The account can do nothing but verify its email address. */
  get mustVerify(): boolean {
    return this.user.emailVerifiedAt === null && mustVerify(this.user);
  }

  /** Orders that the user may have live at one time. */
  get maxLiveOrders(): number {
    const { maxLiveOrders, kycTier } = this.user;
    return maxLiveOrders ?? LIVE_ORDERS_OF_TIER[kycTier] ?? 0;
  }

  /** Multiplies the user's own rate limits. */
  get rateLimitFactor(): number {
    return this.user.rateLimitFactor ?? 1;
  }

  /** The session was opened with a second factor. */
  get hasSecondFactor(): boolean {
    return this.credential.hasSecondFactor;
  }

  get isSuspended(): boolean {
    return this.user.suspendedAt !== null;
  }
}

/** What the user may trade on a UTC day, micro-USDC. */
export function dailyLimitOf({ dailyLimit, kycTier }: User): number {
  return dailyLimit ?? DAILY_ACTIVITY_LIMIT_MICRO[kycTier] ?? 0;
}
