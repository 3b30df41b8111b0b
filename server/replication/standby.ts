/** What a standby does in the replication thread: waits for a stream, follows its log, and becomes active when it may. */
import { setTimeout as delay } from "node:timers/promises";
import type { StreamInfo } from "@nats-io/jetstream";
import type { LogCopy } from "../../engine/log/log-copy.ts";
import type { LogProgress } from "../../engine/log/progress.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { systemClock } from "../../engine/util/clock.ts";
import type { Durability } from "../../engine/util/wal-database.ts";
import { cutFolder, tablesPath } from "../util/data-folder.ts";
import { type Beat, shortHash } from "./beats.ts";
import type { Box } from "./box.ts";
import { cutDiverged } from "./diverged.ts";
import { copyWhereNeeded } from "./first-copy.ts";
import { Follower } from "./follower.ts";
import { ACTIVE_CHECK_MS, KEYS_RETRY_MS, LOOK_MS, MENDED_MS, PROMOTE_MS, SUSPICION_MS, UNHEARD_MS } from "./limits.ts";
import type { Mailbox } from "./mailbox.ts";
import { noteDifferences } from "./other-boxes.ts";
import { Reminder, type Say } from "./reminder.ts";
import type { ReplicationStatus } from "./replication-status.ts";
import { onlyByCommand } from "./settings.ts";
import { readStandbyFile, writeStandbyFile } from "./standby-file.ts";
import { reportBatch } from "./standby-reports.ts";
import type { ActiveBox, Promotion, ReplicationReport, ReplicationSettings } from "./types.ts";

export interface StandbyOptions {
  readonly box: Box;
  readonly settings: ReplicationSettings;
  readonly dataDir: string;
  readonly durability: Durability;
  readonly log: LogCopy;
  /** How far the log and the tables of this box are, and what wakes its projector. */
  readonly progress: LogProgress;
  readonly projector: Waker;
  readonly status: ReplicationStatus;
  readonly mailbox: Mailbox;
  readonly report: (report: ReplicationReport) => void;
  readonly say: Say;
}

export class Standby {
  private readonly options: StandbyOptions;
  private readonly reminder: Reminder;
  /** Null before there is a stream. */
  private follower: Follower | null = null;
  private told: ActiveBox | null = null;
  /** Whether this box may become active, while that is being found out. */
  private checking: Promise<string | null> | null = null;
  private looking: Promise<void> | null = null;
  private finding: Promise<StreamInfo | null> | null = null;
  /** When the stream was looked at last without an active box, ms. */
  private lookedAt = Number.NEGATIVE_INFINITY;
  /** The tables are open, and follow the log. */
  private isOpen = false;
  private isPromoted = false;
  /** Another box's files are on their way, where this one's log needs them. */
  private isCopying = false;
  private isLeaving = false;
  /** Where the stream ended once no box that leads was heard, and when that was, ms; null while one is. */
  private silence: { readonly since: number; readonly sequence: number | null } | null = null;
  /** Becomes active. Before `run` nothing does. */
  private promote: (how: Promotion) => void = () => {};
  /** Called once the active box has resigned for this one, while an operator waits for that. */
  private onResigned: (() => void) | null = null;
  /** The settings that differed at the last look. */
  private toldSettings = "";
  /** The fingerprint in standby.json. */
  private rememberedKeys = "";
  private keysAskedAt = Number.NEGATIVE_INFINITY;

  constructor(options: StandbyOptions) {
    this.options = options;
    this.reminder = new Reminder(options.say, true);
  }

  /** Resolves once this box is to become active, with how the operator asked, and the epoch that is over. @throws as Follower.run */
  async run(): Promise<{ readonly how: Promotion; readonly after: number }> {
    const { box, log, report, mailbox } = this.options;
    box.beStandby(
      () => ({
        // Until its tables are open it appends nothing, so it doesn't count.
        role: this.isOpen ? "standby" : "starting",
        epoch: this.follower?.epoch ?? 0,
        batch: log.batch,
        hash: shortHash(log.end?.hash ?? null),
        hears: box.beats.hearsLeading,
      }),
      (beat) => {
        // A box that hung may say for a moment that it is still active.
        if (beat.epoch < (this.follower?.epoch ?? 0)) return;
        const { status } = this.options;
        status.set("activeBatch", beat.batch);
        status.set("epoch", beat.epoch);
        this.follower?.hear(beat);
        void this.compareKeys(beat);
      },
    );
    const watch = setInterval(() => {
      this.tellActive();
      this.compareOthers();
      this.lookWithout();
      this.markSilence();
      this.suspect();
    }, ACTIVE_CHECK_MS);
    const promoted = new Promise<Promotion>((resolve) => {
      this.promote = resolve;
    });
    box.obstacle = () => this.obstacle();
    mailbox.on("promote", ({ how }) => void this.answer(how));
    report({ kind: "role", role: "standby" });
    const following = this.follow();
    // Before there is a follower nobody awaits it once this box is promoted.
    following.catch(() => {});
    const how = await Promise.race([promoted, following.then(() => promoted)]);
    clearInterval(watch);
    this.isPromoted = true;
    const after = this.follower?.epoch ?? 0;
    this.follower?.stop();
    // Whatever it is appending goes before the log is closed. Nodes that just went silent keep nobody waiting.
    if (this.follower !== null) await Promise.race([following.catch(() => {}), delay(PROMOTE_MS)]);
    return { how, after };
  }

  /** This box stops: it reports nothing more. */
  leave(): void {
    this.isOpen = false;
    this.promote = () => {};
    this.isLeaving = true;
    this.follower?.stop();
  }

  /** Resolves once the follower was stopped. */
  private async follow(): Promise<void> {
    const { progress, mailbox, report } = this.options;
    await this.awaitStream();
    if (this.isPromoted) return;
    const { box, dataDir, durability, log, say } = this.options;
    this.isCopying = true;
    const isOver = (): boolean => this.isPromoted || this.isLeaving;
    await copyWhereNeeded({ box, dataDir, durability, log, say, isOver });
    this.isCopying = false;
    if (this.isPromoted || this.isLeaving) return;
    const follower = this.createFollower();
    this.follower = follower;
    // The tables need a first batch: it has the exchange's number.
    await follower.run(() => progress.committedBatch > 0);
    if (this.isPromoted || this.isLeaving) return;
    const isOpen = mailbox.next("follow");
    report({ kind: "synced", through: progress.committedBatch });
    await isOpen;
    this.isOpen = true;
    this.tellBatch();
    await follower.run();
  }

  private async awaitStream(): Promise<void> {
    const { box, log, say } = this.options;
    const { stream } = box.stream.names;
    const reminder = new Reminder(say, false);
    while (!this.isPromoted) {
      if ((await box.stream.find(0)) !== null) return;
      reminder.remind(
        log.batch === 0
          ? `this box has no log, and the nodes have no stream ${stream}: waiting for the box that has the exchange. To begin a new exchange here: npm run admin -- standby promote --first`
          : `the nodes have no stream ${stream}: waiting for the box that was active. If they lost it, and no other box has a later log: npm run admin -- standby promote --stream-is-lost`,
      );
      await delay(MENDED_MS);
    }
  }

  private async cut(info: StreamInfo, known: number): Promise<void> {
    const { box, dataDir, log, progress, status, say } = this.options;
    // Tables that are open may have more than the stream confirmed: they were an active box's.
    const shared = this.isOpen ? Math.max(known, progress.projectedBatch) : known;
    const tables = this.isOpen ? null : tablesPath(dataDir);
    const folder = cutFolder(dataDir);
    const cut = await cutDiverged({ stream: box.stream, info, log, known: shared, folder, tables });
    status.add("cutBatches", cut.last - cut.first + 1);
    say("warn", `this box's log went on separately: cut batches ${cut.first} to ${cut.last}, which are in ${cut.path}`);
  }

  private createFollower(): Follower {
    const { box, dataDir, log, progress, projector, status, say } = this.options;
    const { link, stream } = box;
    return new Follower({
      cut: (info, known) => this.cut(info, known),
      onResigned: (successor) => this.hearResigned(successor),
      ...{ link, stream, log, say },
      epoch: readStandbyFile(dataDir)?.epoch ?? 0,
      onEpoch: (last, created) => {
        const keys = readStandbyFile(dataDir)?.keys ?? "";
        writeStandbyFile(dataDir, { role: "standby", stream_created_at: created, epoch: last, sequence: 0, keys });
      },
      onConfirmed: ({ batch, records, at }) => {
        progress.commit({ batch, records, at });
        projector.wake();
      },
      onCommit: (end) => {
        status.set("batch", end.batch);
        if (this.isOpen) this.tellBatch();
      },
    });
  }

  private tellBatch(): void {
    const { box, settings, log } = this.options;
    if (log.end !== null) reportBatch(box.link, settings.name, settings.box, log.end);
  }

  /** Tells the gateway which box is active whenever that changes. */
  private tellActive(): void {
    const { told } = this;
    const active = this.options.box.beats.active();
    if (active?.box === told?.box && active?.url === told?.url) return;
    this.told = active === null ? null : { box: active.box, url: active.url };
    this.options.report({ kind: "active", active: this.told });
  }

  /** Says which settings aren't the active box's, once. */
  private compareOthers(): void {
    const { box, status, say } = this.options;
    const from = box.beats.active()?.box;
    const active = box.beats.others().filter(({ role, box: name }) => role === "active" && name === from);
    noteDifferences(status, active);
    if (active.length === 0) return;
    const text = active[0]!.settings_differ.join(", ");
    if (text !== "" && text !== this.toldSettings)
      say("warn", `settings that must be the same on both boxes aren't those of the box ${from}: ${text}`);
    this.toldSettings = text;
  }

  /** Gets the active box's keys where this one has others. */
  private async compareKeys({ box: from, keys, epoch }: Beat): Promise<void> {
    const { box, status, say } = this.options;
    this.rememberKeys(keys);
    const isEqual = keys === box.keysPrint;
    status.set("keysEqual", isEqual ? 1 : 0);
    const now = systemClock.elapsed();
    // The log must be the active's first: a box that was started by mistake loses no keys.
    const isFollowing = this.options.progress.committedBatch > 0;
    if (isEqual || keys === "" || !isFollowing || now - this.keysAskedAt < KEYS_RETRY_MS) return;
    this.keysAskedAt = now;
    try {
      await box.fetchKeys({ box: from, epoch });
      say("info", `the keys are those of the box ${from} now`);
    } catch (error) {
      say("error", `the box ${from} has other keys, and they can't be fetched: ${(error as Error).message}`);
    }
  }

  /** Also after a restart this box knows whether it has the active's keys. */
  private rememberKeys(keys: string): void {
    const { dataDir } = this.options;
    if (keys === "" || keys === this.rememberedKeys) return;
    const file = readStandbyFile(dataDir);
    // Before it has followed anybody, it is no standby yet.
    if (file?.role !== "standby") return;
    writeStandbyFile(dataDir, { ...file, keys });
    this.rememberedKeys = keys;
  }

  // ---------------------------------------------------------------- promotion

  /** One request at a time: the gateway sends no second one before it has the response. */
  private async answer(how: Promotion): Promise<void> {
    while (this.checking !== null) await this.checking;
    const reason = await this.check(how);
    if (reason === null) this.promote(how);
    else this.options.report({ kind: "stays", reason });
  }

  /** One check at a time. Resolves with what speaks against becoming active; null where nothing does. */
  private async check(how: Promotion): Promise<string | null> {
    this.checking = this.whyNot(how).catch((error: unknown) => String((error as Error).message));
    const reason = await this.checking;
    this.checking = null;
    return reason;
  }

  /** The epoch is over. This box goes on where it is named, also after a restart. */
  private hearResigned(successor: string): void {
    const { settings } = this.options;
    if (successor !== settings.box || this.isPromoted) return;
    if (this.onResigned !== null) return this.onResigned();
    const reason = this.whyNotKeys();
    if (reason === null) this.promote("");
    else this.reminder.remind(`the active box resigned for this one, which can't go on: ${reason}`);
  }

  /** A box that leads would have been heard: this one goes on, where that isn't left to operators. */
  private suspect(): void {
    const { box, settings, status, say } = this.options;
    const may = settings.takeover === "auto" && this.isOpen && this.checking === null && !this.isPromoted;
    if (!may || !box.beats.isSilent || !this.isLongSilent) return;
    void this.check("").then((reason) => {
      // What was heard or written meanwhile comes first.
      if (this.isPromoted || !box.beats.isSilent || (reason === null && this.hasGrown())) return;
      const unknown = reason === null && this.lacksKeys ? LACKS_KEYS : null;
      reason ??= unknown;
      if (reason !== null) return this.reminder.remind(`no box is active, and this one can't take over: ${reason}`);
      say("warn", `no active box was heard for ${SUSPICION_MS / 1_000} s: taking over`);
      status.add("takeovers", 1);
      this.promote("");
    });
  }

  /** Notes where the stream ends soon after the last beat of a box that leads: one that lives writes to it. */
  private markSilence(): void {
    const { stream, beats } = this.options.box;
    if (!this.isOpen || beats.hearsLeading) {
      this.silence = null;
      return;
    }
    if (this.silence !== null) return;
    const since = systemClock.elapsed();
    const silence = { since, sequence: null };
    this.silence = silence;
    void stream.find(0).then(
      (info) => {
        if (this.silence === silence) this.silence = { since, sequence: info?.state.last_seq ?? 0 };
      },
      () => {
        if (this.silence === silence) this.silence = null;
      },
    );
  }

  private get isLongSilent(): boolean {
    const { silence } = this;
    return silence?.sequence != null && systemClock.elapsed() - silence.since >= SUSPICION_MS - UNHEARD_MS;
  }

  /** True where a box that isn't heard has written to the stream meanwhile: then the silence begins anew. */
  private hasGrown(): boolean {
    const sequence = this.follower?.sequence ?? 0;
    if (this.silence?.sequence === sequence) return false;
    this.silence = { since: systemClock.elapsed(), sequence };
    return true;
  }

  /** True where this box never knew the keys of a box that led: by itself it doesn't begin with others. */
  private get lacksKeys(): boolean {
    return (readStandbyFile(this.options.dataDir)?.keys ?? "") === "";
  }

  /** Only an active's beats say that the stream has something new. */
  private lookWithout(): void {
    const now = systemClock.elapsed();
    if (!this.isOpen || now - this.lookedAt < LOOK_MS || this.options.box.beats.active() !== null) return;
    this.lookedAt = now;
    // Nodes that don't respond are asked once at a time.
    this.looking ??= (this.follower?.look() ?? Promise.resolve())
      .catch(() => {})
      .finally(() => {
        this.looking = null;
      });
  }

  /** The active box stops in order, and ends its epoch; resolves with why it doesn't. */
  private async askToResign(active: Beat): Promise<string | null> {
    if (!this.isOpen) return "this box is starting: try again";
    const wrong = this.whyNotKeys();
    if (wrong !== null) return wrong;
    const resigned = new Promise<null>((resolve) => {
      this.onResigned = () => resolve(null);
    });
    try {
      await this.options.box.askToResign(active);
      const isSaid = (await within(resigned, PROMOTE_MS)) === null;
      return isSaid
        ? null
        : `the box ${active.box} said that it would resign, and didn't within ${PROMOTE_MS / 1_000} s`;
    } catch (error) {
      return `the box ${active.box} doesn't resign: ${(error as Error).message}`;
    } finally {
      this.onResigned = null;
    }
  }

  /** Resolves with what speaks against becoming active; null where nothing does. */
  private async whyNot(how: Promotion): Promise<string | null> {
    const { box, log } = this.options;
    await box.beats.echo();
    const active = box.beats.active();
    if (active !== null && how === "") return this.askToResign(active);
    const reason = this.whyNotNow();
    if (reason !== null) return reason;
    // One request at a time, however long the nodes are silent.
    this.finding ??= box.stream.find().finally(() => {
      this.finding = null;
    });
    const info = await within(this.finding, PROMOTE_MS);
    if (info === undefined) return SILENT;
    if (this.isCopying)
      return "this box has no log that the stream continues: it waits for a copy of the active box's files";
    const isLost = info === null || info.state.messages === 0;
    const wrong = wrongWay(how, isLost, log.batch > 0) ?? this.whyNotKeys();
    if (wrong !== null || isLost) return wrong ?? this.whyNotNow();
    const { follower } = this;
    if (follower === null) return "this box hasn't found the stream yet: try again";
    if ((await within(follower.sync(), PROMOTE_MS)) === undefined) return SILENT;
    if (log.batch === 0) return "this box has no log yet";
    // Another one may have become active meanwhile.
    return this.whyNotNow();
  }

  /** What would speak against a takeover by itself now. */
  private obstacle(): string | null {
    if (!this.isOpen) return this.isCopying ? "it waits for a copy of the active box's files" : "it is starting";
    return this.whyNotKeys() ?? (this.lacksKeys ? LACKS_KEYS : null) ?? onlyByCommand(this.options.settings);
  }

  private whyNotKeys(): string | null {
    const { box, dataDir } = this.options;
    const keys = readStandbyFile(dataDir)?.keys ?? "";
    if (keys === "" || keys === box.keysPrint) return null;
    return "this box has other keys than the box that it followed: copy that one's keys/ here first";
  }

  private whyNotNow(): string | null {
    const { beats } = this.options.box;
    const leading = beats.leading();
    if (leading !== null) return `the box ${leading.box} is active, or about to be: stop it first`;
    return beats.hearsItself
      ? null
      : "this box has no connection to NATS, so it can't tell whether another one is active";
  }
}

const SILENT = "the nodes don't respond";
const LACKS_KEYS = "it doesn't have the active box's keys yet";

function wrongWay(how: Promotion, isLost: boolean, hasLog: boolean): string | null {
  if (!isLost) return how === "" ? null : `the stream is there: without --${how}`;
  if (hasLog && how !== "stream-is-lost")
    return "the nodes lost the stream: --stream-is-lost begins one with this box's log; make sure that no other box has a later one";
  if (!hasLog && how !== "first") return "this box has no log: --first begins a new exchange";
  return null;
}

/** Undefined where it takes longer. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const timeout = new AbortController();
  const late = delay(ms, undefined, { signal: timeout.signal }).catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    timeout.abort();
  }
}
