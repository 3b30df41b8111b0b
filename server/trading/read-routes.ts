/** The routes that read orders and fills: from memory where it has them whole, from the tables otherwise. */

import type { Static } from "typebox";
import { isFinal, ORDER_STATUSES } from "../../engine/constants.ts";
import { sideOf } from "../../engine/ring/records.ts";
import { notFound } from "../errors.ts";
import { checkSpan, Listing } from "../http/paging.ts";
import { OWN_READ, pathId, type Route, route } from "../http/route.ts";
import { pageOf } from "../http/schemas.ts";
import { reportJson } from "../orders/order-json.ts";
import { type History, textPage } from "../queries/history.ts";
import type { Exchange } from "./exchange.ts";
import type { OrderEntry } from "./order-entry.ts";
import { activeOrders } from "./order-queries.ts";
import { clientOrderIdIn } from "./order-requests.ts";
import { IN_FLIGHT, isNamed } from "./order-store.ts";
import * as S from "./schemas.ts";
import { SlotReport } from "./slot-report.ts";

/** By code. */
const STATUS_NAMES: readonly (string | null)[] = ORDER_STATUSES;

export interface OrderReadContext {
  readonly exchange: Exchange;
  readonly entry: OrderEntry;
  readonly history: History;
}

export function createOrderReadRoutes(context: OrderReadContext): Route[] {
  return [orderListRoute(context), ...singleOrderRoutes(context), ...fillRoutes(context)];
}

function orderListRoute({ exchange, history }: OrderReadContext): Route {
  return route({
    method: "GET",
    path: "/orders",
    summary: "The caller's active orders, newest first; with status=all, finished ones too",
    ...OWN_READ,
    query: S.OrdersQuery,
    response: pageOf(S.Order),
    handler({ principal, query }) {
      const { market_id, outcome_id, side, client_order_id, status = "active", from, to, ...rest } = query;
      checkSpan(query);
      const { userId } = principal;
      const filters = { marketId: market_id, outcomeId: outcome_id, side, clientOrderId: client_order_id, from, to };
      const listing = new Listing("/orders", { userId, status, ...filters });
      const { before, limit } = listing.page(rest);
      const code = STATUS_NAMES.indexOf(status);
      if (status === "all" || isFinal(code)) {
        const state = status === "all" ? undefined : code;
        return textPage(listing, history.orders({ userId, before, limit, status: state, ...filters }));
      }
      const fits = liveOrderFilter(exchange, userId, query);
      const { items, next } = activeOrders(exchange.store, userId, before, limit, fits);
      return listing.json(items, next);
    },
  });
}

/** A user's active orders that match the filters, newest first. @param size of a slice */
export function* liveOrderSlices(
  exchange: Exchange,
  userId: number,
  query: Static<typeof S.OrdersQuery>,
  size: number,
): Generator<readonly object[]> {
  const fits = liveOrderFilter(exchange, userId, query);
  for (let before: number | null = Number.MAX_SAFE_INTEGER; before !== null; ) {
    const { items, next } = activeOrders(exchange.store, userId, before, size, fits);
    yield items.map((json) => JSON.parse(json));
    before = next;
  }
}

/** Returns whether the live order in a slot matches the filters of a list. */
function liveOrderFilter(
  { store, clientOrderIds }: Exchange,
  userId: number,
  query: Static<typeof S.OrdersQuery>,
): (slot: number) => boolean {
  const { market_id, outcome_id, side, client_order_id, status = "active", from, to } = query;
  const code = STATUS_NAMES.indexOf(status);
  const named = client_order_id === undefined ? 0 : clientOrderIds.find(userId, client_order_id);
  return (slot) => {
    const { [slot]: createdAt = 0 } = store.createdAt;
    if (status !== "active" && store.statuses[slot] !== code) return false;
    if (from !== undefined && createdAt < from) return false;
    if (to !== undefined && createdAt > to) return false;
    if (market_id !== undefined && store.markets[slot] !== market_id) return false;
    if (outcome_id !== undefined && store.outcomes[slot] !== outcome_id) return false;
    if (side !== undefined && sideOf(store.terms[slot] ?? 0) !== side) return false;
    return client_order_id === undefined || store.ids[slot] === named;
  };
}

function singleOrderRoutes({ exchange, entry, history }: OrderReadContext): Route[] {
  /** @param name if given, must be the order's client order id @throws ApiError 4040 */
  const orderWithTrades = async (userId: number, orderId: number, name?: string): Promise<string> => {
    const { store } = exchange;
    const slot = store.find(orderId);
    const isUntouched = slot !== 0 && store.users[slot] === userId && store.statuses[slot] !== IN_FLIGHT;
    if (isUntouched && name !== undefined && !isNamed(store, slot, userId, name)) throw notFound("order");
    // Memory has all of an order without fills.
    if (isUntouched && store.remaining[slot] === store.quantities[slot])
      return reportJson(new SlotReport(store).live(slot));
    const order = await history.order(userId, orderId, name);
    if (order === null) throw notFound("order");
    return order;
  };
  return [
    route({
      method: "GET",
      path: "/orders/:id",
      summary: "One order of the caller, live or finished, with its trades",
      ...OWN_READ,
      response: S.Order,
      handler: ({ principal, params }) => orderWithTrades(principal.userId, pathId(params[0], "order")),
    }),
    route({
      method: "GET",
      path: "/orders/by-client-id/:client_order_id",
      summary: "The order with a client order id, live or from the last 24 hours, with its trades",
      ...OWN_READ,
      response: S.Order,
      handler({ principal, params, now, reply }) {
        const { userId } = principal;
        const name = clientOrderIdIn(params[0]);
        const orderId = exchange.clientOrderIds.find(userId, name);
        if (orderId === 0) throw notFound("order");
        const slot = exchange.store.find(orderId);
        if (slot === 0 || exchange.store.statuses[slot] !== IN_FLIGHT) return orderWithTrades(userId, orderId, name);
        // The placement is in flight and becomes durable with its commit. A client that checks after a timeout must not
        // learn that the order doesn't exist.
        if (!isNamed(exchange.store, slot, userId, name)) throw notFound("order");
        entry.joinPlacement(slot, reply, now);
        return undefined;
      },
    }),
  ];
}

function fillRoutes({ history }: OrderReadContext): Route[] {
  return [
    route({
      method: "GET",
      path: "/me/fills",
      summary: "The caller's fills, newest first",
      ...OWN_READ,
      query: S.FillsQuery,
      response: pageOf(S.OwnFill),
      handler({ principal, query }) {
        const { market_id, order_id, from, to, ...rest } = query;
        checkSpan(query);
        const filters = { userId: principal.userId, marketId: market_id, orderId: order_id, from, to };
        const listing = new Listing("/me/fills", filters);
        return textPage(listing, history.fills({ ...filters, ...listing.page(rest) }));
      },
    }),
    route({
      method: "GET",
      path: "/builders/:code/stats",
      summary: "Totals of an integration: orders, fills, volume and fees credited to its builder code",
      response: S.BuilderStats,
      async handler({ params, address }) {
        const stats = await history.builder(address.client, params[0]);
        if (stats === null) throw notFound("builder");
        return JSON.stringify(stats);
      },
    }),
  ];
}
