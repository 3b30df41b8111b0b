/** The pace of answers: on a clock that the test moves, and once on the real one. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ResponseThrottle } from "../../server/http/response-throttle.ts";

describe("on a clock that the test moves", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  /** Passes `count` numbered answers from `from` on. */
  function pass(pace: ResponseThrottle, given: number[], count: number, from = 0): void {
    for (let i = from; i < from + count; i++) pace.pass(() => given.push(i));
  }
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

  test("a burst of a 20th of a second's worth is given at once, without a timer", () => {
    const pace = new ResponseThrottle(2_000, 10_000);
    const given: number[] = [];
    pass(pace, given, 100);
    expect(given).toEqual(upTo(100));
    expect(vi.getTimerCount()).toBe(0);
    pass(pace, given, 1, 100);
    expect(given).toEqual(upTo(100));
    expect(vi.getTimerCount()).toBe(1);
  });

  test("few pass at once for ever", () => {
    const pace = new ResponseThrottle(2_000, 10_000);
    const given: number[] = [];
    for (let i = 0; i < 5_000; i++) {
      pass(pace, given, 1, i);
      expect(given.length).toBe(i + 1);
      vi.advanceTimersByTime(1);
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  test("the rest follows in order, at the pace, and the timer stops after the last", () => {
    const pace = new ResponseThrottle(2_000, 10_000);
    const given: number[] = [];
    pass(pace, given, 1_100);
    for (let ms = 5; ms <= 500; ms += 5) {
      vi.advanceTimersByTime(5);
      expect(given.length).toBe(100 + 2 * ms);
    }
    expect(given).toEqual(upTo(1_100));
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(50);
    pass(pace, given, 150, 1_100);
    expect(given).toEqual(upTo(1_200));
    vi.advanceTimersByTime(25);
    expect(given).toEqual(upTo(1_250));
    expect(vi.getTimerCount()).toBe(0);
  });

  test("what comes while others wait waits behind them", () => {
    const pace = new ResponseThrottle(1_000, 100);
    const given: number[] = [];
    pass(pace, given, 53);
    // Room for four, but the timer has not run yet.
    vi.advanceTimersByTime(4);
    pass(pace, given, 1, 53);
    expect(given).toEqual(upTo(50));
    vi.advanceTimersByTime(1);
    expect(given).toEqual(upTo(54));
  });

  test("a quiet hour allows a burst and no more", () => {
    const pace = new ResponseThrottle(2_000, 10_000);
    const given: number[] = [];
    vi.advanceTimersByTime(3_600_000);
    pass(pace, given, 1_000);
    expect(given.length).toBe(100);
  });

  test("a late timer doesn't catch up more than a burst", () => {
    const pace = new ResponseThrottle(2_000, 10_000);
    const given: number[] = [];
    pass(pace, given, 1_000);
    const start = performance.now();
    vi.spyOn(performance, "now").mockImplementation(() => start + 400);
    vi.advanceTimersToNextTimer();
    expect(given.length).toBe(200);
  });

  test("answers that are slower than the pace don't hold the thread until all are given", () => {
    const pace = new ResponseThrottle(2_000, 10_000);
    let now = performance.now();
    vi.spyOn(performance, "now").mockImplementation(() => now);
    let given = 0;
    const giveSlowly = (): void => {
      given++;
      now += 5;
    };
    pass(pace, [], 100);
    for (let i = 0; i < 1_000; i++) pace.pass(giveSlowly);
    expect(given).toBe(0);
    now += 5;
    vi.advanceTimersToNextTimer();
    expect(given).toBe(10);
    vi.advanceTimersToNextTimer();
    expect(given).toBe(110);
  });

  test("one a second: the first at once, the others in time", () => {
    const pace = new ResponseThrottle(1, 10);
    const given: number[] = [];
    pass(pace, given, 3);
    expect(given).toEqual([0]);
    vi.advanceTimersByTime(995);
    expect(given).toEqual([0]);
    vi.advanceTimersByTime(5);
    expect(given).toEqual([0, 1]);
    vi.advanceTimersByTime(1_000);
    expect(given).toEqual([0, 1, 2]);
  });

  test("where too many wait the oldest is given at once, and none is dropped or given twice", () => {
    const pace = new ResponseThrottle(1_000, 7);
    const given: number[] = [];
    pass(pace, given, 57);
    expect(given.length).toBe(50);
    for (let i = 57; i < 1_000; i++) {
      pass(pace, given, 1, i);
      expect(given.length).toBe(i + 1 - 7);
    }
    vi.advanceTimersByTime(5);
    expect(given.length).toBe(998);
    vi.advanceTimersByTime(5);
    expect(given).toEqual(upTo(1_000));
  });

  test("close gives all that wait, in order, and what comes later at once", () => {
    const pace = new ResponseThrottle(1_000, 5_000);
    const given: number[] = [];
    pass(pace, given, 1_000);
    vi.advanceTimersByTime(10);
    pace.close();
    expect(given).toEqual(upTo(1_000));
    expect(vi.getTimerCount()).toBe(0);
    pass(pace, given, 500, 1_000);
    expect(given).toEqual(upTo(1_500));
    pace.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("an answer may pass another one", () => {
    const pace = new ResponseThrottle(20, 2);
    const given: string[] = [];
    const twice = (name: string) => (): void => {
      given.push(name);
      pace.pass(() => given.push(`${name} again`));
    };
    pace.pass(twice("first"));
    pace.pass(twice("second"));
    expect(given).toEqual(["first"]);
    pace.pass(() => given.push("third"));
    expect(given).toEqual(["first", "first again"]);
    vi.advanceTimersByTime(50);
    pace.close();
    expect([...given].sort()).toEqual(["first", "first again", "second", "second again", "third"]);
  });

  test("one that throws surfaces on its own, and not in the place of others", () => {
    const surfaced: (() => void)[] = [];
    vi.spyOn(globalThis, "queueMicrotask").mockImplementation((task) => void surfaced.push(task));
    const pace = new ResponseThrottle(20, 10);
    const given: number[] = [];
    const fail = (): void => {
      throw new Error("broken");
    };
    pace.pass(fail);
    pace.pass(fail);
    pass(pace, given, 2);
    vi.advanceTimersByTime(200);
    expect(given).toEqual([0, 1]);
    expect(surfaced.length).toBe(2);
    for (const task of surfaced) expect(task).toThrow("broken");
  });
});

test("asserts its bounds", () => {
  for (const perSecond of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => new ResponseThrottle(perSecond, 10)).toThrow();
  }
  for (const maxWaiting of [0, -1, 1.5, Number.NaN]) expect(() => new ResponseThrottle(10, maxWaiting)).toThrow();
});

test("on the real clock, never faster than the pace and the burst, and all of it in the end", async () => {
  const perSecond = 2_000;
  const pace = new ResponseThrottle(perSecond, 10_000);
  const times: number[] = [];
  const order: number[] = [];
  const start = performance.now();
  for (let i = 0; i < perSecond; i++) {
    pace.pass(() => {
      times.push(performance.now() - start);
      order.push(i);
    });
  }
  expect(order.length).toBeGreaterThanOrEqual(100);
  const deadline = start + 20_000;
  while (order.length < perSecond && performance.now() < deadline) await sleep(10);
  expect(order).toEqual(Array.from({ length: perSecond }, (_, i) => i));
  // The clock is read before an answer leaves, so that at its own time it was allowed already.
  const tooEarly = times.filter((ms, i) => i + 1 > 100 + (ms * perSecond) / 1_000);
  expect(tooEarly).toEqual([]);
  expect(times.at(-1)).toBeGreaterThanOrEqual(949);
});
