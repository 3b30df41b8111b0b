/** Tokens are stored as their SHA-256 only, so that nobody who reads the database can use one. */
import { createHash, timingSafeEqual } from "node:crypto";

export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** True if `hash` is the token's. The comparison takes the same time whatever differs. */
export function isHashOf(hash: string, token: string): boolean {
  return timingSafeEqual(Buffer.from(hashToken(token), "hex"), Buffer.from(hash, "hex"));
}
