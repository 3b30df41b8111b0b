/** How far a command is, on stderr: a bar that redraws itself on a terminal, elsewhere a line each few seconds. */

const REDRAW_MS = 100;
const LINE_MS = 5_000;
const BAR_WIDTH = 30;

export class Progress {
  private readonly label: string;
  private readonly total: number;
  private readonly intervalMs = process.stderr.isTTY ? REDRAW_MS : LINE_MS;
  private shownAt = performance.now();
  private drawn = false;

  constructor(label: string, total: number) {
    this.label = label;
    this.total = total;
  }

  /** Cheap enough to be called for each step. */
  update(done: number, note = ""): void {
    const now = performance.now();
    if (now - this.shownAt < this.intervalMs) return;
    this.shownAt = now;
    this.show(done, note);
  }

  /** Takes the bar away. */
  end(): void {
    if (this.drawn && process.stderr.isTTY) process.stderr.write("\r\x1b[2K");
  }

  private show(done: number, note: string): void {
    const share = this.total === 0 ? 1 : Math.min(1, done / this.total);
    const text = `${this.label} ${done}/${this.total} ${note}`.trimEnd();
    this.drawn = true;
    if (!process.stderr.isTTY) {
      process.stderr.write(`${text} (${Math.floor(share * 100)} %)\n`);
      return;
    }
    const filled = Math.round(share * BAR_WIDTH);
    const bar = "#".repeat(filled) + "-".repeat(BAR_WIDTH - filled);
    process.stderr.write(`\r\x1b[2K[${bar}] ${text}`.slice(0, (process.stderr.columns ?? 80) + 5));
  }
}
