/** The REST side of the private stream: tickets that open a WebSocket, and the order updates of the past. */

import { badRequest } from "../errors.ts";
import { DEFAULT_PAGE_LIMIT } from "../http/limits.ts";
import { Listing } from "../http/paging.ts";
import { OWN_READ, type Route, route } from "../http/route.ts";
import { pageOf } from "../http/schemas.ts";
import type { History } from "../queries/history.ts";
import type { Exchange } from "../trading/exchange.ts";
import { EventsQuery, OrderEvent } from "../trading/schemas.ts";
import { frame } from "./connection.ts";
import { checkKept } from "./replay.ts";
import { SocketTicket } from "./schemas.ts";
import type { SocketTickets } from "./tickets.ts";

export interface SocketRouteContext {
  readonly exchange: Exchange;
  readonly history: History;
  readonly tickets: SocketTickets;
}

/** In a cursor, stands for a list that began with the oldest stored update. */
const NO_SEQUENCE = -1;

export function createSocketRoutes({ exchange, history, tickets }: SocketRouteContext): Route[] {
  return [
    route({
      method: "GET",
      path: "/me/events",
      summary: "The caller's past order updates as the WebSocket sent them, oldest first; kept for at least seven days",
      ...OWN_READ,
      orScope: "orders:write",
      query: EventsQuery,
      response: pageOf(OrderEvent),
      async handler({ principal, query }) {
        const { userId } = principal;
        const { after, cursor, limit = DEFAULT_PAGE_LIMIT } = query;
        const listing = new Listing("/me/events", { userId });
        // The cursor records where the list began: a request that repeats `after` beside it must repeat the same number.
        const [begun = after ?? NO_SEQUENCE, from = after ?? null] =
          cursor === undefined ? [] : listing.keys(cursor, 2);
        if (cursor !== undefined && after !== undefined && after !== begun)
          throw badRequest("cursor: belongs to another list");
        const last = exchange.updates.sequenceOf(userId);
        if (from !== null && from < 0) throw badRequest("cursor: not a cursor of this list");
        if (from !== null && from > last) throw badRequest(`after: the last is ${last}`);
        const page = await history.updates({ userId, after: from, limit });
        checkKept(page, "after");
        const items = page.items.map(({ sequence, at, order }) => frame("order.updated", sequence, at, order));
        const newest = page.items.at(-1);
        const next = page.hasMore && newest ? `"${listing.cursor(begun, newest.sequence)}"` : "null";
        return `{"items":[${items.join(",")}],"next_cursor":${next}}`;
      },
    }),
    route({
      method: "POST",
      path: "/ws-tickets",
      idempotencyKey: { instead: "request another ticket, an unused one expires within a minute" },
      unverified: true,
      summary: "A ticket that opens one WebSocket within a minute, so that no URL contains a token",
      access: "user",
      status: 201,
      response: SocketTicket,
      handler({ principal, now }) {
        const { ticket, expiresAt } = tickets.issue(principal, now);
        return JSON.stringify({ ticket, expires_at: expiresAt });
      },
    }),
  ];
}
