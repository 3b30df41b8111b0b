/** Where a sign-in leads: to what is left to do before one may trade, or back to where one came from. */
import type { User } from "../types.ts";

/** @param to a path of the page */
export const afterSignIn = ({ kyc_tier }: User, to: string): string =>
  kyc_tier === 0 ? `/welcome?to=${encodeURIComponent(to)}` : to;

const KEPT = "return-to";

/** Keeps a path that is too long to go along to an identity provider; null forgets. For this tab alone. */
export function keepReturn(path: string | null): void {
  if (path === null) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, path);
}

export function keptReturn(): string | null {
  return sessionStorage.getItem(KEPT);
}
