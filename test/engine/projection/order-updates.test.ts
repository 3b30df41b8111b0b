/**
 * The retention of order updates: the journal, with a clock of the test's, prunes them in slices, oldest first,
 * together with their marks. Numbers continue, and a request for pruned updates gets the remaining ones.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type Database from "better-sqlite3";
import { Piscina } from "piscina";
import { afterEach, expect, test } from "vitest";
import { createRig, type Rig } from "../../../bench/figures/journal/rig.ts";
import { USERS } from "../../../bench/figures/journal/traffic.ts";
import { Journal } from "../../../engine/log/journal.ts";
import { CommittedTotals } from "../../../engine/log/totals.ts";
import { openDatabase } from "../../../engine/projection/database.ts";
import { loadUpdateSequences } from "../../../engine/projection/load/orders.ts";
import { verifyDatabase } from "../../../engine/projection/verify.ts";
import { OrderTexts } from "../../../engine/ring/order-texts.ts";
import type { UpdatesOptions, UpdatesPage } from "../../../server/queries/types.ts";
import { checkKept } from "../../../server/websocket/replay.ts";

const KEEP_MS = 1_000;
/** The updates that one quiet transaction may prune. */
const MAX_SLICE = 512;
const HISTORY_WORKER = fileURLToPath(new URL("../../../dist/history-worker.js", import.meta.url));

let folder = "";
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Kept {
  readonly rows: number;
  readonly oldest: number | null;
  readonly last: number;
}

const keptIn = (db: Database.Database): Kept =>
  db
    .prepare(
      `SELECT (SELECT count(*) FROM order_updates) AS rows, (SELECT min(id) FROM order_updates) AS oldest,
         order_updates AS last FROM totals`,
    )
    .get() as Kept;
const sequencesIn = (db: Database.Database): Map<number, number> => new Map(loadUpdateSequences(db));
const flawsOf = (db: Database.Database): unknown[] => verifyDatabase(db).filter(({ ok }) => !ok);
const timesOf = (db: Database.Database): [number, number] =>
  db.prepare("SELECT min(created_at), max(created_at) FROM order_updates").raw().get() as [number, number];

/** A journal whose clock shows the traffic's time, after several batches. */
function makeRig(batches: number): { rig: Rig; clock: { now: number }; path: string } {
  folder = mkdtempSync(join(tmpdir(), "updates-test-"));
  const path = join(folder, "exchange.db");
  const clock = { now: 0 };
  const rig = createRig(path, "off", () => {}, { now: () => clock.now, keepUpdatesMs: KEEP_MS });
  for (let i = 0; i < batches; i++) {
    rig.traffic.makeBatch(2_000);
    rig.runBatch(2_000);
  }
  return { rig, clock, path };
}

function journalOn(db: Database.Database, now: () => number): Journal {
  const texts = new OrderTexts(1);
  return new Journal({
    db,
    gates: [],
    texts,
    totals: new CommittedTotals(),
    now,
    clock: () => 0,
    onCommit: () => {},
    requestCheckpoint: () => {},
    keepUpdatesMs: KEEP_MS,
  });
}

test("outdated updates and their marks are pruned in small slices, oldest first, and readers get the rest", async () => {
  const { rig, clock, path } = makeRig(3);
  const { db, journal } = rig;
  while (journal.idle());
  const all = keptIn(db);
  expect([all.oldest, all.rows]).toEqual([1, all.last]);
  const [from, to] = timesOf(db);
  clock.now = Math.floor((from + to) / 2) + KEEP_MS;
  const outdated = db.prepare("SELECT count(*) FROM order_updates WHERE created_at < ?").pluck();
  let before = all.rows;
  for (let slices = 0; journal.idle(); slices++) {
    const { rows, oldest, last } = keptIn(db);
    expect(before - rows).toBeLessThanOrEqual(MAX_SLICE);
    expect(oldest).toBe(last - rows + 1);
    if (slices === 0) expect(flawsOf(db)).toEqual([]);
    before = rows;
  }
  const half = keptIn(db);
  expect(outdated.get(clock.now - KEEP_MS)).toBe(0);
  expect(half.rows).toBeGreaterThan(MAX_SLICE);
  expect(half.rows).toBeLessThan(all.rows - MAX_SLICE);
  expect(flawsOf(db)).toEqual([]);
  const marks = db.prepare("SELECT count(*) FROM update_marks WHERE update_id < ?").pluck();
  expect(marks.get(half.oldest)).toBe(0);

  const pool = new Piscina({ filename: HISTORY_WORKER, maxThreads: 1, workerData: { path } });
  const read = (options: UpdatesOptions): Promise<UpdatesPage> => pool.run(options, { name: "updates" });
  const first = db.prepare("SELECT min(sequence) FROM order_updates WHERE user_id = ?").pluck();
  for (const [userId, last] of [...sequencesIn(db)].filter(([id]) => id % 9 === 0)) {
    const oldest = Number(first.get(userId) ?? last + 1);
    const page = await read({ userId, after: null, limit: 200 });
    const numbers = page.items.map(({ sequence }) => sequence);
    expect(numbers).toEqual(numbers.map((_, i) => oldest + i));
    expect([page.oldest, numbers.length]).toEqual([null, Math.min(200, last + 1 - oldest)]);
    for (const after of [0, 1, oldest - 2].filter((each) => each >= 0 && each < oldest - 1)) {
      const gone = await read({ userId, after, limit: 1_000 });
      expect(() => checkKept(gone, "after")).toThrow(
        `after: updates before ${oldest} are no longer kept, go on from ${oldest - 1}`,
      );
    }
    for (const after of [oldest - 1, last]) expect((await read({ userId, after, limit: 1 })).oldest).toBeNull();
  }
  await pool.close();
  journal.close();
});

test("with only the last update left, the numbers continue after a restart", () => {
  const { rig, clock, path } = makeRig(2);
  while (rig.journal.idle());
  const before = sequencesIn(rig.db);
  expect(before.size).toBe(USERS);
  const { last } = keptIn(rig.db);
  clock.now = timesOf(rig.db)[1] + KEEP_MS + 1;
  while (rig.journal.idle());
  rig.journal.close();
  const db = openDatabase(path, "off");
  expect(keptIn(db)).toEqual({ rows: 1, oldest: last, last });
  expect(db.prepare("SELECT count(*) FROM update_marks WHERE update_id < ?").pluck().get(last)).toBe(0);
  expect(sequencesIn(db)).toEqual(before);
  expect(flawsOf(db)).toEqual([]);
  const journal = journalOn(db, () => clock.now);
  while (journal.idle());
  expect(sequencesIn(db)).toEqual(before);
  journal.close();
});

test("updates whose numbers aren't stored elsewhere yet stay, however old: numbers would fall back after a restart", () => {
  const { rig, clock } = makeRig(1);
  clock.now = Number.MAX_SAFE_INTEGER;
  while (rig.journal.idle());
  expect(keptIn(rig.db).rows).toBe(1);
  const sum = (): number => [...sequencesIn(rig.db).values()].reduce((a, b) => a + b, 0);
  for (let i = 0; i < 4; i++) {
    const [before, { last }] = [sum(), keptIn(rig.db)];
    rig.traffic.makeBatch(700);
    rig.runBatch(700);
    expect(keptIn(rig.db).last - last).toBeGreaterThan(MAX_SLICE);
    expect(sum() - before).toBe(keptIn(rig.db).last - last);
  }
  while (rig.journal.idle());
  expect(keptIn(rig.db).rows).toBe(1);
  rig.journal.close();
});

test("under load, pruning keeps up with new updates", () => {
  const { rig, clock } = makeRig(2);
  while (rig.journal.idle());
  clock.now = 1e13;
  const backlog = keptIn(rig.db).rows;
  for (let i = 0; i < 8; i++) {
    clock.now += 2_000;
    rig.traffic.makeBatch(2_000);
    rig.runBatch(2_000);
  }
  expect(flawsOf(rig.db)).toEqual([]);
  // Updates that the tables of newest rows and the rows of orders lack can't be pruned yet.
  expect(keptIn(rig.db).rows).toBeLessThan(Math.max(backlog / 2, 8_192));
  rig.journal.close();
});
