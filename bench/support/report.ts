/**
 * The output that all benches share: the line with the machine and commit, readable numbers, and the last line of JSON
 * for machines. Measures nothing.
 */
import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import { itemAt } from "./item-at.ts";

/** Processor, cores, Node and commit: a figure without them means little. */
export function machineLine(): string {
  const processors = cpus();
  const model = processors[0]?.model.trim() ?? "unknown processor";
  return `${model}, ${processors.length} cores; Node ${process.versions.node}; commit ${commit()}`;
}

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8", stdio: "pipe" }).trim();
    return (
      git("rev-parse", "--short", "HEAD") +
      (git("status", "--porcelain", "-uno", "--", ".", ":!docs/figures") === "" ? "" : " with changes")
    );
  } catch {
    return "unknown";
  }
}

/** 12345678 as 12,345,678. */
export function grouped(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** A rate in millions, as 12.3 M/s. */
export function millions(perSecond: number): string {
  return `${(perSecond / 1e6).toFixed(perSecond < 1e6 ? 3 : 1)} M/s`;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? itemAt(sorted, middle) : (itemAt(sorted, middle - 1) + itemAt(sorted, middle)) / 2;
}

/** Prints the bench's name, its workload and the machine. */
export function printHead(name: string, workload: string): void {
  console.log(`${name}: ${workload}`);
  console.log(`  ${machineLine()}`);
}

/** A figure's goal and its measured value. */
export interface Goal {
  readonly figure: string;
  readonly needed: number;
  readonly measured: number;
  /** True if `needed` is an upper bound instead of a lower one. */
  readonly isBound: boolean;
  readonly reached: boolean;
}

export function goal(figure: string, needed: number, measured: number, isBound = false): Goal {
  const rounded = measured >= 1_000 ? Math.round(measured) : Number(measured.toPrecision(3));
  return { figure, needed, measured: rounded, isBound, reached: isBound ? measured <= needed : measured >= needed };
}

/** Prints a bench's last line. Its list `goals` goes into the table at the end of the run. */
export function printResult(result: Record<string, unknown>): void {
  console.log(JSON.stringify(result));
}

/** Ends the process with one line on stderr, for the caller's mistakes. */
export function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
