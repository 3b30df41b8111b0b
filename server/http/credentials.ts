/**
 * Who sends a request: reads its address and its bearer token, counts it against the rate limits and admits its sender to
 * the route. It never reads the body and never responds.
 */
import type { HttpResponse } from "uWebSockets.js";
import type { Principal, TokenAuthenticator } from "../accounts/types.ts";
import type { AddressReader, ClientAddress } from "./client-address.ts";
import { authorize, type CompiledRoute, countRequest } from "./dispatch.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import type { Reply } from "./reply.ts";
import type { Route, RouteRequest } from "./route.ts";

export interface AddressOptions {
  readonly addressOf: AddressReader;
  /** X-Forwarded-For counts where the peer is a trusted proxy. */
  readonly hasProxies: boolean;
}

export interface CredentialOptions extends AddressOptions {
  readonly authenticator: TokenAuthenticator;
  /** Null where nothing is limited. */
  readonly limiter: RateLimiter | null;
}

export function clientAddress(
  res: HttpResponse,
  forwardedFor: string,
  { addressOf, hasProxies }: AddressOptions,
): ClientAddress {
  const peer = Buffer.from(res.getRemoteAddressAsText()).toString("latin1");
  return addressOf(peer, hasProxies ? forwardedFor : "");
}

/** The holder of the request's token, or nobody and the reason. */
export interface Credentials {
  readonly principal: Principal | null;
  /** The error for a route that isn't public. */
  readonly refusal: unknown;
}

const ANONYMOUS: Credentials = { principal: null, refusal: null };
const refused = (refusal: unknown): Credentials => ({ principal: null, refusal });

/** Returns a promise where a signature must be verified first. @param header Authorization, "" where it is missing */
export function readCredentials(
  { route, template }: CompiledRoute,
  header: string,
  { authenticator, limiter }: CredentialOptions,
  address: () => ClientAddress,
  now: number,
): Credentials | Promise<Credentials> {
  if (route.access === "public") {
    // On most public routes a token only decides whose limit counts.
    const isUsed = route.knowsHolder || (limiter !== null && route.rateClass === "default" && !route.oauth);
    if (!isUsed || header === "") return ANONYMOUS;
  }
  try {
    // A forged token counts against its address: without allowance there, its signature isn't verified.
    const mayVerify = (): void => limiter?.checkRoom(template, route.rateClass, address().client, now);
    const found = authenticator.authenticateHeader(header, now, address, mayVerify);
    if (!(found instanceof Promise)) return { principal: found, refusal: null };
    return found.then((principal) => ({ principal, refusal: null }), refused);
  } catch (error) {
    return refused(error);
  }
}

/** Counts the request, a user's by user and all others by address, and admits it to the route. @throws ApiError */
export function admit(
  compiled: CompiledRoute,
  reply: Reply,
  { client }: ClientAddress,
  limiter: RateLimiter | null,
  { principal, refusal }: Credentials,
  now: number,
): Principal | null {
  const { route } = compiled;
  // Where the body names what is counted, the body's reader counts it.
  if (limiter !== null && !compiled.countsBody) {
    reply.rate = countRequest(limiter, compiled, principal, client, now, "");
  }
  if (route.access === "public") return principal;
  if (principal === null) throw refusal;
  authorize(route, principal);
  return principal;
}

/** Checks again once the body is there: seconds may have passed, and the token may be revoked by now. @throws ApiError */
export function checkStillAdmitted(
  route: Route,
  { principal, now }: RouteRequest,
  authenticator: TokenAuthenticator,
): void {
  if (principal === null || route.access === "public") return;
  authenticator.checkLive(principal, now);
  authorize(route, principal);
}
