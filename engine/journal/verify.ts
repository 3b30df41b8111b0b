/** Checks the exchange's invariants on a database by SQL alone, in one read transaction. Knows nothing of the ledger. */
import type Database from "better-sqlite3";
import { CANDLE_MINUTES } from "../constants.ts";
import { MIGRATIONS } from "./schema.ts";

export interface Finding {
  readonly name: string;
  readonly ok: boolean;
  readonly figures: string;
}

/** Every invariant with its figures; all must be ok. @throws Error where the file isn't of this program's schema */
export function verifyDatabase(db: Database.Database): Finding[] {
  const version = db.pragma("user_version", { simple: true });
  if (version !== MIGRATIONS.length) {
    throw new Error(
      `the database is of schema ${version}, this program of ${MIGRATIONS.length}: start the exchange on it first`,
    );
  }
  return db.transaction(() => [
    fileIsIntact(db, "integrity_check"),
    sumsBalance(db),
    ...MUST_BE_EMPTY.map(([name, sql]) => isEmpty(db, name, sql)),
    entriesHaveNoGap(db),
  ])();
}

/** The quick part, which needs no schema of this version: is the copy whole, and do its sums balance? */
export function verifyCopy(db: Database.Database): Finding[] {
  return db.transaction(() => [fileIsIntact(db, "quick_check"), sumsBalance(db), entriesHaveNoGap(db)])();
}

function fileIsIntact(db: Database.Database, pragma: "integrity_check" | "quick_check"): Finding {
  const result = String(db.pragma(`${pragma}(1)`, { simple: true }));
  return { name: "the file is intact", ok: result === "ok", figures: result };
}

function sumsBalance(db: Database.Database): Finding {
  const row = db
    .prepare(
      `SELECT deposits, withdrawals, users_total, collateral, house,
         (SELECT coalesce(sum(balance), 0) FROM accounts) AS balances,
         (SELECT coalesce(sum(sets), 0) * 1000000 FROM markets) AS sets,
         (SELECT coalesce(sum(amount), 0) FROM entries WHERE type = 'deposit') AS deposited,
         (SELECT -coalesce(sum(amount), 0) FROM entries WHERE type = 'withdrawal') AS withdrawn
       FROM totals`,
    )
    .get() as Record<string, number>;
  const { deposits, withdrawals, users_total, collateral, house, balances, sets, deposited, withdrawn } = row as {
    deposits: number;
    withdrawals: number;
    users_total: number;
    collateral: number;
    house: number;
    balances: number;
    sets: number;
    deposited: number;
    withdrawn: number;
  };
  const ok =
    deposits - withdrawals === users_total + collateral + house &&
    users_total === balances &&
    collateral === sets &&
    deposits === deposited &&
    withdrawals === withdrawn;
  const figures = `deposits ${deposits} - withdrawals ${withdrawals} = balances ${balances} + collateral ${sets} + house ${house}`;
  return { name: "deposits - withdrawals = balances + collateral + house", ok, figures };
}

/** Fills once for every length of candles, in this order: candles are looked up, not searched. And: candle `c` counts it. */
const LENGTHS = `(SELECT value AS minutes FROM json_each('${JSON.stringify(Object.values(CANDLE_MINUTES))}'))`;
const TRADES_OF_LENGTHS = `${LENGTHS} CROSS JOIN fills`;
const OF_CANDLE = `c.outcome_id = fills.outcome_id AND c.interval = minutes
  AND c.open_time = created_at - created_at % (minutes * 60000) AND c.last_fill_id >= fills.id`;

/** Each query lists what breaks the invariant. */
const MUST_BE_EMPTY: readonly (readonly [string, string])[] = [
  [
    "shares of every outcome of an unresolved market = its outstanding sets",
    `SELECT o.id, coalesce(sum(p.quantity), 0) AS shares, m.sets FROM outcomes o JOIN markets m ON m.id = o.market_id
     LEFT JOIN positions p ON p.outcome_id = o.id WHERE m.status < 4 GROUP BY o.id HAVING shares <> m.sets`,
  ],
  [
    "each balance = the sum of its fills and entries",
    `SELECT a.user_id, balance, filled, entered FROM accounts a
     LEFT JOIN (SELECT user_id, sum(CASE side WHEN 1 THEN -1 ELSE 1 END * price * quantity * 100 - fee + rebate) AS filled
       FROM fills GROUP BY user_id) f ON f.user_id = a.user_id
     LEFT JOIN (SELECT user_id, sum(amount) AS entered FROM entries GROUP BY user_id) e ON e.user_id = a.user_id
     WHERE balance <> coalesce(filled, 0) + coalesce(entered, 0)`,
  ],
  [
    "the house has what fees, rebates, mints and settlements left, and what operators put in and took out",
    `SELECT house FROM totals WHERE house <>
       (SELECT coalesce(sum(CASE side WHEN 1 THEN 1 ELSE -1 END * price * quantity * 100 + fee - rebate), 0) FROM fills)
       - (SELECT coalesce(sum(CASE match_type WHEN 1 THEN 1 WHEN 2 THEN -1 ELSE 0 END * quantity), 0) * 1000000
          FROM fills WHERE role = 1)
       + (SELECT coalesce(sum(settled_sets), 0) * 1000000 FROM markets)
       - (SELECT coalesce(sum(amount), 0) FROM entries WHERE type = 'settlement')
       + (SELECT coalesce(sum(amount), 0) FROM entries WHERE user_id = 0)`,
  ],
  [
    "each market's sets, settled ones included, come from mints and splits less merges",
    `SELECT m.id, sets, settled_sets, minted, split FROM markets m
     LEFT JOIN (SELECT market_id, sum(CASE match_type WHEN 1 THEN 1 WHEN 2 THEN -1 ELSE 0 END * quantity) AS minted
       FROM fills JOIN outcomes ON outcomes.id = outcome_id WHERE role = 1 GROUP BY market_id) f ON f.market_id = m.id
     LEFT JOIN (SELECT market_id, -sum(amount) / 1000000 AS split FROM entries WHERE type IN ('split', 'merge')
       GROUP BY market_id) e ON e.market_id = m.id
     WHERE sets + settled_sets <> coalesce(minted, 0) + coalesce(split, 0)`,
  ],
  [
    "a resolved market has no collateral, no share and no live order left, and its payouts come to one set or a part of it",
    `SELECT id FROM markets WHERE status IN (4, 5) AND (sets <> 0 OR resolved_at IS NULL
         OR (SELECT sum(payout) FROM outcomes WHERE market_id = markets.id) NOT BETWEEN 1 AND 10000
         OR EXISTS (SELECT 1 FROM outcomes WHERE market_id = markets.id AND payout IS NULL))
       OR status NOT IN (4, 5) AND (settled_sets <> 0 OR resolved_at IS NOT NULL)
     UNION ALL SELECT market_id FROM positions JOIN outcomes ON id = outcome_id
       WHERE quantity > 0 AND market_id IN (SELECT id FROM markets WHERE status IN (4, 5))
     UNION ALL SELECT market_id FROM orders JOIN outcomes ON outcomes.id = outcome_id
       WHERE orders.status < 5 AND market_id IN (SELECT id FROM markets WHERE status NOT IN (1, 2))`,
  ],
  [
    "each share of a resolved market was paid what its outcome pays",
    `SELECT o.id, settled_sets, paid FROM outcomes o JOIN markets m ON m.id = o.market_id
     LEFT JOIN (SELECT outcome_id, sum(quantity) AS paid FROM entries WHERE type = 'settlement' GROUP BY outcome_id) e
       ON e.outcome_id = o.id WHERE coalesce(paid, 0) <> settled_sets
     UNION ALL SELECT e.id, e.quantity, amount FROM entries e LEFT JOIN outcomes o ON o.id = e.outcome_id
       WHERE type = 'settlement' AND amount IS NOT e.quantity * payout * 100`,
  ],
  [
    "each withdrawal that was paid left its user's balance once",
    `SELECT user_id, paid, taken FROM
       (SELECT user_id, sum(amount) AS paid, count(*) AS times FROM withdrawals WHERE status = 'paid' GROUP BY user_id)
       FULL JOIN (SELECT user_id, -sum(amount) AS taken, count(*) AS entered FROM entries
         WHERE type = 'withdrawal' AND user_id > 0 GROUP BY user_id) USING (user_id)
     WHERE (paid, times) IS NOT (taken, entered)`,
  ],
  [
    "what an order filled = the sum of its fills",
    `SELECT o.id FROM orders o LEFT JOIN (SELECT order_id, sum(quantity) AS filled FROM fills GROUP BY order_id) f
     ON f.order_id = o.id WHERE o.quantity - o.remaining <> coalesce(f.filled, 0)`,
  ],
  [
    "an order's state fits what remains of it",
    `SELECT id FROM orders WHERE (status = 5) <> (remaining = 0) OR (status = 3 AND remaining <> quantity)
     OR (status = 4 AND (remaining = quantity OR remaining = 0)) OR remaining > quantity`,
  ],
  [
    "live buys and pending withdrawals are covered by their owner's balance",
    `SELECT user_id FROM (
       SELECT user_id, price * remaining * 100 AS held FROM orders WHERE status < 5 AND side = 1
       UNION ALL SELECT user_id, amount FROM withdrawals WHERE status = 'pending') h
     GROUP BY user_id HAVING sum(held) > (SELECT balance FROM accounts a WHERE a.user_id = h.user_id)`,
  ],
  [
    "live sells are covered by their owner's shares",
    `SELECT user_id, outcome_id FROM orders WHERE status < 5 AND side = 2 GROUP BY user_id, outcome_id
     HAVING sum(remaining) > coalesce((SELECT quantity FROM positions p
       WHERE p.user_id = orders.user_id AND p.outcome_id = orders.outcome_id), 0)`,
  ],
  [
    "every match has one taker, and as many makers as its type asks for",
    `SELECT f.match_id FROM fills f JOIN outcomes o ON o.id = f.outcome_id GROUP BY f.match_id
     HAVING sum(f.role) <> 1 OR count(DISTINCT f.quantity) <> 1 OR count(*) <> CASE WHEN min(f.match_type) = 0 THEN 2
       ELSE (SELECT count(*) FROM outcomes x WHERE x.market_id = o.market_id) END`,
  ],
  [
    "each order leads to its owner's order before it",
    `SELECT id FROM (SELECT id, previous_of_user, lag(id, 1, 0) OVER (PARTITION BY user_id ORDER BY id) AS before
     FROM orders) WHERE previous_of_user <> before`,
  ],
  [
    "each fill leads to the one before it of its owner and its order",
    `SELECT id FROM (SELECT id, previous_of_user, lag(id, 1, 0) OVER (PARTITION BY user_id ORDER BY id) AS of_user,
       previous_of_order, lag(id, 1, 0) OVER (PARTITION BY order_id ORDER BY id) AS of_order FROM fills)
     WHERE previous_of_user <> of_user OR previous_of_order <> of_order`,
  ],
  [
    "each trade leads to the one before it of its market",
    `SELECT id FROM (SELECT f.id, previous_of_market,
       lag(f.id, 1, 0) OVER (PARTITION BY o.market_id ORDER BY f.id) AS before
     FROM fills f JOIN outcomes o ON o.id = f.outcome_id WHERE role = 1) WHERE previous_of_market <> before`,
  ],
  [
    "each order leads to its last fill, and to no other's",
    `SELECT o.id FROM orders o LEFT JOIN (SELECT order_id, max(id) AS newest FROM fills GROUP BY order_id) f
     ON f.order_id = o.id WHERE o.last_fill_id <> coalesce(f.newest, o.last_fill_id)
       OR (f.newest IS NULL AND EXISTS (SELECT 1 FROM fills x WHERE x.id = o.last_fill_id AND x.order_id = o.id))`,
  ],
  [
    "each entry leads to its user's last fill before it",
    `SELECT id FROM entries e WHERE last_fill_id <>
       (SELECT coalesce(max(f.id), 0) FROM fills f WHERE f.user_id = e.user_id AND f.id < e.id)`,
  ],
  [
    "each user's and market's newest rows are found",
    `SELECT user_id, max(id) AS newest FROM orders GROUP BY user_id
       HAVING newest <= (SELECT value FROM meta WHERE key = 'newest_order')
         AND newest IS NOT (SELECT order_id FROM newest_of_user n WHERE n.user_id = orders.user_id)
     UNION ALL SELECT user_id, max(id) AS newest FROM fills GROUP BY user_id
       HAVING newest <= (SELECT value FROM meta WHERE key = 'newest_fill')
         AND newest IS NOT (SELECT fill_id FROM newest_of_user n WHERE n.user_id = fills.user_id)
     UNION ALL SELECT market_id, max(f.id) AS newest FROM fills f JOIN outcomes o ON o.id = f.outcome_id WHERE role = 1
       GROUP BY market_id HAVING newest <= (SELECT value FROM meta WHERE key = 'newest_fill')
         AND newest IS NOT (SELECT fill_id FROM newest_of_market n WHERE n.market_id = o.market_id)`,
  ],
  [
    "each user's order updates are numbered without a gap, and lead to the one before",
    `SELECT at FROM (SELECT id AS at, sequence, previous_of_user, lag(id) OVER own AS before, lag(sequence) OVER own AS last
       FROM order_updates WINDOW own AS (PARTITION BY user_id ORDER BY id))
     WHERE before IS NOT NULL AND (previous_of_user <> before OR sequence <> last + 1)`,
  ],
  [
    "order updates are numbered without a gap up to the last",
    `SELECT count(*) AS rows, min(order_updates.id) AS first, max(order_updates.id) AS newest, totals.order_updates AS last
     FROM order_updates, totals HAVING rows > 0 AND (newest <> last OR newest - first + 1 <> rows)`,
  ],
  [
    "each user's newest order update is found",
    `SELECT user_id, max(id) AS newest FROM order_updates GROUP BY user_id
     HAVING newest <= (SELECT value FROM meta WHERE key = 'newest_update')
       AND (newest, max(sequence)) IS NOT
         (SELECT update_id, update_sequence FROM newest_of_user n WHERE n.user_id = order_updates.user_id)`,
  ],
  [
    "each mark names the order update of its number",
    `SELECT m.user_id, m.sequence FROM update_marks m LEFT JOIN order_updates u ON u.id = update_id
     WHERE (m.user_id, m.sequence) IS NOT (u.user_id, u.sequence)`,
  ],
  [
    "an order is as its last update told",
    `SELECT o.id FROM order_updates u JOIN orders o ON o.id = order_id
     WHERE u.id IN (SELECT max(id) FROM order_updates GROUP BY order_id)
       AND (u.user_id, u.price, u.quantity, u.remaining, u.status, u.reason) <>
         (o.user_id, o.price, o.quantity, o.remaining, o.status, o.reason)`,
  ],
  [
    "every fill of an order is told in one update",
    `SELECT o.id FROM orders o JOIN (SELECT order_id, sum(fills) AS told, max(last_fill_id) AS newest FROM order_updates
       GROUP BY order_id) u ON u.order_id = o.id
     LEFT JOIN (SELECT order_id, count(*) AS filled, max(id) AS newest FROM fills GROUP BY order_id) f ON f.order_id = o.id
     WHERE o.status <> 2 AND o.created_at >
         (SELECT min(created_at) + CASE min(id) WHEN 1 THEN 0 ELSE 60000 END FROM order_updates)
       AND (told, u.newest) IS NOT (coalesce(filled, 0), coalesce(f.newest, 0))`,
  ],
  [
    "each builder's sums are those of its orders and fills",
    `SELECT code FROM builders b WHERE orders <> (SELECT count(*) FROM orders WHERE builder_id = b.id)
       OR (fills, volume, notional, fees) <> (SELECT count(*), coalesce(sum(quantity), 0),
         coalesce(sum(price * quantity * 100), 0), coalesce(sum(fee), 0) FROM fills WHERE builder_id = b.id)`,
  ],
  [
    "each fill has its order's builder",
    "SELECT fills.id FROM fills JOIN orders ON orders.id = order_id WHERE fills.builder_id IS NOT orders.builder_id",
  ],
  [
    "every market and event can be searched for",
    `SELECT id FROM markets WHERE id NOT IN (SELECT rowid FROM market_words)
     UNION ALL SELECT id FROM events WHERE id NOT IN (SELECT rowid FROM event_words)`,
  ],
  [
    "each trade is in its candles",
    `SELECT id FROM ${TRADES_OF_LENGTHS} WHERE role = 1
       AND id <= (SELECT value FROM meta WHERE key = 'candles_fill') AND NOT EXISTS (SELECT 1 FROM candles c WHERE ${OF_CANDLE})`,
  ],
  [
    "each candle is what its trades up to its last come to",
    `SELECT outcome_id, interval, open_time FROM (
       SELECT c.*, min(id) AS first, max(id) AS last, sum(quantity) AS traded, max(price) AS highest,
         min(price) AS lowest
       FROM ${TRADES_OF_LENGTHS} CROSS JOIN candles c ON ${OF_CANDLE}
       WHERE role = 1 GROUP BY c.outcome_id, interval, open_time)
     WHERE (last_fill_id, volume, high, low) <> (last, traded, highest, lowest)
       OR open <> (SELECT price FROM fills WHERE id = first) OR close <> (SELECT price FROM fills WHERE id = last)
     UNION ALL SELECT c.outcome_id, interval, open_time FROM candles c LEFT JOIN fills ON id = last_fill_id
       WHERE (role, fills.outcome_id, created_at - created_at % (interval * 60000)) IS NOT (1, c.outcome_id, open_time)`,
  ],
  [
    "live orders are listed",
    `SELECT id FROM orders WHERE status < 5 AND id <= (SELECT value FROM meta WHERE key = 'orders_listed')
       AND id NOT IN (SELECT order_id FROM resting_orders)`,
  ],
];

const SHOWN = 5;

function isEmpty(db: Database.Database, name: string, sql: string): Finding {
  const rows = db.prepare(`SELECT * FROM (${sql}) LIMIT ${SHOWN}`).all();
  return { name, ok: rows.length === 0, figures: rows.length === 0 ? "no exception" : JSON.stringify(rows) };
}

function entriesHaveNoGap(db: Database.Database): Finding {
  const [rows, last] = db
    .prepare("SELECT (SELECT count(*) FROM fills) + (SELECT count(*) FROM entries), last_entry_id FROM totals")
    .raw()
    .get() as [number, number];
  return { name: "fills and entries are numbered without a gap", ok: rows === last, figures: `${rows} of ${last}` };
}
