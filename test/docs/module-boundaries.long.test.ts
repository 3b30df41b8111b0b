/** The rules of .dependency-cruiser.mjs on prepared trees: each rejects what it should, and nothing else. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CRUISER = join(ROOT, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs");

/** @param files path to text @returns the names of the broken rules, sorted, each once */
async function rulesBrokenBy(files: Readonly<Record<string, string>>): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "boundaries-"));
  try {
    for (const name of ["engine", "server"]) mkdirSync(join(folder, name));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    const config = join(ROOT, ".dependency-cruiser.mjs");
    const args = [CRUISER, "--config", config, "--output-type", "json", "engine", "server"];
    const options = { cwd: folder, maxBuffer: 2 ** 24 };
    const { stdout } = await run(process.execPath, args, options).catch((error: { stdout: string }) => error);
    const { violations } = (JSON.parse(stdout) as { summary: { violations: { rule: { name: string } }[] } }).summary;
    return [...new Set(violations.map(({ rule }) => rule.name))].sort();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("a tree that follows the rules passes, including types.ts", async () => {
  const files = {
    "engine/ring/ring.ts": "export const ring = 1;\n",
    "engine/book/matcher.ts": 'import { ring } from "../ring/ring.ts";\nexport const matcher = ring;\n',
    "server/trading/types.ts": "export interface Order { readonly id: number }\n",
    "server/http/route.ts":
      'import type { Order } from "../trading/types.ts";\nexport const idOf = ({ id }: Order): number => id;\n',
    "server/trading/exchange.ts":
      'import { matcher } from "../../engine/book/matcher.ts";\nimport { idOf } from "../http/route.ts";\nexport const id = idOf({ id: matcher });\n',
  };
  expect(await rulesBrokenBy(files)).toEqual([]);
});

test("circular imports are rejected, by value and by type only", async () => {
  const value = {
    "server/util/a.ts": 'import { b } from "./b.ts";\nexport const a = (): number => b;\n',
    "server/util/b.ts": 'import { a } from "./a.ts";\nexport const b = 1;\nexport const c = a;\n',
  };
  expect(await rulesBrokenBy(value)).toEqual(["no-circular-imports"]);
  const type = {
    "server/util/a.ts": 'import type { B } from "./b.ts";\nexport type A = B | null;\n',
    "server/util/b.ts": 'import type { A } from "./a.ts";\nexport interface B { readonly a: A }\n',
  };
  expect(await rulesBrokenBy(type)).toEqual(["no-circular-imports"]);
});

test("imports upward are rejected", async () => {
  const upward = {
    "server/trading/exchange.ts": "export interface Exchange { readonly id: number }\n",
    "server/http/route.ts":
      'import type { Exchange } from "../trading/exchange.ts";\nexport const idOf = ({ id }: Exchange): number => id;\n',
  };
  expect(await rulesBrokenBy(upward)).toEqual(["server-http-imports-downward"]);
  const engine = {
    "server/util/time.ts": "export const now = 0;\n",
    "engine/util/clock.ts": 'import { now } from "../../server/util/time.ts";\nexport const clock = now;\n',
  };
  expect(await rulesBrokenBy(engine)).toEqual(["engine-never-imports-server"]);
});

test("packages outside their home are rejected", async () => {
  const names = ["better-sqlite3", "jose", "msgpackr", "uWebSockets.js"];
  const planted = names.map((name) => [`node_modules/${name}/index.js`, "module.exports = 1;\n"]);
  const strangers = names.map((name, i) => [`server/util/stranger-${i}.ts`, `import "${name}";\n`]);
  expect(await rulesBrokenBy(Object.fromEntries([...planted, ...strangers]))).toEqual(
    names.map((name) => `${name}-has-one-home`),
  );
});
