/** The browser of the tests: Chromium as the system has it. Downloads nothing. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser's program: that of CHROMIUM_PATH where it exists, else the first that the system has; null for none. */
export function findBrowser(): string | null {
  const { CHROMIUM_PATH = "" } = process.env;
  return [CHROMIUM_PATH, ...PLACES].find((path) => path !== "" && existsSync(path)) ?? null;
}

/** A browser without a window; close it. @throws Error where there is none, or it doesn't start */
export async function launch(): Promise<Browser> {
  const executablePath = findBrowser();
  if (executablePath === null) throw new Error("there is no Chromium: install one, or set CHROMIUM_PATH");
  // Chromium's sandbox doesn't start as root.
  const chromiumSandbox = process.getuid?.() !== 0;
  return chromium.launch({ executablePath, chromiumSandbox, args: ["--disable-gpu", "--disable-dev-shm-usage"] });
}
