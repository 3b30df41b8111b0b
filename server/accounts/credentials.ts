/**
 * Credentials: what gives access until it ends. Every token that derives from a credential stops working with it. A
 * personal access token is its own credential; access tokens derive from a session.
 */
import type { BlockList } from "node:net";
import type { SessionRow, TokenRow } from "../../engine/log/rows.ts";
import { addressListOf } from "../http/client-address.ts";
import { hasSecondFactor } from "./amr.ts";
import { TokenPrincipal } from "./principal.ts";
import { hashToken } from "./token-hash.ts";
import type { Credential, Grant, TokenKind, User } from "./types.ts";

export const TOKEN_PREFIX = "pm_pat_";
/** Characters of a personal access token that its record keeps, so that its owner can tell it from others. */
export const TOKEN_SHOWN_LENGTH = TOKEN_PREFIX.length + 6;

abstract class BaseCredential implements Credential {
  abstract readonly kind: TokenKind;
  readonly id: number;
  readonly user: User;
  readonly scopes: ReadonlySet<string>;
  isEnded = false;
  /** ms; reaches the database write-behind. */
  lastUsedAt: number;

  constructor(id: number, user: User, scopes: string, lastUsedAt: number) {
    this.id = id;
    this.user = user;
    this.scopes = new Set(scopes === "" ? [] : scopes.split(" "));
    this.lastUsedAt = lastUsedAt;
  }

  get hasSecondFactor(): boolean {
    return false;
  }
}

/** A personal access token. */
export class Pat extends BaseCredential {
  readonly kind = "pat";
  readonly row: TokenRow;
  /** Addresses that may use the token; null: any. */
  readonly allowed: BlockList | null;
  readonly principal: TokenPrincipal;

  constructor(row: TokenRow, user: User) {
    super(row.id, user, row.scopes, row.lastUsedAt ?? 0);
    this.row = row;
    this.allowed = row.allowedAddresses === null ? null : addressListOf(row.allowedAddresses.split(" "));
    this.principal = new TokenPrincipal(this, row.expiresAt);
  }
}

/** What a sign-in, or a third party's authorization code, opened: lives as long as its refresh token. */
export class Session extends BaseCredential {
  readonly kind: "session" | "oauth";
  /** The name in its access tokens: unique, also among the sessions of a restored database. */
  readonly sid: string;
  readonly row: SessionRow;
  readonly grant: Grant | null;

  constructor(row: SessionRow, user: User, grant: Grant | null) {
    super(row.id, user, row.scopes, row.lastUsedAt);
    this.kind = grant === null ? "session" : "oauth";
    this.sid = sidOf(row.family);
    this.row = row;
    this.grant = grant;
  }

  override get hasSecondFactor(): boolean {
    return hasSecondFactor(this.row.amr);
  }
}

/** Derived from the refresh tokens' family, which it does not disclose. */
export function sidOf(family: string): string {
  return hashToken(`session ${family}`).slice(0, 32);
}
