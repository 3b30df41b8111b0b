/** What a pause and a failure reject, and for how long. */
import { expect, test } from "vitest";
import { overloaded } from "../../server/errors.ts";
import { TradingGate } from "../../server/writes/trading-gate.ts";

const BEHIND = overloaded("behind");
const ALONE = overloaded("alone");
const FAILED = overloaded("failed");

/** What rejects an order, and what rejects a cancel. */
function rejections(gate: TradingGate): unknown[] {
  return [() => gate.checkOpen(), () => gate.checkRunning()].map((check) => {
    try {
      check();
      return null;
    } catch (error) {
      return error;
    }
  });
}

test("a pause rejects orders and no cancel, until each reason has ended", () => {
  const gate = new TradingGate();
  expect(rejections(gate)).toEqual([null, null]);
  gate.pause(BEHIND);
  gate.pause(ALONE);
  gate.pause(BEHIND);
  expect(rejections(gate)).toEqual([BEHIND, null]);
  gate.resume(BEHIND);
  expect(rejections(gate)).toEqual([ALONE, null]);
  // Ends a pause that isn't there.
  gate.resume(BEHIND);
  expect(rejections(gate)).toEqual([ALONE, null]);
  gate.resume(ALONE);
  expect(rejections(gate)).toEqual([null, null]);
});

test("a failure rejects everything, for good and with its first reason", () => {
  const gate = new TradingGate();
  gate.pause(BEHIND);
  expect(gate.hasFailed).toBe(false);
  gate.fail(FAILED);
  gate.fail(ALONE);
  gate.resume(BEHIND);
  expect(rejections(gate)).toEqual([FAILED, FAILED]);
  expect(gate.hasFailed).toBe(true);
});
