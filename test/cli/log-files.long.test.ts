/** `admin verify`, `rebuild` and `log` on a real log of several days, with archives, whole and damaged. */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MARKETS, USERS } from "../../bench/figures/log/traffic.ts";
import { ArchiveList, archivePath } from "../../engine/log/archive-format.ts";
import { bodyBytes, hashOf, readHeader, recordsOf, writeHeader } from "../../engine/log/batch-format.ts";
import { openLogReader } from "../../engine/log/log-files.ts";
import { differingTables, hashTables } from "../../engine/projection/table-hashes.ts";
import type { Finding } from "../../engine/projection/verify.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import type { Backup } from "../../server/cli/backup.ts";
import type { Rebuilt } from "../../server/cli/rebuild.ts";
import { lockDataFolder } from "../../server/util/data-folder.ts";
import { type AdminRun, admin } from "../support/admin.ts";
import { withDatabase } from "../support/data-dir.ts";
import { DaysLog } from "../support/days-log.ts";
import { temporaryFolder } from "../support/server.ts";

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

function copyOf(folder: string): string {
  const copy = temporaryFolder();
  mkdirSync(join(copy, "log"));
  for (const name of ["exchange.db", "journal.db"]) copyFileSync(join(folder, name), join(copy, name));
  for (const name of readdirSync(join(folder, "log"))) copyFileSync(join(folder, "log", name), join(copy, "log", name));
  return copy;
}

const freshCopy = (): string => copyOf(days.folder);

const LINKED = "the log's batches follow each other";
const REBUILT = "the tables are what the log says";

function findingsOf({ code, out, errors }: AdminRun): { code: number; failed: Finding[]; log: (string | undefined)[] } {
  expect(errors).toBe("");
  const { findings } = JSON.parse(out) as { findings: Finding[] };
  const log = [LINKED, REBUILT].map((name) => findings.find((finding) => finding.name === name)?.figures);
  return { code: code ?? -1, failed: findings.filter(({ ok }) => !ok), log };
}

function hashesIn(folder: string): Map<string, string> {
  const db = openReadOnly(join(folder, "exchange.db"));
  try {
    return hashTables(db);
  } finally {
    db.close();
  }
}

const bodiesIn = (folder: string): Buffer[] => {
  const log = openLogReader(folder);
  try {
    return [...log.bodies(1)];
  } finally {
    log.close();
  }
};

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

function withJournal(folder: string, run: (db: ReturnType<typeof openSqlite>) => void): void {
  const db = openSqlite(join(folder, "journal.db"));
  run(db);
  db.close();
}

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

// ---------------------------------------------------------------- admin log

type Line = { batch: number; committed_at: number; kind: string; [field: string]: unknown };

async function linesOf(folder: string, ...args: string[]): Promise<Line[]> {
  const { code, out, errors } = await admin(folder, "log", "--json", ...args);
  expect({ code, errors }).toEqual({ code: 0, errors: "" });
  return out
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);
}

test("log prints each event and write once, in order, with every field named", async () => {
  const lines = await linesOf(days.folder);
  const bodies = bodiesIn(days.folder);
  const events = bodies.reduce((sum, body) => sum + recordsOf(body, readHeader(body)).count, 0);
  const writes = lines.filter(({ kind }) => ["createUser", "deposit", "createMarket"].includes(kind));
  expect(writes.length).toBe(2 * USERS + MARKETS);
  expect(lines.filter(({ kind }) => kind === "exchangeStarted").length).toBe(1);
  expect(lines.length).toBe(events + writes.length + 1);
  expect(lines.map(({ batch }) => batch)).toEqual(lines.map(({ batch }) => batch).sort((a, b) => a - b));
  const placed = lines.find(({ kind }) => kind === "orderPlaced")!;
  expect(placed).toMatchObject({
    side: expect.stringMatching(/^(buy|sell)$/),
    price: expect.any(Number),
    quantity: expect.any(Number),
    status: "open",
    type: "limit",
    time_in_force: "gtc",
    self_trade_prevention: "cancel_taker",
    client_order_id: null,
    pat: true,
    update: expect.any(Number),
  });
  expect(Object.values(placed).some((value) => value === undefined)).toBe(false);
  const fill = lines.find(({ kind }) => kind === "orderFilled")!;
  expect(fill).toMatchObject({
    fill: expect.any(Number),
    role: "maker",
    match_type: expect.any(String),
    fee_bps: null,
  });
});

test("log filters by user, order, market, kind, batch and time", async () => {
  const all = await linesOf(days.folder);
  const of = (lines: Line[], wanted: (line: Line) => boolean): Line[] => lines.filter(wanted);
  expect(await linesOf(days.folder, "--kind", "orderCanceled")).toEqual(
    of(all, ({ kind }) => kind === "orderCanceled"),
  );
  const user = await linesOf(days.folder, "--user", "7");
  const isOf7 = ({ user: id, userId, kind, id: row }: Line): boolean =>
    id === 7 || userId === 7 || (kind === "createUser" && row === 7);
  expect(user).toEqual(of(all, isOf7));
  expect(await linesOf(days.folder, "--user", "7@example.com")).toEqual(user);
  const filled = all.find(({ kind, role }) => kind === "orderFilled" && role === "maker")!;
  const life = await linesOf(days.folder, "--order", String(filled["order"]));
  expect(life).toEqual(of(all, ({ order }) => order === filled["order"]));
  expect(life[0]).toMatchObject({ kind: "orderPlaced" });
  const market = await linesOf(days.folder, "--market", "market-3");
  expect(market).toEqual(await linesOf(days.folder, "--market", "3"));
  const isOf3 = ({ kind, id, market: given, outcome }: Line): boolean =>
    given === 3 || outcome === 5 || outcome === 6 || (kind === "createMarket" && id === 3);
  expect(market).toEqual(of(all, isOf3));
  expect(await linesOf(days.folder, "--from", "5", "--to", "7")).toEqual(
    of(all, ({ batch }) => batch >= 5 && batch <= 7),
  );
  const second = new Date(days.dayName(1));
  const noon = second.getTime() + 12 * 3_600_000;
  const range = ["--from", second.toISOString(), "--to", new Date(noon).toISOString()];
  const found = await linesOf(days.folder, ...range);
  expect(found).toEqual(of(all, ({ committed_at: at }) => at >= second.getTime() && at <= noon));
  expect(found.length).toBeGreaterThan(100);
});

test("log reads one archive or journal by itself, and prints readable lines", async () => {
  const all = await linesOf(days.folder);
  const [, second] = new ArchiveList(days.archives).read();
  const inSecond = all.filter(({ batch }) => batch >= second!.first && batch <= second!.last);
  const folder = temporaryFolder();
  const name = `${second!.day}.log.gz`;
  for (const each of [name, `${second!.day}.json`]) copyFileSync(join(days.archives, each), join(folder, each));
  expect(await linesOf(folder, "--file", join(folder, name))).toEqual(inSecond);
  // The opening names the outcomes of each market.
  const market = inSecond.filter(({ market: given, outcome }) => given === 3 || outcome === 5 || outcome === 6);
  expect(await linesOf(folder, "--file", join(folder, name), "--market", "3")).toEqual(market);
  copyFileSync(join(days.folder, "journal.db"), join(folder, "copy.db"));
  const rest = all.filter(({ batch }) => batch > second!.last);
  expect(await linesOf(folder, "--file", join(folder, "copy.db"))).toEqual(rest);
  const { out } = await admin(
    folder,
    "log",
    "--file",
    join(folder, name),
    "--kind",
    "orderCanceled",
    "--to",
    String(second!.first),
  );
  expect(out.split("\n")[0]).toMatch(
    /^\d+ 2024-11-06T00:00:00.000Z orderCanceled order=\d+ slot=\d+ user=\d+ at=\d+ outcome=\d+ side=(buy|sell) price=\d+ /,
  );
});

test("log refuses what it can't read with one line", async () => {
  const folder = temporaryFolder();
  const rejections: [args: string[], message: string | RegExp][] = [
    [[], `the log of ${folder} is empty\n`],
    [["--file", join(folder, "none.log.gz")], `there is no ${join(folder, "none.log.gz")}\n`],
    [["--user", "a@example.com"], /there is no .*exchange.db: give an id/],
    [["--from", "noon"], /neither a batch nor a time/],
    [["--order", "x"], /not an integer/],
  ];
  for (const [args, message] of rejections) {
    const run = await admin(folder, "log", ...args);
    expect([args, run.out, run.errors]).toEqual([args, "", expect.stringMatching(message)]);
    expect(run.code).toBeGreaterThan(0);
  }
  expect(existsSync(join(folder, "exchange.db"))).toBe(false);
});

test("an archive's file is what its description says to any other program", () => {
  for (const { day, sha256, bytes, first, members } of new ArchiveList(days.archives).read()) {
    const file = readFileSync(archivePath(days.archives, day));
    expect([file.length, createHash("sha256").update(file).digest("hex")]).toEqual([bytes, sha256]);
    const batches = gunzipSync(file.subarray(members[0]![1]));
    expect(readHeader(batches.subarray(4, 4 + batches.readUInt32LE(0))).batch).toBe(first);
  }
});

// ---------------------------------------------------------------- admin backup

test("backups share the archives of their folder, as further names of the same files", async () => {
  const folder = freshCopy();
  const to = temporaryFolder();
  const run = async (name: string, ...args: string[]): Promise<Backup> => {
    const { code, out, errors } = await admin(folder, "backup", join(to, name), ...args);
    expect({ code, errors }).toEqual({ code: 0, errors: "" });
    return JSON.parse(out) as Backup;
  };
  const last = bodiesIn(folder).length;
  const archives = new ArchiveList(join(folder, "log")).read();
  const first = await run("first.db");
  const log = { first: archives[1]!.last + 1, archives_copied: 2, archives_kept: 0 };
  expect(first).toMatchObject({ sequence: last, log });
  expect((await run("second.db")).log).toMatchObject({ archives_copied: 0, archives_kept: 2 });
  const names = ["first.db", "first.journal.db", "log", "second.db", "second.journal.db"];
  expect(readdirSync(to).sort()).toEqual(names);
  expect(readdirSync(join(to, "log")).sort()).toEqual(readdirSync(join(folder, "log")).sort());
  for (const { day } of archives) {
    expect(statSync(archivePath(join(to, "log"), day)).ino).toBe(statSync(archivePath(join(folder, "log"), day)).ino);
  }
  const { code, log: findings } = findingsOf(await admin(folder, "verify", join(to, "first.db")));
  expect([code, findings[1]]).toEqual([0, expect.stringMatching(`tables as of batch ${last}$`)]);
  // Restored, it is the same exchange.
  const restored = temporaryFolder();
  copyFileSync(join(to, "first.db"), join(restored, "exchange.db"));
  copyFileSync(join(to, "first.journal.db"), join(restored, "journal.db"));
  cpSync(join(to, "log"), join(restored, "log"), { recursive: true });
  expect(hashesIn(restored)).toEqual(hashesIn(folder));
  expect(findingsOf(await admin(restored, "verify")).failed).toEqual([]);
});

test("a backup refuses a log that isn't the tables', a damaged log, and another exchange's archives", async () => {
  const rejectionOf = async (folder: string, to = temporaryFolder()): Promise<string> => {
    const { code, out, errors } = await admin(folder, "backup", join(to, "copy.db"));
    expect([code, out, readdirSync(to).filter((name) => name !== "log")]).toEqual([1, "", []]);
    return errors;
  };
  const folder = freshCopy();
  const all = bodiesIn(folder);
  withJournal(folder, (db) => db.prepare("DELETE FROM batches WHERE number = ?").run(all.length));
  expect(await rejectionOf(folder)).toBe("log and tables don't belong together\n");
  withJournal(folder, (db) => db.prepare("DELETE FROM batches").run());
  expect(await rejectionOf(folder)).toBe(`the tables contain batch ${all.length}, the log is empty\n`);
  const damaged = freshCopy();
  const changed = Buffer.from(all.at(-2)!);
  changed[200] = changed[200]! ^ 1;
  withJournal(damaged, (db) => db.prepare("UPDATE batches SET body = ? WHERE number = ?").run(changed, all.length - 1));
  expect(await rejectionOf(damaged)).toMatch(`batch ${all.length - 1} of the log was changed`);
  const other = new DaysLog();
  other.tradeDays(1);
  other.archive();
  other.close();
  const to = temporaryFolder();
  cpSync(other.archives, join(to, "log"), { recursive: true });
  rmSync(other.folder, { recursive: true });
  expect(await rejectionOf(freshCopy(), to)).toMatch("is not this exchange's archive of that day");
});
