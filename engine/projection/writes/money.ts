/** Deposits and withdrawals of users and the house. */
import type Database from "better-sqlite3";
import { assert } from "../../util/assert.ts";
import { HOUSE, type WriteContext, type WriteOf, WriteRefused, type WriteResult } from "./account-write.ts";
import type { Entries } from "./entries.ts";

export interface MoneyWrites {
  deposit(write: WriteOf<"deposit">): WriteResult;
  withdrawFromHouse(write: WriteOf<"withdrawFromHouse">): WriteResult;
  payWithdrawal(write: WriteOf<"payWithdrawal">): WriteResult;
}

export function prepareMoneyWrites(db: Database.Database, context: WriteContext, entries: Entries): MoneyWrites {
  const { ledger } = context;
  const withdrawalByReference = db.prepare("SELECT id FROM withdrawals WHERE reference = ?").pluck();
  const payWithdrawal = db.prepare(
    "UPDATE withdrawals SET status = 'paid', reference = ?, note = ?, decided_at = ? WHERE id = ? AND status = 'pending'",
  );
  return {
    deposit({ userId, amount, reference, at }) {
      const found = entries.findRepeated(reference, userId, amount);
      if (found !== null) return found;
      if (!ledger.canDeposit(amount)) throw new WriteRefused("the exchange is at its maximum of deposits");
      if (userId === HOUSE) ledger.fundHouse(amount);
      else ledger.deposit(userId, amount);
      const id = entries.add(userId, "deposit", amount, at, { reference });
      entries.flush();
      return { id, created: true };
    },
    withdrawFromHouse({ amount, reference, at }) {
      const found = entries.findRepeated(reference, HOUSE, -amount);
      if (found !== null) return found;
      if (ledger.totals.house < amount) throw new WriteRefused("amount: the house has less than that");
      ledger.fundHouse(-amount);
      const id = entries.add(HOUSE, "withdrawal", -amount, at, { reference });
      entries.flush();
      return { id, created: true };
    },
    payWithdrawal({ id, userId, amount, reference, note, at }) {
      if (reference !== null && withdrawalByReference.get(reference) !== undefined) {
        throw new WriteRefused("reference: another withdrawal has it");
      }
      assert(payWithdrawal.run(reference, note, at, id).changes === 1, "a withdrawal is pending until it is paid");
      ledger.withdraw(userId, amount);
      entries.add(userId, "withdrawal", -amount, at);
      entries.flush();
      return { id, created: true };
    },
  };
}
