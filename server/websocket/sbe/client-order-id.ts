/** Client order ids as numbers: `7` and the text `"7"` name one order. A number has 64 bits, as two words; -1, -1 is null. */
import { type ClientOrderId, NUMERIC_IDS } from "../../../engine/ring/order-texts.ts";

const MAX_DIGITS = 20;
/** Digits that fit a number exactly. */
const EXACT_DIGITS = 15;
const NULL_ID = 2n ** 64n - 1n;

/** A client order id as clients are sent it: words, or a text beside null words. Reused from order to order. */
export class ClientOrderIdWords {
  low = -1;
  high = -1;
  text: string | null = null;

  set(id: ClientOrderId | null): void {
    if (typeof id === "number") return this.setNumber(id);
    const text = id;
    this.low = -1;
    this.high = -1;
    this.text = text;
    if (text === null || !isCanonical(text)) return;
    if (text.length <= EXACT_DIGITS) return this.setNumber(Number(text));
    const number = BigInt(text);
    if (number >= NULL_ID) return;
    this.low = Number(BigInt.asIntN(32, number));
    this.high = Number(BigInt.asIntN(32, number >> 32n));
    this.text = null;
  }

  private setNumber(number: number): void {
    this.low = number | 0;
    this.high = Math.floor(number * 2 ** -32) | 0;
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

/** The id of a number: itself where the exchange keeps it as one, otherwise its digits; null for the null value. */
export function idOfWords(low: number, high: number): ClientOrderId | null {
  if (low === -1 && high === -1) return null;
  const upper = high >>> 0;
  const number = upper * 2 ** 32 + (low >>> 0);
  if (number < NUMERIC_IDS) return number;
  return String(BigInt(upper) * 2n ** 32n + BigInt(low >>> 0));
}
