/** Creates and deletes users and personal access tokens, and sets users' terms. */
import type Database from "better-sqlite3";
import { TERM_NAMES } from "../../log/user-terms.ts";
import type { WriteOf } from "../../log/writes.ts";
import { assert } from "../../util/assert.ts";
import { columnOf } from "../columns.ts";
import type { WriteContext } from "./context.ts";

/** Tables of money and trading, and the audit log. An account with rows in the former stays; the latter keeps its lines. */
const KEPT_TABLES = new Set([
  ...["audit_log", "entries", "orders", "fills", "positions", "update_index", "newest_of_user"],
  "withdrawals",
]);

/** Returns a function that deletes an account without a record of money, and its rows in every table with users. */
function prepareDeletion(db: Database.Database, context: WriteContext): (userId: number) => void {
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
    const isEmpty = hasMoney.get(userId) === 0 && context.newestFill(userId) === 0;
    assert(isEmpty, "no account with a record of money is deleted");
    let changes = 0;
    for (const statement of statements) ({ changes } = statement.run(userId));
    assert(changes === 1, "an account is deleted once");
  };
}

export interface UserWrites {
  createUser(write: WriteOf<"createUser">): void;
  deleteUser(write: WriteOf<"deleteUser">): void;
  createToken(write: WriteOf<"createToken">): void;
  setTerms(write: WriteOf<"setTerms">): void;
}

export function prepareUserWrites(db: Database.Database, context: WriteContext): UserWrites {
  const deleteAccount = prepareDeletion(db, context);
  const useFreeId = db.prepare("DELETE FROM free_user_ids WHERE id = ?");
  const addFreeId = db.prepare("INSERT INTO free_user_ids VALUES (?)");
  const insertUser = db.prepare(
    `INSERT INTO users (id, email, role, kyc_tier, password_hash, email_verified_at, phone_verified_at, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertAccount = db.prepare(
    "INSERT INTO accounts (user_id, balance, activity_day, activity_used) VALUES (?, 0, 0, 0)",
  );
  const insertToken = db.prepare(
    `INSERT INTO personal_access_tokens (id, user_id, name, token_hash, prefix, scopes, allowed_addresses, created_at,
       expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const setTerms = db.prepare(
    `UPDATE users SET ${TERM_NAMES.map((name) => `${columnOf(name)} = ?`).join(", ")} WHERE id = ?`,
  );
  return {
    createUser({ id, email, role, kycTier, passwordHash, emailVerifiedAt, phoneVerifiedAt, at }) {
      useFreeId.run(id);
      insertUser.run(id, email, role, kycTier, passwordHash, emailVerifiedAt, phoneVerifiedAt, at);
      insertAccount.run(id);
      context.ledger.openAccount(id);
    },
    deleteUser({ userId }) {
      deleteAccount(userId);
      addFreeId.run(userId);
    },
    createToken({ id, userId, name, tokenHash, prefix, scopes, allowedAddresses, expiresAt, at }) {
      const addresses = allowedAddresses?.join(" ") ?? null;
      insertToken.run(id, userId, name, tokenHash, prefix, scopes.join(" "), addresses, at, expiresAt);
    },
    setTerms(write) {
      const { userId } = write;
      setTerms.run(...TERM_NAMES.map((name) => write[name]), userId);
    },
  };
}
