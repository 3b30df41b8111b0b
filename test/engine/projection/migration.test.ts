/** A database of an earlier schema keeps its content through the migrations. */
import { expect, test } from "vitest";
import { OrderStatus } from "../../../engine/constants.ts";
import { migrate } from "../../../engine/projection/database.ts";
import { loadLiveOrders, loadUpdateSequences } from "../../../engine/projection/load/orders.ts";
import { OrderUpdates } from "../../../engine/projection/order-updates.ts";
import { RowLinks } from "../../../engine/projection/row-links.ts";
import { MIGRATIONS } from "../../../engine/projection/schema.ts";
import { searchWords } from "../../../engine/projection/search-words.ts";
import { verifyDatabase } from "../../../engine/projection/verify.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";

/** Two users; the second's sell rests with 2 of 5 left after the first took 3 in two matches; a buy of the first rests. */
const SCHEMA_1_ROWS = `
  INSERT INTO users VALUES (1, 'a@example.com', 'user', 2, 1), (2, 'b@example.com', 'user', 2, 1);
  INSERT INTO accounts VALUES (1, 8500000, 0, 1500000), (2, 6500000, 0, 1500000);
  INSERT INTO markets VALUES (1, 'm', '?', NULL, NULL, NULL, 1, 5, NULL, NULL, 1);
  INSERT INTO outcomes VALUES (1, 1, 0, 'Yes', 5000, 3), (2, 1, 1, 'No', NULL, 0);
  INSERT INTO entries VALUES (1, 1, 'deposit', 10000000, 10000000, NULL, NULL, '1', 1),
    (2, 2, 'deposit', 10000000, 10000000, NULL, NULL, '2', 1), (3, 2, 'split', -5000000, 5000000, 1, NULL, NULL, 1);
  INSERT INTO orders VALUES (1, 2, 1, 2, 0, 0, 0, 0, 1, 5000, 5, 2, 2, 0, NULL, NULL, 'sell', 1, 3),
    (2, 1, 1, 1, 0, 0, 0, 0, 1, 5000, 1, 0, 3, 0, NULL, NULL, NULL, 2, 2),
    (3, 1, 1, 1, 0, 0, 0, 0, 1, 5000, 2, 0, 3, 0, NULL, NULL, NULL, 3, 3),
    (4, 1, 2, 1, 0, 0, 0, 0, 1, 1000, 4, 4, 1, 0, NULL, NULL, NULL, 4, 4);
  INSERT INTO fills VALUES (4, 4, 2, 1, 1, 2, 5000, 1, 0, 0, 0, 0, 5500000, 2),
    (5, 4, 1, 2, 1, 1, 5000, 1, 1, 0, 0, 0, 9500000, 2), (6, 6, 2, 1, 1, 2, 5000, 2, 0, 0, 0, 0, 6500000, 3),
    (7, 6, 1, 3, 1, 1, 5000, 2, 1, 0, 0, 0, 8500000, 3);
  INSERT INTO entries VALUES (8, 1, 'split', -1000000, 7500000, 1, NULL, NULL, 5);
  UPDATE accounts SET balance = 7500000 WHERE user_id = 1;
  UPDATE markets SET sets = 6;
  INSERT INTO positions VALUES (2, 1, 2, 0, 0), (2, 2, 5, 0, 0), (1, 1, 4, 0, 0), (1, 2, 1, 0, 0);
  UPDATE totals SET deposits = 20000000, users_total = 14000000, collateral = 6000000, sequence = 9, last_entry_id = 8,
    last_order_id = 4;
  INSERT INTO orders_by_user VALUES (2, 1);
  INSERT INTO resting_orders VALUES (1);
  UPDATE meta SET value = 1 WHERE key = 'orders_indexed';`;

test("schema 1, with look-up tables that lag behind", () => {
  const db = openSqlite(":memory:");
  db.exec(MIGRATIONS[0]!);
  db.exec(SCHEMA_1_ROWS);
  db.pragma("user_version = 1");
  expect(() => verifyDatabase(db)).toThrow(`schema 1, this program schema ${MIGRATIONS.length}`);
  migrate(db);
  expect(db.pragma("user_version", { simple: true })).toBe(MIGRATIONS.length);
  expect(verifyDatabase(db).filter(({ ok }) => !ok)).toEqual([]);
  const live = [...loadLiveOrders(db)].map((row) => [row[0], row[12], row[11]]);
  expect(live).toEqual([
    [1, OrderStatus.partiallyFilled, 2],
    [4, OrderStatus.open, 4],
  ]);
  const raw = (sql: string): unknown[] => db.prepare(sql).raw().all();
  expect(raw("SELECT * FROM newest_of_user")).toEqual([
    [1, 4, 7, 0, 0],
    [2, 1, 6, 0, 0],
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
  const chains = new RowLinks(db);
  expect([1, 2, 3, 4].map((user) => chains.updateSequence(user))).toEqual([9, 9, 9, 0]);
  const updates = new OrderUpdates(db, chains, 9, 1_000);
  const add = (user: number, order: number): number => updates.add(user, order, 100, 1, 1, 6 | (1 << 4), 0, 0, 7, 0);
  db.transaction(() => {
    expect([add(3, 5), add(3, 5), add(4, 5)]).toEqual([10, 11, 1]);
    updates.flush();
    chains.write({ order: 5, fill: 8, update: updates.count }, true);
  })();
  expect(new Map(loadUpdateSequences(db))).toEqual(new Map([[1, 9], [2, 9], [3, 11], [4, 1]])); // biome-ignore format: pairs
  db.close();
});

test("a database with a newer schema is refused with a message", () => {
  const db = openSqlite(":memory:");
  db.pragma(`user_version = ${MIGRATIONS.length + 1}`);
  expect(() => migrate(db)).toThrow(/run a newer one/);
  db.close();
});
