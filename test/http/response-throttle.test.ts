/** The throttle of responses: on a fake clock, and once on the real one. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ResponseThrottle } from "../../server/http/response-throttle.ts";

describe("on a fake clock", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  /** Passes `count` numbered responses from `from` on. */
  function pass(throttle: ResponseThrottle, sent: number[], count: number, from = 0): void {
    for (let i = from; i < from + count; i++) throttle.pass(() => sent.push(i));
  }
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

  test("a burst of a 20th of a second's rate is sent at once, without a timer", () => {
    const throttle = new ResponseThrottle(2_000, 10_000);
    const sent: number[] = [];
    pass(throttle, sent, 100);
    expect(sent).toEqual(upTo(100));
    expect(vi.getTimerCount()).toBe(0);
    pass(throttle, sent, 1, 100);
    expect(sent).toEqual(upTo(100));
    expect(vi.getTimerCount()).toBe(1);
  });

  test("a rate below the limit never waits", () => {
    const throttle = new ResponseThrottle(2_000, 10_000);
    const sent: number[] = [];
    for (let i = 0; i < 5_000; i++) {
      pass(throttle, sent, 1, i);
      expect(sent.length).toBe(i + 1);
      vi.advanceTimersByTime(1);
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  test("the rest of a burst follows in order, at the rate, and the timer stops after the last", () => {
    const throttle = new ResponseThrottle(2_000, 10_000);
    const sent: number[] = [];
    pass(throttle, sent, 1_100);
    for (let ms = 5; ms <= 500; ms += 5) {
      vi.advanceTimersByTime(5);
      expect(sent.length).toBe(100 + 2 * ms);
    }
    expect(sent).toEqual(upTo(1_100));
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(50);
    pass(throttle, sent, 150, 1_100);
    expect(sent).toEqual(upTo(1_200));
    vi.advanceTimersByTime(25);
    expect(sent).toEqual(upTo(1_250));
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a response waits behind those that wait already", () => {
    const throttle = new ResponseThrottle(1_000, 100);
    const sent: number[] = [];
    pass(throttle, sent, 53);
    // Room for four, but the timer has not run yet.
    vi.advanceTimersByTime(4);
    pass(throttle, sent, 1, 53);
    expect(sent).toEqual(upTo(50));
    vi.advanceTimersByTime(1);
    expect(sent).toEqual(upTo(54));
  });

  test("a quiet hour allows a burst of responses and no more", () => {
    const throttle = new ResponseThrottle(2_000, 10_000);
    const sent: number[] = [];
    vi.advanceTimersByTime(3_600_000);
    pass(throttle, sent, 1_000);
    expect(sent.length).toBe(100);
  });

  test("a late timer doesn't catch up more than a burst of responses", () => {
    const throttle = new ResponseThrottle(2_000, 10_000);
    const sent: number[] = [];
    pass(throttle, sent, 1_000);
    const start = performance.now();
    vi.spyOn(performance, "now").mockImplementation(() => start + 400);
    vi.advanceTimersToNextTimer();
    expect(sent.length).toBe(200);
  });

  test("responses slower than the rate don't block the thread until all are sent", () => {
    const throttle = new ResponseThrottle(2_000, 10_000);
    let now = performance.now();
    vi.spyOn(performance, "now").mockImplementation(() => now);
    let sent = 0;
    const sendSlowly = (): void => {
      sent++;
      now += 5;
    };
    pass(throttle, [], 100);
    for (let i = 0; i < 1_000; i++) throttle.pass(sendSlowly);
    expect(sent).toBe(0);
    now += 5;
    vi.advanceTimersToNextTimer();
    expect(sent).toBe(10);
    vi.advanceTimersToNextTimer();
    expect(sent).toBe(110);
  });

  test("one response a second: the first at once, the others in time", () => {
    const throttle = new ResponseThrottle(1, 10);
    const sent: number[] = [];
    pass(throttle, sent, 3);
    expect(sent).toEqual([0]);
    vi.advanceTimersByTime(995);
    expect(sent).toEqual([0]);
    vi.advanceTimersByTime(5);
    expect(sent).toEqual([0, 1]);
    vi.advanceTimersByTime(1_000);
    expect(sent).toEqual([0, 1, 2]);
  });

  test("when too many responses wait, the oldest is sent at once, and none is dropped or sent twice", () => {
    const throttle = new ResponseThrottle(1_000, 7);
    const sent: number[] = [];
    pass(throttle, sent, 57);
    expect(sent.length).toBe(50);
    for (let i = 57; i < 1_000; i++) {
      pass(throttle, sent, 1, i);
      expect(sent.length).toBe(i + 1 - 7);
    }
    vi.advanceTimersByTime(5);
    expect(sent.length).toBe(998);
    vi.advanceTimersByTime(5);
    expect(sent).toEqual(upTo(1_000));
  });

  test("close sends all responses that wait, in order, and later ones at once", () => {
    const throttle = new ResponseThrottle(1_000, 5_000);
    const sent: number[] = [];
    pass(throttle, sent, 1_000);
    vi.advanceTimersByTime(10);
    throttle.close();
    expect(sent).toEqual(upTo(1_000));
    expect(vi.getTimerCount()).toBe(0);
    pass(throttle, sent, 500, 1_000);
    expect(sent).toEqual(upTo(1_500));
    throttle.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a response may pass another one", () => {
    const throttle = new ResponseThrottle(20, 2);
    const sent: string[] = [];
    const twice = (name: string) => (): void => {
      sent.push(name);
      throttle.pass(() => sent.push(`${name} again`));
    };
    throttle.pass(twice("first"));
    throttle.pass(twice("second"));
    expect(sent).toEqual(["first"]);
    throttle.pass(() => sent.push("third"));
    expect(sent).toEqual(["first", "first again"]);
    vi.advanceTimersByTime(50);
    throttle.close();
    expect([...sent].sort()).toEqual(["first", "first again", "second", "second again", "third"]);
  });

  test("a response that throws surfaces as its own error and doesn't stop the others", () => {
    const surfaced: (() => void)[] = [];
    vi.spyOn(globalThis, "queueMicrotask").mockImplementation((task) => void surfaced.push(task));
    const throttle = new ResponseThrottle(20, 10);
    const sent: number[] = [];
    const fail = (): void => {
      throw new Error("broken");
    };
    throttle.pass(fail);
    throttle.pass(fail);
    pass(throttle, sent, 2);
    vi.advanceTimersByTime(200);
    expect(sent).toEqual([0, 1]);
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

test("on the real clock, all responses pass, never faster than the rate and the burst", async () => {
  const perSecond = 2_000;
  const count = 1_000;
  const throttle = new ResponseThrottle(perSecond, 10_000);
  const times: number[] = [];
  const order: number[] = [];
  const start = performance.now();
  for (let i = 0; i < count; i++) {
    throttle.pass(() => {
      times.push(performance.now() - start);
      order.push(i);
    });
  }
  expect(order.length).toBeGreaterThanOrEqual(100);
  const deadline = start + 20_000;
  while (order.length < count && performance.now() < deadline) await sleep(10);
  expect(order).toEqual(Array.from({ length: count }, (_, i) => i));
  // The throttle reads the clock before a response leaves, so a response is never ahead of its own time.
  const tooEarly = times.filter((ms, i) => i + 1 > 100 + (ms * perSecond) / 1_000);
  expect(tooEarly).toEqual([]);
  expect(times.at(-1)).toBeGreaterThanOrEqual(449);
});
