/** Whether the gateway still runs: a box whose gateway hangs doesn't say that it is active. */
import { systemClock } from "../../engine/util/clock.ts";
import type { ReplicationStatus } from "./replication-status.ts";

export class Pulse {
  private readonly status: Pick<ReplicationStatus, "get">;
  private ticks = 0;
  private readonly mostMs: number;
  /** When they changed last, ms. */
  private at = systemClock.elapsed();

  /** @param mostMs how long it may stand still */
  constructor(status: Pick<ReplicationStatus, "get">, mostMs: number) {
    this.status = status;
    this.mostMs = mostMs;
  }

  /** False once the gateway has stood still for too long. Asked with each beat. */
  get isThere(): boolean {
    const now = systemClock.elapsed();
    const ticks = this.status.get("gatewayTicks");
    if (ticks !== this.ticks) {
      this.ticks = ticks;
      this.at = now;
    }
    return now - this.at < this.mostMs;
  }
}
