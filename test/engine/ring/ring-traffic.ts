/**
 * Records whose words all follow from their number, so that a reader detects a lost, torn, repeated or early record.
 * Used on both sides of a thread boundary.
 */
import { D_USER_SEQUENCE, RECORD_DOUBLES, RECORD_WORDS } from "../../../engine/ring/records.ts";

/** Words 14 and 15 are the last double, which the gate writes; the producer leaves this there. */
const NOT_YET = -1;
const PRODUCER_WORDS = RECORD_WORDS - 2;

const wordOf = (n: number, word: number): number => Math.imul(n ^ (word << 27), 0x9e3779b1) ^ (n + word);

interface RingView {
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  readonly mask: number;
}

/** Writes record number `n` at `position` and returns the checksum including it. */
export function writeRecord(ring: RingView, position: number, n: number, sum: number): number {
  const index = position & ring.mask;
  for (let word = 0; word < PRODUCER_WORDS; word++) {
    const value = wordOf(n, word);
    ring.words[index * RECORD_WORDS + word] = value;
    sum = (Math.imul(sum, 31) + value) | 0;
  }
  ring.doubles[index * RECORD_DOUBLES + D_USER_SEQUENCE] = NOT_YET;
  return sum;
}

/** The gate's mark in a record that it passes. */
export function stampRecord(ring: RingView, position: number, n: number): void {
  const at = (position & ring.mask) * RECORD_DOUBLES + D_USER_SEQUENCE;
  if (ring.doubles[at] !== NOT_YET) throw new Error(`record ${n} was stamped before`);
  ring.doubles[at] = n + 0.5;
}

/** Reads record number `n` and returns the checksum including it; throws if it differs from what was written. */
export function readRecord(ring: RingView, position: number, n: number, gated: boolean, sum: number): number {
  const index = position & ring.mask;
  for (let word = 0; word < PRODUCER_WORDS; word++) {
    const value = ring.words[index * RECORD_WORDS + word]!;
    if (value !== wordOf(n, word)) throw new Error(`record ${n}: word ${word} is ${value}`);
    sum = (Math.imul(sum, 31) + value) | 0;
  }
  const stamp = ring.doubles[index * RECORD_DOUBLES + D_USER_SEQUENCE];
  if (stamp !== (gated ? n + 0.5 : NOT_YET)) throw new Error(`record ${n}: the gate's stamp is ${stamp}`);
  return sum;
}

/** Small numbers in a fixed order from a seed (mulberry32). */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}
