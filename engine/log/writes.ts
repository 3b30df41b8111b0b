/**
 * Writes: changes that reach the log as messages beside the rings, because they carry text and aren't hot. The gateway has
 * checked each one and assigned the ids of its rows; the projector applies it as it is. Nothing here can be rejected: the
 * projector asserts. Only ledger entries get their numbers from the log stage.
 */
import type { MarketStatus } from "../constants.ts";
import type {
  ApprovalRow,
  EmailTokenRow,
  IdentityApplicationRow,
  OAuthClientRow,
  OAuthGrantRow,
  RecoveryCodeRow,
  SecondFactorRow,
  SessionRow,
  SocialIdentityRow,
  WithdrawalRow,
} from "./rows.ts";
import type { UserTerms } from "./user-terms.ts";

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

export type Write =
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
  /** The start of the file's SHA-256, in hex. */
  readonly hash: string;
  /** A WebP file, in base64. */
  readonly webp: string;
}

/** The user id of the exchange's own account. */
export const HOUSE = 0;

/** One kind of write. */
export type WriteOf<Kind extends Write["kind"]> = Extract<Write, { kind: Kind }>;

/** What the log itself knows about a kind of write. */
interface WriteTraits {
  /** The number of ledger entries that it creates, where they are fixed; missing: none. */
  readonly entries?: 1;
  /** Its row is its one ledger entry. */
  readonly isEntry?: true;
  /** It decides which markets can trade. */
  readonly opensMarkets?: true;
}

const KINDS = {
  insert: {},
  update: {},
  createUser: {},
  deleteUser: {},
  createToken: {},
  deposit: { entries: 1, isEntry: true },
  reverseDeposit: { entries: 1, isEntry: true },
  withdrawFromHouse: { entries: 1, isEntry: true },
  payWithdrawal: { entries: 1 },
  sweep: {},
  forgetLog: {},
  setTerms: {},
  createEvent: {},
  createMarket: { opensMarkets: true },
  openMarket: { opensMarkets: true },
  refuseMarket: { opensMarkets: true },
  describeMarket: {},
  settleMarket: { opensMarkets: true },
} as const satisfies Record<Write["kind"], WriteTraits>;

const TRAITS: Readonly<Record<Write["kind"], WriteTraits>> = KINDS;

/** The writes that decide which markets can trade. */
export type MarketWrite = {
  [Kind in Write["kind"]]: (typeof KINDS)[Kind] extends { opensMarkets: true } ? WriteOf<Kind> : never;
}[Write["kind"]];

export const isMarketWrite = (write: Write): write is MarketWrite => TRAITS[write.kind].opensMarkets === true;

/** True for a write whose row is its one ledger entry. */
export const isPaymentEntry = ({ kind }: Write): boolean => TRAITS[kind].isEntry === true;

/** The number of ledger entries that a write creates. */
export function entriesOf(write: Write): number {
  if (write.kind === "settleMarket") return write.holders;
  return TRAITS[write.kind].entries ?? 0;
}
