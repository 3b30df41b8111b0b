/** The setup that the composition root passes to each engine thread, and how a thread reports and waits for work. */

import type { JournalSetup } from "./log/journal-stage.ts";
import type { RingMemory } from "./ring/ring.ts";
import type { Waker } from "./ring/waker.ts";
import type { HistogramMemory } from "./util/histogram.ts";

export interface EngineThreadSetup {
  readonly commands: RingMemory;
  readonly events: RingMemory;
  readonly capacity: number;
  /** The wait cells of this thread, the gateway and the journal (this thread's again if it runs the journal itself). */
  readonly waker: SharedArrayBuffer;
  readonly gatewayWaker: SharedArrayBuffer;
  readonly journalWaker: SharedArrayBuffer;
  /** The journal as this thread's last stage; null if the journal has its own thread. */
  readonly journal: JournalSetup | null;
  readonly spinTurns: number;
  /** The epoch of the clock that all threads share (micro-clock.ts). */
  readonly clockEpoch: number;
  /** Commands per batch; this thread observes. */
  readonly batchCommands: HistogramMemory;
}

export interface JournalThreadSetup {
  readonly journal: JournalSetup;
  readonly waker: SharedArrayBuffer;
  readonly gatewayWaker: SharedArrayBuffer;
  readonly spinTurns: number;
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
