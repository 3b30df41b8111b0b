/** The upkeep of the log: when it runs, and what it tells the log. */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { openLogReader } from "../../engine/log/log-files.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import { packRequest } from "../../engine/log/request.ts";
import type { Write } from "../../engine/log/writes.ts";
import { writeDay } from "../../server/book-history/history-folder.ts";
import { LogUpkeep } from "../../server/service/log-upkeep.ts";
import { keepLog, type UpkeepJob, type UpkeepResult } from "../../server/service/log-upkeep-job.ts";
import type { SingleRun } from "../../server/util/thread-pool.ts";
import { rowsOf } from "../support/data-dir.ts";
import { DaysLog } from "../support/days-log.ts";
import { temporaryFolder } from "../support/server.ts";

const HOUR_MS = 3_600_000;

let days: DaysLog | null = null;
afterEach(() => {
  days?.close();
  if (days !== null) rmSync(days.folder, { recursive: true });
  days = null;
});

/** An upkeep on a log of several days, whose runs are in this thread and can be made to fail. */
function startUpkeep(logDays = 0, history: UpkeepJob["history"] = null) {
  const log = new DaysLog();
  days = log;
  const progress = new LogProgress();
  const runs: UpkeepJob[] = [];
  const errors: object[] = [];
  const trimmed: number[] = [];
  let failure: Error | null = null;
  /** Hours of the clock that nobody sets. */
  let hours = 0;
  const start = (job: UpkeepJob): SingleRun<UpkeepResult> => {
    runs.push(job);
    const result = failure === null ? Promise.resolve().then(() => keepLog(job)) : Promise.reject(failure);
    return { result, stop: async () => {} };
  };
  const write = async ([first]: readonly Write[]) => {
    const payload = packRequest({ at: 0, writes: [first!], audits: [], kept: null });
    log.rig.log.commit(() => [{ id: 1, at: 0, entries: 0, rates: [], payload }]);
    return [];
  };
  const writer = { write, trimLog: (through: number) => void trimmed.push(through) };
  const job = {
    journal: join(log.folder, "journal.db"),
    tables: join(log.folder, "exchange.db"),
    archives: log.archives,
    logDays,
    history,
  };
  const logger = { info: () => {}, error: (line: object) => void errors.push(line) };
  const since = log.rig.journal.prepare("SELECT min(at) FROM batches").pluck().get() as number;
  const upkeep = new LogUpkeep({
    job,
    progress,
    writer,
    logger: logger as never,
    since,
    start,
    now: () => hours * HOUR_MS,
  });
  const check = async (): Promise<void> => {
    log.project();
    const { point } = log.rig.projector;
    progress.commit(point);
    progress.project(point);
    upkeep.check();
    await new Promise((resolve) => setTimeout(resolve, 0));
    log.rig.log.trimUpTo(trimmed.at(-1) ?? 0);
    while (log.rig.log.idle());
  };
  const setFailure = (error: Error | null): void => {
    failure = error;
  };
  const pass = (count: number): void => {
    hours += count;
  };
  return { log, upkeep, runs, errors, trimmed, check, setFailure, pass };
}

test("a run starts when a day is over for the tables, and then lets the log delete what is archived", async () => {
  const { log, upkeep, runs, trimmed, check } = startUpkeep();
  await check();
  expect(runs.length).toBe(0);
  log.tradeDays(1);
  expect(upkeep.unarchivedMs).toBe(0);
  await check();
  expect(runs.length).toBe(1);
  expect(upkeep.unarchivedMs).toBe(0);
  expect(trimmed).toEqual([log.rig.projector.point.batch - 1]);
  expect(rowsOf(log.folder, "SELECT log_begins FROM projection")).toEqual([{ log_begins: 1 }]);
  // An hour later nothing has changed.
  await check();
  expect(runs.length).toBe(1);
});

test("days without a commit are no age: the first commit after them is archived at once", async () => {
  const { log, upkeep, runs, check, pass } = startUpkeep();
  await check();
  pass(24 * 9);
  await check();
  expect([upkeep.unarchivedMs, runs.length]).toEqual([0, 0]);
  log.tradeDays(9);
  expect(upkeep.unarchivedMs).toBe(0);
  await check();
  expect([upkeep.unarchivedMs, runs.length, upkeep.failures]).toEqual([0, 1, 0]);
});

test("a run that fails is logged, counted and repeated", async () => {
  const { log, upkeep, runs, errors, trimmed, check, setFailure, pass } = startUpkeep();
  log.tradeDays(2);
  setFailure(new Error("ENOSPC: no space left on device"));
  await check();
  // Only after an hour, however often it checks.
  await check();
  expect([upkeep.failures, runs.length]).toEqual([1, 1]);
  pass(1);
  await check();
  expect([upkeep.failures, runs.length, trimmed]).toEqual([2, 2, []]);
  expect(errors[0]).toEqual({ error: "ENOSPC: no space left on device" });
  // Nobody trades, and the age rises nevertheless.
  pass(2);
  expect(upkeep.unarchivedMs).toBe(3 * HOUR_MS);
  setFailure(null);
  await check();
  expect(upkeep.unarchivedMs).toBe(0);
  expect([upkeep.failures, runs.length, trimmed.length]).toEqual([2, 3, 1]);
  expect(readdirSync(log.archives).length).toBe(4);
});

test("with LOG_DAYS, the tables forget old batches before their archives are deleted", async () => {
  const { log, runs, check, pass } = startUpkeep(7);
  log.tradeDays(9);
  await check();
  expect(readdirSync(log.archives).length).toBe(18);
  log.project();
  const [row] = rowsOf<{ log_begins: number }>(log.folder, "SELECT log_begins FROM projection");
  const first = row!.log_begins;
  expect(first).toBeGreaterThan(20);
  expect(rowsOf(log.folder, "SELECT count(*) AS old FROM update_index WHERE batch < ?", first)).toEqual([{ old: 0 }]);
  pass(1);
  await check();
  expect(runs.length).toBe(2);
  expect(readdirSync(log.archives).length).toBe(14);
  const files = openLogReader(log.folder);
  expect(files.range()?.first).toBe(first);
  // What is indexed can be read.
  const rows = rowsOf<{ batch: number }>(log.folder, "SELECT DISTINCT batch FROM update_index");
  for (const { batch } of rows) expect([...files.bodies(batch)].length).toBeGreaterThan(0);
  expect(() => [...files.bodies(first - 1)]).toThrow(BrokenLog);
  files.close();
  log.trade();
  await check();
  expect(runs.length).toBe(2);
});

test("with LOG_DAYS, an archive stays until its day of book history is made", async () => {
  const folder = temporaryFolder();
  const history = { folder, days: 0 };
  const { log, runs, check, pass } = startUpkeep(7, history);
  const make = (date: string, isComplete = true): void =>
    writeDay(folder, { date, exchange: 1, isComplete, lastBatch: 1, markets: [] });
  const daysLeft = (): string[] => [...new Set(readdirSync(log.archives).map((name) => name.slice(0, 10)))].sort();
  log.tradeDays(9);
  await check();
  const [first = "", second = "", ...rest] = daysLeft();
  expect(rest).toHaveLength(7);
  // Two are outdated: the first isn't made, then it isn't complete, then the second isn't made.
  const runAgain = async (): Promise<void> => {
    for (let n = 0; n < 2; n++) {
      log.tradeDays(1);
      pass(1);
      await check();
    }
  };
  await runAgain();
  expect(daysLeft().slice(0, 2)).toEqual([first, second]);
  make(second);
  make(first, false);
  await runAgain();
  expect(daysLeft()[0]).toBe(first);
  writeFileSync(join(folder, "days", `${first}.json`), "damaged");
  await runAgain();
  expect(daysLeft()[0]).toBe(first);
  make(first);
  await runAgain();
  expect(daysLeft()[0]).toBe(rest[0]);
  expect(runs.length).toBeGreaterThan(4);
});
