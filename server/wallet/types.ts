/** Payments on record: shapes that every room may name. */

/** A deposit, its reversal, or a payment of the house, on record. */
export interface RecordedPayment {
  readonly id: number;
  readonly userId: number;
  /** micro-USDC, negative where it was taken back or left the house. */
  readonly amount: number;
  /** The deposit that it takes back; null for others. */
  readonly reverses: number | null;
}

/** A deposit on record, and how much of it has been taken back. */
export interface ReversibleDeposit {
  readonly userId: number;
  /** micro-USDC, here and below */
  readonly amount: number;
  readonly reversed: number;
}
