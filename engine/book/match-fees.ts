/**
 * The sellers' fees of one match, which bound the rebates of its resting orders. Read from the fills of the match, which
 * are consecutive in an event ring and published together. Never looks up users.
 */
import { Side } from "../constants.ts";
import { ownFeeMicro, tradingFeeMicro } from "../money.ts";
import * as R from "../ring/records.ts";

/** The seller's fee of one fill, micro-USDC. @param rates the seller's individual rates (records.ts), or 0 */
export function sellerFeeMicro(priceBps: number, quantity: number, rates: number): number {
  return rates === 0 ? tradingFeeMicro(priceBps, quantity) : ownFeeMicro(priceBps, quantity, R.feeOf(rates));
}

/** The first word of the record after the one at `w`, in a ring of `words`. */
export function nextRecord(words: Int32Array, w: number): number {
  return w + R.RECORD_WORDS === words.length ? 0 : w + R.RECORD_WORDS;
}

/** The fees of the match whose first fill is at word `w`, micro-USDC; 0 for a mint, which has no seller. */
export function matchFeesMicro(words: Int32Array, w: number): number {
  let fees = 0;
  for (let fill = w; ; fill = nextRecord(words, fill)) {
    const packed = words[fill]!;
    if (R.sideOf(packed) === Side.sell) {
      fees += sellerFeeMicro(
        words[fill + R.W_PRICE]!,
        words[fill + R.W_QUANTITY]!,
        R.ratesOf(words[fill + R.W_REFERENCE]!),
      );
    }
    if ((packed & R.FLAG_MATCH_END) !== 0) return fees;
  }
}
