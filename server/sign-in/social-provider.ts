/** Providers of sign-ins, as the operator's settings name them, and what a sign-in with one of them knows. */
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

/** A sign-in in progress: the browser is at the provider. */
export interface Attempt {
  readonly provider: SocialProvider;
  /** SHA-256, so that a memory dump does not suffice to finish a stranger's sign-in. */
  readonly bindingHash: Buffer;
  readonly nonce: string;
  readonly codeVerifier: string;
  readonly returnTo: string | null;
  readonly expiresAt: number;
}

const PROVIDER_NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const COUNTRY_CODE = /^[A-Z]{2}$/;
/** Providers on this machine, which need no TLS. */
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

function isCountryList(value: unknown): value is readonly string[] {
  const isCode = (code: unknown): boolean => typeof code === "string" && COUNTRY_CODE.test(code);
  return Array.isArray(value) && value.length > 0 && value.every(isCode);
}

export function isLoopbackHttp(url: URL): boolean {
  return url.protocol === "http:" && LOOPBACK_HOSTS.includes(url.hostname);
}
