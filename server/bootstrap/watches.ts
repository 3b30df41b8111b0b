/**
 * What the server watches while it runs: the machine's clock, its own open files, threads that make no progress, and how
 * far the tables are behind the log. They report, and pause trading; they end nothing.
 */
import { type Stats, statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { type LogProgress, Obstacle } from "../../engine/log/progress.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { overloaded } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { Timeline } from "../util/timeline.ts";
import type { TradingGate } from "../writes/trading-gate.ts";
import { type LagBounds, MAX_LAG, MAX_LAG_MARKS } from "./limits.ts";

/** A smaller step of the clock leaves no line in the log. */
const MIN_LAG_MS = 1_000;

/**
 * Warns when the machine's clock falls behind the times on record, once per occurrence. Returns the function that checks
 * it; `now` is what the clock says, ms.
 */
export function createClockWatch(timeline: Timeline, logger: Logger): (now: number) => void {
  let isBehind = false;
  return (now) => {
    const behindMs = timeline.lag(now);
    const wasBehind = isBehind;
    isBehind = behindMs >= MIN_LAG_MS;
    if (!isBehind || wasBehind) return;
    logger.warn(
      { behindMs },
      "the machine's clock is behind the last timestamp: timestamps are clamped until it catches up",
    );
  };
}

const identityOf = ({ dev, ino }: Stats): string => `${dev}/${ino}`;

/**
 * Detects that an open file is no longer the one under its name: someone moved, deleted or replaced it, and everything
 * written to it is lost with the process. Reads no contents.
 */
export class FileGuard {
  private readonly identities: ReadonlyMap<string, string>;

  /** @param paths of open files */
  constructor(paths: readonly string[]) {
    this.identities = new Map(paths.map((path) => [path, identityOf(statSync(path))]));
  }

  /** The first path that names another file or none; null where all are in place. */
  async changed(): Promise<string | null> {
    for (const [path, identity] of this.identities) {
      try {
        if (identityOf(await stat(path)) !== identity) return path;
      } catch (error) {
        // Any other error (too many open files, a slow network) says nothing about the file.
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return path;
      }
    }
    return null;
  }
}

export interface Watched {
  readonly name: string;
  /** The amount of work that waits. */
  readonly waiting: () => number;
  /** Changes whenever some of the work is done. */
  readonly progress: () => number;
}

interface State {
  readonly watched: Watched;
  progress: number;
  /** Ticks in a row without progress while work waited. */
  stalledTicks: number;
}

/**
 * Detects a thread that is alive and makes no progress while work waits: an endless loop, or a lock that is never
 * released. It counts its own ticks instead of reading a clock, so that neither a suspended machine nor a busy gateway
 * counts against a thread.
 */
export class Watchdog {
  private readonly maxTicks: number;
  private readonly states: State[];

  /** @param maxTicks how many ticks in a row without progress make a stall */
  constructor(watched: readonly Watched[], maxTicks: number) {
    this.maxTicks = maxTicks;
    this.states = watched.map((each) => ({ watched: each, progress: each.progress(), stalledTicks: 0 }));
  }

  /** Returns the name of a stalled thread, else null. */
  tick(): string | null {
    for (const state of this.states) {
      const { watched } = state;
      const progress = watched.progress();
      if (progress !== state.progress || watched.waiting() === 0) state.stalledTicks = 0;
      else state.stalledTicks++;
      state.progress = progress;
      if (state.stalledTicks >= this.maxTicks) return watched.name;
    }
    return null;
  }
}

const BEHIND = overloaded("the tables are too far behind the log: retry later");

const OBSTACLES: Readonly<Record<Exclude<Obstacle, typeof Obstacle.none>, string>> = {
  [Obstacle.lock]: "another program holds a lock on exchange.db: end its transaction",
  [Obstacle.disk]: "the disk of exchange.db is full, or refuses to write",
};

interface ProjectionLagOptions {
  readonly progress: LogProgress;
  readonly gate: TradingGate;
  readonly logger: Pick<Logger, "error" | "info">;
  readonly bounds?: LagBounds;
  /** ms, monotonic */
  readonly now?: () => number;
}

/** When a batch was the last one committed. */
interface Mark {
  readonly batch: number;
  /** ms, monotonic */
  readonly at: number;
}

/**
 * Watches how far the tables are behind the log, and what keeps the projector from writing them. Trading pauses before the
 * lag is too long for a restart, until the projector has caught up. Never touches the tables.
 */
export class ProjectionLag {
  private readonly options: ProjectionLagOptions;
  private readonly bounds: LagBounds;
  private readonly now: () => number;
  /** Batches that the tables lack, oldest first; several between two marks count from the later one. */
  private readonly marks: Mark[] = [];
  private obstacle: Obstacle = Obstacle.none;
  private hasCheckpointFailed = false;
  private isPaused = false;

  constructor(options: ProjectionLagOptions) {
    this.options = options;
    this.bounds = options.bounds ?? MAX_LAG;
    this.now = options.now ?? systemClock.elapsed;
  }

  /** Pauses or resumes trading by the lag. Called every few hundred milliseconds. */
  check(): void {
    const { gate, logger } = this.options;
    this.mark();
    this.reportObstacle();
    if (!this.isPaused && this.isBeyond(1)) {
      this.isPaused = true;
      gate.pause(BEHIND);
      logger.error({ events: this.events, ms: this.ageMs }, "trading pauses: the tables are too far behind the log");
    } else if (this.isPaused && !this.isBeyond(0.5)) {
      this.isPaused = false;
      gate.resume(BEHIND);
      logger.info("trading resumed: the tables have caught up");
    }
  }

  /** Events that the tables lack. */
  get events(): number {
    const { committed, projected } = this.options.progress;
    return projected.batch >= committed.batch ? 0 : Math.max(0, committed.records - projected.records);
  }

  /** How long the oldest batch that the tables lack has been committed, ms: 0 if they lack none. */
  get ageMs(): number {
    const projected = this.options.progress.projectedBatch;
    const oldest = this.marks.find(({ batch }) => batch > projected);
    return oldest === undefined ? 0 : this.now() - oldest.at;
  }

  private mark(): void {
    const { committedBatch, projectedBatch } = this.options.progress;
    const { marks } = this;
    while (marks[0] !== undefined && marks[0].batch <= projectedBatch) marks.shift();
    const last = marks.at(-1)?.batch ?? projectedBatch;
    // At the bound the lag is long past the one at which trading pauses.
    if (committedBatch > last && marks.length < MAX_LAG_MARKS) marks.push({ batch: committedBatch, at: this.now() });
  }

  private isBeyond(share: number): boolean {
    return this.events > share * this.bounds.events || this.ageMs > share * this.bounds.ms;
  }

  /** Once for each time that something keeps the projector from writing. */
  private reportObstacle(): void {
    const { progress, logger } = this.options;
    const { obstacle, hasCheckpointFailed } = progress;
    if (obstacle !== this.obstacle) {
      if (obstacle === Obstacle.none) logger.info("exchange.db can be written again");
      else logger.error({ reason: OBSTACLES[obstacle] }, "exchange.db can't be written: trading goes on without it");
      this.obstacle = obstacle;
    }
    if (hasCheckpointFailed !== this.hasCheckpointFailed) {
      if (hasCheckpointFailed) logger.error("a checkpoint of exchange.db fails: its WAL grows");
      else logger.info("checkpoints of exchange.db succeed again");
      this.hasCheckpointFailed = hasCheckpointFailed;
    }
  }
}
