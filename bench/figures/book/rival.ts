/** Order books from npm with the operations of the book bench, each in a process of its own. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TimeInForce } from "../../../engine/constants.ts";
import * as R from "../../../engine/ring/records.ts";
import { RIVALS } from "../../support/on-demand.ts";
import type { Workload } from "./workload.ts";

const KIND = { place: 1, immediate: 2, cancel: 3 } as const;
const WORDS = 5;

/** Operations a second of each package, by its name. They must be installed. */
export function runRivals(workload: Workload, packages: readonly string[]): Map<string, number> {
  const folder = mkdtempSync(join(tmpdir(), "book-bench-"));
  try {
    const file = join(folder, "operations");
    writeFileSync(file, encode(workload));
    const script = join(RIVALS, "order-book.js");
    const run = (name: string): number => {
      const output = execFileSync(process.execPath, [script, name, file], { encoding: "utf8" });
      return workload.operations / (JSON.parse(output) as { seconds: number }).seconds;
    };
    return new Map(packages.map((name) => [name, run(name)]));
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
