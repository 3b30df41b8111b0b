/** What a data folder's log and tables hold, and changes to copies of it. */
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { openLogReader } from "../../engine/log/log-files.ts";
import { hashTables } from "../../engine/projection/table-hashes.ts";
import type { Finding } from "../../engine/projection/verify.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import type { AdminRun } from "../support/admin.ts";
import { temporaryFolder } from "../support/server.ts";

export const LINKED = "the log's batches follow each other";
export const REBUILT = "the tables are what the log says";

export function copyOf(folder: string): string {
  const copy = temporaryFolder();
  mkdirSync(join(copy, "log"));
  for (const name of ["exchange.db", "journal.db"]) copyFileSync(join(folder, name), join(copy, name));
  for (const name of readdirSync(join(folder, "log"))) copyFileSync(join(folder, "log", name), join(copy, "log", name));
  return copy;
}

export function findingsOf({ code, out, errors }: AdminRun): {
  code: number;
  failed: Finding[];
  log: (string | undefined)[];
} {
  expect(errors).toBe("");
  const { findings } = JSON.parse(out) as { findings: Finding[] };
  const log = [LINKED, REBUILT].map((name) => findings.find((finding) => finding.name === name)?.figures);
  return { code: code ?? -1, failed: findings.filter(({ ok }) => !ok), log };
}

export function hashesIn(folder: string): Map<string, string> {
  const db = openReadOnly(join(folder, "exchange.db"));
  try {
    return hashTables(db);
  } finally {
    db.close();
  }
}

export const bodiesIn = (folder: string): Buffer[] => {
  const log = openLogReader(folder);
  try {
    return [...log.bodies(1)];
  } finally {
    log.close();
  }
};

export function withJournal(folder: string, run: (db: ReturnType<typeof openSqlite>) => void): void {
  const db = openSqlite(join(folder, "journal.db"));
  run(db);
  db.close();
}
