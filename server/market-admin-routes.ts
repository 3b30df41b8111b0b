/** Operators' routes of markets and events: proposals, the life of a market, its resolution. */
import type { Route } from "./route.ts";

export function createMarketAdminRoutes(): Route[] {
  return [];
}
