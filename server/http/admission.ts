/**
 * Who may do what: the one admission of HTTP requests, of the WebSocket's operations and of the control socket. `enter`
 * counts a request against the rate limits and admits its sender to the route. It never reads a body and never responds.
 */
import type { Principal, TokenAuthenticator } from "../accounts/types.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { ClientAddress } from "./client-address.ts";
import { type CompiledRoute, scopeText } from "./dispatch.ts";
import type { RateLimiter, RateState } from "./rate-limiter.ts";
import type { Route } from "./route.ts";

/** A request at the door. */
export interface Entry {
  readonly compiled: CompiledRoute;
  /** Unknown on hot paths without limits. */
  readonly address: ClientAddress;
  /** ms */
  readonly now: number;
  /** Gets the remaining allowance of the rate limits that counted the request. */
  readonly reply: { rate: RateState | null | undefined };
}

/** The request's principal, or why there is none. */
export interface Sender {
  readonly principal: Principal | null;
  /** The error for a route that isn't public. */
  readonly rejection: unknown;
}

const ANONYMOUS: Sender = { principal: null, rejection: null };
/** The machine's own shell, which needs no token and which nothing limits. */
export const SHELL: Sender = { principal: null, rejection: null };

const rejected = (rejection: unknown): Sender => ({ principal: null, rejection });

export interface AdmissionOptions {
  readonly authenticator: TokenAuthenticator;
  /** Null where nothing is limited. */
  readonly limiter: RateLimiter | null;
  /**
   * `rejection` is the error of every route outside health, null while the exchange is open; `writeRejection` that of
   * every route that changes something, null while such requests are accepted.
   */
  readonly lifecycle: { readonly rejection: ApiError | null; readonly writeRejection: ApiError | null };
  /** Whether the account with the email, in lower case, lately signed in from this client address. */
  readonly isKnown: (email: string, client: string, now: number) => boolean;
}

export class Admission {
  private readonly options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.options = options;
  }

  /** True where serving the route takes the client's address: the limits or the route need it. */
  needsAddress(compiled: CompiledRoute): boolean {
    return this.options.limiter !== null || compiled.needsAddress;
  }

  /** @throws ApiError 50300 while the exchange isn't open */
  checkOpen(): void {
    const { rejection } = this.options.lifecycle;
    if (rejection !== null) throw rejection;
  }

  /** @throws ApiError 50300 while nothing can be acknowledged */
  private checkWritable(): void {
    const { writeRejection } = this.options.lifecycle;
    if (writeRejection !== null) throw writeRejection;
  }

  /**
   * Finds the holder of a token; a promise where a signature must be verified first.
   * @param header Authorization, "" where it is missing @param address read where a token is bound to addresses
   */
  findSender({ compiled, now }: Entry, header: string, address: () => ClientAddress): Sender | Promise<Sender> {
    const { route, template } = compiled;
    const { authenticator, limiter } = this.options;
    if (route.access === "public") {
      // On most public routes a token only decides whose limit counts.
      const isUsed = route.optionalAuth || (limiter !== null && route.rateClass === "default" && !route.oauth);
      if (!isUsed || header === "") return ANONYMOUS;
    }
    try {
      // A forged token counts against its address: without allowance there, its signature isn't verified.
      const mayVerify = (): void => limiter?.checkRoom(template, route.rateClass, address().client, now);
      const found = authenticator.authenticateHeader(header, now, address, mayVerify);
      if (!(found instanceof Promise)) return { principal: found, rejection: null };
      return found.then((principal) => ({ principal, rejection: null }), rejected);
    } catch (error) {
      return rejected(error);
    }
  }

  /**
   * Counts the request, a user's by user and all others by address, and admits its sender to the route.
   * @throws ApiError 50300, 42900, the sender's rejection, 40100, 2002, 40300
   */
  enter(entry: Entry, sender: Sender): Principal | null {
    const { compiled, now, reply } = entry;
    const { route } = compiled;
    if (!route.unversioned) this.checkOpen();
    if (route.writes) this.checkWritable();
    if (sender === SHELL) return null;
    const { principal, rejection } = sender;
    // Where the body names what is counted, the body's reader counts it (`countNamed`).
    if (!compiled.countsBody) reply.rate = this.count(entry, principal, "", false);
    if (route.access === "public") return principal;
    if (principal === null) throw rejection;
    this.admit(route, principal, now);
    return principal;
  }

  /**
   * Admits a sender to the route, again where time has passed since `enter`: the token may be revoked by now.
   * @throws ApiError 40100, 2002, 40300
   */
  admit(route: Route, principal: Principal | null, now: number): void {
    if (principal === null || route.access === "public") return;
    this.options.authenticator.checkLive(principal, now);
    authorize(route, principal);
  }

  /**
   * Counts a request by what its body names, where the limits do so. Returns true for the owner of a named account, at an
   * address that the account knows.
   * @param identifier "" where the body names nobody: the address is counted alone
   * @throws RateLimited 42900
   */
  countNamed(entry: Entry, identifier: string): boolean {
    const { compiled, address, now, reply } = entry;
    if (!compiled.countsBody) return false;
    const isOwner =
      compiled.route.rateClass === "identifier" &&
      identifier !== "" &&
      this.options.isKnown(identifier, address.client, now);
    reply.rate = this.count(entry, null, identifier, isOwner);
    // Without limits, anyone at a known address would get error responses without bound.
    return isOwner && this.options.limiter !== null;
  }

  /** @throws RateLimited 42900 */
  private count(
    { compiled, address, now }: Entry,
    principal: Principal | null,
    identifier: string,
    isKnown: boolean,
  ): RateState | null {
    const { limiter } = this.options;
    if (limiter === null) return null;
    const { rateClass } = compiled.route;
    const userId = principal === null ? null : principal.userId;
    const factor = principal === null ? 1 : principal.rateLimitFactor;
    const route = compiled.template;
    return limiter.consume({ route, rateClass, userId, factor, address: address.client, now, identifier, isKnown });
  }
}

const NO_SECOND_FACTOR =
  "operators need a second factor here: add one at /account/security (POST /me/second-factors), or sign in again with it";

/** @throws ApiError 40300 unless the principal may use the route */
export function authorize(route: Route, principal: Principal): void {
  if (!route.tokens.includes(principal.kind)) {
    throw new ApiError(ErrorKind.forbidden, "this kind of token cannot be used here");
  }
  if (route.access === "operator" && principal.role !== "operator") {
    throw new ApiError(ErrorKind.forbidden, "for operators only");
  }
  if (route.secondFactor && !principal.hasSecondFactor) throw new ApiError(ErrorKind.forbidden, NO_SECOND_FACTOR);
  const { scope, orScope } = route;
  if (scope !== null && !principal.scopes.has(scope) && (orScope === null || !principal.scopes.has(orScope))) {
    throw new ApiError(ErrorKind.forbidden, `the token lacks the scope ${scopeText(route)}`);
  }
  if (!route.unverified && principal.mustVerify) {
    throw new ApiError(ErrorKind.forbidden, "verify the account's email address first");
  }
  if (principal.kycTier < route.minTier) {
    throw new ApiError(ErrorKind.forbidden, `requires KYC tier ${route.minTier}, the account has ${principal.kycTier}`);
  }
}
