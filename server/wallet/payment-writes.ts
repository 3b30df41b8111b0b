/**
 * Admits and applies payments: deposits and their reversals, payments of the house and paid withdrawals. A reference counts
 * once over the life of the exchange, whatever its case, and only the tables know all of them. Bounds count what is in
 * flight. Owned by the gateway thread.
 */
import type { Ledger } from "../../engine/ledger.ts";
import { SEED_REFERENCE } from "../../engine/limits.ts";
import { HOUSE } from "../../engine/log/writes.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import type { Cash } from "../trading/cash.ts";
import type { AdmittedWrite, CommittedOf, RequestedOf, WriteRoom } from "../writes/types.ts";
import type { RecordedPayment, ReversibleDeposit } from "./types.ts";

const KINDS = ["deposit", "reverseDeposit", "withdrawFromHouse", "payWithdrawal"] as const;
type Kind = (typeof KINDS)[number];
export type PaymentWrite = RequestedOf<Kind>;

/** Reads what only the tables know. Each read shows everything that was committed before it. */
export interface PaymentLookups {
  /** The deposit, reversal, or payment of the house, with this reference in any case. */
  payment(reference: string): Promise<RecordedPayment | null>;
  /** The deposit with this id; null if there is none, and for a reversal. */
  reversibleDeposit(id: number): Promise<ReversibleDeposit | null>;
  /** The withdrawal that was paid with this reference, in any case. */
  withdrawalPaidWith(reference: string): Promise<number | null>;
}

/** What the lookups found about a payment. */
interface Facts {
  readonly payment: RecordedPayment | null;
  readonly deposit: ReversibleDeposit | null;
  /** The withdrawal that has the reference. */
  readonly withdrawal: number | null;
}

const NO_FACTS: Facts = { payment: null, deposit: null, withdrawal: null };

export interface PaymentWritesOptions {
  readonly ledger: Ledger;
  readonly cash: Cash;
  readonly accounts: Accounts;
  readonly lookups: PaymentLookups;
}

export class PaymentWrites implements WriteRoom<Kind, Facts> {
  readonly kinds = KINDS;
  private readonly ledger: Ledger;
  private readonly cash: Cash;
  private readonly accounts: Accounts;
  private readonly lookups: PaymentLookups;
  /** micro-USDC in flight. */
  private depositing = 0;
  private leavingHouse = 0;

  constructor({ ledger, cash, accounts, lookups }: PaymentWritesOptions) {
    this.ledger = ledger;
    this.cash = cash;
    this.accounts = accounts;
    this.lookups = lookups;
  }

  keys(write: PaymentWrite): readonly string[] {
    switch (write.kind) {
      case "deposit":
      case "withdrawFromHouse":
        return [`payment ${write.reference.toLowerCase()}`];
      case "reverseDeposit":
        return [`payment ${write.reference.toLowerCase()}`, `reversal of ${write.depositId}`];
      case "payWithdrawal":
        return write.reference === null ? [] : [`withdrawal ${write.reference.toLowerCase()}`];
    }
  }

  lookUp(write: PaymentWrite): Promise<Facts> | null {
    switch (write.kind) {
      case "deposit":
      case "withdrawFromHouse":
        return this.lookups.payment(write.reference).then((payment) => ({ ...NO_FACTS, payment }));
      case "reverseDeposit":
        return this.lookUpReversal(write);
      case "payWithdrawal":
        if (write.reference === null) return null;
        return this.lookups.withdrawalPaidWith(write.reference).then((withdrawal) => ({ ...NO_FACTS, withdrawal }));
    }
  }

  private async lookUpReversal({ reference, depositId }: RequestedOf<"reverseDeposit">): Promise<Facts> {
    const { lookups } = this;
    const [payment, deposit] = await Promise.all([lookups.payment(reference), lookups.reversibleDeposit(depositId)]);
    return { ...NO_FACTS, payment, deposit };
  }

  /** @throws ApiError 40900, 4040 for a deposit to an account that was deleted meanwhile, 42201 for a reversal */
  admit(write: PaymentWrite, found: Facts | null): AdmittedWrite {
    const facts = found ?? NO_FACTS;
    switch (write.kind) {
      case "deposit":
        return this.admitDeposit(write, facts.payment);
      case "reverseDeposit":
        return this.admitReversal(write, facts);
      case "withdrawFromHouse":
        return this.admitHousePayment(write, facts.payment);
      case "payWithdrawal":
        if (facts.withdrawal !== null) throw conflict(`reference: withdrawal ${facts.withdrawal} has it`);
        return { write, result: { id: write.id, created: true } };
    }
  }

  private admitDeposit(write: RequestedOf<"deposit">, payment: RecordedPayment | null): AdmittedWrite {
    const { userId, amount, reference } = write;
    if (payment !== null) return repeated(payment, reference, { userId, amount, reverses: null });
    if (userId !== HOUSE && this.accounts.user(userId) === undefined) throw notFound("user");
    if (!this.ledger.canDeposit(this.depositing + amount)) {
      throw conflict("the total deposit limit is reached");
    }
    this.depositing += amount;
    if (userId !== HOUSE) this.accounts.countFunding(userId, 1);
    return { write, result: { id: 0, created: true } };
  }

  /** Holds the amount, so that the account can't spend it before the reversal is committed. */
  private admitReversal(write: RequestedOf<"reverseDeposit">, { payment, deposit }: Facts): AdmittedWrite {
    const { userId, depositId, amount, reference } = write;
    if (payment !== null) return repeated(payment, reference, { userId, amount: -amount, reverses: depositId });
    assert(deposit?.userId === userId, "the caller names the account that the deposit went to");
    checkReversible(deposit, depositId, amount, this.reversible(userId));
    if (userId === HOUSE) this.leavingHouse += amount;
    else this.ledger.hold(userId, amount);
    return { write, result: { id: 0, created: true } };
  }

  /** What can leave an account, micro-USDC. */
  private reversible(userId: number): number {
    return userId === HOUSE ? this.ledger.totals.house - this.leavingHouse : this.ledger.available(userId);
  }

  private admitHousePayment(write: RequestedOf<"withdrawFromHouse">, payment: RecordedPayment | null): AdmittedWrite {
    const { amount, reference } = write;
    if (payment !== null) return repeated(payment, reference, { userId: HOUSE, amount: -amount, reverses: null });
    if (this.ledger.totals.house - this.leavingHouse < amount) throw conflict("amount: exceeds the house balance");
    this.leavingHouse += amount;
    return { write, result: { id: 0, created: true } };
  }

  /** From here on the ledger counts what was in flight. */
  apply(write: CommittedOf<Kind>): undefined {
    const { ledger, cash, accounts } = this;
    switch (write.kind) {
      case "deposit":
        this.depositing -= write.amount;
        if (write.userId === HOUSE) ledger.fundHouse(write.amount);
        else {
          accounts.countFunding(write.userId, -1);
          accounts.keepUser(write.userId);
          cash.deposit(write.userId, write.amount);
        }
        return;
      case "reverseDeposit":
        if (write.userId !== HOUSE) cash.reverseDeposit(write.userId, write.amount);
        else {
          this.leavingHouse -= write.amount;
          ledger.unfundHouse(write.amount);
        }
        return;
      case "withdrawFromHouse":
        this.leavingHouse -= write.amount;
        ledger.fundHouse(-write.amount);
        return;
      case "payWithdrawal":
        cash.withdraw(write.userId, write.amount);
        return;
    }
  }
}

/** @param available of the account, micro-USDC @throws ApiError 40900, 42201 */
export function checkReversible(deposit: ReversibleDeposit, id: number, amount: number, available: number): void {
  const left = deposit.amount - deposit.reversed;
  if (amount > left) throw conflict(`amount: of deposit ${id}, ${left} micro-USDC can still be reversed`);
  if (amount > available) {
    const who = deposit.userId === HOUSE ? "the house" : `user ${deposit.userId}`;
    throw new ApiError(ErrorKind.insufficientBalance, `amount: ${who} has ${available} micro-USDC available`);
  }
}

/** The result of a payment whose reference is on record. @throws ApiError 40900 if the recorded one is different */
function repeated(found: RecordedPayment, reference: string, wanted: Omit<RecordedPayment, "id">): AdmittedWrite {
  // A seed's deposit counts once, even if a later seed changes it.
  if (!reference.startsWith(SEED_REFERENCE)) checkSamePayment(found, wanted);
  return { write: null, result: { id: found.id, created: false } };
}

/** @throws ApiError 40900 that names the payment on record, if it is another than the wanted one */
export function checkSamePayment(found: RecordedPayment, wanted: Omit<RecordedPayment, "id">): void {
  const isSame = found.userId === wanted.userId && found.amount === wanted.amount && found.reverses === wanted.reverses;
  if (!isSame) throw conflict(`reference: ${nameOf(found)} has it`);
}

function nameOf({ id, userId, amount, reverses }: RecordedPayment): string {
  const what =
    reverses !== null ? `the reversal of deposit ${reverses}, ${id},` : amount > 0 ? `deposit ${id}` : `payment ${id}`;
  const direction = amount > 0 ? "to" : "from";
  const who = userId === HOUSE ? "the house" : `user ${userId}`;
  return `${what} of ${Math.abs(amount)} micro-USDC ${direction} ${who}`;
}

function conflict(message: string): ApiError {
  return new ApiError(ErrorKind.conflict, message);
}
