/** A copy of the checkout in a temporary folder, for tests that run its commands as a person does. */
import { cpSync, mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SOURCES = ["engine", "server", "bench", "test", "data", "rolldown.config.js", "tsconfig.json"];
const PACKAGES = ["package.json", "package-lock.json"];
/** The formatter's settings, which what is generated follows. */
const FORMATTING = ["biome.json", ".biome"];
const LEFT_OUT = /node_modules|^\/data\/(?!sample)/;

/** Copies what a build needs, and shares the packages. The caller deletes the folder. */
export function copyCheckout(): string {
  const folder = mkdtempSync(join(tmpdir(), "exchange-checkout-"));
  for (const name of [...SOURCES, ...PACKAGES, ...FORMATTING]) {
    const filter = (path: string): boolean => !LEFT_OUT.test(path.slice(ROOT.length - 1));
    cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter });
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
}
