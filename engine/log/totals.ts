/**
 * The exchange's sums as of the last committed transaction, in memory that journal and gateway share.
 * A sequence lock: the journal makes the version odd, writes, makes it even; a reader that saw it change reads again.
 */
import type { LedgerTotals } from "../ledger.ts";

const VERSION = 0;
const VALUES_AT_BYTES = 128;
const VALUES = 7;

export interface TotalsSnapshot extends LedgerTotals {
  /** Of the transaction, counted from 1 over the database's life. */
  sequence: number;
  /** When it committed, ms. */
  at: number;
}

export class CommittedTotals {
  readonly buffer: SharedArrayBuffer;
  private readonly version: Int32Array;
  private readonly values: Float64Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(VALUES_AT_BYTES + VALUES * 8)) {
    this.buffer = buffer;
    this.version = new Int32Array(buffer, 0, 1);
    this.values = new Float64Array(buffer, VALUES_AT_BYTES, VALUES);
  }

  /** Called by the journal alone, after its commit. */
  publish(totals: LedgerTotals, sequence: number, at: number): void {
    Atomics.add(this.version, VERSION, 1);
    const values = this.values;
    values[0] = totals.deposits;
    values[1] = totals.withdrawals;
    values[2] = totals.usersTotal;
    values[3] = totals.collateral;
    values[4] = totals.house;
    values[5] = sequence;
    values[6] = at;
    Atomics.add(this.version, VERSION, 1);
  }

  read(): TotalsSnapshot {
    for (;;) {
      const before = Atomics.load(this.version, VERSION);
      const [deposits, withdrawals, usersTotal, collateral, house, sequence, at] = this.values as unknown as [
        number, number, number, number, number, number, number,
      ]; // biome-ignore format: seven numbers
      if (before % 2 === 0 && Atomics.load(this.version, VERSION) === before) {
        return { deposits, withdrawals, usersTotal, collateral, house, sequence, at };
      }
    }
  }
}
