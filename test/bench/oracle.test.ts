/** The oracle command: small flows with reports derived by hand, broken files, and the real file if it is available. */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { parseMessages } from "../../bench/oracle/messages.ts";
import { offsetFor } from "../../bench/oracle/prices.ts";
import { replay } from "../../bench/oracle/replay.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const DATA = new URL("../../../shared/data/matching_oracle/", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "oracle-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

function reportsOf(lines: readonly string[]): { reports: string[]; windows: number; trades: number } {
  const path = join(folder, "reports.csv");
  const { sha256, windows, trades } = replay(parseMessages(lines.join("\n")), path);
  const text = readFileSync(path, "latin1");
  expect(sha256).toBe(createHash("sha256").update(text).digest("hex"));
  return { reports: text === "" ? [] : text.split("\n"), windows, trades };
}

const command = (...args: string[]) =>
  spawnSync(process.execPath, ["dist/bench/oracle.js", ...args], { cwd: ROOT, encoding: "utf8" });

describe("reports", () => {
  test("the oracle reports placements, trades over two levels, immediate-or-cancel and its remainder", () => {
    const { reports, trades } = reportsOf([
      "N,7,S,10,30000",
      "N,8,S,10,30001",
      "N,9,S,10,30000",
      "N,1,B,25,30001",
      "N,2,B,9,30001,1",
      "N,3,S,1,30002,1",
    ]);
    expect(reports).toEqual([
      "0,0,1,7,30000,10",
      "0,1,1,8,30001,10",
      "0,2,1,9,30000,10",
      "0,3,0,1,30001,25",
      "1,3,30000,10,7,1",
      "1,3,30000,10,9,1",
      "1,3,30001,5,8,1",
      "0,4,0,2,30001,9",
      "1,4,30001,5,8,2",
      "2,4,0,2,30001",
      "0,5,1,3,30002,1",
      "2,5,1,3,30002",
    ]);
    expect(trades).toBe(4);
  });

  test("a modify loses its place even if it shrinks, and gets side, quantity and price from its message", () => {
    const { reports } = reportsOf([
      "N,1,B,10,30000",
      "N,2,B,10,30000",
      "M,1,B,5,30000",
      "N,3,S,12,30000",
      "M,1,S,4,30010",
      "N,4,B,4,30010",
    ]);
    expect(reports).toEqual([
      "0,0,0,1,30000,10",
      "0,1,0,2,30000,10",
      "3,2,0,1,30000,5",
      "0,3,1,3,30000,12",
      "1,3,30000,10,2,3",
      "1,3,30000,2,1,3",
      "3,4,1,1,30010,4",
      "0,5,0,4,30010,4",
      "1,5,30010,4,1,4",
    ]);
  });

  test("a crossing modify is reported after its trades and may end the order", () => {
    const { reports } = reportsOf([
      "N,1,S,10,30000",
      "N,2,B,10,29990",
      "M,2,B,4,30005",
      "C,2",
      "M,2,B,5,29990",
      "C,1",
      "C,1",
    ]);
    expect(reports).toEqual([
      "0,0,1,1,30000,10",
      "0,1,0,2,29990,10",
      "1,2,30000,4,1,2",
      "3,2,0,2,30005,4",
      "4,3,2",
      "5,4,2",
      "2,5,1,1,30000",
      "4,6,1",
    ]);
  });

  test("cancels and modifies of unknown ids are rejected; ids may be zero, huge, and reused", () => {
    const { reports } = reportsOf([
      "C,0",
      "M,2147483648,B,1,30000",
      "N,0,B,1,30000",
      "C,0",
      "N,0,S,2,30001",
      "N,2147483648,B,2,30001",
      "C,0",
      "N,0,B,3,30000",
      "C,0",
    ]);
    expect(reports).toEqual([
      "4,0,0",
      "5,1,2147483648",
      "0,2,0,0,30000,1",
      "2,3,0,0,30000",
      "0,4,1,0,30001,2",
      "0,5,0,2147483648,30001,2",
      "1,5,30001,2,0,2147483648",
      "4,6,0",
      "0,7,0,0,30000,3",
      "2,8,0,0,30000",
    ]);
  });

  test("an id reused while its order rests names the later order", () => {
    const { reports } = reportsOf(["N,5,B,1,30000", "N,5,B,2,30001", "C,5", "C,5", "N,6,S,1,30000"]);
    expect(reports).toEqual([
      "0,0,0,5,30000,1",
      "0,1,0,5,30001,2",
      "2,2,0,5,30001",
      "4,3,5",
      "0,4,1,6,30000,1",
      "1,4,30000,1,5,6",
    ]);
  });
});

describe("prices", () => {
  test("the oracle takes the documented offset of prices if it fits, otherwise another, none if the range is too wide", () => {
    expect(offsetFor(28_851, 38_849)).toBe(28_850);
    expect(offsetFor(100, 10_098)).toBe(99);
    expect(offsetFor(-5, 3)).toBe(-6);
    expect(offsetFor(100, 10_099)).toBeUndefined();
  });

  test("the oracle takes prices outside the documented window", () => {
    const { reports } = reportsOf(["N,1,B,1,-3", "N,2,S,1,9000", "N,3,S,1,-3"]);
    expect(reports).toEqual(["0,0,0,1,-3,1", "0,1,1,2,9000,1", "0,2,1,3,-3,1", "1,2,-3,1,1,3"]);
  });

  test("a range wider than the book: resting orders keep their place and quantity from window to window", () => {
    const lines = ["N,1,B,5,100000", "N,2,B,5,100000", "N,3,S,2,100000"];
    // Each of these uses a price up: 30 000 of them take several windows.
    for (let i = 0; i < 30_000; i++) lines.push(`N,${10 + i},S,1,${200_000 + 3 * i},1`);
    lines.push("N,4,S,4,99999");
    const { reports, windows } = reportsOf(lines);
    expect(windows).toBeGreaterThan(2);
    expect(reports.slice(-3)).toEqual(["0,30003,1,4,99999,4", "1,30003,100000,3,1,4", "1,30003,100000,1,2,4"]);
  });

  test("more simultaneous prices than a book has are rejected", () => {
    const lines: string[] = [];
    for (let i = 0; i < 10_000; i++) lines.push(`N,${i},B,1,${2 * i}`);
    expect(() => reportsOf(lines)).toThrow("line 10000: orders at more than 9999 prices rest at one time");
  });
});

describe("the command", () => {
  test("the oracle's command reads plain and packed files; the last line is JSON", () => {
    const text = "N,1,B,2,30000\nN,2,S,2,30000\r\n";
    const plain = join(folder, "small.csv");
    const packed = join(folder, "small.csv.gz");
    const reports = join(folder, "small.out");
    writeFileSync(plain, text);
    writeFileSync(packed, gzipSync(text));
    for (const file of [plain, packed]) {
      const { status, stdout } = command(file, "--reports", reports);
      expect(status).toBe(0);
      const result = JSON.parse(stdout.trim().split("\n").at(-1)!);
      expect(result).toMatchObject({ messages: 2, trades: 1 });
      expect(result.seconds).toBeGreaterThan(0);
      expect(result.messages_per_s).toBeGreaterThan(0);
      expect(readFileSync(reports, "latin1")).toBe("0,0,0,1,30000,2\n0,1,1,2,30000,2\n1,1,30000,2,1,2");
      expect(result.sha256).toBe(createHash("sha256").update(readFileSync(reports)).digest("hex"));
    }
  });

  test.each([
    ["N,1,B,2,30000\nN,2,B,2", "line 2 is no message: N,2,B,2"],
    ["N,1,B,0,30000", "line 1 has a number out of range: N,1,B,0,30000"],
    ["N,1,B,2,9000000000", "line 1 has a number out of range"],
    ["C,1\n\nC,2", "line 2 is no message"],
    ["C,-1", "line 1 is no message"],
  ])("a broken file ends with its line and code 1: %j", (text, message) => {
    const file = join(folder, "broken.csv");
    writeFileSync(file, text);
    const { status, stderr } = command(file);
    expect(stderr).toContain(message);
    expect(status).toBe(1);
  });

  test("a missing file ends with one line and exit code 1", () => {
    const { status, stderr } = command(join(folder, "nowhere.csv"));
    expect(stderr).toMatch(/^oracle: .*\n$/);
    expect(status).toBe(1);
  });

  const real = join(DATA, "normal_seed23.msgs.csv.gz");
  test.skipIf(!existsSync(real))("the published flow gives the published hash (skipped without ../shared)", () => {
    const published = readFileSync(join(DATA, "correctness_hash.txt"), "utf8");
    const wanted = /^(\w+) +normal_seed23/m.exec(published)![1];
    const reports = join(folder, "normal.out");
    const out = execFileSync(process.execPath, ["dist/bench/oracle.js", real, "--reports", reports], { cwd: ROOT });
    const result = JSON.parse(out.toString().trim().split("\n").at(-1)!);
    expect(result).toMatchObject({ messages: 1_996_097, sha256: wanted });
  });
});
