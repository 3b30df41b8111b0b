/** Checks the exchange's invariants on a database with SQL only, in one read transaction. Never uses the ledger. */
import type Database from "better-sqlite3";
import { MICRO_PER_SHARE } from "../limits.ts";
import { INVARIANTS, type Invariant } from "./invariants.ts";
import { MIGRATIONS } from "./schema.ts";

export interface Finding {
  readonly name: string;
  readonly ok: boolean;
  readonly figures: string;
}

/** All invariants with their figures; each must be ok. @throws Error if the file doesn't have this program's schema */
export function verifyDatabase(db: Database.Database): Finding[] {
  const version = db.pragma("user_version", { simple: true });
  if (version !== MIGRATIONS.length) {
    throw new Error(
      `the database has schema ${version}, this program schema ${MIGRATIONS.length}: start the exchange on it first`,
    );
  }
  return db.transaction(() => {
    const counts = countRows(db);
    return [
      fileIsIntact(db, "integrity_check"),
      sumsBalance(db),
      houseIsSolvent(db),
      idsEndAsRecorded(db),
      ...INVARIANTS.map((invariant) => holds(db, invariant, counts)),
    ];
  })();
}

/** The quick checks of a copy, for any schema version: the file is intact and its totals balance. */
export function verifyCopy(db: Database.Database): Finding[] {
  return db.transaction(() => [fileIsIntact(db, "quick_check"), sumsBalance(db), idsEndAsRecorded(db)])();
}

function fileIsIntact(db: Database.Database, pragma: "integrity_check" | "quick_check"): Finding {
  const result = String(db.pragma(`${pragma}(1)`, { simple: true }));
  return { name: "the file is intact", ok: result === "ok", figures: result };
}

const SUMS = ["deposits", "withdrawals", "users_total", "collateral", "house"] as const;
type Sums = Record<(typeof SUMS)[number], number | null>;

/** The recorded totals, which GET /solvency returns, equal the sums of the rows and balance. */
function sumsBalance(db: Database.Database): Finding {
  const recorded = db.prepare(`SELECT ${SUMS.join(", ")} FROM (SELECT 1) LEFT JOIN totals`).get() as Sums;
  const counted = db
    .prepare(
      `SELECT (SELECT coalesce(sum(amount), 0) FROM entries WHERE type = 'deposit') AS deposits,
         (SELECT -coalesce(sum(amount), 0) FROM entries WHERE type = 'withdrawal') AS withdrawals,
         (SELECT coalesce(sum(balance), 0) FROM accounts) AS users_total,
         (SELECT coalesce(sum(sets), 0) * ${MICRO_PER_SHARE} FROM markets) AS collateral`,
    )
    .get() as Record<Exclude<keyof Sums, "house">, number>;
  const { deposits, withdrawals, users_total, collateral } = counted;
  const house = recorded.house ?? Number.NaN;
  const isRecorded = SUMS.every((name) => recorded[name] === { ...counted, house }[name]);
  const ok = isRecorded && deposits - withdrawals === users_total + collateral + house;
  const balance = `deposits ${deposits} - withdrawals ${withdrawals} = balances ${users_total} + collateral ${collateral} + house ${house}`;
  const figures = isRecorded ? balance : `${balance}; recorded ${JSON.stringify(recorded)}`;
  return { name: "deposits - withdrawals = balances + collateral + house", ok, figures };
}

/** GET /solvency reports an imbalance otherwise. `verifyCopy` accepts it: a copy of such a database is still a good copy. */
function houseIsSolvent(db: Database.Database): Finding {
  const house = db.prepare("SELECT house FROM totals").pluck().get() as number | undefined;
  return { name: "the house is not below zero", ok: house !== undefined && house >= 0, figures: `house ${house}` };
}

const SHOWN = 5;

function holds(db: Database.Database, { name, of, sql }: Invariant, counts: ReadonlyMap<string, number>): Finding {
  const exceptions = db.prepare(`SELECT * FROM (${sql}) LIMIT ${SHOWN}`).all();
  const compared = of.map((table) => `${counts.get(table)} ${table}`).join(", ");
  return {
    name,
    ok: exceptions.length === 0,
    figures: exceptions.length === 0 ? compared : JSON.stringify(exceptions),
  };
}

/** The number of rows in each table that an invariant covers. */
function countRows(db: Database.Database): Map<string, number> {
  const tables = new Set(INVARIANTS.flatMap(({ of }) => of));
  return new Map(
    [...tables].map((table) => [table, Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get())]),
  );
}

/** Fills and entries share one sequence of ids; orders have their own. */
function idsEndAsRecorded(db: Database.Database): Finding {
  const row = db
    .prepare(
      `SELECT (SELECT count(*) FROM fills) + (SELECT count(*) FROM entries) AS rows,
         (SELECT count(*) FROM entries WHERE id IN (SELECT id FROM fills)) AS twice,
         max(coalesce((SELECT max(id) FROM fills), 0), coalesce((SELECT max(id) FROM entries), 0)) AS newest,
         coalesce((SELECT max(id) FROM orders), 0) AS newestOrder, last_entry_id AS last, last_order_id AS lastOrder
       FROM (SELECT 1) LEFT JOIN totals`,
    )
    .get() as Record<"rows" | "twice" | "newest" | "newestOrder" | "last" | "lastOrder", number | null>;
  const ok = row.rows === row.last && row.newest === row.last && row.twice === 0 && row.newestOrder === row.lastOrder;
  const figures = `${row.rows} of ${row.last}, ${row.twice} twice, the newest ${row.newest}; orders up to ${row.newestOrder} of ${row.lastOrder}`;
  return {
    name: "fills and entries are numbered without a gap, and end, as orders do, at the recorded numbers",
    ok,
    figures,
  };
}
