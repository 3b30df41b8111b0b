/**
 * The scheduling priority of a measuring thread: on the machine that it loads, it must run as if it were on another.
 */
import { setPriority } from "node:os";

const NICE = -10;

/** Gives the calling thread priority over others if that is permitted (root); elsewhere it waits its turn. */
export function comeFirst(): void {
  try {
    // On Linux 0 is the calling thread.
    setPriority(0, NICE);
  } catch {
    // The client then reports its delay.
  }
}
