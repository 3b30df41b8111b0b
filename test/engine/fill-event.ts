/** An orderFilled event as the log gives it to a ledger. */
import { MatchType, OrderStatus, Role, Side } from "../../engine/constants.ts";
import { EngineEvent } from "../../engine/ring/engine-event.ts";
import * as R from "../../engine/ring/records.ts";

export interface Fill {
  readonly user: number;
  readonly outcome: number;
  readonly side: number;
  /** BPS. */
  readonly price: number;
  readonly quantity: number;
  readonly matchType: number;
  readonly role: number;
  readonly pat: boolean;
  readonly endsMatch: boolean;
  /** ms */
  readonly at: number;
  /** `R.packRates`; 0: the defaults. */
  readonly rates: number;
}

/** The only fill of a taker's direct match, unless `fill` says otherwise: user 1 buys 1 share of outcome 1 at 0.5. */
export function fillEvent(fill: Partial<Fill> = {}): EngineEvent {
  const { user = 1, outcome = 1, side = Side.buy, price = 5_000, quantity = 1 } = fill;
  const { matchType = MatchType.direct, role = Role.taker, pat = false, endsMatch = true, at = 0, rates = 0 } = fill;
  const words = new Int32Array(R.RECORD_WORDS);
  const flags = (pat ? R.FLAG_PAT : 0) | (endsMatch ? R.FLAG_MATCH_END : 0);
  words[R.W_PACKED] = R.packFill(side, OrderStatus.filled, matchType, role, flags);
  words[R.W_USER] = user;
  words[R.W_OUTCOME] = outcome;
  words[R.W_PRICE] = price;
  words[R.W_QUANTITY] = quantity;
  words[R.W_CORRELATION] = R.withRates(0, rates);
  const event = new EngineEvent().at(words, new Float64Array(words.buffer), 0);
  event.time = at;
  return event;
}
