/**
 * The exchange's invariants as queries over its database: each query lists the violations of one. No query scans a table
 * once per row of another. Codes of statuses and types are those of constants.ts.
 */
import { CANDLE_MINUTES, MarketStatus, OrderStatus, REASONS } from "../constants.ts";
import {
  DAILY_ACTIVITY_LIMIT_MICRO,
  FULL_PRICE_BPS,
  MAX_MERGE_FEE_BPS,
  MAX_OUTCOMES,
  MAX_OWN_RATE_BPS,
  MAX_PRICE_BPS,
  MAX_QUANTITY,
  MICRO_PER_SHARE,
  MIN_OUTCOMES,
  MIN_PRICE_BPS,
} from "../limits.ts";
import { MS_PER_DAY, MS_PER_HOUR } from "../money.ts";

export interface Invariant {
  readonly name: string;
  /** The tables that it covers. */
  readonly of: readonly string[];
  /** Returns the violations. */
  readonly sql: string;
}

/** Rows that only the table or only the query has. */
function differences(table: string, columns: string, query: string): string {
  return `WITH expected AS MATERIALIZED (SELECT ${columns} FROM (${query}))
    SELECT * FROM (SELECT ${columns} FROM ${table} EXCEPT SELECT * FROM expected)
    UNION ALL SELECT * FROM (SELECT * FROM expected EXCEPT SELECT ${columns} FROM ${table})`;
}

/** By table: a condition that holds only for invalid rows. */
const CODES: readonly (readonly [table: string, wrong: string])[] = [
  ["users", `role NOT IN ('user', 'operator') OR kyc_tier NOT BETWEEN 0 AND ${DAILY_ACTIVITY_LIMIT_MICRO.length - 1}`],
  ["markets", `status NOT BETWEEN ${MarketStatus.proposed} AND ${MarketStatus.rejected}`],
  [
    "orders",
    `side NOT IN (1, 2) OR type NOT IN (0, 1, 2) OR time_in_force NOT BETWEEN 0 AND 3 OR self_trade_prevention NOT BETWEEN 0 AND 3
     OR status NOT BETWEEN ${OrderStatus.queued} AND ${OrderStatus.rejected} OR reason NOT BETWEEN 0 AND ${REASONS.length - 1}
     OR price NOT BETWEEN ${MIN_PRICE_BPS} AND ${MAX_PRICE_BPS} OR quantity NOT BETWEEN 0 AND ${MAX_QUANTITY}`,
  ],
  [
    "fills",
    `side NOT IN (1, 2) OR role NOT IN (0, 1) OR match_type NOT BETWEEN 0 AND 2
     OR price NOT BETWEEN ${MIN_PRICE_BPS} AND ${MAX_PRICE_BPS} OR quantity NOT BETWEEN 1 AND ${MAX_QUANTITY}`,
  ],
  [
    "entries",
    `NOT CASE type WHEN 'deposit' THEN amount > 0 = (reverses IS NULL) WHEN 'withdrawal' THEN amount < 0 WHEN 'settlement' THEN
         user_id > 0 AND amount >= 0 AND quantity > 0 AND market_id IS NOT NULL AND outcome_id IS NOT NULL
       WHEN 'split' THEN user_id > 0 AND amount < 0 AND amount % ${MICRO_PER_SHARE} = 0 AND market_id IS NOT NULL
       WHEN 'merge' THEN user_id > 0 AND amount > 0 AND amount % ${MICRO_PER_SHARE} = 0 AND market_id IS NOT NULL
       WHEN 'fee' THEN user_id > 0 AND amount < 0 AND market_id IS NOT NULL ELSE 0 END`,
  ],
  ["withdrawals", "status NOT IN ('pending', 'paid', 'refused', 'canceled')"],
  ["identity_applications", "status NOT IN ('pending', 'approved', 'refused')"],
];

/** Columns with ids of another table, or NULL (which `NOT IN` an empty table would report). */
const LINKS: readonly (readonly [table: string, column: string, parent: string])[] = [
  ["accounts", "user_id", "users"],
  ["outcomes", "market_id", "markets"],
  ["markets", "event_id", "events"],
  ["markets", "proposed_by", "users"],
  ["orders", "user_id", "users"],
  ["orders", "outcome_id", "outcomes"],
  ["orders", "builder_id", "builders"],
  ["fills", "order_id", "orders"],
  ["term_changes", "order_id", "orders"],
  ["unfinished_orders", "order_id", "orders"],
  ["update_index", "user_id", "users"],
  ["newest_of_user", "user_id", "users"],
  ["positions", "user_id", "users"],
  ["positions", "outcome_id", "outcomes"],
  ["entries", "nullif(user_id, 0)", "users"],
  ["entries", "market_id", "markets"],
  ["entries", "outcome_id", "outcomes"],
  ["withdrawals", "user_id", "users"],
  ["personal_access_tokens", "user_id", "users"],
  ["sessions", "user_id", "users"],
  ["sessions", "grant_id", "oauth_grants"],
  ["email_tokens", "user_id", "users"],
  ["identity_applications", "user_id", "users"],
  ["oauth_clients", "user_id", "users"],
  ["oauth_grants", "user_id", "users"],
  ["oauth_grants", "client_id", "oauth_clients"],
  ["social_identities", "user_id", "users"],
];

/** The lengths of candles, minutes. */
const LENGTHS = `(SELECT value AS length FROM json_each('${JSON.stringify(Object.values(CANDLE_MINUTES))}'))`;

/** The last fill or entry from before rebates were bounded and voided sets paid 1 USDC. */
const OLD_REBATES = "(SELECT value FROM meta WHERE key = 'old_rebates')";

export const INVARIANTS: readonly Invariant[] = [
  {
    name: "every code, price and quantity is valid",
    of: ["users", "markets", "orders", "fills", "entries", "withdrawals"],
    sql: `${CODES.map(([table, wrong]) => `SELECT '${table}' AS place, id FROM ${table} WHERE ${wrong}`).join(" UNION ALL ")}`,
  },
  {
    name: "every row refers to existing rows",
    of: ["users", "outcomes", "orders", "fills", "entries", "positions"],
    sql: `${LINKS.map(([table, column, parent]) => {
      return `SELECT '${table}.${column}' AS place, ${column} AS id FROM ${table}
        WHERE ${column} IS NOT NULL AND ${column} NOT IN (SELECT id FROM ${parent})`;
    }).join(" UNION ALL ")}
     UNION ALL SELECT 'users without an account', id FROM users WHERE id NOT IN (SELECT user_id FROM accounts)`,
  },
  {
    name: "the outcomes of a market are numbered consecutively, 2 to 32 of them",
    of: ["markets", "outcomes"],
    sql: `SELECT m.id, count(o.id) AS outcomes, min(position) AS first, max(position) AS last FROM markets m
     LEFT JOIN outcomes o ON o.market_id = m.id GROUP BY m.id
     HAVING outcomes NOT BETWEEN ${MIN_OUTCOMES} AND ${MAX_OUTCOMES} OR first <> 0 OR last <> outcomes - 1
       OR max(o.id) - min(o.id) <> outcomes - 1 OR count(DISTINCT position) <> outcomes`,
  },
  {
    name: "shares of every outcome of an unresolved market = its outstanding sets",
    of: ["outcomes", "positions"],
    sql: `SELECT o.id, coalesce(sum(p.quantity), 0) AS shares, m.sets FROM outcomes o JOIN markets m ON m.id = o.market_id
     LEFT JOIN positions p ON p.outcome_id = o.id WHERE m.status NOT IN (4, 5) GROUP BY o.id HAVING shares <> m.sets`,
  },
  {
    name: "each position = its fills, splits and merges, less its settlements",
    of: ["positions", "fills", "entries"],
    sql: `SELECT user_id, outcome_id, sum(shares) AS off FROM (
       SELECT user_id, outcome_id, CASE side WHEN 1 THEN quantity ELSE -quantity END AS shares FROM fills
       UNION ALL SELECT user_id, o.id, -amount / 1000000 FROM entries JOIN outcomes o USING (market_id)
         WHERE type IN ('split', 'merge')
       UNION ALL SELECT user_id, outcome_id, -quantity FROM entries WHERE type = 'settlement'
       UNION ALL SELECT user_id, outcome_id, -quantity FROM positions)
     GROUP BY user_id, outcome_id HAVING off <> 0`,
  },
  {
    name: "each balance = the sum of its fills and entries",
    of: ["accounts", "fills", "entries"],
    sql: `SELECT a.user_id, balance, filled, entered FROM accounts a
     LEFT JOIN (SELECT user_id, sum(CASE side WHEN 1 THEN -1 ELSE 1 END * price * quantity * 100 - fee + rebate) AS filled
       FROM fills GROUP BY user_id) f ON f.user_id = a.user_id
     LEFT JOIN (SELECT user_id, sum(amount) AS entered FROM entries GROUP BY user_id) e ON e.user_id = a.user_id
     WHERE balance <> coalesce(filled, 0) + coalesce(entered, 0)`,
  },
  {
    name: "each balance follows from the previous row, and its account has the last one",
    of: ["accounts", "fills", "entries"],
    // The previous row is the previous fill, or an entry after it. Other invariants check the links.
    sql: `SELECT f.id, f.user_id, f.balance_after FROM fills f LEFT JOIN fills p ON p.id = f.previous_of_user
       LEFT JOIN entries e ON e.id = (SELECT max(id) FROM entries x INDEXED BY entries_by_user
         WHERE x.user_id = f.user_id AND x.id < f.id AND x.id > f.previous_of_user)
       WHERE coalesce(e.balance_after, p.balance_after, 0) + CASE f.side WHEN 1 THEN -1 ELSE 1 END * f.price * f.quantity * 100
         - f.fee + f.rebate <> f.balance_after
     UNION ALL SELECT e.id, e.user_id, e.balance_after FROM entries e LEFT JOIN fills p ON p.id = e.last_fill_id
       LEFT JOIN entries d ON d.id = (SELECT max(id) FROM entries x INDEXED BY entries_by_user
         WHERE x.user_id = e.user_id AND x.id < e.id AND x.id > e.last_fill_id)
       WHERE e.user_id > 0 AND coalesce(d.balance_after, p.balance_after, 0) + e.amount <> e.balance_after
     UNION ALL SELECT max(coalesce(p.id, 0), coalesce(d.id, 0)), a.user_id, balance FROM accounts a
       LEFT JOIN newest_of_user n ON n.user_id = a.user_id LEFT JOIN fills p ON p.id = n.fill_id
       LEFT JOIN entries d ON d.id = (SELECT max(id) FROM entries x INDEXED BY entries_by_user
         WHERE x.user_id = a.user_id AND x.id > coalesce(n.fill_id, 0))
       WHERE balance <> coalesce(d.balance_after, p.balance_after, 0)`,
  },
  {
    name: "the house = fees less rebates, the remainders of mints, merges and settlements, and operators' deposits less withdrawals",
    of: ["fills", "entries", "markets"],
    sql: `SELECT house FROM totals WHERE house <>
       (SELECT coalesce(sum(CASE side WHEN 1 THEN 1 ELSE -1 END * price * quantity * 100 + fee - rebate), 0) FROM fills)
       - (SELECT coalesce(sum(CASE match_type WHEN 1 THEN 1 WHEN 2 THEN -1 ELSE 0 END * quantity), 0) * 1000000
          FROM fills WHERE role = 1)
       + (SELECT coalesce(sum(settled_sets), 0) * 1000000 FROM markets)
       - (SELECT coalesce(sum(amount), 0) FROM entries WHERE type IN ('settlement', 'fee'))
       + (SELECT coalesce(sum(amount), 0) FROM entries WHERE user_id = 0)`,
  },
  {
    name: "only sellers pay fees and only resting orders get rebates, within their bounds",
    of: ["fills"],
    sql: `SELECT id, fee, rebate FROM fills WHERE fee < 0 OR rebate < 0 OR (side = 1 AND fee <> 0) OR (role = 1 AND rebate <> 0)
       OR (fee - 1) * ${FULL_PRICE_BPS} >= price * quantity * 100 * ${MAX_OWN_RATE_BPS}
       OR rebate * ${FULL_PRICE_BPS} > price * quantity * 100 * ${MAX_OWN_RATE_BPS}`,
  },
  {
    name: "the rebates of a match come out of its fees",
    of: ["fills"],
    sql: `SELECT match_id, sum(fee) AS fees, sum(rebate) AS rebates FROM fills
     WHERE id > ${OLD_REBATES} GROUP BY match_id HAVING rebates > fees`,
  },
  {
    name: "each merge fee follows its merge, and is a part of it",
    of: ["entries"],
    sql: `SELECT f.id, f.amount FROM entries f LEFT JOIN entries m ON m.id = f.id - 1
     WHERE f.type = 'fee' AND ((m.type, m.user_id, m.market_id, m.created_at) IS NOT ('merge', f.user_id, f.market_id, f.created_at)
       OR -f.amount * ${FULL_PRICE_BPS} > m.amount * ${MAX_MERGE_FEE_BPS} OR f.amount * ${FULL_PRICE_BPS} % m.amount <> 0)`,
  },
  {
    name: "each account's activity = the notional of its buys and splits on its last day with either",
    of: ["accounts", "fills", "entries"],
    sql: `SELECT a.user_id, activity_day, activity_used, day, entered FROM accounts a
     LEFT JOIN (SELECT user_id, max(day) AS day, entered FROM (
       SELECT user_id, day, sum(amount) AS entered FROM (
         SELECT user_id, created_at / ${MS_PER_DAY} AS day, price * quantity * 100 AS amount FROM fills WHERE side = 1
         UNION ALL SELECT user_id, created_at / ${MS_PER_DAY}, -amount FROM entries WHERE type = 'split')
       GROUP BY user_id, day) GROUP BY user_id) t ON t.user_id = a.user_id
     WHERE activity_used <> coalesce(entered, 0) OR activity_day <> coalesce(day, 0)`,
  },
  {
    name: "each account's fees and rebates = those of its fills and merges",
    of: ["accounts", "fills", "entries"],
    sql: `SELECT a.user_id, a.fees, a.rebates, s.fees, s.rebates FROM accounts a
     LEFT JOIN (SELECT user_id, sum(fee) AS fees, sum(rebate) AS rebates FROM (
       SELECT user_id, fee, rebate FROM fills UNION ALL SELECT user_id, -amount, 0 FROM entries WHERE type = 'fee')
       GROUP BY user_id) s ON s.user_id = a.user_id
     WHERE (a.fees, a.rebates) IS NOT (coalesce(s.fees, 0), coalesce(s.rebates, 0))`,
  },
  {
    name: "the hourly balances are those before the first change in each hour",
    of: ["balance_hours", "fills", "entries"],
    sql: differences(
      "balance_hours",
      "user_id, hour, balance",
      `SELECT user_id, hour, balance, min(id) FROM (
         SELECT id, user_id, balance, max(created_at / ${MS_PER_HOUR}) OVER (PARTITION BY user_id ORDER BY id) AS hour FROM (
           SELECT id, user_id, created_at, balance_after
             - (CASE side WHEN 1 THEN -1 ELSE 1 END * price * quantity * 100 - fee + rebate) AS balance FROM fills
           UNION ALL SELECT id, user_id, created_at, balance_after - amount FROM entries WHERE user_id > 0))
       GROUP BY user_id, hour`,
    ),
  },
  {
    name: "the hourly positions are those before the first change in each hour",
    of: ["position_hours", "fills", "entries"],
    sql: differences(
      "position_hours",
      "user_id, hour, outcome_id, quantity",
      `SELECT user_id, hour, outcome_id, quantity, min(id) FROM (
         SELECT id, user_id, outcome_id, max(created_at / ${MS_PER_HOUR}) OVER own AS hour, sum(shares) OVER own - shares AS quantity
         FROM (
           SELECT id, user_id, outcome_id, created_at, CASE side WHEN 1 THEN quantity ELSE -quantity END AS shares FROM fills
           UNION ALL SELECT e.id, user_id, o.id, e.created_at, -amount / 1000000 FROM entries e JOIN outcomes o USING (market_id)
             WHERE type IN ('split', 'merge')
           UNION ALL SELECT id, user_id, outcome_id, created_at, -quantity FROM entries WHERE type = 'settlement')
         WINDOW own AS (PARTITION BY user_id, outcome_id ORDER BY id))
       GROUP BY user_id, outcome_id, hour`,
    ),
  },
  {
    name: "each market's sets, settled ones included, = mints and splits less merges",
    of: ["markets", "fills", "entries"],
    sql: `SELECT m.id, sets, settled_sets, minted, split FROM markets m
     LEFT JOIN (SELECT market_id, sum(CASE match_type WHEN 1 THEN 1 WHEN 2 THEN -1 ELSE 0 END * quantity) AS minted
       FROM fills JOIN outcomes ON outcomes.id = outcome_id WHERE role = 1 GROUP BY market_id) f ON f.market_id = m.id
     LEFT JOIN (SELECT market_id, -sum(amount) AS split FROM entries WHERE type IN ('split', 'merge')
       GROUP BY market_id) e ON e.market_id = m.id
     WHERE (sets + settled_sets - coalesce(minted, 0)) * 1000000 <> coalesce(split, 0)`,
  },
  {
    name: "a resolved market has no collateral, shares or live orders, and its payouts are whole or equal parts",
    of: ["markets", "outcomes", "positions", "orders"],
    // The remainder of equal parts goes to the first outcomes; markets voided before that rule have identical parts.
    sql: `SELECT m.id FROM markets m
       JOIN (SELECT market_id, max(parts) AS outcomes, count(payout) AS known, sum(payout) AS total, min(payout) AS least,
           sum(payout <> ${FULL_PRICE_BPS} / parts + (position < ${FULL_PRICE_BPS} % parts)) AS off,
           sum(payout <> ${FULL_PRICE_BPS} / parts) AS uneven
         FROM (SELECT *, count(*) OVER (PARTITION BY market_id) AS parts FROM outcomes) GROUP BY market_id) o
         ON o.market_id = m.id
       LEFT JOIN (SELECT market_id, max(id) AS paid FROM entries WHERE type = 'settlement' GROUP BY market_id) e
         ON e.market_id = m.id
       WHERE CASE WHEN status IN (4, 5) THEN sets <> 0 OR resolved_at IS NULL OR known <> outcomes OR least < 0
           OR (status = 4 AND total <> ${FULL_PRICE_BPS})
           OR (status = 5 AND off > 0 AND (uneven > 0 OR coalesce(paid, 0) > ${OLD_REBATES}))
         ELSE settled_sets <> 0 OR resolved_at IS NOT NULL OR known <> 0 END
     UNION ALL SELECT market_id FROM positions JOIN outcomes ON id = outcome_id
       WHERE quantity > 0 AND market_id IN (SELECT id FROM markets WHERE status IN (4, 5))
     UNION ALL SELECT market_id FROM orders o JOIN outcomes ON outcomes.id = outcome_id
       WHERE o.status < 5 AND market_id NOT IN (SELECT id FROM markets WHERE status IN (1, 2))`,
  },
  {
    name: "each share of a resolved market was paid its outcome's payout once",
    of: ["outcomes", "entries"],
    sql: `SELECT o.id, settled_sets, paid FROM outcomes o JOIN markets m ON m.id = o.market_id
     LEFT JOIN (SELECT outcome_id, sum(quantity) AS paid FROM entries WHERE type = 'settlement' GROUP BY outcome_id) e
       ON e.outcome_id = o.id WHERE coalesce(paid, 0) <> settled_sets
     UNION ALL SELECT e.id, e.quantity, amount FROM entries e LEFT JOIN outcomes o ON o.id = e.outcome_id
       WHERE type = 'settlement' AND (e.market_id, amount) IS NOT (o.market_id, e.quantity * payout * 100)
     UNION ALL SELECT user_id, outcome_id, count(*) FROM entries WHERE type = 'settlement'
       GROUP BY user_id, outcome_id HAVING count(*) > 1`,
  },
  {
    name: "each paid withdrawal left its user's balance once, and no other did",
    of: ["withdrawals", "entries"],
    sql: `SELECT user_id, amount, sum(times) AS off FROM (
       SELECT user_id, amount, 1 AS times FROM withdrawals WHERE status = 'paid'
       UNION ALL SELECT user_id, -amount, -1 FROM entries WHERE type = 'withdrawal' AND user_id > 0)
     GROUP BY user_id, amount HAVING off <> 0`,
  },
  {
    name: "a withdrawal is decided or pending, and only a paid one has a reference",
    of: ["withdrawals"],
    sql: `SELECT id FROM withdrawals WHERE (status = 'pending') <> (decided_at IS NULL)
       OR (status <> 'paid' AND reference IS NOT NULL)`,
  },
  {
    name: "each reversal takes back part of an earlier deposit to the same account, and no deposit is reversed beyond its amount",
    of: ["entries"],
    sql: `SELECT r.id, r.reverses FROM entries r LEFT JOIN entries d ON d.id = r.reverses WHERE r.reverses IS NOT NULL
         AND (d.id < r.id AND d.type = 'deposit' AND d.amount > 0 AND d.user_id = r.user_id AND r.type = 'deposit') IS NOT 1
       UNION ALL SELECT d.id, taken FROM
         (SELECT reverses AS of, -sum(amount) AS taken FROM entries WHERE reverses IS NOT NULL GROUP BY reverses)
         JOIN entries d ON d.id = of WHERE taken > d.amount`,
  },
  {
    name: "each approval is of a withdrawal, a market, a user or the house, and open only while that is undecided",
    of: ["approvals"],
    sql: `SELECT a.id, action, subject FROM approvals a
     LEFT JOIN withdrawals w ON w.id = subject LEFT JOIN markets m ON m.id = subject LEFT JOIN users u ON u.id = subject
     LEFT JOIN entries e ON e.reference = coalesce(nullif(a.reference, ''), details ->> 'reference')
     LEFT JOIN withdrawals made ON made.reference = details ->> 'reference'
     WHERE NOT CASE substr(action, 1, instr(action, '.'))
       WHEN 'withdrawal.' THEN w.id IS NOT NULL AND (ended_at IS NOT NULL OR (w.status = 'pending' AND made.id IS NULL))
       WHEN 'market.' THEN m.id IS NOT NULL AND (ended_at IS NOT NULL OR m.status NOT IN (4, 5))
       WHEN 'wallet.' THEN u.id IS NOT NULL AND (ended_at IS NOT NULL OR e.id IS NULL)
       WHEN 'user.' THEN u.id IS NOT NULL
       WHEN 'second_factor.' THEN u.id IS NOT NULL
       WHEN 'house.' THEN subject = 0 AND (ended_at IS NOT NULL OR e.id IS NULL) ELSE 0 END`,
  },
  {
    name: "each Idempotency-Key names the row that its user's request created",
    of: ["idempotency_keys"],
    sql: `SELECT k.user_id, key, subject FROM idempotency_keys k
     LEFT JOIN withdrawals w ON w.id = subject AND w.user_id = k.user_id
     LEFT JOIN entries e ON e.id = subject AND e.user_id = k.user_id AND e.type IN ('split', 'merge')
     LEFT JOIN markets m ON m.id = subject AND m.created_at = k.created_at
     LEFT JOIN events v ON v.id = subject AND v.created_at = k.created_at
     WHERE CASE substr(request, 1, instr(request, ' {') - 1)
       WHEN 'POST /wallet/withdrawals' THEN w.id IS NULL
       WHEN 'POST /markets/proposals' THEN m.proposed_by IS NOT k.user_id
       WHEN 'POST /admin/markets' THEN m.id IS NULL OR m.proposed_by IS NOT NULL
       WHEN 'POST /admin/events' THEN v.id IS NULL ELSE e.id IS NULL END`,
  },
  {
    name: "each order's filled quantity = the sum of its fills",
    of: ["orders", "fills"],
    sql: `SELECT o.id FROM orders o LEFT JOIN (SELECT order_id, sum(quantity) AS filled FROM fills GROUP BY order_id) f
     ON f.order_id = o.id WHERE o.quantity - o.remaining <> coalesce(f.filled, 0)`,
  },
  {
    name: "an order's status matches its remaining quantity",
    of: ["orders"],
    sql: `SELECT id FROM orders WHERE (status = 5) <> (remaining = 0) OR (status = 3 AND remaining <> quantity)
     OR (status = 4 AND (remaining = quantity OR remaining = 0)) OR remaining > quantity`,
  },
  {
    name: "live buys and pending withdrawals are covered by their owner's balance",
    of: ["orders", "withdrawals"],
    sql: `SELECT user_id FROM (
       SELECT user_id, price * remaining * 100 AS held FROM orders WHERE status < 5 AND side = 1
       UNION ALL SELECT user_id, amount FROM withdrawals WHERE status = 'pending') h
     GROUP BY user_id HAVING sum(held) > coalesce((SELECT balance FROM accounts a WHERE a.user_id = h.user_id), 0)`,
  },
  {
    name: "live sells are covered by their owner's shares",
    of: ["orders", "positions"],
    sql: `SELECT user_id, outcome_id FROM orders o WHERE status < 5 AND side = 2 GROUP BY user_id, outcome_id
     HAVING sum(remaining) > coalesce((SELECT quantity FROM positions p
       WHERE p.user_id = o.user_id AND p.outcome_id = o.outcome_id), 0)`,
  },
  {
    name: "each fill has its order's owner, outcome, side and builder",
    of: ["fills"],
    sql: `SELECT f.id FROM fills f LEFT JOIN orders o ON o.id = f.order_id
     WHERE (f.user_id, f.outcome_id, f.side, f.builder_id) IS NOT (o.user_id, o.outcome_id, o.side, o.builder_id)`,
  },
  {
    name: "every match has one taker and the makers of its type, and their prices add up",
    of: ["fills"],
    sql: `SELECT match_id FROM (
       SELECT match_id, count(*) AS legs, sum(role) AS takers, min(quantity) <> max(quantity) AS uneven,
         min(match_type) AS type, max(match_type) AS last_type, min(f.id) AS first, max(f.id) AS last,
         min(market_id) AS market, max(market_id) AS last_market, count(DISTINCT f.outcome_id) AS outcomes,
         min(side) AS least_side, max(side) AS most_side, min(price) AS lowest, max(price) AS highest,
         sum(price) AS total, max(CASE role WHEN 1 THEN price END) AS taken_at
       FROM fills f JOIN outcomes o ON o.id = f.outcome_id GROUP BY match_id)
     JOIN (SELECT market_id, count(*) AS parts FROM outcomes GROUP BY market_id) ON market_id = market
     WHERE takers <> 1 OR uneven OR type <> last_type OR first <> match_id OR last - first + 1 <> legs
       OR market <> last_market OR CASE type
         WHEN 0 THEN legs <> 2 OR outcomes <> 1 OR least_side = most_side OR lowest <> highest
         WHEN 1 THEN legs <> parts OR outcomes <> parts OR most_side <> 1
           OR (total <> ${FULL_PRICE_BPS} AND (total < ${FULL_PRICE_BPS} OR taken_at <> 1))
         ELSE legs <> parts OR outcomes <> parts OR least_side <> 2 OR total <> ${FULL_PRICE_BPS} END`,
  },
  {
    name: "each outcome's volume and last price are those of its trades",
    of: ["outcomes", "fills"],
    sql: `SELECT o.id, volume, traded, last_price FROM outcomes o
     LEFT JOIN (SELECT outcome_id, sum(quantity) AS traded, max(id) AS last FROM fills WHERE role = 1
       GROUP BY outcome_id) f ON f.outcome_id = o.id
     WHERE volume <> coalesce(traded, 0) OR last_price IS NOT (SELECT price FROM fills WHERE id = last)`,
  },
  {
    name: "each order links to its owner's previous order",
    of: ["orders", "newest_of_user"],
    // A link that names an older order of the same owner is at most the previous one. So all are, if their sum is right.
    sql: `SELECT o.id, o.previous_of_user FROM orders o LEFT JOIN orders p ON p.id = o.previous_of_user
       WHERE o.previous_of_user <> 0 AND (p.id < o.id AND p.user_id = o.user_id) IS NOT 1
     UNION ALL SELECT coalesce(sum(id - previous_of_user), 0) AS found,
       (SELECT coalesce(sum(order_id), 0) FROM newest_of_user) AS newest FROM orders HAVING found <> newest`,
  },
  {
    name: "each fill links to the previous fill of its owner and of its order",
    of: ["fills", "orders", "newest_of_user"],
    sql: `SELECT f.id, f.previous_of_user, f.previous_of_order FROM fills f
       LEFT JOIN fills u ON u.id = f.previous_of_user LEFT JOIN fills o ON o.id = f.previous_of_order
       WHERE (f.previous_of_user <> 0 AND (u.id < f.id AND u.user_id = f.user_id) IS NOT 1)
         OR (f.previous_of_order <> 0 AND (o.id < f.id AND o.order_id = f.order_id) IS NOT 1)
     UNION ALL SELECT 'users', coalesce(sum(id - previous_of_user), 0) AS found,
       (SELECT coalesce(sum(fill_id), 0) FROM newest_of_user) AS newest FROM fills HAVING found <> newest
     UNION ALL SELECT 'orders', coalesce(sum(id - previous_of_order), 0) AS found,
       (SELECT coalesce(sum(last_fill_id), 0) FROM orders WHERE remaining < quantity) AS newest FROM fills
       HAVING found <> newest`,
  },
  {
    name: "each trade links to its market's previous trade",
    of: ["fills", "newest_of_market"],
    sql: `SELECT f.id, f.previous_of_market FROM fills f JOIN outcomes o ON o.id = f.outcome_id
       LEFT JOIN fills p ON p.id = f.previous_of_market LEFT JOIN outcomes q ON q.id = p.outcome_id
       WHERE f.previous_of_market <> 0 AND (f.role = 1 AND p.role = 1 AND p.id < f.id AND q.market_id = o.market_id) IS NOT 1
     UNION ALL SELECT coalesce(sum(id - previous_of_market), 0) AS found,
       (SELECT coalesce(sum(fill_id), 0) FROM newest_of_market) AS newest FROM fills WHERE role = 1 HAVING found <> newest`,
  },
  {
    name: "each order links to its last fill, and to no other order's",
    of: ["orders", "fills"],
    sql: `SELECT o.id FROM orders o LEFT JOIN (SELECT order_id, max(id) AS newest FROM fills GROUP BY order_id) f
     ON f.order_id = o.id WHERE o.last_fill_id <> coalesce(f.newest, o.last_fill_id)
       OR (f.newest IS NULL AND EXISTS (SELECT 1 FROM fills x WHERE x.id = o.last_fill_id AND x.order_id = o.id))`,
  },
  {
    name: "each entry links to its user's previous fill",
    of: ["entries", "fills"],
    // Those between two fills of their user, and those after the last.
    sql: `SELECT e.id, e.last_fill_id, f.previous_of_user FROM fills f CROSS JOIN entries e INDEXED BY entries_by_user
       ON e.user_id = f.user_id AND e.id > f.previous_of_user AND e.id < f.id WHERE e.last_fill_id <> f.previous_of_user
     UNION ALL SELECT e.id, last_fill_id, fill_id FROM entries e LEFT JOIN newest_of_user n ON n.user_id = e.user_id
       WHERE e.id > coalesce(fill_id, 0) AND last_fill_id <> coalesce(fill_id, 0)`,
  },
  {
    name: "each recorded position is that of the last row, and the tables include the log up to it",
    of: ["meta", "projection"],
    sql: `SELECT key, value FROM (
       SELECT 'orders_listed' AS key, listed AS least, listed AS most
         FROM (SELECT max(0, last_order_id / 65536 - 1) * 65536 AS listed FROM totals)
       UNION ALL SELECT 'old_rebates', 0, last_entry_id FROM totals)
     LEFT JOIN meta USING (key) WHERE value IS NULL OR value NOT BETWEEN least AND most
     UNION ALL SELECT 'projection', batch FROM totals LEFT JOIN projection USING (id) WHERE batch IS NOT sequence
       OR exchange < 1 OR position < 0 OR log_begins NOT BETWEEN 1 AND batch + 1 OR length(hash) NOT IN (0, 64)`,
  },
  {
    name: "each user's and market's newest rows are on record",
    of: ["orders", "fills", "newest_of_user", "newest_of_market"],
    sql: `SELECT 'order' AS newer, o.id FROM orders o LEFT JOIN newest_of_user n ON n.user_id = o.user_id
       WHERE o.id > coalesce(order_id, 0)
     UNION ALL SELECT 'fill', f.id FROM fills f LEFT JOIN newest_of_user n ON n.user_id = f.user_id
       WHERE f.id > coalesce(fill_id, 0)
     UNION ALL SELECT 'trade', f.id FROM fills f JOIN outcomes o ON o.id = f.outcome_id
       LEFT JOIN newest_of_market n ON n.market_id = o.market_id WHERE f.id > coalesce(fill_id, 0) AND role = 1
     UNION ALL SELECT 'user', n.user_id FROM newest_of_user n LEFT JOIN orders o ON o.id = n.order_id
       LEFT JOIN fills f ON f.id = fill_id
       WHERE (n.order_id > 0 AND o.user_id IS NOT n.user_id) OR (n.fill_id > 0 AND f.user_id IS NOT n.user_id)
     UNION ALL SELECT 'market', n.market_id FROM newest_of_market n LEFT JOIN fills f ON f.id = fill_id
       LEFT JOIN outcomes o ON o.id = outcome_id WHERE o.market_id IS NOT n.market_id OR role <> 1`,
  },
  {
    name: "the index of order updates rises from block to block, up to each user's last update",
    of: ["update_index"],
    sql: `SELECT user_id, sequence FROM (
       SELECT *, lag(block, 1, -1) OVER own AS block_before FROM update_index
         WINDOW own AS (PARTITION BY user_id ORDER BY sequence)) i
       LEFT JOIN newest_of_user n USING (user_id), projection
     WHERE block <= block_before OR sequence NOT BETWEEN 1 AND coalesce(update_sequence, 0)
       OR i.batch NOT BETWEEN log_begins AND projection.batch`,
  },
  {
    name: "each change of an order's terms is shown by an update of its owner",
    of: ["term_changes"],
    // The next update will show the last change of an order in the middle of its matching.
    sql: `SELECT t.order_id, sequence FROM term_changes t JOIN orders o ON o.id = t.order_id
       LEFT JOIN newest_of_user n ON n.user_id = o.user_id WHERE sequence NOT BETWEEN 1 AND coalesce(update_sequence, 0) + 1
         OR t.price NOT BETWEEN ${MIN_PRICE_BPS} AND ${MAX_PRICE_BPS} OR t.quantity NOT BETWEEN 0 AND ${MAX_QUANTITY} OR t.expires_at < 0`,
  },
  {
    name: "an order in the middle of its matching is live, and its last fill is a taker's",
    of: ["unfinished_orders"],
    sql: `SELECT u.order_id FROM unfinished_orders u JOIN orders o ON o.id = u.order_id LEFT JOIN fills f ON f.id = last_fill_id,
       projection WHERE u.fills < 1 OR (f.order_id, f.role) IS NOT (o.id, 1) OR u.batch NOT BETWEEN 0 AND projection.batch
       OR (o.status >= ${OrderStatus.filled} AND u.batch > 0)`,
  },
  {
    name: "each builder's sums are those of its orders and fills",
    of: ["builders", "orders", "fills"],
    sql: `SELECT code FROM builders b
     LEFT JOIN (SELECT builder_id, count(*) AS placed FROM orders WHERE builder_id IS NOT NULL GROUP BY builder_id) o
       ON o.builder_id = b.id
     LEFT JOIN (SELECT builder_id, count(*) AS filled, sum(quantity) AS shares, sum(price * quantity * 100) AS traded,
       sum(fee) AS paid FROM fills WHERE builder_id IS NOT NULL GROUP BY builder_id) f ON f.builder_id = b.id
     WHERE (orders, fills, volume, notional, fees) IS NOT (coalesce(placed, 0), coalesce(filled, 0),
       coalesce(shares, 0), coalesce(traded, 0), coalesce(paid, 0))`,
  },
  {
    name: "every market and event can be searched for",
    of: ["markets", "events"],
    sql: `SELECT id FROM markets WHERE id NOT IN (SELECT rowid FROM market_words)
     UNION ALL SELECT id FROM events WHERE id NOT IN (SELECT rowid FROM event_words)`,
  },
  {
    name: "each candle = the sums of its trades, and each trade is in its candles",
    of: ["candles", "fills"],
    // A candle without trades can't name its last one.
    sql: `WITH minutes AS MATERIALIZED (
       SELECT outcome_id, created_at - created_at % 60000 AS began, min(id) AS first, max(id) AS last,
         max(price) AS highest, min(price) AS lowest, sum(quantity) AS traded FROM fills WHERE role = 1 GROUP BY 1, 2),
     sums AS (
       SELECT outcome_id, length, began - began % (length * 60000) AS began, min(first) AS first, max(last) AS last,
         max(highest) AS highest, min(lowest) AS lowest, sum(traded) AS traded FROM ${LENGTHS} CROSS JOIN minutes GROUP BY 1, 2, 3)
     SELECT s.outcome_id, length, began FROM sums s
       LEFT JOIN candles c ON c.outcome_id = s.outcome_id AND interval = length AND open_time = began
       WHERE (last_fill_id, volume, high, low) IS NOT (last, traded, highest, lowest)
         OR open <> (SELECT price FROM fills WHERE id = first) OR close <> (SELECT price FROM fills WHERE id = last)
     UNION ALL SELECT c.outcome_id, interval, open_time FROM candles c LEFT JOIN fills ON id = last_fill_id
       WHERE (role, fills.outcome_id, created_at - created_at % (interval * 60000)) IS NOT (1, c.outcome_id, open_time)`,
  },
  {
    name: "the older live orders are listed, and no others",
    of: ["orders"],
    sql: `SELECT id FROM orders WHERE status < 5 AND id <= (SELECT value FROM meta WHERE key = 'orders_listed')
       AND id NOT IN (SELECT order_id FROM resting_orders)
     UNION ALL SELECT order_id FROM resting_orders LEFT JOIN orders ON id = order_id
       WHERE id IS NULL OR status >= 5 OR id > (SELECT value FROM meta WHERE key = 'orders_listed')`,
  },
  {
    name: "the audit log is numbered from 1 without a gap",
    of: ["audit_log"],
    sql: `SELECT count(*) AS lines, min(id) AS first, max(id) AS last FROM audit_log HAVING lines > 0 AND (first <> 1 OR last <> lines)`,
  },
];
