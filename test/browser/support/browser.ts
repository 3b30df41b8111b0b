/** Finds and launches the system's Chromium. Downloads nothing. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PATHS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Path of the browser: CHROMIUM_PATH if it exists, else the first one installed; null without any. */
export function findBrowser(): string | null {
  const { CHROMIUM_PATH = "" } = process.env;
  return [CHROMIUM_PATH, ...PATHS].find((path) => path !== "" && existsSync(path)) ?? null;
}

/** Launches a headless browser; the caller closes it. @throws Error if there is none, or it doesn't start */
export async function launch(): Promise<Browser> {
  const executablePath = findBrowser();
  if (executablePath === null) throw new Error("there is no Chromium: install one, or set CHROMIUM_PATH");
  // Chromium's sandbox doesn't start as root.
  const chromiumSandbox = process.getuid?.() !== 0;
  return chromium.launch({ executablePath, chromiumSandbox, args: ["--disable-gpu", "--disable-dev-shm-usage"] });
}
