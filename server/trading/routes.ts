/** The routes that place, amend and cancel orders. Reads of orders and fills are in read-routes.ts. */

import { pathId, type Route, route } from "../http/route.ts";
import { runBatch } from "./batch.ts";
import { type CancelTimers, checkTimeout } from "./cancel-timers.ts";
import { clientOrderIdIn, createOperations, readAmendment, readPlacement } from "./order-requests.ts";
import { createOrderReadRoutes, type OrderReadContext } from "./read-routes.ts";
import { ResultsReply } from "./results-reply.ts";
import * as S from "./schemas.ts";

export interface OrderRouteContext extends OrderReadContext {
  readonly cancelTimers: CancelTimers;
}

/** What all order commands share; they respond when the commit is durable. */
const COMMAND = { scope: "orders:write", minTier: 1, rateClass: "order", status: 202 } as const;

export function createOrderRoutes(context: OrderRouteContext): Route[] {
  return [
    ...placeRoutes(context),
    ...cancelRoutes(context),
    cancelAfterRoute(context),
    ...createOrderReadRoutes(context),
  ];
}

function placeRoutes({ exchange, entry }: OrderRouteContext): Route[] {
  const operationOf = createOperations(entry);
  return [
    route({
      ...COMMAND,
      method: "POST",
      path: "/orders",
      summary: "Place an order",
      credited: true,
      idempotencyKey: "client_order_id",
      query: S.PlaceQuery,
      body: S.PlaceOrder,
      response: S.Order,
      handler({ principal, origin, idempotencyKey, query, body, now, reply }) {
        const { timestamps = false } = query;
        entry.place(principal, origin, readPlacement(body, timestamps, idempotencyKey), now, reply);
        return undefined;
      },
    }),
    route({
      ...COMMAND,
      method: "POST",
      path: "/orders/batch",
      summary: "Run up to 50 placements, cancels and amendments in turn, with a result for each",
      credited: true,
      idempotencyKey: { instead: "give each placement a client_order_id" },
      body: S.Batch,
      response: S.Results,
      handler({ principal, origin, body, now, reply }) {
        const started = body.operations.map((operation) => operationOf(principal, origin, operation));
        runBatch(exchange, started, now, new ResultsReply(exchange, principal.userId, started.length, now, reply));
        return undefined;
      },
    }),
    route({
      ...COMMAND,
      method: "PATCH",
      path: "/orders/:id",
      summary: "Amend price, total quantity or both; the same price with no larger quantity keeps the time priority",
      body: S.AmendOrder,
      response: S.Order,
      handler({ principal, origin, params, body, now, reply }) {
        entry.amend(principal, origin, readAmendment(pathId(params[0], "order"), body), now, reply);
        return undefined;
      },
    }),
    route({
      ...COMMAND,
      method: "PUT",
      path: "/quotes/:market_id",
      summary:
        "Replace all of the caller's quotes in a market at once; quotes are post-only, and unchanged ones keep their place",
      credited: true,
      body: S.Quotes,
      response: S.Results,
      handler({ principal, origin, params, body, now, reply }) {
        const { expires_at = null, valid_until = null, ...given } = body;
        const quotes = given.quotes.map(({ outcome_id, side, price, quantity }) => {
          return { outcomeId: outcome_id, side, price, quantity };
        });
        const terms = { expiresAt: expires_at, validUntil: valid_until };
        const marketId = pathId(params[0], "market");
        entry.quotes.replace(
          { trader: principal, origin, marketId, quotes, terms, now },
          () => new ResultsReply(exchange, principal.userId, quotes.length, now, reply),
        );
        return undefined;
      },
    }),
  ];
}

function cancelRoutes({ entry }: OrderRouteContext): Route[] {
  return [
    route({
      ...COMMAND,
      method: "DELETE",
      path: "/orders",
      summary:
        "Cancel all of the caller's orders, or those that match the filters; returns the ids of the canceled orders",
      query: S.CancelQuery,
      response: S.Canceled,
      handler({ principal, query, now, reply }) {
        const { market_id, outcome_id, side, client_order_id } = query;
        const filter = { marketId: market_id, outcomeId: outcome_id, side, clientOrderId: client_order_id };
        entry.cancelAll(principal.userId, filter, now, reply);
        return undefined;
      },
    }),
    route({
      ...COMMAND,
      method: "DELETE",
      path: "/orders/by-client-id/:client_order_id",
      summary: "Cancel an order by its client order id, even while its placement is in flight",
      response: S.Order,
      handler({ principal, params, now, reply }) {
        entry.cancelByClientId(principal.userId, clientOrderIdIn(params[0]), now, reply);
        return undefined;
      },
    }),
    route({
      ...COMMAND,
      method: "DELETE",
      path: "/orders/:id",
      summary: "Cancel an order; order.updated reports its end",
      response: S.Order,
      handler({ principal, params, now, reply }) {
        entry.cancel(principal.userId, pathId(params[0], "order"), now, reply);
        return undefined;
      },
    }),
  ];
}

function cancelAfterRoute({ exchange, cancelTimers }: OrderRouteContext): Route {
  return route({
    ...COMMAND,
    method: "POST",
    path: "/orders/cancel-after",
    idempotencyKey: "harmless",
    summary: "Cancel all of the caller's orders unless the caller renews the timer in time",
    status: 200,
    body: S.CancelAfter,
    response: S.CancelTimer,
    async handler({ principal, body, now }) {
      const { timeout_ms } = body;
      checkTimeout(timeout_ms);
      exchange.gate.checkRunning();
      const fires_at = await cancelTimers.request(principal.userId, timeout_ms, now);
      return JSON.stringify({ timeout_ms, fires_at });
    },
  });
}
