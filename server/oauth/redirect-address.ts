/** Which redirect URI of a request is a registered one. Pure text, so that the consent page compares as the server does. */

/** An HTTP URL on the user's own machine: what stands before its port, and the port. */
const LOOPBACK_PORT = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\]))(?::\d{1,5})?(?=[/?]|$)/;
/** A URL that ends without a path, or goes on with its query. */
const ORIGIN_ONLY = /^(https?:\/\/[^/?#]+)(?=\?|$)/;

/**
 * True if a request may redirect to `uri`: it equals a registered URI, where `https://a` and `https://a/` are one address,
 * and an HTTP URL on the user's own machine may have any port. Native apps listen on a port that the system gives them
 * (RFC 8252, section 7.3).
 */
export function isRegisteredAddress(registered: readonly string[], uri: string): boolean {
  if (!URL.canParse(uri)) return false;
  const wanted = withoutLoopbackPort(uri);
  return registered.some((each) => isSameAddress(withoutLoopbackPort(each), wanted));
}

/** True for equal URIs, and for those that differ only in the `/` after their host. */
export function isSameAddress(one: string, other: string): boolean {
  return withPath(one) === withPath(other);
}

function withoutLoopbackPort(uri: string): string {
  return uri.replace(LOOPBACK_PORT, "$1");
}

function withPath(uri: string): string {
  return uri.replace(ORIGIN_ONLY, "$1/");
}
