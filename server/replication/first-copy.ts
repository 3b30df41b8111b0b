/**
 * Gets an active box's files for a standby whose log the stream doesn't continue: one that is new, or was away for longer
 * than the stream reaches back. It grows in `DATA_DIR/copy/in`, goes on where it was interrupted, and takes the place of this
 * box's files once it is complete and includes their log.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Check } from "typebox/value";
import { hashOf } from "../../engine/log/batch-format.ts";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { openJournal } from "../../engine/log/database.ts";
import type { LogCopy } from "../../engine/log/log-copy.ts";
import { LogFiles } from "../../engine/log/log-files.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { syncPath, writeDurably } from "../../engine/util/durable-file.ts";
import { hashFile } from "../../engine/util/hash-file.ts";
import type { Durability } from "../../engine/util/wal-database.ts";
import {
  filesIn,
  incomingCopy,
  incomingManifest,
  installCopy,
  markReady,
  removeIncoming,
} from "../backup/install-copy.ts";
import { archiveFolder, journalPath, tablesPath } from "../util/data-folder.ts";
import { AskRefused, AskTimeout, ask } from "./asks.ts";
import type { Beat } from "./beats.ts";
import type { Box } from "./box.ts";
import { bytesOf, type CopyFile, CopyManifest, requireRoom } from "./copy-manifest.ts";
import { RefusedSetup, RemovedMessage } from "./errors.ts";
import {
  COPY_BUSY_MS,
  COPY_PATIENCE_MS,
  COPY_POLL_MS,
  COPY_RETRY_MS,
  MAX_COPY_RETRY_MS,
  PIECE_BYTES,
  PIECE_TIMEOUT_MS,
  PIECES_AT_A_TIME,
} from "./limits.ts";
import { Reminder, type Say } from "./reminder.ts";
import { WrongSecret } from "./seal.ts";
import { readStandbyFile, writeStandbyFile } from "./standby-file.ts";
import { beginOf } from "./sync.ts";

interface FirstCopyOptions {
  readonly box: Box;
  readonly dataDir: string;
  readonly durability: Durability;
  readonly log: LogCopy;
  readonly say: Say;
  /** True once this box is to do something else: it then changes nothing any more. */
  readonly isOver: () => boolean;
}

/** The copy is complete, and its files can't take their place: the next start goes on there. */
class NotInstalled extends Error {}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/**
 * Resolves once the stream continues this box's log, at once where it does already.
 * @throws RefusedSetup where the files of the folder aren't the beginning of the active box's, NotInstalled
 */
export async function copyWhereNeeded(options: FirstCopyOptions): Promise<void> {
  const { box, dataDir, log, say, isOver } = options;
  const reminder = new Reminder(say, false);
  let retryMs = COPY_RETRY_MS;
  while (!isOver()) {
    const begin = await beginOfStream(box);
    if (isOver()) return;
    if (begin === null || begin <= log.batch + 1) return removeIncoming(dataDir);
    const active = box.beats.active();
    if (active === null) {
      reminder.remind(`${whyNeeded(log.batch, begin)}, and no box is active that has one`);
      await delay(COPY_POLL_MS);
      continue;
    }
    if (log.batch === 0 && existsSync(tablesPath(dataDir))) {
      throw new RefusedSetup("exchange.db is there without its log: restore a backup of both, or empty the folder");
    }
    try {
      say("info", `${whyNeeded(log.batch, begin)}: getting one from the box ${active.box}`);
      await new Fetch(options, active).run();
    } catch (error) {
      if (error instanceof RefusedSetup || error instanceof NotInstalled) throw error;
      say("warn", `no copy from the box ${active.box}: ${(error as Error).message}`);
      await delay(retryMs);
      retryMs = Math.min(2 * retryMs, MAX_COPY_RETRY_MS);
    }
  }
}

const whyNeeded = (batch: number, begin: number): string =>
  batch === 0
    ? "this box has no log, and needs a copy"
    : `this box's log ends with batch ${batch}, the stream begins with ${begin}: this box needs a copy`;

/** The first batch that the stream has whole; null where it has none. */
async function beginOfStream(box: Box): Promise<number | null> {
  for (;;) {
    const info = await box.stream.find(0);
    if (info === null || info.state.messages === 0) return null;
    try {
      return beginOf(await box.stream.message(info.state.first_seq));
    } catch (error) {
      // It was the oldest of a full stream.
      if (!(error instanceof RemovedMessage)) throw error;
    }
  }
}

class Fetch {
  private readonly options: FirstCopyOptions;
  private readonly active: Pick<Beat, "box" | "epoch">;
  private readonly folder: string;
  private readonly progress: Reminder;
  private fetched = 0;

  constructor(options: FirstCopyOptions, active: Pick<Beat, "box" | "epoch">) {
    this.options = options;
    this.active = active;
    this.folder = incomingCopy(options.dataDir);
    this.progress = new Reminder((_level, text) => options.say("info", text), true);
  }

  /** @throws RefusedSetup, NotInstalled, Error with why there is no copy now */
  async run(): Promise<void> {
    const { box, say, isOver } = this.options;
    const began = systemClock.elapsed();
    await ask(box, { what: "copy", ...this.active });
    const { files, batch } = await this.awaitManifest();
    const there = this.prepare(files);
    const all = bytesOf(files);
    const rest = there === 0 ? "" : `, ${megabytes(there)} of them before`;
    for (const file of files) await this.fetchFile(file, all);
    this.requireOwnLog();
    const { created } = await box.stream.require();
    if (isOver()) return;
    this.install(created);
    const seconds = ((systemClock.elapsed() - began) / 1_000).toFixed(1);
    say("info", `copied ${megabytes(all)} up to batch ${batch} in ${seconds} s${rest}`);
    // The active box deletes it by itself after a while.
    await ask(box, { what: "done", ...this.active }).catch(() => {});
  }

  /** In one go: a box that begins to lead meanwhile finds its own files, or is none that may. @throws NotInstalled */
  private install(created: string): void {
    const { dataDir, durability, log } = this.options;
    const archives = archiveFolder(this.folder);
    for (const folder of [archives, this.folder]) if (existsSync(folder)) syncPath(folder);
    try {
      // It is no box of its own from here on, whatever happens.
      const keys = readStandbyFile(dataDir)?.keys ?? "";
      const { epoch } = this.active;
      writeStandbyFile(dataDir, { role: "standby", stream_created_at: created, epoch, sequence: 0, keys });
      log.replace(() => {
        markReady(dataDir);
        installCopy(dataDir);
        return openJournal(journalPath(dataDir), durability);
      });
    } catch (error) {
      throw new NotInstalled(`the copy can't take the place of this box's files: ${(error as Error).message}`);
    }
  }

  /** Making it takes as long as a backup. */
  private async awaitManifest(): Promise<CopyManifest> {
    for (;;) {
      const manifest: unknown = JSON.parse((await this.get("manifest")).toString());
      if (Check(CopyManifest, manifest)) return manifest;
      if (manifest !== null) throw new Error("it sent something else");
      await delay(COPY_POLL_MS);
    }
  }

  /** Keeps the bytes that an earlier attempt has of the same files, and returns how many. @throws Error where a disk has no room */
  private prepare(files: readonly CopyFile[]): number {
    const { dataDir } = this.options;
    const path = incomingManifest(dataDir);
    const before = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as readonly CopyFile[]) : [];
    const isKept = (file: CopyFile): boolean =>
      before.some(({ name, bytes, sha256 }) => name === file.name && bytes === file.bytes && sha256 === file.sha256);
    const kept = new Set(files.filter(isKept).map(({ name }) => join(this.folder, name)));
    const archives = archiveFolder(this.folder);
    mkdirSync(archives, { recursive: true });
    for (const each of [...filesIn(archives), ...filesIn(this.folder)]) if (!kept.has(each)) rmSync(each);
    const there = files.reduce((sum, { name }) => sum + sizeOf(join(this.folder, name)), 0);
    requireRoom("this box's", this.folder, bytesOf(files) - there);
    const own = archiveFolder(dataDir);
    if (existsSync(own) && statSync(own).dev !== statSync(this.folder).dev) {
      requireRoom("the archives'", own, bytesOf(files.filter(({ name }) => name.startsWith("log/"))));
    }
    writeDurably(path, (append) => append(Buffer.from(JSON.stringify(files))));
    return there;
  }

  /** Goes on behind the last whole piece. @throws Error where it isn't what the manifest says: then it begins anew */
  private async fetchFile(file: CopyFile, all: number): Promise<void> {
    const path = join(this.folder, file.name);
    const there = Math.min(sizeOf(path), file.bytes);
    const begin = there === file.bytes ? there : there - (there % PIECE_BYTES);
    const descriptor = openSync(path, existsSync(path) ? "r+" : "w", 0o600);
    let sha256: string;
    try {
      ftruncateSync(descriptor, begin);
      const hash = hashFile(path, begin);
      this.fetched += begin;
      let at = begin;
      for await (const piece of this.pieces(file, begin)) {
        if (this.options.isOver()) throw new Error("this box does something else now");
        for (let i = 0; i < piece.length; ) i += writeSync(descriptor, piece, i, piece.length - i, at + i);
        hash.update(piece);
        at += piece.length;
        this.fetched += piece.length;
        this.progress.remind(`copied ${megabytes(this.fetched)} of ${megabytes(all)}`);
      }
      fsyncSync(descriptor);
      sha256 = hash.digest("hex");
    } finally {
      closeSync(descriptor);
    }
    if (sha256 === file.sha256) return;
    rmSync(path);
    throw new Error(`${file.name} arrived damaged`);
  }

  /** The file's pieces in their order, some of which are on their way at the same time. */
  private async *pieces({ name, bytes }: CopyFile, begin: number): AsyncGenerator<Buffer> {
    const coming: Promise<Buffer>[] = [];
    let next = begin;
    for (let at = begin; at < bytes; ) {
      for (; coming.length < PIECES_AT_A_TIME && next < bytes; next += PIECE_BYTES) {
        const piece = this.get("piece", `${name} ${next}`);
        // One that fails before its turn is awaited then.
        piece.catch(() => {});
        coming.push(piece);
      }
      const piece = await coming.shift()!;
      if (piece.length !== Math.min(PIECE_BYTES, bytes - at)) throw new Error(`a piece of ${name} has another size`);
      yield piece;
      at += piece.length;
    }
  }

  /** Asks again while there is no response. @throws WrongSecret, Error with what the other box says */
  private async get(what: "manifest" | "piece", detail?: string): Promise<Buffer> {
    const { box } = this.options;
    for (const since = systemClock.elapsed(); ; await delay(COPY_POLL_MS)) {
      try {
        const request = { what, ...this.active, ...(detail === undefined ? {} : { detail }) };
        const { response, context } = await ask(box, request, PIECE_TIMEOUT_MS);
        return box.seal.open(response, context);
      } catch (error) {
        if (error instanceof AskRefused || error instanceof WrongSecret) throw error;
        // Its thread may be busy, or connecting still, or this box's connection broke.
        const patience = error instanceof AskTimeout ? COPY_BUSY_MS : COPY_PATIENCE_MS;
        if (systemClock.elapsed() - since > patience) throw error;
      }
    }
  }

  /** What this box has of the log, the copy has as well. @throws RefusedSetup */
  private requireOwnLog(): void {
    const { end } = this.options.log;
    if (end === null) return;
    const log = new LogFiles({ journal: journalPath(this.folder), archives: archiveFolder(this.folder) });
    try {
      const [body] = log.bodies(end.batch);
      if (body !== undefined && hashOf(body).equals(end.hash)) return;
    } catch (error) {
      if (!(error instanceof BrokenLog)) throw error;
    } finally {
      log.close();
    }
    throw new RefusedSetup(
      `the active box's log doesn't have batch ${end.batch}, with which this box's ends: see what this box has that the other doesn't, then empty its folder but for keys/`,
    );
  }
}

const sizeOf = (path: string): number => (existsSync(path) ? statSync(path).size : 0);
