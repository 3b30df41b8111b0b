/**
 * Reads fills: of an order, of a user, and of a market as its trades. To be called in a read transaction, so that the
 * newest row's id and the rows fit each other.
 */
import type Database from "better-sqlite3";
import { MATCH_TYPES } from "../../engine/constants.ts";
import { firstIdSince } from "../../engine/projection/load/orders.ts";
import type { HistoryPage, OwnPageOptions } from "../http/paging.ts";
import { type FillView, type ListedFillView, listedFillJson } from "../orders/order-json.ts";
import { MAX_ROWS_WALKED } from "./limits.ts";
import {
  endOfWalk,
  pageOfWalk,
  prepareRows,
  prepareStart,
  prepareWalk,
  UNBOUNDED,
  type Walked,
} from "./linked-rows.ts";
import { type OrderRow, prepareOrderRow } from "./order-rows.ts";
import type { FillFilters, FillRow, FillsOptions, TradesOptions } from "./types.ts";

type WalkedFill = FillRow & Walked;
type FillPage = OwnPageOptions & FillFilters;

export interface FillReader {
  /** As JSON. */
  fills(options: FillsOptions): HistoryPage<string>;
  trades(options: TradesOptions): HistoryPage;
  /**
   * An order's latest fills, oldest first.
   * @param lastFillId the order's last fill, 0 for none
   */
  latestOfOrder(orderId: number, lastFillId: number, limit: number): FillView[];
  /** A user's fills, one more than the page has where there is one; `end` is the last fill scanned, null for all. */
  rowsOfUser(options: FillPage): { rows: FillRow[]; end: number | null };
  /** Shares traded by market and hour since a moment, ms. */
  hourlyVolumes(options: { since: number }): [marketId: number, hour: number, volume: number][];
}

const FILL_COLUMNS = `fills.id, match_id, user_id, order_id, outcomes.market_id, outcome_id, side, price, quantity, role,
  match_type, fee, rebate, balance_after, created_at,
  (SELECT code FROM builders WHERE builders.id = builder_id) AS builder_code`;
/** Fills that the tables of the newest rows don't know yet. */
const IN_SPAN = "(@from IS NULL OR created_at >= @from) AND (@to IS NULL OR created_at <= @to)";
const NO_FILL_FILTERS: Required<FillFilters> = { marketId: null, from: null, to: null, side: null, rebated: null };
const EVERY_FILL = { ...UNBOUNDED, marketId: null, from: null, to: null };

export function prepareFills(db: Database.Database): FillReader {
  const ofOrder = prepareFillsOfOrder(db);
  const ofUser = prepareFillsOfUser(db);
  return {
    latestOfOrder: ofOrder.latest,
    fills(options) {
      const { userId, before, limit, orderId = null, marketId = null, from = null, to = null } = options;
      const page = { userId, before, limit, marketId, from, to };
      const rows = orderId === null ? ofUser(page) : ofOrder.page(page, orderId);
      return pageOfWalk(rows, limit, (row) => listedFillJson(viewOf(row)));
    },
    rowsOfUser(options) {
      const rows = ofUser(options);
      return { rows: rows.filter(({ fits }) => fits === 1), end: endOfWalk(rows) };
    },
    trades: prepareTrades(db),
    hourlyVolumes: ({ since }) =>
      db
        .prepare(
          `SELECT market_id, created_at / 3600000 AS hour, sum(quantity) FROM fills JOIN outcomes ON outcomes.id = outcome_id
           WHERE fills.id >= ? AND role = 1 GROUP BY 1, 2`,
        )
        .raw()
        .all(firstIdSince(db, "fills", since)) as [number, number, number][],
  };
}

function fillOf({ id, match_id: matchId, match_type: matchType, created_at: createdAt, ...row }: FillRow): FillView {
  const { price, quantity, role, fee, rebate } = row;
  return { id, matchId, price, quantity, role, matchType, fee, rebate, createdAt };
}

function viewOf(row: FillRow): ListedFillView {
  const { side } = row;
  return {
    ...fillOf(row),
    order: row.order_id,
    market: row.market_id,
    outcome: row.outcome_id,
    side,
    builderCode: row.builder_code,
  };
}

function prepareFillsOfOrder(db: Database.Database) {
  const orderRow = prepareOrderRow(db);
  const previousInOrder = db.prepare("SELECT previous_of_order FROM fills WHERE id = ? AND order_id = ?").pluck();
  const read = prepareRows<FillRow>(db, {
    table: "fills",
    link: "previous_of_order",
    columns: FILL_COLUMNS,
    filters: `order_id = @orderId AND fills.id < @before AND (@marketId IS NULL OR outcomes.market_id = @marketId)
      AND ${IN_SPAN}`,
  });
  /** Usually `before` is a fill of the order, the last of the page before, and this page begins behind it. */
  const startIn = ({ id, lastFillId }: OrderRow, before: number): number =>
    Number(previousInOrder.get(before, id) ?? lastFillId);
  return {
    latest(orderId: number, start: number, limit: number): FillView[] {
      const newestFirst = read({ ...EVERY_FILL, start, orderId, limit });
      return newestFirst.reverse().map(fillOf);
    },
    page({ userId, before, limit, ...filters }: FillPage, orderId: number): WalkedFill[] {
      const row = orderRow(orderId);
      if (row?.userId !== userId) return [];
      const bounds = { before, walk: MAX_ROWS_WALKED, start: startIn(row, before), limit: limit + 1 };
      return read({ ...EVERY_FILL, ...filters, ...bounds, orderId });
    },
  };
}

function prepareFillsOfUser(db: Database.Database): (options: FillPage) => WalkedFill[] {
  const findStart = prepareStart(
    db,
    "SELECT fill_id FROM newest_of_user WHERE user_id = @owner",
    `SELECT previous_of_user FROM fills WHERE id = @id AND user_id = @owner
     UNION ALL SELECT last_fill_id FROM entries WHERE id = @id AND user_id = @owner
     UNION ALL SELECT id FROM fills WHERE id = @id - 1 AND user_id = @owner`,
  );
  const walk = prepareWalk(db, "fills", findStart, "user_id = @owner");
  const read = prepareRows<FillRow>(db, {
    table: "fills",
    link: "previous_of_user",
    columns: FILL_COLUMNS,
    filters: `fills.id < @before AND (@marketId IS NULL OR outcomes.market_id = @marketId) AND ${IN_SPAN}
      AND (@side IS NULL OR side = @side) AND (@rebated IS NULL OR rebate > 0)`,
  });
  return ({ userId, before, limit, ...filters }) =>
    read({ ...NO_FILL_FILTERS, ...filters, ...walk(userId, before, filters), limit: limit + 1 });
}

function prepareTrades(db: Database.Database): (options: TradesOptions) => HistoryPage {
  const findStart = prepareStart(
    db,
    "SELECT fill_id FROM newest_of_market WHERE market_id = @owner",
    `SELECT previous_of_market FROM fills JOIN outcomes ON outcomes.id = outcome_id
     WHERE fills.id = @id AND role = 1 AND market_id = @owner`,
  );
  const walk = prepareWalk(db, "fills", findStart, "role = 1 AND market_id = @owner");
  const read = prepareRows<FillRow>(db, {
    table: "fills",
    link: "previous_of_market",
    columns: FILL_COLUMNS,
    filters: `fills.id < @before AND (@outcomeId IS NULL OR outcome_id = @outcomeId) AND ${IN_SPAN}`,
  });
  return (options) => {
    const { marketId, outcomeId = null, before, limit } = options;
    const rows = read({ ...walk(marketId, before, options), outcomeId, limit: limit + 1 });
    return pageOfWalk(rows, limit, (row) => ({
      id: row.match_id,
      market_id: row.market_id,
      outcome_id: row.outcome_id,
      side: row.side,
      price: row.price,
      quantity: row.quantity,
      match_type: MATCH_TYPES[row.match_type],
      created_at: row.created_at,
    }));
  };
}
