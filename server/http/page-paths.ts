/** The paths of the site, for its router and for the server, which responds 404 to any other path. */
export const PAGE_PATHS = [
  "/",
  "/markets/:market",
  "/events/:event",
  "/search",
  "/portfolio",
  "/wallet",
  "/propose",
  "/sign-in",
  "/sign-in/done",
  "/sign-up",
  "/verify-email",
  "/welcome",
  "/forgot-password",
  "/reset-password",
  "/account",
  "/account/tokens",
  "/account/apps",
  "/account/sessions",
  "/account/security",
  "/unsubscribe/:token",
  "/consent",
  "/desk",
  "/desk/:section",
  "/docs",
  "/docs/:document",
] as const;
export type PagePath = (typeof PAGE_PATHS)[number];

const PATTERNS = PAGE_PATHS.map((path) => ({
  path,
  pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "([^/]+)")}$`),
}));

export interface FoundPath {
  readonly path: PagePath;
  /** Decoded path parameter, "" if there is none. */
  readonly param: string;
}

/** Finds the page at a path; null if there is none. */
export function findPage(pathname: string): FoundPath | null {
  for (const { path, pattern } of PATTERNS) {
    const match = pattern.exec(pathname);
    if (match === null) continue;
    try {
      return { path, param: decodeURIComponent(match[1] ?? "") };
    } catch {
      return null;
    }
  }
  return null;
}
