/** Deposits and withdrawals of users and the house. Asserts what the gateway has checked. */
import type Database from "better-sqlite3";
import { HOUSE, type WriteOf } from "../../log/writes.ts";
import { assert } from "../../util/assert.ts";
import type { WriteContext } from "./context.ts";
import type { Entries } from "./entries.ts";

export interface MoneyWrites {
  deposit(write: WriteOf<"deposit">): void;
  reverseDeposit(write: WriteOf<"reverseDeposit">): void;
  withdrawFromHouse(write: WriteOf<"withdrawFromHouse">): void;
  payWithdrawal(write: WriteOf<"payWithdrawal">): void;
}

export function prepareMoneyWrites(db: Database.Database, context: WriteContext, entries: Entries): MoneyWrites {
  const { ledger } = context;
  const payWithdrawal = db.prepare(
    "UPDATE withdrawals SET status = 'paid', reference = ?, note = ?, decided_at = ? WHERE id = ? AND status = 'pending'",
  );
  return {
    deposit({ userId, amount, reference, at }) {
      assert(ledger.canDeposit(amount), "a deposit stays within the exchange's bound");
      if (userId === HOUSE) ledger.fundHouse(amount);
      else ledger.deposit(userId, amount);
      entries.add(userId, "deposit", amount, at, { reference });
      entries.flush();
    },
    reverseDeposit({ userId, depositId, amount, reference, at }) {
      if (userId === HOUSE) {
        assert(ledger.totals.house >= amount, "the house returns what it has");
        ledger.unfundHouse(amount);
      } else ledger.reverseDeposit(userId, amount);
      entries.add(userId, "deposit", -amount, at, { reference, reverses: depositId });
      entries.flush();
    },
    withdrawFromHouse({ amount, reference, at }) {
      assert(ledger.totals.house >= amount, "the house pays what it has");
      ledger.fundHouse(-amount);
      entries.add(HOUSE, "withdrawal", -amount, at, { reference });
      entries.flush();
    },
    payWithdrawal({ id, userId, amount, reference, note, at }) {
      assert(payWithdrawal.run(reference, note, at, id).changes === 1, "a withdrawal is pending until it is paid");
      ledger.withdraw(userId, amount);
      entries.add(userId, "withdrawal", -amount, at);
      entries.flush();
    },
  };
}
