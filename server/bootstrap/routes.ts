/**
 * The route table: every room's routes in one list. The router, the tests and the API documents read it; there is no
 * second list.
 */

import { type AccountRouteContext, createAccountRoutes } from "../accounts/routes.ts";
import type { Route } from "../http/route.ts";
import { createMarketAdminRoutes, type MarketAdminRouteContext } from "../markets/admin-routes.ts";
import { createProposalRoutes } from "../markets/proposal-routes.ts";
import { createMarketRoutes, type MarketRouteContext } from "../markets/routes.ts";
import { createWatchlistRoutes } from "../markets/watchlist-routes.ts";
import { createNotificationRoutes, type NotificationContext } from "../notifications/routes.ts";
import { createOAuthRoutes, type OAuthRouteContext } from "../oauth/routes.ts";
import { createOperatorRoutes, type OperatorRouteContext } from "../operators/routes.ts";
import { createServiceRoutes, type ServiceRouteContext } from "../operators/service-routes.ts";
import { createDocumentRoutes } from "../reference/routes.ts";
import { type AccessRouteContext, createAccessRoutes } from "../sign-in/routes.ts";
import { createLimitsRoute, type LimitsRouteContext } from "../trading/limits-route.ts";
import { createOrderRoutes, type OrderRouteContext } from "../trading/routes.ts";
import { createMoneyAdminRoutes } from "../wallet/admin-routes.ts";
import type { MoneyAdminContext } from "../wallet/payment-routes.ts";
import { createWalletRoutes } from "../wallet/routes.ts";
import { createSocketRoutes, type SocketRouteContext } from "../websocket/routes.ts";

export interface RouteContext
  extends AccountRouteContext,
    AccessRouteContext,
    LimitsRouteContext,
    MarketAdminRouteContext,
    MarketRouteContext,
    MoneyAdminContext,
    NotificationContext,
    OAuthRouteContext,
    OperatorRouteContext,
    OrderRouteContext,
    ServiceRouteContext,
    SocketRouteContext {
  readonly exchange: OrderRouteContext["exchange"];
  /** Operators' routes need a session with a second factor. */
  readonly operatorsNeedSecondFactor: boolean;
}

export function createRoutes(context: RouteContext): Route[] {
  const routes: Route[] = [
    ...createOrderRoutes(context),
    ...createSocketRoutes(context),
    ...createProposalRoutes(context),
    ...createWatchlistRoutes(context),
    ...createMarketRoutes(context),
    ...createWalletRoutes(context),
    ...createNotificationRoutes(context),
    ...createMoneyAdminRoutes(context),
    ...createAccessRoutes(context),
    ...createAccountRoutes(context),
    ...createOAuthRoutes(context),
    ...createMarketAdminRoutes(context),
    ...createOperatorRoutes(context),
    ...createServiceRoutes(context),
    createLimitsRoute(context, () => routes),
    ...createDocumentRoutes(context.publicUrl, () => routes),
  ];
  const { operatorsNeedSecondFactor: secondFactor } = context;
  return routes.map((each) => (each.access === "operator" && secondFactor ? { ...each, secondFactor } : each));
}
