/** Authentication method references (RFC 8176), as access tokens (`amr`) and the sessions table contain them. */
import type { ProofMethod } from "./types.ts";

/** Multiple factors. */
const SECOND_FACTOR = "mfa";
const OF_PROOF: Readonly<Record<ProofMethod, string>> = { totp: "otp", recovery_code: "otp", passkey: "pop" };

/** @param method of the first step, such as "password" @returns space-separated references, null for none */
export function amrOf(method: string, by: ProofMethod | null): string | null {
  const words = method === "password" ? ["pwd"] : [];
  if (by !== null) words.push(OF_PROOF[by], SECOND_FACTOR);
  return words.length === 0 ? null : words.join(" ");
}

export const hasSecondFactor = (amr: string | null): boolean => amr?.split(" ").includes(SECOND_FACTOR) ?? false;
