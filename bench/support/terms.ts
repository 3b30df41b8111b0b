/** The terms of seeded accounts in benchmarks: the daily limit of a tier would end a load test within a second. */
import { MAX_MONEY_MICRO } from "../../engine/limits.ts";
import { MAX_OWN_LIVE_ORDERS } from "../../server/accounts/limits.ts";

export const UNBOUNDED_TERMS = { daily_limit: MAX_MONEY_MICRO, max_live_orders: MAX_OWN_LIVE_ORDERS };
