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
import { type LiveOrder, loadLiveOrders } from "./orders.ts";

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
  const orders: { readonly priority: number; readonly record: Buffer }[] = [];
  for (const order of loadLiveOrders(db)) {
    const market = marketOf.get(order.outcome);
    assert(market !== undefined, "every outcome has a market");
    orders.push({ priority: order.priority, record: recordOf(order, market, unreported.get(order.id) ?? 0) });
  }
  orders.sort((a, b) => a.priority - b.priority);
  return { markets, orders: Buffer.concat(orders.map(({ record }) => record)) };
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

function recordOf(live: LiveOrder, market: number, unreported: number): Buffer {
  const words = new Int32Array(R.RECORD_WORDS);
  const order = new CommandRecord().at(words, new Float64Array(words.buffer), 0);
  order.packed = R.packCommand(R.CommandKind.restoreOrder, live.terms);
  order.user = live.user;
  order.outcome = live.outcome;
  order.price = live.price;
  order.quantity = live.remaining - unreported;
  order.market = market;
  order.total = live.quantity;
  order.orderId = live.id;
  order.time = live.createdAt;
  order.expiresAt = live.expiresAt;
  order.openingPriority = live.priority;
  return Buffer.from(words.buffer);
}
