/** Authenticates OAuth clients at the token, revocation and introspection endpoints: RFC 6749, section 2.3. */
import type { Accounts } from "../accounts/accounts.ts";
import { isHashOf } from "../accounts/token-hash.ts";
import type { OAuthClient } from "../accounts/types.ts";
import type { OAuthResponse, Params } from "./types.ts";

/** RFC 6749, section 5.1; the server adds `Cache-Control` to every response. */
export const NO_STORE = { Pragma: "no-cache" };

/** The client, if it sends its secret, or has none and sends none; null otherwise. */
export function authenticateClient(accounts: Accounts, id: string, secret: string | undefined): OAuthClient | null {
  const client = accounts.clientByName(id);
  if (client === undefined) return null;
  const { secretHash } = client.row;
  if (secretHash === null) return secret === undefined || secret === "" ? client : null;
  return isHashOf(secretHash, secret ?? "") ? client : null;
}

/** The same with the credentials of a form. */
export function authenticateForm(accounts: Accounts, params: Params): OAuthClient | null {
  return authenticateClient(accounts, params["client_id"] ?? "", params["client_secret"]);
}

/**
 * Copies a client's credentials from the Authorization header into the form, decoded as RFC 6749, section 2.3.1,
 * encodes them. Returns an error response when both carry credentials.
 */
export function withHeaderCredentials(
  params: Params,
  authorization: string,
): { readonly params: Params } | OAuthResponse {
  if (authorization === "") return { params };
  const [, encoded] = /^basic ([A-Za-z0-9+/=_-]+)$/i.exec(authorization) ?? [];
  if (encoded === undefined) return invalidClient(authorization);
  const [id = "", ...secret] = Buffer.from(encoded, "base64").toString().split(":").map(formDecoded);
  if ("client_secret" in params || (params["client_id"] ?? id) !== id) {
    const description = "Invalid request: client credentials in both the header and the form";
    return { status: 400, body: { error: "invalid_request", error_description: description }, headers: NO_STORE };
  }
  return { params: { ...params, client_id: id, client_secret: secret.join(":") } };
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** RFC 6749, section 5.2. */
export function invalidClient(authorization: string): OAuthResponse {
  const body = { error: "invalid_client", error_description: "Invalid client: client is invalid" };
  const headers = authorization === "" ? NO_STORE : { ...NO_STORE, "WWW-Authenticate": 'Basic realm="oauth"' };
  return { status: 401, body, headers };
}
