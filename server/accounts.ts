/**
 * Users and their tokens in memory: who a request comes from. Tokens are known by their SHA-256 only; the text of a
 * token that was seen genuine is cached, so that a known one costs a map look-up. Owned by the gateway thread.
 */
import { createHash } from "node:crypto";
import type { TokenRow, UserRow } from "../engine/journal/load.ts";
import { ApiError, ErrorKind } from "./errors.ts";

export const SCOPES = ["markets:read", "markets:propose", "orders:write", "portfolio:read"] as const;
export type Scope = (typeof SCOPES)[number];

/** The holder of a token, as routes see it. */
export interface Principal {
  readonly userId: number;
  readonly kycTier: number;
  readonly role: string;
  readonly scopes: ReadonlySet<string>;
  /** A personal access token; sessions and OAuth grants are other kinds. */
  readonly pat: boolean;
  readonly expiresAt: number | null;
}

export const TOKEN_PREFIX = "pm_pat_";
/** Characters of a token that its record shows, so that its owner can tell it from others. */
export const TOKEN_SHOWN_LENGTH = TOKEN_PREFIX.length + 6;
const MAX_CACHED_TOKENS = 100_000;
const MAX_TOKEN_LENGTH = 4_096;

export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** A token may expire while its connection lives. @throws ApiError 2002 */
export function checkNotExpired({ expiresAt }: Principal, now: number): void {
  if (expiresAt !== null && expiresAt <= now) throw new ApiError(ErrorKind.tokenExpired, "the token has expired");
}

export class Accounts {
  private readonly users = new Map<number, UserRow>();
  private readonly byHash = new Map<string, Principal>();
  private readonly byToken = new Map<string, Principal>();

  addUser(user: UserRow): void {
    this.users.set(user.id, user);
  }

  user(id: number): UserRow | undefined {
    return this.users.get(id);
  }

  addToken(row: TokenRow): void {
    const user = this.users.get(row.userId)!;
    this.byHash.set(row.tokenHash, {
      userId: user.id,
      kycTier: user.kycTier,
      role: user.role,
      scopes: new Set(row.scopes.split(" ")),
      pat: true,
      expiresAt: row.expiresAt,
    });
  }

  /** @param header the Authorization header, or "" @throws ApiError 40100, or 2002 for a genuine token that expired */
  authenticateHeader(header: string, now: number): Principal {
    if (header === "") throw new ApiError(ErrorKind.unauthenticated, "a bearer token is required");
    if (header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ") {
      throw new ApiError(ErrorKind.unauthenticated, "the Authorization header is not a bearer token");
    }
    return this.authenticate(header.slice(7), now);
  }

  /** @throws ApiError as `authenticateHeader` */
  authenticate(token: string, now: number): Principal {
    const principal = this.byToken.get(token) ?? this.lookUp(token);
    checkNotExpired(principal, now);
    return principal;
  }

  private lookUp(token: string): Principal {
    const found = token.length <= MAX_TOKEN_LENGTH ? this.byHash.get(hashToken(token)) : undefined;
    if (found === undefined) throw new ApiError(ErrorKind.unauthenticated, "the token is not valid");
    // Only genuine tokens are cached: a flood of wrong ones costs a hash each and no memory.
    if (this.byToken.size >= MAX_CACHED_TOKENS) this.byToken.clear();
    this.byToken.set(token, found);
    return found;
  }
}
