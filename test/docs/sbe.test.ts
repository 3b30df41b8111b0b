/** The programs of docs/sbe.md compile, run and print what the page says; the page names every template. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../../bench/support/root.ts";
import { readProjectSchema } from "../sbe/generate.ts";
import { codeBlocks, readDocument } from "./code-blocks.ts";

const root = fileURLToPath(ROOT);
const SBE = join(root, "docs/sbe");
const PAGE = readDocument("docs/sbe.md");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sbe-docs-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const program = (wanted: string): string => codeBlocks("docs/sbe.md").find(({ language }) => language === wanted)!.code;

test("the C program", ({ skip }) => {
  if (spawnSync("cc", ["--version"]).error !== undefined) skip("cc is missing");
  const [source, binary] = [join(folder, "page.c"), join(folder, "page")];
  writeFileSync(source, program("c"));
  execFileSync("cc", ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", `-I${SBE}`, source, "-o", binary]);
  // Two messages of 24 + 48 bytes and two texts, 1 + 7 bytes.
  expect(execFileSync(binary, { encoding: "utf8" })).toBe(
    "160 bytes\n1: 10 at 4000 for desk-7\n2: 10 at 4000 for desk-7\n",
  );
});

test("the Python program", ({ skip }) => {
  if (spawnSync("python3", ["--version"]).error !== undefined) skip("python3 is missing");
  const env = { ...process.env, PYTHONPATH: SBE, PYTHONDONTWRITEBYTECODE: "1" };
  const output = execFileSync("python3", ["-c", program("python")], { env, encoding: "utf8" });
  expect(output).toBe("1 PlaceOrder 4000\n2 Ping None\n");
});

test("every message of the schema", () => {
  const named = (id: number, name: string): boolean => new RegExp(`\\b${id}\\b`).test(PAGE) && PAGE.includes(name);
  const missing = readProjectSchema(root).messages.filter(({ id, name }) => !named(id, name));
  expect(missing.map(({ name }) => name)).toEqual([]);
});
