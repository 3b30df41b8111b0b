/**
 * The route table: every path with its schemas, who may use it and what it does. The router, the tests and the API
 * document read it; there is no second list.
 */

import type { Static, TObject } from "typebox";
import {
  isFinal,
  ORDER_STATUSES,
  ORDER_TYPES,
  OrderType,
  SELF_TRADE_PREVENTIONS,
  TIMES_IN_FORCE,
  TimeInForce,
} from "../../engine/constants.ts";
import type { CommittedTotals } from "../../engine/log/totals.ts";
import { makerRebateBps, mergeFeeBps, tradingFeeBps, utcDay } from "../../engine/money.ts";
import { sideOf } from "../../engine/ring/records.ts";
import type { AccountWriter } from "../accounts/account-writer.ts";
import type { Approvals } from "../accounts/approvals.ts";
import { type AccountRouteContext, createAccountRoutes } from "../accounts/routes.ts";
import { createSecondFactorRoutes, type SecondFactorContext } from "../accounts/second-factor-routes.ts";
import type { Principal } from "../accounts/types.ts";
import { badRequest, notFound } from "../errors.ts";
import { DEFAULT_PAGE_LIMIT } from "../http/limits.ts";
import { checkSpan, Listing } from "../http/paging.ts";
import type { RateLimiter } from "../http/rate-limiter.ts";
import { pathId, type Route, route } from "../http/route.ts";
import { pageOf, Text } from "../http/schemas.ts";
import { compileSchema } from "../http/validate.ts";
import { createMarketAdminRoutes, type MarketAdminRouteContext } from "../markets/admin-routes.ts";
import { createProposalRoutes } from "../markets/proposal-routes.ts";
import { createMarketRoutes, type MarketRouteContext } from "../markets/routes.ts";
import { solvencyView } from "../markets/views.ts";
import { createOAuthRoutes, type OAuthRouteContext } from "../oauth/routes.ts";
import { METRICS_TYPE, type Metrics } from "../operators/metrics.ts";
import { createOperatorRoutes, type OperatorRouteContext } from "../operators/routes.ts";
import { Health } from "../operators/schemas.ts";
import { type History, historyPage } from "../queries/history.ts";
import { createDocumentRoutes } from "../reference/routes.ts";
import { type Operation, runBatch } from "../trading/batch.ts";
import type { CancelTimers } from "../trading/cancel-timers.ts";
import type { Exchange } from "../trading/exchange.ts";
import { MAX_CANCEL_AFTER_MS, MIN_CANCEL_AFTER_MS } from "../trading/limits.ts";
import type { OrderEntry } from "../trading/order-entry.ts";
import { liveOrderJson } from "../trading/order-json.ts";
import { activeOrders } from "../trading/order-queries.ts";
import { IN_FLIGHT, isNamed } from "../trading/order-store.ts";
import {
  AmendOrder,
  Batch,
  BatchOperations,
  BuilderStats,
  CancelAfter,
  Canceled,
  CancelQuery,
  CancelTimer,
  CLIENT_ORDER_ID_PATTERN,
  EventsQuery,
  FillsQuery,
  Limits,
  Order,
  OrderEvent,
  OrdersQuery,
  OwnFill,
  PlaceOrder,
  PlaceQuery,
  Quotes,
  Results,
} from "../trading/schemas.ts";
import type { Amendment, Answer, Origin, Placement } from "../trading/types.ts";
import { createMoneyAdminRoutes, type MoneyAdminContext } from "../wallet/admin-routes.ts";
import { createWalletRoutes } from "../wallet/routes.ts";
import { Solvency } from "../wallet/schemas.ts";
import { frame } from "../websocket/connection.ts";
import { checkKept } from "../websocket/replay.ts";
import { SocketTicket } from "../websocket/schemas.ts";
import type { SocketTickets } from "../websocket/tickets.ts";

export interface RouteContext
  extends AccountRouteContext,
    MarketRouteContext,
    MarketAdminRouteContext,
    MoneyAdminContext,
    OAuthRouteContext,
    OperatorRouteContext,
    SecondFactorContext {
  readonly exchange: Exchange;
  readonly entry: OrderEntry;
  readonly cancelTimers: CancelTimers;
  readonly history: History;
  readonly totals: CommittedTotals;
  readonly writer: AccountWriter;
  readonly approvals: Approvals;
  readonly tickets: SocketTickets;
  readonly operatorsNeedSecondFactor: boolean;
  /** Null where nothing is limited. */
  readonly limiter: RateLimiter | null;
  /** Of users without terms of their own. */
  readonly usualMergeFeeBps: number;
  /** Null once everything works, else why not. */
  readonly unready: () => string | null;
  readonly metrics: Metrics;
}

export function createRoutes(context: RouteContext): Route[] {
  const routes: Route[] = [
    ...orderRoutes(context),
    ...createProposalRoutes(context),
    ...createMarketRoutes(context),
    ...createWalletRoutes(context),
    ...createMoneyAdminRoutes(context),
    ...createAccountRoutes(context),
    ...createOAuthRoutes(context),
    ...createMarketAdminRoutes(context),
    ...createOperatorRoutes(context),
    ...createSecondFactorRoutes(context),
    ...serviceRoutes(context),
    limitsRoute(context, () => routes),
    ...createDocumentRoutes(context.publicUrl, () => routes),
  ];
  const { operatorsNeedSecondFactor: secondFactor } = context;
  return routes.map((each) => (each.access === "operator" && secondFactor ? { ...each, secondFactor } : each));
}

// ---------------------------------------------------------------- orders

function orderRoutes({ exchange, entry, history, cancelTimers }: RouteContext): Route[] {
  const operationOf = createOperations(entry);
  /** @param name must be the order's client order id, where it is given @throws ApiError 4040 */
  const orderWithTrades = async (userId: number, orderId: number, name?: string): Promise<string> => {
    const { store } = exchange;
    const slot = store.find(orderId);
    const isUntouched = slot !== 0 && store.users[slot] === userId && store.statuses[slot] !== IN_FLIGHT;
    if (isUntouched && name !== undefined && !isNamed(store, slot, userId, name)) throw notFound("order");
    // Without a fill memory has all of it.
    if (isUntouched && store.remaining[slot] === store.quantities[slot]) return liveOrderJson(store, slot);
    const order = await history.order(userId, orderId);
    if (order === null || (name !== undefined && order["client_order_id"] !== name)) throw notFound("order");
    return JSON.stringify(order);
  };
  const trading = { scope: "orders:write", minTier: 1, rateClass: "order", status: 202 } as const;
  return [
    route({
      ...trading,
      method: "POST",
      path: "/orders",
      summary: "Place an order",
      credited: true,
      query: PlaceQuery,
      body: PlaceOrder,
      response: Order,
      handler({ principal, origin, query, body, now, reply }) {
        const { timestamps = false } = query as Static<typeof PlaceQuery>;
        entry.place(principal!, origin, readPlacement(body as Static<typeof PlaceOrder>, timestamps), now, reply);
        return undefined;
      },
    }),
    route({
      method: "GET",
      path: "/orders",
      summary: "The caller's active orders, newest first; with status=all the finished ones too",
      scope: "portfolio:read",
      query: OrdersQuery,
      response: pageOf(Order),
      handler({ principal, query }) {
        const given = query as Static<typeof OrdersQuery>;
        const { store } = exchange;
        const { market_id, outcome_id, side, client_order_id, status = "active", from, to, ...rest } = given;
        checkSpan(given);
        const { userId } = principal!;
        const filters = { marketId: market_id, outcomeId: outcome_id, side, clientOrderId: client_order_id, from, to };
        const listing = new Listing("/orders", { userId, status, ...filters });
        const { before, limit } = listing.page(rest);
        const code = ORDER_STATUSES.indexOf(status as never);
        if (status === "all" || isFinal(code)) {
          const state = status === "all" ? undefined : code;
          return historyPage(listing, history.orders({ userId, before, limit, status: state, ...filters }));
        }
        const named = client_order_id === undefined ? 0 : exchange.clientOrderIds.find(userId, client_order_id);
        const { items, next } = activeOrders(store, userId, before, limit, (slot) => {
          if (status !== "active" && store.statuses[slot] !== code) return false;
          if (from !== undefined && store.createdAt[slot]! < from) return false;
          if (to !== undefined && store.createdAt[slot]! > to) return false;
          if (market_id !== undefined && store.markets[slot] !== market_id) return false;
          if (outcome_id !== undefined && store.outcomes[slot] !== outcome_id) return false;
          if (side !== undefined && sideOf(store.packed[slot]!) !== side) return false;
          return client_order_id === undefined || store.ids[slot] === named;
        });
        return listing.json(items, next);
      },
    }),
    route({
      ...trading,
      method: "DELETE",
      path: "/orders",
      summary: "Cancel all of the caller's orders, or those that fit; answers with the ids of those that it ended",
      query: CancelQuery,
      response: Canceled,
      handler({ principal, query, now, reply }) {
        const { market_id, outcome_id, side, client_order_id } = query as Static<typeof CancelQuery>;
        const filter = { marketId: market_id, outcomeId: outcome_id, side, clientOrderId: client_order_id };
        entry.cancelAll(principal!.userId, filter, now, reply);
        return undefined;
      },
    }),
    route({
      ...trading,
      method: "POST",
      path: "/orders/batch",
      summary: "Place, cancel and amend up to 50 times, taken in turn, with a result each",
      credited: true,
      body: Batch,
      response: Results,
      handler({ principal, origin, body, now, reply }) {
        const { operations } = body as Static<typeof Batch>;
        const started = operations.map((operation) => operationOf(principal!, origin, operation));
        runBatch(exchange, principal!.userId, started, now, reply, reply.requestId);
        return undefined;
      },
    }),
    route({
      ...trading,
      method: "POST",
      path: "/orders/cancel-after",
      summary: "Cancel all of the caller's orders unless it asks again in time",
      status: 200,
      body: CancelAfter,
      response: CancelTimer,
      async handler({ principal, body, now }) {
        const { timeout_ms } = body as Static<typeof CancelAfter>;
        if (timeout_ms > 0 && timeout_ms < MIN_CANCEL_AFTER_MS) {
          throw badRequest(`timeout_ms: must be 0, or ${MIN_CANCEL_AFTER_MS} to ${MAX_CANCEL_AFTER_MS}`);
        }
        if (exchange.refusal !== null) throw exchange.refusal;
        const firesAt = timeout_ms === 0 ? null : now + timeout_ms;
        // What is due is not put off by who asks too late.
        cancelTimers.fireDue(now);
        await cancelTimers.set(principal!.userId, firesAt);
        return JSON.stringify({ timeout_ms, fires_at: firesAt });
      },
    }),
    route({
      method: "GET",
      path: "/orders/:id",
      summary: "One order of the caller, live or finished, with its trades",
      scope: "portfolio:read",
      response: Order,
      handler: ({ principal, params }) => orderWithTrades(principal!.userId, pathId(params[0], "order")),
    }),
    route({
      method: "GET",
      path: "/orders/by-client-id/:client_order_id",
      summary: "The order that a client order id names, live or of the last 24 hours, with its trades",
      scope: "portfolio:read",
      response: Order,
      handler({ principal, params, now, reply }) {
        const { userId } = principal!;
        const name = clientOrderIdIn(params[0]);
        const orderId = exchange.clientOrderIds.find(userId, name);
        if (orderId === 0) throw notFound("order");
        const slot = exchange.store.find(orderId);
        if (slot === 0 || exchange.store.statuses[slot] !== IN_FLIGHT) return orderWithTrades(userId, orderId, name);
        // It was placed, and will be durable within the commit: who asks after a timeout must not hear that it isn't.
        if (!isNamed(exchange.store, slot, userId, name)) throw notFound("order");
        entry.joinPlacement(slot, reply, now);
        return undefined;
      },
    }),
    route({
      ...trading,
      method: "DELETE",
      path: "/orders/by-client-id/:client_order_id",
      summary: "Cancel the order that a client order id names, also while its placement is on its way",
      response: Order,
      handler({ principal, params, now, reply }) {
        entry.cancelByClientId(principal!.userId, clientOrderIdIn(params[0]), now, reply);
        return undefined;
      },
    }),
    route({
      ...trading,
      method: "DELETE",
      path: "/orders/:id",
      summary: "Cancel an order; its end arrives as order.updated",
      response: Order,
      handler({ principal, params, now, reply }) {
        entry.cancel(principal!.userId, pathId(params[0], "order"), now, reply);
        return undefined;
      },
    }),
    route({
      ...trading,
      method: "PATCH",
      path: "/orders/:id",
      summary: "Amend price, total quantity or both; the same price and no larger a quantity keep the time priority",
      body: AmendOrder,
      response: Order,
      handler({ principal, origin, params, body, now, reply }) {
        const change = readAmendment(body as Static<typeof AmendOrder>);
        entry.amend(principal!, origin, pathId(params[0], "order"), change, now, reply);
        return undefined;
      },
    }),
    route({
      ...trading,
      method: "PUT",
      path: "/quotes/:market_id",
      summary: "Replace all of the caller's quotes in a market at once; quotes are post-only, unchanged ones stay",
      credited: true,
      body: Quotes,
      response: Results,
      handler({ principal, origin, params, body, now, reply }) {
        const { expires_at = null, valid_until = null, ...given } = body as Static<typeof Quotes>;
        const quotes = given.quotes.map(({ outcome_id, side, price, quantity }) => {
          return { outcomeId: outcome_id, side, price, quantity };
        });
        const terms = { expiresAt: expires_at, validUntil: valid_until };
        const marketId = pathId(params[0], "market");
        entry.quotes.replace({ trader: principal!, origin, marketId, quotes, terms, now }, reply);
        return undefined;
      },
    }),
    route({
      method: "GET",
      path: "/me/fills",
      summary: "The caller's fills, newest first",
      scope: "portfolio:read",
      query: FillsQuery,
      response: pageOf(OwnFill),
      handler({ principal, query }) {
        const { market_id, order_id, from, to, ...rest } = query as Static<typeof FillsQuery>;
        checkSpan(query as Static<typeof FillsQuery>);
        const filters = { userId: principal!.userId, marketId: market_id, orderId: order_id, from, to };
        const listing = new Listing("/me/fills", filters);
        return historyPage(listing, history.fills({ ...filters, ...listing.page(rest) }));
      },
    }),
    route({
      method: "GET",
      path: "/me/events",
      summary:
        "The caller's order updates again, as the WebSocket told them, oldest first; kept for seven days and more",
      scope: "portfolio:read",
      orScope: "orders:write",
      query: EventsQuery,
      response: pageOf(OrderEvent),
      async handler({ principal, query }) {
        const { userId } = principal!;
        const { after, cursor, limit = DEFAULT_PAGE_LIMIT } = query as Static<typeof EventsQuery>;
        const listing = new Listing("/me/events", { userId });
        // Where the list began goes along: who repeats it beside the cursor must repeat just this.
        const [begun = after ?? NO_SEQUENCE, from = after ?? null] =
          cursor === undefined ? [] : listing.keys(cursor, 2);
        if (cursor !== undefined && after !== undefined && after !== begun) throw badRequest("cursor: of another list");
        const last = exchange.updates.sequenceOf(userId);
        if (from !== null && from < 0) throw badRequest("cursor: not one of this list's");
        if (from !== null && from > last) throw badRequest(`after: the last is ${last}`);
        const page = await history.updates({ userId, after: from, limit });
        checkKept(page, "after");
        const items = page.items.map(({ sequence, at, json }) => frame("order.updated", sequence, at, json));
        const next = page.hasMore ? `"${listing.cursor(begun, page.items.at(-1)!.sequence)}"` : "null";
        return `{"items":[${items.join(",")}],"next_cursor":${next}}`;
      },
    }),
    route({
      method: "GET",
      path: "/builders/:code/stats",
      summary: "What came through an integration: orders, fills, volume and fees credited to its builder code",
      response: BuilderStats,
      async handler({ params, address }) {
        const stats = await history.builder(address.client, params[0]);
        if (stats === null) throw notFound("builder");
        return JSON.stringify(stats);
      },
    }),
  ];
}

/** In a cursor's place for a sequence: the list began with the oldest that is kept. */
const NO_SEQUENCE = -1;

/** A client order id in a path, which may come percent-encoded. @throws ApiError 4040 where it can name nothing */
function clientOrderIdIn(text: string): string {
  let name = text;
  try {
    name = decodeURIComponent(text);
  } catch {
    // It isn't one either way.
  }
  if (!CLIENT_ORDER_ID.test(name)) throw notFound("order");
  return name;
}
const CLIENT_ORDER_ID = new RegExp(CLIENT_ORDER_ID_PATTERN);

/** Makes operations of a batch out of what it says; what is wrong with one is told when its turn comes. */
function createOperations(entry: OrderEntry): (principal: Principal, origin: Origin, operation: object) => Operation {
  const checks = {
    place: compileSchema(BatchOperations.place),
    cancel: compileSchema(BatchOperations.cancel),
    amend: compileSchema(BatchOperations.amend),
  };
  return (principal, origin, operation) => (now, answer) => {
    const { op } = operation as { op?: unknown };
    if (op === "place")
      return entry.place(principal, origin, readPlacement(checks.place(operation), false), now, answer);
    if (op === "amend") {
      const change = checks.amend(operation);
      return entry.amend(principal, origin, change.id, readAmendment(change), now, answer);
    }
    if (op !== "cancel") throw badRequest(`op: must be one of ${Object.keys(checks).join(", ")}`);
    cancelEither(entry, principal.userId, checks.cancel(operation), now, answer);
  };
}

/** Cancels the order that an id or a client order id names. @throws ApiError 40000 unless there is one of the two */
export function cancelEither(
  entry: OrderEntry,
  userId: number,
  named: { id?: number; client_order_id?: string },
  now: number,
  answer: Answer,
): void {
  const { id, client_order_id } = named;
  if (id !== undefined && client_order_id === undefined) entry.cancel(userId, id, now, answer);
  else if (client_order_id !== undefined && id === undefined)
    entry.cancelByClientId(userId, client_order_id, now, answer);
  else throw badRequest("id: required, or else client_order_id");
}

function readAmendment(body: Static<typeof AmendOrder>): Amendment {
  return { price: body.price ?? null, quantity: body.quantity ?? null, validUntil: body.valid_until ?? null };
}

/** The caller's limits and what is left of them: of each route its rate limits. */
function limitsRoute(
  { exchange, limiter, accounts, usualMergeFeeBps }: RouteContext,
  routes: () => readonly Route[],
): Route {
  return route({
    method: "GET",
    path: "/me/limits",
    summary: "The caller's KYC tier, fees, daily activity, live orders and rate limits, with what is left of each",
    access: "user",
    response: Limits,
    handler({ principal, address, now }) {
      const { userId, kycTier, dailyLimit: limit, maxLiveOrders, rateLimitFactor, pat, credential } = principal!;
      const { client } = address;
      const { user } = credential;
      // A path that is served at the root too is one bucket.
      const own = routes().filter(({ access }) => access !== "operator" || user.role === "operator");
      const counted = new Map(own.map((each) => [`${each.method} ${each.path}`, each]));
      const rates = [...counted].flatMap(([template, { rateClass, oauth, body }]) => {
        const who = oauth ? null : userId;
        // Where the body names no account, the address alone counts.
        const named = "email" in ((body as TObject | null)?.properties ?? {}) ? user.email : "";
        const isKnown = rateClass === "identifier" && accounts.knownAddresses.has(userId, client, now);
        const states = limiter?.peek(template, rateClass, who, client, now, named, rateLimitFactor, isKnown) ?? [];
        return states.map((state) => ({ route: template, ...state }));
      });
      const used = exchange.ledger.activity(userId, utcDay(now));
      const fees = {
        trading_fee: tradingFeeBps(user),
        maker_rebate: makerRebateBps(user, pat),
        merge_fee: mergeFeeBps(user, usualMergeFeeBps),
      };
      const live_orders = { used: exchange.store.liveOf(userId), limit: maxLiveOrders };
      const activity = { daily_activity: { used, limit }, live_orders };
      return JSON.stringify({ kyc_tier: kycTier, ...activity, fees, rate_limits: rates });
    },
  });
}

function readPlacement(body: Static<typeof PlaceOrder>, timestamps: boolean): Placement {
  const type = body.type === undefined ? OrderType.limit : ORDER_TYPES.indexOf(body.type as never);
  const usual = type === OrderType.market ? TimeInForce.ioc : TimeInForce.gtc;
  const { time_in_force, self_trade_prevention } = body;
  return {
    marketId: body.market_id,
    outcomeId: body.outcome_id,
    side: body.side,
    price: body.price ?? null,
    quantity: body.quantity,
    type,
    timeInForce: time_in_force === undefined ? usual : TIMES_IN_FORCE.indexOf(time_in_force as never),
    postOnly: body.post_only ?? false,
    selfTradePrevention:
      self_trade_prevention === undefined ? 0 : SELF_TRADE_PREVENTIONS.indexOf(self_trade_prevention as never),
    clientOrderId: body.client_order_id ?? null,
    expiresAt: body.expires_at ?? null,
    validUntil: body.valid_until ?? null,
    timestamps,
  };
}

// ---------------------------------------------------------------- service

function serviceRoutes({ totals, tickets, unready, metrics }: RouteContext): Route[] {
  return [
    route({
      method: "POST",
      path: "/ws-tickets",
      unverified: true,
      summary: "A ticket that opens one WebSocket within a minute, so that no token stands in a URL",
      access: "user",
      status: 201,
      response: SocketTicket,
      handler({ principal, now }) {
        const { ticket, expiresAt } = tickets.issue(principal!, now);
        return JSON.stringify({ ticket, expires_at: expiresAt });
      },
    }),
    route({
      method: "GET",
      path: "/solvency",
      summary: "The exchange's sums as of the last committed transaction",
      response: Solvency,
      handler: () => JSON.stringify(solvencyView(totals.read())),
    }),
    route({
      method: "GET",
      path: "/livez",
      unversioned: true,
      summary: "The process answers",
      rateClass: "none",
      response: Health,
      enveloped: false,
      handler: () => '{"status":"ok"}',
    }),
    route({
      method: "GET",
      path: "/readyz",
      unversioned: true,
      summary: "The exchange trades",
      rateClass: "none",
      response: Health,
      enveloped: false,
      handler({ reply }) {
        const why = unready();
        reply.plain(why === null ? 200 : 503, JSON.stringify({ status: why ?? "ok" }));
        return undefined;
      },
    }),
    route({
      method: "GET",
      path: "/metrics",
      unversioned: true,
      summary: "Figures of the exchange and its process, in Prometheus' text format",
      rateClass: "none",
      response: Text,
      enveloped: false,
      contentType: METRICS_TYPE,
      handler: () => metrics.text(),
    }),
  ];
}
