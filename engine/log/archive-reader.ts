/** Reads one archive: its opening, and its batches from any on. Keeps no file open, and never writes. */
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { assert } from "../util/assert.ts";
import { hashFile } from "../util/hash-file.ts";
import { type ArchiveDescription, LENGTH_BYTES, readDescription } from "./archive-format.ts";
import { readHeader } from "./batch-format.ts";
import { BrokenLog, requireFile } from "./broken-log.ts";
import { LogChain } from "./chain.ts";
import type { LogReader } from "./log-reader.ts";
import { type Opening, unpackOpening } from "./opening.ts";

const ENDING = ".log.gz";

export class ArchiveReader implements LogReader {
  readonly description: ArchiveDescription;
  private readonly path: string;

  /** @param path of the compressed file */
  constructor(path: string, description: ArchiveDescription) {
    this.path = path;
    this.description = description;
  }

  /** @param path of the compressed file, beside its description @throws BrokenLog */
  static open(path: string): ArchiveReader {
    if (!path.endsWith(ENDING)) throw new BrokenLog(`${path} is no archive: its name ends with ${ENDING}`);
    const description = `${path.slice(0, -ENDING.length)}.json`;
    for (const each of [path, description]) if (!existsSync(each)) throw new BrokenLog(`there is no ${each}`);
    return new ArchiveReader(path, readDescription(description));
  }

  /** The books before the first batch; null if they weren't known when the archive was made. */
  opening(): Opening | null {
    return this.description.opening ? unpackOpening(this.read(0, this.offset(0))) : null;
  }

  /** @throws BrokenLog where the file is damaged */
  *bodies(first: number): Generator<Buffer> {
    const { members } = this.description;
    const start = members.findLastIndex(([batch]) => batch <= first);
    for (let i = Math.max(0, start); i < members.length; i++) {
      const batches = this.read(this.offset(i), this.offset(i + 1));
      for (let at = 0; at < batches.length; ) {
        const body = this.bodyAt(batches, at);
        at += LENGTH_BYTES + body.length;
        if (readHeader(body).batch >= first) yield body;
      }
    }
  }

  /** Checks the file's hash and each batch's place. @throws BrokenLog that names what is wrong */
  check(): void {
    const { first, last, position, records, sha256, previous_hash, last_hash } = this.description;
    const chain = new LogChain({ batch: first - 1, hash: previous_hash });
    let count = 0;
    for (const body of this.bodies(first)) count += chain.next(body).records;
    const { last: header, hash } = chain;
    const isWhole = header?.batch === last && header.recordsBefore + header.records === position + records;
    if (!isWhole || count !== records || hash !== last_hash) {
      throw new BrokenLog(`${this.path} doesn't contain what its description says`);
    }
    if (this.hashFile() !== sha256) throw new BrokenLog(`${this.path} was changed: SHA-256 mismatch`);
  }

  /** The SHA-256 of the compressed file in hex. @throws BrokenLog if it isn't a file */
  hashFile(): string {
    requireFile(this.path);
    return hashFile(this.path).digest("hex");
  }

  /** Where a member of batches begins, or where the file ends. */
  private offset(member: number): number {
    return this.description.members[member]?.[1] ?? this.description.bytes;
  }

  private bodyAt(batches: Buffer, at: number): Buffer {
    const length = at + LENGTH_BYTES <= batches.length ? batches.readUInt32LE(at) : batches.length;
    const end = at + LENGTH_BYTES + length;
    if (end > batches.length) throw new BrokenLog(`${this.path}: a batch is cut short`);
    return batches.subarray(at + LENGTH_BYTES, end);
  }

  /** Decompresses a part of the file that consists of whole members. */
  private read(from: number, to: number): Buffer {
    requireFile(this.path);
    assert(from >= 0 && to > from, "a member has bytes");
    const compressed = Buffer.alloc(to - from);
    let file: number;
    try {
      file = openSync(this.path, "r");
    } catch (error) {
      throw new BrokenLog(`${this.path}: ${(error as NodeJS.ErrnoException).code}`);
    }
    try {
      if (fstatSync(file).size !== this.description.bytes) throw new BrokenLog(`${this.path} has the wrong size`);
      readSync(file, compressed, 0, compressed.length, from);
    } finally {
      closeSync(file);
    }
    try {
      return gunzipSync(compressed);
    } catch (error) {
      throw new BrokenLog(`${this.path} is damaged between byte ${from} and ${to}: ${(error as Error).message}`);
    }
  }
}
