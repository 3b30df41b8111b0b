/**
 * The rows of the day that is being made, in one file: each flush appends each market's new rows as a run, and notes where
 * they are. So rows of any number of markets need little memory and one sync. Rows become durable with `flush`; what a crash
 * left behind the last one is cut off. Doesn't outlive its day.
 *
 *   double 0     1          2          3             words 8   9      10                                      11
 *          at    quantity   match id   created at          outcome   price   kind | side | type | status, 8 bits each   -
 */
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";
import { assert } from "../../engine/util/assert.ts";
import type { HistoryRow, RowKind, RowSink } from "./types.ts";

const DOUBLES = 6;
const ROW_BYTES = 8 * DOUBLES;
const FIRST_ROWS = 16;

/** Consecutive rows of a market in the file. */
interface Run {
  readonly offset: number;
  readonly rows: number;
  readonly crc: number;
}

/** What is in the file; it can be stored. */
export interface SpoolState {
  readonly bytes: number;
  /** Market, offset, rows, CRC-32; one run after the other, in the order of flushes. */
  readonly runs: readonly number[];
}

export const EMPTY_SPOOL: SpoolState = { bytes: 0, runs: [] };

/** Some rows of a market. */
export class RowBlock {
  doubles = new Float64Array(FIRST_ROWS * DOUBLES);
  words = new Int32Array(this.doubles.buffer);
  count = 0;

  add(row: HistoryRow): void {
    if ((this.count + 1) * DOUBLES > this.doubles.length) this.grow(2 * this.count);
    const d = this.count++ * DOUBLES;
    const { doubles, words } = this;
    doubles[d] = row.at;
    doubles[d + 1] = row.quantity;
    doubles[d + 2] = row.matchId;
    doubles[d + 3] = row.createdAt;
    words[2 * d + 8] = row.outcome;
    words[2 * d + 9] = row.price;
    words[2 * d + 10] = row.kind | (row.side << 8) | (row.matchType << 16) | (row.status << 24);
  }

  /** Reads row `i` into `row`. */
  read(i: number, row: HistoryRow): void {
    const d = i * DOUBLES;
    const { doubles, words } = this;
    const packed = words[2 * d + 10]!;
    row.at = doubles[d]!;
    row.quantity = doubles[d + 1]!;
    row.matchId = doubles[d + 2]!;
    row.createdAt = doubles[d + 3]!;
    row.outcome = words[2 * d + 8]!;
    row.price = words[2 * d + 9]!;
    row.kind = (packed & 0xff) as RowKind;
    row.side = (packed >> 8) & 0xff;
    row.matchType = (packed >> 16) & 0xff;
    row.status = packed >>> 24;
  }

  /** Makes room for that many rows. */
  grow(rows: number): void {
    if (rows * DOUBLES <= this.doubles.length) return;
    const { doubles } = this;
    this.doubles = new Float64Array(rows * DOUBLES);
    this.doubles.set(doubles.subarray(0, this.count * DOUBLES));
    this.words = new Int32Array(this.doubles.buffer);
  }

  bytes(): Uint8Array {
    return new Uint8Array(this.doubles.buffer, 0, this.count * ROW_BYTES);
  }
}

export class RowSpool implements RowSink {
  private readonly file: number;
  private readonly runs = new Map<number, Run[]>();
  private end = 0;
  /** Rows since the last flush, by market. */
  private readonly blocks = new Map<number, RowBlock>();
  private count = 0;

  /** Opens the file, or creates it. @throws LostRows if it doesn't have what the state says */
  constructor(path: string, state: SpoolState) {
    this.file = openSync(path, "a+", 0o600);
    try {
      if (fstatSync(this.file).size < state.bytes) throw new LostRows(`${path} is shorter than it was`);
      ftruncateSync(this.file, state.bytes);
    } catch (error) {
      closeSync(this.file);
      throw error;
    }
    this.end = state.bytes;
    for (let i = 0; i < state.runs.length; i += 4) {
      const [market, offset, rows, crc] = state.runs.slice(i, i + 4) as [number, number, number, number];
      this.note(market, { offset, rows, crc });
    }
  }

  /** Rows that aren't in the file yet. */
  get buffered(): number {
    return this.count;
  }

  /** The markets that have rows, in ascending order. */
  get markets(): number[] {
    return [...this.runs.keys()].sort((a, b) => a - b);
  }

  add(market: number, row: HistoryRow): void {
    let block = this.blocks.get(market);
    if (block === undefined) this.blocks.set(market, (block = new RowBlock()));
    block.add(row);
    this.count++;
  }

  /** Writes what is buffered, and syncs the file. */
  flush(): void {
    if (this.count === 0) return;
    for (const [market, block] of this.blocks) {
      const bytes = block.bytes();
      for (let at = 0; at < bytes.length; ) at += writeSync(this.file, bytes, at);
      this.note(market, { offset: this.end, rows: block.count, crc: crc32(bytes) });
      this.end += bytes.length;
    }
    this.blocks.clear();
    this.count = 0;
    fsyncSync(this.file);
  }

  state(): SpoolState {
    assert(this.count === 0, "rows are flushed");
    const runs = [...this.runs].flatMap(([market, list]) =>
      list.flatMap(({ offset, rows, crc }) => [market, offset, rows, crc]),
    );
    return { bytes: this.end, runs };
  }

  /** The number of a market's rows. */
  rowsOf(market: number): number {
    return (this.runs.get(market) ?? []).reduce((sum, { rows }) => sum + rows, 0);
  }

  /** The times of a market's first and last row, µs. */
  spanOf(market: number): { readonly firstAt: number; readonly lastAt: number } {
    const runs = this.runs.get(market);
    const [first, last] = [runs?.[0], runs?.at(-1)];
    assert(first !== undefined && last !== undefined, "a market with a file has rows");
    return { firstAt: this.timeAt(first.offset), lastAt: this.timeAt(last.offset + (last.rows - 1) * ROW_BYTES) };
  }

  /** A market's rows in their order, in blocks of `rows`; the last has fewer. One block at a time is valid. */
  *blocksOf(market: number, rows: number): Generator<RowBlock> {
    const block = new RowBlock();
    const one = new RowBlock();
    const row = {} as HistoryRow;
    for (const run of this.runs.get(market) ?? []) {
      this.readRun(run, one);
      for (let i = 0; i < run.rows; i++) {
        one.read(i, row);
        block.add(row);
        if (block.count < rows) continue;
        yield block;
        block.count = 0;
      }
    }
    if (block.count > 0) yield block;
  }

  close(): void {
    closeSync(this.file);
  }

  private note(market: number, run: Run): void {
    const list = this.runs.get(market);
    if (list === undefined) this.runs.set(market, [run]);
    else list.push(run);
  }

  /** The time of the row at an offset, its first double. */
  private timeAt(offset: number): number {
    const time = new Float64Array(1);
    readSync(this.file, time, 0, time.byteLength, offset);
    return time[0]!;
  }

  private readRun({ offset, rows, crc }: Run, into: RowBlock): void {
    into.count = 0;
    into.grow(rows);
    into.count = rows;
    const bytes = into.bytes();
    let at = 0;
    while (at < bytes.length) {
      const read = readSync(this.file, bytes, at, bytes.length - at, offset + at);
      if (read === 0) break;
      at += read;
    }
    if (at < bytes.length || crc32(bytes) !== crc) throw new LostRows("rows of the day were damaged");
  }
}

/** The file of the day's rows isn't what it was: the day must be made again. */
export class LostRows extends Error {}
