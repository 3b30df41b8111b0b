/**
 * For a Node that can't run the exchange, one line says which can; a Node whose JSON.parse a client can stall causes a
 * warning.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import {
  hashFlaw,
  isSupported,
  majorOf,
  type Platform,
  thisPlatform,
  whyNot,
} from "../../../engine/util/node-support.ts";
import { TestServer } from "../../support/server.ts";

const OTHER_NODE = `--import ${new URL("../../support/other-node.mjs", import.meta.url).href}`;
const LINUX: Platform = { node: "22.22.2", platform: "linux", arch: "x64", glibc: "2.36" };

const started: TestServer[] = [];
afterAll(async () => {
  for (const server of started) await server.kill();
});

/**
 * The package ships binaries and says `gypfile: false`, but `npm ci` knows only what the lock file says: without the line it
 * runs node-gyp, which needs Python and Node's headers, and where that fails it leaves the package out without a message.
 * `npm install` drops the line.
 */
test("the lock file keeps npm ci from compiling better-sqlite3 13", () => {
  const path = fileURLToPath(new URL("../../../package-lock.json", import.meta.url));
  const { packages } = JSON.parse(readFileSync(path, "utf8")) as { packages: Record<string, { gypfile?: boolean }> };
  expect(packages["node_modules/better-sqlite3"]).toMatchObject({ version: "13.2.0", gypfile: false });
});

test("each package with binaries is loaded by one file only", () => {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  const importing = (name: string): string[] =>
    ["engine", "server", "bench", "test"]
      .flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, String(file))),
      )
      .filter((file) => /\.(ts|tsx|js|mjs)$/.test(file) && !file.includes("node_modules"))
      .filter((file) =>
        new RegExp(`^import (?!type )[^;]* from "${name}"|(import|require)\\("${name}"\\)`, "m").test(
          readFileSync(join(root, file), "utf8"),
        ),
      );
  expect(importing("better-sqlite3")).toEqual([]);
  expect(importing("uWebSockets.js")).toEqual([join("server", "http", "uws.ts")]);
});

describe("seeded hashes", () => {
  test.each(["18.20.8", "20.19.6", "20.20.1", "21.7.3", "22.22.1", "23.11.1", "24.14.0", "25.8.1"])(
    "seeded hashes: %s lacks them",
    (node) => {
      const line = hashFlaw(node)!;
      expect(line).toContain(`Node ${node} `);
      expect(line.split("\n")).toHaveLength(1);
      expect(hashFlaw(/use ([\d.]+) or later/.exec(line)![1]!)).toBeNull();
    },
  );

  test.each([
    "20.20.2",
    "22.22.2",
    "22.23.0",
    "24.14.1",
    "24.21.0",
    "25.8.2",
    "25.10.0",
    "26.0.0",
    "26.10.0",
    "28.0.0",
  ])("seeded hashes: %s has them", (node) => expect(hashFlaw(node)).toBeNull());

  test("package.json's engines start at these releases", () => {
    const { engines } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));
    const first = (engines.node as string).split(" || ").map((range) => range.slice(1));
    expect(first).toEqual(["20.20.2", "22.22.2", "24.14.1", "26.0.0"]);
    for (const node of first) {
      const [major, minor, patch] = node.split(".").map(Number);
      const older = patch! > 0 ? `${major}.${minor}.${patch! - 1}` : `${major! - 1}.0.0`;
      expect([hashFlaw(node), hashFlaw(older)], node).toEqual([null, expect.any(String)]);
    }
  });
});

describe("platforms with binaries", () => {
  test.each<[Partial<Platform>, boolean]>([
    [{ node: "20.20.2" }, true],
    [{ node: "20.20.2", glibc: "2.28" }, true],
    [{ node: "22.22.2", glibc: "2.33" }, false],
    [{ node: "22.22.2", glibc: "2.34" }, true],
    [{ node: "22.22.2", arch: "arm64" }, true],
    [{ node: "22.22.2", glibc: undefined }, false],
    [{ node: "22.22.2", platform: "darwin", arch: "arm64", glibc: undefined }, true],
    [{ node: "24.21.0" }, false],
    [{ node: "24.21.0", glibc: "2.38" }, true],
    [{ node: "24.21.0", glibc: "2.41", arch: "arm64" }, false],
    [{ node: "26.10.0", glibc: "2.41" }, true],
    [{ node: "26.10.0", platform: "darwin", arch: "arm64", glibc: undefined }, false],
    [{ node: "25.9.0", glibc: "2.41" }, false],
    [{ node: "28.0.0", glibc: "2.41" }, false],
  ])("platform with binaries: %o: %s", (on, supported) => {
    const platform = { ...LINUX, ...on };
    expect(isSupported(platform)).toBe(supported);
    const line = whyNot("uWebSockets.js", platform);
    expect(line.split("\n")).toHaveLength(1);
    const isOld = platform.glibc !== undefined && Number(platform.glibc.split(".")[1]) < 34;
    const other = isOld ? /: use Node 20\.20\.2 or later of 20$/ : /: (no Node can, )?use .*Node 22\.22\.2/;
    expect(line).toMatch(supported ? /run "npm ci" with this Node/ : other);
  });
});

describe("a server on an unsupported machine", () => {
  test.each([
    [
      "24.21.0",
      "2.36",
      "uws",
      /^cannot start: Node 24\.21\.0 can't load uWebSockets\.js on Linux \w+ with glibc 2\.36: use Node 22/,
    ],
    [
      "22.23.3",
      "none",
      "uws",
      /^cannot start: Node 22\.23\.3 can't load uWebSockets\.js on Linux \w+ without glibc: no Node can, use /,
    ],
    [
      process.versions.node,
      thisPlatform().glibc ?? "none",
      "sqlite3",
      new RegExp(
        `^cannot start: Node ${process.versions.node.replaceAll(".", "\\.")} can't load better-sqlite3 .*: run "npm ci" with this Node`,
      ),
    ],
  ])(
    "a server on an unsupported machine: Node %s, glibc %s, without %s: one line explains the refusal",
    async (node, glibc, missing, line) => {
      const env = { NODE_OPTIONS: OTHER_NODE, NODE_VERSION: node, GLIBC: glibc, MISSING: missing };
      const { code, errors } = await TestServer.refuse({ env });
      expect([code, errors]).toEqual([1, expect.stringMatching(line)]);
      expect(errors.trim().split("\n")).toHaveLength(1);
    },
  );

  // A version of the line that runs this test, so that its binaries exist. All of Node 26 has seeded hashes.
  const unseeded: Readonly<Record<number, [node: string, line: RegExp]>> = {
    20: ["20.20.1", /^Node 20\.20\.1 .*JSON\.parse.*: use 20\.20\.2 or later$/],
    22: ["22.22.1", /^Node 22\.22\.1 .*JSON\.parse.*: use 22\.22\.2 or later$/],
    24: ["24.14.0", /^Node 24\.14\.0 .*JSON\.parse.*: use 24\.14\.1 or later$/],
  };
  const [node, line] = unseeded[majorOf(process.versions.node)] ?? [];
  test.runIf(node)("a server whose hashes aren't seeded starts, with a warning in its log", async () => {
    const old = await TestServer.start({ env: { NODE_OPTIONS: OTHER_NODE, NODE_VERSION: node! } });
    started.push(old);
    const warning = await old.logged(({ level }) => level === 40);
    expect(warning.msg).toMatch(line!);
    await old.stop();
  });

  test("a server on a supported machine starts without a warning", async () => {
    const seeded = await TestServer.start();
    started.push(seeded);
    await seeded.stop();
    expect(seeded.log.filter(({ level }) => level > 30)).toEqual([]);
  });
});
