/** Which standby may begin the next epoch once this box ends its own. Owned by the replication thread of an active. */
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../engine/util/clock.ts";
import type { Box } from "./box.ts";
import { BEAT_MS, HAND_OVER_MS, HAND_OVER_POLL_MS, READY_MS } from "./limits.ts";
import type { StandbyReports } from "./standby-reports.ts";
import type { OtherBox } from "./types.ts";

interface SuccessionOptions {
  readonly box: Box;
  readonly reports: StandbyReports;
  /** Called once with the box that this one is going to resign for. */
  readonly onAccept: (successor: string) => void;
}

export class Succession {
  private readonly options: SuccessionOptions;
  /** The box that this one has promised to resign for. */
  private accepted: string | null = null;

  constructor(options: SuccessionOptions) {
    this.options = options;
  }

  /**
   * Promises to resign, once a standby is ready; resolves with its name.
   * @param wanted its name; null for any @throws Error with what speaks against it, for an operator
   */
  async accept(wanted: string | null): Promise<string> {
    this.options.box.lookAtKeys();
    const since = systemClock.elapsed();
    for (;;) {
      if (this.accepted !== null) {
        if (wanted === null || wanted === this.accepted) return this.accepted;
        throw new Error(`it is handing over to the box ${this.accepted}`);
      }
      const found = this.candidates(wanted);
      const ready = found.find((box) => this.whyNot(box) === null);
      if (ready !== undefined) {
        this.accepted = ready.box;
        this.options.onAccept(ready.box);
        return ready.box;
      }
      // Under load a standby is a moment behind.
      if (systemClock.elapsed() - since > READY_MS) throw new Error(this.why(found));
      await delay(HAND_OVER_POLL_MS);
    }
  }

  /** Resolves with the standby that has the whole log, now or in a moment; null where none has. @param batch the log's last */
  async heir(batch: number): Promise<OtherBox | null> {
    this.options.box.lookAtKeys();
    const since = systemClock.elapsed();
    for (;;) {
      const ready = this.candidates(this.accepted).filter((box) => this.whyNot(box) === null);
      const heir = ready.find(({ box }) => this.options.reports.copied(box) >= batch);
      if (heir !== undefined) return heir;
      // A box that has just become a standby says so with its next beat.
      const mostMs = ready.length === 0 ? 3 * BEAT_MS : HAND_OVER_MS;
      const isAlone = this.options.box.beats.others().length === 0;
      if (isAlone || systemClock.elapsed() - since > mostMs) return null;
      await delay(HAND_OVER_POLL_MS);
    }
  }

  private candidates(wanted: string | null): readonly OtherBox[] {
    const boxes = this.options.box.beats.others().filter(({ role }) => role === "standby");
    return boxes.filter(({ box }) => wanted === null || box === wanted);
  }

  /** What speaks against each standby; null where nothing speaks against one. */
  obstacle(): string | null {
    const found = this.candidates(null);
    return found.some((box) => this.whyNot(box) === null) ? null : this.why(found);
  }

  private why(found: readonly OtherBox[]): string {
    const [first] = found;
    return first === undefined ? "no standby is heard" : (this.whyNot(first) ?? "no standby is ready");
  }

  /** What speaks against a box; null where nothing does. */
  private whyNot({ box, keys_equal: isEqual }: OtherBox): string | null {
    if (!isEqual) return `the box ${box} has other keys`;
    return this.options.reports.isCurrent(box) ? null : `the box ${box} is behind`;
  }
}
