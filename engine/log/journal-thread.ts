/** The journal's own thread, for an exchange with several engine threads. */
import { parentPort, workerData } from "node:worker_threads";
import { Waker } from "../ring/waker.ts";
import { type JournalThreadSetup, type ThreadMessage, waitForWork } from "../thread-setup.ts";
import { JournalStage } from "./journal-stage.ts";

const setup = workerData as JournalThreadSetup;

function report(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

function run(): void {
  const waker = new Waker(setup.waker);
  const journal = new JournalStage(setup.journal, new Waker(setup.gatewayWaker));
  const hasWork = (): boolean => journal.hasWork();
  report({ kind: "ready" });
  let hasBackgroundWork = true;
  while (!journal.stopped) {
    if (journal.run()) hasBackgroundWork = true;
    else if (!waitForWork(waker, hasWork, setup.spinTurns, hasBackgroundWork)) hasBackgroundWork = journal.idle();
  }
  journal.close();
}

try {
  run();
} catch (error) {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  report({ kind: "failed", error: text });
}
