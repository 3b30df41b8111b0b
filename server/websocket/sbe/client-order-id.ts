/** Client order ids as numbers: `7` and the text `"7"` name one order. A number has 64 bits, as two words; -1, -1 is null. */
import { type ClientOrderId, NUMERIC_IDS, numericIdOf } from "../../../engine/ring/order-texts.ts";

/** Digits of a greater number, which is kept as a text. */
const GREAT_NUMBER = /^[1-9][0-9]{15,19}$/;
const NULL_ID = 2n ** 64n - 1n;

/** A client order id as clients are sent it: words, or a text beside null words. Reused from order to order. */
export class ClientOrderIdWords {
  low = -1;
  high = -1;
  text: string | null = null;

  set(id: ClientOrderId | null): void {
    const number = typeof id === "string" ? numericIdOf(id) : (id ?? -1);
    if (number >= 0) return this.setWords(number | 0, Math.floor(number * 2 ** -32) | 0);
    const great = typeof id === "string" && GREAT_NUMBER.test(id) ? BigInt(id) : NULL_ID;
    if (great < NULL_ID)
      return this.setWords(Number(BigInt.asIntN(32, great)), Number(BigInt.asIntN(32, great >> 32n)));
    this.setWords(-1, -1);
    this.text = id as string | null;
  }

  private setWords(low: number, high: number): void {
    this.low = low;
    this.high = high;
    this.text = null;
  }
}

/** The id of a number: itself where the exchange keeps it as one, otherwise its digits; null for the null value. */
export function idOfWords(low: number, high: number): ClientOrderId | null {
  if (low === -1 && high === -1) return null;
  const upper = high >>> 0;
  const number = upper * 2 ** 32 + (low >>> 0);
  if (number < NUMERIC_IDS) return number;
  return String(BigInt(upper) * 2n ** 32n + BigInt(low >>> 0));
}
