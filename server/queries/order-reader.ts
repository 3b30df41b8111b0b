/** Reads orders of every state, and what is credited to builder codes. To be called in a read transaction. */
import type Database from "better-sqlite3";
import type { HistoryPage } from "../http/paging.ts";
import { orderJson, reportJson } from "../orders/order-json.ts";
import type { EndedOrder } from "../trading/types.ts";
import type { FillReader } from "./fill-reader.ts";
import { pageOfWalk, prepareRows, prepareStart, prepareWalk } from "./linked-rows.ts";
import { ORDER_COLUMNS, type OrderRow, prepareOrderRow } from "./order-rows.ts";
import type { OrdersOptions } from "./types.ts";

/** The latest trades that an order is shown with; all of them are in the fills list. */
const MAX_TRADES_OF_ORDER = 1_000;

export interface OrderReader {
  /**
   * The JSON of one order of the user with its trades; null where there is none.
   * @param options.clientOrderId if given, it must be the order's
   */
  order(options: { userId: number; orderId: number; clientOrderId?: string | undefined }): string | null;
  /** The JSON of the user's orders of every state, without their trades. */
  orders(options: OrdersOptions): HistoryPage<string>;
  /** What a repeat of a placement has to know of the order, in the order of the ids; null where there is no such order. */
  endedOrders(options: { orderIds: readonly number[] }): (EndedOrder | null)[];
  /** Null where no order came with the code. */
  builder(options: { code: string }): object | null;
}

export function prepareOrders(db: Database.Database, fills: FillReader): OrderReader {
  const orderRow = prepareOrderRow(db);
  const endedOrder = db.prepare(
    `SELECT user_id AS userId, fingerprint, created_at AS createdAt,
       (SELECT code FROM builders WHERE builders.id = builder_id) AS builderCode FROM orders WHERE id = ?`,
  );
  const builderRow = db.prepare("SELECT code, orders, fills, volume, notional, fees FROM builders WHERE code = ?");
  return {
    order({ userId, orderId, clientOrderId }) {
      const row = orderRow(orderId);
      if (row?.userId !== userId) return null;
      if (clientOrderId !== undefined && row.clientOrderId !== clientOrderId) return null;
      const trades = fills.latestOfOrder(orderId, row.lastFillId, MAX_TRADES_OF_ORDER);
      return reportJson({ ...row, trades, timestamps: null });
    },
    orders: prepareOrderPages(db),
    endedOrders: ({ orderIds }) => orderIds.map((id) => (endedOrder.get(id) as EndedOrder | undefined) ?? null),
    builder: ({ code }) => (builderRow.get(code) as object | undefined) ?? null,
  };
}

function prepareOrderPages(db: Database.Database): (options: OrdersOptions) => HistoryPage<string> {
  const findStart = prepareStart(
    db,
    "SELECT order_id FROM newest_of_user WHERE user_id = @owner",
    "SELECT previous_of_user FROM orders WHERE id = @id AND user_id = @owner",
  );
  const walk = prepareWalk(db, "orders", findStart, "user_id = @owner");
  const read = prepareRows<OrderRow>(db, {
    table: "orders",
    link: "previous_of_user",
    columns: ORDER_COLUMNS,
    filters: `orders.id < @before AND (@marketId IS NULL OR outcomes.market_id = @marketId)
      AND (@outcomeId IS NULL OR outcome_id = @outcomeId) AND (@side IS NULL OR side = @side)
      AND (@clientOrderId IS NULL OR client_order_id = @clientOrderId)
      AND (@status IS NULL OR orders.status = @status)
      AND (@from IS NULL OR orders.created_at >= @from) AND (@to IS NULL OR orders.created_at <= @to)`,
  });
  return (options) => {
    const { userId, marketId = null, outcomeId = null, side = null, clientOrderId = null, status = null } = options;
    const { before, limit } = options;
    const filters = { marketId, outcomeId, side, clientOrderId, status };
    const rows = read({ ...walk(userId, before, options), ...filters, limit: limit + 1 });
    return pageOfWalk(rows, limit, (row) => orderJson(row, ""));
  };
}
