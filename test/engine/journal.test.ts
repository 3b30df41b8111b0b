/** The journal by itself, behind the real matcher, with more orders than HTTP could bring. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createRig, type Rig } from "../../bench/journal/rig.ts";
import { verifyDatabase } from "../../engine/journal/verify.ts";
import { MAX_BATCH_COMMANDS } from "../../engine/limits.ts";

/** What readers may have to scan beyond the look-up tables. */
const MAX_TAIL = 4_096;

let folder = "";
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function makeRig(): Rig {
  folder = mkdtempSync(join(tmpdir(), "journal-test-"));
  return createRig(join(folder, "exchange.db"), "off", () => {});
}

function tailOf({ db }: Rig): number {
  const sql = `SELECT last_order_id + last_entry_id - (SELECT sum(value) FROM meta WHERE key IN
    ('orders_indexed', 'fills_indexed')) FROM totals`;
  return Number(db.prepare(sql).pluck().get());
}

test("look-up tables fell behind without bound under full batches", () => {
  const rig = makeRig();
  for (let i = 0; i < 20; i++) {
    rig.traffic.makeBatch(MAX_BATCH_COMMANDS);
    rig.runBatch(MAX_BATCH_COMMANDS);
    expect(tailOf(rig)).toBeLessThanOrEqual(MAX_TAIL);
  }
  while (rig.journal.idle());
  expect(tailOf(rig)).toBe(0);
  rig.db.close();
});

test("after batches of every size the database is sound", () => {
  const rig = makeRig();
  for (const size of [1, 2, 15, 16, 17, 31, 32, 33, 100, 1_000, MAX_BATCH_COMMANDS]) {
    rig.traffic.makeBatch(size);
    rig.runBatch(size);
  }
  expect(verifyDatabase(rig.db).filter(({ ok }) => !ok)).toEqual([]);
  rig.journal.close();
});
