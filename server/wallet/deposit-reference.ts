/**
 * The reference that names a user in a payment: a creditor reference (ISO 11649), which banks know and whose check digits
 * reveal a mistyped one. Imports nothing: the web page reads it too.
 */

/** Before the user's id. */
const OWN = "PX";
const REFERENCE = /^RF(\d\d)PX([1-9]\d{0,14})$/;
const MODULUS = 97n;

/** The text as a number, a letter as two digits: A is 10, Z is 35. */
const numeric = (text: string): bigint => BigInt(text.replaceAll(/[A-Z]/g, (letter) => String(parseInt(letter, 36))));

/** For example RF90PX20418. */
export function depositReference(userId: number): string {
  const check = MODULUS + 1n - (numeric(`${OWN}${userId}RF00`) % MODULUS);
  return `RF${String(check).padStart(2, "0")}${OWN}${userId}`;
}

/** The user's id; null for a text that is no such reference. Spaces and case don't count. */
export function userOfReference(text: string): number | null {
  const reference = text.replaceAll(/\s/g, "").toUpperCase();
  const [, check = "", id = ""] = REFERENCE.exec(reference) ?? [];
  return id !== "" && numeric(`${OWN}${id}RF${check}`) % MODULUS === 1n ? Number(id) : null;
}
