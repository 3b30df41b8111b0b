/**
 * The thread that makes a copy of an active box's files for standbys that have none, and serves it to them in pieces, sealed
 * under STANDBY_SECRET. It has a connection of its own, since pieces must not keep the log's messages waiting. It ends, and
 * deletes the copy, once everybody who asked for it has it, or when nobody asks any more.
 */
import { closeSync, existsSync, openSync, readdirSync, readSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../engine/util/clock.ts";
import { hashFile } from "../../engine/util/hash-file.ts";
import { lowerPriority } from "../../engine/util/low-priority.ts";
import { backUp } from "../backup/backup.ts";
import { emptyOutgoing, filesIn, outgoingCopy } from "../backup/install-copy.ts";
import { archiveFolder, journalNameOf, journalPath, tablesPath } from "../util/data-folder.ts";
import { answerAsks, type Granter } from "./asks.ts";
import { NatsLink } from "./connection.ts";
import { type CopyFile, type CopyManifest, requireRoom } from "./copy-manifest.ts";
import { COPY_IDLE_MS, COPY_POLL_MS, PIECE_BYTES } from "./limits.ts";
import { Seal } from "./seal.ts";
import type { CopySetup } from "./types.ts";

/** What trades comes first. */
const NICE = 15;
const { settings, dataDir, epoch } = workerData as CopySetup;
const seal = new Seal(settings.secret, settings.name);
const folder = outgoingCopy(dataDir);

/** Null while it is being made. */
let manifest: CopyManifest | null = null;
let failure: string | null = null;
/** Boxes that don't have all of it yet. */
const takers = new Set<string>();
let askedAt = systemClock.elapsed();

async function make(): Promise<CopyManifest> {
  emptyOutgoing(dataDir);
  requireRoom("its", folder, sizeOf(tablesPath(dataDir)) + sizeOf(journalPath(dataDir)) + sizeOfForeign());
  const tables = tablesPath(folder);
  const { sequence, log } = await backUp(dataDir, tables, false);
  if (log === null) throw new Error("it has no log");
  renameSync(join(folder, journalNameOf("exchange.db")), journalPath(folder));
  const archives = existsSync(archiveFolder(folder)) ? readdirSync(archiveFolder(folder)).sort() : [];
  const names = [...archives.map((name) => `log/${name}`), "journal.db", "exchange.db"];
  const files: CopyFile[] = [];
  for (const name of names) {
    files.push(describe(name));
    // Requests that wait get a response.
    await nextTurn();
  }
  return { batch: sequence, files };
}

/** Of archives on another disk: those on this one cost nothing, as they get further names. */
function sizeOfForeign(): number {
  const archives = archiveFolder(dataDir);
  if (!existsSync(archives) || statSync(archives).dev === statSync(folder).dev) return 0;
  return filesIn(archives).reduce((sum, path) => sum + sizeOf(path), 0);
}

/** A file with its WAL. */
const sizeOf = (path: string): number =>
  [path, `${path}-wal`].reduce((sum, each) => sum + (existsSync(each) ? statSync(each).size : 0), 0);

function describe(name: string): CopyFile {
  const path = join(folder, name);
  return { name, bytes: statSync(path).size, sha256: hashFile(path).digest("hex") };
}

function take(ask: Parameters<Granter>[0]): void {
  if (ask.epoch !== epoch) throw new Error(`its copy is of epoch ${epoch}`);
  askedAt = systemClock.elapsed();
}

const grantManifest: Granter = (ask, context) => {
  take(ask);
  if (failure !== null) {
    // Whoever asks again gets another attempt.
    setTimeout(end, COPY_POLL_MS);
    throw new Error(failure);
  }
  takers.add(ask.from);
  return seal.close(Buffer.from(JSON.stringify(manifest)), context);
};

const grantPiece: Granter = (ask, context) => {
  take(ask);
  const detail = ask.detail ?? "";
  const [name, at] = detail.split(" ");
  const file = manifest?.files.find((each) => each.name === name);
  const begin = Number(at);
  if (file === undefined || !Number.isSafeInteger(begin) || begin < 0 || begin >= file.bytes) {
    throw new Error(`its copy has no piece ${detail}`);
  }
  const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, file.bytes - begin));
  const descriptor = openSync(join(folder, file.name), "r");
  try {
    if (readSync(descriptor, piece, 0, piece.length, begin) !== piece.length) throw new Error(`${name} became shorter`);
  } finally {
    closeSync(descriptor);
  }
  return seal.close(piece, context);
};

const grantDone: Granter = (ask) => {
  take(ask);
  takers.delete(ask.from);
  setTimeout(() => {
    if (takers.size === 0) end();
  }, COPY_POLL_MS);
  return Buffer.alloc(0);
};

function end(): void {
  emptyOutgoing(dataDir);
  process.exit(0);
}

lowerPriority(NICE);
parentPort?.postMessage({ loaded: true });
const link = await NatsLink.open(settings, () => {});
answerAsks({ link, settings, seal }, "copy", { manifest: grantManifest, piece: grantPiece, done: grantDone });
setInterval(() => {
  const isMaking = manifest === null && failure === null;
  if (!isMaking && systemClock.elapsed() - askedAt > COPY_IDLE_MS) end();
}, COPY_POLL_MS);
try {
  manifest = await make();
  // Requests that came meanwhile are read later than a timer runs.
  askedAt = systemClock.elapsed();
} catch (error) {
  failure = (error as Error).message;
  emptyOutgoing(dataDir);
  parentPort?.postMessage({ failed: failure });
}
