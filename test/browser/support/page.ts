/**
 * Pages as a test opens them: each in a fresh profile, and watched. What a page shouts into the console, leaves uncaught or
 * does against its own Content-Security-Policy fails the test, whatever else it looks at.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished } from "vitest";
import { temporaryFolder } from "../../support/server.ts";
import { findBrowser, launch } from "./browser.ts";

/** In CSS pixels, as wide as most phones are. */
export const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1_280, height: 800 };
/** What the page calls, before any script of its own runs. */
const REPORT = "reportViolation";
const LISTEN = `document.addEventListener("securitypolicyviolation", (event) => {
  ${REPORT}(event.effectiveDirective + " " + event.blockedURI + " at " + event.sourceFile + ":" + event.lineNumber);
});`;

interface PageOptions {
  /** What paths are resolved against. */
  readonly baseURL?: string;
  /** As large as a phone's screen, and touched. */
  readonly phone?: boolean;
  /**
   * Troubles that belong to the test, such as the line that Chromium writes for an answer of 401. One that doesn't come
   * fails the test too.
   */
  readonly expected?: readonly RegExp[];
  /** As those, of which it is a matter of time whether they come. */
  readonly possible?: readonly RegExp[];
}

/** Opens a page for the test that runs; closed when that is over. */
export type OpenPage = (options?: PageOptions) => Promise<Page>;

/** As `describe`, with a browser; where there is none it is skipped, with one line that says so. */
export function describeInBrowser(name: string, tests: (openPage: OpenPage) => void): void {
  const isMissing = findBrowser() === null;
  if (isMissing) console.log(`skipped, for want of Chromium: ${name}`);
  describe.skipIf(isMissing)(name, () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launch();
    });
    afterAll(() => browser?.close());
    tests((options) => open(browser, options));
  });
}

async function open(
  browser: Browser,
  { baseURL, phone = false, expected = [], possible = [] }: PageOptions = {},
): Promise<Page> {
  const viewport = phone ? PHONE : DESKTOP;
  const context = await browser.newContext({
    ...(baseURL === undefined ? {} : { baseURL }),
    ...{ viewport, isMobile: phone, hasTouch: phone, reducedMotion: "reduce" },
  });
  const troubles = await watch(context);
  const page = await context.newPage();
  onTestFinished(async () => {
    // What the page has said before comes before its answer; one that crashed gives none.
    await page.evaluate("0").catch(() => {});
    await context.close();
    const isMeant = (trouble: string): boolean => [...expected, ...possible].some((pattern) => pattern.test(trouble));
    expect(troubles.filter((trouble) => !isMeant(trouble))).toEqual([]);
    const missing = expected.filter((pattern) => !troubles.some((trouble) => pattern.test(trouble)));
    expect(missing, "troubles that were expected").toEqual([]);
  });
  return page;
}

/**
 * What goes wrong in any tab of the context, in words, from now on; of a violation of its policy Chromium tells as well.
 */
async function watch(context: BrowserContext): Promise<readonly string[]> {
  const troubles: string[] = [];
  context.on("console", (message) => {
    if (message.type() === "error") troubles.push(`console: ${message.text()} (${message.location().url})`);
  });
  context.on("weberror", (event) => {
    const error = event.error();
    troubles.push(`uncaught: ${error.stack ?? error.message}`);
  });
  context.on("page", (page) => page.on("crash", () => troubles.push("a page crashed")));
  await context.exposeFunction(REPORT, (violation: string) => void troubles.push(`policy: ${violation}`));
  await context.addInitScript(LISTEN);
  return troubles;
}

let screenshots: string | null = null;

/**
 * What the whole page looks like on a phone, as a PNG; its path. In the folder of BROWSER_SCREENSHOTS, else in one that goes
 * with the test. @param name of the file, without its ending
 */
export async function screenshotOnPhone(page: Page, name: string): Promise<string> {
  screenshots ??= process.env["BROWSER_SCREENSHOTS"] ?? temporaryFolder();
  mkdirSync(screenshots, { recursive: true });
  const path = join(screenshots, `${name}.png`);
  const before = page.viewportSize();
  await page.setViewportSize(PHONE);
  await page.screenshot({ path, fullPage: true });
  if (before !== null) await page.setViewportSize(before);
  return path;
}
