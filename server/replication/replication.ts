/** The gateway's side of the replication thread: what this box is, the thread's lines in the program's log, its failures, its stop. */
import type { Worker } from "node:worker_threads";
import type { LogEnd } from "../../engine/log/append.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { Histogram, type HistogramMemory } from "../../engine/util/histogram.ts";
import { ConfigError, FencedStart } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { DESCRIBE_MS, STOP_MS, TICK_MS } from "./limits.ts";
import type { ReplicationStatus } from "./replication-status.ts";
import type {
  ActiveBox,
  LeadSetup,
  OtherBox,
  Promotion,
  ReplicationReport,
  ReplicationRequest,
  ReplicationSettings,
  Role,
  StreamFacts,
} from "./types.ts";

const NAME = "replication";

interface Described {
  readonly takeover: string;
  readonly stream: StreamFacts | null;
  readonly boxes: readonly OtherBox[];
}

const UNKNOWN: Described = { takeover: "unknown: the thread doesn't respond", stream: null, boxes: [] };

export interface ReplicationOptions {
  readonly worker: Worker;
  readonly status: ReplicationStatus;
  readonly settings: ReplicationSettings;
  /** Wakes the thread. */
  readonly waker: Waker;
  /** From the beginning of a pass of the log until it was shown, µs. */
  readonly releaseMemory: HistogramMemory;
  readonly logger: Logger;
}

export class Replication {
  readonly worker: Worker;
  readonly status: ReplicationStatus;
  readonly settings: ReplicationSettings;
  readonly waker: Waker;
  readonly releaseMemory: HistogramMemory;
  readonly releaseTimes: Histogram;
  /** Resolves once the stream continues this box's log. Rejects with a ConfigError where it can't. */
  readonly opened: Promise<void>;
  /** Rejects like `opened`, and never resolves. */
  readonly refused: Promise<never>;
  /** Null until the thread knows. */
  role: Role | null = null;
  /** The box that goes on, once this one has resigned or was fenced; null where none does, or it is unknown. */
  successor: ActiveBox | null = null;
  /** The active box, as a standby hears it; null for none. */
  active: ActiveBox | null = null;
  /** An active box was heard since the start. */
  hasHeard = false;
  private readonly logger: Logger;
  /** Why the thread ships nothing any more; null while it does. */
  private failure: Extract<ReplicationReport, { kind: "failed" | "fenced" }> | null = null;
  private isResigning = false;
  private isStopping = false;
  private hasEnded = false;

  constructor({ worker, status, settings, waker, releaseMemory, logger }: ReplicationOptions) {
    this.worker = worker;
    this.status = status;
    this.settings = settings;
    this.waker = waker;
    this.releaseMemory = releaseMemory;
    this.releaseTimes = new Histogram(releaseMemory);
    this.logger = logger.child({ thread: NAME });
    worker.on("message", (report: ReplicationReport) => {
      if (report.kind === "line") this.logger[report.level](report.text);
      else if (report.kind === "role") this.role = report.role;
      else if (report.kind === "active") {
        this.active = report.active;
        this.hasHeard = true;
      } else if (report.kind === "resigning") this.isResigning = true;
      else if (report.kind === "resigned") this.successor = report.to;
      else if (report.kind === "failed" || report.kind === "fenced") {
        this.failure ??= report;
        if (report.kind === "fenced") this.successor = report.by;
      } else if (report.kind === "refused") this.failure ??= { kind: "failed", error: report.reason };
    });
    worker.once("exit", () => {
      this.hasEnded = true;
    });
    setInterval(() => status.add("gatewayTicks", 1), TICK_MS).unref();
    this.opened = this.next("opened").then(() => {});
    // Without a listener a refusal before `opened` is awaited would end the process.
    this.opened.catch(() => {});
    this.refused = this.opened.then(() => new Promise<never>(() => {}));
    this.refused.catch(() => {});
  }

  /** Resolves with the thread's next report of a kind. @throws ConfigError where it is refused meanwhile, Error where it fails */
  next<K extends "role" | "synced" | "opened">(kind: K): Promise<Extract<ReplicationReport, { kind: K }>> {
    const { worker } = this;
    return new Promise((resolve, reject) => {
      const receive = (report: ReplicationReport): void => {
        if (report.kind === kind) resolve(report as Extract<ReplicationReport, { kind: K }>);
        else if (report.kind === "refused") reject(new ConfigError(`STANDBY_NATS: ${report.reason}`));
        else if (report.kind === "fenced") reject(new FencedStart(`STANDBY_NATS: ${report.error}`));
        else if (report.kind === "failed") reject(new ConfigError(report.error));
        else return;
        worker.off("message", receive);
      };
      worker.on("message", receive);
      worker.once("error", reject);
      worker.once("exit", () => {
        if (!this.isStopping) reject(new ConfigError("the replication thread ended"));
      });
    });
  }

  /** Calls `fail` when the thread reports an error, throws, or ends before `stop`. */
  watch(fail: (thread: string, error: string, isFenced: boolean) => void): void {
    const tell = (): void => {
      if (this.failure !== null) fail(NAME, this.failure.error, this.failure.kind === "fenced");
    };
    tell();
    this.worker.on("message", tell);
    this.worker.on("error", (error) => fail(NAME, error.stack ?? error.message, false));
    this.worker.on("exit", () => {
      if (!this.isStopping) fail(NAME, "the thread ended", false);
    });
  }

  /** A standby's tables are open, and follow the log. */
  follow(): void {
    this.ask({ kind: "follow" });
  }

  /** This box's log is open: the thread ships it. */
  lead({ end, progress, logWaker }: Omit<LeadSetup, "end"> & { readonly end: LogEnd }): void {
    const { exchange, batch, hash } = end;
    this.ask({ kind: "lead", end: { exchange, batch, hash }, progress, logWaker });
  }

  /** This box trades: others may hear that it is active. */
  ready(): void {
    this.ask({ kind: "ready" });
  }

  /** Asks a standby to become active; not again before it has. Resolves with why it stays one; null where it no longer is. */
  async promote(how: Promotion): Promise<string | null> {
    // The thread waits for the nodes within a bound of its own.
    return this.askFor<string | null>({ kind: "promote", how }, null, "the thread has ended", (report) => {
      if (report.kind === "stays") return { value: report.reason };
      return report.kind === "role" ? { value: null } : null;
    });
  }

  /** Asks an active to hand over to a standby; `onResigning` is called before it resolves. */
  async demote(): Promise<{ readonly to: string } | { readonly reason: string }> {
    const missing = { reason: "the thread has ended" };
    return this.askFor<{ readonly to: string } | { readonly reason: string }>(
      { kind: "demote" },
      null,
      missing,
      (report) => (report.kind === "stays" || report.kind === "resigning" ? { value: report } : null),
    );
  }

  /** Calls the listener once this box is to hand over to a standby, which may have been decided before. */
  onResigning(listener: () => void): void {
    if (this.isResigning) listener();
    this.worker.on("message", ({ kind }: ReplicationReport) => {
      if (kind === "resigning") listener();
    });
  }

  /** The stream as it is now, null while the nodes don't respond, and the other boxes. */
  async describe(): Promise<Described> {
    return this.askFor<Described>({ kind: "describe" }, DESCRIBE_MS, UNKNOWN, (report) => {
      if (report.kind !== "stream") return null;
      const { takeover, facts: stream, boxes } = report;
      return { value: { takeover, stream, boxes } };
    });
  }

  private ask(request: ReplicationRequest): void {
    this.worker.postMessage(request);
  }

  /** Resolves with what `read` finds in a report, or with `missing` after the timeout, where there is one. */
  private askFor<T>(
    request: ReplicationRequest,
    ms: number | null,
    missing: T,
    read: (report: ReplicationReport) => { readonly value: T } | null,
  ): Promise<T> {
    if (this.hasEnded) return Promise.resolve(missing);
    return new Promise((resolve) => {
      const end = (value: T): void => {
        clearTimeout(timer);
        this.worker.off("message", receive);
        resolve(value);
      };
      const receive = (report: ReplicationReport): void => {
        const found = read(report);
        if (found !== null) end(found.value);
      };
      const timer = ms === null ? undefined : setTimeout(() => end(missing), ms);
      this.worker.on("message", receive);
      this.ask(request);
    });
  }

  /**
   * Lets the thread ship the rest of the log, within a bound, and ends it. The log's own thread must have ended.
   * @param mayHandOver a standby that is ready goes on, unless that is left to operators
   */
  async stop(mayHandOver: boolean): Promise<void> {
    this.isStopping = true;
    if (this.hasEnded) return;
    const { worker } = this;
    const exited = new Promise((resolve) => worker.once("exit", resolve));
    const handOver = mayHandOver && (this.isResigning || this.settings.takeover === "auto");
    this.ask({ kind: "stop", handOver });
    const timer = setTimeout(() => void worker.terminate(), STOP_MS);
    await exited;
    clearTimeout(timer);
  }
}
