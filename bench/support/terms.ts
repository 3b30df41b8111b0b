/** The terms of seeded accounts in benchmarks: what a tier allows a person a day would end a load test in a second. */
import { MAX_MONEY_MICRO } from "../../engine/limits.ts";
import { MAX_OWN_LIVE_ORDERS } from "../../server/accounts/limits.ts";

export const UNBOUNDED_TERMS = { daily_limit: MAX_MONEY_MICRO, max_live_orders: MAX_OWN_LIVE_ORDERS };
