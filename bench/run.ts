/**
 * `npm run bench`: runs each figure in its own process, one after the other, and ends with a table of the goals. Names
 * select figures (`npm run bench -- book`), `--smoke` runs all of them in seconds so that a test can tell whether one
 * is broken, `--record` stores the results in docs/figures and redraws the plots.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { drawPlots, keepResult } from "./support/figures.ts";
import { itemAt } from "./support/item-at.ts";
import { type Goal, grouped } from "./support/report.ts";
import { orUsage } from "./support/usage.ts";

/** In the order in which an order passes them. */
const BENCHES = [
  "book",
  "rings",
  "parts",
  "log",
  "http",
  "latency",
  "matrix",
  "profile",
  "memory",
  "entry",
  "live",
  "sockets",
  "lists",
  "settle",
  "standby",
] as const;

type Result = { readonly goals?: readonly Goal[] } & Record<string, unknown>;

/** Runs one figure and copies its output; null if it failed. */
async function run(name: string, options: readonly string[]): Promise<Result | null> {
  const file = fileURLToPath(new URL(`./figures/${name}.js`, import.meta.url));
  const child = spawn(process.execPath, [file, ...options], { stdio: ["inherit", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    process.stdout.write(chunk);
    output += chunk.toString();
  });
  const status = await new Promise((resolve) => child.once("close", resolve));
  return status === 0 ? (JSON.parse(output.trimEnd().split("\n").at(-1)!) as Result) : null;
}

function printGoals(goals: readonly Goal[]): void {
  const number = (value: number): string => (value < 1_000 ? String(value) : grouped(value));
  const rows = goals.map(({ figure, needed, measured, isBound, reached }) => [
    figure,
    `${isBound ? "at most " : ""}${number(needed)}`,
    number(measured),
    reached ? "reached" : "not reached",
  ]);
  const lines = [["figure", "needed", "measured", ""], ...rows];
  const widths = itemAt(lines, 0).map((_, column) => Math.max(...lines.map((line) => itemAt(line, column).length)));
  for (const line of lines) {
    const [figure, needed, measured, word] = line.map((cell, column) =>
      column === 1 || column === 2 ? cell.padStart(itemAt(widths, column)) : cell.padEnd(itemAt(widths, column)),
    );
    console.log(`${figure}  ${needed}  ${measured}  ${word}`.trimEnd());
  }
}

function readArguments() {
  const flag = { type: "boolean", default: false } as const;
  const { values, positionals: names } = parseArgs({ allowPositionals: true, options: { smoke: flag, record: flag } });
  const unknown = names.filter((name) => name !== "plot" && !(BENCHES as readonly string[]).includes(name));
  if (unknown.length > 0) throw new Error(`no bench ${unknown.join(", ")}: there are ${BENCHES.join(", ")}, and plot`);
  if (values.record && values.smoke) throw new Error("--record keeps no result of --smoke");
  return { ...values, names };
}

const { smoke, record, names } = orUsage("bench [--smoke | --record] [NAME...]", readArguments);
const goals: Goal[] = [];
let failed = 0;
for (const name of names.length > 0 ? names.filter((name) => name !== "plot") : BENCHES) {
  const result = await run(name, smoke ? ["--smoke"] : []);
  if (result === null) {
    console.error(`bench ${name} failed`);
    failed++;
  } else {
    goals.push(...(result.goals ?? []));
    if (record) keepResult(name, result);
  }
  console.log();
}
// The output of a single figure ends with its line for machines.
if (goals.length > 0 && names.length !== 1) printGoals(goals);
if (record || names.includes("plot")) drawPlots();
process.exit(failed === 0 ? 0 : 1);
