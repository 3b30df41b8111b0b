/**
 * The header lines of every response: nothing is stored, framed, sniffed or executed, which origins' pages may read it, and
 * how long its connection stays open. The text never changes; it is built once and written as one header. Knows no sockets.
 *
 * Tokens travel in the Authorization header, so any page may act for a user whose token it has. The exceptions are the
 * routes that create and keep sessions (`isForOwnPages`): only pages of PUBLIC_URL may use them, and their refresh token
 * may be in a cookie (session-cookie.ts). No response lets a page of another origin use cookies.
 */
import { isSecure } from "./cookies.ts";
import { KEEP_ALIVE_S } from "./limits.ts";
import type { Route } from "./route.ts";

/** The headers that a page may read. */
const EXPOSED = [
  ...["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", "X-Request-Id"],
  ...["Sunset", "Deprecation", "Link", "Content-Disposition", "ETag", "Accept-Ranges", "Content-Range"],
  "Exchange-Active",
].join(", ");
/** The headers that a page may send: any. Browsers ask for Authorization by name, and old ones for each. */
const ALLOWED = "Authorization, Content-Type, Accept, X-Request-Id, X-Builder-Code, Idempotency-Key, *";
/** The methods of the API and the site. */
export const METHODS: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
/** How long a browser may cache a preflight's response, s: the longest that every browser accepts. */
const PREFLIGHT_AGE_S = 7_200;
const HTTPS_ONLY_S = 31_536_000;
const NO_STORE = "no-store";

/** Routes that only sessions may use, or that create one; and metrics, which only the network's border protects. */
export function isForOwnPages({ access, tokens, path }: Route): boolean {
  if (access === "public") return path.startsWith("/auth/") || path === "/metrics";
  return access === "operator" || !tokens.includes("pat");
}

/** Header lines of every response, the site's files included. */
export function commonLines(publicUrl: string, cache: string, contentSecurityPolicy: string): string[] {
  const lines = [
    `Cache-Control: ${cache}`,
    "X-Content-Type-Options: nosniff",
    `Content-Security-Policy: ${contentSecurityPolicy}`,
    "Referrer-Policy: no-referrer",
    "Cross-Origin-Resource-Policy: same-origin",
    `Keep-Alive: timeout=${KEEP_ALIVE_S}`,
  ];
  if (isSecure(publicUrl)) lines.push(`Strict-Transport-Security: max-age=${HTTPS_ONLY_S}`);
  return lines;
}

export class SecurityHeaders {
  private readonly publicUrl: () => string;
  private readonly texts = { own: new Map<string, string>(), open: new Map<string, string>() };
  private ownOrigin: string | null = null;

  /** @param publicUrl known once the server listens */
  constructor(publicUrl: () => string) {
    this.publicUrl = publicUrl;
  }

  /** The value of Content-Type, with all lines that follow it. @param isOwn pages of other origins may not read it */
  typeLines(type: string, isOwn: boolean, cache = NO_STORE): string {
    const texts = isOwn ? this.texts.own : this.texts.open;
    let found = texts.get(type);
    if (found === undefined || cache !== NO_STORE) {
      const origin = isOwn ? this.origin : "*";
      const lines = [...this.common(cache), ...this.forOrigin(origin)];
      found = [type, ...lines].join("\r\n");
      if (cache === NO_STORE) texts.set(type, found);
    }
    return found;
  }

  /**
   * The value of Allow and all lines that follow it: the response to a preflight lists the methods of a path that a page
   * of this origin may send: to use them, or to read why the path rejects them.
   * @param open methods for all pages @param own for pages of PUBLIC_URL only
   */
  allowLines(origin: string, open: readonly string[], own: readonly string[]): string {
    const isOwn = origin !== "" && origin === this.origin;
    const allow = [...open, ...own].join(", ");
    const methods = isOwn ? METHODS : open.length === 0 ? [] : METHODS.filter((method) => !own.includes(method));
    const lines = methods.length === 0 ? [] : this.forOrigin(isOwn ? origin : "*");
    if (methods.length > 0) {
      lines.push(`Access-Control-Allow-Methods: ${methods.join(", ")}`);
      lines.push(`Access-Control-Allow-Headers: ${ALLOWED}`, `Access-Control-Max-Age: ${PREFLIGHT_AGE_S}`);
    }
    return [allow, "Vary: Origin", ...this.common(NO_STORE), ...lines].join("\r\n");
  }

  /** True for a page of another site. @param host of the request: the exchange may have other names than PUBLIC_URL's */
  isForeign(origin: string, host: string): boolean {
    if (origin === "" || origin === this.origin) return false;
    return origin !== `http://${host}` && origin !== `https://${host}`;
  }

  private get origin(): string {
    this.ownOrigin ??= new URL(this.publicUrl()).origin;
    return this.ownOrigin;
  }

  private common(cache: string): string[] {
    return commonLines(this.publicUrl(), cache, "default-src 'none'; frame-ancestors 'none'");
  }

  private forOrigin(origin: string): string[] {
    return [`Access-Control-Allow-Origin: ${origin}`, `Access-Control-Expose-Headers: ${EXPOSED}`];
  }
}
