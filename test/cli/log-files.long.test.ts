/** `admin verify` and `rebuild` on a real log of several days, with archives, whole and damaged. */
import { readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ArchiveList, archivePath } from "../../engine/log/archive-format.ts";
import { bodyBytes, hashOf, readHeader, writeHeader } from "../../engine/log/batch-format.ts";
import { differingTables } from "../../engine/projection/table-hashes.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import type { Rebuilt } from "../../server/cli/rebuild.ts";
import { lockDataFolder } from "../../server/util/data-folder.ts";
import { admin } from "../support/admin.ts";
import { withDatabase } from "../support/data-dir.ts";
import { DaysLog } from "../support/days-log.ts";
import { temporaryFolder } from "../support/server.ts";
import { bodiesIn, copyOf, findingsOf, hashesIn, LINKED, REBUILT, withJournal } from "./logged-folder.ts";

/** Two archived days and a third in the journal. The tests copy it. */
let days: DaysLog;
beforeAll(() => {
  days = new DaysLog();
  days.tradeDays(2);
  days.archive();
  days.trade();
  days.project();
  days.close();
});
afterAll(() => rmSync(days.folder, { recursive: true }));

const freshCopy = (): string => copyOf(days.folder);

test("verify finds the tables to be what the log says, and all invariants to hold", async () => {
  const { code, failed, log } = findingsOf(await admin(days.folder, "verify"));
  const last = bodiesIn(days.folder).length;
  expect([code, failed]).toEqual([0, []]);
  expect(log).toEqual([`batches 1 to ${last}, 2 archives`, expect.stringMatching(`tables as of batch ${last}$`)]);
});

test("verify compares older tables as of their own batch", async () => {
  const folder = freshCopy();
  const bodies = bodiesIn(folder);
  const journal = openSqlite(join(folder, "journal.db"));
  journal.pragma("journal_mode = WAL");
  journal.close();
  rmSync(join(folder, "exchange.db"));
  // Tables from before the last batch: of a rebuild without it.
  withJournal(folder, (db) => db.prepare("DELETE FROM batches WHERE number = ?").run(bodies.length));
  expect((await admin(folder, "rebuild")).code).toBe(0);
  const at = readHeader(bodies.at(-1)!).at;
  withJournal(folder, (db) => db.prepare("INSERT INTO batches VALUES (?, ?, ?)").run(bodies.length, at, bodies.at(-1)));
  const { code, log } = findingsOf(await admin(folder, "verify"));
  expect([code, log[1]]).toEqual([0, expect.stringMatching(`as of batch ${bodies.length - 1}$`)]);
});

test("verify names the table of a changed row, even where every invariant holds", async () => {
  const folder = freshCopy();
  withDatabase(folder, (db) => db.exec("UPDATE users SET email = 'x' || email WHERE id = 7"));
  const { code, failed } = findingsOf(await admin(folder, "verify"));
  expect(code).toBe(1);
  expect(failed).toEqual([{ name: REBUILT, ok: false, figures: "differing: users" }]);
});

test("verify names a changed batch, a missing one and a changed archive", async () => {
  const folder = freshCopy();
  const all = bodiesIn(folder);
  const number = all.length - 1;
  const changed = Buffer.from(all[number - 1]!);
  changed[300] = changed[300]! ^ 1;
  withJournal(folder, (db) => db.prepare("UPDATE batches SET body = ? WHERE number = ?").run(changed, number));
  const failureOf = async (): Promise<string> => {
    const { code, failed } = findingsOf(await admin(folder, "verify"));
    expect([code, failed.map(({ name }) => name)]).toEqual([1, [LINKED]]);
    return failed[0]!.figures;
  };
  expect(await failureOf()).toMatch(`batch ${number} of the log was changed`);
  withJournal(folder, (db) => db.prepare("UPDATE batches SET body = ? WHERE number = ?").run(all[number - 1], number));
  const [first, second] = new ArchiveList(join(folder, "log")).read();
  const path = archivePath(join(folder, "log"), second!.day);
  const bytes = readFileSync(path);
  // In the opening, which no batch's hash covers.
  const opening = Buffer.from(bytes);
  opening[8] = opening[8]! ^ 1;
  writeFileSync(path, opening);
  expect(await failureOf()).toMatch(`the archive of ${second!.day} was changed`);
  writeFileSync(path, bytes);
  for (const ending of [".json", ".log.gz"]) rmSync(join(folder, "log", second!.day + ending));
  expect(await failureOf()).toMatch(`the log lacks batch ${second!.first}`);
  expect(first).toBeDefined();
});

test("rebuild refuses a log that has less than the tables, or another exchange's, and leaves both as they are", async () => {
  const older = freshCopy();
  const last = bodiesIn(older).length;
  withJournal(older, (db) => db.prepare("DELETE FROM batches WHERE number = ?").run(last));
  const other = freshCopy();
  withDatabase(other, (db) => db.exec("UPDATE projection SET exchange = exchange + 1"));
  const rejections: [string, RegExp][] = [
    [older, new RegExp(`^exchange\\.db contains batch ${last}, the log ends at ${last - 1}: restore the log`)],
    [other, /^exchange\.db is of another exchange than the log: restore the log/],
  ];
  for (const [folder, line] of rejections) {
    const before = readFileSync(join(folder, "exchange.db"));
    const { code, out, errors } = await admin(folder, "rebuild", "--replace");
    expect([code, out, errors.trim().split("\n")]).toEqual([1, "", [expect.stringMatching(line)]]);
    expect(readFileSync(join(folder, "exchange.db")).equals(before)).toBe(true);
    expect(readdirSync(folder).filter((name) => /rebuilt|part/.test(name))).toEqual([]);
  }
});

test("rebuild replaces tables that can't be compared", async () => {
  const folder = freshCopy();
  withDatabase(folder, (db) => db.exec("DELETE FROM projection"));
  const { code, out } = await admin(folder, "rebuild", "--replace");
  expect([code, JSON.parse(out)]).toMatchObject([0, { ok: true, compared: null, replaced: true }]);
  expect(hashesIn(folder)).toEqual(hashesIn(days.folder));
});

test("where the log no longer reaches back, verify says so and checks the rest", async () => {
  const folder = freshCopy();
  const [first] = new ArchiveList(join(folder, "log")).read();
  for (const ending of [".json", ".log.gz"]) rmSync(join(folder, "log", first!.day + ending));
  // Nothing says that LOG_DAYS removed it.
  const lost = `the log begins with batch ${first!.last + 1}, and should with 1: ${join(folder, "log")} lacks archives`;
  const missing = [{ name: LINKED, ok: false, figures: lost }];
  expect(findingsOf(await admin(folder, "verify"))).toMatchObject({ code: 1, failed: missing });
  forgetBefore(folder, first!.last + 1);
  const { code, failed, log } = findingsOf(await admin(folder, "verify"));
  expect([code, failed]).toEqual([0, []]);
  expect(log[1]).toBe(`not checked: the log begins with batch ${first!.last + 1}`);
  expect(await admin(folder, "rebuild")).toMatchObject({
    code: 1,
    out: "",
    errors: `the log begins with batch ${first!.last + 1}: the tables can't be rebuilt without those before\n`,
  });
});

/** As the projector does for LOG_DAYS. */
function forgetBefore(folder: string, batch: number): void {
  withDatabase(folder, (db) => {
    db.prepare("UPDATE projection SET log_begins = ?").run(batch);
    db.prepare("DELETE FROM update_index WHERE batch < ?").run(batch);
    db.exec("DELETE FROM term_changes");
  });
}

test("verify says where the log is missing: journal.db, a link that leads nowhere, its batches, its archives", async () => {
  const last = bodiesIn(days.folder).length;
  const failureIn = async (folder: string, ...file: string[]): Promise<string> => {
    const { code, failed } = findingsOf(await admin(folder, "verify", ...file));
    expect([code, failed.map(({ name }) => name)]).toEqual([1, [LINKED]]);
    return failed[0]!.figures;
  };
  const folder = freshCopy();
  const journal = join(folder, "journal.db");
  rmSync(journal);
  const gone = `there is no ${journal}, and the tables contain batch ${last} of it`;
  expect(await failureIn(folder)).toBe(gone);
  symlinkSync(join(folder, "elsewhere.db"), journal);
  expect(await failureIn(folder)).toBe(gone);
  const archived = freshCopy();
  withJournal(archived, (db) => db.exec("DELETE FROM batches"));
  expect(await failureIn(archived)).toMatch(/^the archives end with batch \d+, journal.db with 0$/);
  rmSync(join(archived, "log"), { recursive: true });
  expect(await failureIn(archived)).toBe(`the log is empty, the tables are of batch ${last}`);
  const unarchived = freshCopy();
  rmSync(join(unarchived, "log"), { recursive: true });
  expect(await failureIn(unarchived)).toMatch(/^the log begins with batch \d+, and should with 1: .* lacks archives$/);
  const to = temporaryFolder();
  expect((await admin(days.folder, "backup", join(to, "copy.db"))).code).toBe(0);
  rmSync(join(to, "copy.journal.db"));
  expect(await failureIn(to, join(to, "copy.db"))).toMatch(`there is no ${join(to, "copy.journal.db")}`);
});

test("verify finds a last batch that the next start refuses, though it follows the one before", async () => {
  for (const forgets of [false, true]) {
    const folder = freshCopy();
    const all = bodiesIn(folder);
    const [first] = new ArchiveList(join(folder, "log")).read();
    if (forgets) {
      for (const ending of [".json", ".log.gz"]) rmSync(join(folder, "log", first!.day + ending));
      forgetBefore(folder, first!.last + 1);
    }
    const last = all.at(-1)!;
    const header = readHeader(last);
    const body = Buffer.alloc(bodyBytes({ records: 0, texts: 0, writes: 9 }));
    const parts = { records: 0, texts: 0, writes: 9, flags: 0, recordsBefore: header.recordsBefore + header.records };
    const { last_entry_id: lastEntry } = lastEntryIn(folder);
    writeHeader(body, { ...header, ...parts, batch: all.length + 1, lastEntry }, hashOf(last));
    // A request of five bytes that are no MessagePack of one.
    body.writeUInt32LE(5, body.length - 9);
    body.fill(0xc1, body.length - 5);
    withJournal(folder, (db) =>
      db.prepare("INSERT INTO batches VALUES (?, ?, ?)").run(all.length + 1, header.at, body),
    );
    const { code, failed } = findingsOf(await admin(folder, "verify"));
    expect([code, failed.map(({ name }) => name)]).toEqual([1, [REBUILT]]);
    expect(failed[0]!.figures).toMatch(/^the log can't be projected: /);
  }
});

function lastEntryIn(folder: string): { last_entry_id: number } {
  const db = openReadOnly(join(folder, "exchange.db"));
  const row = db.prepare("SELECT last_entry_id FROM totals").get() as { last_entry_id: number };
  db.close();
  return row;
}

test("rebuild gives byte-equal tables, and replaces a file only if asked or if there is none", async () => {
  const folder = freshCopy();
  const before = hashesIn(folder);
  const last = bodiesIn(folder).length;
  const run = async (...args: string[]): Promise<Rebuilt & { code: number | null }> => {
    const { code, out, errors } = await admin(folder, "rebuild", ...args);
    expect(errors).toBe("");
    return { ...(JSON.parse(out) as Rebuilt), code };
  };
  const same = { ok: true, code: 0, batch: last, compared: { batch: last, differing: [] } };
  expect(await run()).toMatchObject({ ...same, replaced: false });
  withDatabase(folder, (db) => db.exec("UPDATE markets SET question = 'other' WHERE id = 1"));
  const differing = { batch: last, differing: ["markets"] };
  expect(await run()).toMatchObject({ ok: false, code: 1, compared: differing, replaced: false });
  expect(differingTables(hashesIn(folder), before)).toEqual(["markets"]);
  expect(readdirSync(folder).sort()).toContain("exchange.db.rebuilt");
  expect(await run("--replace")).toMatchObject({ ok: true, code: 0, compared: differing, replaced: true });
  expect(hashesIn(folder)).toEqual(before);
  rmSync(join(folder, "exchange.db"));
  expect(await run()).toMatchObject({ ok: true, code: 0, compared: null, replaced: true });
  expect(hashesIn(folder)).toEqual(before);
  // A damaged file is no file to compare with.
  writeFileSync(join(folder, "exchange.db"), "not a database");
  expect(await run("--replace")).toMatchObject({ compared: null, replaced: true });
  expect(hashesIn(folder)).toEqual(before);
  expect(readdirSync(folder).filter((name) => name.includes("rebuilt"))).toEqual([]);
});

test("rebuild refuses a folder in use, and a folder without a log", async () => {
  const folder = freshCopy();
  const lock = lockDataFolder(folder);
  const refused = await admin(folder, "rebuild");
  lock.close();
  expect(refused).toEqual({ code: 1, out: "", errors: expect.stringContaining("in use by another server") });
  expect(await admin(temporaryFolder(), "rebuild")).toEqual({ code: 1, out: "", errors: "the log is empty\n" });
});
