/** Where a sign-in leads: to what is left to do before one may trade, or back to where one came from. */
import { here, ownPath } from "../router.ts";
import type { User } from "../types.ts";

/** Pages on the way to a sign-in: nobody wants to go back there. */
const ON_THE_WAY = /^\/(sign-in|sign-up|welcome|forgot-password|reset-password|verify-email)\b/;

/** @param text as a parameter has it @returns a path of the page, "/" where it names none to come back to */
export function returnPath(text: string | null): string {
  const path = ownPath(text);
  return ON_THE_WAY.test(path) ? "/" : path;
}

/** The path of a page that leads back to where one is now. @param page such as /sign-in */
export function leadingBack(page: "/sign-in" | "/sign-up", to = returnPath(here())): string {
  return to === "/" ? page : `${page}?to=${encodeURIComponent(to)}`;
}

/** @param to a path of the page */
export const afterSignIn = ({ kyc_tier }: User, to: string): string =>
  kyc_tier === 0 ? `/welcome?to=${encodeURIComponent(to)}` : to;

const KEPT = "return-to";

/** Keeps where one goes after a sign-in at an identity provider, which may fail; null forgets. For this tab alone. */
export function keepReturn(path: string | null): void {
  if (path === null) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, path);
}

export function keptReturn(): string | null {
  return sessionStorage.getItem(KEPT);
}
