/**
 * The database's files as a crash leaves them, and a failing disk: the journal's own connection, whose statements throw
 * on demand, and copies of the files taken at any moment, optionally with a torn tail of the WAL. Never interprets the
 * files' content.
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { migrate, openDatabase } from "../../engine/projection/database.ts";
import { loadSqlite } from "../../engine/util/sqlite.ts";
import type { Random } from "../support/random.ts";

const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_BYTES = 4_096;

/** Ends a life: everything in memory is gone. */
export class Crash extends Error {}

/** The fault at a statement of the journal. */
export type Strike = "crash" | "crash after" | "SQLITE_FULL" | "SQLITE_IOERR_WRITE" | "SQLITE_IOERR_FSYNC";

type Runs = Record<"run" | "get" | "all", (...values: unknown[]) => unknown>;

/** The journal's connection. Costs nothing until a fault is armed. */
export class FaultyConnection {
  readonly db: Database.Database;
  /** COMMITs that the database has made. */
  commits = 0;
  /** The log's frames before and after the last COMMIT that a fault followed. */
  torn: { readonly from: number; readonly to: number } | null = null;
  private readonly statements: { readonly sql: string; readonly statement: Database.Statement }[] = [];
  private left = 0;
  private begunAt = 0;
  private strike: Strike = "crash";

  constructor(path: string) {
    const db = openDatabase(path, "full");
    const prepare = db.prepare.bind(db) as (sql: string) => Database.Statement;
    const prepared = (sql: string): Database.Statement => {
      const statement = prepare(sql);
      this.statements.push({ sql, statement });
      if (sql === "COMMIT") this.countCommits(statement as unknown as Runs);
      if (sql === "BEGIN IMMEDIATE") this.measureBegin(statement as unknown as Runs);
      return statement;
    };
    this.db = Object.assign(db, { prepare: prepared }) as Database.Database;
  }

  private countCommits(statement: Runs): void {
    const run = statement.run.bind(statement);
    statement.run = () => {
      if (this.strike !== "crash after") this.count();
      const result = run();
      this.commits++;
      if (this.left === 0 || this.strike !== "crash after") return result;
      const to = this.frames();
      this.torn = { from: to > this.begunAt ? this.begunAt : 0, to };
      throw new Crash("crash after COMMIT");
    };
  }

  /** The WAL's length can't be read inside a transaction. */
  private measureBegin(statement: Runs): void {
    const run = statement.run.bind(statement);
    statement.run = () => {
      if (this.left > 0 && this.strike === "crash after") this.begunAt = this.frames();
      else this.count();
      return run();
    };
  }

  /** The statement `n` of the journal from here on strikes; "crash after": the next COMMIT, when it is done. */
  arm(n: number, strike: Strike): void {
    this.left = n;
    this.strike = strike;
    if (strike === "crash after") return;
    for (const { sql, statement } of this.statements) {
      if (sql === "COMMIT" || sql === "BEGIN IMMEDIATE") continue;
      const runs = statement as unknown as Runs;
      for (const name of ["run", "get", "all"] as const) {
        const original = runs[name].bind(statement);
        runs[name] = (...values) => {
          this.count();
          return original(...values);
        };
      }
    }
  }

  private count(): void {
    if (this.left === 0 || --this.left > 0) return;
    if (this.strike === "crash") throw new Crash("crash at a statement");
    const { SqliteError } = loadSqlite();
    throw new SqliteError(`simulated: ${this.strike}`, this.strike);
  }

  /** Frames of the log that are valid. */
  private frames(): number {
    const [{ log }] = this.db.pragma("wal_checkpoint(NOOP)") as [{ log: number }];
    return log;
  }

  /** As a killed process leaves it: nothing is finished. */
  abandon(): void {
    if (!this.db.open) return;
    if (this.db.inTransaction) this.db.exec("ROLLBACK");
    this.db.close();
  }
}

export class Disk {
  readonly folder: string;
  path: string;
  private readonly random: Random;
  private files = 0;

  /** @param template a migrated database to begin with */
  constructor(template: Buffer, random: Random) {
    this.folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "simulation-"));
    this.random = random;
    this.path = this.next();
    writeFileSync(this.path, template);
  }

  /** The bytes of a new database with all migrations. */
  static template(): Buffer {
    const folder = mkdtempSync(join(tmpdir(), "simulation-"));
    const path = join(folder, "template.db");
    const db = openDatabase(path, "full");
    migrate(db);
    db.close();
    const bytes = readFileSync(path);
    rmSync(folder, { recursive: true });
    return bytes;
  }

  private next(): string {
    return join(this.folder, `${++this.files}.db`);
  }

  /**
   * Copies the files at this moment, whatever is going on, and continues with the copy.
   * @param torn frames of the WAL that belong to a commit that nobody has seen: cuts or overwrites the WAL among them
   * @returns whether that commit is complete in the copy
   */
  crash(torn: { readonly from: number; readonly to: number } | null): boolean {
    const copy = this.next();
    copyFileSync(this.path, copy);
    const log = `${this.path}-wal`;
    if (existsSync(log)) copyFileSync(log, `${copy}-wal`);
    this.path = copy;
    return torn === null || this.tear(`${copy}-wal`, torn);
  }

  private tear(log: string, { from, to }: { readonly from: number; readonly to: number }): boolean {
    const { random } = this;
    const frame = FRAME_HEADER_BYTES + PAGE_BYTES;
    const [begin, end] = [from === 0 ? 0 : WAL_HEADER_BYTES + from * frame, WAL_HEADER_BYTES + to * frame];
    const cut = random.chance(0.25) ? end : random.integer(begin, end - 1);
    const garbage = random.integer(0, 3);
    if (garbage === 0 || cut === end) truncateSync(log, cut);
    else {
      const bytes = readFileSync(log).subarray(0, garbage === 1 ? end : end + random.integer(1, 3 * frame));
      const longer = Buffer.concat([bytes.subarray(0, cut), Buffer.alloc(Math.max(1, bytes.length - cut))]);
      for (let i = cut; i < longer.length; i++) longer[i] = random.integer(0, 255);
      // One chance in 256 would write the same byte.
      longer[cut] = (bytes[cut] ?? 0) ^ 0xff;
      writeFileSync(log, longer);
    }
    return cut === end;
  }

  /** Forgets files that are used no more. */
  tidy(): void {
    for (let i = 1; i < this.files; i++) {
      const old = join(this.folder, `${i}.db`);
      if (old === this.path) continue;
      for (const suffix of ["", "-wal", "-shm"]) rmSync(old + suffix, { force: true });
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
