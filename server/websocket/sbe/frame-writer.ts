/**
 * The binary frame that a connection is sent next: a row of messages, written word by word into memory that the
 * connections share in turn. A message is begun, its block written by the codec, its groups and texts added, and ended;
 * nothing else happens in between. Formats no message itself.
 *
 *   byte 0           2            4          6         8                12      14              16     24
 *        blockLength | templateId | schemaId | version | messageLength | index | rateRemaining | id   | block, groups, texts, 0s
 */
import { assert } from "../../../engine/util/assert.ts";
import { SCHEMA_ID, SCHEMA_VERSION } from "./codec/constants.ts";

export const HEADER_BYTES = 24;
const HEADER_WORDS = HEADER_BYTES / 4;
/** Messages are multiples of it. */
export const MESSAGE_UNIT = 8;
/** What precedes the entries of a group. */
export const DIMENSION_BYTES = 4;
const FIRST_BYTES = 4 * 1024;
/** A longer frame has one message alone. */
const MAX_FRAME_BYTES = 64 * 1024;
/** Frames that wait for the next connection. */
const MAX_POOLED = 256;
/** The longest text with a length of 2 bytes. */
const MAX_TEXT_BYTES = 0xffff;

/** Whom a response answers: the client's number as two words, the place in a batch or -1, requests left or -1. */
export interface Addressee {
  readonly idLow: number;
  readonly idHigh: number;
  readonly index: number;
  readonly rateRemaining: number;
}

export class FrameWriter {
  /** The codec writes blocks and entries here. Begin a message first: it may replace the memory. */
  words = new Int32Array(FIRST_BYTES / 4);
  private bytes = Buffer.from(this.words.buffer);
  /** Bytes of whole messages. */
  private length = 0;
  /** The end of the message that was begun, so far. */
  private end = 0;
  /** Earlier frames of the same turn. */
  private readonly full: Uint8Array[] = [];

  /** Begins a response. @param room bytes of its groups and texts, at most @returns the word of its block */
  beginResponse(template: number, blockLength: number, room: number, to: Addressee): number {
    const at = this.begin(template, blockLength, room);
    this.words[at + 3] = (to.index & 0xffff) | (to.rateRemaining << 16);
    this.words[at + 4] = to.idLow;
    this.words[at + 5] = to.idHigh;
    return at + HEADER_WORDS;
  }

  /** Begins an event. @param room bytes of its groups and texts, at most @returns the word of its block */
  beginEvent(template: number, blockLength: number, room: number, sequence: number): number {
    const at = this.begin(template, blockLength, room);
    this.words[at + 3] = -1;
    this.words[at + 4] = sequence;
    this.words[at + 5] = sequence * 2 ** -32;
    return at + HEADER_WORDS;
  }

  private begin(template: number, blockLength: number, room: number): number {
    this.reserve(HEADER_BYTES + blockLength + room + MESSAGE_UNIT);
    const at = this.length >>> 2;
    this.end = this.length + HEADER_BYTES + blockLength;
    this.words[at] = blockLength | (template << 16);
    this.words[at + 1] = SCHEMA_ID | (SCHEMA_VERSION << 16);
    return at;
  }

  /** Adds a group. @returns the word of its first entry; the codec writes `count` of them */
  addGroup(entryLength: number, count: number): number {
    const at = this.end >>> 2;
    this.words[at] = entryLength | (count << 16);
    this.end += DIMENSION_BYTES + entryLength * count;
    return at + 1;
  }

  /** Adds a text of ASCII, up to 254 characters; null is empty. */
  addText8(text: string | null): void {
    const { bytes } = this;
    let { end } = this;
    bytes[end++] = text === null ? 0 : text.length;
    if (text !== null) for (let i = 0; i < text.length; i++) bytes[end++] = text.charCodeAt(i);
    this.end = end;
  }

  /** Adds a text. @param room bytes for it, at most MAX_TEXT_BYTES: what is beyond is cut off */
  addText16(text: string, room: number): void {
    const written = this.bytes.write(text, this.end + 2, Math.min(room, MAX_TEXT_BYTES));
    this.bytes[this.end] = written;
    this.bytes[this.end + 1] = written >>> 8;
    this.end += 2 + written;
  }

  /** Ends the message that was begun. */
  endMessage(): void {
    let { end } = this;
    while (end % MESSAGE_UNIT !== 0) this.bytes[end++] = 0;
    assert(end <= this.bytes.length, "a message fits into the room that it reserved");
    this.words[(this.length >>> 2) + 2] = end - this.length;
    this.length = end;
  }

  /** Adds whole messages. */
  append(messages: Uint8Array): void {
    this.reserve(messages.length);
    this.bytes.set(messages, this.length);
    this.length += messages.length;
  }

  /** Takes the messages out as a copy. */
  take(): Uint8Array {
    const messages = this.frames().map((each) => Uint8Array.from(each));
    this.clear();
    return messages.length === 1 ? messages[0]! : Buffer.concat(messages);
  }

  get isEmpty(): boolean {
    return this.length === 0;
  }

  /** The frames to send, valid until the next message or `clear`. */
  frames(): readonly Uint8Array[] {
    const last = this.bytes.subarray(0, this.length);
    return this.full.length === 0 ? [last] : [...this.full, last];
  }

  clear(): void {
    this.length = 0;
    this.full.length = 0;
    // One long message must not keep its memory.
    if (this.bytes.length > MAX_FRAME_BYTES) this.allocate(FIRST_BYTES);
  }

  /** Makes room behind the whole messages: grows up to a full frame, then begins another. */
  private reserve(bytes: number): void {
    if (this.length + bytes <= this.bytes.length) return;
    const needed = 2 ** Math.ceil(Math.log2(this.length + bytes));
    if (this.length === 0 || needed <= MAX_FRAME_BYTES) {
      const before = this.bytes.subarray(0, this.length);
      this.allocate(needed);
      this.bytes.set(before);
      return;
    }
    this.full.push(Uint8Array.from(this.bytes.subarray(0, this.length)));
    this.length = 0;
    this.reserve(bytes);
  }

  private allocate(bytes: number): void {
    this.words = new Int32Array(bytes / 4);
    this.bytes = Buffer.from(this.words.buffer);
  }
}

/** Frames for connections that have something to send, from one turn to the next. */
export class FramePool {
  private readonly free: FrameWriter[] = [];

  take(): FrameWriter {
    return this.free.pop() ?? new FrameWriter();
  }

  give(frame: FrameWriter): void {
    frame.clear();
    if (this.free.length < MAX_POOLED) this.free.push(frame);
  }
}
