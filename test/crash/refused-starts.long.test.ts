/**
 * Damaged, missing and foreign files in the data folder: the start says in one line what is wrong and ends with 1. It hangs
 * on nothing, a pipe in a file's place included. What only old order updates need doesn't stop it.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { verifyFiles } from "../../server/cli/verify.ts";
import { DaysLog } from "../support/days-log.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";

const NOBODY = 65_534;
const TRADED_BATCHES = 5;

/** Two archived days, and some batches in journal.db. The tests copy it. */
let days: DaysLog;
beforeAll(() => {
  days = new DaysLog();
  days.tradeDays(2);
  days.archive();
  for (let i = 0; i < TRADED_BATCHES; i++) days.trade();
  days.project();
  days.close();
});
afterAll(() => rmSync(days.folder, { recursive: true }));

function damagedCopy(damage: (folder: string) => void): string {
  const folder = temporaryFolder();
  cpSync(days.folder, folder, { recursive: true });
  damage(folder);
  return folder;
}

/** The line of a start that must fail, without its beginning. */
async function lineOf(dataDir: string, uid?: number): Promise<string> {
  const { code, errors } = await TestServer.refuse({ dataDir, ...(uid !== undefined && { uid }) });
  expect(code).toBe(1);
  const [, line] = /^cannot start: DATA_DIR: ([^\n]+)\n$/.exec(errors) ?? [];
  expect(line, errors).toBeDefined();
  return line!.replaceAll(dataDir, "FOLDER");
}

function changeFile(path: string, run: (db: Database.Database) => void): void {
  const db = openSqlite(path);
  db.pragma("foreign_keys = OFF");
  run(db);
  db.close();
}

const journal = (sql: string) => (folder: string) => changeFile(join(folder, "journal.db"), (db) => db.exec(sql));
const tables = (sql: string) => (folder: string) => changeFile(join(folder, "exchange.db"), (db) => db.exec(sql));

/** Replaces the body of the batch that is so many before the last one. */
const body = (before: number, change: (body: Buffer) => Buffer | undefined) => (folder: string) =>
  changeFile(join(folder, "journal.db"), (db) => {
    const select = db.prepare("SELECT number, body FROM batches ORDER BY number DESC LIMIT 1 OFFSET ?").raw();
    const [number, old] = select.get(before) as [number, Buffer];
    db.prepare("UPDATE batches SET body = ? WHERE number = ?").run(change(old) ?? old, number);
  });

const LAST = "(SELECT max(number) FROM batches)";
const INCONSISTENT = "; see docs/operations.md";
const REBUILD = ": rebuild it from the log or restore a backup, see docs/operations.md";

type Damage = readonly [name: string, damage: (folder: string) => void, line: RegExp | string];

const contents: Damage[] = [
  ["a batch of another program", body(0, (b) => void b.writeUInt32LE(7, 0)), /^batch \d+, the last .*: not a batch/],
  [
    "a batch of a newer format",
    body(0, (b) => void b.writeUInt32LE(9, 4)),
    /^batch \d+, the last in journal\.db, can't be read: the log has format 9, this program reads format 1$/,
  ],
  ["a cut batch", body(0, (b) => b.subarray(0, b.length - 10)), /^batch \d+, the last .*: batch \d+ is cut short$/],
  ["an empty batch", body(0, () => Buffer.alloc(0)), /^batch \d+, the last .*: not a batch of the log$/],
  ["another batch's number", body(0, (b) => void b.writeDoubleLE(3, 8)), /^journal\.db has batch 3 in the place of/],
  ["a gap", journal(`DELETE FROM batches WHERE number = ${LAST} - 2`), /^journal\.db lacks 1 of the batches/],
  ["a gap before the last batch", journal(`DELETE FROM batches WHERE number = ${LAST} - 1`), /^journal\.db lacks 1 of/],
  [
    "the last batch twice",
    journal("INSERT INTO batches SELECT number + 1, at, body FROM batches ORDER BY number DESC LIMIT 1"),
    /^journal\.db has batch (\d+) in the place of batch \d+$/,
  ],
  ["a changed batch before the last", body(1, (b) => void (b[100]! ^= 1)), /^batch \d+ of the log was changed/],
  ["no table of batches", journal("DROP TABLE batches"), /^the archives end with batch \d+, journal\.db with 0/],
  [
    "another table",
    journal("DROP TABLE batches; CREATE TABLE batches (x)"),
    /^journal\.db is damaged \(no such column/,
  ],
  ["a wrong total", tables("UPDATE totals SET house = house + 1"), /deposits - withdrawals = balances/],
  ["a wrong balance", tables("UPDATE accounts SET balance = balance + 1"), /balances add up to the sum on record/],
  [
    "no projection",
    tables("DELETE FROM projection"),
    `exchange.db is damaged (projection or totals lacks its row)${REBUILD}`,
  ],
  ["no table", tables("DROP TABLE projection"), `exchange.db is damaged (no such table: projection)${REBUILD}`],
  ["no totals", tables("DELETE FROM totals"), `exchange.db is damaged (projection or totals lacks its row)${REBUILD}`],
  [
    "no meta",
    tables("DELETE FROM meta"),
    `an invariant doesn't hold: meta says which orders are listed${INCONSISTENT}`,
  ],
  [
    "no markets",
    tables("DELETE FROM outcomes; DELETE FROM markets"),
    /^an invariant doesn't hold: the markets' collateral/,
  ],
  [
    "no last order",
    tables("DELETE FROM orders WHERE id = (SELECT max(id) FROM orders)"),
    /the last order's id is that of totals/,
  ],
  ["a newer schema", tables("PRAGMA user_version = 999"), /^the database has schema 999, .* run a newer one$/],
  [
    "the tables of no schema",
    tables("PRAGMA user_version = 0"),
    /^exchange\.db is damaged \(table \w+ already exists\)/,
  ],
];

test.each(contents)("%s", async (_, damage, line) => {
  expect(await lineOf(damagedCopy(damage))).toMatch(line);
});

const inPlaceOf = (name: string, make: (path: string) => void) => (folder: string) => {
  rmSync(join(folder, name), { recursive: true, force: true });
  make(join(folder, name));
};
const pipe = (path: string): void => void execFileSync("mkfifo", [path]);
const linkToNothing = (path: string): void => symlinkSync("/nowhere/file", path);
const linkToItself = (path: string): void => symlinkSync(path, path);
const folderAt = (path: string): void => void mkdirSync(path);
const fileAt = (path: string): void => writeFileSync(path, "another program's\n".repeat(100));

const FILES = ["exchange.db", "exchange.db-wal", "journal.db", "journal.db-wal", "journal.db-shm", "exchange.lock"];
const FOLDERS = ["log", "keys"];

describe.each([
  ["a pipe", pipe, "is a pipe, not a"],
  ["a link to nothing", linkToNothing, "is a link to nothing"],
  ["a link to itself", linkToItself, "can't be read (ELOOP)"],
])("%s", (_, make, says) => {
  test.each([...FILES, ...FOLDERS])("the start is refused: in place of %s", async (name) => {
    expect(await lineOf(damagedCopy(inPlaceOf(name, make)))).toContain(`${name} ${says}`);
  });
});

test.each(FILES)("a folder in place of %s", async (name) => {
  expect(await lineOf(damagedCopy(inPlaceOf(name, folderAt)))).toBe(`${name} is a folder, not a file`);
});

test.each(FOLDERS)("a file in place of %s", async (name) => {
  expect(await lineOf(damagedCopy(inPlaceOf(name, fileAt)))).toBe(`${name} is a file, not a folder`);
});

test("another program's file in place of exchange.db, journal.db or exchange.lock", async () => {
  const lines = await Promise.all(
    ["exchange.db", "journal.db", "exchange.lock"].map((name) => lineOf(damagedCopy(inPlaceOf(name, fileAt)))),
  );
  expect(lines).toEqual([
    `exchange.db is damaged (file is not a database)${REBUILD}`,
    "journal.db is damaged (file is not a database): restore a backup, see docs/operations.md",
    "exchange.lock is no lock: delete it",
  ]);
});

const firstArchive = (folder: string, ending: string): string =>
  readdirSync(join(folder, "log")).find((name) => name.endsWith(ending))!;

describe("archives, which only old order updates need: the start says what is wrong and goes on", () => {
  const makers = { pipe, linkToNothing, linkToItself, folderAt, fileAt };
  test.each(
    Object.entries(makers).flatMap(([name, make]) => [".json", ".log.gz"].map((end) => [name, end, make] as const)),
  )("the start goes on, and says what is wrong, with %s in place of an archive's %s", async (_, ending, make) => {
    let name = "";
    const folder = damagedCopy((copy) => {
      name = firstArchive(copy, ending);
      inPlaceOf(join("log", name), make)(copy);
    });
    const server = await TestServer.start({ dataDir: folder });
    expect(server.log.find(({ msg }) => msg.startsWith("the log is damaged or incomplete"))?.["fault"]).toContain(name);
    await server.stop();
  });
});

describe("without tables, the start builds them as rebuild does", () => {
  const gone = (folder: string): void => rmSync(join(folder, "exchange.db"));
  const both =
    (...damages: ((folder: string) => void)[]) =>
    (folder: string) => {
      for (const damage of damages) damage(folder);
    };

  test.each([
    ["gone", gone],
    ["empty", (folder: string): void => writeFileSync(join(folder, "exchange.db"), "")],
  ])("a start without tables builds them as rebuild does: %s", async (_, damage) => {
    const server = await TestServer.start({ dataDir: damagedCopy(damage) });
    await server.stop();
    expect(verifyFiles(join(server.dataDir, "exchange.db")).filter(({ ok }) => !ok)).toEqual([]);
    expect(readdirSync(server.dataDir).filter((name) => name.includes(".part"))).toEqual([]);
  });

  test.each<Damage>([
    [
      "a changed batch",
      both(
        gone,
        body(2, (b) => void (b[b.length - 1]! ^= 1)),
      ),
      /^batch \d+ of the log was changed/,
    ],
    [
      "a changed archive",
      both(gone, (folder) => writeFileSync(join(folder, "log", firstArchive(folder, ".log.gz")), Buffer.alloc(10))),
      /has the wrong size$/,
    ],
    [
      "an archive that is gone",
      both(gone, (folder) => rmSync(join(folder, "log", firstArchive(folder, ".json")))),
      /^the log begins with batch \d+: the tables can't be rebuilt without those before$/,
    ],
    [
      "a snapshot without a log",
      both(gone, journal("DELETE FROM batches"), inPlaceOf("log", folderAt), (folder) =>
        writeFileSync(join(folder, "log", "snapshot.db"), ""),
      ),
      "there is FOLDER/log/snapshot.db, but no exchange.db and no batch in journal.db",
    ],
  ])("a start doesn't build tables from a log with %s", async (_, damage, line) => {
    const folder = damagedCopy(damage);
    expect(await lineOf(folder)).toMatch(line);
    expect(readdirSync(folder).filter((name) => name.startsWith("exchange.db"))).toEqual([]);
  });
});

const isRoot = process.getuid?.() === 0;

describe("what the user of the server may not read", () => {
  test.each(["journal.db", "exchange.db", "log"])(
    "a start names what the user of the server may not read: %s",
    async (name) => {
      const folder = damagedCopy(() => {});
      if (isRoot) for (const path of [".", ...readdirSync(folder)]) chownSync(join(folder, path), NOBODY, NOBODY);
      chmodSync(join(folder, name), 0o000);
      expect(await lineOf(folder, isRoot ? NOBODY : undefined)).toBe(`${name} can't be read (EACCES)`);
      chmodSync(join(folder, name), 0o700);
    },
  );
});

test("a full disk", async ({ skip }) => {
  const folder = temporaryFolder();
  const isMounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=300k", "none", folder]).status === 0;
  skip(!isMounted, "a full disk needs the right to mount one");
  try {
    expect(await lineOf(folder)).toBe("the disk of exchange.db is full: free space");
  } finally {
    execFileSync("umount", [folder]);
  }
});
