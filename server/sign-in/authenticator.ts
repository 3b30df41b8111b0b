/**
 * Authenticates bearer tokens. A known token costs one map lookup; the signature of an unknown one is verified off this
 * thread, so its principal arrives asynchronously. Every use checks what may have changed: the credential's end, expiry,
 * suspension, the client's address.
 */

import type { Accounts } from "../accounts/accounts.ts";
import { Pat, Session } from "../accounts/credentials.ts";
import { LAST_USE_INTERVAL_MS, MAX_KNOWN_TOKENS, MAX_TOKEN_LENGTH, MAX_VERIFICATIONS } from "../accounts/limits.ts";
import { TokenPrincipal } from "../accounts/principal.ts";
import { hashToken } from "../accounts/token-hash.ts";
import type { Credential, Principal, TokenAuthenticator } from "../accounts/types.ts";
import { ApiError, ErrorKind, overloaded } from "../errors.ts";
import { type ClientAddress, isListed } from "../http/client-address.ts";
import { BoundedMap } from "../util/bounded-map.ts";
import { claimsOf, type SigningKeys, type TokenClaims, TokenExpired } from "./signing-keys.ts";

const tokenInvalid = (): ApiError => new ApiError(ErrorKind.unauthenticated, "the token is not valid");
const tokenExpired = (): ApiError => new ApiError(ErrorKind.tokenExpired, "the token has expired");
const accountSuspended = (): ApiError => new ApiError(ErrorKind.forbidden, "the account is suspended");

/** Checks what can end while a connection lives. @throws ApiError 40100, 2002, 40300 */
export function checkLive({ credential, expiresAt, isSuspended }: Principal, now: number): void {
  // A suspension has ended the account's sessions, too; the owner shall know why.
  if (isSuspended) throw accountSuspended();
  if (credential.isEnded) throw tokenInvalid();
  if (expiresAt !== null && expiresAt <= now) throw tokenExpired();
}

/** The token in an Authorization header; null if it isn't a bearer token's. */
export function bearerOf(header: string): string | null {
  return header.length > 7 && header.slice(0, 7).toLowerCase() === "bearer " ? header.slice(7) : null;
}

/** Tokens are looked up by their last characters: random in every token, and few enough that hashing them is cheap. */
const TAIL_LENGTH = 32;

interface KnownToken {
  readonly token: string;
  readonly principal: Principal;
}

export class Authenticator implements TokenAuthenticator {
  readonly checkLive = checkLive;
  private readonly accounts: Accounts;
  private readonly keys: SigningKeys;
  /** By the token's tail, oldest first. */
  private readonly known = new BoundedMap<string, KnownToken>(MAX_KNOWN_TOKENS);
  private used = new Set<Credential>();
  private verifications = 0;

  constructor(accounts: Accounts, keys: SigningKeys) {
    this.accounts = accounts;
    this.keys = keys;
  }

  /**
   * @param header the Authorization header, or ""
   * @param address of the client; called only if the token is bound to addresses
   * @param mayVerify throws if verifying another unknown token would exceed a limit
   * @throws ApiError 40100, 2002 for a genuine token that expired, 40300
   */
  authenticateHeader(
    header: string,
    now: number,
    address: () => ClientAddress,
    mayVerify: () => void,
  ): Principal | Promise<Principal> {
    if (header === "") throw new ApiError(ErrorKind.unauthenticated, "a bearer token is required");
    const token = bearerOf(header);
    if (token === null) {
      throw new ApiError(ErrorKind.unauthenticated, "the Authorization header is not a bearer token");
    }
    return this.authenticate(token, now, address, mayVerify);
  }

  /** Rejects, or throws, as `authenticateHeader`. */
  authenticate(
    token: string,
    now: number,
    address: () => ClientAddress,
    mayVerify: () => void,
  ): Principal | Promise<Principal> {
    const found = this.known.get(token.slice(-TAIL_LENGTH));
    if (found !== undefined && found.token === token) return this.admit(found.principal, now, address);
    if (token.length > MAX_TOKEN_LENGTH) throw tokenInvalid();
    const pat = this.accounts.patByHash(hashToken(token));
    if (pat !== undefined) return this.admit(this.remember(token, pat.principal), now, address);
    if (!looksSigned(token)) throw tokenInvalid();
    mayVerify();
    return this.verify(token, now).then((principal) => this.admit(principal, now, address));
  }

  /** Registers an access token that was just signed, so that it needs no verification. */
  issued(token: string, session: Session, expiresAt: number, scopes: readonly string[]): void {
    this.remember(token, new TokenPrincipal(session, expiresAt, new Set(scopes)));
  }

  /** The principal of a genuine token, whatever the state of its account. Rejects with an ApiError 40100 or 2002. */
  async verify(token: string, now: number): Promise<Principal> {
    if (this.verifications >= MAX_VERIFICATIONS) throw overloaded("too many tokens are being verified: try again");
    this.verifications++;
    try {
      const claims = await this.keys.verify(token, now);
      const session = this.accounts.sessionBySid(sidOf(claims));
      if (session === undefined || claims.sub !== String(session.user.id)) {
        if (this.accounts.user(Number(claims.sub))?.suspendedAt != null) throw accountSuspended();
        throw tokenInvalid();
      }
      const scopes = claims.scope.split(" ");
      return this.remember(token, new TokenPrincipal(session, claims.exp * 1_000, new Set(scopes)));
    } catch (error) {
      if (error instanceof ApiError) throw error;
      const isLoggedOut = (): boolean => this.accounts.hasEnded(sidOf(claimsOf(token)));
      if (error instanceof TokenExpired && !isLoggedOut()) throw tokenExpired();
      throw tokenInvalid();
    } finally {
      this.verifications--;
    }
  }

  /** Returns the credentials used since the last call; each appears at most once a minute. */
  drainUsed(): Iterable<Credential> {
    const { used } = this;
    this.used = new Set();
    return used;
  }

  /** Admits the principal of a genuine token, or throws. @throws ApiError 40100, 2002, 40300 */
  admit(principal: Principal, now: number, address: () => ClientAddress): Principal {
    checkLive(principal, now);
    const { credential } = principal;
    if (credential instanceof Pat && credential.allowed !== null && !isListed(credential.allowed, address().address)) {
      throw new ApiError(ErrorKind.forbidden, "the token cannot be used from this address");
    }
    if (now - credential.lastUsedAt >= LAST_USE_INTERVAL_MS) {
      credential.lastUsedAt = now;
      if (credential instanceof Session && credential.grant !== null) credential.grant.lastUsedAt = now;
      this.used.add(credential);
    }
    return principal;
  }

  /** Remembers genuine tokens only: a flood of wrong ones costs lookups but no memory. */
  private remember(token: string, principal: Principal): Principal {
    this.known.set(token.slice(-TAIL_LENGTH), { token, principal });
    return principal;
  }
}

function sidOf({ sid }: TokenClaims): string {
  return typeof sid === "string" ? sid : "";
}

/** True for three parts, the first of which starts like a JSON object in base64url. */
function looksSigned(token: string): boolean {
  return token.startsWith("eyJ") && token.split(".", 4).length === 3;
}
