/** What an active box does in the replication thread: ships its log, and opens it once every place has it that must. */
import { setTimeout as delay } from "node:timers/promises";
import { LogFiles } from "../../engine/log/log-files.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import { Release } from "../../engine/replication/release.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { shortHash } from "./beats.ts";
import type { Box } from "./box.ts";
import { OtherLog, Overtaken, RefusedSetup } from "./errors.ts";
import { ALONE_CHECK_MS, KEYS_CHECK_MS, RETRY_MS } from "./limits.ts";
import type { Mailbox } from "./mailbox.ts";
import { Publisher } from "./publisher.ts";
import type { Say } from "./reminder.ts";
import type { ReplicationStatus } from "./replication-status.ts";
import { holdsLog } from "./settings.ts";
import { Shipper } from "./shipper.ts";
import { readStandbyFile, removeStandbyFile, writeStandbyFile } from "./standby-file.ts";
import { StandbyReports } from "./standby-reports.ts";
import type { StreamEnd } from "./stream.ts";
import { StreamWatch } from "./stream-watch.ts";
import type { LeadSetup, ReplicationReport, ReplicationSetup } from "./types.ts";

/** Opens the log's rings up to what every place has that the policy asks for. */
class Gate {
  private readonly release: Release;
  private readonly options: GateOptions;
  /** As of the last change. */
  private shown = -1;
  private wasAlone = false;

  constructor(options: GateOptions) {
    this.options = options;
    const { setup, batch } = options;
    const { ack: policy, lostMs } = setup.settings;
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

interface GateOptions {
  readonly setup: ReplicationSetup;
  readonly status: ReplicationStatus;
  readonly progress: LogProgress;
  readonly logWaker: Waker;
  readonly say: Say;
  /** The stream's last batch. */
  readonly batch: number;
}

export interface ActiveOptions {
  readonly box: Box;
  readonly setup: ReplicationSetup;
  readonly lead: LeadSetup;
  /** True where an operator says that the nodes lost the stream, or that there never was one. */
  readonly isNewStream: boolean;
  readonly status: ReplicationStatus;
  readonly mailbox: Mailbox;
  readonly report: (report: ReplicationReport) => void;
  readonly say: Say;
}

/** Resolves once the gateway says stop and everything is shipped. @throws RefusedSetup, Fenced, BrokenStream, BrokenLog */
export async function lead(options: ActiveOptions): Promise<void> {
  const { box, setup, lead: given, status, mailbox, report, say } = options;
  const { settings, dataDir } = setup;
  const { link, stream } = box;
  const { end, logWaker } = given;
  const info = await stream.open();
  const found = await stream.end(info);
  requireWhole(found, dataDir, options.isNewStream);
  const before = readStandbyFile(dataDir);
  const epoch = Math.max(found.epoch, before?.epoch ?? 0) + 1;
  const remember = (sequence: number): void =>
    writeStandbyFile(dataDir, { role: "active", stream_created_at: info.created, epoch, sequence, keys: "" });
  remember(0);
  const progress = new LogProgress(given.progress);
  const batch = found.position?.batch ?? end.batch;
  const gate = new Gate({ setup, status, progress, logWaker: new Waker(logWaker), say, batch });
  const reports = new StandbyReports(link, settings.name, say, gate.copied);
  reports.expect(end.batch, shortHash(Buffer.from(end.hash)));
  const watch = new StreamWatch({ link, stream, status, monitors: settings.monitors, say });
  const shipper = new Shipper({
    log: new LogFiles({ journal: setup.journalPath, archives: setup.archives }),
    ...{ progress, status, waker: new Waker(setup.waker), allowed: watch.allowed, onShipped: gate.shipped },
    onSend: (last, body) => reports.expectBody(last, body),
    publisher: new Publisher({ link, stream, onUnknown: () => status.add("unknownOutcomes", 1), say }),
  });
  try {
    await shipper.begin(found, epoch, { ...end, hash: Buffer.from(end.hash) });
  } catch (error) {
    // Whoever was faster leads, or led unheard. A box that doesn't fit is what it was.
    if (error instanceof Overtaken || (error instanceof OtherLog && before !== null)) {
      const fresh = { stream_created_at: info.created, epoch: 0, sequence: 0, keys: "" };
      writeStandbyFile(dataDir, { ...(before ?? fresh), role: "standby" });
    } else if (error instanceof RefusedSetup) {
      if (before === null) removeStandbyFile(dataDir);
      else writeStandbyFile(dataDir, before);
    }
    throw error;
  }
  box.beActive(
    () => ({ role: "active", epoch, batch: shipper.position.batch, hash: shortHash(shipper.position.hash) }),
    (beat) => reports.hear(beat.box, beat),
  );
  setInterval(() => {
    const standbys = box.beats.others().filter(({ role }) => role === "standby");
    status.set("keysEqual", standbys.some((standby) => standby.keys_equal) ? 1 : 0);
  }, KEYS_CHECK_MS).unref();
  // What the log has beyond the stream, nobody has seen yet, and nobody may before the others have it.
  if (holdsLog(settings)) {
    await shipper.shipThrough(end.batch);
    await Promise.race([gate.opened(end.batch), box.fenced]);
  }
  report({ kind: "opened" });
  mailbox.on("stop", () => shipper.stop());
  await Promise.race([shipper.run(), watch.run(), box.fenced]);
  // A standby learns at once that the stream has the last batch.
  await box.beats.end();
  remember(shipper.lastSequence);
}

/** In a stream whose messages are gone, another box may have led last. @throws RefusedSetup */
function requireWhole({ position, sequence }: StreamEnd, dataDir: string, isNewStream: boolean): void {
  if (position !== null || sequence === 0 || isNewStream) return;
  if (readStandbyFile(dataDir)?.sequence === sequence) return;
  throw new RefusedSetup("the stream's messages are too old and gone: admin standby promote --stream-is-lost");
}
