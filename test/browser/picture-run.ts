/**
 * `npm run picture`: takes README's picture of a market page, from the demo's past, as the person who signs in sees it.
 * Needs Chromium. Takes ten seconds.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BOTS } from "../../bench/demo/crowd.ts";
import { DemoExchange } from "../../bench/demo/exchange.ts";
import { openFolder, PERSON } from "../../bench/demo/folder.ts";
import { makePast } from "../../bench/demo/past-process.ts";
import { ROOT } from "../../bench/support/root.ts";
import { launch } from "./support/browser.ts";

const PICTURE = fileURLToPath(new URL("docs/figures/page.png", ROOT));
const MARKET = "/markets/central-bank-next-meeting";
const SEED = 1;
const VIEWPORT = { width: 1_440, height: 900 };
/** The chart and its labels are drawn. */
const DRAWN_MS = 1_000;

const path = mkdtempSync(join(tmpdir(), "picture-"));
process.env["PORT"] = "0";
try {
  const end = Date.now();
  const folder = openFolder(path, false, BOTS, end);
  await makePast(folder, { seed: SEED, end, stop: new Promise(() => {}) });
  const exchange = await DemoExchange.start(folder.path, folder.seedFile);
  const browser = await launch();
  try {
    const page = await browser.newPage({ viewport: VIEWPORT });
    await page.goto(`${exchange.url}/sign-in?to=${encodeURIComponent(MARKET)}`);
    await page.getByLabel("Email").fill(PERSON);
    await page.getByLabel("Password", { exact: true }).fill(folder.password);
    await page.getByRole("main").getByRole("button", { name: "Sign in" }).click();
    await page.locator(".chart canvas").first().waitFor();
    await page.locator(".levels .level").first().waitFor();
    await page.waitForTimeout(DRAWN_MS);
    await page.screenshot({ path: PICTURE });
    process.stdout.write(`${PICTURE}\n`);
  } finally {
    await browser.close();
    await exchange.stop();
  }
} finally {
  rmSync(path, { recursive: true, force: true });
}
process.exit(0);
