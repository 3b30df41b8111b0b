/** What the replication thread counts and knows, in memory that the gateway reads for its metrics. One writer of each: mostly the thread. */
const FIELDS = [
  "epoch",
  /** Of a standby: the last batch in its log, and the last one that the active says it has. */
  "batch",
  "activeBatch",
  /** Of an active: the last batch that the standby has, and 1 while it counts for nothing. */
  "standbyBatch",
  "alone",
  /** 1 where a standby that is heard, or the active box of a standby, has the same keys. */
  "keysEqual",
  /** The same of settings; 1 where nobody is heard. How far the clock is ahead that is furthest from this box's, ms. */
  "settingsEqual",
  "clockMs",
  "shippedMessages",
  "shippedBytes",
  "unknownOutcomes",
  /** Batches that this process cut off its log. */
  "cutBatches",
  "streamBytes",
  "leaderIsLocal",
  "syncChecked",
  /** Rises while the gateway runs: its one writer. */
  "gatewayTicks",
  /** 1 where this process became active without a command. */
  "takeovers",
] as const;
type Field = (typeof FIELDS)[number];

export class ReplicationStatus {
  readonly buffer: SharedArrayBuffer;
  private readonly cells: BigInt64Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(FIELDS.length * 8)) {
    this.buffer = buffer;
    this.cells = new BigInt64Array(buffer);
  }

  get(field: Field): number {
    return Number(Atomics.load(this.cells, FIELDS.indexOf(field)));
  }

  /** Of a standby: batches of the active box that its log lacks. */
  get behindBatches(): number {
    return Math.max(0, this.get("activeBatch") - this.get("batch"));
  }

  set(field: Field, value: number): void {
    Atomics.store(this.cells, FIELDS.indexOf(field), BigInt(value));
  }

  add(field: Field, count: number): void {
    Atomics.add(this.cells, FIELDS.indexOf(field), BigInt(count));
  }
}
