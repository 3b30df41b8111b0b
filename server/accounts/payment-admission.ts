/**
 * Admits payments: deposits, payments of the house and paid withdrawals. A reference counts once over the life of the
 * exchange, and only the tables know all of them. Bounds count what is in flight. Owned by the gateway thread.
 */
import type { Ledger } from "../../engine/ledger.ts";
import { SEED_REFERENCE } from "../../engine/limits.ts";
import { type AccountWrite, HOUSE } from "../../engine/projection/writes/account-write.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import type { Accounts } from "./accounts.ts";
import type { AdmittedWrite, Facts, RecordedPayment, RequestedOf, WriteLookups } from "./types.ts";
import { NO_FACTS } from "./write-facts.ts";

export type PaymentWrite = RequestedOf<"deposit" | "withdrawFromHouse" | "payWithdrawal">;

export interface PaymentAdmissionOptions {
  readonly ledger: Ledger;
  readonly accounts: Accounts;
  readonly lookups: WriteLookups;
}

export class PaymentAdmission {
  private readonly ledger: Ledger;
  private readonly accounts: Accounts;
  private readonly lookups: WriteLookups;
  /** micro-USDC in flight. */
  private depositing = 0;
  private leavingHouse = 0;
  /** By user: the number of deposits in flight. */
  private readonly funding = new Map<number, number>();

  constructor({ ledger, accounts, lookups }: PaymentAdmissionOptions) {
    this.ledger = ledger;
    this.accounts = accounts;
    this.lookups = lookups;
  }

  /** True while a deposit to the user is in flight. */
  isFunding(userId: number): boolean {
    return this.funding.has(userId);
  }

  lookUp(write: PaymentWrite): Promise<Facts> | null {
    const { lookups } = this;
    if (write.kind !== "payWithdrawal") {
      return lookups.payment(write.reference).then((payment) => ({ ...NO_FACTS, payment }));
    }
    if (write.reference === null) return null;
    return lookups.isWithdrawalReference(write.reference).then((isReferenceTaken) => ({
      ...NO_FACTS,
      isReferenceTaken,
    }));
  }

  /** @throws ApiError 40900, 4040 for a deposit to an account that was deleted meanwhile */
  admit(write: PaymentWrite, facts: Facts): AdmittedWrite {
    switch (write.kind) {
      case "deposit":
        return this.admitDeposit(write, facts.payment);
      case "withdrawFromHouse":
        return this.admitHousePayment(write, facts.payment);
      case "payWithdrawal":
        if (facts.isReferenceTaken) throw conflict("reference: another withdrawal has it");
        return { write, result: { id: write.id, created: true } };
    }
  }

  private admitDeposit(write: RequestedOf<"deposit">, payment: RecordedPayment | null): AdmittedWrite {
    const { userId, amount, reference } = write;
    if (payment !== null) return repeated(payment, reference, userId, amount);
    if (userId !== HOUSE && this.accounts.user(userId) === undefined) throw notFound("user");
    if (!this.ledger.canDeposit(this.depositing + amount)) {
      throw conflict("the exchange is at its maximum of deposits");
    }
    this.depositing += amount;
    this.countFunding(userId, 1);
    return { write, result: { id: 0, created: true } };
  }

  private admitHousePayment(write: RequestedOf<"withdrawFromHouse">, payment: RecordedPayment | null): AdmittedWrite {
    const { amount, reference } = write;
    if (payment !== null) return repeated(payment, reference, HOUSE, -amount);
    if (this.ledger.totals.house - this.leavingHouse < amount) throw conflict("amount: the house has less than that");
    this.leavingHouse += amount;
    return { write, result: { id: 0, created: true } };
  }

  /** The payment is about to be applied to the ledger, which counts it from then on. */
  committed(write: AccountWrite): void {
    if (write.kind === "deposit") {
      this.depositing -= write.amount;
      this.countFunding(write.userId, -1);
    } else if (write.kind === "withdrawFromHouse") this.leavingHouse -= write.amount;
  }

  private countFunding(userId: number, change: number): void {
    if (userId === HOUSE) return;
    const count = (this.funding.get(userId) ?? 0) + change;
    if (count === 0) this.funding.delete(userId);
    else this.funding.set(userId, count);
  }
}

/** The result of a payment whose reference is on record. @throws ApiError 40900 if the recorded one is different */
function repeated(found: RecordedPayment, reference: string, userId: number, amount: number): AdmittedWrite {
  // A seed's deposit counts once, even if a later seed changes it.
  if (!reference.startsWith(SEED_REFERENCE) && (found.userId !== userId || found.amount !== amount)) {
    throw conflict("reference: another one has it");
  }
  return { write: null, result: { id: found.id, created: false } };
}

function conflict(message: string): ApiError {
  return new ApiError(ErrorKind.conflict, message);
}
