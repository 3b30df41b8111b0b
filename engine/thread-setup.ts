/** The setup that the composition root passes to each engine thread, and how a thread reports and waits for work. */

import type { LogSetup } from "./log/log-stage.ts";
import type { RingMemory } from "./ring/ring.ts";
import type { Waker } from "./ring/waker.ts";
import type { HistogramMemory } from "./util/histogram.ts";
import type { Durability } from "./util/wal-database.ts";

export interface EngineThreadSetup {
  readonly commands: RingMemory;
  readonly events: RingMemory;
  readonly capacity: number;
  /** The wait cells of this thread, the gateway and the log (this thread's again if it runs the log itself). */
  readonly waker: SharedArrayBuffer;
  readonly gatewayWaker: SharedArrayBuffer;
  readonly logWaker: SharedArrayBuffer;
  /** The log as this thread's last stage; null if the log has its own thread. */
  readonly log: LogSetup | null;
  readonly spinTurns: number;
  /** The epoch of the clock that all threads share (micro-clock.ts). */
  readonly clockEpoch: number;
  /** Commands per batch; this thread observes. */
  readonly batchCommands: HistogramMemory;
}

export interface LogThreadSetup {
  readonly log: LogSetup;
  readonly waker: SharedArrayBuffer;
  readonly gatewayWaker: SharedArrayBuffer;
  readonly spinTurns: number;
}

export interface ProjectorThreadSetup {
  readonly journalPath: string;
  readonly tablesPath: string;
  readonly durability: Durability;
  /** log/progress.ts */
  readonly progress: SharedArrayBuffer;
  /** The wait cells of this thread, the gateway and the log. */
  readonly waker: SharedArrayBuffer;
  readonly gatewayWaker: SharedArrayBuffer;
  readonly logWaker: SharedArrayBuffer;
}

/** A thread's message to the gateway over its worker channel. */
export type ThreadMessage = { kind: "ready" } | { kind: "failed"; error: string };

const SLEEP_MS = 1_000;
/** A thread must be idle for this long before it starts background work. */
const QUIET_MS = 20;

/**
 * Spins for `spinTurns` (pays off only with spare cores), then sleeps until there is work. Returns false on a timeout:
 * after `QUIET_MS` if background work is pending, after 1 s otherwise.
 */
export function waitForWork(
  waker: Waker,
  hasWork: () => boolean,
  spinTurns: number,
  hasBackgroundWork = false,
): boolean {
  for (let turn = 0; turn < spinTurns; turn++) if (hasWork()) return true;
  return waker.sleep(hasWork, hasBackgroundWork ? QUIET_MS : SLEEP_MS);
}
