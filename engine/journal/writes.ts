/**
 * Account writes: what reaches the journal beside the rings, because it carries text and isn't hot. The gateway posts
 * them as messages; the journal applies each in the transaction at hand and answers after its commit.
 * Each write either happens whole or is answered with an error that a user can understand.
 */
import type Database from "better-sqlite3";
import { MarketStatus } from "../constants.ts";
import type { Ledger } from "../ledger.ts";
import { MAX_ACTIVE_BOOKS, MAX_OUTCOME_ID, MAX_USERS } from "../limits.ts";
import {
  columnOf,
  type EmailTokenRow,
  type IdentityApplicationRow,
  type OAuthClientRow,
  type OAuthGrantRow,
  type SessionRow,
  type SocialIdentityRow,
} from "./load.ts";
import { indexedWords } from "./search-words.ts";

type Value = string | number | null;

/** The tables whose rows are written as they are, and the columns of which that is true, named as in TypeScript. */
interface PlainTables {
  users: "passwordHash" | "emailVerifiedAt" | "phone" | "phoneVerifiedAt" | "kycTier" | "suspendedAt";
  personal_access_tokens: "lastUsedAt" | "revokedAt";
  sessions: keyof SessionRow | "endedAt" | "endReason";
  email_tokens: keyof EmailTokenRow | "usedAt";
  identity_applications: keyof IdentityApplicationRow | "documentNumber";
  oauth_clients: keyof OAuthClientRow | "deletedAt";
  oauth_grants: keyof OAuthGrantRow | "revokedAt";
  social_identities: keyof SocialIdentityRow | "createdAt";
  /** Of an order whose placement is durable. */
  orders: "tied";
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
  | { kind: "deposit"; userId: number; amount: number; reference: string; at: number }
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
      at: number;
    };

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
}

/** A write that cannot be done, in words for whoever asked; thrown before anything changed. */
export class WriteRefused extends Error {}

/** The last ids are the engine threads' own, for their warm-up. */
const LAST_OUTCOME_ID = MAX_OUTCOME_ID - 2;

/** What account writes need of the journal: its ledger, its entry counter and its map of markets. */
export interface WriteContext {
  readonly ledger: Ledger;
  nextEntryId(): number;
  /** The user's newest fill, 0 where there is none. */
  newestFill(userId: number): number;
  addMarket(marketId: number, firstOutcomeId: number, outcomes: number): void;
  /** Outcomes of markets that can still have orders. */
  openOutcomes(): number;
  markUser(userId: number): void;
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

/** Prepares the statements of all kinds of write. The answer applies one inside the caller's transaction. */
export function prepareWrites(db: Database.Database, context: WriteContext): ApplyWrite {
  const userByEmail = db.prepare("SELECT id FROM users WHERE email = ?").pluck();
  const lastUser = db.prepare("SELECT coalesce(max(id), 0) FROM users").pluck();
  const insertUser = db.prepare(
    `INSERT INTO users (email, role, kyc_tier, password_hash, email_verified_at, phone_verified_at, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertAccount = db.prepare("INSERT INTO accounts VALUES (?, 0, 0, 0)");
  const tokenByHash = db.prepare("SELECT id FROM personal_access_tokens WHERE token_hash = ?").pluck();
  const insertToken = db.prepare(
    `INSERT INTO personal_access_tokens (user_id, name, token_hash, prefix, scopes, allowed_addresses, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const entryByReference = db.prepare("SELECT id FROM entries WHERE reference = ?").pluck();
  const insertEntry = db.prepare("INSERT INTO entries VALUES (?, ?, ?, ?, ?, NULL, NULL, ?, ?, ?)");
  const eventBySlug = db.prepare("SELECT id FROM events WHERE slug = ?").pluck();
  const insertEvent = db.prepare(
    "INSERT INTO events (slug, title, category, closes_at, created_at) VALUES (?, ?, ?, ?, ?)",
  );
  const insertEventWords = db.prepare("INSERT INTO event_words (rowid, words) VALUES (?, ?)");
  const marketBySlug = db.prepare("SELECT id FROM markets WHERE slug = ?").pluck();
  const insertMarket = db.prepare(
    `INSERT INTO markets (slug, question, description, category, event_id, status, sets, opens_at, closes_at, created_at)
     VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?)`,
  );
  const insertMarketWords = db.prepare("INSERT INTO market_words (rowid, words) VALUES (?, ?)");
  const lastOutcome = db.prepare("SELECT coalesce(max(id), 0) FROM outcomes").pluck();
  const firstOutcome = db.prepare("SELECT min(id) FROM outcomes WHERE market_id = ?").pluck();
  const insertOutcome = db.prepare("INSERT INTO outcomes VALUES (?, ?, ?, ?, NULL, 0)");

  const applyRow = prepareRows(db);
  const existing = (id: unknown): WriteResult => ({ id: Number(id), created: false });

  return (write) => {
    switch (write.kind) {
      case "insert":
      case "update":
        return applyRow(write);
      case "createUser": {
        const found = userByEmail.get(write.email);
        if (found !== undefined) return existing(found);
        if (Number(lastUser.get()) >= MAX_USERS) throw new WriteRefused("the exchange has no more users than that");
        const { email, role, kycTier, passwordHash, emailVerifiedAt, phoneVerifiedAt, at } = write;
        const run = insertUser.run(email, role, kycTier, passwordHash, emailVerifiedAt, phoneVerifiedAt, at);
        const id = Number(run.lastInsertRowid);
        insertAccount.run(id);
        context.ledger.restoreAccount(id, 0, 0, 0);
        return { id, created: true };
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
        const found = entryByReference.get(write.reference);
        if (found !== undefined) return existing(found);
        if (!context.ledger.canDeposit(write.amount))
          throw new WriteRefused("the exchange holds no more money than that");
        context.ledger.deposit(write.userId, write.amount);
        const id = context.nextEntryId();
        const after = context.ledger.balance(write.userId);
        const lastFill = context.newestFill(write.userId);
        insertEntry.run(id, write.userId, "deposit", write.amount, after, write.reference, write.at, lastFill);
        context.markUser(write.userId);
        return { id, created: true };
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
        const first = Number(lastOutcome.get()) + 1;
        const tooMany = first + write.outcomes.length - 1 > LAST_OUTCOME_ID;
        if (tooMany || context.openOutcomes() + write.outcomes.length > MAX_ACTIVE_BOOKS) {
          throw new WriteRefused("the exchange holds no more markets than that");
        }
        const run = insertMarket.run(
          write.slug,
          write.question,
          write.description,
          write.category,
          write.eventId,
          MarketStatus.open,
          write.opensAt,
          write.closesAt,
          write.at,
        );
        const id = Number(run.lastInsertRowid);
        write.outcomes.forEach((name, position) => {
          insertOutcome.run(first + position, id, position, name);
        });
        const { question, description, category, slug, outcomes } = write;
        insertMarketWords.run(id, indexedWords(question, description, category, slug, ...outcomes));
        context.addMarket(id, first, outcomes.length);
        return { id, created: true, firstOutcomeId: first };
      }
    }
  };
}
