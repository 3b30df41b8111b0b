/**
 * Where the log's lines go: standard output, without ever waiting for its reader. A pipe whose reader pauses, or a terminal
 * after Ctrl-S, takes nothing: lines wait in a bounded buffer, and beyond it they are dropped and counted.
 */
import { pino } from "pino";

/** Bytes of lines that may wait for the reader. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** The level of the lines that say why the process ends: they are never dropped. */
export const FATAL = 60;

/** What it needs of `process.stdout`. */
interface LogStream {
  readonly writableLength: number;
  write(text: string, written?: () => void): boolean;
  on(event: "error" | "drain", listener: () => void): unknown;
}

/** A terminal's stream waits for its reader unless its handle is told otherwise. */
interface TerminalHandle {
  readonly _handle?: { setBlocking?(isBlocking: boolean): number };
}

export class LogOutput {
  /** Tells pino to name the level of each line. */
  readonly [pino.symbols.needsMetadataGsym] = true;
  /** Set by pino before it writes. */
  lastLevel = 0;
  /** Lines that nobody will read. */
  dropped = 0;
  private readonly stream: LogStream;
  private reported = 0;
  private isClosed = false;

  constructor(stream: LogStream = process.stdout) {
    this.stream = stream;
    (stream as TerminalHandle)._handle?.setBlocking?.(false);
    // The reader has gone: trading goes on without it.
    stream.on("error", () => {
      this.isClosed = true;
    });
  }

  write(line: string): void {
    const isFull = this.stream.writableLength + line.length > MAX_WAITING_BYTES && this.lastLevel < FATAL;
    if (this.isClosed || isFull) this.dropped++;
    else this.stream.write(line);
  }

  /** Calls the function with the number of lost lines once the reader reads again. */
  onReadAgain(report: (dropped: number) => void): void {
    this.stream.on("drain", () => {
      const count = this.dropped - this.reported;
      this.reported = this.dropped;
      if (count > 0) report(count);
    });
  }

  /** Resolves when the reader has what waits for it, or after `mostMs`. */
  flush(mostMs: number): Promise<void> {
    if (this.isClosed || this.stream.writableLength === 0) return Promise.resolve();
    return new Promise((resolve) => {
      setTimeout(resolve, mostMs).unref();
      this.stream.write("", resolve);
    });
  }
}
