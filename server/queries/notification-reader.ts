/** Reads what happened to a user lately: fills of resting orders, payouts, deposits, decided withdrawals. */
import type Database from "better-sqlite3";
import { Role } from "../../engine/constants.ts";
import { MICRO_PER_BPS } from "../../engine/limits.ts";
import { notionalMicro } from "../../engine/money.ts";
import type { FillReader } from "./fill-reader.ts";
import type { PaymentReader } from "./payment-reader.ts";
import type { FillRow } from "./types.ts";

export interface NotificationsOptions {
  userId: number;
  /** ms: nothing from before it. */
  since: number;
  limit: number;
  /** Fills to look at; 0 for none. */
  fills: number;
}

export interface NewsOptions {
  /** ms: what happened after `since`, until `until`. */
  since: number;
  until: number;
  /** Users with ids above it, `limit` at most. */
  after: number;
  limit: number;
}

/** A notification; what its kind doesn't have is null. */
export interface NotificationObject {
  kind: "fill" | "resolution" | "deposit" | "withdrawal" | "alert";
  at: number;
  market_id: number | null;
  outcome_id: number | null;
  order_id: number | null;
  side: number | null;
  quantity: number | null;
  price: number | null;
  amount: number | null;
  profit: number | null;
  status: string | null;
  direction: string | null;
}

const NOTHING = {
  ...{ market_id: null, outcome_id: null, order_id: null, side: null, quantity: null, price: null },
  ...{ amount: null, profit: null, status: null, direction: null },
} as const;

/** Makes a notification of what its kind has. */
export const notification = (
  given: Pick<NotificationObject, "kind" | "at"> & Partial<NotificationObject>,
): NotificationObject => ({ ...NOTHING, ...given });

/** The settlement as payment-reader.ts gives it. */
interface SettlementRow {
  market_id: number;
  outcome_id: number;
  quantity: number;
  amount: number;
  realized_pnl: number;
  created_at: number;
}

/** The states in which an operator leaves a withdrawal. */
const DECIDED: ReadonlySet<string> = new Set(["paid", "refused"]);

export function prepareNotifications(
  fillReader: FillReader,
  payments: PaymentReader,
): (options: NotificationsOptions) => NotificationObject[] {
  return ({ userId, since, limit, fills }) => {
    const page = { userId, before: Number.MAX_SAFE_INTEGER, limit };
    const rows = fills === 0 ? [] : fillReader.rowsOfUser({ ...page, limit: fills, from: since }).rows;
    const settled = payments.settlements(page).items as SettlementRow[];
    const found = [
      ...ordersFilled(rows),
      ...settled.map(({ market_id, outcome_id, quantity, amount, realized_pnl, created_at }) =>
        notification({
          ...{ kind: "resolution", at: created_at, market_id, outcome_id, quantity, amount, profit: realized_pnl },
        }),
      ),
      ...payments
        .deposits(page)
        .items.map(({ amount, createdAt }) => notification({ kind: "deposit", at: createdAt, amount })),
      ...payments
        .withdrawals(page)
        .items.filter(({ status }) => DECIDED.has(status))
        .map(({ amount, status, decidedAt }) =>
          notification({ kind: "withdrawal", at: decidedAt ?? 0, amount, status }),
        ),
    ];
    return found
      .filter(({ at }) => at >= since)
      .sort((a, b) => b.at - a.at)
      .slice(0, limit);
  };
}

/** Finds the users who got a deposit or a payout. */
export function prepareUsersWithNews(db: Database.Database): (options: NewsOptions) => number[] {
  const users = db
    .prepare(
      `SELECT DISTINCT user_id FROM entries INDEXED BY entries_with_news
       WHERE type IN ('deposit', 'settlement') AND created_at > @since AND created_at <= @until AND user_id > @after
       ORDER BY user_id LIMIT @limit`,
    )
    .pluck();
  return (options) => users.all(options) as number[];
}

/** One notification for each order that rested, at its last fill. @param rows newest first */
function ordersFilled(rows: readonly FillRow[]): NotificationObject[] {
  const byOrder = new Map<number, FillRow[]>();
  for (const row of rows) {
    if (row.role !== Role.maker) continue;
    const fills = byOrder.get(row.order_id);
    if (fills === undefined) byOrder.set(row.order_id, [row]);
    else fills.push(row);
  }
  return [...byOrder.values()].map((fills) => {
    const [last] = fills as [FillRow, ...FillRow[]];
    const quantity = fills.reduce((sum, fill) => sum + fill.quantity, 0);
    const notional = fills.reduce((sum, fill) => sum + notionalMicro(fill.price, fill.quantity), 0);
    return notification({
      ...{ kind: "fill", at: last.created_at, order_id: last.order_id, side: last.side },
      ...{ market_id: last.market_id, outcome_id: last.outcome_id },
      ...{ quantity, price: notional / quantity / MICRO_PER_BPS },
    });
  });
}
