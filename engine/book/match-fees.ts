/**
 * The sellers' fees of one match, which bound the rebates of its resting orders. Read from the fills of the match, which
 * are consecutive in an event ring and published together. Never looks up users.
 */
import { Side } from "../constants.ts";
import { ownFeeMicro, tradingFeeMicro } from "../money.ts";
import { EngineEvent } from "../ring/engine-event.ts";
import { feeOf } from "../ring/records.ts";

/** The seller's fee of one fill, micro-USDC. @param rates the seller's individual rates (records.ts), or 0 */
export function sellerFeeMicro(priceBps: number, quantity: number, rates: number): number {
  return rates === 0 ? tradingFeeMicro(priceBps, quantity) : ownFeeMicro(priceBps, quantity, feeOf(rates));
}

const fill = new EngineEvent();

/** The fees of the match whose first fill is `first`, micro-USDC; 0 for a mint, which has no seller. */
export function matchFeesMicro(first: EngineEvent): number {
  let fees = 0;
  fill.atRecordOf(first);
  for (; ; fill.next()) {
    if (fill.side === Side.sell) fees += sellerFeeMicro(fill.price, fill.quantity, fill.rates);
    if (fill.endsMatch) return fees;
  }
}
