/** `admin log` and `backup` on a real log of several days, with archives. */
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MARKETS, USERS } from "../../bench/figures/log/traffic.ts";
import { ArchiveList, archivePath } from "../../engine/log/archive-format.ts";
import { readHeader, recordsOf } from "../../engine/log/batch-format.ts";
import type { Backup } from "../../server/backup/backup.ts";
import { admin } from "../support/admin.ts";
import { DaysLog } from "../support/days-log.ts";
import { temporaryFolder } from "../support/server.ts";
import { bodiesIn, copyOf, findingsOf, hashesIn, withJournal } from "./logged-folder.ts";

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
