/** The scheduling priority of threads whose work can wait. */
import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";

/** Lets other threads of the machine run before the calling one, where Linux knows threads. @param nice 1 to 19 */
export function lowerPriority(nice: number): void {
  try {
    // On Linux a thread has its own priority, under its own id.
    setPriority(Number(readlinkSync("/proc/thread-self").split("/")[2]), nice);
  } catch {
    // Elsewhere the thread runs like any other.
  }
}
