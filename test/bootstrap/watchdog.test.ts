/** When the watchdog considers a thread stuck, tick by tick. test/crash/threads.long.test.ts has a thread that is. */
import { expect, test } from "vitest";
import { Watchdog } from "../../server/bootstrap/watches.ts";

const MAX_TICKS = 3;
const work = { waiting: 0, progress: 0 };
const idle = { name: "idle", waiting: () => 0, progress: () => 0 };
const watch = (): Watchdog => {
  const watched = { name: "engine", waiting: () => work.waiting, progress: () => work.progress };
  return new Watchdog([idle, watched], MAX_TICKS);
};

/** The results of several ticks, each after a change. */
function ticks(watchdog: Watchdog, count: number, change: () => void = () => {}): (string | null)[] {
  return Array.from({ length: count }, () => {
    change();
    return watchdog.tick();
  });
}

test("a thread without work may sleep forever", () => {
  Object.assign(work, { waiting: 0 });
  expect(ticks(watch(), 20)).toEqual(Array(20).fill(null));
});

test("a thread that makes progress at each tick is slow, not stuck", () => {
  Object.assign(work, { waiting: 5 });
  expect(ticks(watch(), 20, () => work.progress++)).toEqual(Array(20).fill(null));
});

test("a thread without progress for too many ticks in a row is named", () => {
  Object.assign(work, { waiting: 1 });
  const watchdog = watch();
  expect(ticks(watchdog, 2)).toEqual([null, null]);
  work.progress++;
  expect(ticks(watchdog, 3)).toEqual([null, null, null]);
  work.waiting = 0;
  expect(ticks(watchdog, 3)).toEqual([null, null, null]);
  work.waiting = 2;
  expect(ticks(watchdog, 3)).toEqual([null, null, "engine"]);
});
