/** The route that shows callers their own limits: KYC tier, fees, daily activity, live orders and rate limits. */

import type { TObject } from "typebox";
import { makerRebateBps, mergeFeeBps, tradingFeeBps } from "../../engine/money.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { RateLimiter } from "../http/rate-limiter.ts";
import { type Route, route } from "../http/route.ts";
import type { Exchange } from "./exchange.ts";
import { Limits } from "./schemas.ts";

export interface LimitsRouteContext {
  readonly exchange: Exchange;
  readonly accounts: Accounts;
  /** Null if the server limits no rates. */
  readonly limiter: RateLimiter | null;
  /** The merge fee of users without their own terms. */
  readonly defaultMergeFeeBps: number;
}

/** @param routes the whole route table, complete when the first request arrives */
export function createLimitsRoute(
  { exchange, limiter, accounts, defaultMergeFeeBps }: LimitsRouteContext,
  routes: () => readonly Route[],
): Route {
  return route({
    method: "GET",
    path: "/me/limits",
    summary:
      "The caller's KYC tier, fees, daily activity, live orders and rate limits, with the remaining allowance of each",
    access: "user",
    response: Limits,
    handler({ principal, address, now }) {
      const { userId, kycTier, dailyLimit: limit, maxLiveOrders, rateLimitFactor, pat, credential } = principal;
      const { client } = address;
      const { user } = credential;
      // A path that is also served at the root shares one bucket.
      const own = routes().filter(({ access }) => access !== "operator" || user.role === "operator");
      const counted = new Map(own.map((each) => [`${each.method} ${each.path}`, each]));
      const rates = [...counted].flatMap(([template, { rateClass, oauth, body }]) => {
        const owner = oauth ? null : userId;
        // If the body names no account, only the address counts.
        const named = "email" in ((body as TObject | null)?.properties ?? {}) ? user.email : "";
        const isKnown = rateClass === "identifier" && accounts.knownAddresses.has(userId, client, now);
        const ofUser = { userId: owner, factor: rateLimitFactor, identifier: named, isKnown };
        const states = limiter?.peek({ route: template, rateClass, address: client, now, ...ofUser }) ?? [];
        return states.map((state) => ({ route: template, ...state }));
      });
      const used = exchange.ledger.activityNow(userId, now);
      const fees = {
        trading_fee: tradingFeeBps(user),
        maker_rebate: makerRebateBps(user, pat),
        merge_fee: mergeFeeBps(user, defaultMergeFeeBps),
      };
      const live_orders = { used: exchange.store.liveOf(userId), limit: maxLiveOrders };
      const activity = { daily_activity: { used, limit }, live_orders };
      return JSON.stringify({ kyc_tier: kycTier, ...activity, fees, rate_limits: rates });
    },
  });
}
