/**
 * Account writes: changes that reach the log as messages beside the rings, because they carry text and aren't hot.
 * The gateway has checked each one and assigned the ids of its rows; the projector applies it as it is. Nothing here can
 * be refused: the projector asserts. Only ledger entries get their numbers from the log stage.
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
import type { UserTerms } from "../user-terms.ts";

type Value = string | number | null;

/** The tables that plain inserts and updates may write, and their writable columns by their TypeScript names. */
interface PlainTables {
  users:
    | ("passwordHash" | "emailVerifiedAt" | "phone" | "phoneVerifiedAt" | "kycTier" | "suspendedAt" | "role")
    | ("cancelsAt" | "watchlist" | "notifications" | "priceAlerts");
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

export type PlainTable = keyof PlainTables;

/** The columns of a new row. */
export type RowOf<T extends PlainTable> = { [C in PlainTables[T]]?: Value };

/** Inserts a row. No row has its key: random values can't collide, and the caller guards the others. */
export type InsertRow = {
  [T in PlainTable]: { kind: "insert"; table: T; row: RowOf<T> & { id: number } };
}[PlainTable];
/** Sets columns of a row; changes nothing if a sweep has deleted it. */
export type UpdateRow = {
  [T in PlainTable]: { kind: "update"; table: T; id: number; set: RowOf<T> };
}[PlainTable];

export type AccountWrite =
  | InsertRow
  | UpdateRow
  | {
      kind: "createUser";
      id: number;
      email: string;
      role: string;
      kycTier: number;
      passwordHash: string | null;
      emailVerifiedAt: number | null;
      phoneVerifiedAt: number | null;
      at: number;
    }
  /** Deletes an account without any record of money, and its rows. */
  | { kind: "deleteUser"; userId: number }
  | {
      kind: "createToken";
      id: number;
      userId: number;
      name: string;
      tokenHash: string;
      prefix: string;
      scopes: readonly string[];
      allowedAddresses: readonly string[] | null;
      expiresAt: number | null;
      at: number;
    }
  /** No other entry has the reference. `userId` may be HOUSE. */
  | { kind: "deposit"; userId: number; amount: number; reference: string; at: number }
  /** Takes back a deposit to that user or HOUSE, or a part of it. No other entry has the reference. */
  | { kind: "reverseDeposit"; userId: number; depositId: number; amount: number; reference: string; at: number }
  /** Pays out part of the house's earnings, or of what an operator lent it. */
  | { kind: "withdrawFromHouse"; amount: number; reference: string; at: number }
  /** Pays a pending withdrawal of that user and amount. No other withdrawal has the reference. */
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
  /** Order updates in batches before `before` can't be read any more: their archives are about to be deleted. */
  | { kind: "forgetLog"; before: number }
  | ({ kind: "setTerms"; userId: number } & UserTerms)
  | {
      kind: "createEvent";
      id: number;
      slug: string;
      title: string;
      category: string | null;
      closesAt: number | null;
      at: number;
    }
  | {
      kind: "createMarket";
      id: number;
      /** The other outcomes' ids follow consecutively. */
      firstOutcomeId: number;
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
      /** Null removes the picture; missing: it stays. */
      picture?: StoredPicture | null;
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
      /** The number of positions that it pays. */
      holders: number;
      note: string | null;
      at: number;
    };

/** A market's picture, as the log and the tables have it. */
export interface StoredPicture {
  /** Of the file: the start of its SHA-256, in hex. */
  readonly hash: string;
  /** A WebP file, in base64. */
  readonly webp: string;
}

/** The user id of the exchange's own account. */
export const HOUSE = 0;

/** The projector's state that account writes read and change. */
export interface WriteContext {
  readonly ledger: Ledger;
  nextEntryId(): number;
  /** Deletes the index rows of order updates that need a batch before `batch`. */
  forgetUpdates(batch: number): void;
  /** The user's newest fill, 0 if there is none. */
  newestFill(userId: number): number;
  addMarket(marketId: number, firstOutcomeId: number, outcomes: number): void;
  /** Drops a market that will never trade. */
  forgetMarket(marketId: number): void;
  /** A market's first outcome and number of outcomes. */
  outcomesOf(marketId: number): { readonly first: number; readonly count: number };
  /** Marks rows that the projector writes before it commits. @param at ms @param before micro-USDC; shares */
  markUser(userId: number, at: number, before: number): void;
  markPosition(position: number, at: number, before: number): void;
  markMarket(marketId: number): void;
}

export type ApplyWrite = (write: AccountWrite) => void;

/** One kind of account write. */
export type WriteOf<Kind extends AccountWrite["kind"]> = Extract<AccountWrite, { kind: Kind }>;

/** True for a write whose row is its one ledger entry. */
export function isPaymentEntry({ kind }: AccountWrite): boolean {
  return kind === "deposit" || kind === "reverseDeposit" || kind === "withdrawFromHouse";
}

/** The number of ledger entries that a write creates. */
export function entriesOf(write: AccountWrite): number {
  switch (write.kind) {
    case "deposit":
    case "reverseDeposit":
    case "withdrawFromHouse":
    case "payWithdrawal":
      return 1;
    case "settleMarket":
      return write.holders;
    default:
      return 0;
  }
}
