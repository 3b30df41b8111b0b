/** The journal by itself, behind the real matcher, with more orders than HTTP could bring. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createRig, type Rig } from "../../../bench/figures/journal/rig.ts";
import { MAX_BATCH_COMMANDS } from "../../../engine/limits.ts";
import { openDatabase } from "../../../engine/projection/database.ts";
import { verifyDatabase } from "../../../engine/projection/verify.ts";

/**
 * The bound on the rows that readers scan beyond the tables of newest rows and the resting list while those are
 * written.
 */
const MAX_TAIL = 4_096 + 4 * MAX_BATCH_COMMANDS;
/** And on the updates that the rows of orders lag behind. */
const MAX_PENDING_UPDATES = 2 * 65_536 + 4 * MAX_BATCH_COMMANDS;

let folder = "";
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function makeRig(): Rig {
  folder = mkdtempSync(join(tmpdir(), "journal-test-"));
  return createRig(join(folder, "exchange.db"), "off", () => {});
}

function tailsOf({ db }: Rig): Record<string, number> {
  const value = (key: string): string => `(SELECT value FROM meta WHERE key = '${key}')`;
  const sql = `SELECT last_order_id - ${value("newest_order")} + last_entry_id - ${value("newest_fill")} AS unchained,
    order_updates - ${value("orders_told")} AS untold, last_order_id - ${value("orders_listed")} AS unlisted FROM totals`;
  return db.prepare(sql).get() as Record<string, number>;
}

test("write-behind rows never lag far behind under full batches, and are complete in the end", () => {
  const rig = makeRig();
  for (let i = 0; i < 40; i++) {
    rig.traffic.makeBatch(MAX_BATCH_COMMANDS);
    rig.runBatch(MAX_BATCH_COMMANDS);
    const { unchained, untold, unlisted } = tailsOf(rig);
    expect(unchained).toBeLessThanOrEqual(MAX_TAIL);
    expect(untold).toBeLessThanOrEqual(MAX_PENDING_UPDATES);
    expect(unlisted).toBeLessThanOrEqual(MAX_PENDING_UPDATES / 2);
  }
  while (rig.journal.idle());
  const ends = "SELECT value FROM meta WHERE key = 'newest_";
  const behind = `SELECT (${ends}order') < last_order_id OR (${ends}fill') < (SELECT max(id) FROM fills) FROM totals`;
  expect(rig.db.prepare(behind).pluck().get()).toBe(0);
  expect(tailsOf(rig)).toMatchObject({ untold: 0, unlisted: 0 });
  rig.db.close();
});

test("the database is sound after batches of every size", () => {
  const rig = makeRig();
  for (const size of [1, 2, 15, 16, 17, 31, 32, 33, 100, 1_000, MAX_BATCH_COMMANDS]) {
    rig.traffic.makeBatch(size);
    rig.runBatch(size);
  }
  expect(verifyDatabase(rig.db).filter(({ ok }) => !ok)).toEqual([]);
  rig.journal.close();
});

test("closing the journal under load writes everything pending in few commits: a stop has seconds", () => {
  const rig = makeRig();
  for (let i = 0; i < 20; i++) {
    rig.traffic.makeBatch(2_000);
    rig.runBatch(2_000);
  }
  const other = openDatabase(join(folder, "exchange.db"), "off");
  const read = (sql: string): number => Number(other.prepare(sql).pluck().get());
  expect(read("SELECT order_updates - value FROM totals, meta WHERE key = 'orders_told'")).toBeGreaterThan(10_000);
  const { parts } = rig.journal as unknown as { parts: { transaction: { commitStatement: { run(): unknown } } } };
  const { commitStatement } = parts.transaction;
  const run = commitStatement.run.bind(commitStatement);
  let commits = 0;
  commitStatement.run = () => {
    commits++;
    return run();
  };
  rig.journal.close();
  expect(commits).toBeLessThan(10);
  expect(read("SELECT order_updates - value FROM totals, meta WHERE key = 'orders_told'")).toBe(0);
  expect(verifyDatabase(other).filter(({ ok }) => !ok)).toEqual([]);
  other.close();
});
