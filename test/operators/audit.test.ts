/**
 * The audit log, and the secrets that no log may have. Each flow that changes money or access runs once, and looks its
 * lines up by the request's id; at the end the tests search everything that the server wrote for every secret used.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { USDC } from "../support/world.ts";
import { FLOWS, type Flow } from "./audit-flows.ts";
import { AuditedWorld, type Line } from "./audited-world.ts";

let stage: AuditedWorld;
beforeAll(async () => {
  stage = await AuditedWorld.start();
});
afterAll(() => stage.stop());

const done = new Set<string>();
async function go([name, run]: Flow): Promise<void> {
  if (done.has(name)) return;
  done.add(name);
  await run(stage);
}

describe("the log has every change of money or access, with actor, action, time, request and address", () => {
  for (const flow of FLOWS) test(flow[0], () => go(flow));

  test("the audit log has the seed: users, deposits and tokens", async () => {
    const seeded = stage.lines("actor = 'seed'");
    const ids = ["seeded", "trader", "other"].flatMap((name) =>
      stage.idsIn("users", "email = ?", `${name}@example.com`),
    );
    const deposits = stage.idsIn("entries", "type = 'deposit'");
    const tokens = stage.idsIn("personal_access_tokens", "user_id <= 3");
    const of = (action: string): Line[] => seeded.filter((line) => line.action === action);
    expect(of("user.create").map(({ subject }) => subject)).toEqual(ids);
    expect(of("wallet.deposit").map(({ user_id }) => user_id)).toEqual(ids);
    expect(of("wallet.deposit").map(({ subject }) => subject)).toEqual(deposits);
    for (const { details } of of("wallet.deposit")) expect(details).toMatchObject({ amount: 10_000 * USDC });
    expect(of("pat.create").map(({ user_id }) => user_id)).toEqual(ids);
    expect(of("pat.create").map(({ subject }) => subject)).toEqual(tokens);
    expect(of("user.create").length + of("wallet.deposit").length + of("pat.create").length).toBe(seeded.length);
  });
});

describe("the log", () => {
  test("the audit log is numbered without a gap, in order of time, and names only existing users", async () => {
    for (const flow of FLOWS) await go(flow);
    const all = stage.lines("1");
    expect(all.map(({ id }) => id)).toEqual(all.map((_, n) => n + 1));
    const users = new Set(stage.idsIn("users", "1"));
    for (const { id, user_id, actor } of all) {
      if (user_id !== null) expect([id, users.has(user_id)]).toEqual([id, true]);
      expect([id, actor]).toEqual([
        id,
        expect.stringMatching(/^(seed|admin|visitor|(user|oauth client) [1-9]\d*( by (pat|oauth) [1-9]\d*)?)$/),
      ]);
    }
  });

  test("the audit log has a line for each row that the tables show as created or ended", async () => {
    for (const flow of FLOWS) await go(flow);
    const missing: unknown[] = [];
    for (const [action, table, column] of [
      ["user.create", "users", "created_at"],
      ["user.verify_email", "users", "email_verified_at"],
      ["user.verify_phone", "users", "phone_verified_at"],
      ["pat.create", "personal_access_tokens", "created_at"],
      ["pat.revoke", "personal_access_tokens", "revoked_at"],
      ["session.start", "sessions", "created_at"],
      ["session.end", "sessions", "ended_at"],
      ["client.create", "oauth_clients", "created_at"],
      ["client.remove", "oauth_clients", "deleted_at"],
      ["grant.create", "oauth_grants", "created_at"],
      ["grant.revoke", "oauth_grants", "revoked_at"],
      ["identity.apply", "identity_applications", "created_at"],
      ["wallet.deposit", "entries", "created_at"],
    ] as const) {
      // The seed's users start verified, as do users of an identity provider or a mailed link.
      const among = action.startsWith("user.verify") ? "id > 3 AND password_hash IS NOT NULL" : "1";
      const only = table === "entries" ? "type = 'deposit'" : among;
      const ids = stage.idsIn(table, `${column} IS NOT NULL AND ${only}`);
      // The server deletes ended rows after a while.
      const isSwept = /\.(revoke|remove|end)$/.test(action);
      expect([action, ids.length > 0 || isSwept]).toEqual([action, true]);
      const logged = new Set(stage.lines("action = ?", action).map(({ subject }) => subject));
      if (action === "user.verify_email") {
        for (const { subject } of stage.lines("action = 'user.reset_password'")) logged.add(subject);
      }
      for (const id of ids) if (!logged.has(id)) missing.push(`${action} of ${id}`);
    }
    expect(missing).toEqual([]);
  });

  test("the audit log rejects changes and removals of a line", async () => {
    expectRefused([
      "UPDATE audit_log SET action = 'x'",
      "UPDATE audit_log SET details = NULL WHERE id = 1",
      "UPDATE OR REPLACE audit_log SET id = 1 WHERE id = 2",
      "DELETE FROM audit_log",
      "DELETE FROM audit_log WHERE id = 1",
      "INSERT INTO audit_log (id, at, action, actor) VALUES (1, 1, 'x', 'x') ON CONFLICT DO UPDATE SET action = 'x'",
    ]);
  });

  test("the audit log rejects the replacement of a line", async () => {
    expectRefused([
      "INSERT OR REPLACE INTO audit_log (id, at, action, actor) VALUES (1, 1, 'x', 'x')",
      "REPLACE INTO audit_log (id, at, action, actor) SELECT 1, 1, 'x', 'x'",
    ]);
  });
});

/** Runs each statement directly on the database, and rolls it back. */
function expectRefused(statements: readonly string[]): void {
  const db = openSqlite(join(stage.world.server.dataDir, "exchange.db"), { timeout: 10_000 });
  const count = (): unknown => db.prepare("SELECT count(*), total(length(action)) FROM audit_log").raw().get();
  const before = count();
  for (const sql of statements) {
    const { error, left } = rolledBack(db, () => {
      try {
        db.exec(sql);
        return { error: "", left: count() };
      } catch (thrown) {
        return { error: (thrown as Error).message, left: count() };
      }
    });
    expect.soft([sql, /append-only|UNIQUE/.test(error), left]).toEqual([sql, true, before]);
  }
  expect(count()).toEqual(before);
  db.close();
}

/** Runs it in a transaction that is rolled back. */
function rolledBack<T>(db: Database.Database, run: () => T): T {
  let result: T | undefined;
  const undo = new Error("undone");
  try {
    db.transaction(() => {
      result = run();
      throw undo;
    })();
  } catch (error) {
    if (error !== undo) throw error;
  }
  return result!;
}

// The last test: it stops the server.
describe("secrets", () => {
  test("secrets are in no log line, not on stderr, not in the audit log, the database or any other file of the server", async () => {
    for (const flow of FLOWS) await go(flow);
    const { server } = stage.world;
    const { dataDir } = server;
    await server.stop();
    const log = server.log.map((line) => JSON.stringify(line)).join("\n") + server.errors;
    const db = openReadOnly(join(dataDir, "exchange.db"));
    const columns = textColumns(db);
    const audit = columns
      .filter(({ table }) => table === "audit_log")
      .flatMap(({ values }) => values)
      .join("\n");
    db.close();
    // The search works: it finds names in the tables and lines in the log.
    expect(log).toContain("shutting down");
    expect(audit).toContain("third party");
    expect(columns.length).toBeGreaterThan(30);
    const kinds = new Set([...stage.secrets.keys()].map((what) => what.replace(/ \d+$/, "")));
    expect(kinds.size).toBeGreaterThan(20);

    const files = filesIn(dataDir).filter((path) => !/^(outbox|keys)\/|^seed\.json$/.test(relative(dataDir, path)));
    const contents = files.map((path) => [relative(dataDir, path), readFileSync(path)] as const);
    expect(contents.map(([name]) => name)).toContain("exchange.db");
    const found: string[] = [];
    for (const [what, text] of stage.secrets) {
      const isCode = what.startsWith("code ") && /^\d{6}$/.test(text);
      // Operators decide by it, so the database has it; the logs do not.
      const isDocument = what.startsWith("document number");
      const forms = isCode ? [] : spellings(text);
      const isIn = (where: string): boolean =>
        isCode ? new RegExp(`(?<!\\d)${text}(?!\\d)`).test(where) : forms.some((form) => where.includes(form));
      if (isIn(log)) found.push(`${what} in the log`);
      if (isIn(audit)) found.push(`${what} in the audit log`);
      if (isCode || isDocument) continue;
      for (const { table, column, values } of columns) {
        if (values.some((value) => isIn(value))) found.push(`${what} in ${table}.${column}`);
      }
      for (const [name, bytes] of contents) {
        if (forms.some((form) => bytes.includes(form))) found.push(`${what} in the file ${name}`);
      }
    }
    expect(found).toEqual([]);

    // The hashes of tokens are in the database.
    const stored = new Set(columns.flatMap(({ values }) => values));
    const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
    for (const [what, text] of stage.secrets) {
      if (/^seeded token \d+$/.test(what)) expect([what, stored.has(sha256(text))]).toEqual([what, true]);
    }
    // The server deletes those of ended tokens after a while.
    const made = [...stage.secrets].filter(([what]) => /^personal access token \d+$/.test(what));
    expect(made.some(([, text]) => stored.has(sha256(text)))).toBe(true);
    const { values: passwords } = columns.find((each) => each.table === "users" && each.column === "password_hash")!;
    expect(passwords.length).toBeGreaterThan(5);
    for (const phc of passwords) expect(phc).toMatch(/^\$argon2id\$v=19\$m=\d+,t=\d+,p=\d+\$[\w+/]+\$[\w+/]+$/);
  });
});

/** The spellings of a text: plain, in a URL, in base64 of either alphabet, in hexadecimal. */
function spellings(text: string): string[] {
  const bytes = Buffer.from(text);
  const base64 = bytes.toString("base64").replace(/=+$/, "");
  return [...new Set([text, encodeURIComponent(text), base64, bytes.toString("base64url"), bytes.toString("hex")])];
}

function textColumns(db: Database.Database): { table: string; column: string; values: string[] }[] {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[];
  return tables.flatMap((table) => {
    const columns = db.pragma(`table_info(${table})`) as { name: string; type: string }[];
    return columns
      .filter(({ type }) => type === "TEXT" || type === "")
      .map(({ name: column }) => {
        const values = db.prepare(`SELECT ${column} FROM ${table} WHERE ${column} IS NOT NULL`).pluck().all();
        return { table, column, values: values.map(String) };
      });
  });
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return entry.isFile() ? [path] : [];
  });
}
