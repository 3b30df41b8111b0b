/** What the composition root hands to the threads, and how a thread waits and fails. */

import type { JournalSetup } from "../log/journal-stage.ts";
import type { HistogramMemory } from "../util/histogram.ts";
import type { RingMemory, Waker } from "./ring.ts";

export interface EngineThreadSetup {
  readonly commands: RingMemory;
  readonly events: RingMemory;
  readonly capacity: number;
  /** This thread's own bed, the gateway's, and the journal's (its own again where the journal runs in here). */
  readonly waker: SharedArrayBuffer;
  readonly gatewayWaker: SharedArrayBuffer;
  readonly journalWaker: SharedArrayBuffer;
  /** The journal as this thread's last stage; null where it has a thread of its own. */
  readonly journal: JournalSetup | null;
  readonly spinTurns: number;
  /** Of the clock that all threads share: micro-clock.ts. */
  readonly clockEpoch: number;
  /** Commands in each batch; this thread observes. */
  readonly batchCommands: HistogramMemory;
}

export interface JournalThreadSetup {
  readonly journal: JournalSetup;
  readonly waker: SharedArrayBuffer;
  readonly gatewayWaker: SharedArrayBuffer;
  readonly spinTurns: number;
}

/** What a thread tells the gateway over its worker channel. */
export type ThreadMessage = { kind: "ready" } | { kind: "failed"; error: string };

const SLEEP_MS = 1_000;
/** How long a thread must have had nothing to do before it takes up work that can wait. */
const QUIET_MS = 20;

/**
 * Spins for a while (worth it only where cores are plenty), then sleeps until there is work.
 * Answers false when the time is over without any: `QUIET_MS` where something else could be done meanwhile, else 1 s.
 */
export function waitForWork(waker: Waker, hasWork: () => boolean, spinTurns: number, otherWork = false): boolean {
  for (let turn = 0; turn < spinTurns; turn++) if (hasWork()) return true;
  return waker.sleep(hasWork, otherWork ? QUIET_MS : SLEEP_MS);
}
