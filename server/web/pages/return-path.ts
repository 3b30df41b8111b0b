/** Where a sign-in leads: to the remaining verification steps, or back to the page the user came from. */
import { kept, keptInTab } from "../browser.ts";
import { here, sitePath } from "../router.ts";
import type { User } from "../types.ts";

/** Pages of the sign-in flow, which are no place to return to. */
const SIGN_IN_PAGES = /^\/(sign-in|sign-up|welcome|forgot-password|reset-password|verify-email)\b/;

/** Validates a return path. @param text value of a query parameter @returns a path of the site, "/" by default */
export function returnPath(text: string | null): string {
  const path = sitePath(text);
  return SIGN_IN_PAGES.test(path) ? "/" : path;
}

/** Returns the path of a sign-in page that later returns to the current page. */
export function withReturnPath(page: "/sign-in" | "/sign-up", to = returnPath(here())): string {
  return to === "/" ? page : `${page}?to=${encodeURIComponent(to)}`;
}

/** Pages for operators, who may not trade. */
const DESK = /^\/desk\b/;

/** The first page after a sign-in. @param to path of the site */
export const pathAfterSignIn = ({ kyc_tier }: User, to: string): string =>
  kyc_tier === 0 && !DESK.test(to) ? `/welcome?to=${encodeURIComponent(to)}` : to;

const STORAGE_KEY = "return-to";

/** Stores the return path across a sign-in at an identity provider, for this tab only; null removes it. */
export function storeReturnPath(path: string | null): void {
  keptInTab.set(STORAGE_KEY, path);
}

export function storedReturnPath(): string | null {
  return keptInTab.get(STORAGE_KEY);
}

const SIGN_UP_KEY = "sign-up-return-to";

/** Stores the return path across a sign-up, for every tab: the link in the email opens its own. Null removes it. */
export function storeSignUpPath(path: string | null): void {
  kept.set(SIGN_UP_KEY, path === "/" ? null : path);
}

/** The path that the sign-up in this browser came from; "/" without one. */
export const storedSignUpPath = (): string => returnPath(kept.get(SIGN_UP_KEY));
