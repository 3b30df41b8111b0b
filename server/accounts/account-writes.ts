/**
 * Admits account writes: runs every check that can refuse one, before it is posted, and assigns the ids of its rows. The
 * journal only applies what was admitted. Checks see the gateway's memory, plus what is admitted and not yet committed;
 * the payments and the markets have files of their own. Owned by the gateway thread; does no I/O itself.
 */
import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import { assert } from "../../engine/util/assert.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { Accounts } from "./accounts.ts";
import type { PaymentAdmission, PaymentWrite } from "./payment-admission.ts";
import type { RowIds } from "./row-ids.ts";
import type { AdmittedWrite, Facts, MarketAdmission, MarketWrite, RequestedOf, RequestedWrite } from "./types.ts";
import { NO_FACTS } from "./write-facts.ts";

export interface WriteAdmissionOptions {
  readonly accounts: Accounts;
  readonly ids: RowIds;
  /** By hash: the ids of revoked tokens, which memory doesn't hold. A seed may list one again. */
  readonly revokedTokens: ReadonlyMap<string, number>;
  readonly payments: PaymentAdmission;
  readonly markets: MarketAdmission;
}

export class WriteAdmission {
  private readonly accounts: Accounts;
  private readonly ids: RowIds;
  private readonly revokedTokens: ReadonlyMap<string, number>;
  private readonly payments: PaymentAdmission;
  private readonly markets: MarketAdmission;

  constructor({ accounts, ids, revokedTokens, payments, markets }: WriteAdmissionOptions) {
    this.accounts = accounts;
    this.ids = ids;
    this.revokedTokens = revokedTokens;
    this.payments = payments;
    this.markets = markets;
  }

  /** True while a deposit to the user is in flight. */
  isFunding(userId: number): boolean {
    return this.payments.isFunding(userId);
  }

  /**
   * Reads what the tables alone know about the writes; null where memory suffices. Only the first of several writes may
   * be of a kind that needs it.
   */
  lookUp(writes: readonly RequestedWrite[]): Promise<Facts> | null {
    const found = writes.map((write) => this.lookUpOne(write));
    assert(
      found.slice(1).every((each) => each === null),
      "only the first of several writes needs a lookup",
    );
    return found[0] ?? null;
  }

  private lookUpOne(write: RequestedWrite): Promise<Facts> | null {
    if (isPayment(write)) return this.payments.lookUp(write);
    return isOfMarket(write) ? this.markets.lookUp(write) : null;
  }

  /**
   * Admits all of `writes` or none. Only the first may be of a kind that can be refused.
   * @param facts what `lookUp` found, in the turn that posts the writes
   * @throws ApiError 40900, 4040
   */
  admit(writes: readonly RequestedWrite[], facts: Facts): AdmittedWrite[] {
    const admitted: AdmittedWrite[] = [];
    try {
      for (const write of writes) admitted.push(this.admitOne(write, admitted.length === 0 ? facts : NO_FACTS));
    } catch (error) {
      assert(admitted.length === 0, "only the first of several writes can be refused, so none is half admitted");
      throw error;
    }
    return admitted;
  }

  private admitOne(write: RequestedWrite, facts: Facts): AdmittedWrite {
    if (isPayment(write)) return this.payments.admit(write, facts);
    if (isOfMarket(write)) return this.markets.admit(write, facts);
    switch (write.kind) {
      case "insert": {
        const id = this.ids.next(write.table, write.row.id);
        const row = { ...write.row, id };
        return { write: { ...write, row } as AccountWrite, result: { id, created: true } };
      }
      case "update":
        return { write, result: { id: write.id, created: true } };
      case "createUser":
        return this.admitUser(write);
      case "createToken":
        return this.admitToken(write);
      case "deleteUser":
        assert(!this.payments.isFunding(write.userId), "no account is deleted while a deposit to it is in flight");
        return { write, result: { id: write.userId, created: true } };
      case "setTerms":
        return { write, result: { id: write.userId, created: true } };
      case "sweep":
      case "forgetLog":
        return { write, result: { id: 0, created: true } };
    }
  }

  private admitUser(write: RequestedOf<"createUser">): AdmittedWrite {
    const found = this.accounts.userByEmail(write.email);
    if (found !== undefined) return existing(found.id);
    const id = this.ids.nextUser();
    if (id === null) throw new ApiError(ErrorKind.conflict, "the exchange is at its maximum number of users");
    return { write: { ...write, id }, result: { id, created: true } };
  }

  private admitToken(write: RequestedOf<"createToken">): AdmittedWrite {
    const { tokenHash } = write;
    const found = this.accounts.patByHash(tokenHash)?.id ?? this.revokedTokens.get(tokenHash);
    if (found !== undefined) return existing(found);
    const id = this.ids.next("personal_access_tokens");
    return { write: { ...write, id }, result: { id, created: true } };
  }

  /** The write is durable and about to be applied to memory. */
  committed(write: AccountWrite): void {
    if (write.kind === "deleteUser") this.ids.freeUser(write.userId);
    this.payments.committed(write);
  }
}

/** What may exist once: a second write with the same key waits until the first one is committed. */
export function keysOf(writes: readonly RequestedWrite[]): string[] {
  return writes.flatMap(keysOfOne);
}

function keysOfOne(write: RequestedWrite): readonly string[] {
  switch (write.kind) {
    case "createUser":
      return [`email ${write.email}`];
    case "createToken":
      return [`token ${write.tokenHash}`];
    case "createEvent":
      return [`event ${write.slug}`];
    case "createMarket":
      return [`market ${write.slug}`];
    case "deposit":
    case "withdrawFromHouse":
      return [`payment ${write.reference.toLowerCase()}`];
    case "reverseDeposit":
      return [`payment ${write.reference.toLowerCase()}`, `reversal of ${write.depositId}`];
    case "payWithdrawal":
      return write.reference === null ? [] : [`withdrawal ${write.reference.toLowerCase()}`];
    default:
      return [];
  }
}

const PAYMENTS: ReadonlySet<string> = new Set<PaymentWrite["kind"]>([
  ...(["deposit", "reverseDeposit", "withdrawFromHouse", "payWithdrawal"] as const),
]);
const OF_MARKETS: ReadonlySet<string> = new Set<MarketWrite["kind"]>([
  ...(["createEvent", "createMarket", "openMarket", "refuseMarket", "describeMarket", "settleMarket"] as const),
]);

function isPayment(write: RequestedWrite): write is PaymentWrite {
  return PAYMENTS.has(write.kind);
}

function isOfMarket(write: RequestedWrite): write is MarketWrite {
  return OF_MARKETS.has(write.kind);
}

function existing(id: number): AdmittedWrite {
  return { write: null, result: { id, created: false } };
}
