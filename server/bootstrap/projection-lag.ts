/**
 * Watches how far the tables are behind the log. Trading stops with 50300 before the lag is too long for a restart, and
 * goes on once the projector has caught up. Never touches the tables.
 */
import type { LogProgress } from "../../engine/log/progress.ts";
import { overloaded } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { Exchange } from "../trading/exchange.ts";
import { type LagBounds, MAX_LAG } from "./limits.ts";

const BEHIND = overloaded("the tables are too far behind the log: retry later");

interface ProjectionLagOptions {
  readonly progress: LogProgress;
  readonly exchange: Pick<Exchange, "refusal">;
  readonly logger: Pick<Logger, "error" | "info">;
  readonly bounds?: LagBounds;
}

export class ProjectionLag {
  private readonly options: ProjectionLagOptions;
  private readonly bounds: LagBounds;

  constructor(options: ProjectionLagOptions) {
    this.options = options;
    this.bounds = options.bounds ?? MAX_LAG;
  }

  /** Stops or resumes trading by the lag. Called every few hundred milliseconds. */
  check(): void {
    const { exchange, logger } = this.options;
    if (exchange.refusal === null && this.isBeyond(1)) {
      exchange.refusal = BEHIND;
      logger.error(this.lag(), "trading pauses: the tables are too far behind the log");
    } else if (exchange.refusal === BEHIND && !this.isBeyond(0.5)) {
      exchange.refusal = null;
      logger.info(this.lag(), "trading goes on: the tables have caught up");
    }
  }

  /** Events, and time between the last committed and the last projected batch, ms. */
  private lag(): { readonly events: number; readonly ms: number } {
    const { committed, projected } = this.options.progress;
    if (projected.batch >= committed.batch) return { events: 0, ms: 0 };
    return { events: committed.records - projected.records, ms: Math.max(0, committed.at - projected.at) };
  }

  private isBeyond(share: number): boolean {
    const { events, ms } = this.lag();
    return events > share * this.bounds.events || ms > share * this.bounds.ms;
  }
}
