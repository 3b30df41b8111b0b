/** Commands build first: the build's output must not precede their result, however slow the machine is. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SLOW = new URL("./slow-machine.mjs", import.meta.url).href;
/** From here on rolldown warns of the time that callbacks take. */
const SLOW_BUILD_MS = 3_000;

test("a slow build is silent", { timeout: 180_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "exchange-build-"));
  try {
    for (const name of ["engine", "server", "bench", "test", "package.json", "rolldown.config.js", "tsconfig.json"]) {
      const filter = (path: string): boolean => !/node_modules|\/test\/browser/.test(path.slice(ROOT.length));
      cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter });
    }
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    const began = performance.now();
    const build = spawnSync("npm", ["run", "-s", "build"], {
      cwd: folder,
      env: { ...process.env, NODE_OPTIONS: `--import ${SLOW}`, npm_config_loglevel: "silent" },
      encoding: "utf8",
    });
    expect(performance.now() - began).toBeGreaterThan(SLOW_BUILD_MS);
    expect([build.status, build.stdout, build.stderr]).toEqual([0, "", ""]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a build's messages go to stderr, and commands build silently", () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  expect(scripts["build"]).toMatch(/ 1>&2$/);
  const before = Object.entries(scripts).filter(([name]) => name.startsWith("pre"));
  expect(before.map(([name]) => name)).toContain("prebench");
  for (const [name, command] of before) expect(command, name).toBe("npm run -s build");
});
