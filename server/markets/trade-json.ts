import { MATCH_TYPE_JSON } from "../trading/order-json.ts";
import type { Trade } from "./types.ts";

/** As `GET /markets/:id/trades` and `trade.created` show it. */

export function tradeJson(marketId: number, trade: Trade): string {
  const { matchId, outcomeId, side, price, quantity, matchType, at } = trade;
  return `{"id":${matchId},"market_id":${marketId},"outcome_id":${outcomeId},"side":${side},"price":${price},"quantity":${quantity},"match_type":${MATCH_TYPE_JSON[matchType]},"created_at":${at}}`;
}
