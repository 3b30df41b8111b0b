/** The log's own thread, for an exchange with several engine threads. */
import { parentPort, workerData } from "node:worker_threads";
import { Waker } from "../ring/waker.ts";
import { type LogThreadSetup, type ThreadMessage, waitForWork } from "../thread-setup.ts";
import { systemClock } from "../util/clock.ts";
import { createMicroClock } from "../util/micro-clock.ts";
import { LogStage } from "./log-stage.ts";

const setup = workerData as LogThreadSetup;

function report(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

function run(): void {
  const waker = new Waker(setup.waker);
  const log = new LogStage(
    setup.log,
    new Waker(setup.gatewayWaker),
    systemClock,
    createMicroClock(setup.log.clockEpoch),
  );
  const hasWork = (): boolean => log.hasWork();
  report({ kind: "ready" });
  let hasBackgroundWork = true;
  while (!log.stopped) {
    if (log.run()) hasBackgroundWork = true;
    else if (!waitForWork(waker, hasWork, setup.spinTurns, hasBackgroundWork)) hasBackgroundWork = log.idle();
  }
  log.close();
}

try {
  run();
} catch (error) {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  report({ kind: "failed", error: text });
}
