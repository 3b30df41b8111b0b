/** A real log of several days in a data folder of its own: the real matcher's events, in batches at chosen times. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRig, type Rig } from "../../bench/figures/log/rig.ts";
import { START_MS } from "../../bench/figures/log/traffic.ts";
import { type ArchivingOptions, archiveFinishedDays } from "../../engine/log/archiving.ts";
import { JournalReader } from "../../engine/log/log-reader.ts";
import { projectAll } from "../../engine/projection/follow.ts";

const DAY_MS = 86_400_000;
/** A trading day of the tests has this many batches, of this many commands. */
const BATCHES = 12;
const COMMANDS = 60;

export class DaysLog {
  readonly folder = mkdtempSync(join(tmpdir(), "days-log-"));
  readonly archives = join(this.folder, "log");
  readonly rig: Rig;
  private day = 0;

  constructor() {
    let now = START_MS;
    this.rig = createRig(
      this.folder,
      "off",
      () => {},
      () => now,
    );
    this.setTime = (at) => {
      now = at;
    };
  }

  private readonly setTime: (at: number) => void;

  /** Trades for a day, and one day later stops after its first batch; then the tables include everything. */
  tradeDays(count: number): void {
    for (let i = 0; i < count; i++) {
      for (let batch = 0; batch < BATCHES; batch++) {
        this.setTime(START_MS + this.day * DAY_MS + batch * 3_600_000);
        this.trade();
      }
      this.day++;
    }
    this.setTime(START_MS + this.day * DAY_MS);
    this.trade();
    this.project();
  }

  trade(): void {
    this.rig.traffic.makeBatch(COMMANDS);
    this.rig.runBatch(COMMANDS);
  }

  project(): void {
    projectAll(this.rig.projector, new JournalReader(this.rig.journal));
  }

  /** Archives what is finished, and lets the log delete it: by default while nothing else happens. */
  archive(options: Partial<ArchivingOptions> = {}, rest = (): void => this.rest()): number {
    const last = archiveFinishedDays({
      folder: this.archives,
      journal: this.rig.journal,
      projected: this.rig.projector.point.batch,
      openingOf: () => null,
      ...options,
    });
    this.rig.log.trimUpTo(last);
    rest();
    return last;
  }

  private rest(): void {
    while (this.rig.log.idle());
  }

  /** The days that the traffic began and began later. */
  dayName(index: number): string {
    return new Date(START_MS + index * DAY_MS).toISOString().slice(0, 10);
  }

  close(): void {
    this.rig.log.close();
    this.rig.tables.close();
  }
}
