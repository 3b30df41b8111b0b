/**
 * How far the log and its projection are, in memory that all threads share. The log stage writes what it appended and
 * what it showed, the projector what it projected, the gateway what readers wait for, and the replication thread what
 * may be shown. Each cell has one writer.
 *
 *   64-bit cell   0..2, 3                      16..18                       32                      48
 *                 committed: batch, records,   projected: batch, records,   wanted: the last        released: the last
 *                 at (ms); 3: appended         at (ms)                      batch that a reader     batch that other
 *                                                                           waits for               boxes have
 *                 log stage                    projector                    gateway                 replication
 *
 * Committed is what anybody may see. On a single box that is all that was appended; where the log is held until another
 * place has it, appended runs ahead.
 *   then 32-bit words: 0 the log stage wants a checkpoint; 16 the gateway wants the projector to stop; 32 the projector has
 *   finished the checkpoint; 48 what keeps the projector from writing, and 49 that a checkpoint of the tables failed
 */
import { assert } from "../util/assert.ts";

const COMMITTED = 0;
const PROJECTED = 16;
const WANTED = 32;
const RELEASED = 48;
const BATCH = 0;
const RECORDS = 1;
const AT = 2;
const APPENDED = 3;
const CELLS = 64;
const WORDS = 64;
const CHECKPOINT_WANTED = 0;
const STOP = 16;
const CHECKPOINT_DONE = 32;
const OBSTACLE = 48;
const TABLES_CHECKPOINT_FAILED = 49;

/** What keeps the projector from writing the tables for now. */
export const Obstacle = { none: 0, lock: 1, disk: 2 } as const;
export type Obstacle = (typeof Obstacle)[keyof typeof Obstacle];

/** How far something is in the log: the last batch that it has. */
export interface LogPoint {
  readonly batch: number;
  /** Records up to and including the batch. */
  readonly records: number;
  /** ms */
  readonly at: number;
}

/** How the cells lie. Called once at startup. */
export function assertProgressLayout(): void {
  assert(PROJECTED - COMMITTED >= 16 && WANTED - PROJECTED >= 16, "no two writers share 128 bytes");
  assert(RELEASED - WANTED >= 16 && APPENDED > AT, "nor do the others");
  assert(APPENDED < 16 && RELEASED + 16 <= CELLS && TABLES_CHECKPOINT_FAILED < WORDS, "every cell lies in the memory");
  assert(STOP - CHECKPOINT_WANTED >= 16 && OBSTACLE > CHECKPOINT_DONE, "the words of two writers lie apart");
}

export class LogProgress {
  readonly buffer: SharedArrayBuffer;
  private readonly cells: BigInt64Array;
  private readonly words: Int32Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(CELLS * 8 + WORDS * 4)) {
    this.buffer = buffer;
    this.cells = new BigInt64Array(buffer, 0, CELLS);
    this.words = new Int32Array(buffer, CELLS * 8, WORDS);
  }

  get committedBatch(): number {
    return Number(Atomics.load(this.cells, COMMITTED + BATCH));
  }

  get projectedBatch(): number {
    return Number(Atomics.load(this.cells, PROJECTED + BATCH));
  }

  /** The parts may be of two batches that follow each other. */
  get committed(): LogPoint {
    return this.read(COMMITTED);
  }

  /** The parts may be of two transactions that follow each other. */
  get projected(): LogPoint {
    return this.read(PROJECTED);
  }

  /** Called only by the log stage, and before it runs. */
  commit(point: LogPoint): void {
    this.write(COMMITTED, point);
  }

  /** The last batch in journal.db, whether or not anybody may see it. */
  get appendedBatch(): number {
    return Math.max(Number(Atomics.load(this.cells, APPENDED)), this.committedBatch);
  }

  /** Called only by the log stage: the batch is in journal.db and nobody may see it yet. */
  append(batch: number): void {
    Atomics.store(this.cells, APPENDED, BigInt(batch));
  }

  /** The last batch that other boxes have, as far as the policy asks for it. */
  get releasedBatch(): number {
    return Number(Atomics.load(this.cells, RELEASED));
  }

  /** Called only by the replication thread, which then wakes the log stage. */
  release(batch: number): void {
    assert(BigInt(batch) >= Atomics.load(this.cells, RELEASED), "what was released stays so");
    Atomics.store(this.cells, RELEASED, BigInt(batch));
  }

  /** Called only by the projector, and before it runs. */
  project(point: LogPoint): void {
    this.write(PROJECTED, point);
  }

  /** Called only by the gateway: a reader waits for this batch. The caller wakes the projector. */
  want(batch: number): void {
    Atomics.store(this.cells, WANTED, BigInt(batch));
  }

  /** The last batch that a reader waits, or waited, for. */
  get wantedBatch(): number {
    return Number(Atomics.load(this.cells, WANTED));
  }

  /** True if a reader waits for a batch that isn't projected. */
  get isWanted(): boolean {
    return Atomics.load(this.cells, WANTED) > Atomics.load(this.cells, PROJECTED + BATCH);
  }

  /** The log stage asks for a checkpoint of journal.db. The caller wakes the projector. */
  requestCheckpoint(): void {
    Atomics.store(this.words, CHECKPOINT_WANTED, 1);
  }

  /** The gateway asks the projector to stop once it has projected the log to its end. The caller wakes it. */
  requestStop(): void {
    Atomics.store(this.words, STOP, 1);
  }

  get isStopRequested(): boolean {
    return Atomics.load(this.words, STOP) === 1;
  }

  get isCheckpointRequested(): boolean {
    return Atomics.load(this.words, CHECKPOINT_WANTED) === 1;
  }

  /** True once after each request: the projector starts the checkpoint. */
  takeCheckpointRequest(): boolean {
    return Atomics.exchange(this.words, CHECKPOINT_WANTED, 0) === 1;
  }

  /** The projector has finished the checkpoint. The caller wakes the log stage. */
  finishCheckpoint(): void {
    Atomics.store(this.words, CHECKPOINT_DONE, 1);
  }

  get isCheckpointDone(): boolean {
    return Atomics.load(this.words, CHECKPOINT_DONE) === 1;
  }

  /** True once after each checkpoint. */
  takeCheckpointDone(): boolean {
    return Atomics.exchange(this.words, CHECKPOINT_DONE, 0) === 1;
  }

  /** What keeps the projector from writing; it tries again until nothing does. */
  get obstacle(): Obstacle {
    return Atomics.load(this.words, OBSTACLE) as Obstacle;
  }

  /** Called only by the projector. */
  reportObstacle(obstacle: Obstacle): void {
    Atomics.store(this.words, OBSTACLE, obstacle);
  }

  /** True while the WAL of the tables can't be copied into their file, and grows. */
  get hasCheckpointFailed(): boolean {
    return Atomics.load(this.words, TABLES_CHECKPOINT_FAILED) === 1;
  }

  /** Called only by the projector. */
  reportCheckpoint(hasFailed: boolean): void {
    Atomics.store(this.words, TABLES_CHECKPOINT_FAILED, hasFailed ? 1 : 0);
  }

  private read(cell: number): LogPoint {
    const [batch, records, at] = [BATCH, RECORDS, AT].map((part) => Number(Atomics.load(this.cells, cell + part)));
    return { batch: batch ?? 0, records: records ?? 0, at: at ?? 0 };
  }

  private write(cell: number, { batch, records, at }: LogPoint): void {
    assert(BigInt(batch) >= Atomics.load(this.cells, cell + BATCH), "no batch comes back");
    assert(BigInt(records) >= Atomics.load(this.cells, cell + RECORDS), "no record comes back");
    Atomics.store(this.cells, cell + AT, BigInt(at));
    Atomics.store(this.cells, cell + RECORDS, BigInt(records));
    // Last: readers act on it.
    Atomics.store(this.cells, cell + BATCH, BigInt(batch));
  }
}
