/**
 * Account writes: changes that reach the journal as messages beside the rings, because they carry text and aren't hot.
 * The journal applies each one in its current transaction and replies after the commit. A write is applied as a whole
 * or refused with a message for the user.
 */
import type { MarketStatus } from "../../constants.ts";
import type { Ledger } from "../../ledger.ts";
import type {
  EmailTokenRow,
  IdentityApplicationRow,
  OAuthClientRow,
  OAuthGrantRow,
  RecoveryCodeRow,
  SecondFactorRow,
  SessionRow,
  SocialIdentityRow,
} from "../load/accounts.ts";
import type { ApprovalRow, WithdrawalRow } from "../load/wallet.ts";
import type { OutcomeIds } from "../outcome-ids.ts";
import type { UserTerms } from "../user-terms.ts";

type Value = string | number | null;

/** The tables that plain inserts and updates may write, and their writable columns by their TypeScript names. */
interface PlainTables {
  users:
    | ("passwordHash" | "emailVerifiedAt" | "phone" | "phoneVerifiedAt" | "kycTier" | "suspendedAt" | "role")
    | "cancelsAt";
  personal_access_tokens: "lastUsedAt" | "revokedAt";
  sessions: keyof SessionRow | "endedAt" | "endReason";
  email_tokens: keyof EmailTokenRow | "usedAt";
  identity_applications: keyof IdentityApplicationRow | "documentNumber";
  oauth_clients: keyof OAuthClientRow | "deletedAt";
  oauth_grants: keyof OAuthGrantRow | "revokedAt";
  social_identities: keyof SocialIdentityRow | "createdAt";
  /** Only for an order whose placement is durable. */
  orders: "tied";
  /** A pending withdrawal holds its amount; ending it without payment releases the hold. */
  withdrawals: keyof WithdrawalRow | "status" | "note" | "decidedAt";
  approvals: keyof ApprovalRow | "endedAt";
  second_factors: keyof SecondFactorRow | "removedAt";
  recovery_codes: keyof RecoveryCodeRow | "createdAt" | "endedAt";
  /** Only while no exchange runs: otherwise the engine's events write the status. */
  markets: "status";
}

/** Inserts a row. The result's `created` is false if a row with the same key exists. */
export type InsertRow = {
  [T in keyof PlainTables]: { kind: "insert"; table: T; row: { [C in PlainTables[T]]?: Value } };
}[keyof PlainTables];
/** Sets columns of an existing row. */
export type UpdateRow = {
  [T in keyof PlainTables]: { kind: "update"; table: T; id: number; set: { [C in PlainTables[T]]?: Value } };
}[keyof PlainTables];

export type AccountWrite =
  | InsertRow
  | UpdateRow
  | {
      kind: "createUser";
      email: string;
      role: string;
      kycTier: number;
      passwordHash: string | null;
      emailVerifiedAt: number | null;
      phoneVerifiedAt: number | null;
      at: number;
    }
  /** Deletes an account without any record of money, and its rows. Changes nothing if the account ever had money. */
  | { kind: "deleteUser"; userId: number }
  | {
      kind: "createToken";
      userId: number;
      name: string;
      tokenHash: string;
      prefix: string;
      scopes: readonly string[];
      allowedAddresses: readonly string[] | null;
      expiresAt: number | null;
      at: number;
    }
  /** Refused if another deposit has the reference. `userId` may be HOUSE. */
  | { kind: "deposit"; userId: number; amount: number; reference: string; at: number }
  /** Pays out part of the house's earnings, or of what an operator lent it. */
  | { kind: "withdrawFromHouse"; amount: number; reference: string; at: number }
  /** Pays a pending withdrawal of that user and amount. Refused if another withdrawal has the reference. */
  | {
      kind: "payWithdrawal";
      id: number;
      userId: number;
      amount: number;
      reference: string | null;
      note: string | null;
      at: number;
    }
  /** Deletes some obsolete rows: tokens, links, grants and clients, and sessions that ended before `endedBefore` (ms). */
  | { kind: "sweep"; endedBefore: number; at: number }
  | ({ kind: "setTerms"; userId: number } & UserTerms)
  | { kind: "createEvent"; slug: string; title: string; category: string | null; closesAt: number | null; at: number }
  | {
      kind: "createMarket";
      slug: string;
      question: string;
      description: string | null;
      category: string | null;
      eventId: number | null;
      outcomes: readonly string[];
      opensAt: number | null;
      closesAt: number | null;
      /** The user who proposes the market; a proposal isn't open for trading. */
      proposedBy: number | null;
      at: number;
    }
  /** Approves a proposal: trading begins. */
  | { kind: "openMarket"; marketId: number; note: string | null; at: number }
  /** Refuses a proposal and frees the ids of its outcomes. */
  | { kind: "refuseMarket"; marketId: number; note: string | null; at: number }
  | {
      kind: "describeMarket";
      marketId: number;
      description: string | null;
      category: string | null;
      closesAt: number | null;
    }
  /**
   * Pays all holders of a closed market without live orders, in one transaction.
   * payouts: BPS per outcome; they add up to 10000.
   */
  | {
      kind: "settleMarket";
      marketId: number;
      status: typeof MarketStatus.resolved | typeof MarketStatus.voided;
      payouts: readonly number[];
      note: string | null;
      at: number;
    };

/** The user id of the exchange's own account. */
export const HOUSE = 0;

/** `id` is the new row's; `created` is false if the row existed already and nothing changed. */
export interface WriteResult {
  id: number;
  created: boolean;
  /** Markets only: the id of the first outcome; the others follow consecutively. */
  firstOutcomeId?: number;
  /** Settlements only: the user and outcome of each position paid, ordered by user. */
  settled?: { readonly users: Int32Array; readonly outcomes: Int32Array };
}

/** A write that can't be applied, with a message for the user. Thrown before anything changes. */
export class WriteRefused extends Error {}

/** The journal's state that account writes read and change. */
export interface WriteContext {
  readonly ledger: Ledger;
  nextEntryId(): number;
  /** The user's newest fill, 0 if there is none. */
  newestFill(userId: number): number;
  addMarket(marketId: number, firstOutcomeId: number, outcomes: number): void;
  /** The number of outcomes of markets that can still have orders. */
  openOutcomes(): number;
  /** Counts a market whose trading begins. */
  openMarket(marketId: number): void;
  readonly outcomeIds: OutcomeIds;
  /** Drops a market that will never trade. */
  forgetMarket(marketId: number): void;
  /** A market's first outcome and number of outcomes. */
  outcomesOf(marketId: number): { readonly first: number; readonly count: number };
  /** Marks rows that the journal writes before it commits. */
  markUser(userId: number): void;
  markPosition(position: number): void;
  markMarket(marketId: number): void;
  setTerms(userId: number, terms: UserTerms): void;
}

export type ApplyWrite = (write: AccountWrite) => WriteResult;

/** One kind of account write. */
export type WriteOf<Kind extends AccountWrite["kind"]> = Extract<AccountWrite, { kind: Kind }>;

/** The result of a write whose row exists already. */
export const existing = (id: unknown): WriteResult => ({ id: Number(id), created: false });
