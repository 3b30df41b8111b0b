/** The page about the log and its script, against a real log of several days. */
import { execFileSync, spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ArchiveList, archivePath } from "../../engine/log/archive-format.ts";
import { openLogReader } from "../../engine/log/log-files.ts";
import { EventKind } from "../../engine/ring/records.ts";
import { findCommand, readArguments } from "../../server/cli/commands.ts";
import { type LogLine, linesOf } from "../../server/cli/log-lines.ts";
import { DaysLog } from "../support/days-log.ts";
import { codeBlocks, readDocument } from "./code-blocks.ts";

const SCRIPT = fileURLToPath(new URL("../../docs/log.py", import.meta.url));
const MOST_LINES = 50;
const hasPython = spawnSync("python3", ["--version"]).error === undefined;
if (!hasPython) console.log("skipping docs/log.py: there is no python3");

let days: DaysLog;
beforeAll(() => {
  days = new DaysLog();
  days.tradeDays(1);
  days.archive();
  for (let i = 0; i < 20; i++) days.trade();
  days.close();
});
afterAll(() => rmSync(days.folder, { recursive: true }));

const KINDS: ReadonlyMap<string, string> = new Map([
  ["orderPlaced", "placed"],
  ["orderFilled", "filled"],
  ["orderCanceled", "canceled"],
]);

/** The lines about an order in batches `from..to`, as the script prints them. */
function lifeOf(order: number, from: number, to: number): string[] {
  const log = openLogReader(days.folder);
  const lines: LogLine[] = [];
  for (const body of log.bodies(from)) {
    for (const item of linesOf(body, false)) if (item.order === order && item.line.batch <= to) lines.push(item.line);
  }
  log.close();
  return lines.map(({ batch, kind, at, user, side, outcome, quantity, price, remaining, status, fill }) => {
    const time = new Date(at as number).toISOString().replace("Z", "+00:00");
    const about = kind === "orderFilled" ? `fill ${fill}: ${quantity} at ${price}` : `${quantity} at ${price}`;
    const state = `${remaining} left, ${String(status).replace("_", " ")}`;
    return `batch ${batch}, ${time}: user ${user} ${side} outcome ${outcome}, ${KINDS.get(kind)} ${about}, ${state}`;
  });
}

/** The order with the most events in batches `from..to`. */
function busiest(from: number, to: number): number {
  const log = openLogReader(days.folder);
  const counts = new Map<number, number>();
  for (const body of log.bodies(from)) {
    for (const { order, line } of linesOf(body, false)) {
      if (order !== null && line.batch <= to) counts.set(order, (counts.get(order) ?? 0) + 1);
    }
  }
  log.close();
  return [...counts].sort(([, a], [, b]) => b - a)[0]![0];
}

test.runIf(hasPython)("the script prints an order's life from an archive and from the journal", () => {
  const [archive] = new ArchiveList(days.archives).read();
  const archived = busiest(archive!.first, archive!.last);
  const files: [path: string, from: number, to: number, order: number][] = [
    [archivePath(days.archives, archive!.day), archive!.first, archive!.last, archived],
    [join(days.folder, "journal.db"), archive!.last + 1, Infinity, busiest(archive!.last + 1, Infinity)],
  ];
  for (const [path, from, to, order] of files) {
    const printed = execFileSync("python3", [SCRIPT, path, String(order)], { encoding: "utf8" });
    const life = lifeOf(order, from, to);
    expect(life.length).toBeGreaterThan(2);
    expect(printed.trim().split("\n")).toEqual(life);
  }
});

test("the script has at most 50 lines, and imports nothing beyond Python's standard library", () => {
  const lines = readDocument("docs/log.py").trimEnd().split("\n");
  expect(lines.length).toBeLessThanOrEqual(MOST_LINES);
  const imported = lines.flatMap((line) => /^(?:import|from) (\w+)/.exec(line)?.[1] ?? []);
  expect(imported).toEqual(["gzip", "json", "sqlite3", "struct", "sys", "datetime"]);
});

test("the page's commands exist, and it names every kind of event", () => {
  const [shell] = codeBlocks("docs/log.md").filter(({ language }) => language === "sh");
  const commands = shell!.code.split("\n").flatMap((line) => /^npm run admin -- (.*?)( +#.*)?$/.exec(line)?.[1] ?? []);
  expect(commands.length).toBe(4);
  for (const each of commands) {
    const { command, rest } = findCommand(each.split(" "));
    readArguments(command, rest);
  }
  const page = readDocument("docs/log.md");
  // The log drops `stopped`, the engine's last event.
  for (const kind of Object.keys(EventKind).filter((name) => name !== "stopped")) expect(page).toContain(`\`${kind}\``);
});
