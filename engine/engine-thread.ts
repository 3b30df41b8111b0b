/**
 * One engine thread: its books (engine-stage.ts) and, if the log is its last stage, the commits. It never responds to
 * a client: the gateway reads the committed events.
 *
 * One turn: 1. a batch of commands, whole chains only  2. publish events  3. commit (or wake the log)
 * 4. background work, or sleep.
 */
import { parentPort, workerData } from "node:worker_threads";
import { warmUp } from "./book/warm-up.ts";
import { EngineStage } from "./engine-stage.ts";
import { LogStage } from "./log/log-stage.ts";
import { Waker } from "./ring/waker.ts";
import { type EngineThreadSetup, type ThreadMessage, waitForWork } from "./thread-setup.ts";
import { systemClock } from "./util/clock.ts";
import { createMicroClock } from "./util/micro-clock.ts";

const setup = workerData as EngineThreadSetup;

function report(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

function run(): void {
  const waker = new Waker(setup.waker);
  const clock = createMicroClock(setup.clockEpoch);
  const gateway = new Waker(setup.gatewayWaker);
  const logWaker = new Waker(setup.logWaker);
  const log = setup.log === null ? null : new LogStage(setup.log, gateway, systemClock, clock);
  const engine = new EngineStage({
    commands: setup.commands,
    events: setup.events,
    capacity: setup.capacity,
    clock,
    batchCommands: setup.batchCommands,
    waitForRoom(hasRoom) {
      while (!hasRoom()) {
        if (log !== null) log.run();
        else logWaker.wake();
        // With the log in this thread, nobody else makes room once another box has what was held.
        waitForWork(waker, () => hasRoom() || log?.hasWork() === true, 0);
      }
    },
  });
  warmUp(engine.matcher);

  const hasWork = (): boolean => engine.hasWork() || log?.hasWork() === true;

  report({ kind: "ready" });
  let hasBackgroundWork = log !== null;
  for (;;) {
    const done = engine.run();
    if (log === null) {
      if (done > 0) logWaker.wake();
    } else {
      const committed = log.run();
      if (log.stopped) break;
      if (committed) hasBackgroundWork = true;
    }
    if (engine.stopped && log === null) break;
    if (done > 0) continue;
    if (waitForWork(waker, hasWork, setup.spinTurns, hasBackgroundWork)) continue;
    hasBackgroundWork = log?.idle() === true;
  }
  log?.close();
}

try {
  run();
} catch (error) {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  report({ kind: "failed", error: text });
}
