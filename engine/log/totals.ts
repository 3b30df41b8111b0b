/**
 * The exchange's totals as of the last commit, in memory that the journal and the gateway share. A sequence lock: the
 * journal makes the version odd, writes the values and makes it even; a reader that sees it change retries.
 */
import type { LedgerTotals } from "../ledger.ts";

const VERSION = 0;
const VALUES_AT_BYTES = 128;
const VALUES = 7;

export interface TotalsSnapshot extends LedgerTotals {
  /** The number of the transaction, counted from 1 over the database's life. */
  sequence: number;
  /** When the transaction committed, ms. */
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

  /** Called only by the journal, after its commit. */
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
