/**
 * Cookies: how they are named, set, taken away and read. Text only: knows no sessions and no sockets. None has a Domain, so
 * that no neighbour's host gets it.
 */

/** Over HTTPS neither another host nor plain HTTP can plant it. */
const SECURE_PREFIX = "__Host-";

interface CookieRules {
  /** "Strict" never comes along from another site, "Lax" when a link there leads here. */
  readonly sameSite: "Strict" | "Lax";
  /** Seconds. */
  readonly maxAge: number;
}

/** Its name as browsers know it. @param publicUrl of the service: by https the cookie goes over HTTPS only */
function cookieName(name: string, publicUrl: string): string {
  return isSecure(publicUrl) ? SECURE_PREFIX + name : name;
}

/** The value of Set-Cookie. @param name without a prefix */
export function setCookie(name: string, value: string, { sameSite, maxAge }: CookieRules, publicUrl: string): string {
  const cookie = `${cookieName(name, publicUrl)}=${value}; HttpOnly; SameSite=${sameSite}; Path=/; Max-Age=${maxAge}`;
  return isSecure(publicUrl) ? `${cookie}; Secure` : cookie;
}

/** The value of a cookie in a request; null where it has none. @param header Cookie, "" where it is missing */
export function cookieIn(header: string, name: string, publicUrl: string): string | null {
  const wanted = cookieName(name, publicUrl);
  for (const pair of header.split(";")) {
    const at = pair.indexOf("=");
    if (at >= 0 && pair.slice(0, at).trim() === wanted) return pair.slice(at + 1).trim();
  }
  return null;
}

export function isSecure(publicUrl: string): boolean {
  return publicUrl.startsWith("https:");
}
