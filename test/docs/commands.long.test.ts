/**
 * Every npm command that README.md and the documents name, as a person types it: in a checkout of its own, for a second at
 * least, and a second time on what the first left behind. A command that no line below runs fails the test.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../bench/support/free-port.ts";
import { NO_BROWSER } from "../browser/support/page.ts";
import { copyCheckout } from "../support/checkout.ts";
import { Running, readDocument } from "./code-blocks.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DOCUMENTS = [
  "README.md",
  ...readdirSync(join(ROOT, "docs"), "utf8").flatMap((name) => (name.endsWith(".md") ? [`docs/${name}`] : [])),
];
/** A command ends before its remark, in a table before the next cell, and in prose at the backquote. */
const COMMAND = /\bnpm (?:ci|start|test|run (?:-s )?[\w:]+)(?: -- [^`#|\n]*)?/g;
const DEADLINE_MS = 150_000;
const LEAST_MS = 1_000;
const STACK = /^ {4}at .*:\d+:\d+\)?$/m;

function documented(): string[] {
  const found = DOCUMENTS.flatMap((path) => readDocument(path).match(COMMAND) ?? []);
  const plain = found.map((command) =>
    command
      .replace("run -s ", "run ")
      .replace(/ [\\&].*$/, "")
      .trim(),
  );
  return [...new Set(plain)].sort();
}

/** They are what runs this test, or are part of it. */
const OURSELVES = ["npm ci", "npm test", "npm run test:all", "npm run test:long", "npm run lint", "npm run build"];
/** The tests that run the same built file with short work. */
const ELSEWHERE: readonly (readonly [command: RegExp, file: string, by: string])[] = [
  [/^npm run bench\b/, "bench/run.js", "test/bench/smoke.long.test.ts"],
  [/^npm run oracle\b/, "bench/oracle", "test/bench/oracle.test.ts"],
  [/^npm run replay\b/, "bench/replay", "test/bench/replay.long.test.ts"],
];

/** Commands that end at Ctrl-C, and what they print once they are at work. */
const SERVES: Readonly<Record<string, RegExp>> = {
  "npm start": /"msg":"ready"/,
  "npm run demo": /^The exchange is at /m,
  "npm run demo -- --fresh": /^The exchange is at /m,
  "npm run demo -- --standby http://127.0.0.1:8081": /^The exchange is at /m,
  "npm run crash": /^seed \d+/m,
  "npm run crash -- --kills 50": /^seed \d+/m,
  "npm run crash -- --standby": /^seed \d+/m,
  "npm run simulate": /seed/,
  "npm run simulate -- --seed N --steps M": /seed/,
  "npm run fuzz": /seed/i,
  "npm run fuzz -- --seed N --seconds S [--only http": /seed/i,
};

const PICTURE = "npm run picture";
const SBE = "npm run sbe";

/** With these in place of what the reader fills in. */
const VALUES: readonly (readonly [name: RegExp, value: string])[] = [
  [/\bEMAIL\b|\b(you|maker|desk)@example\.com\b/, "USER"],
  [/\bID\b/, "1"],
  [/\b4711\b/, "1"],
  [/ \[FILE\]/, ""],
  [/ \[--only http/, " --only http"],
  [/ --seed N/, " --seed 7"],
  [/ --steps M/, " --steps 2000000"],
  [/ --seconds S/, " --seconds 30"],
  [/ --kills 50/, " --kills 50"],
];

let folder: string;
let port: number;
beforeAll(async () => {
  folder = copyCheckout();
  port = await freePort();
  // The build takes most of a run's time, and is the first command's.
  expect((await run("npm run build")).code).toBe(0);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fillIn = (command: string): string => VALUES.reduce((text, [name, value]) => text.replace(name, value), command);

const start = (command: string): Running =>
  new Running("bash", ["-c", command], folder, { PORT: String(port), HOST: "127.0.0.1" });

/** Runs a command to its end. */
async function run(command: string): Promise<{ code: number | string; output: string }> {
  const running = start(command);
  return { code: await running.exited, output: running.output };
}

/** Ends a command with Ctrl-C once it has printed `until`, after a second at least. */
async function serve(command: string, until: RegExp): Promise<{ code: number | string; output: string }> {
  const [running] = await Promise.all([started(command, until), delay(LEAST_MS)]);
  running.interrupt();
  return { code: await running.exited, output: running.output };
}

async function started(command: string, until: RegExp): Promise<Running> {
  const running = start(command);
  await running.wrote(until, DEADLINE_MS);
  return running;
}

test("each is run by a test", () => {
  const known = (command: string): boolean =>
    OURSELVES.includes(command) ||
    command in SERVES ||
    command === PICTURE ||
    command === SBE ||
    command.startsWith("npm run admin") ||
    ELSEWHERE.some(([pattern]) => pattern.test(command));
  expect(documented().filter((command) => !known(command))).toEqual([]);
  expect(documented().length).toBeGreaterThan(30);
  for (const [, file, by] of ELSEWHERE) expect(readFileSync(join(ROOT, by), "utf8")).toContain(file);
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  for (const [pattern, file] of ELSEWHERE) {
    const name = /run (\w+)/.exec(pattern.source)![1]!;
    expect(scripts[name]).toContain(file);
  }
});

test("SIGTERM to npm stops what npm has started", { timeout: 320_000 }, async () => {
  const running = new Running("npm", ["start"], folder, { PORT: String(port), HOST: "127.0.0.1" });
  await running.wrote(/"msg":"ready"/, DEADLINE_MS);
  running.child.kill("SIGTERM");
  // Whatever runs on would keep its output open.
  await running.exited;
  expect(running.output).toContain('"msg":"stopped"');
});

describe("served until Ctrl-C, twice", () => {
  test.each(Object.entries(SERVES))("served until Ctrl-C, twice: %s", { timeout: 320_000 }, async (command, until) => {
    for (let n = 0; n < 2; n++) {
      const { code, output } = await serve(fillIn(command), until);
      expect(output).not.toMatch(STACK);
      // npm ends with a code of its own after a signal.
      expect([0, 130, "SIGINT"], output).toContain(code);
    }
  });
});

test.skipIf(NO_BROWSER)(PICTURE, { timeout: 320_000 }, async () => {
  const picture = join(folder, "docs/figures/page.webp");
  rmSync(picture, { force: true });
  const { code, output } = await run(PICTURE);
  expect([code, output]).toEqual([0, expect.stringContaining(picture)]);
  expect(statSync(picture).size).toBeGreaterThan(20_000);
});

test(SBE, { timeout: 120_000 }, async () => {
  const codec = join(folder, "server/websocket/sbe/codec/requests.ts");
  const before = readFileSync(codec, "utf8");
  rmSync(codec);
  // A build needs what it writes, so a checkout has it.
  expect((await run("node dist/test/sbe/generate-run.js")).output).toContain("server/websocket/sbe/codec/requests.ts");
  expect(readFileSync(codec, "utf8")).toBe(before);
  const { code, output } = await run(SBE);
  expect([code, output]).toEqual([0, expect.stringContaining("docs/sbe/exchange_sbe.h")]);
});

describe("the operator's commands, twice, on a stopped exchange", () => {
  const commands = documented().filter((command) => command.startsWith("npm run admin"));

  beforeAll(async () => {
    await serve("npm start", SERVES["npm start"]!);
    mkdirSync(join(folder, "backups"));
    expect((await run("npm run -s admin -- operator create user@example.com")).code).toBe(0);
  }, 60_000);

  let created = 0;
  test.each(commands)(
    "the operator's command runs twice on a stopped exchange: %s",
    { timeout: 60_000 },
    async (command) => {
      const email = /operator create/.test(command) ? `new${++created}@example.com` : "user@example.com";
      const filled = fillIn(command)
        .replace("USER", email)
        .replace("/var/backups/exchange", join(folder, "backups"))
        .replace(/ REFERENCE$/, " reference");
      for (const codes of [firstOf(command), command.includes("COMMAND") ? [2] : [0, 1]]) {
        const { code, output } = await run(filled);
        expect(output).not.toMatch(STACK);
        expect(codes, output).toContain(code);
      }
      expect(existsSync(join(folder, "data/exchange.db"))).toBe(true);
    },
  );

  /** The exit codes of the first run: this exchange lacks some archives, markets and second factors that the documents name. */
  function firstOf(command: string): readonly number[] {
    if (command.includes("COMMAND")) return [2];
    // These ask the exchange that runs.
    if (/ standby (status|promote|demote)/.test(command)) return [1];
    return /--file|--market who-wins|second-factor|operator remove|rotate/.test(command) ? [0, 1] : [0];
  }
});
