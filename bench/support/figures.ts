/** Stores results in docs/figures, the source of the plots, so that anyone can redraw them. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { missingPackages, PLOTS } from "./on-demand.ts";
import { fail, machineLine } from "./report.ts";
import { ROOT } from "./root.ts";

// From dist/bench or dist/chunks.
const FOLDER = fileURLToPath(new URL("docs/figures", ROOT));
const FILE = join(FOLDER, "results.json");

/** Puts the result in the place of the bench's last one. */
export function keepResult(name: string, result: Record<string, unknown>): void {
  mkdirSync(FOLDER, { recursive: true });
  const { bench: _, ...figures } = result;
  const results = { ...readResults(), [name]: { machine: machineLine(), ...figures } };
  writeFileSync(FILE, `${JSON.stringify(results, null, 2)}\n`);
}

function readResults(): Record<string, unknown> {
  try {
    return JSON.parse(readFileSync(FILE, "utf8")) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** Draws every plot whose results exist. */
export function drawPlots(): void {
  const missing = missingPackages(PLOTS, true);
  if (missing !== null) fail(`plots: ${missing}`);
  execFileSync(process.execPath, [join(PLOTS, "draw.js"), FILE, FOLDER], { stdio: "inherit" });
}
