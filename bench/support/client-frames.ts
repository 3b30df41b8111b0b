/**
 * A WebSocket client's messages, framed and masked in advance, consecutive in one buffer: sending some of them
 * means writing one slice of it. Never interprets the messages.
 *
 *   byte 0     0x80 last of its message | 0x01 text, 0x02 binary
 *   byte 1     0x80 masked | length, or 126 and the length in two bytes, or 127 and in eight
 *   then       the mask's key, four bytes, and the payload
 */
import { itemAt } from "./item-at.ts";

export const TEXT = 0x81;
export const BINARY = 0x82;
export const CLOSE = 0x88;
export const PING = 0x89;
export const PONG = 0x8a;
export const LENGTH_IN_2 = 126;
export const LENGTH_IN_8 = 127;
const MASKED = 0x80;
const KEY_BYTES = 4;
const MAX_HEADER_BYTES = 14;

export class ClientFrames {
  private memory = Buffer.allocUnsafe(1 << 20);
  private readonly ends: number[] = [];

  get count(): number {
    return this.ends.length;
  }

  /** @param text ASCII only */
  add(text: string): void {
    const start = this.endOf(this.count);
    if (start + MAX_HEADER_BYTES + text.length > this.memory.length) this.grow(text.length);
    const at = writeHeader(this.memory, start, TEXT, text.length);
    this.ends.push(at + this.memory.write(text, at, "latin1"));
  }

  /** Adds a binary message. */
  addBinary(parts: readonly Buffer[]): void {
    const start = this.endOf(this.count);
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    if (start + MAX_HEADER_BYTES + length > this.memory.length) this.grow(length);
    let at = writeHeader(this.memory, start, BINARY, length);
    for (const part of parts) at += part.copy(this.memory, at);
    this.ends.push(at);
  }

  /** The bytes of the messages `from` to `to`, exclusive. */
  bytes(from: number, to: number): Buffer {
    return this.memory.subarray(this.endOf(from), this.endOf(to));
  }

  private endOf(count: number): number {
    return count === 0 ? 0 : itemAt(this.ends, count - 1);
  }

  private grow(length: number): void {
    const larger = Buffer.allocUnsafe(2 * (this.memory.length + length));
    this.memory.copy(larger);
    this.memory = larger;
  }
}

/** One masked frame. */
export function clientFrame(first: number, payload: Buffer): Buffer {
  const frame = Buffer.alloc(MAX_HEADER_BYTES + payload.length);
  const at = writeHeader(frame, 0, first, payload.length);
  return frame.subarray(0, at + payload.copy(frame, at));
}

/**
 * Returns the offset of the payload. The key is zero, which leaves the payload unchanged: a server does the same work for any
 * key.
 */
function writeHeader(memory: Buffer, start: number, first: number, length: number): number {
  memory[start] = first;
  let at = start + 2;
  if (length < LENGTH_IN_2) memory[start + 1] = MASKED | length;
  else if (length < 2 ** 16) {
    memory[start + 1] = MASKED | LENGTH_IN_2;
    at = memory.writeUInt16BE(length, at);
  } else {
    memory[start + 1] = MASKED | LENGTH_IN_8;
    at = memory.writeBigUInt64BE(BigInt(length), at);
  }
  memory.fill(0, at, at + KEY_BYTES);
  return at + KEY_BYTES;
}
