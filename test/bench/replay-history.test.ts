/** `npm run replay -- --history FILE`: a day of three outcomes made by hand, and files that aren't what they should be. */
import { execFile } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { builtScript } from "../../bench/support/root.ts";
import { temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Row = Readonly<Record<string, number | string>>;

const level = (at: number, outcome_id: number, side: number, price: number, quantity: number): Row => {
  return { at, kind: at === 1 ? "snapshot" : "level", outcome_id, side, price, quantity };
};
const trade = (at: number, outcome_id: number, side: number, price: number, quantity: number, type: string): Row => {
  return { at, kind: "trade", outcome_id, side, price, quantity, match_id: at, match_type: type, created_at: at };
};

/** Outcomes 11 to 13. */
const DAY: readonly Row[] = [
  { at: 1, kind: "status", status: "open" },
  level(1, 11, 1, 3_000, 20),
  level(1, 12, 1, 3_500, 10),
  level(1, 13, 2, 4_000, 10),
  // Direct, from a level that stays in part.
  trade(2, 13, 1, 4_000, 4, "direct"),
  level(2, 13, 2, 4_000, 6),
  // 3,000 and 3,500 leave 3,500 for outcome 13.
  trade(3, 13, 1, 3_500, 10, "mint"),
  level(3, 11, 1, 3_000, 10),
  level(3, 12, 1, 3_500, 0),
  // An ask was placed and taken within the commit; bids above it came and went, too.
  trade(4, 12, 1, 3_300, 5, "direct"),
  level(4, 11, 2, 3_100, 7),
  level(4, 12, 2, 3_400, 8),
  // 10,000 - 3,100 - 3,400.
  trade(5, 13, 2, 3_500, 7, "merge"),
  level(5, 11, 2, 3_100, 0),
  level(5, 12, 2, 3_400, 1),
  { at: 6, kind: "status", status: "halted" },
];

function fileOf(name: string, rows: readonly Row[], first = 1): string {
  const path = join(folder, name);
  const text = rows.map((row, i) => JSON.stringify({ ...row, seq: first + i })).join("\n");
  writeFileSync(path, name.endsWith(".gz") ? gzipSync(`${text}\n`) : text);
  return path;
}

interface Run {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
  readonly result: Readonly<Record<string, unknown>>;
}

function replay(...args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [builtScript("bench/replay.js").pathname, ...args], (error, out, errors) => {
      const last = out.trim().split("\n").at(-1) ?? "";
      const result = last.startsWith("{") ? (JSON.parse(last) as Run["result"]) : {};
      resolve({ code: error === null ? 0 : Number(error.code), out, errors, result });
    });
  });
}

test("a day's trades are made again, whatever the file doesn't show of a commit", async () => {
  const { code, out, result } = await replay("--history", fileOf("day.jsonl.gz", DAY));
  expect(result).toMatchObject({ equal: true, rows: DAY.length, commits: 6, trades: 4, volume: 26, different: 0 });
  expect(result["matches"]).toEqual({ direct: 2, mint: 1, merge: 1 });
  expect(out).toContain("outcome 12: bid -, ask 3400\n");
  expect(code).toBe(0);
});

test("a book that is crossed after a commit is a fault", async () => {
  const { code, result } = await replay("--history", fileOf("crossed.jsonl", [...DAY, level(7, 11, 2, 2_900, 1)]));
  expect([code, result]).toMatchObject([1, { equal: false, crossed: 1 }]);
});

test("what is no file of history is refused in one line", async () => {
  const wrong: [string, string][] = [
    [join(folder, "none.jsonl"), "no such file"],
    [fileOf("late.jsonl", DAY, 2), "line 1: rows are missing"],
    [fileOf("back.jsonl", [DAY[4]!, DAY[0]!]), "line 2: rows are missing"],
    [fileOf("fields.jsonl", [{ at: 1, kind: "level", price: 3 }]), "line 1: no row of book history"],
    [fileOf("kind.jsonl", [{ at: 1, kind: "order" }]), "line 1: no row of book history"],
    [fileOf("empty.jsonl", []), "no rows"],
    [fileOf("day.parquet", DAY), "JSON lines"],
  ];
  writeFileSync(join(folder, "text.jsonl"), "hello\n");
  writeFileSync(join(folder, "text.jsonl.gz"), "hello\n");
  wrong.push([join(folder, "text.jsonl"), "line 1: "], [join(folder, "text.jsonl.gz"), "incorrect header check"]);
  for (const [path, words] of wrong) {
    const { code, errors } = await replay("--history", path);
    expect([path, code, errors.trim().split("\n").length]).toEqual([path, 1, 1]);
    expect(errors).toContain(words);
  }
  const both = await replay("--history", fileOf("day.jsonl", DAY), "--log", folder);
  expect([both.code, both.errors.split("\n")[0]]).toEqual([2, expect.stringContaining("no other arguments")]);
});
