/**
 * Account writes: what reaches the journal beside the rings, because it carries text and isn't hot. The gateway posts
 * them as messages; the journal applies each in the transaction at hand and answers after its commit.
 * Each write either happens whole or is answered with an error that a user can understand.
 */
import type Database from "better-sqlite3";
import { MarketStatus } from "../constants.ts";
import type { Ledger } from "../ledger.ts";
import {
  FULL_PRICE_BPS,
  LAST_PROPOSED_OUTCOME_ID,
  MAX_ACTIVE_BOOKS,
  MAX_OUTCOME_ID,
  MAX_SWEPT_ROWS,
  MAX_USERS,
  SEED_REFERENCE,
} from "../limits.ts";
import { assert } from "../util/assert.ts";
import { columnOf } from "./columns.ts";
import type {
  EmailTokenRow,
  IdentityApplicationRow,
  OAuthClientRow,
  OAuthGrantRow,
  RecoveryCodeRow,
  SecondFactorRow,
  SessionRow,
  SocialIdentityRow,
} from "./load/accounts.ts";
import type { ApprovalRow, WithdrawalRow } from "./load/wallet.ts";
import { type OutcomeIds, refusedOutcomeId } from "./outcome-ids.ts";
import { RowInserter } from "./row-inserter.ts";
import { indexedWords } from "./search-words.ts";
import { DEFAULT_TERMS, TERM_NAMES, type UserTerms } from "./user-terms.ts";

type Value = string | number | null;

/** The tables whose rows are written as they are, and the columns of which that is true, named as in TypeScript. */
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
  /** Of an order whose placement is durable. */
  orders: "tied";
  /** New ones hold their amount; what ends one without payment frees it. */
  withdrawals: keyof WithdrawalRow | "status" | "note" | "decidedAt";
  approvals: keyof ApprovalRow | "endedAt";
  second_factors: keyof SecondFactorRow | "removedAt";
  recovery_codes: keyof RecoveryCodeRow | "createdAt" | "endedAt";
  /** While no exchange runs: the engine's events write it. */
  markets: "status";
}

/** A new row; `created` of its result is false where one with the same key is there. */
type InsertRow = {
  [T in keyof PlainTables]: { kind: "insert"; table: T; row: { [C in PlainTables[T]]?: Value } };
}[keyof PlainTables];
/** New values of a row's columns. */
type UpdateRow = {
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
  /** An account without any record of money, and all that it left. Changes nothing where money was ever there. */
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
  /** Refused where the reference is another deposit's. @see HOUSE for the user */
  | { kind: "deposit"; userId: number; amount: number; reference: string; at: number }
  /** What the house earned, or was lent, leaves. */
  | { kind: "withdrawFromHouse"; amount: number; reference: string; at: number }
  /** Of a pending withdrawal of that user and amount: it leaves the exchange. Refused where the reference is another's. */
  | {
      kind: "payWithdrawal";
      id: number;
      userId: number;
      amount: number;
      reference: string | null;
      note: string | null;
      at: number;
    }
  /** Takes away a slice of the rows that are over: tokens, links, grants and clients, and sessions ended before a time (ms). */
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
      /** The user who proposes it: it is not open then. */
      proposedBy: number | null;
      at: number;
    }
  /** A proposal is approved: trading begins. */
  | { kind: "openMarket"; marketId: number; note: string | null; at: number }
  /** A proposal is refused: the ids of its outcomes are free. */
  | { kind: "refuseMarket"; marketId: number; note: string | null; at: number }
  | {
      kind: "describeMarket";
      marketId: number;
      description: string | null;
      category: string | null;
      closesAt: number | null;
    }
  /**
   * Pays all holders of a closed market whose orders are gone, in this one transaction.
   * payouts: BPS of each outcome, which come to 10000.
   */
  | {
      kind: "settleMarket";
      marketId: number;
      status: typeof MarketStatus.resolved | typeof MarketStatus.voided;
      payouts: readonly number[];
      note: string | null;
      at: number;
    };

/** As a user id: the exchange's own account. */
export const HOUSE = 0;

/** A line of the audit log: who changed what, when, and by which request. Never holds a token, a password or a code. */
export interface AuditEntry {
  readonly at: number;
  /** Such as `session.start`. */
  readonly action: string;
  readonly actor: string;
  /** Whose money or access it is; "subject" where that is the user that is made. */
  readonly userId: number | "subject" | null;
  /** The write of the request that it tells of: where that changed nothing, nothing is told. */
  readonly write: number;
  /** Of what was changed; null stands for the write's own row. */
  readonly subject: number | null;
  readonly details: object | null;
  readonly requestId: string | null;
  readonly address: string | null;
}

/** `id` is the new row's; `created` is false where the same thing was there already and nothing changed. */
export interface WriteResult {
  id: number;
  created: boolean;
  /** Of a market: its first outcome's id; the others follow. */
  firstOutcomeId?: number;
  /** Of a settlement: whose shares of which outcome were paid out, by user. */
  settled?: { readonly users: Int32Array; readonly outcomes: Int32Array };
}

/** A write that cannot be done, in words for whoever asked; thrown before anything changed. */
export class WriteRefused extends Error {}

/** The last ids are the engine threads' own, for their warm-up. */
const LAST_OUTCOME_ID = MAX_OUTCOME_ID - 2;

const ENTRIES_TABLE = `entries (id, user_id, type, amount, balance_after, market_id, outcome_id, reference, created_at,
  last_fill_id, quantity, cost)`;
const ENTRY_COLUMNS = 12;

/** What account writes need of the journal: its ledger, its entry counter and its map of markets. */
export interface WriteContext {
  readonly ledger: Ledger;
  nextEntryId(): number;
  /** The user's newest fill, 0 where there is none. */
  newestFill(userId: number): number;
  addMarket(marketId: number, firstOutcomeId: number, outcomes: number): void;
  /** Outcomes of markets that can still have orders. */
  openOutcomes(): number;
  /** Trading begins in the market. */
  openMarket(marketId: number): void;
  readonly outcomeIds: OutcomeIds;
  /** The market never trades. */
  forgetMarket(marketId: number): void;
  /** The first outcome of a market and their number. */
  outcomesOf(marketId: number): { readonly first: number; readonly count: number };
  markUser(userId: number): void;
  markPosition(position: number): void;
  markMarket(marketId: number): void;
  setTerms(userId: number, terms: UserTerms): void;
}

export type ApplyWrite = (write: AccountWrite) => WriteResult;

/** Answers a function that inserts or updates a row of any plain table; each set of columns is prepared once. */
function prepareRows(db: Database.Database): (write: InsertRow | UpdateRow) => WriteResult {
  const statements = new Map<string, Database.Statement>();
  const statement = (sql: string): Database.Statement => {
    let found = statements.get(sql);
    if (found === undefined) {
      found = db.prepare(sql);
      statements.set(sql, found);
    }
    return found;
  };
  return (write) => {
    if (write.kind === "update") {
      const set = Object.keys(write.set).map((name) => `${columnOf(name)} = ?`);
      const run = statement(`UPDATE ${write.table} SET ${set.join(", ")} WHERE id = ?`);
      return { id: write.id, created: run.run(...Object.values(write.set), write.id).changes > 0 };
    }
    const columns = Object.keys(write.row).map(columnOf);
    const bound = columns.map(() => "?").join(", ");
    const run = statement(`INSERT OR IGNORE INTO ${write.table} (${columns.join(", ")}) VALUES (${bound})`);
    const { changes, lastInsertRowid } = run.run(...Object.values(write.row));
    return { id: Number(lastInsertRowid), created: changes > 0 };
  };
}

export function prepareAudit(db: Database.Database): (entry: AuditEntry, subject: number | null) => void {
  const insert = db.prepare(
    `INSERT INTO audit_log (at, action, actor, user_id, subject, details, request_id, address)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return ({ at, action, actor, userId, details, requestId, address }, subject) => {
    const user = userId === "subject" ? subject : userId;
    insert.run(at, action, actor, user, subject, details && JSON.stringify(details), requestId, address);
  };
}

/** The ids of users: fresh ones, and when there are no more, those of deleted accounts. */
function prepareUserIds(db: Database.Database) {
  const last = db
    .prepare("SELECT max(coalesce(max(id), 0), coalesce((SELECT max(id) FROM free_user_ids), 0)) FROM users")
    .pluck();
  const firstFree = db.prepare("SELECT min(id) FROM free_user_ids").pluck();
  const remove = db.prepare("DELETE FROM free_user_ids WHERE id = ?");
  const add = db.prepare("INSERT INTO free_user_ids VALUES (?)");
  return {
    /** Null where every id is somebody's. */
    take(): number | null {
      const fresh = Number(last.get()) + 1;
      if (fresh <= MAX_USERS) return fresh;
      const id = firstFree.get();
      if (id === null) return null;
      remove.run(id);
      return Number(id);
    },
    free: (id: number): void => void add.run(id),
  };
}

/** Tables of money and trading, and the audit log: an account that is in the former stays, the latter keeps its lines. */
const KEPT_TABLES = new Set([
  ...["audit_log", "entries", "orders", "fills", "positions", "order_updates", "update_marks", "newest_of_user"],
  "withdrawals",
]);

/** Answers a function that deletes an account, and its rows in every table that names users; false where it has money. */
function prepareDeletion(db: Database.Database, context: WriteContext): (userId: number) => boolean {
  const hasMoney = db.prepare("SELECT EXISTS (SELECT 1 FROM entries WHERE user_id = ?)").pluck();
  const tables = db
    .prepare(
      `SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'user_id'
       WHERE m.type = 'table' ORDER BY m.name`,
    )
    .pluck()
    .all() as string[];
  const granted = "SELECT id FROM oauth_grants WHERE client_id IN (SELECT id FROM oauth_clients WHERE user_id = ?)";
  const statements = [
    `DELETE FROM sessions WHERE grant_id IN (${granted})`,
    "DELETE FROM oauth_grants WHERE client_id IN (SELECT id FROM oauth_clients WHERE user_id = ?)",
    ...tables.filter((name) => !KEPT_TABLES.has(name)).map((name) => `DELETE FROM ${name} WHERE user_id = ?`),
    "DELETE FROM users WHERE id = ?",
  ].map((sql) => db.prepare(sql));
  return (userId) => {
    if (hasMoney.get(userId) === 1 || context.newestFill(userId) !== 0) return false;
    let changes = 0;
    for (const statement of statements) ({ changes } = statement.run(userId));
    context.setTerms(userId, DEFAULT_TERMS);
    return changes > 0;
  };
}

/**
 * Answers a function that deletes some rows of each kind that are over, those first that others refer to, and answers how
 * many. The newest row of a table stays, so that its id is not given out again.
 */
function prepareSweep(db: Database.Database): (endedBefore: number, at: number) => number {
  const rows = (table: string, over: string, order = "ORDER BY id"): string =>
    `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} t WHERE ${over}
       AND id < (SELECT max(id) FROM ${table}) ${order} LIMIT ${MAX_SWEPT_ROWS})`;
  // Rows that are found by a time come in its order: sorting them by id would read them all.
  const AS_FOUND = "";
  const noSession = "NOT EXISTS (SELECT 1 FROM sessions WHERE grant_id = t.id)";
  const noGrant = "NOT EXISTS (SELECT 1 FROM oauth_grants WHERE client_id = t.id)";
  const statements = [
    rows("sessions", "ended_at < @endedBefore", AS_FOUND),
    rows("sessions", "ended_at IS NULL AND expires_at < @endedBefore", AS_FOUND),
    rows("email_tokens", "used_at IS NOT NULL"),
    rows("email_tokens", "used_at IS NULL AND expires_at < @at", AS_FOUND),
    rows("personal_access_tokens", "revoked_at IS NOT NULL"),
    rows("oauth_grants", `revoked_at IS NOT NULL AND ${noSession}`),
    rows("oauth_clients", `deleted_at IS NOT NULL AND ${noGrant}`),
  ].map((sql) => db.prepare(sql));
  return (endedBefore, at) => {
    let count = 0;
    for (const statement of statements) count += statement.run({ endedBefore, at }).changes;
    return count;
  };
}

/** Prepares the statements of all kinds of write. The answer applies one inside the caller's transaction. */
export function prepareWrites(db: Database.Database, context: WriteContext): ApplyWrite {
  const userByEmail = db.prepare("SELECT id FROM users WHERE email = ?").pluck();
  const users = prepareUserIds(db);
  const deleteUser = prepareDeletion(db, context);
  const sweep = prepareSweep(db);
  const insertUser = db.prepare(
    `INSERT INTO users (id, email, role, kyc_tier, password_hash, email_verified_at, phone_verified_at, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertAccount = db.prepare("INSERT INTO accounts VALUES (?, 0, 0, 0)");
  const tokenByHash = db.prepare("SELECT id FROM personal_access_tokens WHERE token_hash = ?").pluck();
  const insertToken = db.prepare(
    `INSERT INTO personal_access_tokens (user_id, name, token_hash, prefix, scopes, allowed_addresses, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const entryByReference = db.prepare("SELECT id, user_id, amount FROM entries WHERE reference = ?").raw();
  const entries = new RowInserter(db, ENTRIES_TABLE, new Array<string>(ENTRY_COLUMNS).fill("?"));
  const withdrawalByReference = db.prepare("SELECT id FROM withdrawals WHERE reference = ?").pluck();
  const payWithdrawal = db.prepare(
    "UPDATE withdrawals SET status = 'paid', reference = ?, note = ?, decided_at = ? WHERE id = ? AND status = 'pending'",
  );
  const setTerms = db.prepare(
    `UPDATE users SET ${TERM_NAMES.map((name) => `${columnOf(name)} = ?`).join(", ")} WHERE id = ?`,
  );
  const eventBySlug = db.prepare("SELECT id FROM events WHERE slug = ?").pluck();
  const insertEvent = db.prepare(
    "INSERT INTO events (slug, title, category, closes_at, created_at) VALUES (?, ?, ?, ?, ?)",
  );
  const insertEventWords = db.prepare("INSERT INTO event_words (rowid, words) VALUES (?, ?)");
  const marketBySlug = db.prepare("SELECT id FROM markets WHERE slug = ?").pluck();
  const insertMarket = db.prepare(
    `INSERT INTO markets (slug, question, description, category, event_id, status, sets, opens_at, closes_at, proposed_by,
       created_at) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`,
  );
  const insertMarketWords = db.prepare("INSERT INTO market_words (rowid, words) VALUES (?, ?)");
  const lastMarket = db.prepare("SELECT coalesce(max(id), 0) FROM markets").pluck();
  const refuseMarket = db.prepare(
    `UPDATE markets SET status = ${MarketStatus.rejected}, decided_at = ?, decision_note = ? WHERE id = ?`,
  );
  const renumberOutcomes = db.prepare("UPDATE outcomes SET id = ? + position WHERE market_id = ?");
  const firstOutcome = db.prepare("SELECT min(id) FROM outcomes WHERE market_id = ?").pluck();
  const insertOutcome = db.prepare("INSERT INTO outcomes VALUES (?, ?, ?, ?, NULL, 0, NULL)");
  const marketStatus = db.prepare("SELECT status FROM markets WHERE id = ?").pluck();
  const openMarket = db.prepare(
    `UPDATE markets SET status = ${MarketStatus.open}, opens_at = @at, decided_at = @at, decision_note = @note
     WHERE id = @marketId`,
  );
  const describeMarket = db.prepare("UPDATE markets SET description = ?, category = ?, closes_at = ? WHERE id = ?");
  const marketTexts = db
    .prepare(
      `SELECT question, description, category, slug,
         (SELECT group_concat(name, ' ') FROM outcomes WHERE market_id = markets.id) FROM markets WHERE id = ?`,
    )
    .raw();
  const removeMarketWords = db.prepare("DELETE FROM market_words WHERE rowid = ?");
  const settleMarket = db.prepare(
    "UPDATE markets SET status = ?, resolution_note = ?, resolved_at = ?, settled_sets = ? WHERE id = ?",
  );
  const setPayout = db.prepare("UPDATE outcomes SET payout = ? WHERE id = ?");

  const applyRow = prepareRows(db);
  const existing = (id: unknown): WriteResult => ({ id: Number(id), created: false });

  /** Writes an entry of a user's (or the house's) money as it stands now; answers its id. Flushed by whoever began. */
  const enter = (
    userId: number,
    type: string,
    amount: number,
    at: number,
    rest: { reference?: string; marketId?: number; outcomeId?: number; quantity?: number; cost?: number } = {},
  ): number => {
    const id = context.nextEntryId();
    const row = entries.next();
    const { params } = entries;
    params[row] = id;
    params[row + 1] = userId;
    params[row + 2] = type;
    params[row + 3] = amount;
    params[row + 4] = userId === HOUSE ? context.ledger.totals.house : context.ledger.balance(userId);
    params[row + 5] = rest.marketId ?? null;
    params[row + 6] = rest.outcomeId ?? null;
    params[row + 7] = rest.reference ?? null;
    params[row + 8] = at;
    params[row + 9] = userId === HOUSE ? 0 : context.newestFill(userId);
    params[row + 10] = rest.quantity ?? null;
    params[row + 11] = rest.cost ?? null;
    if (userId !== HOUSE) context.markUser(userId);
    return id;
  };
  /** The entry that has the reference already, if it is the same; null where there is none. */
  const repeated = (reference: string, userId: number, amount: number): WriteResult | null => {
    const found = entryByReference.get(reference) as [id: number, userId: number, amount: number] | undefined;
    if (found === undefined) return null;
    // A seed counts once, whatever it says later.
    if (!reference.startsWith(SEED_REFERENCE) && (found[1] !== userId || found[2] !== amount)) {
      throw new WriteRefused("reference: another one has it");
    }
    return existing(found[0]);
  };
  const checkRoom = (outcomes: number): void => {
    if (context.openOutcomes() + outcomes > MAX_ACTIVE_BOOKS) {
      throw new WriteRefused("the exchange holds no more open markets than that");
    }
  };

  const settle = (write: AccountWrite & { kind: "settleMarket" }): WriteResult => {
    const { marketId, payouts, at } = write;
    const { ledger } = context;
    const { first, count } = context.outcomesOf(marketId);
    assert(payouts.length === count, "each outcome has a payout");
    assert(payouts.reduce((sum, bps) => sum + bps, 0) === FULL_PRICE_BPS, "payouts come to what a set is worth");
    assert(marketStatus.get(marketId) === MarketStatus.closed, "a market is closed before it is settled");
    const positions = ledger.holders(first, count);
    const users = new Int32Array(positions.length);
    const outcomes = new Int32Array(positions.length);
    positions.forEach((position, i) => {
      const userId = ledger.userOf(position);
      const outcomeId = ledger.outcomeOf(position);
      const quantity = ledger.quantity(position);
      const cost = ledger.cost(position);
      const amount = ledger.settle(position, payouts[outcomeId - first]!);
      enter(userId, "settlement", amount, at, { marketId, outcomeId, quantity, cost });
      context.markPosition(position);
      users[i] = userId;
      outcomes[i] = outcomeId;
    });
    entries.flush();
    const sets = ledger.endSets(marketId);
    payouts.forEach((payout, i) => {
      setPayout.run(payout, first + i);
    });
    settleMarket.run(write.status, write.note, at, sets, marketId);
    context.markMarket(marketId);
    return { id: marketId, created: true, settled: { users, outcomes } };
  };

  return (write) => {
    switch (write.kind) {
      case "insert":
      case "update":
        return applyRow(write);
      case "createUser": {
        const found = userByEmail.get(write.email);
        if (found !== undefined) return existing(found);
        const id = users.take();
        if (id === null) throw new WriteRefused("the exchange has no more users than that");
        const { email, role, kycTier, passwordHash, emailVerifiedAt, phoneVerifiedAt, at } = write;
        insertUser.run(id, email, role, kycTier, passwordHash, emailVerifiedAt, phoneVerifiedAt, at);
        insertAccount.run(id);
        context.ledger.restoreAccount(id, 0, 0, 0);
        return { id, created: true };
      }
      case "sweep": {
        const swept = sweep(write.endedBefore, write.at);
        return { id: swept, created: swept > 0 };
      }
      case "deleteUser": {
        const created = deleteUser(write.userId);
        if (created) users.free(write.userId);
        return { id: write.userId, created };
      }
      case "createToken": {
        const found = tokenByHash.get(write.tokenHash);
        if (found !== undefined) return existing(found);
        const scopes = write.scopes.join(" ");
        const { lastInsertRowid } = insertToken.run(
          write.userId,
          write.name,
          write.tokenHash,
          write.prefix,
          scopes,
          write.allowedAddresses?.join(" ") ?? null,
          write.at,
          write.expiresAt,
        );
        return { id: Number(lastInsertRowid), created: true };
      }
      case "deposit": {
        const { userId, amount, reference, at } = write;
        const found = repeated(reference, userId, amount);
        if (found !== null) return found;
        if (!context.ledger.canDeposit(amount)) throw new WriteRefused("the exchange holds no more money than that");
        if (userId === HOUSE) context.ledger.fundHouse(amount);
        else context.ledger.deposit(userId, amount);
        const id = enter(userId, "deposit", amount, at, { reference });
        entries.flush();
        return { id, created: true };
      }
      case "withdrawFromHouse": {
        const { amount, reference, at } = write;
        const found = repeated(reference, HOUSE, -amount);
        if (found !== null) return found;
        if (context.ledger.totals.house < amount) throw new WriteRefused("amount: the house has less than that");
        context.ledger.fundHouse(-amount);
        const id = enter(HOUSE, "withdrawal", -amount, at, { reference });
        entries.flush();
        return { id, created: true };
      }
      case "payWithdrawal": {
        const { id, userId, amount, reference, note, at } = write;
        if (reference !== null && withdrawalByReference.get(reference) !== undefined) {
          throw new WriteRefused("reference: another withdrawal has it");
        }
        assert(payWithdrawal.run(reference, note, at, id).changes === 1, "what is paid was waiting");
        context.ledger.withdraw(userId, amount);
        enter(userId, "withdrawal", -amount, at);
        entries.flush();
        return { id, created: true };
      }
      case "setTerms": {
        const { userId } = write;
        setTerms.run(...TERM_NAMES.map((name) => write[name]), userId);
        context.setTerms(userId, write);
        return { id: userId, created: true };
      }
      case "createEvent": {
        const found = eventBySlug.get(write.slug);
        if (found !== undefined) return existing(found);
        const run = insertEvent.run(write.slug, write.title, write.category, write.closesAt, write.at);
        insertEventWords.run(run.lastInsertRowid, indexedWords(write.title, write.category, write.slug));
        return { id: Number(run.lastInsertRowid), created: true };
      }
      case "createMarket": {
        const found = marketBySlug.get(write.slug);
        if (found !== undefined) return { ...existing(found), firstOutcomeId: Number(firstOutcome.get(found)) };
        const isOpen = write.proposedBy === null;
        const last = isOpen ? LAST_OUTCOME_ID : LAST_PROPOSED_OUTCOME_ID;
        if (isOpen) checkRoom(write.outcomes.length);
        const first = Number(lastMarket.get()) < last ? context.outcomeIds.allocate(write.outcomes.length, last) : null;
        if (first === null) {
          throw new WriteRefused(`the exchange holds no more ${isOpen ? "markets" : "proposals"} than that`);
        }
        const run = insertMarket.run(
          write.slug,
          write.question,
          write.description,
          write.category,
          write.eventId,
          isOpen ? MarketStatus.open : MarketStatus.proposed,
          write.opensAt,
          write.closesAt,
          write.proposedBy,
          write.at,
        );
        const id = Number(run.lastInsertRowid);
        write.outcomes.forEach((name, position) => {
          insertOutcome.run(first + position, id, position, name);
        });
        const { question, description, category, slug, outcomes } = write;
        insertMarketWords.run(id, indexedWords(question, description, category, slug, ...outcomes));
        context.addMarket(id, first, outcomes.length);
        if (isOpen) context.openMarket(id);
        return { id, created: true, firstOutcomeId: first };
      }
      case "openMarket": {
        const { marketId, note, at } = write;
        checkRoom(context.outcomesOf(marketId).count);
        openMarket.run({ marketId, note, at });
        context.openMarket(marketId);
        return { id: marketId, created: true };
      }
      case "refuseMarket": {
        const { marketId, note, at } = write;
        assert(marketStatus.get(marketId) === MarketStatus.proposed, "only a proposal is refused");
        const { first, count } = context.outcomesOf(marketId);
        refuseMarket.run(at, note, marketId);
        renumberOutcomes.run(refusedOutcomeId(marketId), marketId);
        context.outcomeIds.free(first, count);
        context.forgetMarket(marketId);
        return { id: marketId, created: true };
      }
      case "describeMarket": {
        const { marketId, description, category, closesAt } = write;
        describeMarket.run(description, category, closesAt, marketId);
        removeMarketWords.run(marketId);
        insertMarketWords.run(marketId, indexedWords(...(marketTexts.get(marketId) as (string | null)[])));
        return { id: marketId, created: true };
      }
      case "settleMarket":
        return settle(write);
    }
  };
}
