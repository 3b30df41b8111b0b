/** When trading pauses because the tables are too far behind the log, with bounds scaled down. */
import { expect, test } from "vitest";
import { LogProgress, Obstacle } from "../../engine/log/progress.ts";
import { ProjectionLag } from "../../server/bootstrap/watches.ts";
import { TradingGate } from "../../server/writes/trading-gate.ts";

test("the bound of the lag, by events and by the age of the oldest commit: new orders pause, and go on at half of it", () => {
  const progress = new LogProgress();
  const logged: string[] = [];
  const logger = {
    error: (_: object, msg?: string) => void logged.push(msg ?? ""),
    info: (msg: string) => void logged.push(msg),
  };
  const gate = new TradingGate();
  let now = 5_000_000;
  const bounds = { events: 1_000, ms: 600 };
  const lag = new ProjectionLag({ progress, gate, logger: logger as never, bounds, now: () => now });
  const commit = (batch: number, records: number): void => progress.commit({ batch, records, at: 1_000 + batch });
  const project = (batch: number, records: number): void => progress.project({ batch, records, at: 1_000 + batch });
  const isPaused = (): boolean => {
    lag.check();
    try {
      gate.checkOpen();
      return false;
    } catch (error) {
      expect(error).toMatchObject({ kind: { code: 50300 } });
      gate.checkRunning();
      return true;
    }
  };
  commit(10, 100);
  project(10, 100);
  expect(isPaused()).toBe(false);
  // A quiet hour is no lag, whatever the clock says of the last commit.
  now += 3_600_000;
  commit(11, 101);
  expect([isPaused(), lag.ageMs, lag.events]).toEqual([false, 0, 1]);
  now += 400;
  commit(12, 102);
  expect([isPaused(), lag.ageMs]).toEqual([false, 400]);
  now += 201;
  expect(isPaused()).toBe(true);
  project(11, 101);
  // The other commit is 201 ms old: less than half of the bound.
  expect([isPaused(), lag.ageMs]).toEqual([false, 201]);
  project(12, 102);
  commit(13, 102 + 1_001);
  expect(isPaused()).toBe(true);
  project(13, 102 + 400);
  commit(14, 102 + 1_001);
  expect(isPaused()).toBe(true);
  project(14, 102 + 1_001);
  expect([isPaused(), lag.ageMs, lag.events]).toEqual([false, 0, 0]);
  expect(logged.filter((msg) => msg.startsWith("trading pauses")).length).toBe(2);
  progress.reportObstacle(Obstacle.disk);
  for (let i = 0; i < 3; i++) lag.check();
  expect(logged.filter((msg) => msg.startsWith("exchange.db can't be written")).length).toBe(1);
});
