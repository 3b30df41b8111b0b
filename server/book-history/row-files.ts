/**
 * Writes a market's rows of a day as files: Parquet, and JSON lines compressed with gzip, each complete or absent. The same
 * rows give the same bytes.
 */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { MARKET_STATUSES, MATCH_TYPES } from "../../engine/constants.ts";
import { writeDurably } from "../../engine/util/durable-file.ts";
import type { RowBlock } from "./row-spool.ts";
import { type HistoryFile, type HistoryRow, ROW_KINDS, RowKind } from "./types.ts";

/** Rows of a row group, and of a gzip member. */
export const BLOCK_ROWS = 2 ** 16;
const LEVEL = 6;

const required = { repetition_type: "REQUIRED" } as const;
const optional = { repetition_type: "OPTIONAL" } as const;

/** docs/history.md describes the columns. */
const SCHEMA = [
  { name: "root", num_children: 11 },
  { name: "at", type: "INT64", converted_type: "TIMESTAMP_MICROS", ...required },
  { name: "seq", type: "INT32", ...required },
  { name: "kind", type: "BYTE_ARRAY", converted_type: "UTF8", ...required },
  { name: "outcome_id", type: "INT32", ...optional },
  { name: "side", type: "INT32", ...optional },
  { name: "price", type: "INT32", ...optional },
  { name: "quantity", type: "INT64", ...optional },
  { name: "match_id", type: "INT64", ...optional },
  { name: "match_type", type: "BYTE_ARRAY", converted_type: "UTF8", ...optional },
  { name: "created_at", type: "INT64", converted_type: "TIMESTAMP_MILLIS", ...optional },
  { name: "status", type: "BYTE_ARRAY", converted_type: "UTF8", ...optional },
] as const;

/** Differences to the value before are small in these. */
const DELTA: ReadonlySet<string> = new Set(["at", "seq", "match_id", "created_at"]);

/** A column of the block that is being written. */
type Column = (number | bigint | string | null)[];

/** Writes one market's rows. @param blocks of BLOCK_ROWS rows each; the last may have fewer */
export function writeRowFiles(
  paths: { readonly parquet: string; readonly jsonLines: string },
  blocks: () => Iterable<RowBlock>,
): { readonly parquet: Omit<HistoryFile, "name">; readonly jsonLines: Omit<HistoryFile, "name"> } {
  return {
    parquet: writeHashed(paths.parquet, (append) => writeParquet(append, blocks())),
    jsonLines: writeHashed(paths.jsonLines, (append) => writeJsonLines(append, blocks())),
  };
}

type Append = (bytes: Uint8Array) => void;

function writeHashed(path: string, write: (append: Append) => void): Omit<HistoryFile, "name"> {
  const hash = createHash("sha256");
  let bytes = 0;
  writeDurably(path, (append) =>
    write((part) => {
      append(part);
      hash.update(part);
      bytes += part.length;
    }),
  );
  return { bytes, sha256: hash.digest("hex") };
}

function writeParquet(append: Append, blocks: Iterable<RowBlock>): void {
  const writer = new FlushedWriter(append);
  const parquet = new ParquetWriter({ writer, schema: [...SCHEMA], createdBy: "prediction-exchange" });
  let seq = 0;
  for (const block of blocks) {
    const columns = columnsOf(block, seq);
    parquet.write({
      columnData: Object.entries(columns).map(([name, data]) =>
        DELTA.has(name) ? { name, data, encoding: "DELTA_BINARY_PACKED" } : { name, data },
      ),
      rowGroupSize: BLOCK_ROWS,
    });
    seq += block.count;
  }
  parquet.finish();
}

/** Hands its bytes on after each row group. */
class FlushedWriter extends ByteWriter {
  private readonly append: Append;

  constructor(append: Append) {
    super(2 ** 20);
    this.append = append;
  }

  flush(): void {
    this.append(this.getBytes());
    this.index = 0;
  }

  override finish(): void {
    this.flush();
  }
}

/** @param before the rows before the block */
function columnsOf(block: RowBlock, before: number): Record<string, Column> {
  const { count } = block;
  const empty = (): Column => new Array(count).fill(null);
  const [at, seq, kind, outcome_id, side, price] = [empty(), empty(), empty(), empty(), empty(), empty()];
  const [quantity, match_id, match_type, created_at, status] = [empty(), empty(), empty(), empty(), empty()];
  const row = {} as HistoryRow;
  for (let i = 0; i < count; i++) {
    block.read(i, row);
    at[i] = BigInt(row.at);
    seq[i] = before + i + 1;
    kind[i] = ROW_KINDS[row.kind];
    if (row.outcome !== 0) {
      outcome_id[i] = row.outcome;
      price[i] = row.price;
    }
    if (row.kind === RowKind.status) {
      status[i] = MARKET_STATUSES[row.status]!;
      continue;
    }
    side[i] = row.side;
    quantity[i] = BigInt(row.quantity);
    if (row.kind !== RowKind.trade) continue;
    match_id[i] = BigInt(row.matchId);
    match_type[i] = MATCH_TYPES[row.matchType]!;
    created_at[i] = BigInt(row.createdAt);
  }
  return { at, seq, kind, outcome_id, side, price, quantity, match_id, match_type, created_at, status };
}

function writeJsonLines(append: Append, blocks: Iterable<RowBlock>): void {
  const row = {} as HistoryRow;
  let seq = 0;
  for (const block of blocks) {
    const lines: string[] = [];
    for (let i = 0; i < block.count; i++) {
      block.read(i, row);
      lines.push(lineOf(row, ++seq));
    }
    append(gzipSync(lines.join(""), { level: LEVEL }));
  }
}

/** Fields that a row lacks are left out. */
function lineOf(row: HistoryRow, seq: number): string {
  const head = `{"at":${row.at},"seq":${seq},"kind":"${ROW_KINDS[row.kind]}"`;
  if (row.kind === RowKind.status) {
    const payout = row.outcome === 0 ? "" : `,"outcome_id":${row.outcome},"price":${row.price}`;
    return `${head}${payout},"status":"${MARKET_STATUSES[row.status]}"}\n`;
  }
  const level = `${head},"outcome_id":${row.outcome},"side":${row.side},"price":${row.price},"quantity":${row.quantity}`;
  if (row.kind !== RowKind.trade) return `${level}}\n`;
  const { matchId, matchType, createdAt } = row;
  return `${level},"match_id":${matchId},"match_type":"${MATCH_TYPES[matchType]}","created_at":${createdAt}}\n`;
}
