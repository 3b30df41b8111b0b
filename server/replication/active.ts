/** What an active box does in the replication thread: ships its log, and opens it once every place has it that must. */
import { LogFiles } from "../../engine/log/log-files.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { shortHash } from "./beats.ts";
import type { Box } from "./box.ts";
import type { Copies } from "./copies.ts";
import { OtherLog, Overtaken, RefusedSetup } from "./errors.ts";
import { Gate } from "./gate.ts";
import { LeaderPlace } from "./leader-place.ts";
import { BEAT_MS, HUNG_MS, KEYS_CHECK_MS, READY_MS, START_HUNG_MS } from "./limits.ts";
import type { Mailbox } from "./mailbox.ts";
import { noteDifferences } from "./other-boxes.ts";
import { Publisher } from "./publisher.ts";
import type { Pulse } from "./pulse.ts";
import type { Say } from "./reminder.ts";
import type { ReplicationStatus } from "./replication-status.ts";
import { holdsLog, onlyByCommand } from "./settings.ts";
import { Shipper } from "./shipper.ts";
import { readStandbyFile, removeStandbyFile, type StandbyFile, writeStandbyFile } from "./standby-file.ts";
import { StandbyReports } from "./standby-reports.ts";
import type { StreamEnd } from "./stream.ts";
import { StreamWatch } from "./stream-watch.ts";
import { Succession } from "./succession.ts";
import type { LeadSetup, OtherBox, ReplicationReport, ReplicationSetup } from "./types.ts";

export interface ActiveOptions {
  readonly box: Box;
  readonly setup: ReplicationSetup;
  readonly lead: LeadSetup;
  /** True where an operator says that the nodes lost the stream, or that there never was one. */
  readonly isNewStream: boolean;
  /** Of its files, for others. */
  readonly copies: Copies;
  /** The epoch that was over when this box decided to lead. */
  readonly after: number;
  /** The gateway's. */
  readonly pulse: Pulse;
  readonly status: ReplicationStatus;
  readonly mailbox: Mailbox;
  readonly report: (report: ReplicationReport) => void;
  readonly say: Say;
}

const NOTHING = Buffer.alloc(0);

/** Resolves once the gateway says stop and everything is shipped, and a standby goes on where it is asked to. @throws RefusedSetup, Fenced, BrokenStream, BrokenLog */
export async function lead(options: ActiveOptions): Promise<void> {
  const { box, setup, lead: given, status, mailbox, report, say } = options;
  const { settings, dataDir } = setup;
  const { link, stream } = box;
  const { end, logWaker } = given;
  const info = await stream.open();
  const found = await stream.end(info);
  const before = readStandbyFile(dataDir);
  requireWhole(found, before, options.isNewStream);
  const refuse = (error: unknown): never => {
    rememberRefused(error, before, { dataDir, created: info.created });
    throw error;
  };
  if (!options.isNewStream && found.epoch > options.after) {
    refuse(new Overtaken(`another box leads meanwhile, in epoch ${found.epoch}`));
  }
  const epoch = Math.max(found.epoch, before?.epoch ?? 0) + 1;
  const own = { stream_created_at: info.created, epoch, sequence: 0 };
  let keys = "";
  const remember = (sequence: number): void => {
    keys = box.keysPrint;
    writeStandbyFile(dataDir, { ...own, role: "active", sequence, keys });
  };
  remember(0);
  const progress = new LogProgress(given.progress);
  const batch = found.position?.batch ?? end.batch;
  const gate = new Gate({ settings, status, progress, logWaker: new Waker(logWaker), say, batch });
  const reports = new StandbyReports(link, settings.name, say, gate.copied);
  reports.expect(end.batch, shortHash(Buffer.from(end.hash)));
  const watch = new StreamWatch({ stream, status, monitors: settings.monitors, say });
  const shipper = new Shipper({
    log: new LogFiles({ journal: setup.journalPath, archives: setup.archives }),
    ...{ progress, status, waker: new Waker(setup.waker), allowed: watch.allowed, onShipped: gate.shipped },
    onSend: (last, body) => reports.expectBody(last, body),
    publisher: new Publisher({ link, stream, onUnknown: () => status.add("unknownOutcomes", 1), say }),
  });
  await shipper.begin(found, epoch, { ...end, hash: Buffer.from(end.hash) }).catch(refuse);
  const succession = new Succession({
    ...{ box, reports },
    onAccept: (successor) => {
      say("info", `handing over to the box ${successor}`);
      report({ kind: "resigning", to: successor });
    },
  });
  box.obstacle = () => succession.obstacle() ?? onlyByCommand(settings);
  const roleNow = watchGateway(mailbox, options.pulse);
  box.beActive(epoch, {
    own: () => {
      const role = roleNow();
      const { batch, hash } = shipper.position;
      return role === null ? null : { role, epoch, batch, hash: shortHash(hash) };
    },
    onStandby: (beat) => reports.hear(beat.box, beat),
    onLeaving: (beat) => {
      const isOther = ({ role, box: name }: OtherBox): boolean => role === "standby" && name !== beat.box;
      if (reports.forget(beat.box) && !box.beats.others().some(isOther)) gate.left();
    },
    resign: async (ask) => {
      if (ask.epoch !== epoch) throw new Error(`it is in epoch ${epoch} by now`);
      const since = systemClock.elapsed();
      // A box that hung reads first what came meanwhile, and is fenced where another one is active.
      await link.nc.flush();
      if (systemClock.elapsed() - since > READY_MS) throw new Error("it was cut off from the nodes for a moment");
      await succession.accept(ask.from);
      return NOTHING;
    },
    copy: (ask) => {
      if (ask.epoch !== epoch) throw new Error(`it is in epoch ${epoch} by now`);
      options.copies.begin(ask.from, epoch);
      return NOTHING;
    },
  });
  mailbox.on("demote", () => {
    succession.accept(null).catch((error: Error) => report({ kind: "stays", reason: error.message }));
  });
  // A standby whose beats are lost may not hear this box's either: the stream says that it is there.
  if (settings.takeover === "auto")
    setInterval(() => shipper.sayAlive(box.beats.hasCompany && !box.beats.hearsStandby), BEAT_MS).unref();
  setInterval(() => {
    const standbys = box.beats.others().filter(({ role }) => role === "standby");
    status.set("keysEqual", standbys.some((standby) => standby.keys_equal) ? 1 : 0);
    noteDifferences(status, standbys);
    try {
      if (box.keysPrint !== keys) remember(0);
    } catch (error) {
      say("warn", `standby.json can't be written: ${(error as Error).message}`);
    }
  }, KEYS_CHECK_MS).unref();
  // What the log has beyond the stream, nobody has seen yet, and nobody may before the others have it.
  if (holdsLog(settings)) {
    await shipper.shipThrough(end.batch);
    await Promise.race([gate.opened(end.batch), box.fenced]);
  }
  report({ kind: "opened" });
  let handsOver = false;
  mailbox.on("stop", (stop) => {
    handsOver = stop.handOver;
    shipper.stop();
  });
  await Promise.race([shipper.run(), watch.run(), new LeaderPlace(box, status, say).run(), box.fenced]);
  const heir = handsOver ? await succession.heir(shipper.position.batch) : null;
  if (heir === null) {
    // A standby learns at once that the stream has the last batch.
    await box.beats.end();
    remember(shipper.lastSequence);
    return;
  }
  // Nobody takes it for the active one from here on.
  box.beGone();
  await box.beats.end();
  await shipper.resign(heir.box);
  say("info", `resigned: the box ${heir.box} goes on`);
  report({ kind: "resigned", to: { box: heir.box, url: heir.url } });
  try {
    writeStandbyFile(dataDir, { ...own, role: "standby", keys: box.keysPrint });
  } catch (error) {
    // A full disk may be why it resigned: the stream says it, too.
    say("warn", `standby.json can't be written: ${(error as Error).message}`);
  }
}

/** Returns what this box says that it is: nothing while its gateway hangs, which says "ready" first. */
function watchGateway(mailbox: Mailbox, pulse: Pulse): () => "active" | "taking_over" | null {
  let isServing = false;
  mailbox.on("ready", () => {
    isServing = true;
  });
  return () => {
    if (pulse.stillMs >= (isServing ? HUNG_MS : START_HUNG_MS)) return null;
    return isServing ? "active" : "taking_over";
  };
}

/** Whoever was faster leads, or led unheard: this box follows. One that doesn't fit is what it was. */
function rememberRefused(
  error: unknown,
  before: StandbyFile | null,
  { dataDir, created }: { readonly dataDir: string; readonly created: string },
): void {
  if (error instanceof Overtaken || (error instanceof OtherLog && before !== null)) {
    const fresh = { stream_created_at: created, epoch: 0, sequence: 0, keys: "" };
    writeStandbyFile(dataDir, { ...(before ?? fresh), role: "standby" });
  } else if (error instanceof RefusedSetup) {
    if (before === null) removeStandbyFile(dataDir);
    else writeStandbyFile(dataDir, before);
  }
}

/** In a stream whose messages are gone, another box may have led last. @throws RefusedSetup */
function requireWhole({ position, sequence }: StreamEnd, before: StandbyFile | null, isNewStream: boolean): void {
  if (position !== null || sequence === 0 || isNewStream) return;
  if (before?.sequence === sequence) return;
  throw new RefusedSetup("the stream's messages are too old and gone: admin standby promote --stream-is-lost");
}
