/** Commands build first: the build's output must not precede their result, however slow the machine is. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { copyCheckout } from "../support/checkout.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SLOW = new URL("./slow-machine.mjs", import.meta.url).href;
/** From here on rolldown warns of the time that callbacks take. */
const SLOW_BUILD_MS = 3_000;

test("a slow build is silent", { timeout: 180_000 }, () => {
  const folder = copyCheckout();
  try {
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

test("builds at once don't meet, unchanged sources need none, and a running server keeps its build", async () => {
  const folder = copyCheckout();
  const run = (command: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess =>
    spawn(command, args, { cwd: folder, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const ended = (child: ChildProcess): Promise<number | null> =>
    new Promise((resolve) => child.once("close", (code) => resolve(code)));
  const build = (): Promise<number | null> => ended(run("npm", ["run", "-s", "build"]));
  const builds = (): string[] => readdirSync(join(folder, "dist/builds")).sort();
  let server: ChildProcess | null = null;
  try {
    expect(await Promise.all([build(), build(), build()])).toEqual([0, 0, 0]);
    const [first, ...others] = builds();
    expect(others).toEqual([]);
    const madeAt = statSync(join(folder, "dist/builds", first!, "main.js")).mtimeMs;
    expect(await build()).toBe(0);
    expect(statSync(join(folder, "dist/builds", first!, "main.js")).mtimeMs).toBe(madeAt);
    server = run("node", ["dist/main.js"], { HOST: "127.0.0.1", PORT: "0", DATA_DIR: join(folder, "exchange") });
    const exited = ended(server);
    const ready = new Promise<number>((resolve) => {
      createInterface({ input: server!.stdout! }).on("line", (line) => {
        const { msg, port } = JSON.parse(line) as { msg: string; port: number };
        if (msg === "ready") resolve(port);
      });
    });
    const port = await ready;
    // Builds of other sources came meanwhile: the older ones go, but not the one in use.
    const older = [1, 2, 3, 4].map((n) => join(folder, "dist/builds", `000000000000000${n}`));
    for (const [n, path] of older.entries()) {
      mkdirSync(path);
      utimesSync(path, n + 1, n + 1);
    }
    utimesSync(join(folder, "dist/builds", first!), 0, 0);
    appendFileSync(join(folder, "server/main.ts"), "\n");
    expect(await build()).toBe(0);
    expect(builds()).toContain(first);
    expect(builds().filter((name) => name.startsWith("0000"))).toEqual(["0000000000000003", "0000000000000004"]);
    const base = `http://127.0.0.1:${port}`;
    const page = await (await fetch(base)).text();
    const [, asset] = /src="\.?\/?(assets\/[^"]+)"/.exec(page)!;
    expect((await fetch(`${base}/${asset}`)).status).toBe(200);
    expect((await fetch(`${base}/api/v1/markets`)).status).toBe(200);
    server.kill("SIGTERM");
    expect(await exited).toBe(0);
    // It needs none itself, and still removes what nobody uses any more.
    utimesSync(join(folder, "dist/builds", first!), 0, 0);
    expect(await build()).toBe(0);
    expect(builds()).not.toContain(first);
  } finally {
    server?.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}, 180_000);

test("a build's messages go to stderr, and commands build silently", () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  expect(scripts["build"]).toMatch(/ 1>&2$/);
  const before = Object.entries(scripts).filter(([name]) => name.startsWith("pre"));
  expect(before.map(([name]) => name)).toContain("prebench");
  for (const [name, command] of before) expect(command, name).toBe(scripts["build"]);
});
