/** A trade as JSON text, the same in `GET /markets/:id/trades` and in `trade.created`. */
import { MATCH_TYPES } from "../../engine/constants.ts";
import type { Trade } from "./types.ts";

/** By code of constants.ts: written once, so that no trade has to encode it. */
const MATCH_TYPE_JSON = MATCH_TYPES.map((name) => JSON.stringify(name));

export function tradeJson(marketId: number, trade: Trade): string {
  const { matchId, outcomeId, side, price, quantity, matchType, at } = trade;
  return `{"id":${matchId},"market_id":${marketId},"outcome_id":${outcomeId},"side":${side},"price":${price},"quantity":${quantity},"match_type":${MATCH_TYPE_JSON[matchType]},"created_at":${at}}`;
}
