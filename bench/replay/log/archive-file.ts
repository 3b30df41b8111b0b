/**
 * Reads one archive of the log from its file alone: the opening in the first gzip member, and batches in the others. Each
 * member is decompressed and its CRC-32 checked by itself. Never reads the description beside it, which it needn't have.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { crc32, type InflateRaw, inflateRawSync } from "node:zlib";
import { BrokenLog } from "../../../engine/log/broken-log.ts";
import { type Opening, type UNKNOWN_OPENING, unpackOpening } from "../../../engine/log/opening.ts";

const MAGIC = 0x1f8b;
const DEFLATE = 8;
const HEADER_BYTES = 10;
const TRAILER_BYTES = 8;
/** Of the file, read at a time; more where a member is longer. */
const WINDOW_BYTES = 2 ** 22;
const MAX_BODY_BYTES = 2 ** 30;

export class ArchiveFile {
  readonly bytes: number;
  readonly opening: Opening;
  private readonly path: string;
  private readonly file: number;
  /** Of the next member. */
  private at = 0;
  private window = Buffer.alloc(0);
  private windowAt = 0;

  /** @throws BrokenLog if it doesn't begin with an opening */
  constructor(path: string) {
    this.path = path;
    this.file = openSync(path, "r");
    this.bytes = fstatSync(this.file).size;
    this.opening = unpackOpening(this.member());
    const { markets } = this.opening as Opening | typeof UNKNOWN_OPENING;
    if (markets === null) throw new BrokenLog(`${path} was made without the books before its first batch`);
    if (!Array.isArray(markets)) throw new BrokenLog(`${path}: no archive of a log`);
  }

  /** How much of the file is read, bytes. */
  get read(): number {
    return this.at;
  }

  /** @throws BrokenLog if the file is damaged */
  *bodies(): Generator<Buffer> {
    while (this.at < this.bytes) {
      const batches = this.member();
      for (let at = 0; at < batches.length; ) {
        const length = at + 4 <= batches.length ? batches.readUInt32LE(at) : MAX_BODY_BYTES;
        at += 4;
        if (at + length > batches.length) throw new BrokenLog(`${this.path}: a batch is cut short`);
        yield batches.subarray(at, at + length);
        at += length;
      }
    }
  }

  close(): void {
    closeSync(this.file);
  }

  /** The content of the next member. */
  private member(): Buffer {
    for (let bytes = WINDOW_BYTES; ; bytes *= 4) {
      this.fill(bytes);
      const member = this.window.subarray(this.at - this.windowAt);
      if (
        member.length <= HEADER_BYTES ||
        member.readUInt16BE(0) !== MAGIC ||
        member.readUInt16BE(2) !== DEFLATE << 8
      ) {
        throw new BrokenLog(`${this.path}: no gzip file, or one of another program`);
      }
      const found = this.inflate(member);
      if (found !== null) return found;
    }
  }

  /** The content of the member that `bytes` begins with; null if the window is too short. */
  private inflate(bytes: Buffer): Buffer | null {
    const isWhole = this.windowAt + this.window.length === this.bytes;
    let content: Buffer;
    let end: number;
    try {
      const raw = inflateRawSync(bytes.subarray(HEADER_BYTES), { info: true });
      const { buffer, engine } = raw as unknown as { buffer: Buffer; engine: InflateRaw };
      content = buffer;
      end = HEADER_BYTES + engine.bytesWritten;
    } catch (error) {
      if (!isWhole && (error as NodeJS.ErrnoException).code === "Z_BUF_ERROR") return null;
      throw new BrokenLog(`${this.path}: damaged or cut short at byte ${this.at} (${(error as Error).message})`);
    }
    if (end + TRAILER_BYTES > bytes.length) {
      if (!isWhole) return null;
      throw new BrokenLog(`${this.path}: cut short`);
    }
    if (bytes.readUInt32LE(end) !== crc32(content)) {
      throw new BrokenLog(`${this.path}: damaged between byte ${this.at} and ${this.at + end}`);
    }
    this.at += end + TRAILER_BYTES;
    return content;
  }

  /** Makes `bytes` of the file from `at` on available, if it has as many. */
  private fill(bytes: number): void {
    const wanted = Math.min(bytes, this.bytes - this.at);
    // A member begins in the first half of the window unless it is a long one.
    if (this.windowAt + this.window.length - this.at >= Math.min(wanted, bytes / 2)) {
      if (bytes === WINDOW_BYTES || this.windowAt + this.window.length - this.at >= wanted) return;
    }
    const window = Buffer.alloc(wanted);
    let length = 0;
    while (length < wanted) {
      const read = readSync(this.file, window, length, wanted - length, this.at + length);
      if (read === 0) break;
      length += read;
    }
    this.window = window.subarray(0, length);
    this.windowAt = this.at;
  }
}
