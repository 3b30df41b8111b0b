/** Deposits and withdrawals in the gateway's ledger. The log has committed each before it gets here. */
import type { Ledger } from "../../engine/ledger.ts";

export class Cash {
  private readonly ledger: Ledger;
  private readonly balanceChanged: (userId: number) => void;

  /** @param balanceChanged publishes the user's new balance */
  constructor(ledger: Ledger, balanceChanged: (userId: number) => void) {
    this.ledger = ledger;
    this.balanceChanged = balanceChanged;
  }

  /** @param amount micro-USDC, here and below */
  deposit(userId: number, amount: number): void {
    this.ledger.deposit(userId, amount);
    this.balanceChanged(userId);
  }

  /** Takes a deposit back out of its hold. */
  reverseDeposit(userId: number, amount: number): void {
    this.ledger.release(userId, amount);
    this.ledger.reverseDeposit(userId, amount);
    this.balanceChanged(userId);
  }

  /** Holds what a withdrawal requests. The caller has checked that it is available. */
  hold(userId: number, amount: number): void {
    this.ledger.hold(userId, amount);
    this.balanceChanged(userId);
  }

  /** Releases the hold of a withdrawal that was canceled or refused. */
  release(userId: number, amount: number): void {
    this.ledger.release(userId, amount);
    this.balanceChanged(userId);
  }

  /** Pays a withdrawal out of its hold. */
  withdraw(userId: number, amount: number): void {
    this.ledger.release(userId, amount);
    this.ledger.withdraw(userId, amount);
    this.balanceChanged(userId);
  }
}
