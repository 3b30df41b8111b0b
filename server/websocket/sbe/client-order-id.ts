/** Client order ids as numbers: `7` and the text `"7"` name one order. A number has 64 bits, as two words; -1, -1 is null. */

const MAX_DIGITS = 20;
/** Digits that fit a number exactly. */
const EXACT_DIGITS = 15;
const NULL_ID = 2n ** 64n - 1n;

/** A client order id as clients are sent it: words, or a text beside null words. Reused from order to order. */
export class ClientOrderId {
  low = -1;
  high = -1;
  text: string | null = null;

  set(text: string | null): void {
    this.low = -1;
    this.high = -1;
    this.text = text;
    if (text === null || !isCanonical(text)) return;
    if (text.length <= EXACT_DIGITS) {
      const number = Number(text);
      this.low = number | 0;
      this.high = Math.floor(number * 2 ** -32) | 0;
    } else {
      const number = BigInt(text);
      if (number >= NULL_ID) return;
      this.low = Number(BigInt.asIntN(32, number));
      this.high = Number(BigInt.asIntN(32, number >> 32n));
    }
    this.text = null;
  }
}

/** Digits of a number, without leading zeros. */
function isCanonical(text: string): boolean {
  if (text.length > MAX_DIGITS || (text.length > 1 && text.charCodeAt(0) === 48)) return false;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return false;
  }
  return true;
}

/** The text of a number; null for the null value. */
export function textOfWords(low: number, high: number): string | null {
  if (low === -1 && high === -1) return null;
  const upper = high >>> 0;
  if (upper < 2 ** 21) return String(upper * 2 ** 32 + (low >>> 0));
  return String(BigInt(upper) * 2n ** 32n + BigInt(low >>> 0));
}
