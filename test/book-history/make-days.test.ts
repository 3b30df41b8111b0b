/** Days of history from a log of several days: interrupted, from archives alone, partly, with a gap, and with an end. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { ArchiveList, endOfDay, startOfDay } from "../../engine/log/archive-format.ts";
import { deleteArchivesBefore } from "../../engine/log/archiving.ts";
import { JournalReader } from "../../engine/log/log-reader.ts";
import { EMPTY_OPENING } from "../../engine/log/opening.ts";
import { DayMaker } from "../../server/book-history/day-maker.ts";
import { makingFolder, marketFolder, readDay, readMarketDay } from "../../server/book-history/history-folder.ts";
import { type HistoryPlace, makeDays, makeHistory } from "../../server/book-history/make-days.ts";
import { prepareBookFiles } from "../../server/queries/book-files.ts";
import { DaysLog } from "../support/days-log.ts";
import { Random } from "../support/random.ts";
import { daysIn, linesIn, RebuiltBooks } from "./history-rows.ts";

const DAYS = 4;
const HOUR_MS = 3_600_000;
const FAR = Date.parse("2100-01-01");

let log: DaysLog | null = null;
afterEach(() => {
  log?.close();
  if (log !== null) rmSync(log.folder, { recursive: true });
  log = null;
});

function startLog(days = DAYS): DaysLog {
  log = new DaysLog();
  log.tradeDays(days);
  return log;
}

function placeOf({ folder, archives }: DaysLog, name = "history"): HistoryPlace {
  const journal = join(folder, "journal.db");
  return { log: { journal, archives }, tables: join(folder, "exchange.db"), folder: join(folder, name) };
}

/** The visible files of the days, by path. */
function filesOf(days: DaysLog, folder: string, dates: readonly string[]): Map<string, string> {
  const files = new Map<string, string>();
  for (const date of dates) {
    for (const { market, parquet, jsonLines } of daysIn(folder, date)) {
      for (const { name } of [parquet, jsonLines]) {
        files.set(`${market}/${name}`, readFileSync(join(marketFolder(folder, market), name)).toString("base64"));
      }
    }
  }
  expect(files.size, days.folder).toBeGreaterThan(dates.length);
  return files;
}

const datesOf = (days: DaysLog, count = DAYS): string[] => Array.from({ length: count }, (_, i) => days.dayName(i));

test("a day opens with what the days before left, and is complete once a later one has begun", () => {
  const days = startLog();
  const place = placeOf(days);
  expect(makeHistory({ ...place, until: FAR, days: 0 }).bytes).toBeGreaterThan(10_000);
  const books = new Map<number, RebuiltBooks>();
  let checked = 0;
  for (const date of [...datesOf(days), days.dayName(DAYS)]) {
    expect(readDay(place.folder, date)).toMatchObject({ date, isComplete: date !== days.dayName(DAYS) });
    for (const each of daysIn(place.folder, date)) {
      const book = books.get(each.market) ?? new RebuiltBooks();
      books.set(each.market, book);
      const lines = linesIn(place.folder, each);
      const outcomes = [...new Set(lines.map(({ outcome_id = 0 }) => outcome_id).filter((id) => id !== 0))];
      const before = outcomes.map((outcome) => book.text(outcome));
      const snapshot = lines.filter(({ kind }) => kind === "snapshot");
      for (const line of snapshot) book.apply(line);
      if (snapshot.length > 0) checked++;
      expect(outcomes.map((outcome) => book.text(outcome))).toEqual(before);
      for (const line of lines) if (line.kind === "level") book.apply(line);
    }
  }
  expect(checked).toBeGreaterThan(DAYS);
});

test("interrupted anywhere, it makes the same bytes", () => {
  const random = Random.printed("make days");
  const days = startLog();
  const whole = placeOf(days, "whole");
  makeHistory({ ...whole, until: FAR, days: 0 });
  const folder = join(days.folder, "interrupted");
  const bodies = [...new JournalReader(days.rig.journal).bodies(1)];
  let interruptions = 0;
  for (let isDone = false; !isDone; ) {
    const maker = new DayMaker({ folder, making: makingFolder(folder) });
    if (!maker.resume()) maker.begin({ batch: 1, opening: EMPTY_OPENING, known: [] });
    const rest = bodies.slice(maker.next - 1);
    const part = rest.slice(0, random.integer(1, 9));
    maker.follow(part);
    // A lucky run doesn't end yet.
    isDone = part.length === rest.length && interruptions > 3;
    // Without storing it is as if the process had been killed.
    if (isDone || (part.length < rest.length && random.chance(0.5))) {
      maker.publish();
      maker.store();
    } else interruptions++;
    maker.close();
  }
  expect(interruptions).toBeGreaterThan(3);
  const dates = datesOf(days);
  expect(filesOf(days, folder, dates)).toEqual(filesOf(days, whole.folder, dates));
  // The state alone isn't enough: where its rows are gone, the days are made again.
  for (const name of readdirSync(makingFolder(folder)))
    if (name.endsWith(".rows")) rmSync(join(makingFolder(folder), name));
  expect(new DayMaker({ folder, making: makingFolder(folder) }).resume()).toBe(false);
});

test("archives alone give the same bytes, for any days", () => {
  const days = startLog();
  const whole = placeOf(days, "whole");
  makeHistory({ ...whole, until: FAR, days: 0 });
  days.archive();
  const cold = {
    log: { journal: null, archives: days.archives },
    tables: "/nowhere",
    folder: join(days.folder, "cold"),
  };
  const dates = datesOf(days);
  expect(makeDays(cold, dates[1]!, dates[2]!)).toEqual({ days: dates.slice(1, 3), missing: [] });
  const made = filesOf(days, cold.folder, dates.slice(1, 3));
  expect(made).toEqual(filesOf(days, whole.folder, dates.slice(1, 3)));
  expect(existsSync(join(cold.folder, "days", `${dates[0]}.json`))).toBe(false);
  // From the journal, which begins later than the archives end.
  const mixed = { ...placeOf(days, "mixed") };
  const last = days.dayName(DAYS);
  expect(makeDays(mixed, last, last)).toEqual({ days: [last], missing: [] });
  expect(readDay(mixed.folder, last)).toMatchObject({ isComplete: false });
});

test("a day that isn't over has the hours that are, and its file grows", () => {
  const days = startLog(1);
  const place = placeOf(days);
  const date = days.dayName(0);
  const start = endOfDay(date) - 24 * HOUR_MS;
  const names: string[] = [];
  for (const hours of [3, 6, 7]) {
    makeHistory({ ...place, until: start + hours * HOUR_MS, days: 0 });
    const [{ market, parquet }] = daysIn(place.folder, date) as [ReturnType<typeof daysIn>[0]];
    expect(readDay(place.folder, date)?.isComplete).toBe(false);
    names.push(parquet.name);
    const found = readdirSync(marketFolder(place.folder, market)).filter((name) => name.endsWith(".parquet"));
    // What clients may still be reading stays for a run.
    expect(found.sort()).toEqual(names.slice(-2).sort());
    for (const each of daysIn(place.folder, date)) {
      expect(each.lastAt).toBeLessThan((start + hours * HOUR_MS) * 1_000);
      linesIn(place.folder, each);
    }
  }
  expect(new Set(names).size).toBe(3);
  makeHistory({ ...place, until: FAR, days: 0 });
  const other = placeOf(days, "other");
  makeHistory({ ...other, until: FAR, days: 0 });
  expect(filesOf(days, place.folder, [date])).toEqual(filesOf(days, other.folder, [date]));
});

test("a day is complete as soon as the log has a commit of a later one, and the days between with it", () => {
  const days = startLog(2);
  const place = placeOf(days);
  const [first, second, third] = datesOf(days, 3);
  const until = startOfDay(second!);
  expect(makeHistory({ ...place, until: startOfDay(first!) + 3 * HOUR_MS, days: 0 }).isWhole).toBe(true);
  expect(readDay(place.folder, first!)?.isComplete).toBe(false);
  expect(makeHistory({ ...place, until, days: 0 }).isWhole).toBe(true);
  expect(readDay(place.folder, first!)?.isComplete).toBe(true);
  expect(readDay(place.folder, second!)).toBe(null);
  const { isWhole } = makeHistory({ ...place, until: FAR, days: 0 });
  expect([isWhole, readDay(place.folder, third!)?.isComplete]).toEqual([false, false]);

  const { market } = daysIn(place.folder, first!)[0]!;
  const page = { marketId: market, before: FAR, limit: 100, since: first! };
  const tomorrow = days.dayName(3);
  const files = prepareBookFiles(place.folder);
  // The log's clock may be ahead of this one.
  for (const today of [first!, third!]) expect(files.days({ ...page, today }).missing).toEqual([]);
  expect(files.days({ ...page, today: tomorrow }).missing).toEqual([{ from: tomorrow, to: tomorrow }]);
  // A market that had no change yet may have one on the days that aren't over.
  const quiet = files.days({ ...page, marketId: 999, today: tomorrow });
  expect(quiet).toEqual({ items: [], next: null, missing: [{ from: third!, to: tomorrow }] });
});

test("days that the log has lost are missing, old ones are deleted, and nothing is left of them", () => {
  const days = startLog(2);
  const place = placeOf(days);
  makeHistory({ ...place, until: FAR, days: 0 });
  days.tradeDays(4);
  days.archive();
  const lost = new ArchiveList(days.archives).read().find(({ day }) => day === days.dayName(5));
  deleteArchivesBefore(days.archives, lost!.first);
  const [first, last] = [days.dayName(0), days.dayName(6)];
  expect(makeDays(place, days.dayName(3), days.dayName(4)).missing).toEqual([days.dayName(3), days.dayName(4)]);
  makeHistory({ ...place, until: FAR, days: 0 });
  const [{ market }] = daysIn(place.folder, first) as [ReturnType<typeof daysIn>[0]];
  const page = { marketId: market, before: FAR, limit: 100, since: first, today: last };
  const listed = prepareBookFiles(place.folder).days(page);
  expect(listed.missing).toEqual([{ from: days.dayName(3), to: days.dayName(4) }]);
  expect(listed.items.map(({ date }) => date)[0]).toBe(last);
  const two = prepareBookFiles(place.folder).days({ ...page, limit: 2 });
  expect(two.items).toEqual(listed.items.slice(0, 2));
  const rest = prepareBookFiles(place.folder).days({ ...page, before: two.next! });
  expect([...two.items, ...rest.items]).toEqual(listed.items);
  // Where none is made, none is known: not even the current one.
  const unmade = { items: [], next: null, missing: [{ from: first, to: last }] };
  expect(prepareBookFiles(join(days.folder, "nothing")).days(page)).toEqual(unmade);
  // Two whole days before the last one stay.
  makeHistory({ ...place, until: endOfDay(last), days: 2 });
  expect(readDay(place.folder, first)).toBe(null);
  expect(readMarketDay(place.folder, market, first)).toBe(null);
  expect(readdirSync(marketFolder(place.folder, market)).some((name) => name.startsWith(first))).toBe(false);
  expect(readDay(place.folder, last)).not.toBe(null);
});

test("a disk that is nearly full gets no more of it, and what there is stays", () => {
  const days = startLog(2);
  const { folder } = placeOf(days);
  const bodies = [...new JournalReader(days.rig.journal).bodies(1)];
  const full = new DayMaker({ folder, making: makingFolder(folder), minFree: Number.MAX_SAFE_INTEGER });
  full.begin({ batch: 1, opening: EMPTY_OPENING, known: [] });
  expect(() => full.follow(bodies)).toThrow("the disk is nearly full");
  full.close();
  expect(readDay(folder, days.dayName(0))).toBe(null);
  const maker = new DayMaker({ folder, making: makingFolder(folder) });
  expect(maker.resume()).toBe(false);
  maker.begin({ batch: 1, opening: EMPTY_OPENING, known: [] });
  maker.follow(bodies);
  maker.close();
  expect(readDay(folder, days.dayName(0))).toMatchObject({ isComplete: true });
});
