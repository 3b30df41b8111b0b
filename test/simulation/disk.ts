/**
 * The exchange's two files as a crash leaves them, and failing disks: connections whose statements throw on demand, and
 * copies of the files taken at any moment, optionally with a torn tail of a WAL. Never interprets the files' content.
 */
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { migrate } from "../../engine/projection/database.ts";
import { loadSqlite } from "../../engine/util/sqlite.ts";
import { openDatabase, removeDatabase } from "../../engine/util/wal-database.ts";
import type { Random } from "../support/random.ts";

const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_BYTES = 4_096;

/** Ends a life: everything in memory is gone. */
export class Crash extends Error {}

/** The fault at a statement. */
export type Strike = "crash" | "crash after" | "SQLITE_FULL" | "SQLITE_IOERR_WRITE" | "SQLITE_IOERR_FSYNC";

type Runs = Record<"run" | "get" | "all", (...values: unknown[]) => unknown>;

/** The paths of the two files. */
export interface Files {
  readonly journal: string;
  readonly tables: string;
}

/** A writing connection. Costs nothing until a fault is armed. */
export class FaultyConnection {
  readonly db: Database.Database;
  /** Commits that the database has made. */
  commits = 0;
  /** The WAL's frames before and after the last commit that a fault followed. */
  torn: { readonly from: number; readonly to: number } | null = null;
  private readonly statements: { readonly sql: string; readonly statement: Database.Statement }[] = [];
  private readonly commitSql: string;
  private left = 0;
  private strike: Strike = "crash";

  /** @param commitSql how the statement begins that commits */
  constructor(db: Database.Database, commitSql: string) {
    this.commitSql = commitSql;
    const prepare = db.prepare.bind(db) as (sql: string) => Database.Statement;
    const prepared = (sql: string): Database.Statement => {
      const statement = prepare(sql);
      this.statements.push({ sql, statement });
      if (sql.startsWith(commitSql)) this.countCommits(statement as unknown as Runs);
      else if (this.left > 0 && this.strike !== "crash after") this.countRuns(statement);
      return statement;
    };
    this.db = Object.assign(db, { prepare: prepared }) as Database.Database;
  }

  private countCommits(statement: Runs): void {
    const run = statement.run.bind(statement);
    statement.run = (...values) => {
      const from = this.left > 0 && this.strike === "crash after" && !this.db.inTransaction ? this.frames() : 0;
      if (this.strike !== "crash after") this.count();
      const result = run(...values);
      this.commits++;
      if (this.left === 0 || this.strike !== "crash after") return result;
      const to = this.frames();
      this.torn = { from: to > from ? from : 0, to };
      throw new Crash("crash after COMMIT");
    };
  }

  /** The statement `n` from here on strikes; "crash after": the next commit, when it is done. */
  arm(n: number, strike: Strike): void {
    this.left = n;
    this.strike = strike;
    if (strike === "crash after") return;
    for (const { sql, statement } of this.statements) if (!sql.startsWith(this.commitSql)) this.countRuns(statement);
  }

  /** No fault strikes any more. */
  disarm(): void {
    this.left = 0;
  }

  private countRuns(statement: Database.Statement): void {
    const runs = statement as unknown as Runs;
    for (const name of ["run", "get", "all"] as const) {
      const original = runs[name].bind(statement);
      runs[name] = (...values) => {
        this.count();
        return original(...values);
      };
    }
  }

  private count(): void {
    if (this.left === 0 || --this.left > 0) return;
    if (this.strike === "crash") throw new Crash("crash at a statement");
    const { SqliteError } = loadSqlite();
    throw new SqliteError(`simulated: ${this.strike}`, this.strike);
  }

  /** Frames of the WAL that are valid. */
  private frames(): number {
    return walFrames(this.db).log;
  }

  /** As a killed process leaves it: nothing is finished. */
  abandon(): void {
    if (!this.db.open) return;
    if (this.db.inTransaction) this.db.exec("ROLLBACK");
    this.db.close();
  }
}

/** The valid frames of a WAL, and those that a checkpoint has copied into the file. Not inside a transaction. */
export function walFrames(db: Database.Database): { readonly log: number; readonly checkpointed: number } {
  const [frames] = db.pragma("wal_checkpoint(NOOP)") as [{ log: number; checkpointed: number }];
  return frames;
}

export class Disk {
  readonly folder: string;
  files: Files;
  private readonly random: Random;
  private copies = 0;
  /** The WAL of the tables, by its salts, and its frames that a crash leaves because a checkpoint has copied them. */
  private synced = { salts: "", frames: 0 };

  /** @param template a migrated database to begin with */
  constructor(template: Buffer, random: Random) {
    this.folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "simulation-"));
    this.random = random;
    this.files = this.next();
    writeFileSync(this.files.tables, template);
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

  private next(): Files {
    const name = join(this.folder, String(++this.copies));
    return { journal: `${name}.journal.db`, tables: `${name}.tables.db` };
  }

  /**
   * Copies the files at this moment, whatever is going on, and continues with the copies. The tables are not synced at
   * each commit: a crash of the machine can cut their WAL anywhere.
   * @param copied frames of the tables' WAL that a checkpoint has copied into their file, which are synced; null: cuts nothing
   * @param torn frames of the journal's WAL that belong to a commit that nobody has seen: cuts or overwrites it among them
   * @returns whether that commit is complete in the copy
   */
  crash(copied: number | null, torn: { readonly from: number; readonly to: number } | null): boolean {
    const before = this.files;
    this.files = this.next();
    for (const name of ["journal", "tables"] as const) {
      for (const suffix of ["", "-wal"]) {
        if (existsSync(before[name] + suffix)) copyFileSync(before[name] + suffix, this.files[name] + suffix);
      }
    }
    const synced = this.syncedFrames(copied ?? 0);
    if (copied !== null && this.random.chance(0.3)) this.cutTables(synced);
    return torn === null || this.tear(`${this.files.journal}-wal`, torn);
  }

  /** SQLite forgets at a crash how many of the WAL's frames are in the file, until the WAL begins again. */
  private syncedFrames(copied: number): number {
    const wal = `${this.files.tables}-wal`;
    const salts = existsSync(wal) ? readFileSync(wal).subarray(16, 24).toString("hex") : "";
    const known = salts === this.synced.salts ? this.synced.frames : 0;
    this.synced = { salts, frames: Math.max(known, copied) };
    return this.synced.frames;
  }

  private cutTables(copied: number): void {
    const wal = `${this.files.tables}-wal`;
    if (!existsSync(wal)) return;
    const [begin, end] = [WAL_HEADER_BYTES + copied * (FRAME_HEADER_BYTES + PAGE_BYTES), statSync(wal).size];
    if (end > begin) truncateSync(wal, this.random.integer(begin, end));
  }

  /** Loses the tables: the next life rebuilds them from the log. */
  loseTables(template: Buffer): void {
    removeDatabase(this.files.tables);
    writeFileSync(this.files.tables, template);
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
    for (let i = 1; i < this.copies; i++) {
      for (const name of ["journal", "tables"]) removeDatabase(join(this.folder, `${i}.${name}.db`));
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
