/**
 * The fastest order book on npm with the operations of the book bench, in a process of its own. It is no dependency of
 * the exchange: bench/rivals has its own lock file and is installed on demand.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TimeInForce } from "../../engine/constants.ts";
import * as R from "../../engine/records.ts";
import type { Workload } from "./workload.ts";

/** From dist/bench or dist/chunks. */
const FOLDER = fileURLToPath(new URL("../../bench/rivals", import.meta.url));
const INSTALL_DEADLINE_MS = 120_000;
const KIND = { place: 1, immediate: 2, cancel: 3 } as const;
const WORDS = 5;

/** Operations a second, or why there is no figure. @param mayInstall fetches the package where it isn't there */
export function runRival(workload: Workload, mayInstall: boolean): number | string {
  try {
    if (!existsSync(join(FOLDER, "node_modules"))) {
      if (!mayInstall) return "not installed";
      const args = ["ci", "--prefix", FOLDER, "--ignore-scripts", "--no-audit", "--no-fund"];
      execFileSync("npm", args, { stdio: "pipe", timeout: INSTALL_DEADLINE_MS });
    }
  } catch (error) {
    return `npm ci failed: ${(error as Error).message.split("\n", 1)[0]}`;
  }
  const folder = mkdtempSync(join(tmpdir(), "book-bench-"));
  try {
    const file = join(folder, "operations");
    writeFileSync(file, encode(workload));
    const output = execFileSync(process.execPath, [join(FOLDER, "nodejs-order-book.js"), file], { encoding: "utf8" });
    return workload.operations / (JSON.parse(output) as { seconds: number }).seconds;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function encode(workload: Workload): Int32Array {
  const count = workload.packed.length;
  const words = new Int32Array(1 + count * WORDS);
  words[0] = workload.prefill;
  for (let i = 0; i < count; i++) {
    const packed = workload.packed[i]!;
    const immediate = R.timeInForceOf(packed) === TimeInForce.ioc;
    const placed = immediate ? KIND.immediate : KIND.place;
    const at = 1 + i * WORDS;
    words[at] = R.kindOf(packed) === R.CommandKind.cancelOrder ? KIND.cancel : placed;
    words[at + 1] = R.sideOf(packed);
    words[at + 2] = workload.orderIds[i]!;
    words[at + 3] = workload.prices[i]!;
    words[at + 4] = workload.quantities[i]!;
  }
  return words;
}
