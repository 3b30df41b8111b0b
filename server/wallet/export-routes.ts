/** The routes that give a list whole, as a file: CSV in the API's fields and units, or for spreadsheets. */
import type { TSchema } from "typebox";
import { checkSpan } from "../http/paging.ts";
import { OWN_READ, type Route, route } from "../http/route.ts";
import { Text } from "../http/schemas.ts";
import { positionsOf, positionView } from "../markets/views.ts";
import type { ExportedRow, ExportKind } from "../queries/export-columns.ts";
import { CSV_TYPE, type Exports } from "../queries/exports.ts";
import type { Exchange } from "../trading/exchange.ts";
import { liveOrderSlices } from "../trading/read-routes.ts";
import * as S from "./schemas.ts";

/** Rows in memory that one turn of the loop writes: half a millisecond. */
const ROWS_PER_TURN = 100;

const file = <Query extends TSchema>(kind: ExportKind, summary: string, query: Query) =>
  ({
    method: "GET",
    path: `/me/exports/${kind}`,
    summary,
    ...OWN_READ,
    query,
    response: Text,
    enveloped: false,
    contentType: CSV_TYPE,
  }) as const;

export interface ExportRouteContext {
  readonly exchange: Exchange;
  readonly exports: Exports;
}

export function createExportRoutes({ exchange, exports }: ExportRouteContext): Route[] {
  const { registry } = exchange;
  return [
    route({
      ...file("orders", "The caller's orders as CSV, newest first: active ones, or all", S.OrdersExport),
      handler({ principal, query, reply }) {
        const { layout = "fields", status = "active", ...filters } = query;
        checkSpan(query);
        const { userId } = principal;
        if (status === "active") {
          const slices = liveOrderSlices(exchange, userId, filters, ROWS_PER_TURN) as Iterable<ExportedRow[]>;
          exports.inMemory(reply, { userId, kind: "orders", layout }, slices, registry.names);
          return undefined;
        }
        const { market_id, ...span } = filters;
        return exports.stored(reply, layout, { kind: "orders", userId, marketId: market_id, ...span });
      },
    }),
    route({
      ...file("fills", "The caller's fills as CSV, newest first", S.FillsExport),
      handler({ principal, query, reply }) {
        const { layout = "fields", market_id, ...span } = query;
        checkSpan(query);
        return exports.stored(reply, layout, {
          ...{ kind: "fills", userId: principal.userId, marketId: market_id },
          ...span,
        });
      },
    }),
    route({
      ...file("positions", "The caller's positions as CSV, largest outcome id first", S.PositionsExport),
      handler({ principal, query, reply }) {
        const { layout = "fields", market_id } = query;
        const { userId } = principal;
        exports.inMemory(
          reply,
          { userId, kind: "positions", layout },
          positionSlices(exchange, userId, market_id),
          registry.names,
        );
        return undefined;
      },
    }),
    route({
      ...file("settlements", "Payouts of the caller's shares as CSV, newest first", S.SettlementsExport),
      handler({ principal, query, reply }) {
        const { layout = "fields", market_id } = query;
        return exports.stored(reply, layout, { kind: "settlements", userId: principal.userId, marketId: market_id });
      },
    }),
    route({
      ...file("transactions", "Every change of the caller's balance as CSV, newest first", S.TransactionsExport),
      handler({ principal, query, reply }) {
        const { layout = "fields", ...filters } = query;
        checkSpan(query);
        return exports.stored(reply, layout, { kind: "transactions", userId: principal.userId, ...filters });
      },
    }),
  ];
}

function* positionSlices(
  { ledger, registry }: Exchange,
  userId: number,
  marketId: number | undefined,
): Generator<readonly ExportedRow[]> {
  const found = positionsOf(ledger, userId).filter(
    (position) => marketId === undefined || registry.marketOf(ledger.outcomeOf(position)).id === marketId,
  );
  found.sort((a, b) => ledger.outcomeOf(b) - ledger.outcomeOf(a));
  for (let i = 0; i < found.length; i += ROWS_PER_TURN) {
    const slice = found.slice(i, i + ROWS_PER_TURN);
    yield slice.map((position) => positionView(ledger, registry, position) as ExportedRow);
  }
}
