/**
 * Reads a received frame: its chain of headers first, as a whole, then one message after the other. Valid during the call
 * that received it: uWebSockets.js takes the memory back, and a typed array over it reads undefined from then on.
 */
import { type ApiError, badRequest } from "../../errors.ts";
import { SCHEMA_ID } from "./codec/constants.ts";
import { DIMENSION_BYTES, HEADER_BYTES, MESSAGE_UNIT } from "./frame-writer.ts";

/** Every version since 1 has the group or text. */
const missing = (name: string): ApiError => badRequest(`${name}: missing, the message ends before it`);

export class FrameReader {
  /** The frame, for the codec to read from. */
  words = new Int32Array(0);
  /** The block's first word, after `openBlock`. */
  blockAt = 0;
  groupAt = 0;
  groupStride = 0;
  private bytes = new Uint8Array(0);
  // Of the current message.
  template = 0;
  idLow = -1;
  idHigh = -1;
  private blockLength = 0;
  /** Byte offsets in the frame: where the next message begins, the block, and what follows the block. */
  private next = 0;
  private block = 0;
  private at = 0;

  /**
   * Starts with a frame.
   * @returns the number of its messages; 0 where the lengths in it don't add up, or for none
   */
  start(frame: ArrayBuffer): number {
    this.next = 0;
    if (frame.byteLength % MESSAGE_UNIT !== 0) return 0;
    const words = new Int32Array(frame);
    let count = 0;
    for (let at = 0; at < frame.byteLength; count++) {
      if (at + HEADER_BYTES > frame.byteLength) return 0;
      const length = words[(at >>> 2) + 2]!;
      const least = HEADER_BYTES + (words[at >>> 2]! & 0xffff);
      if (length % MESSAGE_UNIT !== 0 || length < least || length > frame.byteLength - at) return 0;
      at += length;
    }
    this.words = words;
    this.bytes = new Uint8Array(frame);
    return count;
  }

  /** Moves on to the next message. Before it looks further into it, `checkHeader`. */
  advance(): void {
    const { words } = this;
    const at = this.next >>> 2;
    this.blockLength = words[at]! & 0xffff;
    this.template = words[at]! >>> 16;
    this.idLow = words[at + 4]!;
    this.idHigh = words[at + 5]!;
    this.block = this.next + HEADER_BYTES;
    this.at = this.block + this.blockLength;
    this.next += words[at + 2]!;
  }

  /** @throws ApiError 40000 for another schema, or a version that there never was */
  checkHeader(): void {
    const word = this.words[((this.block - HEADER_BYTES) >>> 2) + 1]!;
    if ((word & 0xffff) !== SCHEMA_ID) throw badRequest(`schemaId: must be ${SCHEMA_ID}`);
    if (word >>> 16 === 0) throw badRequest("version: must be at least 1");
    if (this.blockLength % MESSAGE_UNIT !== 0) throw badRequest(`blockLength: must be a multiple of ${MESSAGE_UNIT}`);
  }

  /**
   * Makes the block readable.
   * @param length bytes that it has in every version: a message that stops early is no message that leaves out a filter
   * @throws ApiError 40000 where it is shorter
   */
  openBlock(length: number): void {
    if (this.blockLength < length) throw badRequest(`blockLength: must be ${length} or more`);
    this.blockAt = this.block >>> 2;
  }

  /**
   * Opens the group behind the block; `groupAt` is the first entry's first word, and entries are `groupStride` words apart.
   * @param entryLength bytes that the codec reads of an entry
   * @returns the number of entries
   * @throws ApiError 40000
   */
  openGroup(name: string, entryLength: number): number {
    if (this.next - this.at < DIMENSION_BYTES) throw missing(name);
    const dimension = this.words[this.at >>> 2]!;
    const [length, count] = [dimension & 0xffff, dimension >>> 16];
    this.at += DIMENSION_BYTES;
    if (count > 0 && (length < entryLength || length % 4 !== 0)) {
      throw badRequest(`${name}: entries must have ${entryLength} bytes or more, a multiple of 4`);
    }
    if (length * count > this.next - this.at) throw badRequest(`${name}: ends behind its message`);
    this.groupAt = this.at >>> 2;
    this.groupStride = length >>> 2;
    this.at += length * count;
    return count;
  }

  /** Reads the next text; null where it is empty. @throws ApiError 40000 */
  text8(name: string): string | null {
    if (this.at === this.next) throw missing(name);
    return this.text(name, this.bytes[this.at++]!);
  }

  /** The same for a text with a length of 2 bytes. */
  text16(name: string): string | null {
    if (this.next - this.at < 2) throw missing(name);
    const length = this.bytes[this.at]! | (this.bytes[this.at + 1]! << 8);
    this.at += 2;
    return this.text(name, length);
  }

  private text(name: string, length: number): string | null {
    if (length === 0) return null;
    if (length > this.next - this.at) throw badRequest(`${name}: ends behind its message`);
    this.at += length;
    return Buffer.from(this.bytes.buffer, this.at - length, length).toString();
  }
}
