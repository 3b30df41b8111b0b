/**
 * The form of an archive: the batches of one day (UTC) in a compressed file that never changes, and its description. The
 * archive writes both, and readers find batches with the description; never decides what is archived.
 *
 *   2026-11-22.log.gz   gzip members one after the other; any gunzip reads them as one file
 *     the first         the opening (opening.ts) in MessagePack: the books before the first batch
 *     the others        batches, up to about 1 MiB: u32 length, body (batch-format.ts)
 *   2026-11-22.json     the description. Written last: without it an archive isn't complete
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BrokenLog, requireFile } from "./broken-log.ts";

export const ARCHIVE_FORMAT = 1;
/** The bytes before each body. */
export const LENGTH_BYTES = 4;

const DAY_MS = 86_400_000;
const DESCRIPTION = /^(\d{4}-\d{2}-\d{2})\.json$/;

/** The .json; its names are read by other programs. Hashes are in hex, times in ms. */
export interface ArchiveDescription {
  readonly format: number;
  readonly exchange: number;
  readonly day: string;
  /** Batches. */
  readonly first: number;
  readonly last: number;
  readonly first_at: number;
  readonly last_at: number;
  /** Records in the log before the first batch, and in this archive. */
  readonly position: number;
  readonly records: number;
  /** The SHA-256 of the body before the first and of the last body. */
  readonly previous_hash: string;
  readonly last_hash: string;
  /** The size of the compressed file. */
  readonly bytes: number;
  readonly sha256: string;
  /** False if the books before the first batch weren't known. */
  readonly opening: boolean;
  /** Where each member of batches begins. The opening begins at 0. */
  readonly members: readonly (readonly [firstBatch: number, offset: number])[];
}

/** The day (UTC) of a time in ms. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The first ms of a day, and the first after it. */
export const startOfDay = (day: string): number => Date.parse(`${day}T00:00:00Z`);
export const endOfDay = (day: string): number => startOfDay(day) + DAY_MS;

/** The days from one to another, the latter not included. */
export function* daysBetween(from: string, to: string): Generator<string> {
  for (let day = from; day < to; day = dayOf(endOfDay(day))) yield day;
}

/** The day that is `days` before another one. */
export const daysBefore = (day: string, days: number): string => dayOf(startOfDay(day) - days * DAY_MS);

export const archivePath = (folder: string, day: string): string => join(folder, `${day}.log.gz`);

export const descriptionPath = (folder: string, day: string): string => join(folder, `${day}.json`);

/** @throws BrokenLog if it is damaged or of another format */
export function readDescription(path: string): ArchiveDescription {
  requireFile(path);
  let description: ArchiveDescription;
  try {
    description = JSON.parse(readFileSync(path, "utf8")) as ArchiveDescription;
  } catch (error) {
    throw new BrokenLog(`${path}: ${(error as Error).message}`);
  }
  if (description.format !== ARCHIVE_FORMAT) {
    throw new BrokenLog(`${path} has format ${description.format}, this program reads format ${ARCHIVE_FORMAT}`);
  }
  const { first, last, members } = description;
  if (!(first <= last) || !Array.isArray(members) || members[0]?.[0] !== first) {
    throw new BrokenLog(`${path} doesn't describe an archive`);
  }
  return description;
}

/** The complete archives of a folder. Reads each description once. */
export class ArchiveList {
  readonly folder: string;
  private readonly known = new Map<string, ArchiveDescription>();
  private sorted: readonly ArchiveDescription[] = [];

  constructor(folder: string) {
    this.folder = folder;
  }

  /** What the folder has now, oldest first. @throws BrokenLog */
  read(): readonly ArchiveDescription[] {
    const names = existsSync(this.folder) ? readdirSync(this.folder).filter((name) => DESCRIPTION.test(name)) : [];
    if (names.length === this.known.size && names.every((name) => this.known.has(name))) return this.sorted;
    for (const name of this.known.keys()) if (!names.includes(name)) this.known.delete(name);
    for (const name of names) {
      if (!this.known.has(name)) this.known.set(name, readDescription(join(this.folder, name)));
    }
    this.sorted = [...this.known.values()].sort((a, b) => a.first - b.first);
    return this.sorted;
  }
}
