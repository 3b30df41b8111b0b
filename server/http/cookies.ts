/**
 * Cookies of the exchange: their names and attributes, and how to read them. None has a Domain, so that no other host of
 * the same site gets it. Knows no sessions and no sockets.
 */
import { parseCookie, stringifySetCookie } from "cookie";

/** Browsers accept this prefix over HTTPS only: neither another host nor plain HTTP can plant such a cookie. */
const SECURE_PREFIX = "__Host-";

interface CookieRules {
  /** Browsers never send "strict" cookies from another site, and "lax" ones only when a link there leads here. */
  readonly sameSite: "strict" | "lax";
  /** Seconds. */
  readonly maxAge: number;
}

/** Values are base64url and need no encoding. */
const asIs = (value: string): string => value;

/** The name as browsers know it. @param publicUrl of the exchange: with https, the cookie goes over HTTPS only */
function cookieName(name: string, publicUrl: string): string {
  return isSecure(publicUrl) ? SECURE_PREFIX + name : name;
}

/** The value of Set-Cookie. @param name without a prefix */
export function setCookie(name: string, value: string, { sameSite, maxAge }: CookieRules, publicUrl: string): string {
  const cookie = { name: cookieName(name, publicUrl), value, maxAge, path: "/", httpOnly: true, sameSite };
  return stringifySetCookie({ ...cookie, secure: isSecure(publicUrl) }, { encode: asIs });
}

/** The value of a cookie in a request; null where it is missing. @param header Cookie, "" where it is missing */
export function cookieIn(header: string, name: string, publicUrl: string): string | null {
  return parseCookie(header, { decode: asIs })[cookieName(name, publicUrl)] ?? null;
}

export function isSecure(publicUrl: string): boolean {
  return publicUrl.startsWith("https:");
}
