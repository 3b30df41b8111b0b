/**
 * The replication thread: owns the connection to NATS in both roles. Starts only where STANDBY_NATS is set; a single box loads
 * none of this.
 *
 * 1. connect  2. listen for the other box: which one is active?
 * standby  3. append what the stream has, then what comes  4. until the gateway asks to become active (standby.ts)
 * active   3. find or create the stream, and compare its end with the log's  4. ship, until the gateway says stop (active.ts)
 */
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { readLogEnd } from "../../engine/log/append.ts";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { openJournal } from "../../engine/log/database.ts";
import { DivergedLog, LogCopy } from "../../engine/log/log-copy.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import { assertMessageLayout } from "../../engine/replication/message-format.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { lead } from "./active.ts";
import { Box } from "./box.ts";
import { NatsLink } from "./connection.ts";
import { Copies } from "./copies.ts";
import { BrokenStream, Fenced, Overtaken, RefusedSetup } from "./errors.ts";
import { BEAT_MS, START_HUNG_MS, SURE_MS } from "./limits.ts";
import { Mailbox } from "./mailbox.ts";
import { checkSync } from "./node-sync.ts";
import { Pulse } from "./pulse.ts";
import type { Say } from "./reminder.ts";
import { ReplicationStatus } from "./replication-status.ts";
import { roleOf } from "./role.ts";
import { Standby } from "./standby.ts";
import { readStandbyFile, writeStandbyFile } from "./standby-file.ts";
import { syncLog } from "./sync.ts";
import {
  type CopySetup,
  type Promotion,
  type ReplicationReport,
  type ReplicationSetup,
  type Role,
  type StreamFacts,
  TAKEOVER_READY,
} from "./types.ts";

const setup = workerData as ReplicationSetup;
const { settings, dataDir, journalPath, durability } = setup;
const status = new ReplicationStatus(setup.status);
const mailbox = new Mailbox(parentPort!);

function report(message: ReplicationReport): void {
  parentPort?.postMessage(message);
}

const say: Say = (level, text) => report({ kind: "line", level, text });
function startCopy(epoch: number): Worker {
  const workerData: CopySetup = { settings, dataDir, epoch };
  return new Worker(new URL("./copy-thread.js", import.meta.url), { workerData });
}
const copies = new Copies(startCopy, say);
const end = (): void => void copies.loaded.then(() => process.exit(0));
/** Null before a node accepts it. */
let link: NatsLink | null = null;
let box: Box | null = null;

async function run(): Promise<void> {
  mailbox.on("stop", end);
  link = await NatsLink.open(settings, say);
  if (settings.monitors.length === 0) {
    say("warn", "STANDBY_MONITOR isn't set: nothing says whether the nodes sync each write");
  } else {
    const { fault } = await checkSync(settings.monitors);
    if (fault !== null) throw new RefusedSetup(fault);
  }
  const opened = new Box(link, settings, setup.keys, say);
  box = opened;
  const { beats, stream } = opened;
  mailbox.on("describe", () => {
    opened.lookAtKeys();
    const tell = (facts: StreamFacts | null): void =>
      report({ kind: "stream", facts, boxes: beats.others(), takeover: opened.obstacle() ?? TAKEOVER_READY });
    // A stream that is gone ends the thread elsewhere.
    stream.describe().then(tell, () => tell(null));
  });
  const lost = link.ended().then((why) => {
    throw new BrokenStream(`the connection to NATS ended: ${why}`);
  });
  await Promise.race([lost, beOf(opened)]);
  end();
}

async function beOf(box: Box): Promise<void> {
  const { role, after: ended } = await findRole(box);
  const { how, after } = role === "standby" ? await follow(box) : { how: "", after: ended };
  const pulse = new Pulse(status);
  box.beTakingOver(() => pulse.stillMs < START_HUNG_MS);
  const isOpen = mailbox.next("lead");
  report({ kind: "role", role: "active" });
  const given = await isOpen;
  await lead({ box, setup, lead: given, isNewStream: how !== "", after, pulse, copies, status, mailbox, report, say });
}

/** An active box has everything that the stream has. */
async function findRole(box: Box): Promise<{ readonly role: Role; readonly after: number }> {
  const hasActive = (await box.beats.listen()) !== null;
  const file = readStandbyFile(dataDir);
  // A box that took part knows that there is a stream, even where a node that has just begun doesn't.
  const info = await box.stream.find(file === null ? 0 : SURE_MS);
  const found = info === null ? null : await box.stream.end(info);
  const position = found?.position ?? null;
  const isOver = found?.successor !== null;
  const streamEnd = position === null || found === null ? null : { epoch: found.epoch, batch: position.batch, isOver };
  const stream = info === null ? null : { created: info.created, sequence: info.state.last_seq, end: streamEnd };
  const batch = lastBatch();
  const role = roleOf({ hasActive, file, batch, stream });
  if (role === "active" && info !== null && position !== null && position.batch > batch) {
    const log = new LogCopy(openJournal(journalPath, durability));
    try {
      await syncLog(box.stream, info, log);
    } catch (error) {
      // Another box led unheard.
      if (!(error instanceof DivergedLog) || file === null) throw error;
      writeStandbyFile(dataDir, { ...file, role: "standby" });
      return { role: "standby", after: 0 };
    } finally {
      log.close();
    }
  }
  // Its own first message may still be on its way.
  return { role, after: Math.max(streamEnd?.epoch ?? 0, file?.epoch ?? 0) };
}

/** Of this box's log; 0 for none. Creates nothing. */
function lastBatch(): number {
  if (!existsSync(journalPath)) return 0;
  const journal = openReadOnly(journalPath);
  const last = readLogEnd(journal);
  journal.close();
  return last?.batch ?? 0;
}

/** Resolves with how an operator asked that this box becomes active; its log is closed by then. */
async function follow(box: Box): Promise<{ readonly how: Promotion; readonly after: number }> {
  const log = new LogCopy(openJournal(journalPath, durability));
  const progress = new LogProgress(setup.progress);
  const projector = new Waker(setup.projectorWaker);
  const standby = new Standby({
    box,
    settings,
    dataDir,
    durability,
    log,
    progress,
    projector,
    status,
    mailbox,
    report,
    say,
  });
  mailbox.on("stop", () => {
    // An active that hears it doesn't wait for this box.
    standby.leave();
    box.beGone();
    void Promise.race([box.beats.end(), delay(BEAT_MS)]).then(() => {
      log.close();
      end();
    });
  });
  const promoted = await standby.run();
  mailbox.on("stop", end);
  log.close();
  return promoted;
}

assertMessageLayout();
report({ kind: "loaded" });
run().catch((error: unknown) => {
  const plain = [RefusedSetup, Fenced, BrokenStream, BrokenLog, DivergedLog];
  const isPlain = plain.some((kind) => error instanceof kind);
  const text = error instanceof Error ? (isPlain ? error.message : (error.stack ?? error.message)) : String(error);
  if (error instanceof Fenced || error instanceof Overtaken) {
    const leading = box?.beats.leading() ?? null;
    const by = leading === null ? null : { box: leading.box, url: leading.url };
    report({ kind: "fenced", error: text, by });
  } else if (error instanceof RefusedSetup || error instanceof DivergedLog) report({ kind: "refused", reason: text });
  else report({ kind: "failed", error: text });
  // This box is nothing any more, and says so to nobody.
  void copies.end();
  void link?.nc.close();
});
