/** Opens the log's rings up to what every place has that the policy asks for. Owned by the replication thread of an active. */
import { setTimeout as delay } from "node:timers/promises";
import type { LogProgress } from "../../engine/log/progress.ts";
import { Release } from "../../engine/replication/release.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { ALONE_CHECK_MS, RETRY_MS } from "./limits.ts";
import type { Say } from "./reminder.ts";
import type { ReplicationStatus } from "./replication-status.ts";
import type { ReplicationSettings } from "./types.ts";

interface GateOptions {
  readonly settings: Pick<ReplicationSettings, "ack" | "lostMs">;
  readonly status: ReplicationStatus;
  readonly progress: LogProgress;
  readonly logWaker: Waker;
  readonly say: Say;
  /** The stream's last batch. */
  readonly batch: number;
}

export class Gate {
  private readonly release: Release;
  private readonly options: GateOptions;
  /** As of the last change. */
  private shown = -1;
  private wasAlone = false;

  constructor(options: GateOptions) {
    this.options = options;
    const { settings, batch } = options;
    const { ack: policy, lostMs } = settings;
    this.release = new Release({ policy, lostMs, batch });
    setInterval(() => this.check(), ALONE_CHECK_MS).unref();
    this.open();
  }

  readonly shipped = (batch: number): void => {
    this.release.ship(batch, systemClock.elapsed());
    this.open();
  };

  readonly copied = (batch: number): void => {
    const wasAlone = this.release.alone;
    this.release.copy(batch, systemClock.elapsed());
    if (wasAlone && !this.release.alone) {
      this.options.say("info", "a standby has the whole log: acknowledgements wait for it");
    }
    this.open();
  };

  /** Resolves once the log may be shown up to this batch. */
  async opened(batch: number): Promise<void> {
    while (this.release.batch < batch) await delay(RETRY_MS);
  }

  /** A standby stops in order. */
  readonly left = (): void => {
    if (!this.release.leave()) return;
    this.options.say("info", "the standby stops: acknowledgements wait for the nodes alone");
    this.open();
  };

  private check(): void {
    if (!this.release.check(systemClock.elapsed())) return;
    this.options.say("error", "the standby is lost: acknowledgements wait for the nodes alone (STANDBY_LOST)");
    this.open();
  }

  private open(): void {
    const { release } = this;
    if (release.batch === this.shown && release.alone === this.wasAlone) return;
    this.shown = release.batch;
    this.wasAlone = release.alone;
    const { status, progress, logWaker } = this.options;
    status.set("standbyBatch", release.standby);
    status.set("alone", release.alone ? 1 : 0);
    progress.release(release.batch);
    logWaker.wake();
  }
}
