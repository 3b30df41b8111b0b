/**
 * Opens pages for tests, each in a fresh profile. Console errors, uncaught exceptions and violations of the
 * Content-Security-Policy fail the test, whatever else it checks.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { temporaryFolder } from "../../support/server.ts";
import { findBrowser, launch } from "./browser.ts";

/** A common phone size, CSS pixels. */
export const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1_280, height: 800 };
/** The function that reports policy violations, installed before any script of the page runs. */
const REPORT = "reportViolation";
const LISTEN = `document.addEventListener("securitypolicyviolation", (event) => {
  ${REPORT}(event.effectiveDirective + " " + event.blockedURI + " at " + event.sourceFile + ":" + event.lineNumber);
});`;

interface PageOptions {
  /** Base URL for relative paths. */
  readonly baseURL?: string;
  /** Phone-sized screen with touch. */
  readonly phone?: boolean;
  /** How far the computer's clock is ahead, ms. */
  readonly shiftMs?: number;
  /** Changes the browser, in each page before its scripts. */
  readonly prepare?: () => void;
  /** The computer's time zone. */
  readonly timezoneId?: string;
  /**
   * Errors that the test expects, such as the line that Chromium logs for a 401 response. The test fails if one doesn't
   * occur.
   */
  readonly expected?: readonly RegExp[];
  /** Errors that may or may not occur, depending on timing. */
  readonly possible?: readonly RegExp[];
}

/** Opens a page for the running test, and closes it after the test. */
export type OpenPage = (options?: PageOptions) => Promise<Page>;

/** True if no Chromium is installed: the tests that need one are skipped. */
export const NO_BROWSER = findBrowser() === null;

/** Launches a browser for the tests of the surrounding `describe.skipIf(NO_BROWSER)`. */
export function useBrowser(): OpenPage {
  if (NO_BROWSER) console.log("tests in a browser are skipped: there is no Chromium");
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  return (options) => open(browser, options);
}

async function open(
  browser: Browser,
  { baseURL, phone = false, shiftMs = 0, prepare, timezoneId, expected = [], possible = [] }: PageOptions = {},
): Promise<Page> {
  const viewport = phone ? PHONE : DESKTOP;
  const context = await browser.newContext({
    ...(baseURL === undefined ? {} : { baseURL }),
    ...(timezoneId === undefined ? {} : { timezoneId }),
    ...{ viewport, isMobile: phone, hasTouch: phone, reducedMotion: "reduce" },
  });
  const errors = await watch(context);
  if (prepare !== undefined) await context.addInitScript(prepare);
  if (shiftMs !== 0) await context.addInitScript(shiftClock, shiftMs);
  const page = await context.newPage();
  onTestFinished(async () => {
    // A round trip flushes earlier events. A crashed page doesn't respond.
    await page.evaluate("0").catch(() => {});
    await context.close();
    const isExpected = (error: string): boolean => [...expected, ...possible].some((pattern) => pattern.test(error));
    expect(errors.filter((error) => !isExpected(error))).toEqual([]);
    const missing = expected.filter((pattern) => !errors.some((error) => pattern.test(error)));
    expect(missing, "expected errors").toEqual([]);
  });
  return page;
}

/** Runs in the page before its scripts: sets its clock. */
function shiftClock(shiftMs: number): void {
  const now = Date.now;
  class Shifted extends Date {
    constructor(...given: [] | [number]) {
      super(...(given.length === 0 ? ([now() + shiftMs] as const) : given));
    }
    static override now = (): number => now() + shiftMs;
  }
  globalThis.Date = Shifted as DateConstructor;
}

/**
 * Collects errors in any tab of the context from now on. Chromium also logs policy violations to the console.
 */
async function watch(context: BrowserContext): Promise<readonly string[]> {
  const errors: string[] = [];
  context.on("console", (message) => {
    if (message.type() === "error") errors.push(`console: ${message.text()} (${message.location().url})`);
  });
  context.on("weberror", (event) => {
    const error = event.error();
    errors.push(`uncaught: ${error.stack ?? error.message}`);
  });
  context.on("page", (page) => page.on("crash", () => errors.push("a page crashed")));
  await context.exposeFunction(REPORT, (violation: string) => void errors.push(`policy: ${violation}`));
  await context.addInitScript(LISTEN);
  return errors;
}

let screenshots: string | null = null;

/**
 * Captures the full page at phone size as a PNG, in BROWSER_SCREENSHOTS or in a temporary folder. Returns its path.
 * @param name of the file, without extension
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
