/** Users, their credentials and second factors: shapes that every room may name. */
import type { OAuthClientRow, OAuthGrantRow, UserRow } from "../../engine/projection/load/accounts.ts";
import type {
  AccountWrite,
  PlainTable,
  RowOf,
  UpdateRow,
  WriteOf,
} from "../../engine/projection/writes/account-write.ts";
import type { AuditEntry } from "../../engine/projection/writes/audit-log.ts";
import type { ClientAddress } from "../http/client-address.ts";

export const SCOPES = ["markets:read", "markets:propose", "orders:write", "portfolio:read"] as const;
export type Scope = (typeof SCOPES)[number];

export type TokenKind = "session" | "oauth" | "pat";

/** Gives access until it ends: every token derived from it stops working with it. */
export interface Credential {
  readonly kind: TokenKind;
  readonly id: number;
  readonly user: User;
  readonly scopes: ReadonlySet<string>;
  isEnded: boolean;
  /** A session that was opened with a second factor. */
  readonly hasSecondFactor: boolean;
  /** ms */
  lastUsedAt: number;
}

/** The holder of a token, as routes see it. */
export interface Principal {
  readonly credential: Credential;
  readonly kind: TokenKind;
  readonly userId: number;
  readonly role: string;
  readonly scopes: ReadonlySet<string>;
  /** ms since the epoch; null: the token doesn't expire. */
  readonly expiresAt: number | null;
  /** The token is a personal access token. */
  readonly pat: boolean;
  readonly kycTier: number;
  /** micro-USDC of activity a UTC day. */
  readonly dailyLimit: number;
  /** BPS; null: the general fee. */
  readonly mergeFee: number | null;
  readonly maxLiveOrders: number;
  /** Multiplies the user's own rate limits. */
  readonly rateLimitFactor: number;
  /** The account can do nothing but verify its email address. */
  readonly mustVerify: boolean;
  /** The session was made with a second factor. */
  readonly hasSecondFactor: boolean;
  readonly isSuspended: boolean;
}

/** Finds and checks the holder of a bearer token. */
export interface TokenAuthenticator {
  /**
   * @param header the Authorization header, or ""
   * @param address of the client; called only where the token is bound to addresses
   * @param mayVerify throws where verifying another unknown token's signature would be too much
   * @throws ApiError 40100, 2002 for a genuine token that expired, 40300
   */
  authenticateHeader(
    header: string,
    now: number,
    address: () => ClientAddress,
    mayVerify: () => void,
  ): Principal | Promise<Principal>;
  /** Checks what can end while a connection lives. @throws ApiError 40100, 2002, 40300 */
  checkLive(principal: Principal, now: number): void;
}

/** A third party's registration. */
export interface OAuthClient {
  readonly row: OAuthClientRow;
  readonly redirectUris: readonly string[];
}

/** What a user allows a third party to do. */
export interface Grant {
  readonly row: OAuthGrantRow;
  readonly client: OAuthClient;
  /** ms; 0 before the first use */
  lastUsedAt: number;
}

export type User = UserRow & {
  /** An operator's seed created the account, not a stranger's registration. */
  isSeeded?: true;
};

export const FACTOR_KINDS = ["totp", "passkey"] as const;
export type FactorKind = (typeof FACTOR_KINDS)[number];

export const PROOF_METHODS = [...FACTOR_KINDS, "recovery_code"] as const;
export type ProofMethod = (typeof PROOF_METHODS)[number];

type RequestedInsert = {
  [T in PlainTable]: { kind: "insert"; table: T; row: RowOf<T> & { id?: number } };
}[PlainTable];
/** Writes whose row ids the admission assigns. */
type UnnumberedWrite =
  | Omit<WriteOf<"createUser">, "id">
  | Omit<WriteOf<"createToken">, "id">
  | Omit<WriteOf<"createEvent">, "id">
  | Omit<WriteOf<"createMarket">, "id" | "firstOutcomeId">
  | Omit<WriteOf<"settleMarket">, "holders">;

/** An account write as its caller requests it, before the admission (write-admission.ts). */
export type RequestedWrite =
  | RequestedInsert
  | UpdateRow
  | UnnumberedWrite
  | Exclude<AccountWrite, { kind: "insert" | "update" | UnnumberedWrite["kind"] }>;

/** One kind of requested write. */
export type RequestedOf<Kind extends RequestedWrite["kind"]> = Extract<RequestedWrite, { kind: Kind }>;

/** An audit log entry as its caller requests it. */
export interface RequestedAudit extends Omit<AuditEntry, "userId" | "subject"> {
  /** The user whose money or access changed; "subject" if that is the user that the write creates. */
  readonly userId: number | "subject" | null;
  /** The index of the request's write that the line describes. A write that changes nothing leaves no line. */
  readonly write: number;
  /** The id of the changed row; null stands for the write's own row. */
  readonly subject: number | null;
}

/** Holders' positions as parallel columns, ordered by user and outcome. */
export interface Holders {
  readonly users: Int32Array;
  readonly outcomes: Int32Array;
}

/** `id` is the new row's; `created` is false if the row existed already and nothing changed. */
export interface WriteResult {
  id: number;
  readonly created: boolean;
  /** Markets only: the id of the first outcome; the others follow consecutively. */
  readonly firstOutcomeId?: number;
  /** Settlements only: the positions paid. */
  readonly settled?: Holders;
}

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

/** Reads what only the tables know. Each read shows everything that was committed before it. */
export interface WriteLookups {
  /** The deposit, reversal, or payment of the house, with this reference in any case. */
  payment(reference: string): Promise<RecordedPayment | null>;
  /** The deposit with this id; null if there is none, and for a reversal. */
  reversibleDeposit(id: number): Promise<ReversibleDeposit | null>;
  /** The withdrawal that was paid with this reference, in any case. */
  withdrawalPaidWith(reference: string): Promise<number | null>;
  /** The positions with shares of `count` outcomes from `first` on. */
  holders(first: number, count: number): Promise<Holders>;
}

/** What the lookups found about a write. */
export interface Facts {
  readonly payment: RecordedPayment | null;
  readonly deposit: ReversibleDeposit | null;
  /** The withdrawal that has the reference. */
  readonly withdrawal: number | null;
  readonly holders: Holders | null;
}

/** A write that nothing can refuse any more, with its result. */
export interface AdmittedWrite {
  /** Null: its row exists already, so that there is nothing to write. */
  readonly write: AccountWrite | null;
  /** A payment's id is set once its entry has a number. */
  readonly result: WriteResult;
}

/** Writes of markets and events. */
export type MarketWrite = RequestedOf<
  "createEvent" | "createMarket" | "openMarket" | "refuseMarket" | "describeMarket" | "settleMarket"
>;

/** Admits writes of markets and events, which the accounts room does not own. */
export interface MarketAdmission {
  /** Null where memory suffices. */
  lookUp(write: MarketWrite): Promise<Facts> | null;
  /** @throws ApiError 40900 at the maximum number of markets */
  admit(write: MarketWrite, facts: Facts): AdmittedWrite;
}

/** Applies committed account writes to memory that the accounts room does not own: balances, markets and events. */
export interface WriteProjection {
  /** Resolves once the write is applied; undefined when it already is. @param result names the positions of a settlement */
  apply(write: AccountWrite, result: WriteResult): Promise<void> | undefined;
}
