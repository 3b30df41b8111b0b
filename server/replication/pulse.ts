/** Whether the gateway still runs: a box whose gateway hangs doesn't say that it is active. */
import { systemClock } from "../../engine/util/clock.ts";
import type { ReplicationStatus } from "./replication-status.ts";

export class Pulse {
  private readonly status: Pick<ReplicationStatus, "get">;
  private ticks = 0;
  /** When they changed last, ms. */
  private at = systemClock.elapsed();

  constructor(status: Pick<ReplicationStatus, "get">) {
    this.status = status;
  }

  /** For how long the gateway has stood still, ms. Asked with each beat. */
  get stillMs(): number {
    const now = systemClock.elapsed();
    const ticks = this.status.get("gatewayTicks");
    if (ticks !== this.ticks) {
      this.ticks = ticks;
      this.at = now;
    }
    return now - this.at;
  }
}
