/** What the watchdog takes for standing still, tick by tick; a thread that really does: test/crash/threads.long.test.ts. */
import { expect, test } from "vitest";
import { Watchdog } from "../../server/bootstrap/watchdog.ts";

const MAX_TICKS = 3;
const work = { waiting: 0, position: 0 };
const idle = { name: "idle", waiting: () => 0, position: () => 0 };
const watch = (): Watchdog => {
  const watched = { name: "engine", waiting: () => work.waiting, position: () => work.position };
  return new Watchdog([idle, watched], MAX_TICKS);
};

/** What so many ticks tell, each after a change. */
function ticks(watchdog: Watchdog, count: number, change: () => void = () => {}): (string | null)[] {
  return Array.from({ length: count }, () => {
    change();
    return watchdog.tick();
  });
}

test("a thread without work may rest for ever", () => {
  Object.assign(work, { waiting: 0 });
  expect(ticks(watch(), 20)).toEqual(Array(20).fill(null));
});

test("one that does some of its work each time is slow, and not still", () => {
  Object.assign(work, { waiting: 5 });
  expect(ticks(watch(), 20, () => work.position++)).toEqual(Array(20).fill(null));
});

test("one that does nothing for too many ticks in a row is named", () => {
  Object.assign(work, { waiting: 1 });
  const watchdog = watch();
  expect(ticks(watchdog, 2)).toEqual([null, null]);
  work.position++;
  expect(ticks(watchdog, 3)).toEqual([null, null, null]);
  work.waiting = 0;
  expect(ticks(watchdog, 3)).toEqual([null, null, null]);
  work.waiting = 2;
  expect(ticks(watchdog, 3)).toEqual([null, null, "engine"]);
});
