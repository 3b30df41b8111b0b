/** Reads a file of book history in JSON lines (docs/history.md), commit by commit. */
import { existsSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { FolderError } from "../folder.ts";

/** A row; fields that rows of its kind lack are missing. */
export interface HistoryLine {
  readonly at: number;
  readonly seq: number;
  readonly kind: "snapshot" | "level" | "trade" | "status";
  readonly outcome_id?: number;
  readonly side?: number;
  readonly price?: number;
  readonly quantity?: number;
  readonly match_id?: number;
  readonly match_type?: string;
  readonly created_at?: number;
  readonly status?: string;
}

const KINDS: ReadonlySet<unknown> = new Set(["snapshot", "level", "trade", "status"]);
/** What rows of these kinds must have. */
const NUMBERS = ["outcome_id", "side", "price", "quantity"] as const;

/** @throws FolderError that names the line which isn't a row, or doesn't follow the one before */
export function readHistory(path: string): HistoryLine[] {
  if (!existsSync(path)) throw new FolderError(`${path}: no such file`);
  if (path.endsWith(".parquet")) throw new FolderError(`${path}: give the file of JSON lines of the same day instead`);
  let text: string;
  try {
    const bytes = readFileSync(path);
    text = (path.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString();
  } catch (error) {
    throw new FolderError(`${path}: ${(error as Error).message}`);
  }
  const lines: HistoryLine[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const where = `${path}: line ${lines.length + 1}`;
    const row = parse(line, where);
    const last = lines.at(-1);
    if (row.seq !== lines.length + 1 || row.at < (last?.at ?? 0)) throw new FolderError(`${where}: rows are missing`);
    lines.push(row);
  }
  if (lines.length === 0) throw new FolderError(`${path}: no rows`);
  return lines;
}

function parse(line: string, where: string): HistoryLine {
  let row: Partial<HistoryLine>;
  try {
    row = JSON.parse(line) as Partial<HistoryLine>;
  } catch (error) {
    throw new FolderError(`${where}: ${(error as Error).message}`);
  }
  const hasNumbers = row?.kind === "status" || NUMBERS.every((name) => Number.isSafeInteger(row?.[name]));
  if (!KINDS.has(row?.kind) || !Number.isSafeInteger(row?.at) || !hasNumbers) {
    throw new FolderError(`${where}: no row of book history`);
  }
  return row as HistoryLine;
}

/** Rows of the same time, one commit after the other. */
export function* commitsOf(lines: readonly HistoryLine[]): Generator<readonly HistoryLine[]> {
  for (let from = 0, end = 0; from < lines.length; from = end) {
    while (end < lines.length && lines[end]!.at === lines[from]!.at) end++;
    yield lines.slice(from, end);
  }
}
