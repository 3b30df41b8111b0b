/** A database of an earlier schema keeps its content through the migrations. */
import { expect, test } from "vitest";
import { OrderStatus } from "../../../engine/constants.ts";
import { migrate } from "../../../engine/projection/database.ts";
import { loadLiveOrders, loadUpdateSequences } from "../../../engine/projection/load/orders.ts";
import { loadProjection } from "../../../engine/projection/load/projection.ts";
import { MIGRATIONS } from "../../../engine/projection/schema.ts";
import { searchWords } from "../../../engine/projection/search-words.ts";
import { verifyDatabase } from "../../../engine/projection/verify.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";
import { SCHEMA_1_ROWS } from "./old-exchange.ts";

test("schema 1, with look-up tables that lag behind", () => {
  const db = openSqlite(":memory:");
  db.exec(MIGRATIONS[0]!);
  db.exec(SCHEMA_1_ROWS);
  db.pragma("user_version = 1");
  expect(() => verifyDatabase(db)).toThrow(`schema 1, this program schema ${MIGRATIONS.length}`);
  migrate(db);
  expect(db.pragma("user_version", { simple: true })).toBe(MIGRATIONS.length);
  expect(verifyDatabase(db).filter(({ ok }) => !ok)).toEqual([]);
  const live = [...loadLiveOrders(db)].map(({ id, status, remaining }) => [id, status, remaining]);
  expect(live).toEqual([
    [1, OrderStatus.partiallyFilled, 2],
    [4, OrderStatus.open, 4],
  ]);
  const raw = (sql: string): unknown[] => db.prepare(sql).raw().all();
  expect(raw("SELECT * FROM newest_of_user")).toEqual([
    [1, 4, 7, 0],
    [2, 1, 6, 0],
  ]);
  expect(raw("SELECT id, last_fill_id FROM entries WHERE id > 2")).toEqual([
    [3, 0],
    [8, 7],
  ]);
  // Entries from before rebates were bounded are exempt.
  expect(raw("SELECT value FROM meta WHERE key = 'old_rebates'")).toEqual([[8]]);
  expect(raw("SELECT id, previous_of_user, previous_of_order, previous_of_market FROM fills WHERE id > 5")).toEqual([
    [6, 4, 4, 0],
    [7, 5, 0, 5],
  ]);
  db.close();
});

test("schema 4: its markets and events become searchable", () => {
  const db = openSqlite(":memory:");
  for (const migration of MIGRATIONS.slice(0, 4)) db.exec(migration);
  db.exec(`
    INSERT INTO events VALUES (7, 'cup-2030', 'Coupe du Monde é', NULL, NULL, 1);
    INSERT INTO markets VALUES (3, 'a-slug', 'Straße?', NULL, NULL, 7, 1, 0, NULL, NULL, 1),
      (9, 'b', 'Ώρα', 'described', 'sports', NULL, 1, 0, NULL, NULL, 1);
    INSERT INTO outcomes VALUES (1, 3, 0, 'Oui', NULL, 0), (2, 3, 1, 'Non', NULL, 0), (3, 9, 0, 'Yes', NULL, 0),
      (4, 9, 1, 'No', NULL, 0);`);
  db.pragma("user_version = 4");
  migrate(db);
  const found = (table: string, typed: string): unknown[] => {
    const query = searchWords(typed).map((word) => `"${word}"*`);
    return db.prepare(`SELECT rowid FROM ${table} WHERE ${table} MATCH ?`).pluck().all(query.join(" "));
  };
  for (const text of ["STRASSE", "slug a", "oui non", "str"]) expect(found("market_words", text), text).toEqual([3]);
  for (const text of ["ωρα", "DESCR", "sports", "no yes b"]) expect(found("market_words", text), text).toEqual([9]);
  expect(found("market_words", "slug b")).toEqual([]);
  for (const text of ["monde e", "2030 cup", "COUPÉ"]) expect(found("event_words", text), text).toEqual([7]);
  expect(verifyDatabase(db).filter(({ ok }) => !ok)).toEqual([]);
  db.close();
});

test("schema 4, whose updates were numbered but not stored: sequences continue above what users have seen", () => {
  const db = openSqlite(":memory:");
  for (const [i, migration] of MIGRATIONS.slice(0, 4).entries()) {
    db.exec(migration);
    if (i === 0) db.exec(SCHEMA_1_ROWS);
  }
  // The third user's only order is newer than the table of newest rows.
  db.exec(`INSERT INTO users (id, email, role, kyc_tier, created_at) VALUES (3, 'c@example.com', 'user', 2, 6),
      (4, 'd@example.com', 'user', 2, 6);
    INSERT INTO accounts VALUES (3, 0, 0, 0), (4, 0, 0, 0);
    INSERT INTO orders (id, user_id, outcome_id, side, post_only, pat, price, quantity, remaining, status, reason,
      client_order_id, fingerprint, quote, created_at, updated_at, previous_of_user, last_fill_id, type, time_in_force,
      self_trade_prevention, expires_at, priority, builder_id, tied)
      VALUES (5, 3, 1, 1, 0, 0, 100, 1, 1, 6, 1, NULL, NULL, 0, 6, 7, 0, 8, 0, 0, 0, NULL, NULL, NULL, 0);
    UPDATE totals SET last_order_id = 5, order_updates = 9;`);
  db.pragma("user_version = 4");
  migrate(db);
  expect(verifyDatabase(db).filter(({ ok }) => !ok)).toEqual([]);
  expect(new Map(loadUpdateSequences(db))).toEqual(new Map([1, 2, 3].map((user) => [user, 9])));
  db.close();
});

/**
 * Everything that was written behind, as a crash left it: rows of orders from before their updates, newest rows, listed
 * orders and candles. The first user's order 200005 is in the middle of its matching with the second user's sell.
 */
const WRITTEN_BEHIND = `
  INSERT INTO orders (id, user_id, outcome_id, side, post_only, pat, price, quantity, remaining, status, reason, quote,
    created_at, updated_at, previous_of_user, last_fill_id, type, time_in_force, self_trade_prevention, tied)
    VALUES (200005, 1, 1, 1, 0, 1, 5000, 2, 1, 2, 0, 0, 70000, 70000, 4, 10, 0, 0, 0, 0);
  INSERT INTO fills VALUES (9, 9, 2, 1, 1, 2, 5000, 1, 0, 0, 0, 0, 7000000, 70000, 6, 6, 0, NULL),
    (10, 9, 1, 200005, 1, 1, 5000, 1, 1, 0, 0, 0, 7000000, 70000, 7, 0, 7, NULL);
  UPDATE accounts SET balance = 7000000, activity_used = activity_used + iif(user_id = 1, 500000, 0);
  UPDATE positions SET quantity = quantity + iif(user_id = 1, 1, -1) WHERE outcome_id = 1;
  UPDATE outcomes SET volume = 4 WHERE id = 1;
  UPDATE totals SET last_entry_id = 10, last_order_id = 200005, order_updates = 5;
  INSERT INTO order_updates VALUES (1, 2, 1, 1, 5000, 5, 4, 4, 0, 1, 4, 0, 2, 0), (2, 1, 1, 2, 5000, 1, 0, 5, 0, 1, 5, 0, 2, 0),
    (3, 2, 2, 1, 5000, 5, 2, 4, 0, 1, 6, 1, 3, 0), (4, 1, 2, 3, 5000, 2, 0, 5, 0, 1, 7, 2, 3, 0),
    (5, 2, 3, 1, 5000, 5, 1, 4, 0, 1, 9, 3, 70000, 0);
  UPDATE orders SET remaining = 5, status = 3, last_fill_id = 3, updated_at = 1 WHERE id = 1;
  UPDATE orders SET remaining = 1, status = 3, last_fill_id = 3 WHERE id = 2;
  DELETE FROM resting_orders;
  INSERT INTO resting_orders VALUES (1), (2);
  DELETE FROM newest_of_user;
  INSERT INTO newest_of_user VALUES (1, 4, 7, 2, 1), (2, 1, 6, 3, 2);
  UPDATE meta SET value = CASE key WHEN 'orders_listed' THEN 2 WHEN 'newest_order' THEN 4 WHEN 'newest_fill' THEN 7
    WHEN 'newest_update' THEN 3 WHEN 'orders_told' THEN 0 ELSE value END;`;

/** The candles lack the last trade, or a commit has written some rows ahead of the position on record. */
const CANDLES = {
  behind: "UPDATE meta SET value = 7 WHERE key = 'candles_fill'",
  ahead: `UPDATE meta SET value = 4 WHERE key = 'candles_fill';
    INSERT INTO candles VALUES (1, 1, 60000, 5000, 5000, 5000, 5000, 1, 10);
    UPDATE candles SET volume = 4, last_fill_id = 10 WHERE interval > 1;`,
  none: "DELETE FROM candles; UPDATE meta SET value = 0 WHERE key = 'candles_fill'",
};

test.for(["behind", "ahead", "none"] as const)(
  "schema 8 after a crash: all rows are complete (candles %s)",
  (candles) => {
    const db = openSqlite(":memory:");
    for (const [i, migration] of MIGRATIONS.slice(0, 8).entries()) {
      db.function("search_words", { varargs: true }, () => "");
      db.exec(migration);
      if (i === 0) db.exec(SCHEMA_1_ROWS);
    }
    db.exec(`INSERT INTO market_words (rowid, words) VALUES (1, 'm'); ${WRITTEN_BEHIND} ${CANDLES[candles]}`);
    db.pragma("user_version = 8");
    migrate(db);
    expect(verifyDatabase(db).filter(({ ok }) => !ok)).toEqual([]);
    const raw = (sql: string): unknown[] => db.prepare(sql).raw().all();
    expect(raw("SELECT id, remaining, status, last_fill_id, updated_at FROM current_orders WHERE id < 4")).toEqual([
      [1, 1, OrderStatus.partiallyFilled, 9, 70_000],
      [2, 0, OrderStatus.filled, 5, 2],
      [3, 0, OrderStatus.filled, 7, 3],
    ]);
    expect(raw("SELECT * FROM newest_of_user")).toEqual([
      [1, 200_005, 10, 2],
      [2, 1, 9, 3],
    ]);
    expect(raw("SELECT * FROM newest_of_market")).toEqual([[1, 10]]);
    expect(raw("SELECT * FROM resting_orders")).toEqual([[1], [4]]);
    expect(raw("SELECT * FROM unfinished_orders")).toEqual([[200_005, 1, 0]]);
    expect(raw("SELECT * FROM candles WHERE interval IN (1, 5)")).toEqual([
      [1, 1, 0, 5_000, 5_000, 5_000, 5_000, 3, 7],
      [1, 1, 60_000, 5_000, 5_000, 5_000, 5_000, 1, 10],
      [1, 5, 0, 5_000, 5_000, 5_000, 5_000, 4, 10],
    ]);
    expect(raw("SELECT key, value FROM meta")).toEqual([
      ["old_rebates", 8],
      ["orders_listed", 131_072],
    ]);
    const { exchange, ...rest } = loadProjection(db);
    expect(exchange).toBeGreaterThan(0);
    expect(rest).toEqual({ batch: 9, records: 0, hash: "", logBegins: 10, at: 0 });
    db.close();
  },
);

test("a database with a newer schema is refused with a message", () => {
  const db = openSqlite(":memory:");
  db.pragma(`user_version = ${MIGRATIONS.length + 1}`);
  expect(() => migrate(db)).toThrow(/run a newer one/);
  db.close();
});
