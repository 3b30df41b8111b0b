/**
 * OpenID Connect with a provider: its configuration, the page that the browser goes to, and who came back from it. The only
 * user of the library, which one exchange in many needs.
 */
import assert from "node:assert";
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
import { ApiError, ErrorKind } from "../errors.ts";
import { MAX_EMAIL_LENGTH } from "../http/limits.ts";
import { type Attempt, isLoopbackHttp, type SocialIdentity, type SocialProvider } from "./social-provider.ts";

/** Limit of each request to a provider, body included. */
const REQUEST_TIMEOUT_S = 5;
const MAX_RESPONSE_BYTES = 1024 * 1024;
const RETRY_AFTER_S = 1;
export async function discover(provider: SocialProvider): Promise<Configuration> {
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

/** The provider's page, and what its code is redeemed with. */
export async function beginSignIn(
  configuration: Configuration,
  redirectUri: string,
  scope: string,
  state: string,
  nonce: string,
): Promise<{ readonly location: URL; readonly codeVerifier: string }> {
  const codeVerifier = randomPKCECodeVerifier();
  const location = buildAuthorizationUrl(configuration, {
    redirect_uri: redirectUri,
    ...{ scope, state, nonce },
    code_challenge: await calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: "S256",
  });
  return { location, codeVerifier };
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
export async function identify(configuration: Configuration, callback: URL, attempt: Attempt): Promise<SocialIdentity> {
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

export function failure(provider: SocialProvider, error: unknown): ApiError {
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
