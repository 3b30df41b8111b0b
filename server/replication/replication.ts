/** The gateway's side of the replication thread: its lines in the program's log, its failures, its stop. */
import type { Worker } from "node:worker_threads";
import type { Histogram } from "../../engine/util/histogram.ts";
import { ConfigError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { DESCRIBE_MS, STOP_MS } from "./limits.ts";
import type { ReplicationStatus } from "./replication-status.ts";
import type { ReplicationReport, ReplicationRequest, ReplicationSettings, StreamFacts } from "./types.ts";

const NAME = "replication";

export interface ReplicationOptions {
  readonly worker: Worker;
  readonly status: ReplicationStatus;
  readonly settings: ReplicationSettings;
  /** From the beginning of a pass of the log until it was shown, µs. */
  readonly releaseTimes: Histogram;
  readonly logger: Logger;
}

export class Replication {
  readonly worker: Worker;
  readonly status: ReplicationStatus;
  readonly settings: ReplicationSettings;
  readonly releaseTimes: Histogram;
  /** Resolves once the stream continues this box's log. Rejects with a ConfigError where it can't. */
  readonly opened: Promise<void>;
  private readonly logger: Logger;
  private isStopping = false;
  private hasEnded = false;

  constructor({ worker, status, settings, releaseTimes, logger }: ReplicationOptions) {
    this.worker = worker;
    this.status = status;
    this.settings = settings;
    this.releaseTimes = releaseTimes;
    this.logger = logger.child({ thread: NAME });
    this.opened = new Promise((resolve, reject) => {
      worker.on("message", (report: ReplicationReport) => {
        if (report.kind === "opened") resolve();
        else if (report.kind === "refused") reject(new ConfigError(`STANDBY_NATS: ${report.reason}`));
        else if (report.kind === "line") this.logger[report.level](report.text);
      });
    });
    // Without a listener a refusal before `opened` is awaited would end the process.
    this.opened.catch(() => {});
    worker.once("exit", () => {
      this.hasEnded = true;
    });
  }

  /** Calls `fail` when the thread reports an error, throws, or ends before `stop`. */
  watch(fail: (thread: string, error: string) => void): void {
    this.worker.on("message", (report: ReplicationReport) => {
      if (report.kind === "failed") fail(NAME, report.error);
    });
    this.worker.on("error", (error) => fail(NAME, error.stack ?? error.message));
    this.worker.on("exit", () => {
      if (!this.isStopping) fail(NAME, "the thread ended");
    });
  }

  /** The stream as it is now; null while the nodes don't respond. */
  async describe(): Promise<StreamFacts | null> {
    if (this.hasEnded) return null;
    return new Promise((resolve) => {
      const end = (facts: StreamFacts | null): void => {
        clearTimeout(timer);
        this.worker.off("message", receive);
        resolve(facts);
      };
      const receive = (report: ReplicationReport): void => {
        if (report.kind === "stream") end(report.facts);
      };
      const timer = setTimeout(() => end(null), DESCRIBE_MS);
      this.worker.on("message", receive);
      this.ask("describe");
    });
  }

  private ask(request: ReplicationRequest): void {
    this.worker.postMessage(request);
  }

  /** Lets the thread ship the rest of the log, within a bound, and ends it. The log's own thread must have ended. */
  async stop(): Promise<void> {
    this.isStopping = true;
    if (this.hasEnded) return;
    const { worker } = this;
    const exited = new Promise((resolve) => worker.once("exit", resolve));
    this.ask("stop");
    const timer = setTimeout(() => void worker.terminate(), STOP_MS);
    await exited;
    clearTimeout(timer);
  }
}
