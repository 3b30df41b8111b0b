/**
 * Reads the database's state at start: the ledger that journal and gateway each need, and what only the gateway needs
 * (users, tokens, markets, live orders). Asserts the invariants while it reads. Nothing here writes.
 */
import type Database from "better-sqlite3";
import { OrderStatus } from "../constants.ts";
import { addsUp, type Ledger } from "../ledger.ts";
import { MICRO_PER_SHARE } from "../limits.ts";
import { assert } from "../util/assert.ts";
import { MinHeap } from "../util/min-heap.ts";

export interface MarketRow {
  id: number;
  slug: string;
  question: string;
  description: string | null;
  category: string | null;
  eventId: number | null;
  status: number;
  sets: number;
  opensAt: number | null;
  closesAt: number | null;
  createdAt: number;
  /** The user whose proposal it was, null where an operator or a seed made it. */
  proposedBy: number | null;
  /** How the proposal was decided. */
  decisionNote: string | null;
  decidedAt: number | null;
  resolutionNote: string | null;
  resolvedAt: number | null;
  firstOutcomeId: number;
  outcomes: number;
}

/** What a market has at first of all that may come. */
export const UNDECIDED = { decisionNote: null, decidedAt: null, resolutionNote: null, resolvedAt: null };

export interface OutcomeRow {
  id: number;
  marketId: number;
  position: number;
  name: string;
  lastPrice: number | null;
  volume: number;
  /** BPS; null until the market is resolved. */
  payout: number | null;
}

export interface LedgerState {
  sequence: number;
  lastEntryId: number;
  lastOrderId: number;
  orderUpdates: number;
  /** Up to which order resting_orders is complete. */
  ordersListed: number;
  at: number;
  markets: MarketRow[];
  outcomes: OutcomeRow[];
}

/** Fills `ledger` with balances, positions and collateral, and answers counters and markets. */
export function loadLedger(db: Database.Database, ledger: Ledger): LedgerState {
  const totals = db.prepare("SELECT * FROM totals").get() as Record<string, number>;
  const meta = new Map(db.prepare("SELECT key, value FROM meta").raw().all() as [string, number][]);
  ledger.restoreTotals({
    deposits: totals["deposits"]!,
    withdrawals: totals["withdrawals"]!,
    usersTotal: totals["users_total"]!,
    collateral: totals["collateral"]!,
    house: totals["house"]!,
  });
  assert(addsUp(ledger.totals), "the database's sums balance");

  let usersTotal = 0;
  for (const row of db.prepare("SELECT user_id, balance, activity_day, activity_used FROM accounts").raw().iterate()) {
    const [user, balance, day, used] = row as [number, number, number, number];
    ledger.restoreAccount(user, balance, day, used);
    usersTotal += balance;
  }
  assert(usersTotal === ledger.totals.usersTotal, "the accounts' balances come to the sum on record");

  for (const row of db.prepare("SELECT * FROM positions").raw().iterate()) {
    const [user, outcome, quantity, cost, realizedPnl] = row as [number, number, number, number, number];
    ledger.restorePosition(user, outcome, quantity, cost, realizedPnl);
  }

  const markets = db
    .prepare(
      `SELECT m.id, slug, question, description, category, event_id AS eventId, status, sets, opens_at AS opensAt,
       closes_at AS closesAt, created_at AS createdAt, proposed_by AS proposedBy, decision_note AS decisionNote,
       decided_at AS decidedAt, resolution_note AS resolutionNote, resolved_at AS resolvedAt,
       min(o.id) AS firstOutcomeId, count(*) AS outcomes
       FROM markets m JOIN outcomes o ON o.market_id = m.id GROUP BY m.id`,
    )
    .all() as MarketRow[];
  let collateral = 0;
  for (const market of markets) {
    ledger.restoreSets(market.id, market.sets);
    collateral += market.sets * MICRO_PER_SHARE;
  }
  assert(collateral === ledger.totals.collateral, "the markets' collateral comes to the sum on record");
  const outcomes = db
    .prepare("SELECT id, market_id AS marketId, position, name, last_price AS lastPrice, volume, payout FROM outcomes")
    .all() as OutcomeRow[];

  const lastOrderId = Number(db.prepare("SELECT coalesce(max(id), 0) FROM orders").pluck().get());
  assert(lastOrderId === totals["last_order_id"], "no order is missing at the end");
  const lastEntryId = Number(
    db
      .prepare("SELECT max(coalesce((SELECT max(id) FROM fills), 0), coalesce((SELECT max(id) FROM entries), 0))")
      .pluck()
      .get(),
  );
  assert(lastEntryId === totals["last_entry_id"], "no fill or entry is missing at the end");
  return {
    sequence: totals["sequence"]!,
    lastEntryId,
    lastOrderId,
    orderUpdates: totals["order_updates"]!,
    ordersListed: meta.get("orders_listed")!,
    at: totals["at"]!,
    markets,
    outcomes,
  };
}

/** What an operator set for one user; null: as for everybody. */
export interface UserTerms {
  /** micro-USDC of activity a UTC day. */
  dailyLimit: number | null;
  /** BPS of the notional. */
  tradingFee: number | null;
  makerRebate: number | null;
  /** Of orders placed with a PAT. */
  patRebate: number | null;
  /** BPS of the 1 USDC of each complete set that the user merges. */
  mergeFee: number | null;
  /** By what each rate limit is multiplied. */
  rateLimitFactor: number | null;
  maxLiveOrders: number | null;
}

/** As for everybody. */
export const USUAL_TERMS: UserTerms = {
  dailyLimit: null,
  tradingFee: null,
  makerRebate: null,
  patRebate: null,
  mergeFee: null,
  rateLimitFactor: null,
  maxLiveOrders: null,
};
/** All terms by their names. */
export const TERM_NAMES = Object.keys(USUAL_TERMS) as (keyof UserTerms)[];

export interface UserRow extends UserTerms {
  id: number;
  email: string;
  role: string;
  kycTier: number;
  createdAt: number;
  passwordHash: string | null;
  emailVerifiedAt: number | null;
  phone: string | null;
  phoneVerifiedAt: number | null;
  suspendedAt: number | null;
}

export interface TokenRow {
  id: number;
  userId: number;
  name: string;
  tokenHash: string;
  prefix: string;
  scopes: string;
  allowedAddresses: string | null;
  createdAt: number;
  lastUsedAt: number | null;
  expiresAt: number | null;
}

export interface SessionRow {
  id: number;
  userId: number;
  grantId: number | null;
  method: string;
  scopes: string;
  family: string;
  refreshHash: string;
  userAgent: string | null;
  address: string | null;
  /** How the sign-in was proven: words of RFC 8176 with spaces between them; null where that isn't known. */
  amr: string | null;
  createdAt: number;
  lastUsedAt: number;
  expiresAt: number;
}

export interface EmailTokenRow {
  id: number;
  userId: number;
  purpose: string;
  tokenHash: string;
  createdAt: number;
  expiresAt: number;
}

export interface OAuthClientRow {
  id: number;
  userId: number;
  clientId: string;
  name: string;
  /** One a line. */
  redirectUris: string;
  secretHash: string | null;
  createdAt: number;
}

export interface OAuthGrantRow {
  id: number;
  userId: number;
  /** The client's row. */
  clientId: number;
  scopes: string;
  createdAt: number;
  lastUsedAt: number | null;
}

export interface IdentityApplicationRow {
  id: number;
  userId: number;
  documentType: string;
  country: string;
  status: string;
  /** The operator's. */
  note: string | null;
  createdAt: number;
  decidedAt: number | null;
}

/** One that is not decided. */
export interface WithdrawalRow {
  id: number;
  userId: number;
  amount: number;
  address: string;
  createdAt: number;
}

/** The first of two approvals. */
export interface ApprovalRow {
  id: number;
  action: string;
  subject: number;
  /** Tells several of one subject apart; "" where nothing needs to. */
  reference: string;
  details: string;
  actor: string;
  createdAt: number;
}

/** A second factor that isn't removed. */
export interface SecondFactorRow {
  id: number;
  userId: number;
  kind: string;
  name: string;
  /** Of a TOTP, sealed; and the time step of the last code that was taken. */
  secret: string | null;
  lastStep: number | null;
  /** Of a passkey: the host that it is for, its id and public key in base64url, its counter, its transports. */
  rpId: string | null;
  credentialId: string | null;
  publicKey: string | null;
  counter: number | null;
  transports: string | null;
  createdAt: number;
  lastUsedAt: number | null;
}

/** A recovery code that wasn't used. */
export interface RecoveryCodeRow {
  id: number;
  userId: number;
  codeHash: string;
}

export interface SecondFactorRows {
  readonly factors: SecondFactorRow[];
  readonly codes: RecoveryCodeRow[];
  /** Of all that there ever were, 0 for none. */
  readonly lastId: number;
}

export interface SocialIdentityRow {
  userId: number;
  issuer: string;
  subject: string;
}

/** What the gateway knows of accounts: all that isn't over. */
export interface AccountRows {
  readonly users: UserRow[];
  readonly tokens: TokenRow[];
  readonly sessions: SessionRow[];
  /** Families of the sessions that ended last, oldest first. */
  readonly endedFamilies: string[];
  readonly lastSessionId: number;
  readonly emailTokens: EmailTokenRow[];
  readonly clients: OAuthClientRow[];
  readonly grants: OAuthGrantRow[];
  readonly identityApplications: IdentityApplicationRow[];
  readonly socialIdentities: SocialIdentityRow[];
  /** Users that a seed made. */
  readonly seededUsers: number[];
  /** Users with an unverified e-mail address who have a record of money all the same: an operator's doing. */
  readonly fundedUsers: number[];
  /** Users whose terms a seed set. */
  readonly seededTerms: number[];
  /** Each address of a user, and when the last sign-in from there was; the last of all are the newest. */
  readonly signIns: SignInRow[];
}

/** Withdrawals that hold their amounts, oldest first. */
export function loadPendingWithdrawals(db: Database.Database): WithdrawalRow[] {
  return db
    .prepare(
      `SELECT id, user_id AS userId, amount, address, created_at AS createdAt FROM withdrawals
       WHERE status = 'pending' ORDER BY id`,
    )
    .all() as WithdrawalRow[];
}

/** When which users' orders are to be canceled, ms. */
export function loadCancelTimers(db: Database.Database): [userId: number, firesAt: number][] {
  const rows = db.prepare("SELECT id, cancels_at FROM users WHERE cancels_at IS NOT NULL").raw();
  return rows.all() as [number, number][];
}

/** First approvals whose second is awaited. */
export function loadApprovals(db: Database.Database): ApprovalRow[] {
  return db
    .prepare(
      `SELECT id, action, subject, reference, details, actor, created_at AS createdAt FROM approvals
       WHERE ended_at IS NULL ORDER BY id`,
    )
    .all() as ApprovalRow[];
}

/** Second factors and recovery codes that count. */
export function loadSecondFactors(db: Database.Database): SecondFactorRows {
  return {
    factors: db
      .prepare(
        `SELECT id, user_id AS userId, kind, name, secret, last_step AS lastStep, rp_id AS rpId,
         credential_id AS credentialId, public_key AS publicKey, counter, transports, created_at AS createdAt,
         last_used_at AS lastUsedAt FROM second_factors WHERE removed_at IS NULL ORDER BY id`,
      )
      .all() as SecondFactorRow[],
    codes: db
      .prepare("SELECT id, user_id AS userId, code_hash AS codeHash FROM recovery_codes WHERE ended_at IS NULL")
      .all() as RecoveryCodeRow[],
    lastId: Number(db.prepare("SELECT coalesce(max(id), 0) FROM second_factors").pluck().get()),
  };
}

/** The terms of users who have fees or rebates of their own. */
export function loadUserRates(db: Database.Database): ({ id: number } & UserTerms)[] {
  const terms = TERM_NAMES.map((name) => `${columnOf(name)} AS ${name}`);
  return db
    .prepare(
      `SELECT id, ${terms.join(", ")} FROM users
       WHERE coalesce(trading_fee, maker_rebate, pat_rebate, merge_fee) IS NOT NULL`,
    )
    .all() as ({ id: number } & UserTerms)[];
}

export interface EventRow {
  id: number;
  slug: string;
  title: string;
  category: string | null;
  closesAt: number | null;
  createdAt: number;
}

/** The database's name of a field: `userId` is in `user_id`. */
export function columnOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

interface SignInRow {
  readonly userId: number;
  readonly address: string;
  /** ms */
  readonly at: number;
}

/** Each of the two parts is found by its index: a session that began since then can't have ended or expired before. */
const SIGN_INS = `
  SELECT user_id AS userId, address, max(created_at) AS at FROM (
    SELECT user_id, grant_id, address, created_at FROM sessions WHERE ended_at IS NULL AND expires_at >= @since
    UNION ALL
    SELECT user_id, grant_id, address, created_at FROM sessions WHERE ended_at IS NOT NULL AND ended_at >= @since)
  WHERE created_at >= @since AND grant_id IS NULL AND address IS NOT NULL
  GROUP BY user_id, address ORDER BY at DESC, userId DESC LIMIT @most`;

/**
 * @param since ms: what expired before is left out @param ended how many of the last ended sessions to name
 * @param signIns how many of the last sign-ins to name, and since when, ms
 */
export function loadAccounts(
  db: Database.Database,
  since: number,
  ended: number,
  signIns: { readonly since: number; readonly most: number },
): AccountRows {
  const rows = <T>(table: string, columns: readonly (keyof T & string)[], rest: string, ...values: number[]): T[] => {
    const named = columns.map((name) => `${columnOf(name)} AS ${name}`);
    // In the order in which they were made: which is the oldest matters.
    return db.prepare(`SELECT ${named.join(", ")} FROM ${table} ${rest} ORDER BY id`).all(...values) as T[];
  };
  const user = ["passwordHash", "emailVerifiedAt", "phone", "phoneVerifiedAt", "suspendedAt", ...TERM_NAMES] as const;
  const token = ["name", "tokenHash", "prefix", "scopes", "allowedAddresses", "lastUsedAt", "expiresAt"] as const;
  const session = ["grantId", "method", "scopes", "family", "refreshHash", "userAgent", "address", "amr"] as const;
  const client = ["clientId", "name", "redirectUris", "secretHash"] as const;
  const made = ["id", "userId", "createdAt"] as const;
  const last = db
    .prepare("SELECT family FROM sessions WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT ?")
    .pluck();
  const seeded = db.prepare("SELECT subject FROM audit_log WHERE actor = 'seed' AND action = ?").pluck();
  const funded = db
    .prepare(
      "SELECT id FROM users WHERE email_verified_at IS NULL AND EXISTS (SELECT 1 FROM entries WHERE user_id = users.id)",
    )
    .pluck();
  return {
    users: rows<UserRow>("users", ["id", "email", "role", "kycTier", "createdAt", ...user], ""),
    tokens: rows<TokenRow>("personal_access_tokens", [...made, ...token], "WHERE revoked_at IS NULL"),
    sessions: rows<SessionRow>(
      "sessions",
      [...made, ...session, "lastUsedAt", "expiresAt"],
      "WHERE ended_at IS NULL AND expires_at > ?",
      since,
    ),
    endedFamilies: last.all(ended).reverse() as string[],
    lastSessionId: Number(db.prepare("SELECT coalesce(max(id), 0) FROM sessions").pluck().get()),
    emailTokens: rows<EmailTokenRow>(
      "email_tokens",
      [...made, "purpose", "tokenHash", "expiresAt"],
      "WHERE used_at IS NULL AND expires_at > ?",
      since,
    ),
    clients: rows<OAuthClientRow>("oauth_clients", [...made, ...client], "WHERE deleted_at IS NULL"),
    grants: rows<OAuthGrantRow>(
      "oauth_grants",
      [...made, "clientId", "scopes", "lastUsedAt"],
      "WHERE revoked_at IS NULL",
    ),
    identityApplications: rows<IdentityApplicationRow>(
      "identity_applications",
      [...made, "documentType", "country", "status", "note", "decidedAt"],
      "WHERE id IN (SELECT max(id) FROM identity_applications GROUP BY user_id)",
    ),
    socialIdentities: rows<SocialIdentityRow>("social_identities", ["userId", "issuer", "subject"], ""),
    seededUsers: seeded.all("user.create") as number[],
    fundedUsers: funded.all() as number[],
    seededTerms: seeded.all("user.set_terms") as number[],
    signIns: (db.prepare(SIGN_INS).all(signIns) as SignInRow[]).reverse(),
  };
}

export function loadEvents(db: Database.Database): EventRow[] {
  return db
    .prepare("SELECT id, slug, title, category, closes_at AS closesAt, created_at AS createdAt FROM events")
    .all() as EventRow[];
}

/** A live order as the database has it; codes are those of constants.ts, flags 0 or 1. */
export type LiveOrderRow = [
  id: number,
  userId: number,
  outcomeId: number,
  side: number,
  type: number,
  timeInForce: number,
  selfTradePrevention: number,
  postOnly: number,
  pat: number,
  price: number,
  quantity: number,
  remaining: number,
  status: number,
  expiresAt: number | null,
  clientOrderId: string | null,
  createdAt: number,
  updatedAt: number,
  fingerprint: number | null,
  builderCode: string | null,
  quote: number,
  tied: number,
  priority: number | null,
];

const LIVE = `status < ${OrderStatus.filled}`;
/** Up to which order `resting_orders` is complete. */
const ORDERS_LISTED = "(SELECT value FROM meta WHERE key = 'orders_listed')";
/** The place of `priority` in a LiveOrderRow. */
const PRIORITY = 21;

/** The builders of live orders that have one, by order. */
export function loadBuildersOfLiveOrders(db: Database.Database): Map<number, number> {
  if (db.prepare("SELECT 1 FROM builders LIMIT 1").get() === undefined) return new Map();
  const rows = db
    .prepare(
      `SELECT id, builder_id FROM orders WHERE ${LIVE} AND builder_id IS NOT NULL
         AND (id IN (SELECT order_id FROM resting_orders) OR id > ${ORDERS_LISTED})`,
    )
    .raw();
  return new Map(rows.all() as [number, number][]);
}

/** How many fills each live order has that a crash interrupted in its matching: none of them was reported. */
export function loadUnreportedFills(db: Database.Database): Map<number, number> {
  const interrupted = db
    .prepare(
      `SELECT id, last_fill_id FROM orders WHERE status = ${OrderStatus.queued}
         AND (id IN (SELECT order_id FROM resting_orders) OR id > ${ORDERS_LISTED})`,
    )
    .raw()
    .all() as [order: number, lastFill: number][];
  const count = db
    .prepare(
      `WITH RECURSIVE chain (link) AS (
         SELECT @lastFill
         UNION ALL SELECT previous_of_order FROM chain CROSS JOIN fills ON id = link WHERE order_id = @order)
       SELECT count(*) FROM chain CROSS JOIN fills ON id = link WHERE order_id = @order`,
    )
    .pluck();
  return new Map(interrupted.map(([order, lastFill]) => [order, Number(count.get({ order, lastFill }))]));
}

/** The last number of each user's order updates. */
export function loadUpdateSequences(db: Database.Database): [userId: number, sequence: number][] {
  return db
    .prepare(
      `SELECT user_id, max(sequence) FROM (
         SELECT user_id, update_sequence AS sequence FROM newest_of_user UNION ALL
         SELECT user_id, max(sequence) FROM order_updates
           WHERE id > (SELECT value FROM meta WHERE key = 'newest_update') GROUP BY user_id)
       GROUP BY user_id`,
    )
    .raw()
    .all() as [number, number][];
}

/** The first id whose row was made at or after `since` (ms), or one past the last. */
export function firstIdSince(db: Database.Database, table: "orders" | "fills" | "entries", since: number): number {
  // Times rise with ids but for clock steps: bisect instead of reading the whole table.
  const at = db.prepare(`SELECT id, created_at FROM ${table} WHERE id >= ? ORDER BY id LIMIT 1`).raw();
  let low = 0;
  let high = Number(db.prepare(`SELECT coalesce(max(id), 0) FROM ${table}`).pluck().get()) + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const row = at.get(middle) as [number, number] | undefined;
    if (row !== undefined && row[1] < since) low = row[0] + 1;
    else high = middle;
  }
  return low;
}

/** Orders from `first` on with a client order id that were placed at or after `since` (ms), oldest first. */
export function loadClientOrders(
  db: Database.Database,
  first: number,
  since: number,
): IterableIterator<[id: number, userId: number, clientOrderId: string, createdAt: number]> {
  return db
    .prepare(
      `SELECT id, user_id, client_order_id, created_at FROM orders
       WHERE id >= ? AND client_order_id IS NOT NULL AND created_at >= ? ORDER BY id`,
    )
    .raw()
    .iterate(first, since) as IterableIterator<[number, number, string, number]>;
}

/**
 * A live order's row as it is read: what it costs is the number of its values, not their bytes, so that all small ones
 * come in one, of 50 bits.
 */
const PACKED = `(outcome_id << 30) | (price << 16) | (status << 12) | (self_trade_prevention << 10) |
  (time_in_force << 8) | (side << 6) | (type << 4) | (post_only << 3) | (pat << 2) | (quote << 1) | tied`;
const PACKED_CODES = 2 ** 16;
type PackedOrderRow = [
  id: number,
  userId: number,
  packed: number,
  quantity: number,
  remaining: number,
  createdAt: number,
  updatedAt: number,
  expiresAt: number | null,
  clientOrderId: string | null,
  fingerprint: number | null,
  builderId: number | null,
  priority: number | null,
];
/** Rows that are read at a time: one by one they take a tenth longer. */
const LIVE_CHUNK = 100;

function unpackOrder(row: PackedOrderRow, builderCodes: ReadonlyMap<number, string>): LiveOrderRow {
  const [id, user, packed, quantity, remaining, createdAt, updatedAt, expiresAt, clientOrderId, fingerprint, ...rest] =
    row;
  const [builder, priority] = rest;
  const codes = packed % PACKED_CODES;
  const terms = (packed - codes) / PACKED_CODES;
  return [
    id,
    user,
    Math.floor(terms / 2 ** 14),
    (codes >> 6) & 3,
    (codes >> 4) & 3,
    (codes >> 8) & 3,
    (codes >> 10) & 3,
    (codes >> 3) & 1,
    (codes >> 2) & 1,
    terms % 2 ** 14,
    quantity,
    remaining,
    codes >> 12,
    expiresAt,
    clientOrderId,
    createdAt,
    updatedAt,
    fingerprint,
    builder === null ? null : builderCodes.get(builder)!,
    (codes >> 1) & 1,
    codes & 1,
    priority,
  ];
}

/**
 * Live orders in the order of their time priority: their ids', but for those whom an amend gave a later one. As of one
 * moment, in a transaction of this connection: the journal may go on with its lists meanwhile.
 */
export function* loadLiveOrders(db: Database.Database): Generator<LiveOrderRow> {
  db.exec("BEGIN");
  try {
    yield* inPriority(readLiveOrders(db));
  } finally {
    db.exec("COMMIT");
  }
}

/** By id, each part by itself, so that a million of them are not sorted in memory. */
function* readLiveOrders(db: Database.Database): Generator<LiveOrderRow> {
  const codes = new Map(db.prepare("SELECT id, code FROM builders").raw().all() as [number, string][]);
  const columns = `id, user_id, ${PACKED}, quantity, remaining, created_at, updated_at, expires_at, client_order_id,
    fingerprint, builder_id, priority`;
  const parts = [
    `resting_orders CROSS JOIN orders ON id = order_id
     WHERE ${LIVE} AND order_id > ? AND order_id <= ${ORDERS_LISTED} ORDER BY order_id`,
    `orders WHERE ${LIVE} AND id > max(?, ${ORDERS_LISTED}) ORDER BY id`,
  ].map((part) => db.prepare(`SELECT ${columns} FROM ${part} LIMIT ${LIVE_CHUNK}`).raw());
  for (const part of parts) {
    let rows: PackedOrderRow[];
    let last = 0;
    do {
      rows = part.all(last) as PackedOrderRow[];
      for (const row of rows) yield unpackOrder(row, codes);
      last = rows.at(-1)?.[0] ?? last;
    } while (rows.length === LIVE_CHUNK);
  }
}

/** An order's later priority is above the ids before that amend, of which its own is one: it waits for its place. */
function* inPriority(rows: Iterable<LiveOrderRow>): Generator<LiveOrderRow> {
  const later = new MinHeap<{ at: number; row: LiveOrderRow }>();
  for (const row of rows) {
    while (later.size > 0 && later.peek()!.at < row[0]) yield later.take().row;
    const priority = row[PRIORITY]!;
    if (priority === null) yield row;
    else later.add({ at: Number(priority), row });
  }
  while (later.size > 0) yield later.take().row;
}
