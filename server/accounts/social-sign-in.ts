/**
 * Sign-in at OpenID Connect providers: the code flow with PKCE, state and nonce. Answers who the provider says has
 * signed in, and knows nothing of our users, of HTTP requests to us or of cookies. It reads no clock, except that the
 * library takes the system's for the times in ID tokens. Attempts are lost with the process.
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

export interface SocialProvider {
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** ISO 3166-1 alpha-2 codes; null is everywhere. */
  readonly jurisdictions: readonly string[] | null;
  readonly scope: string;
}

/** Who has signed in: issuer and subject together name one account for ever, an e-mail address does not. */
export interface SocialIdentity {
  readonly issuer: string;
  readonly subject: string;
  /** In lower case. */
  readonly email: string | null;
  /** True only where the provider itself says so of this address. */
  readonly emailVerified: boolean;
}

/** Where a browser goes to sign in. */
interface SocialStart {
  /** The provider's page. */
  readonly location: string;
  readonly state: string;
  /** A secret for a cookie of this browser, which it brings back to finish. */
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
/** Of each request to a provider, its body included. */
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
 * @throws Error that says which field is wrong and how, with no value in it, since a secret may stand anywhere
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

/** What an issuer must be (OpenID Connect Core, 2: https, no query, no fragment), where it is not. */
function issuerFault(issuer: string): string | null {
  if (!URL.canParse(issuer)) return "a URL";
  const url = new URL(issuer);
  if (url.protocol !== "https:" && !isLoopbackHttp(url)) return "an https URL, or an http URL of a loopback host";
  if (url.username !== "" || url.password !== "") return "a URL without user and password";
  if (/[?#]/.test(issuer)) return "a URL without query and fragment";
  // The library would take such a URL as it is, and not check that the document names this issuer.
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

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What is remembered of a browser that was sent to a provider. */
interface Attempt {
  readonly provider: SocialProvider;
  /** SHA-256: who reads our memory cannot finish a stranger's sign-in. */
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
  /** By state, oldest first; each is taken out on its first use. */
  private readonly attempts = new BoundedMap<string, Attempt>(MAX_ATTEMPTS);
  /** By provider. */
  private readonly discoveries = new Map<string, Discovery>();

  constructor(options: SocialOptions) {
    this.providers = new Map(options.providers.map((provider) => [provider.name, provider]));
    this.redirectUri = options.redirectUri;
  }

  /** Names of the providers offered in a jurisdiction; null, unknown, has only those that are offered everywhere. */
  offered(jurisdiction: string | null): string[] {
    return [...this.providers.values()]
      .filter(({ jurisdictions }) => isOffered(jurisdictions, jurisdiction))
      .map(({ name }) => name);
  }

  /** Where some are offered that aren't offered everywhere, in the order of their codes. */
  jurisdictions(): string[] {
    const named = [...this.providers.values()].flatMap(({ jurisdictions }) => jurisdictions ?? []);
    return [...new Set(named)].sort();
  }

  /**
   * Begins a sign-in, which is to be finished within ten minutes.
   * @param jurisdiction as in the provider's list, in capitals, or null where it is unknown
   * @param now milliseconds
   * @param returnTo where in the web page whoever signs in wants to go then; null where no page asks
   * @throws ApiError 4040 for an unknown provider, 40000 where a jurisdiction is needed, 40300 where the provider is
   * not offered in it, 50300 where the provider cannot be reached
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

  /** What `start` was told of the page, until the sign-in is finished; null too where no such sign-in is known. */
  returnTo(state: string): string | null {
    return this.attempts.get(state)?.returnTo ?? null;
  }

  /**
   * Ends a sign-in, well or not: its state is used up by the first call that brings it.
   * @param providerName the one whose callback the browser came to
   * @param query of the callback, as it came, with or without the question mark
   * @param binding the cookie's value, null where there is none: without it, whoever signs in at the provider could
   * have a victim's browser finish, and so sign the victim in to an account that is not its own (RFC 9700, 4.7)
   * @throws ApiError 40100 for a state that is unknown, used, expired, another provider's or another browser's, a
   * refusal by the provider, or tokens that do not hold; 50300 where the provider cannot be reached. The cause is a
   * few words for the log, with no secret in them.
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

  /** Written in one way, since the provider compares that of the start with that of the finish. */
  private callbackUrl(providerName: string): URL {
    return new URL(this.redirectUri(providerName));
  }

  private consume(state: string): Attempt | undefined {
    const attempt = this.attempts.get(state);
    this.attempts.delete(state);
    return attempt;
  }

  /** @throws ApiError 50300, which is not remembered, unlike what was found, which is for an hour */
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
  // The library leaves the signature of an ID token that comes straight from the token endpoint unchecked otherwise.
  const execute = [enableNonRepudiationChecks];
  if (isLoopbackHttp(issuer)) execute.push(allowInsecureRequests);
  try {
    const configuration = await discovery(issuer, provider.clientId, undefined, clientAuth(provider.clientSecret), {
      execute,
      timeout: REQUEST_TIMEOUT_S,
      [customFetch]: fetchWhole,
    });
    // Throws where the document has no usable endpoint, before it is kept for an hour.
    buildAuthorizationUrl(configuration, {});
    return configuration;
  } catch (error) {
    throw unreachable(provider, reasonOf(error));
  }
}

/** By the body where the provider lists that, which is what all understand alike, else by the header, the default. */
function clientAuth(secret: string): ClientAuth {
  const post = ClientSecretPost(secret);
  const basic = ClientSecretBasic(secret);
  return (server, client, body, headers) => {
    const takesPost = server.token_endpoint_auth_methods_supported?.includes("client_secret_post") === true;
    (takesPost ? post : basic)(server, client, body, headers);
  };
}

/** The provider did not answer, or not as a working server does. */
class Unreachable extends Error {}

/**
 * `fetch` for the library that reads the whole body, within the request's time-out and a bound, so that whatever
 * goes wrong with the network does so here.
 */
async function fetchWhole(url: string, options: CustomFetchOptions): Promise<Response> {
  let response: Response;
  let body: Buffer;
  try {
    response = await fetch(url, options as RequestInit);
    body = await readBody(response);
  } catch (error) {
    throw error instanceof Unreachable ? error : new Unreachable(`no answer: ${reasonOf(error)}`);
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
    expectedState: callback.searchParams.get("state")!,
    expectedNonce: attempt.nonce,
    pkceCodeVerifier: attempt.codeVerifier,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  assert(claims !== undefined, "an ID token was asked for");
  return { issuer: claims.iss, subject: claims.sub, ...(await readEmail(configuration, claims, tokens.access_token)) };
}

type Email = Pick<SocialIdentity, "email" | "emailVerified">;

/** What the ID token says, or where it leaves something out, what userinfo does; never one's address as the other's. */
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

/** ASCII only: `toLowerCase` makes the Kelvin sign a k, and so one mailbox of two. */
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

/** The library wraps what its `fetch` threw. */
function isUnreachable(error: unknown): error is Error {
  return error instanceof Error && error.cause instanceof Unreachable;
}

/** Codes only: the messages and causes of the library's errors carry codes, tokens and secrets. */
function reasonOf(error: unknown): string {
  if (error instanceof Unreachable) return error.message;
  if (isUnreachable(error)) return reasonOf(error.cause);
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) {
    return `${error.code} ${error.error}`;
  }
  if (!(error instanceof Error)) return "unknown";
  if ("code" in error && typeof error.code === "string") return error.code;
  // What `fetch` throws names the failure of the network as its cause.
  return error.cause instanceof Error ? reasonOf(error.cause) : error.name;
}
