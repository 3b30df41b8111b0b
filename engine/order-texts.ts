/**
 * The client order ids of live orders, 64 bytes a slot, in memory that gateway and journal share.
 * The gateway writes a slot's text before it publishes the placement and reuses the slot only after it saw the order's
 * last event committed; the journal reads it while it holds the orderPlaced record. So each text has one writer and
 * is handed over by the rings' own cursors. The operating system backs only what is touched.
 */
import { MAX_CLIENT_ORDER_ID_LENGTH } from "./limits.ts";

export class OrderTexts {
  readonly buffer: SharedArrayBuffer;
  private readonly bytes: Uint8Array;

  /** @param slots the largest slot number */
  constructor(source: number | SharedArrayBuffer) {
    this.buffer =
      typeof source === "number" ? new SharedArrayBuffer((source + 1) * MAX_CLIENT_ORDER_ID_LENGTH) : source;
    this.bytes = new Uint8Array(this.buffer);
  }

  /** @param text 1..64 ASCII characters */
  write(slot: number, text: string): void {
    const base = slot * MAX_CLIENT_ORDER_ID_LENGTH;
    for (let i = 0; i < text.length; i++) this.bytes[base + i] = text.charCodeAt(i);
    if (text.length < MAX_CLIENT_ORDER_ID_LENGTH) this.bytes[base + text.length] = 0;
  }

  read(slot: number): string {
    const base = slot * MAX_CLIENT_ORDER_ID_LENGTH;
    let end = base;
    while (end < base + MAX_CLIENT_ORDER_ID_LENGTH && this.bytes[end] !== 0) end++;
    return String.fromCharCode(...this.bytes.subarray(base, end));
  }
}
