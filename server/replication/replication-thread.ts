/**
 * The replication thread: owns the connection to NATS, and the cursor up to which the log may be shown. Starts only where
 * STANDBY_NATS is set; a single box loads none of this.
 *
 * 1. connect  2. find or create the stream  3. compare its end with the log's  4. ship, until the gateway says stop
 */
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { LogFiles } from "../../engine/log/log-files.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import { assertMessageLayout } from "../../engine/replication/message-format.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { NatsLink } from "./connection.ts";
import { BrokenStream, Fenced, RefusedSetup } from "./errors.ts";
import { CHECK_MS, MENDED_MS } from "./limits.ts";
import { checkSync } from "./node-sync.ts";
import { Publisher } from "./publisher.ts";
import type { Say } from "./reminder.ts";
import { ReplicationStatus } from "./replication-status.ts";
import { holdsLog } from "./settings.ts";
import { Shipper } from "./shipper.ts";
import { LogStream } from "./stream.ts";
import type { ReplicationReport, ReplicationRequest, ReplicationSetup } from "./types.ts";

const setup = workerData as ReplicationSetup;

function report(message: ReplicationReport): void {
  parentPort?.postMessage(message);
}

const say: Say = (level, text) => report({ kind: "line", level, text });

/** While the stream is weaker than it must be, nothing is shipped, and so nothing acknowledged. */
class StreamWatch {
  private readonly link: NatsLink;
  private readonly stream: LogStream;
  private readonly status: ReplicationStatus;
  private weakness: string | null = null;
  private isSynced = true;

  constructor(link: NatsLink, stream: LogStream, status: ReplicationStatus) {
    this.link = link;
    this.stream = stream;
    this.status = status;
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
    const { status } = this;
    const looked = await this.stream.look();
    if (looked !== null) {
      const { info, weakness } = looked;
      status.set("streamBytes", info.state.bytes);
      status.set("leaderIsLocal", info.cluster?.leader === this.link.node ? 1 : 0);
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
    if (setup.settings.monitors.length > 0) await this.checkNodes();
  }

  /** A node that came back with other settings is reported, and stays in use. */
  private async checkNodes(): Promise<void> {
    const { fault, isKnown } = await checkSync(setup.settings.monitors);
    if (fault !== null && this.isSynced) say("error", fault);
    this.isSynced = fault === null;
    this.status.set("syncChecked", isKnown && fault === null ? 1 : 0);
  }
}

async function run(): Promise<void> {
  const { settings, end } = setup;
  const status = new ReplicationStatus(setup.status);
  const link = await NatsLink.open(settings, say);
  if (settings.monitors.length === 0) {
    say("warn", "STANDBY_MONITOR isn't set: nothing says whether the nodes sync each write");
  } else {
    const { fault } = await checkSync(settings.monitors);
    if (fault !== null) throw new RefusedSetup(fault);
  }
  const stream = new LogStream(link, settings.name, settings.replicas, say);
  const info = await stream.open();
  const watch = new StreamWatch(link, stream, status);
  const shipper = new Shipper({
    log: new LogFiles({ journal: setup.journalPath, archives: setup.archives }),
    progress: new LogProgress(setup.progress),
    waker: new Waker(setup.waker),
    logWaker: new Waker(setup.logWaker),
    publisher: new Publisher({ link, stream, onUnknown: () => status.add("unknownOutcomes", 1), say }),
    status,
    allowed: watch.allowed,
  });
  await shipper.begin(await stream.end(info), { ...end, hash: Buffer.from(end.hash) });
  // What the log has beyond the stream, nobody has seen yet, and nobody may before the nodes have it.
  if (holdsLog(settings)) await shipper.shipThrough(end.batch);
  report({ kind: "opened" });
  parentPort?.on("message", (request: ReplicationRequest) => {
    if (request === "stop") shipper.stop();
    // A stream that is gone ends the thread through the shipper or the watch.
    else
      stream.describe().then(
        (facts) => report({ kind: "stream", facts }),
        () => report({ kind: "stream", facts: null }),
      );
  });
  const lost = link.ended().then((why) => {
    throw new BrokenStream(`the connection to NATS ended: ${why}`);
  });
  await Promise.race([shipper.run(), watch.run(), lost]);
  process.exit(0);
}

assertMessageLayout();
report({ kind: "loaded" });
run().catch((error: unknown) => {
  const isPlain = [RefusedSetup, Fenced, BrokenStream, BrokenLog].some((kind) => error instanceof kind);
  const text = error instanceof Error ? (isPlain ? error.message : (error.stack ?? error.message)) : String(error);
  if (error instanceof RefusedSetup) report({ kind: "refused", reason: text });
  else report({ kind: "failed", error: text });
});
