/** What is wrong with the log's archives: found at the start, or by a read. Each fault is logged once; never repaired here. */
import type { Logger } from "../logger.ts";
import { BoundedSet } from "../util/bounded-map.ts";
import { MAX_LOG_FAULTS } from "./limits.ts";

export class LogFaults {
  private readonly logger: Pick<Logger, "error">;
  private readonly found = new BoundedSet<string>(MAX_LOG_FAULTS);

  constructor(logger: Pick<Logger, "error">) {
    this.logger = logger;
  }

  /** Faults since the start. */
  get count(): number {
    return this.found.size;
  }

  /** @param fault one line */
  report(fault: string): void {
    if (this.found.has(fault)) return;
    this.found.add(fault);
    this.logger.error(
      { fault },
      "the log is damaged or incomplete: old order updates can't be read; restore its archives",
    );
  }
}
