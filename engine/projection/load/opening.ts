/**
 * The books as the tables have them, in the form of a log's opening (engine/log/opening.ts): for an exchange whose log
 * doesn't begin with its first batch. Never writes.
 */
import type Database from "better-sqlite3";
import { MarketStatus } from "../../constants.ts";
import type { Opening, OpeningMarket } from "../../log/opening.ts";
import { CommandRecord } from "../../ring/command-record.ts";
import * as R from "../../ring/records.ts";
import { assert } from "../../util/assert.ts";
import { type LiveOrderRow, loadLiveOrders } from "./orders.ts";

const TRADABLE = [MarketStatus.proposed, MarketStatus.open, MarketStatus.halted, MarketStatus.closed].join(", ");

/** The markets that can trade, and the live orders by priority. */
export function loadOpening(db: Database.Database): Opening {
  const markets = db
    .prepare(
      `SELECT m.id, min(o.id), count(*), status FROM markets m JOIN outcomes o ON o.market_id = m.id
       WHERE status IN (${TRADABLE}) GROUP BY m.id ORDER BY m.id`,
    )
    .raw()
    .all() as OpeningMarket[];
  const marketOf = new Map(db.prepare("SELECT id, market_id FROM outcomes").raw().all() as [number, number][]);
  const unreported = unreportedFills(db);
  const orders: Buffer[] = [];
  for (const row of loadLiveOrders(db)) {
    const market = marketOf.get(row[2]);
    assert(market !== undefined, "every outcome has a market");
    orders.push(recordOf(row, market, unreported.get(row[0]) ?? 0));
  }
  return { markets, orders: Buffer.concat(orders) };
}

/** By order in the middle of its matching: the shares of its fills that its row doesn't include. */
function unreportedFills(db: Database.Database): Map<number, number> {
  const rows = db.prepare(
    `WITH RECURSIVE chain (order_id, link, left) AS (
       SELECT order_id, last_fill_id, u.fills FROM unfinished_orders u JOIN orders ON id = order_id
       UNION ALL SELECT chain.order_id, previous_of_order, left - 1 FROM chain CROSS JOIN fills ON id = link WHERE left > 1)
     SELECT chain.order_id, sum(quantity) FROM chain CROSS JOIN fills ON id = link GROUP BY 1`,
  );
  return new Map(rows.raw().all() as [number, number][]);
}

function recordOf(row: LiveOrderRow, market: number, unreported: number): Buffer {
  const [id, user, outcome, side, type, tif, stp, postOnly, pat, price, quantity, remaining, , ...rest] = row;
  const [expiresAt, clientOrderId, createdAt, , , builderCode, quote, tied, priority] = rest;
  const flags =
    (postOnly === 1 ? R.FLAG_POST_ONLY : 0) |
    (pat === 1 ? R.FLAG_PAT : 0) |
    (quote === 1 ? R.FLAG_QUOTE : 0) |
    (tied === 1 ? R.FLAG_CANCEL_ON_DISCONNECT : 0) |
    (clientOrderId !== null || builderCode !== null ? R.FLAG_TEXT : 0);
  const words = new Int32Array(R.RECORD_WORDS);
  const order = new CommandRecord().at(words, new Float64Array(words.buffer), 0);
  order.packed = R.packCommand(R.CommandKind.restoreOrder, side, type, tif, stp, flags);
  order.user = user;
  order.outcome = outcome;
  order.price = price;
  order.quantity = remaining - unreported;
  order.market = market;
  order.total = quantity;
  order.orderId = id;
  order.time = createdAt;
  order.expiresAt = expiresAt ?? 0;
  order.openingPriority = priority ?? id;
  return Buffer.from(words.buffer);
}
