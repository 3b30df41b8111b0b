/**
 * Sign-in at OpenID Connect providers: the code flow with PKCE, state and nonce. Returns the identity that the provider
 * authenticated; knows nothing of our users, our HTTP requests or cookies. Reads no clock, except that the library
 * checks the times in ID tokens against the system's. A restart drops attempts in progress.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Configuration } from "openid-client";
import { ApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { BoundedMap } from "../util/bounded-map.ts";
import type { Attempt, SocialIdentity, SocialProvider } from "./social-provider.ts";

/** The redirect that starts a sign-in. */
interface SocialStart {
  /** The provider's page. */
  readonly location: string;
  readonly state: string;
  /** A secret for a cookie of this browser, required to finish. */
  readonly binding: string;
}

interface SocialOptions {
  readonly providers: readonly SocialProvider[];
  /** The callback's URL, without a query, as it is registered with the provider. */
  readonly redirectUri: (provider: string) => string;
}

export const ATTEMPT_MS = 600_000;
export const MAX_ATTEMPTS = 10_000;
export const DISCOVERY_MS = 3_600_000;

interface Discovery {
  readonly configuration: Promise<Configuration>;
  readonly expiresAt: number;
}

export class SocialSignIn {
  private readonly providers: ReadonlyMap<string, SocialProvider>;
  private readonly redirectUri: (provider: string) => string;
  /** By state, oldest first; the first use removes it. */
  private readonly attempts = new BoundedMap<string, Attempt>(MAX_ATTEMPTS);
  /** By provider. */
  private readonly discoveries = new Map<string, Discovery>();

  constructor(options: SocialOptions) {
    this.providers = new Map(options.providers.map((provider) => [provider.name, provider]));
    this.redirectUri = options.redirectUri;
  }

  /** Names of the providers offered in a jurisdiction; null (unknown): those offered everywhere. */
  offered(jurisdiction: string | null): string[] {
    return [...this.providers.values()]
      .filter(({ jurisdictions }) => isOffered(jurisdictions, jurisdiction))
      .map(({ name }) => name);
  }

  /** The jurisdictions that some provider names, sorted by code. */
  jurisdictions(): string[] {
    const named = [...this.providers.values()].flatMap(({ jurisdictions }) => jurisdictions ?? []);
    return [...new Set(named)].sort();
  }

  /**
   * Starts a sign-in, which must finish within ten minutes.
   * @param jurisdiction a code of the provider's list, or null if it is unknown
   * @param now ms
   * @param returnTo the page to open after the sign-in; null if no page started it
   * @throws ApiError 4040 for an unknown provider, 40000 when a jurisdiction is required, 40300 when the provider is not
   * offered in it, 50300 when the provider cannot be reached
   */
  async start(
    providerName: string,
    jurisdiction: string | null,
    now: number,
    returnTo: string | null = null,
  ): Promise<SocialStart> {
    const provider = this.providers.get(providerName);
    if (provider === undefined) throw notFound("sign-in provider");
    if (!isOffered(provider.jurisdictions, jurisdiction)) {
      if (jurisdiction === null) throw badRequest(`jurisdiction: required for ${provider.name}`);
      throw new ApiError(ErrorKind.forbidden, `${provider.name} is not offered in this jurisdiction`);
    }
    const configuration = await this.configurationOf(provider, now);
    const [state, nonce, binding] = [randomSecret(), randomSecret(), randomSecret()];
    const { beginSignIn } = await openIdConnect();
    const redirectUri = this.callbackUrl(provider.name).href;
    const { location, codeVerifier } = await beginSignIn(configuration, redirectUri, provider.scope, state, nonce);
    const expiresAt = now + ATTEMPT_MS;
    this.attempts.set(state, { provider, bindingHash: hash(binding), nonce, codeVerifier, returnTo, expiresAt });
    return { location: location.href, state, binding };
  }

  /** The `returnTo` of `start` while the sign-in is in progress, else null. */
  returnTo(state: string): string | null {
    return this.attempts.get(state)?.returnTo ?? null;
  }

  /**
   * Finishes a sign-in, successfully or not: the first call with its state uses it up.
   * @param providerName the provider of the callback route
   * @param query of the callback, verbatim, with or without the question mark
   * @param binding the cookie's value, null without one: it prevents an attacker from signing a victim's browser in to
   * the attacker's account (RFC 9700, 4.7)
   * @throws ApiError 40100 for a state that is unknown, used, expired, another provider's or another browser's, a denial
   * by the provider, or invalid tokens; 50300 when the provider cannot be reached. The cause is a few words for the log,
   * without secrets.
   */
  async finish(providerName: string, query: string, binding: string | null, now: number): Promise<SocialIdentity> {
    const attempt = this.consume(new URLSearchParams(query).get("state") ?? "");
    if (
      attempt === undefined ||
      attempt.provider.name !== providerName ||
      now >= attempt.expiresAt ||
      !timingSafeEqual(hash(binding ?? ""), attempt.bindingHash)
    ) {
      throw new ApiError(ErrorKind.unauthenticated, "this browser has started no such sign-in in the last ten minutes");
    }
    const configuration = await this.configurationOf(attempt.provider, now);
    const callback = this.callbackUrl(providerName);
    callback.search = query;
    const { identify, failure } = await openIdConnect();
    try {
      return await identify(configuration, callback, attempt);
    } catch (error) {
      throw failure(attempt.provider, error);
    }
  }

  /** In one place, because the provider compares the URL of the start with the URL of the finish. */
  private callbackUrl(providerName: string): URL {
    return new URL(this.redirectUri(providerName));
  }

  private consume(state: string): Attempt | undefined {
    const attempt = this.attempts.get(state);
    this.attempts.delete(state);
    return attempt;
  }

  /** Caches a configuration for an hour, a failure not at all. @throws ApiError 50300 */
  private configurationOf(provider: SocialProvider, now: number): Promise<Configuration> {
    const known = this.discoveries.get(provider.name);
    if (known !== undefined && now < known.expiresAt) return known.configuration;
    const found: Discovery = { configuration: configure(provider), expiresAt: now + DISCOVERY_MS };
    this.discoveries.set(provider.name, found);
    found.configuration.catch(() => {
      if (this.discoveries.get(provider.name) === found) this.discoveries.delete(provider.name);
    });
    return found.configuration;
  }
}

/** Few exchanges offer such a sign-in: its library is loaded when it is first used. */
const openIdConnect = () => import("./openid-connect.ts");

async function configure(provider: SocialProvider): Promise<Configuration> {
  return (await openIdConnect()).discover(provider);
}

function isOffered(jurisdictions: readonly string[] | null, jurisdiction: string | null): boolean {
  return jurisdictions === null || (jurisdiction !== null && jurisdictions.includes(jurisdiction));
}

/** 256 random bits. */
function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}

function hash(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
