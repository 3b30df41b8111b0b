/** The log by itself, behind the real matcher, and the projector that follows it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createRig, type Rig } from "../../../bench/figures/log/rig.ts";
import { SLOTS } from "../../../bench/figures/log/traffic.ts";
import { MAX_BATCH_COMMANDS } from "../../../engine/limits.ts";
import { hashOf, previousHash, readHeader, recordsOf } from "../../../engine/log/batch-format.ts";
import { BrokenLog } from "../../../engine/log/broken-log.ts";
import { JournalReader } from "../../../engine/log/log-reader.ts";
import { migrate } from "../../../engine/projection/database.ts";
import { projectAll } from "../../../engine/projection/follow.ts";
import { Projector } from "../../../engine/projection/projector.ts";
import { differingTables, hashTables } from "../../../engine/projection/table-hashes.ts";
import { verifyDatabase } from "../../../engine/projection/verify.ts";
import { openDatabase } from "../../../engine/util/wal-database.ts";

let folder = "";
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function makeRig(): Rig {
  folder = mkdtempSync(join(tmpdir(), "log-test-"));
  return createRig(folder, "off", () => {});
}

function run(rig: Rig, ...sizes: number[]): void {
  for (const size of sizes) {
    rig.traffic.makeBatch(size);
    rig.runBatch(size);
  }
}

/** An empty exchange.db for the rig's log. */
function emptyTables(rig: Rig, name: string) {
  const db = openDatabase(join(folder, name), "off");
  migrate(db);
  const exchange = rig.tables.prepare("SELECT exchange FROM projection").pluck().get();
  db.prepare("UPDATE projection SET exchange = ?").run(exchange);
  return db;
}

test("each batch continues the one before: number, records before it, last entry and hash", () => {
  const rig = makeRig();
  run(rig, 1, 2, 15, 1_000, MAX_BATCH_COMMANDS);
  let before: { body: Buffer; next: number; number: number } | null = null;
  for (const body of new JournalReader(rig.journal).bodies(1)) {
    const header = readHeader(body);
    expect(recordsOf(body, header).count).toBe(header.records);
    if (before !== null) {
      expect(header.batch).toBe(before.number + 1);
      expect(header.recordsBefore).toBe(before.next);
      expect(previousHash(body)).toEqual(hashOf(before.body));
    }
    before = { body, next: header.recordsBefore + header.records, number: header.batch };
  }
  expect(before?.number).toBe(rig.progress.committedBatch);
  rig.log.close();
});

test("the tables are sound after batches of every size", () => {
  const rig = makeRig();
  run(rig, 1, 2, 15, 16, 17, 31, 32, 33, 100, 1_000, MAX_BATCH_COMMANDS);
  projectAll(rig.projector, new JournalReader(rig.journal));
  expect(verifyDatabase(rig.tables).filter(({ ok }) => !ok)).toEqual([]);
  rig.log.close();
});

test("the tables don't depend on how batches share transactions, nor on restarts of the projector", () => {
  const rig = makeRig();
  for (let i = 0; i < 30; i++) run(rig, 1 + ((i * 37) % 200));
  const log = new JournalReader(rig.journal);
  projectAll(rig.projector, log);
  const single = emptyTables(rig, "single.db");
  let projector = new Projector(single, log, { capacity: SLOTS });
  let count = 0;
  for (const body of log.bodies(1)) {
    projector.apply(body);
    projector.commit();
    if (++count % 7 === 0) projector = new Projector(single, log, { capacity: SLOTS });
  }
  expect(differingTables(hashTables(single), hashTables(rig.tables))).toEqual([]);
  single.close();
  rig.log.close();
});

test("a batch that doesn't follow is refused", () => {
  const rig = makeRig();
  run(rig, 10, 10, 10);
  const bodies = [...new JournalReader(rig.journal).bodies(1)];
  const refuse = (body: Buffer, message: RegExp): void => {
    const tables = emptyTables(rig, `${Math.random()}.db`);
    const projector = new Projector(tables, new JournalReader(rig.journal), { capacity: SLOTS, checksHashes: true });
    projector.apply(bodies[0]!);
    expect(() => projector.apply(body)).toThrow(BrokenLog);
    expect(() => projector.apply(body)).toThrow(message);
  };
  refuse(bodies[2]!, /continues with batch 3, not 2/);
  const changed = Buffer.from(bodies[1]!);
  changed[70] = changed[70]! ^ 1;
  refuse(changed, /isn't the one that batch 2 follows/);
  const foreign = Buffer.from(bodies[1]!);
  foreign.writeDoubleLE(1, 40);
  refuse(foreign, /another exchange/);
  rig.log.close();
});
