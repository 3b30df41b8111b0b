/** Scheduling of a thread that measures: on the machine that it loads it must come to its work as if it were on another. */
import { setPriority } from "node:os";

const NICE = -10;

/** Puts the calling thread before what doesn't ask for it, where that is allowed (root); elsewhere it waits its turn. */
export function comeFirst(): void {
  try {
    // On Linux 0 is the calling thread.
    setPriority(0, NICE);
  } catch {
    // The client then tells how late it came.
  }
}
