/** Reads files of book history as a stranger would: JSON lines, and the books that they give commit by commit. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect } from "vitest";
import type { HistoryLine } from "../../bench/replay/history/lines.ts";
import { marketFolder, readDay, readMarketDay } from "../../server/book-history/history-folder.ts";
import type { MarketDay } from "../../server/book-history/types.ts";

/** The markets that changed on a day. */
export function daysIn(folder: string, date: string): MarketDay[] {
  return (readDay(folder, date)?.markets ?? []).map((market) => readMarketDay(folder, market, date)!);
}

/** The rows of a market's file, whose size and hash must be those of the index. */
export function linesIn(folder: string, { market, jsonLines, rows, firstAt, lastAt }: MarketDay): HistoryLine[] {
  const bytes = readFileSync(join(marketFolder(folder, market), jsonLines.name));
  expect([bytes.length, createHash("sha256").update(bytes).digest("hex")]).toEqual([jsonLines.bytes, jsonLines.sha256]);
  const lines = linesOf(gunzipSync(bytes).toString());
  expect([lines.length, lines[0]!.at, lines.at(-1)!.at]).toEqual([rows, firstAt, lastAt]);
  return lines;
}

const linesOf = (text: string): HistoryLine[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as HistoryLine);

/** Levels as REST shows them, best first. */
export const textOf = (bids: readonly (readonly number[])[], asks: readonly (readonly number[])[]): string =>
  JSON.stringify({ bids, asks });

/** The books of a market's outcomes, as its rows give them. */
export class RebuiltBooks {
  private readonly levels = new Map<number, Map<number, number>[]>();

  /** Applies a row that has a level; a snapshot must be what the rows before it gave. */
  apply({ outcome_id: outcome = 0, side = 0, price = 0, quantity = 0 }: HistoryLine): void {
    const sides = this.sidesOf(outcome);
    if (quantity === 0) sides[side - 1]!.delete(price);
    else sides[side - 1]!.set(price, quantity);
  }

  text(outcome: number): string {
    const [bids, asks] = this.sidesOf(outcome);
    return textOf(
      [...bids!].sort(([a], [b]) => b - a),
      [...asks!].sort(([a], [b]) => a - b),
    );
  }

  private sidesOf(outcome: number): Map<number, number>[] {
    let sides = this.levels.get(outcome);
    if (sides === undefined) this.levels.set(outcome, (sides = [new Map(), new Map()]));
    return sides;
  }
}
