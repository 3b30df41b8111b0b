/**
 * Time-based one-time passwords: RFC 6238 with the parameters that every authenticator app supports, HMAC-SHA-1, six
 * digits and steps of 30 s. Pure: reads no clock and stores no code.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export const STEP_MS = 30_000;
const DIGITS = 6;
/** 160 bits, as RFC 4226 recommends (section 4, R6). */
export const SECRET_BYTES = 20;
/** Steps before and after the current one that are accepted too: clocks differ, and people type slowly. */
const WINDOW = 1;
const BASE_32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** The code of a time step (RFC 4226, section 5.3). */
export function codeAt(secret: Uint8Array, step: number, digits = DIGITS): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac("sha1", secret).update(counter).digest();
  const number = mac.readUInt32BE(mac[mac.length - 1]! & 15) & 0x7fff_ffff;
  return String(number % 10 ** digits).padStart(digits, "0");
}

/**
 * The time step of this code, near `now` (ms) and after `lastStep`, because a code works only once (RFC 6238, section
 * 5.2). Null for a wrong code. The timing does not reveal how much of the code is right.
 * @param code six digits
 */
export function matchStep(secret: Uint8Array, code: string, now: number, lastStep: number): number | null {
  const current = Math.floor(now / STEP_MS);
  const digits = Buffer.from(code);
  let found: number | null = null;
  for (let step = current - WINDOW; step <= current + WINDOW; step++) {
    const isSame = timingSafeEqual(Buffer.from(codeAt(secret, step)), digits);
    if (isSame && step > lastStep) found = step;
  }
  return found;
}

/** RFC 4648, section 6, without padding. */
export function base32(bytes: Uint8Array): string {
  let text = "";
  let held = 0;
  let bits = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += BASE_32[(held >> (bits - 5)) & 31];
    held &= (1 << bits) - 1;
  }
  return bits === 0 ? text : text + BASE_32[(held << (5 - bits)) & 31];
}

/** The URI that an authenticator app reads from a QR code: github.com/google/google-authenticator/wiki/Key-Uri-Format. */
export function totpUri(secret: Uint8Array, issuer: string, account: string): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
  return `otpauth://totp/${label}?secret=${base32(secret)}&issuer=${encodeURIComponent(issuer)}`;
}
