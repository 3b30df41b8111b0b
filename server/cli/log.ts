/**
 * `admin log`: prints the log's events and writes, all or some of them, from a data folder's files, a running
 * exchange's too, or from one archive or journal. Never writes a file.
 */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { ArchiveReader } from "../../engine/log/archive-reader.ts";
import { readHeader } from "../../engine/log/batch-format.ts";
import type { ChainLink } from "../../engine/log/chain.ts";
import { checkedBodies } from "../../engine/log/checked-bodies.ts";
import { LogFiles, logOf } from "../../engine/log/log-files.ts";
import type { LogReader } from "../../engine/log/log-reader.ts";
import { marketWritesOf } from "../../engine/log/opening.ts";
import { openExisting, tablesPath } from "../util/data-folder.ts";
import { type LoggedItem, linesOf, textOf } from "./log-lines.ts";

/** Characters written at a time. */
const SLICE = 2 ** 16;

export interface LogQuery {
  /** An archive or a journal; null for the data folder's files. */
  readonly file: string | null;
  /** An id or an email address; an id or a slug. */
  readonly user: string | null;
  readonly market: string | null;
  readonly order: number | null;
  readonly kind: string | null;
  /** A batch's number, or a time in ISO 8601: the first one, and the last one. */
  readonly from: string | null;
  readonly to: string | null;
  readonly json: boolean;
  readonly secrets: boolean;
}

/** Prints what the query selects. @throws Error with one line if a value names nothing, or the log is broken */
export async function printLog(dataDir: string, query: LogQuery, out: NodeJS.WritableStream): Promise<void> {
  const end = endOf(query.to);
  const from = { batch: batchOf(query.from), time: timeOf(query.from) };
  const tables = new Names(tablesPath(dataDir));
  const user = query.user === null ? null : tables.user(query.user);
  const market = query.market === null ? null : tables.market(query.market);
  const { reader, first, known, close } = open(dataDir, query.file, from, tables);
  let text = "";
  try {
    for (const body of checkedBodies(reader, first, known)) {
      const header = readHeader(body);
      if (header.batch > end.batch || header.at > end.at) break;
      tables.follow(body);
      for (const item of linesOf(body, query.secrets)) {
        if (isSelected(item, { ...query, user, market }, tables)) {
          text += `${query.json ? JSON.stringify(item.line) : textOf(item.line)}\n`;
        }
      }
      if (text.length < SLICE) continue;
      if (!out.write(text)) await once(out, "drain");
      text = "";
    }
    out.write(text);
  } finally {
    close();
  }
}

interface OpenLog {
  readonly reader: LogReader;
  readonly first: number;
  /** A batch whose hash is known from elsewhere; null for none. */
  readonly known: ChainLink | null;
  close(): void;
}

/** A batch or a time; both null: from the beginning. */
interface Beginning {
  readonly batch: number | null;
  readonly time: number | null;
}

/** The log to read, and its first batch for the query. */
function open(dataDir: string, file: string | null, { batch, time }: Beginning, tables: Names): OpenLog {
  if (file !== null && !existsSync(file)) throw new Error(`there is no ${file}`);
  if (file?.endsWith(".gz")) {
    const archive = ArchiveReader.open(file);
    for (const [id, first, count] of archive.opening()?.markets ?? []) tables.addMarket(id, first, count);
    const reader = { bodies: (first: number) => since(archive.bodies(first), time) };
    const { first, last, last_hash } = archive.description;
    return { reader, first: Math.max(first, batch ?? 0), known: { batch: last, hash: last_hash }, close: () => {} };
  }
  const log = new LogFiles(file === null ? logOf(dataDir) : { journal: file, archives: "" });
  const range = log.range();
  if (range === null) throw new Error(`the log of ${file ?? dataDir} is empty`);
  const first = time === null ? (batch ?? range.first) : log.firstSince(time);
  const known = file === null ? tables.lastBatch() : null;
  return { reader: log, first: Math.max(range.first, first), known, close: () => log.close() };
}

function* since(bodies: Iterable<Buffer>, time: number | null): Generator<Buffer> {
  for (const body of bodies) if (time === null || readHeader(body).at >= time) yield body;
}

const isNumber = (value: string): boolean => /^\d+$/.test(value);

function batchOf(value: string | null): number | null {
  return value !== null && isNumber(value) ? Number(value) : null;
}

function timeOf(value: string | null): number | null {
  if (value === null || isNumber(value)) return null;
  const time = Date.parse(value);
  if (Number.isNaN(time)) throw new Error(`neither a batch nor a time like 2026-11-22T10:00:00Z: ${value}`);
  return time;
}

function endOf(to: string | null): { readonly batch: number; readonly at: number } {
  return { batch: batchOf(to) ?? Number.POSITIVE_INFINITY, at: timeOf(to) ?? Number.POSITIVE_INFINITY };
}

interface Selection {
  readonly user: number | null;
  readonly market: number | null;
  readonly order: number | null;
  readonly kind: string | null;
}

function isSelected(item: LoggedItem, { user, market, order, kind }: Selection, names: Names): boolean {
  if (kind !== null && item.line.kind !== kind) return false;
  if (user !== null && item.user !== user) return false;
  if (order !== null && item.order !== order) return false;
  return market === null || (item.market ?? names.marketOf(item.outcome)) === market;
}

/** Ids of users and markets by their names, and markets of outcomes: from the tables if they are there, and from the log. */
class Names {
  private readonly tables: string;
  private readonly markets = new Map<number, number>();

  constructor(tables: string) {
    this.tables = tables;
    if (!existsSync(tables)) return;
    const rows = this.read("SELECT id, market_id FROM outcomes", []) as { id: number; market_id: number }[];
    for (const { id, market_id } of rows) this.markets.set(id, market_id);
  }

  /** The last batch that the tables include; null if there are none. */
  lastBatch(): ChainLink | null {
    if (!existsSync(this.tables)) return null;
    const [row] = this.read("SELECT batch, hash FROM projection", []) as ChainLink[];
    return row === undefined || row.hash === "" ? null : row;
  }

  user(value: string): number {
    return isNumber(value) ? Number(value) : this.idOf("users", "email", value.toLowerCase());
  }

  market(value: string): number {
    return isNumber(value) ? Number(value) : this.idOf("markets", "slug", value);
  }

  marketOf(outcome: number | null): number | null {
    return outcome === null ? null : (this.markets.get(outcome) ?? null);
  }

  addMarket(id: number, first: number, count: number): void {
    for (let i = 0; i < count; i++) this.markets.set(first + i, id);
  }

  /** Learns the batch's new markets. */
  follow(body: Buffer): void {
    for (const write of marketWritesOf(body, readHeader(body))) {
      if (write.kind === "createMarket") this.addMarket(write.id, write.firstOutcomeId, write.outcomes.length);
    }
  }

  private idOf(table: string, column: string, value: string): number {
    if (!existsSync(this.tables)) throw new Error(`there is no ${this.tables}: give an id instead of ${value}`);
    const [row] = this.read(`SELECT id FROM ${table} WHERE ${column} = ?`, [value]) as { id: number }[];
    if (row === undefined) throw new Error(`no such ${table === "users" ? "user" : "market"}: ${value}`);
    return row.id;
  }

  private read(sql: string, values: readonly string[]): unknown[] {
    const db = openExisting(this.tables);
    try {
      return db.prepare(sql).all(...values);
    } finally {
      db.close();
    }
  }
}
