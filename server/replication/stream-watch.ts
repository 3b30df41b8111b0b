/** Looks at the stream and its nodes while an exchange uses them. */
import { setTimeout as delay } from "node:timers/promises";
import { CHECK_MS, MENDED_MS } from "./limits.ts";
import { checkSync } from "./node-sync.ts";
import type { Say } from "./reminder.ts";
import type { ReplicationStatus } from "./replication-status.ts";
import type { LogStream } from "./stream.ts";

interface StreamWatchOptions {
  readonly stream: LogStream;
  readonly status: ReplicationStatus;
  /** The nodes' monitoring addresses. */
  readonly monitors: readonly string[];
  readonly say: Say;
}

/** While the stream is weaker than it must be, nothing is shipped, and so nothing acknowledged. */
export class StreamWatch {
  private readonly stream: LogStream;
  private readonly status: ReplicationStatus;
  private readonly monitors: readonly string[];
  private readonly say: Say;
  private weakness: string | null = null;
  private isSynced = true;

  constructor({ stream, status, monitors, say }: StreamWatchOptions) {
    this.stream = stream;
    this.status = status;
    this.monitors = monitors;
    this.say = say;
  }

  readonly allowed = async (): Promise<void> => {
    while (this.weakness !== null) await delay(MENDED_MS);
  };

  /** Looks at the stream and the nodes once a minute, for as long as the thread runs. @throws BrokenStream */
  async run(): Promise<never> {
    for (;;) {
      await this.check();
      await delay(this.weakness === null ? CHECK_MS : MENDED_MS, undefined, { ref: false });
    }
  }

  /** @throws BrokenStream where the stream is gone */
  async check(): Promise<void> {
    const { status, say } = this;
    const looked = await this.stream.look();
    if (looked !== null) {
      const { info, weakness } = looked;
      status.set("streamBytes", info.state.bytes);
      if (weakness !== this.weakness) {
        if (weakness === null) say("info", "the stream is as it must be again: shipping goes on");
        else
          say(
            "error",
            `the stream ${this.stream.names.stream} ${weakness}: nothing is acknowledged until that is mended`,
          );
      }
      this.weakness = weakness;
    }
    if (this.monitors.length > 0) await this.checkNodes();
  }

  /** A node that came back with other settings is reported, and stays in use. */
  private async checkNodes(): Promise<void> {
    const { fault, isKnown } = await checkSync(this.monitors);
    if (fault !== null && this.isSynced) this.say("error", fault);
    this.isSynced = fault === null;
    this.status.set("syncChecked", isKnown && fault === null ? 1 : 0);
  }
}
