/**
 * Sign-in at OpenID Connect providers: the code flow with PKCE, state and nonce. Returns the identity that the provider
 * authenticated; knows nothing of our users, our HTTP requests or cookies. Reads no clock, except that the library
 * checks the times in ID tokens against the system's. A restart drops attempts in progress.
 */
import assert from "node:assert";
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  type CustomFetchOptions,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  type IDToken,
  ResponseBodyError,
  randomPKCECodeVerifier,
} from "openid-client";
import { ApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { MAX_EMAIL_LENGTH } from "../http/limits.ts";
import { BoundedMap } from "../util/bounded-map.ts";
import { isObject } from "../util/is-object.ts";

export interface SocialProvider {
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** ISO 3166-1 alpha-2 codes; null: everywhere. */
  readonly jurisdictions: readonly string[] | null;
  readonly scope: string;
}

/** Who signed in: issuer and subject together identify one account forever, an email address does not. */
export interface SocialIdentity {
  readonly issuer: string;
  readonly subject: string;
  /** In lower case. */
  readonly email: string | null;
  /** True only if the provider itself states it for this address. */
  readonly emailVerified: boolean;
}

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
/** Limit of each request to a provider, body included. */
const REQUEST_TIMEOUT_S = 5;
const MAX_RESPONSE_BYTES = 1024 * 1024;
const RETRY_AFTER_S = 1;

const PROVIDER_NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const COUNTRY_CODE = /^[A-Z]{2}$/;
const LOOPBACK_HOSTS = ["127.0.0.1", "[::1]", "localhost"];
const PROVIDER_FIELDS = ["issuer", "client_id", "client_secret", "jurisdictions", "scope"];
const DEFAULT_SCOPE = "openid email";

/**
 * Reads `{"google": {"issuer", "client_id", "client_secret", "jurisdictions", "scope"}}`, the last two optional.
 * @throws Error naming the wrong field and its rule, never a value: a secret could be anywhere
 */
export function readSocialProviders(json: string): SocialProvider[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    // The parser's own message quotes the text.
    throw new Error("SOCIAL_PROVIDERS must be JSON");
  }
  if (!isObject(parsed)) throw new Error("SOCIAL_PROVIDERS must be a JSON object of providers by name");
  return Object.entries(parsed).map(([name, fields]) => readProvider(name, fields));
}

function readProvider(name: string, fields: unknown): SocialProvider {
  if (!PROVIDER_NAME.test(name)) {
    throw new Error(
      "SOCIAL_PROVIDERS: a provider's name must have 1 to 32 characters of a-z, 0-9, _ and -, starting with a letter",
    );
  }
  const wrong = (field: string, rule: string): Error => new Error(`SOCIAL_PROVIDERS: ${name}.${field} must be ${rule}`);
  if (!isObject(fields)) throw new Error(`SOCIAL_PROVIDERS: ${name} must be an object`);
  if (Object.keys(fields).some((field) => !PROVIDER_FIELDS.includes(field))) {
    throw new Error(`SOCIAL_PROVIDERS: ${name} has an unknown field; the known ones are ${PROVIDER_FIELDS.join(", ")}`);
  }
  const text = (field: string, fallback?: string): string => {
    const value = fields[field] ?? fallback;
    if (typeof value !== "string" || value === "") throw wrong(field, "a non-empty string");
    return value;
  };
  const issuer = text("issuer");
  const fault = issuerFault(issuer);
  if (fault !== null) throw wrong("issuer", fault);
  const jurisdictions = fields["jurisdictions"] ?? null;
  if (jurisdictions !== null && !isCountryList(jurisdictions)) {
    throw wrong("jurisdictions", "null, or a non-empty list of two-letter country codes in capitals");
  }
  const scope = text("scope", DEFAULT_SCOPE);
  if (!scope.split(" ").includes("openid")) throw wrong("scope", 'space-separated words that include "openid"');
  return {
    name,
    issuer,
    clientId: text("client_id"),
    clientSecret: text("client_secret"),
    jurisdictions,
    scope,
  };
}

/** What an issuer must be (OpenID Connect Core, 2: https, no query, no fragment); null if it is. */
function issuerFault(issuer: string): string | null {
  if (!URL.canParse(issuer)) return "a URL";
  const url = new URL(issuer);
  if (url.protocol !== "https:" && !isLoopbackHttp(url)) return "an https URL, or an http URL of a loopback host";
  if (url.username !== "" || url.password !== "") return "a URL without user and password";
  if (/[?#]/.test(issuer)) return "a URL without query and fragment";
  // The library would fetch such a URL without checking that the document names this issuer.
  if (url.pathname.includes("/.well-known/")) return "the issuer, not the URL of its discovery document";
  return null;
}

function isLoopbackHttp(url: URL): boolean {
  return url.protocol === "http:" && LOOPBACK_HOSTS.includes(url.hostname);
}

function isCountryList(value: unknown): value is readonly string[] {
  const isCode = (code: unknown): boolean => typeof code === "string" && COUNTRY_CODE.test(code);
  return Array.isArray(value) && value.length > 0 && value.every(isCode);
}

/** A sign-in in progress: the browser is at the provider. */
interface Attempt {
  readonly provider: SocialProvider;
  /** SHA-256, so that a memory dump does not suffice to finish a stranger's sign-in. */
  readonly bindingHash: Buffer;
  readonly nonce: string;
  readonly codeVerifier: string;
  readonly returnTo: string | null;
  readonly expiresAt: number;
}

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
    const codeVerifier = randomPKCECodeVerifier();
    const location = buildAuthorizationUrl(configuration, {
      redirect_uri: this.callbackUrl(provider.name).href,
      scope: provider.scope,
      state,
      nonce,
      code_challenge: await calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: "S256",
    });
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
    const found: Discovery = { configuration: discover(provider), expiresAt: now + DISCOVERY_MS };
    this.discoveries.set(provider.name, found);
    found.configuration.catch(() => {
      if (this.discoveries.get(provider.name) === found) this.discoveries.delete(provider.name);
    });
    return found.configuration;
  }
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

async function discover(provider: SocialProvider): Promise<Configuration> {
  const issuer = new URL(provider.issuer);
  // Otherwise the library does not check the signature of an ID token from the token endpoint.
  const execute = [enableNonRepudiationChecks];
  if (isLoopbackHttp(issuer)) execute.push(allowInsecureRequests);
  try {
    const configuration = await discovery(issuer, provider.clientId, undefined, clientAuth(provider.clientSecret), {
      execute,
      timeout: REQUEST_TIMEOUT_S,
      [customFetch]: fetchWhole,
    });
    // Throws if the document has no usable endpoint, before it is cached for an hour.
    buildAuthorizationUrl(configuration, {});
    return configuration;
  } catch (error) {
    throw unreachable(provider, reasonOf(error));
  }
}

/** In the body if the provider lists that method, which all implement alike; else in the header, the default. */
function clientAuth(secret: string): ClientAuth {
  const post = ClientSecretPost(secret);
  const basic = ClientSecretBasic(secret);
  return (server, client, body, headers) => {
    const takesPost = server.token_endpoint_auth_methods_supported?.includes("client_secret_post") === true;
    (takesPost ? post : basic)(server, client, body, headers);
  };
}

/** The provider did not respond, or not as a working server does. */
class Unreachable extends Error {}

/**
 * The library's `fetch`: reads the whole body within the request's timeout and a size bound, so that every network
 * failure surfaces here.
 */
async function fetchWhole(url: string, options: CustomFetchOptions): Promise<Response> {
  let response: Response;
  let body: Buffer;
  try {
    response = await fetch(url, options as RequestInit);
    body = await readBody(response);
  } catch (error) {
    throw error instanceof Unreachable ? error : new Unreachable(`no response: ${reasonOf(error)}`);
  }
  const { status, headers } = response;
  if (status >= 500 || status === 429) throw new Unreachable(`status ${status}`);
  return new Response(body.length === 0 ? null : new Uint8Array(body), { status, headers });
}

async function readBody(response: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > MAX_RESPONSE_BYTES) throw new Unreachable(`more than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Redeems the code; the library checks state, `iss`, PKCE, and the ID token: signature, nonce, audience and times. */
async function identify(configuration: Configuration, callback: URL, attempt: Attempt): Promise<SocialIdentity> {
  const tokens = await authorizationCodeGrant(configuration, callback, {
    expectedState: callback.searchParams.get("state") ?? "",
    expectedNonce: attempt.nonce,
    pkceCodeVerifier: attempt.codeVerifier,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  assert(claims !== undefined, "the request asked for an ID token");
  return { issuer: claims.iss, subject: claims.sub, ...(await readEmail(configuration, claims, tokens.access_token)) };
}

type Email = Pick<SocialIdentity, "email" | "emailVerified">;

/** From the ID token, or from userinfo if the token is incomplete; never combines the two. */
async function readEmail(configuration: Configuration, claims: IDToken, accessToken: string): Promise<Email> {
  const own = emailOf(claims);
  if (own.email !== null && claims["email_verified"] !== undefined) return own;
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return own;
  const other = emailOf(await fetchUserInfo(configuration, accessToken, claims.sub));
  return other.email === null ? own : other;
}

function emailOf(claims: Readonly<Record<string, unknown>>): Email {
  const email = claims["email"];
  const verified = claims["email_verified"];
  if (typeof email !== "string" || email.length > MAX_EMAIL_LENGTH || !email.includes("@")) {
    return { email: null, emailVerified: false };
  }
  // Some providers write the boolean as a string.
  return { email: lowerCase(email), emailVerified: verified === true || verified === "true" };
}

/** ASCII only: `toLowerCase` turns the Kelvin sign into a k, which would merge two mailboxes. */
function lowerCase(email: string): string {
  return email.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
}

function unreachable(provider: SocialProvider, reason: string): ApiError {
  return new ApiError(ErrorKind.overloaded, `${provider.name} cannot be reached`, RETRY_AFTER_S, reason);
}

function failure(provider: SocialProvider, error: unknown): ApiError {
  if (isUnreachable(error)) return unreachable(provider, reasonOf(error));
  const wasDenied = error instanceof AuthorizationResponseError && error.error === "access_denied";
  const message = wasDenied ? `the sign-in was denied at ${provider.name}` : `the sign-in with ${provider.name} failed`;
  return new ApiError(ErrorKind.unauthenticated, message, null, reasonOf(error));
}

/** The library wraps errors of its `fetch`. */
function isUnreachable(error: unknown): error is Error {
  return error instanceof Error && error.cause instanceof Unreachable;
}

/** Codes only: messages and causes of the library's errors can contain authorization codes, tokens and secrets. */
function reasonOf(error: unknown): string {
  if (error instanceof Unreachable) return error.message;
  if (isUnreachable(error)) return reasonOf(error.cause);
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) {
    return `${error.code} ${error.error}`;
  }
  if (!(error instanceof Error)) return "unknown";
  if ("code" in error && typeof error.code === "string") return error.code;
  // `fetch` names the network failure as its cause.
  return error.cause instanceof Error ? reasonOf(error.cause) : error.name;
}
