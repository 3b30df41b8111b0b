/** Errors of the log. Their messages are one line for an operator. */
import { whyNoFile } from "../util/path-kind.ts";

/** The log lacks a batch, or has one that doesn't belong there. */
export class BrokenLog extends Error {}

/** @throws BrokenLog if something other than a readable file is there */
export function requireFile(path: string): void {
  const why = whyNoFile(path);
  if (why !== null) throw new BrokenLog(`${path} ${why}`);
}

/** Batches are gone, with the archive that had them. */
export class LogGap extends BrokenLog {
  /** The first batch after the gap; infinite if there is none. */
  readonly next: number;

  constructor(message: string, next: number) {
    super(message);
    this.next = next;
  }
}
