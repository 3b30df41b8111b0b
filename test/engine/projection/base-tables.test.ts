/**
 * An exchange that is older than its log: its tables from before the log are kept as a snapshot, from which they can be
 * rebuilt, and which gives the books before the log's first batch.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { MarketStatus, Side } from "../../../engine/constants.ts";
import { ArchiveList, archivePath } from "../../../engine/log/archive-format.ts";
import { ArchiveReader } from "../../../engine/log/archive-reader.ts";
import { openJournal } from "../../../engine/log/database.ts";
import { openingRecords } from "../../../engine/log/opening.ts";
import { snapshotPath } from "../../../engine/projection/base-tables.ts";
import { hashTables } from "../../../engine/projection/table-hashes.ts";
import * as R from "../../../engine/ring/records.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";
import { keepLog, type UpkeepJob } from "../../../server/service/log-upkeep-job.ts";
import { admin } from "../../support/admin.ts";
import { temporaryFolder } from "../../support/server.ts";
import { appendDeposits, createOldExchange, openTables } from "./old-exchange.ts";

let dataDir = "";
beforeEach(() => {
  dataDir = temporaryFolder();
  createOldExchange(dataDir);
});

const start = () => openTables(dataDir);
const jobOf = (archives: string): UpkeepJob => ({
  journal: join(dataDir, "journal.db"),
  tables: join(dataDir, "exchange.db"),
  archives,
  logDays: 0,
  history: null,
});

test("the first start keeps the tables from before the log; later starts and new exchanges keep none", () => {
  const { hashes, end, archives } = start();
  expect([end.batch, readdirSync(archives)]).toEqual([9, ["snapshot.db"]]);
  const snapshot = openSqlite(snapshotPath(archives), { readonly: true });
  expect(hashTables(snapshot)).toEqual(hashes);
  snapshot.close();
  // A crash before the copy was complete: the next start repeats it.
  rmSync(snapshotPath(archives));
  writeFileSync(`${snapshotPath(archives)}.part`, "a part");
  expect(start().hashes).toEqual(hashes);
  expect(readdirSync(archives)).toEqual(["snapshot.db"]);
  appendDeposits(dataDir, 1);
  rmSync(archives, { recursive: true });
  start();
  expect(existsSync(archives)).toBe(false);
  dataDir = temporaryFolder();
  start();
  expect(existsSync(join(dataDir, "log"))).toBe(false);
});

test("lost tables are built again from the snapshot, the archives and the journal", async () => {
  appendDeposits(dataDir, 4);
  const { hashes, archives } = start();
  const job = jobOf(archives);
  expect(keepLog(job)).toMatchObject({ archived: 12 });
  const journal = openJournal(job.journal, "off");
  journal.prepare("DELETE FROM batches WHERE number <= 12").run();
  journal.close();
  const verified = await admin(dataDir, "verify");
  expect([verified.code, verified.out]).toEqual([0, expect.stringContaining("tables as of batch 13")]);
  rmSync(join(dataDir, "exchange.db"));
  expect(start().hashes).toEqual(hashes);
  rmSync(join(dataDir, "exchange.db"));
  expect(JSON.parse((await admin(dataDir, "rebuild")).out)).toMatchObject({ ok: true, batch: 13, replaced: true });
  expect(start().hashes).toEqual(hashes);
  // Without the snapshot the log says nothing about the time before it.
  rmSync(snapshotPath(archives));
  rmSync(join(dataDir, "exchange.db"));
  expect(() => start()).toThrow(/^DATA_DIR: the log begins with batch 10: /);
});

test("the first archive opens with the books of the snapshot, their orders by priority", () => {
  const tables = openSqlite(join(dataDir, "exchange.db"));
  tables.exec("UPDATE orders SET priority = 7 WHERE id = 1");
  tables.close();
  appendDeposits(dataDir, 2);
  const { archives } = start();
  keepLog(jobOf(archives));
  const [archive] = new ArchiveList(archives).read();
  const opening = new ArchiveReader(archivePath(archives, archive!.day), archive!).opening()!;
  expect(opening.markets).toEqual([[1, 1, 2, MarketStatus.open]]);
  const { words, doubles, count } = openingRecords(opening);
  const orders = Array.from({ length: count }, (_, i) => {
    const [w, d] = [i * R.RECORD_WORDS, i * R.RECORD_DOUBLES];
    const sides = [words[w + R.W_USER], words[w + R.W_OUTCOME], R.sideOf(words[w]!), words[w + R.W_PRICE]];
    const amounts = [words[w + R.W_QUANTITY], words[w + R.W_CORRELATION], words[w + R.W_MARKET]];
    return [doubles[d + R.D_ORDER_ID], doubles[d + R.D_OPENING_PRIORITY], ...sides, ...amounts];
  });
  expect(orders).toEqual([
    [4, 4, 1, 2, Side.buy, 1_000, 4, 4, 1],
    [1, 7, 2, 1, Side.sell, 5_000, 2, 5, 1],
  ]);
});

test("archives without the log that continues them are refused, and so are tables newer than the log", () => {
  appendDeposits(dataDir, 3);
  const { archives } = start();
  keepLog(jobOf(archives));
  const folder = temporaryFolder();
  mkdirSync(join(folder, "log"));
  for (const name of readdirSync(archives)) copyFileSync(join(archives, name), join(folder, "log", name));
  const whole = dataDir;
  dataDir = folder;
  expect(() => start()).toThrow(/^DATA_DIR: the archives end with batch 11, journal.db with 0: /);
  rmSync(join(folder, "log"), { recursive: true });
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  copyFileSync(join(whole, "exchange.db"), join(folder, "exchange.db"));
  expect(() => start()).toThrow(/^DATA_DIR: exchange.db contains batch 12, journal.db ends at /);
});
