/** Which redirect URIs a client may register. */

import { badRequest } from "../errors.ts";
import { MAX_REDIRECT_BYTES } from "./limits.ts";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** The distinct URIs, one a line, as a client's row stores them. @throws ApiError 40000 */
export function redirectUriText(uris: readonly string[]): string {
  for (const uri of uris) checkRedirectUri(uri);
  const text = [...new Set(uris)].join("\n");
  if (Buffer.byteLength(text) > MAX_REDIRECT_BYTES) {
    throw badRequest(`redirect_uris: at most ${MAX_REDIRECT_BYTES} bytes in total`);
  }
  return text;
}

/** HTTPS, HTTP on the user's own machine, or an app's own scheme (RFC 8252). @throws ApiError 40000 */
function checkRedirectUri(uri: string): void {
  const url = URL.canParse(uri) ? new URL(uri) : null;
  const isOwnScheme = url !== null && /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(url.protocol);
  const isWeb = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.includes(url.hostname));
  if (
    url === null ||
    !(isWeb || isOwnScheme) ||
    /[\p{Cc}\s#*\\]/u.test(uri) ||
    url.username !== "" ||
    url.password !== ""
  ) {
    throw badRequest(
      "redirect_uris: each must be an https URL, an http URL on localhost, or use an app's own scheme; # and * are not allowed",
    );
  }
}
