/** A progress bar on stderr while it is a terminal; nothing elsewhere. */
import { systemClock } from "../../engine/util/clock.ts";

const WIDTH = 40;
const INTERVAL_MS = 100;

export class ProgressBar {
  private readonly label: string;
  private shownAt = 0;

  constructor(label: string) {
    this.label = label;
  }

  /** Shows how much of `total` is done, at most ten times a second. */
  show(done: number, total: number): void {
    const now = systemClock.elapsed();
    if (!process.stderr.isTTY || (now - this.shownAt < INTERVAL_MS && done < total)) return;
    this.shownAt = now;
    const share = total === 0 ? 1 : Math.min(1, done / total);
    const filled = Math.round(WIDTH * share);
    const bar = "#".repeat(filled).padEnd(WIDTH, ".");
    process.stderr.write(`\r${this.label} [${bar}] ${Math.floor(100 * share)} %`);
  }

  /** Ends the line. */
  end(): void {
    if (this.shownAt > 0) process.stderr.write("\n");
  }
}
