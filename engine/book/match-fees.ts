/**
 * What the sellers of one match pay, which bounds what its resting orders get. Read from the fills of the match, which
 * stand next to each other in an event ring and are published together. Knows nothing of users.
 */
import { Side } from "../constants.ts";
import { ownFeeMicro, tradingFeeMicro } from "../money.ts";
import * as R from "../ring/records.ts";

/** The seller's fee of one fill, micro-USDC. @param rates the seller's own (records.ts), or 0 */
export function sellerFeeMicro(priceBps: number, quantity: number, rates: number): number {
  return rates === 0 ? tradingFeeMicro(priceBps, quantity) : ownFeeMicro(priceBps, quantity, R.feeOf(rates));
}

/** The first word of the record after the one at `w`, in a ring of `words`. */
export function nextRecord(words: Int32Array, w: number): number {
  return w + R.RECORD_WORDS === words.length ? 0 : w + R.RECORD_WORDS;
}

/** The fees of the match whose first fill stands at word `w`, micro-USDC; 0 of a mint, which has no seller. */
export function matchFeesMicro(words: Int32Array, w: number): number {
  let fees = 0;
  for (let at = w; ; at = nextRecord(words, at)) {
    const packed = words[at]!;
    if (R.sideOf(packed) === Side.sell) {
      fees += sellerFeeMicro(words[at + R.W_PRICE]!, words[at + R.W_QUANTITY]!, R.ratesOf(words[at + R.W_REFERENCE]!));
    }
    if ((packed & R.FLAG_MATCH_END) !== 0) return fees;
  }
}
