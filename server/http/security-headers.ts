/**
 * What every answer tells browsers and caches beside its content: nothing is kept, framed, sniffed or run, and pages of
 * which origins may read it. Text that never changes, made once and written as one header with lines of its own; knows no
 * sockets.
 *
 * Tokens travel in the Authorization header, so any page may call as whom it has a token of. Not so where sessions are
 * made and kept (`isForOwnPages`): there only pages of PUBLIC_URL have business, whose refresh token may be in a cookie
 * (session-cookie.ts). No answer lets a page of another origin use cookies.
 */
import { isSecure } from "./cookies.ts";
import type { Route } from "./route.ts";

/** What a page may read of an answer beside its body. */
const EXPOSED = [
  ...["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", "X-Request-Id"],
  ...["Sunset", "Deprecation", "Link", "Content-Disposition"],
].join(", ");
/** What a page may send. */
const ALLOWED = "Authorization, Content-Type, Accept, X-Request-Id, X-Builder-Code, Idempotency-Key";
/** How long a browser may remember a preflight's answer: the longest that all of them take. */
const PREFLIGHT_AGE_S = 7_200;
const HTTPS_ONLY_S = 31_536_000;
const NO_STORE = "no-store";

/** Routes that take a session and nothing else, or that lead to one; and metrics, which only a network's border guards. */
export function isForOwnPages({ access, tokens, path }: Route): boolean {
  if (access === "public") return path.startsWith("/auth/") || path === "/metrics";
  return access === "operator" || !tokens.includes("pat");
}

/** Header lines of every answer, those with the page's files too. */
export function commonLines(publicUrl: string, cache: string, contentSecurityPolicy: string): string[] {
  const lines = [
    `Cache-Control: ${cache}`,
    "X-Content-Type-Options: nosniff",
    `Content-Security-Policy: ${contentSecurityPolicy}`,
    "Referrer-Policy: no-referrer",
    "Cross-Origin-Resource-Policy: same-origin",
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
   * The value of Allow, with all lines that follow it: the answer to a preflight says which methods of a path a page of
   * that origin may use. @param open methods for all @param own for pages of PUBLIC_URL only
   */
  allowLines(origin: string, open: readonly string[], own: readonly string[]): string {
    const isOwn = origin !== "" && origin === this.origin;
    const methods = isOwn ? [...open, ...own] : open;
    const allow = [...open, ...own].join(", ");
    const lines = methods.length === 0 ? [] : this.forOrigin(isOwn ? origin : "*");
    if (methods.length > 0) {
      lines.push(`Access-Control-Allow-Methods: ${methods.join(", ")}`);
      lines.push(`Access-Control-Allow-Headers: ${ALLOWED}`, `Access-Control-Max-Age: ${PREFLIGHT_AGE_S}`);
    }
    return [allow, "Vary: Origin", ...this.common(NO_STORE), ...lines].join("\r\n");
  }

  /** A page of another site asks. @param host of the request: the exchange may have more names than PUBLIC_URL says */
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
