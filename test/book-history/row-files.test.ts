/** A day's files as strangers read them: with DuckDB, with the SQL and the Python of docs/history.md. */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MarketStatus, MatchType } from "../../engine/constants.ts";
import { BLOCK_ROWS, writeRowFiles } from "../../server/book-history/row-files.ts";
import { EMPTY_SPOOL, LostRows, RowSpool } from "../../server/book-history/row-spool.ts";
import { type HistoryRow, RowKind, rowOf } from "../../server/book-history/types.ts";
import { codeBlocks } from "../docs/code-blocks.ts";
import { Random } from "../support/random.ts";
import { temporaryFolder } from "../support/server.ts";

const DAY = Date.UTC(2026, 10, 24) * 1_000;
const MINUTE = 60_000_000;
const OUTCOMES = [7, 8];
/** More than one row group. */
const ROWS = BLOCK_ROWS + 5_000;
const folder = temporaryFolder();
const parquet = join(folder, "2026-11-24.parquet");
const jsonLines = join(folder, "2026-11-24.jsonl.gz");
const rows: HistoryRow[] = [];

function row(at: number, kind: RowKind, fields: Partial<HistoryRow>): HistoryRow {
  return rowOf(kind, { ...fields, at });
}

/** A day's random changes of two books that never cross, several in a commit, with trades at the levels that they take from. */
function makeRows(random: Random): void {
  const levels = new Map<string, number>();
  const set = (at: number, kind: RowKind, outcome: number, side: number, price: number, quantity: number): void => {
    levels.set(`${outcome} ${side} ${price}`, quantity);
    rows.push(row(at, kind, { outcome, side, price, quantity }));
  };
  rows.push(row(DAY, RowKind.status, { status: MarketStatus.open }));
  for (const outcome of OUTCOMES) set(DAY, RowKind.snapshot, outcome, 1, 4_000, 50);
  for (let at = DAY, match = 2 ** 40; rows.length < ROWS; ) {
    at += random.integer(1, 2 * Math.floor((1_440 * MINUTE) / ROWS));
    const outcome = random.pick(OUTCOMES);
    const changed = new Set<number>();
    for (let left = random.integer(1, 4); left > 0; left--) {
      const side = random.integer(1, 2);
      const price = side === 1 ? random.integer(4_000, 4_999) : random.integer(5_000, 5_999);
      // A commit has one row of a level.
      if (changed.has(price)) continue;
      changed.add(price);
      const resting = levels.get(`${outcome} ${side} ${price}`) ?? 0;
      // One trade a commit, before its levels.
      if (resting > 1 && left === 1 && rows.at(-1)!.at < at) {
        const quantity = random.integer(1, resting);
        const trade = { outcome, side: 3 - side, price, quantity, matchId: match++, matchType: MatchType.direct };
        rows.push(row(at, RowKind.trade, { ...trade, createdAt: Math.floor(at / 1_000) }));
        set(at, RowKind.level, outcome, side, price, resting - quantity);
      } else if (left > 1 || rows.at(-1)!.at < at) {
        set(
          at,
          RowKind.level,
          outcome,
          side,
          price,
          resting > 0 && random.chance(0.5) ? 0 : random.integer(1, 2 ** 33),
        );
      }
    }
  }
  rows.push(row(rows.at(-1)!.at + 1, RowKind.status, { status: MarketStatus.halted }));
}

beforeAll(() => {
  makeRows(Random.printed("row files"));
  const spool = new RowSpool(join(folder, "rows"), EMPTY_SPOOL);
  rows.forEach((each, i) => {
    spool.add(1, each);
    if (i % 20_000 === 0) spool.flush();
  });
  spool.flush();
  writeRowFiles({ parquet, jsonLines }, () => spool.blocksOf(1, BLOCK_ROWS));
  spool.close();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function query(sql: string): Promise<unknown[][]> {
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  try {
    const found = await connection.runAndReadAll(sql.replaceAll("2026-11-24.parquet", parquet));
    return found.getRowsJS().map((each) => each.map((value) => (typeof value === "bigint" ? Number(value) : value)));
  } finally {
    connection.closeSync();
  }
}

const programs = (language: string): string[] =>
  codeBlocks("docs/history.md").flatMap((block) => (block.language === language ? [block.code] : []));
const queries = programs("sql");

test("both files have the same rows", { timeout: 60_000 }, async () => {
  const lines = gunzipSync(readFileSync(jsonLines)).toString().trim().split("\n");
  const written = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(written.length).toBe(rows.length);
  const names = ["seq", "kind", "outcome_id", "side", "price", "quantity", "match_id", "match_type", "status"];
  const times = `epoch_us("at"), epoch_ms(created_at)`;
  const found = await query(`SELECT ${times}, ${names.join(", ")} FROM read_parquet('2026-11-24.parquet')`);
  const all = written.map((line) => [...["at", "created_at", ...names].map((name) => line[name] ?? null)]);
  expect(found).toEqual(all);
  expect(all[0]!.slice(2)).toEqual([1, "status", null, null, null, null, null, null, "open"]);
  expect(all[1]!.slice(2, 8)).toEqual([2, "snapshot", 7, 1, 4_000, 50]);
});

test("docs/history.md: the spread by the minute", { timeout: 60_000 }, async () => {
  const found = await query(queries[0]!);
  const expected: unknown[][] = [];
  for (const outcome of OUTCOMES) {
    const [bids, asks] = [new Map<number, number>(), new Map<number, number>()];
    let next = 0;
    for (let minute = DAY; minute <= rows.at(-2)!.at; minute += MINUTE) {
      for (; next < rows.length && rows[next]!.at <= minute; next++) {
        const { kind, outcome: of, side, price, quantity } = rows[next]!;
        if (kind > RowKind.level || of !== outcome) continue;
        if (quantity === 0) (side === 1 ? bids : asks).delete(price);
        else (side === 1 ? bids : asks).set(price, quantity);
      }
      const [bid, ask] = [Math.max(...bids.keys()), Math.min(...asks.keys())].map((price) =>
        Number.isFinite(price) ? price : null,
      );
      if (bid !== null || ask !== null) {
        expected.push([new Date(minute / 1_000), outcome, bid, ask, bid === null || ask === null ? null : ask! - bid!]);
      }
    }
  }
  expect(found.length).toBeGreaterThan(1_000);
  expect(found).toEqual(expected);
});

test("docs/history.md: the volume by the hour", async () => {
  const found = await query(queries[1]!);
  const volumes = new Map<string, [Date, number, number, number]>();
  for (const { at, kind, outcome, price, quantity } of rows) {
    if (kind !== RowKind.trade) continue;
    const hour = Math.floor(at / (60 * MINUTE)) * 60 * MINUTE;
    const before = volumes.get(`${hour} ${outcome}`) ?? [new Date(hour / 1_000), outcome, 0, 0];
    volumes.set(`${hour} ${outcome}`, [before[0], outcome, before[2] + quantity, before[3] + quantity * price]);
  }
  const expected = [...volumes.values()].map(([hour, outcome, shares, bps]) => [hour, outcome, shares, bps / 10_000]);
  expect(found).toEqual(expected.sort((a, b) => Number(a[0]) - Number(b[0]) || Number(a[1]) - Number(b[1])));
});

test("docs/history.md: the queue that a trade met", { timeout: 60_000 }, async () => {
  const found = await query(queries[2]!);
  const levels = new Map<string, number>();
  const expected: unknown[][] = [];
  for (const { kind, outcome, side, price, quantity, matchId } of rows) {
    if (kind === RowKind.trade) {
      expected.push([matchId, price, quantity, levels.get(`${outcome} ${3 - side} ${price}`)]);
    } else levels.set(`${outcome} ${side} ${price}`, quantity);
  }
  expect(found.length).toBeGreaterThan(100);
  expect(found).toEqual(expected);
});

test("docs/history.md: fifteen lines of Python rebuild a book", { timeout: 60_000 }, () => {
  const [program = ""] = programs("python");
  expect(
    program
      .trim()
      .split("\n")
      .filter((line) => line !== "").length,
  ).toBeLessThanOrEqual(16);
  writeFileSync(join(folder, "book.py"), program);
  const out = execFileSync("python3", [join(folder, "book.py"), jsonLines, "8"], { encoding: "utf8" });
  const sides = [new Map<number, number>(), new Map<number, number>()];
  for (const { kind, outcome, side, price, quantity } of rows) {
    if (kind > RowKind.level || outcome !== 8) continue;
    if (quantity === 0) sides[side - 1]!.delete(price);
    else sides[side - 1]!.set(price, quantity);
  }
  const [bids, asks] = sides.map((side) => [...side].sort(([a], [b]) => a - b));
  expect(JSON.parse(out)).toEqual({ bids: bids!.reverse(), asks });
});

test("rows that a crash cut off, or a disk damaged, are told from those that were synced", () => {
  const path = join(folder, "crashed");
  const spool = new RowSpool(path, EMPTY_SPOOL);
  spool.add(1, rows[0]!);
  spool.flush();
  const state = spool.state();
  spool.add(1, rows[1]!);
  spool.flush();
  spool.close();
  const resumed = new RowSpool(path, state);
  expect(resumed.rowsOf(1)).toBe(1);
  expect([...resumed.blocksOf(1, 8)].map(({ count }) => count)).toEqual([1]);
  resumed.close();
  writeFileSync(path, Buffer.alloc(state.bytes));
  const damaged = new RowSpool(path, state);
  expect(() => [...damaged.blocksOf(1, 8)]).toThrow(LostRows);
  damaged.close();
  writeFileSync(path, "");
  expect(() => new RowSpool(path, state)).toThrow(LostRows);
});
