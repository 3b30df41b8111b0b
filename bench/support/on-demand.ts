/**
 * Packages that only benches use and that are no dependencies of the exchange: a folder of bench/ each, with a lock file of
 * its own, installed by the first bench that needs it.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "./root.ts";

const folderOf = (name: string): string => fileURLToPath(new URL(`bench/${name}`, ROOT));

/** The programs that the exchange is compared with. */
export const RIVALS = folderOf("rivals");
/** The packages that draw the plots. */
export const PLOTS = folderOf("plots");
const INSTALL_DEADLINE_MS = 120_000;

/** Null if the folder's packages are installed, otherwise the reason. @param mayInstall installs them with npm ci */
export function missingPackages(folder: string, mayInstall: boolean): string | null {
  if (existsSync(join(folder, "node_modules"))) return null;
  if (!mayInstall) return "not installed";
  try {
    const args = ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"];
    execFileSync("npm", args, { stdio: "pipe", timeout: INSTALL_DEADLINE_MS });
    return null;
  } catch (error) {
    return `npm ci failed: ${(error as Error).message.split("\n", 1)[0]}`;
  }
}
