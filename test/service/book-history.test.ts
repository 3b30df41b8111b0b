/** When book history is made: once an hour is over, and never beside another run. */
import { expect, test } from "vitest";
import type { HistoryResult, HistoryRun } from "../../server/book-history/make-days.ts";
import { BookHistory } from "../../server/service/book-history.ts";
import type { SingleRun } from "../../server/util/thread-pool.ts";
import { eventually } from "../support/checks.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * HOUR_MS;
const START = 1_795_824_000_000;
const JOB = { log: { journal: "/j", archives: "/a" }, tables: "/t", folder: "/h", days: 3 };

/** A history whose runs end when the test says so. */
function startHistory(since: number | null, job: typeof JOB | null = JOB, lateMs = 0) {
  let now = START + 30 * MINUTE_MS;
  const runs: (HistoryRun & { end: (result: HistoryResult | Error) => void })[] = [];
  const errors: object[] = [];
  const logger = { info: () => {}, error: (line: object) => void errors.push(line) };
  const start = (run: HistoryRun): SingleRun<HistoryResult> => {
    const result = new Promise<HistoryResult>((resolve, reject) => {
      runs.push({ ...run, end: (made) => (made instanceof Error ? reject(made) : resolve(made)) });
    });
    return { result, stop: async () => {} };
  };
  const history = new BookHistory({
    ...{ job, logger: logger as never, since, start, lateMs },
    now: () => now,
  });
  const pass = (ms: number): void => {
    now += ms;
    history.check();
  };
  return { history, runs, errors, pass };
}

test("a run each hour, up to the hour's end", async () => {
  const { history, runs, pass } = startHistory(null);
  pass(0);
  pass(20 * MINUTE_MS);
  expect(runs.length).toBe(0);
  pass(10 * MINUTE_MS);
  await eventually(async () => expect(runs.length).toBe(1));
  expect(runs[0]).toMatchObject({ ...JOB, until: START + HOUR_MS });
  // The next hour is over before the run is.
  pass(HOUR_MS);
  expect(runs.length).toBe(1);
  expect(history.behindSeconds).toBe(3_600);
  runs[0]!.end({ bytes: 4_711, isWhole: true });
  await eventually(async () => expect(history.bytes).toBe(4_711));
  expect(history.behindSeconds).toBe(0);
  await eventually(async () => {
    pass(0);
    expect(runs.length).toBe(2);
  });
  expect(runs[1]!.until).toBe(START + 2 * HOUR_MS);
});

test("a day is made again each minute until the log says that it is over, a box that trades makes it later", async () => {
  const midnight = START + DAY_MS;
  const { history, runs, pass } = startHistory(0, JOB, 2 * MINUTE_MS);
  pass(0);
  await eventually(async () => expect(runs.length).toBe(1));
  runs[0]!.end({ bytes: 1, isWhole: true });
  await eventually(async () => expect(history.bytes).toBe(1));
  // 00:01
  pass(DAY_MS - 29 * MINUTE_MS);
  expect(runs[1]?.until).toBe(midnight - HOUR_MS);
  runs[1]!.end({ bytes: 2, isWhole: true });
  await eventually(async () => expect(history.bytes).toBe(2));
  for (const [n, isWhole] of [false, false, true].entries()) {
    pass(MINUTE_MS);
    expect(runs[n + 2]?.until).toBe(midnight);
    runs[n + 2]!.end({ bytes: n + 3, isWhole });
    await eventually(async () => expect(history.bytes).toBe(n + 3));
    expect(history.behindSeconds).toBe(isWhole ? 0 : 60 * n);
  }
  pass(MINUTE_MS);
  expect(runs.length).toBe(5);
});

test("a log that began earlier is made at the start; none is with HISTORY=off", async () => {
  const { runs, pass } = startHistory(START - 5 * HOUR_MS);
  pass(0);
  await eventually(async () => expect(runs.map(({ until }) => until)).toEqual([START]));
  const off = startHistory(START - 5 * HOUR_MS, null);
  off.pass(5 * HOUR_MS);
  expect([off.runs.length, off.history.behindSeconds]).toEqual([0, 0]);
});

test("a run that fails is counted and repeated after ten minutes", async () => {
  const { history, runs, errors, pass } = startHistory(0);
  pass(0);
  await eventually(async () => expect(runs.length).toBe(1));
  runs[0]!.end(new Error("batch 7 of the log was changed"));
  await eventually(async () => expect(history.failures).toBe(1));
  expect(errors).toEqual([{ error: "batch 7 of the log was changed" }]);
  pass(9 * MINUTE_MS);
  expect(runs.length).toBe(1);
  expect(history.behindSeconds).toBe(540);
  await eventually(async () => {
    pass(MINUTE_MS);
    expect(runs.length).toBe(2);
  });
});

test("closing ends a run, which is no failure", async () => {
  const { history, runs, pass } = startHistory(0);
  pass(0);
  await eventually(async () => expect(runs.length).toBe(1));
  const closed = history.close();
  runs[0]!.end(new Error("terminated"));
  await closed;
  pass(HOUR_MS);
  expect([history.failures, runs.length]).toEqual([0, 1]);
});
