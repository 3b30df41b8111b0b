/**
 * Write-behind of orders' rows: readers find pending changes, the view shows them, and a start brings the rows forward,
 * always to the state in the updates.
 */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type Database from "better-sqlite3";
import { Piscina } from "piscina";
import { afterEach, expect, test } from "vitest";
import { createRig, type Rig } from "../../../bench/figures/journal/rig.ts";
import { USERS } from "../../../bench/figures/journal/traffic.ts";
import { ORDER_STATUSES, REASONS } from "../../../engine/constants.ts";
import { openDatabase } from "../../../engine/projection/database.ts";
import { verifyDatabase } from "../../../engine/projection/verify.ts";
import { bringOrdersForward } from "../../../engine/projection/write-behind.ts";
import type { HistoryPage } from "../../../server/http/paging.ts";

const HISTORY_WORKER = fileURLToPath(new URL("../../../dist/history-worker.js", import.meta.url));

let folder = "";
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Row {
  readonly id: number;
  readonly user_id: number;
  readonly quantity: number;
  readonly remaining: number;
  readonly status: number;
  readonly reason: number;
  readonly updated_at: number;
  readonly last_fill_id: number;
}
const COLUMNS = "id, user_id, price, quantity, remaining, status, reason, updated_at, last_fill_id, priority";
const rowsOf = (db: Database.Database, table: "orders" | "current_orders"): Row[] =>
  db.prepare(`SELECT ${COLUMNS} FROM ${table} ORDER BY id`).all() as Row[];
const different = (db: Database.Database): number => {
  const current = rowsOf(db, "current_orders");
  return rowsOf(db, "orders").filter((row, i) => JSON.stringify(row) !== JSON.stringify(current[i])).length;
};

/** Orders that have ended by their rows and are listed as resting. */
const STALE = "SELECT count(*) FROM resting_orders JOIN orders ON id = order_id WHERE status >= 5";

/** A journal under load without a quiet moment: many rows are behind. */
function makeRig(): { rig: Rig; path: string } {
  folder = mkdtempSync(join(tmpdir(), "order-states-test-"));
  const path = join(folder, "exchange.db");
  const rig = createRig(path, "off", () => {});
  for (const size of [2_000, 64, 64, 1, 2_000]) {
    rig.traffic.makeBatch(size);
    rig.runBatch(size);
  }
  return { rig, path };
}

test("a start after a crash brings every row forward to its updates, and so does a quiet journal", () => {
  const { rig, path } = makeRig();
  expect(different(rig.db)).toBeGreaterThan(500);
  const current = rowsOf(rig.db, "current_orders");
  expect(verifyDatabase(rig.db).filter(({ ok }) => !ok)).toEqual([]);
  const copy = join(folder, "copy.db");
  for (const end of ["", "-wal"]) cpSync(path + end, copy + end);
  const crashed = openDatabase(copy, "off");
  bringOrdersForward(crashed);
  expect(rowsOf(crashed, "orders")).toEqual(current);
  expect(different(crashed)).toBe(0);
  expect(verifyDatabase(crashed).filter(({ ok }) => !ok)).toEqual([]);
  crashed.close();

  while (rig.journal.idle());
  expect(rowsOf(rig.db, "orders")).toEqual(current);
  expect(rig.db.prepare("SELECT value - order_updates FROM meta, totals WHERE key = 'orders_told'").pluck().get()).toBe(
    0,
  );
  rig.journal.close();
});

test("no crash leaves ended orders in the resting list", () => {
  const { rig, path } = makeRig();
  while (rig.journal.idle());
  expect(rig.db.prepare(STALE).pluck().get()).toBe(0);
  rig.traffic.makeBatch(2_000);
  rig.runBatch(2_000);
  const copy = join(folder, "copy.db");
  for (const end of ["", "-wal"]) cpSync(path + end, copy + end);
  const crashed = openDatabase(copy, "off");
  const listed = crashed.prepare("SELECT count(*) FROM resting_orders").pluck();
  const before = Number(listed.get());
  bringOrdersForward(crashed);
  expect(Number(listed.get())).toBeLessThan(before);
  expect(crashed.prepare(STALE).pluck().get()).toBe(0);
  expect(verifyDatabase(crashed).filter(({ ok }) => !ok)).toEqual([]);
  crashed.close();
  rig.journal.close();
});

test("readers see pending changes, of one order and of all of a user's", async () => {
  const { rig, path } = makeRig();
  const current = rowsOf(rig.db, "current_orders");
  const rows = new Map(rowsOf(rig.db, "orders").map((row) => [row.id, row]));
  const pool = new Piscina({ filename: HISTORY_WORKER, maxThreads: 1, workerData: { path } });
  const shown = ({ id, quantity, remaining, status, reason, updated_at }: Row) => ({
    ...{ id, quantity, remaining, filled: quantity - remaining, updated_at },
    ...{ status: ORDER_STATUSES[status], reason: REASONS[reason] },
  });
  let changed = 0;
  for (let user = 1; user <= USERS; user++) {
    const own = current.filter((row) => row.user_id === user).reverse();
    const options = { userId: user, before: Number.MAX_SAFE_INTEGER, limit: 200 };
    const { items } = (await pool.run(options, { name: "orders" })) as HistoryPage;
    expect(items).toMatchObject(own.slice(0, 200).map(shown));
    // An order with a change that its row lacks, if the user has one, with its fills.
    const order =
      own.find(({ id, status, remaining }) => rows.get(id)!.status !== status && remaining === 0) ?? own[0]!;
    if (rows.get(order.id)!.status !== order.status) changed++;
    const one = (await pool.run({ userId: user, orderId: order.id }, { name: "order" })) as {
      trades: { quantity: number }[];
    };
    expect(one).toMatchObject(shown(order));
    expect(one.trades.reduce((sum, { quantity }) => sum + quantity, 0)).toBe(order.quantity - order.remaining);
  }
  expect(changed).toBeGreaterThan(USERS / 4);
  await pool.destroy();
  rig.journal.close();
});
