/** Archives of finished days: what they contain, what a crash leaves, and how the log is read across the files. */
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, expect, test } from "vitest";
import {
  type ArchiveDescription,
  ArchiveList,
  archivePath,
  descriptionPath,
} from "../../../engine/log/archive-format.ts";
import { ArchiveReader } from "../../../engine/log/archive-reader.ts";
import { deleteArchivesBefore, outdatedArchives } from "../../../engine/log/archiving.ts";
import { hashOf, previousHash, readHeader } from "../../../engine/log/batch-format.ts";
import { LogChain } from "../../../engine/log/chain.ts";
import { openLogReader } from "../../../engine/log/log-files.ts";
import { JournalReader } from "../../../engine/log/log-reader.ts";
import { OpeningTracker, packOpening } from "../../../engine/log/opening.ts";
import { DaysLog } from "../../support/days-log.ts";

let log: DaysLog | null = null;
afterEach(() => {
  log?.close();
  if (log !== null) rmSync(log.folder, { recursive: true });
  log = null;
});

function startLog(): DaysLog {
  log = new DaysLog();
  return log;
}

const bodiesIn = ({ rig }: DaysLog): Buffer[] => [...new JournalReader(rig.journal).bodies(1)];
/** To compare bodies: vitest compares buffers byte by byte. */
const hashesOf = (bodies: Iterable<Buffer>): string[] => [...bodies].map((body) => hashOf(body).toString("hex"));
const archivesOf = ({ archives }: DaysLog): readonly ArchiveDescription[] => new ArchiveList(archives).read();
const readerOf = ({ archives }: DaysLog, found: ArchiveDescription): ArchiveReader =>
  new ArchiveReader(archivePath(archives, found.day), found);

test("archived batches leave the journal beside a load that never rests, sooner than the load appends as many", () => {
  const days = startLog();
  days.tradeDays(20);
  const { log, journal } = days.rig;
  const last = days.archive({}, () => {});
  const rows = journal.prepare("SELECT count(*) FROM batches").pluck();
  const before = Number(rows.get());
  expect(before).toBeGreaterThan(last);
  let commits = 0;
  while (Number(journal.prepare("SELECT min(number) FROM batches").pluck().get()) <= last) {
    expect(commits).toBeLessThan(last);
    days.trade();
    log.trimBesideLoad();
    commits++;
    expect(Number(rows.get())).toBeLessThanOrEqual(before + commits);
  }
  expect(Number(rows.get())).toBeLessThan(before);
  // Nothing else leaves.
  days.trade();
  log.trimBesideLoad();
  expect(hashesOf(bodiesIn(days)).length).toBe(before - last + commits + 1);
});

test("a finished day becomes an archive, and its batches leave the journal", () => {
  const days = startLog();
  days.tradeDays(2);
  const all = bodiesIn(days);
  const last = days.archive();
  const names = [0, 1].flatMap((i) => [`${days.dayName(i)}.json`, `${days.dayName(i)}.log.gz`]);
  expect(readdirSync(days.archives).sort()).toEqual(names);
  // The third day isn't over.
  expect(hashesOf(bodiesIn(days))).toEqual(hashesOf(all.slice(last)));
  expect(all.length - last).toBe(1);
  const [first, second] = archivesOf(days);
  expect(second).toMatchObject({ first: first!.last + 1, previous_hash: first!.last_hash, last });
  expect(previousHash(all[last]!).toString("hex")).toBe(second!.last_hash);
  for (const each of [first!, second!]) {
    const bodies = all.slice(each.first - 1, each.last);
    const headers = bodies.map((body) => readHeader(body));
    const { at, recordsBefore: position } = headers[0]!;
    expect(each).toMatchObject({
      format: 1,
      exchange: readHeader(all[0]!).exchange,
      position,
      first_at: at,
      last_at: headers.at(-1)!.at,
      records: headers.reduce((sum, { records }) => sum + records, 0),
      previous_hash: previousHash(bodies[0]!).toString("hex"),
      last_hash: hashOf(bodies.at(-1)!).toString("hex"),
      opening: true,
    });
    const reader = readerOf(days, each);
    reader.check();
    for (const start of [each.first, each.first + 1, each.last]) {
      expect(hashesOf(reader.bodies(start))).toEqual(hashesOf(all.slice(start - 1, each.last)));
    }
  }
});

test("any gunzip reads an archive as one file: the opening, then each batch after its length", () => {
  const days = startLog();
  days.tradeDays(2);
  const all = bodiesIn(days);
  days.archive();
  const books = new OpeningTracker();
  for (const each of archivesOf(days)) {
    const bodies = all.slice(each.first - 1, each.last);
    const parts = bodies.flatMap((body) => [Buffer.from(Uint32Array.of(body.length).buffer), body]);
    const content = Buffer.concat([packOpening(books.opening()), ...parts]);
    expect(gunzipSync(readFileSync(archivePath(days.archives, each.day))).equals(content)).toBe(true);
    expect(packOpening(readerOf(days, each).opening()!).equals(packOpening(books.opening()))).toBe(true);
    for (const body of bodies) books.follow(body);
  }
  expect(books.orders).toBeGreaterThan(1_000);
});

test("the books before a day are the same whether one run archives several days or each has its own", () => {
  const days = startLog();
  days.tradeDays(1);
  days.archive();
  days.tradeDays(1);
  days.archive();
  const apart = archivesOf(days).map(({ sha256 }) => sha256);
  // Both again in one run, from a journal that has all batches.
  const all = openLogReader(days.folder);
  const insert = days.rig.journal.prepare("INSERT OR IGNORE INTO batches VALUES (?, ?, ?)");
  for (const body of [...all.bodies(1)]) insert.run(readHeader(body).batch, readHeader(body).at, body);
  all.close();
  for (const name of readdirSync(days.archives)) rmSync(join(days.archives, name));
  days.archive();
  expect(archivesOf(days).map(({ sha256 }) => sha256)).toEqual(apart);
});

test("a day whose last batches aren't in the tables yet stays in the journal", () => {
  const days = startLog();
  days.tradeDays(1);
  const { batch } = days.rig.projector.point;
  expect(days.archive({ projected: batch - 1 })).toBe(0);
  expect(days.archive({ projected: batch })).toBe(batch - 1);
});

test("the log is read without a seam from any batch, also while batches move to an archive", () => {
  const days = startLog();
  days.tradeDays(2);
  const all = bodiesIn(days);
  const early = openLogReader(days.folder);
  const reading = early.bodies(1);
  const read = [reading.next().value, reading.next().value];
  days.archive();
  const log = openLogReader(days.folder);
  for (const first of [1, 2, 13, 20, all.length, all.length + 1]) {
    expect(hashesOf(log.bodies(first))).toEqual(hashesOf(all.slice(first - 1)));
  }
  expect(log.range()).toEqual({ first: 1, last: all.length });
  // One that began before goes on.
  expect(hashesOf([...(read as Buffer[]), ...reading])).toEqual(hashesOf(all));
  const headers = all.map((body) => readHeader(body));
  for (const { at } of headers) {
    expect(log.firstSince(at)).toBe(headers.find((header) => header.at >= at)!.batch);
    expect(log.firstSince(at + 1)).toBe(headers.find((header) => header.at > at)?.batch ?? all.length + 1);
  }
  for (const each of [log, early]) each.close();
});

test("a missing archive is named, not passed over", () => {
  const days = startLog();
  days.tradeDays(3);
  days.archive();
  const [, second] = archivesOf(days);
  rmSync(descriptionPath(days.archives, second!.day));
  const log = openLogReader(days.folder);
  expect(() => [...log.bodies(1)]).toThrow(`the log lacks batch ${second!.first}`);
  expect(() => [...log.bodies(second!.last)]).toThrow(`the log lacks batch ${second!.last}`);
  expect([...log.bodies(second!.last + 1)].length).toBeGreaterThan(12);
  log.close();
});

test("after a crash at any step the next run ends with the same archives", () => {
  const days = startLog();
  days.tradeDays(1);
  const all = bodiesIn(days);
  days.archive();
  const [first] = archivesOf(days);
  const contents = (): [string, string][] =>
    readdirSync(days.archives).map((name) => [name, hashOf(readFileSync(join(days.archives, name))).toString("hex")]);
  const whole = contents();
  const [compressed, description] = [
    archivePath(days.archives, first!.day),
    descriptionPath(days.archives, first!.day),
  ];
  const insert = days.rig.journal.prepare("INSERT OR IGNORE INTO batches VALUES (?, ?, ?)");
  const steps: (() => void)[] = [
    () => renameSync(compressed, `${compressed}.part`),
    () => {
      renameSync(compressed, `${compressed}.part`);
      writeFileSync(`${compressed}.part`, readFileSync(`${compressed}.part`).subarray(0, 5_000));
    },
    () => copyFileSync(description, `${description}.part`),
    () => {},
  ];
  for (const [i, leave] of steps.entries()) {
    leave();
    // Up to the last step the archive has no description; the journal has its batches even after it.
    if (i < steps.length - 1) rmSync(description);
    for (const body of all) insert.run(readHeader(body).batch, readHeader(body).at, body);
    const log = openLogReader(days.folder);
    expect(hashesOf(log.bodies(1))).toEqual(hashesOf(all));
    log.close();
    days.archive();
    expect(contents()).toEqual(whole);
  }
});

test("a run that fails leaves no archive, and the next one succeeds", () => {
  const days = startLog();
  days.tradeDays(1);
  const journal = new Proxy(days.rig.journal, {
    get(db, name) {
      if (name !== "prepare") return Reflect.get(db, name);
      return (sql: string) => {
        if (sql.includes("SELECT body")) throw new Error("the disk fails");
        return db.prepare(sql);
      };
    },
  });
  expect(() => days.archive({ journal })).toThrow("the disk fails");
  expect(readdirSync(days.archives)).toEqual([]);
  expect(days.archive()).toBeGreaterThan(0);
});

test("a flipped bit in the journal is found before its batch is archived, and named", () => {
  const days = startLog();
  days.tradeDays(1);
  const all = bodiesIn(days);
  const update = days.rig.journal.prepare("UPDATE batches SET body = ? WHERE number = ?");
  const number = 7;
  const flip = (at: number): void => {
    const body = Buffer.from(all[number - 1]!);
    body[at] = body[at]! ^ 4;
    update.run(body, number);
  };
  const cases: [at: number, message: RegExp][] = [
    [0, /batch 7 of the log is damaged: not a batch/],
    [5, /batch 7 of the log is damaged: the log has format/],
    [13, /batch 6 of the log is followed by batch/],
    [30, /batch 7 of the log doesn't continue/],
    [43, /batch 7 of the log doesn't continue/],
    [48, /batch 7 of the log is damaged: .* cut short/],
    [64, /batch 6 of the log was changed: batch 7 names another hash/],
    [200, /batch 7 of the log was changed: batch 8 names another hash/],
    [all[number - 1]!.length - 1, /batch 7 of the log was changed/],
  ];
  for (const [at, message] of cases) {
    flip(at);
    expect(() => days.archive(), String(at)).toThrow(message);
    expect(readdirSync(days.archives)).toEqual([]);
  }
  update.run(all[number - 1]!, number);
  expect(days.archive()).toBe(all.length - 1);
});

test("a flipped bit in an archive is found, and its place named", () => {
  const days = startLog();
  days.tradeDays(1);
  days.archive();
  const [found] = archivesOf(days);
  const path = archivePath(days.archives, found!.day);
  const bytes = readFileSync(path);
  for (let at = found!.members[0]![1]; at < bytes.length; at += 997) {
    const changed = Buffer.from(bytes);
    changed[at] = changed[at]! ^ 16;
    writeFileSync(path, changed);
    expect(() => readerOf(days, found!).check(), String(at)).toThrow(path);
  }
  writeFileSync(path, bytes.subarray(0, -1));
  expect(() => readerOf(days, found!).check()).toThrow("has the wrong size");
  rmSync(path);
  expect(() => readerOf(days, found!).check()).toThrow("ENOENT");
});

test("archives older than LOG_DAYS are outdated, and deleted oldest first", () => {
  const days = startLog();
  days.tradeDays(9);
  days.archive();
  const { at, batch } = days.rig.projector.point;
  const outdated = outdatedArchives(days.archives, 7, at);
  expect(outdated.map(({ day }) => day)).toEqual([days.dayName(0), days.dayName(1)]);
  deleteArchivesBefore(days.archives, outdated[1]!.last + 1);
  expect(archivesOf(days).map(({ day }) => day)).toEqual([2, 3, 4, 5, 6, 7, 8].map((i) => days.dayName(i)));
  expect(existsSync(archivePath(days.archives, days.dayName(0)))).toBe(false);
  const log = openLogReader(days.folder);
  const first = outdated[1]!.last + 1;
  expect(log.range()).toEqual({ first, last: batch });
  expect(() => [...log.bodies(1)]).toThrow("the log lacks batch 1");
  const chain = new LogChain();
  for (const body of log.bodies(first)) chain.next(body);
  expect(chain.last?.batch).toBe(batch);
  log.close();
});
