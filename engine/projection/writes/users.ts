/** Creates and deletes users and personal access tokens, and sets users' terms. */
import type Database from "better-sqlite3";
import { MAX_USERS } from "../../limits.ts";
import { columnOf } from "../columns.ts";
import { DEFAULT_TERMS, TERM_NAMES } from "../user-terms.ts";
import { existing, type WriteContext, type WriteOf, WriteRefused, type WriteResult } from "./account-write.ts";

interface UserIds {
  /** A new user's id; null if all ids are in use. */
  allocate(): number | null;
  free(id: number): void;
}

/** Allocates fresh ids first, and the ids of deleted accounts once fresh ones run out. */
function prepareUserIds(db: Database.Database): UserIds {
  const last = db
    .prepare("SELECT max(coalesce(max(id), 0), coalesce((SELECT max(id) FROM free_user_ids), 0)) FROM users")
    .pluck();
  const firstFree = db.prepare("SELECT min(id) FROM free_user_ids").pluck();
  const remove = db.prepare("DELETE FROM free_user_ids WHERE id = ?");
  const add = db.prepare("INSERT INTO free_user_ids VALUES (?)");
  return {
    allocate() {
      const fresh = Number(last.get()) + 1;
      if (fresh <= MAX_USERS) return fresh;
      const id = firstFree.get();
      if (id === null) return null;
      remove.run(id);
      return Number(id);
    },
    free(id) {
      add.run(id);
    },
  };
}

/** Tables of money and trading, and the audit log. An account with rows in the former stays; the latter keeps its lines. */
const KEPT_TABLES = new Set([
  ...["audit_log", "entries", "orders", "fills", "positions", "order_updates", "update_marks", "newest_of_user"],
  "withdrawals",
]);

/** Returns a function that deletes an account and its rows in every table with users; false if it ever had money. */
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

export interface UserWrites {
  createUser(write: WriteOf<"createUser">): WriteResult;
  deleteUser(write: WriteOf<"deleteUser">): WriteResult;
  createToken(write: WriteOf<"createToken">): WriteResult;
  setTerms(write: WriteOf<"setTerms">): WriteResult;
}

export function prepareUserWrites(db: Database.Database, context: WriteContext): UserWrites {
  const ids = prepareUserIds(db);
  const deleteAccount = prepareDeletion(db, context);
  const userByEmail = db.prepare("SELECT id FROM users WHERE email = ?").pluck();
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
  const setTerms = db.prepare(
    `UPDATE users SET ${TERM_NAMES.map((name) => `${columnOf(name)} = ?`).join(", ")} WHERE id = ?`,
  );
  return {
    createUser({ email, role, kycTier, passwordHash, emailVerifiedAt, phoneVerifiedAt, at }) {
      const found = userByEmail.get(email);
      if (found !== undefined) return existing(found);
      const id = ids.allocate();
      if (id === null) throw new WriteRefused("the exchange is at its maximum number of users");
      insertUser.run(id, email, role, kycTier, passwordHash, emailVerifiedAt, phoneVerifiedAt, at);
      insertAccount.run(id);
      context.ledger.restoreAccount(id, 0, 0, 0);
      return { id, created: true };
    },
    deleteUser({ userId }) {
      const created = deleteAccount(userId);
      if (created) ids.free(userId);
      return { id: userId, created };
    },
    createToken({ userId, name, tokenHash, prefix, scopes, allowedAddresses, expiresAt, at }) {
      const found = tokenByHash.get(tokenHash);
      if (found !== undefined) return existing(found);
      const addresses = allowedAddresses?.join(" ") ?? null;
      const run = insertToken.run(userId, name, tokenHash, prefix, scopes.join(" "), addresses, at, expiresAt);
      return { id: Number(run.lastInsertRowid), created: true };
    },
    setTerms(write) {
      const { userId } = write;
      setTerms.run(...TERM_NAMES.map((name) => write[name]), userId);
      context.setTerms(userId, write);
      return { id: userId, created: true };
    },
  };
}
