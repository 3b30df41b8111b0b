/** Where a sign-in leads: to what is left to do before one may trade, or back to where one came from. */
import { here, sitePath } from "../router.ts";
import type { User } from "../types.ts";

/** Pages on the way to a sign-in: nobody wants to go back there. */
const SIGN_IN_PAGES = /^\/(sign-in|sign-up|welcome|forgot-password|reset-password|verify-email)\b/;

/** @param text as a parameter has it @returns a path of the page, "/" where it names none to come back to */
export function returnPath(text: string | null): string {
  const path = sitePath(text);
  return SIGN_IN_PAGES.test(path) ? "/" : path;
}

/** The path of a page that leads back to where one is now. @param page such as /sign-in */
export function withReturnPath(page: "/sign-in" | "/sign-up", to = returnPath(here())): string {
  return to === "/" ? page : `${page}?to=${encodeURIComponent(to)}`;
}

/** @param to a path of the page */
export const pathAfterSignIn = ({ kyc_tier }: User, to: string): string =>
  kyc_tier === 0 ? `/welcome?to=${encodeURIComponent(to)}` : to;

const STORAGE_KEY = "return-to";

/** Keeps where one goes after a sign-in at an identity provider, which may fail; null forgets. For this tab alone. */
export function storeReturnPath(path: string | null): void {
  if (path === null) sessionStorage.removeItem(STORAGE_KEY);
  else sessionStorage.setItem(STORAGE_KEY, path);
}

export function storedReturnPath(): string | null {
  return sessionStorage.getItem(STORAGE_KEY);
}
