/**
 * Writes users with complete sets of one market into the database of an exchange that isn't running, as if each had
 * deposited and split: a hundred thousand within a second, where the exchange itself would take minutes.
 */
import { createHash } from "node:crypto";
import { MICRO_PER_SHARE } from "../../../engine/limits.ts";
import { MS_PER_DAY, MS_PER_HOUR } from "../../../engine/money.ts";
import { openDatabase } from "../../../engine/util/wal-database.ts";

export interface HoldersOptions {
  readonly marketId: number;
  readonly holders: number;
  /** The first users have a token, by index. */
  readonly tokens: readonly string[];
}

/** The number of sets of the first to the ninth holder, then repeated. */
const MOST_SETS = 9;
const DEPOSIT = 2 * MOST_SETS * MICRO_PER_SHARE;

const setsSql = `(1 + k % ${MOST_SETS})`;
export const setsOf = (index: number): number => 1 + ((index + 1) % MOST_SETS);

export interface Holders {
  /** The id of the first; the others follow. */
  readonly firstUser: number;
  /** Of all together. */
  readonly sets: number;
}

export function addHolders(path: string, { marketId, holders, tokens }: HoldersOptions): Holders {
  const db = openDatabase(path, "full");
  const value = (sql: string): number => Number(db.prepare(sql).pluck().get());
  const lastUser = value("SELECT max(id) FROM users");
  const lastEntry = value("SELECT last_entry_id FROM totals");
  // Times rise with ids.
  const at = value("SELECT max(at) FROM (SELECT at FROM totals UNION ALL SELECT max(created_at) FROM users)");
  const [first, count] = db
    .prepare("SELECT min(id), count(*) FROM outcomes WHERE market_id = ?")
    .raw()
    .get(marketId) as [number, number];
  const each = "WITH RECURSIVE each (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM each WHERE k < @holders)";
  const given = { holders, lastUser, lastEntry, marketId, at };
  const run = (sql: string): void => {
    db.prepare(sql).run(given);
  };
  const write = db.transaction(() => {
    run(`${each} INSERT INTO users (id, email, role, kyc_tier, created_at)
      SELECT @lastUser + k, 'holder-' || k || '@example.com', 'user', 2, @at FROM each`);
    run(
      `${each} INSERT INTO accounts (user_id, balance, activity_day, activity_used) SELECT @lastUser + k, ${DEPOSIT} - ${setsSql} * ${MICRO_PER_SHARE},
         ${Math.floor(at / MS_PER_DAY)}, ${setsSql} * ${MICRO_PER_SHARE} FROM each`,
    );
    run(`${each} INSERT INTO entries (id, user_id, type, amount, balance_after, reference, created_at)
      SELECT @lastEntry + k, @lastUser + k, 'deposit', ${DEPOSIT}, ${DEPOSIT}, 'holder:' || k, @at FROM each`);
    run(`${each} INSERT INTO entries (id, user_id, type, amount, balance_after, market_id, created_at)
      SELECT @lastEntry + @holders + k, @lastUser + k, 'split', -${setsSql} * ${MICRO_PER_SHARE},
        ${DEPOSIT} - ${setsSql} * ${MICRO_PER_SHARE}, @marketId, @at FROM each`);
    const hour = Math.floor(at / MS_PER_HOUR);
    run(`${each} INSERT INTO balance_hours SELECT @lastUser + k, ${hour}, 0 FROM each`);
    for (let i = 0; i < count; i++) {
      run(`${each} INSERT INTO position_hours SELECT @lastUser + k, ${hour}, ${first + i}, 0 FROM each`);
      const part = `${setsSql} * ${MICRO_PER_SHARE} / ${count} + (${i} < ${setsSql} * ${MICRO_PER_SHARE} % ${count})`;
      run(`${each} INSERT INTO positions SELECT @lastUser + k, ${first + i}, ${setsSql}, ${part}, 0 FROM each`);
    }
    const sets = Number(db.prepare(`${each} SELECT sum(${setsSql}) FROM each`).pluck().get({ holders }));
    db.prepare("UPDATE markets SET sets = sets + ? WHERE id = ?").run(sets, marketId);
    db.prepare(
      `UPDATE totals SET deposits = deposits + @deposits, users_total = users_total + @deposits - @collateral,
         collateral = collateral + @collateral, last_entry_id = last_entry_id + 2 * @holders`,
    ).run({ deposits: holders * DEPOSIT, collateral: sets * MICRO_PER_SHARE, holders });
    const insertToken = db.prepare(
      `INSERT INTO personal_access_tokens (user_id, name, token_hash, prefix, scopes, created_at)
       VALUES (?, 'holder', ?, 'pm_pat_', 'portfolio:read', ?)`,
    );
    tokens.forEach((token, i) => {
      insertToken.run(lastUser + 1 + i, createHash("sha256").update(token).digest("hex"), at);
    });
    return sets;
  });
  const sets = write();
  db.close();
  return { firstUser: lastUser + 1, sets };
}
