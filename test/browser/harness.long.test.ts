/** The browser harness of the other tests: it runs, and it reports every error in a page. */
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { World } from "../support/world.ts";
import { expectAccessible } from "./support/accessibility.ts";
import { findBrowser } from "./support/browser.ts";
import { NO_BROWSER, PHONE, screenshotOnPhone, useBrowser } from "./support/page.ts";

const html = (body: string, head = ""): string =>
  `data:text/html,${encodeURIComponent(`<!doctype html><html lang="en"><title>t</title>${head}<main><h1>t</h1>${body}</main>`)}`;

afterEach(() => {
  vi.unstubAllEnvs();
});

test("CHROMIUM_PATH selects the browser if it exists", () => {
  vi.stubEnv("CHROMIUM_PATH", process.execPath);
  expect(findBrowser()).toBe(process.execPath);
  vi.stubEnv("CHROMIUM_PATH", "");
  const usual = findBrowser();
  vi.stubEnv("CHROMIUM_PATH", "/nowhere/chromium");
  expect(findBrowser()).toBe(usual);
});

describe.skipIf(NO_BROWSER)("a page opened by a test", () => {
  const openPage = useBrowser();
  let world: World;
  beforeAll(async () => {
    world = await World.start({ users: 0, markets: [] });
  });
  afterAll(() => expectEndsWell(world));

  test("a page opened by a test shows the server's response", async () => {
    const page = await openPage({ baseURL: world.server.root });
    const response = await page.goto("/livez");
    expect(response!.status()).toBe(200);
    expect(await page.textContent("body")).toContain("ok");
  });

  const errors: readonly (readonly [what: string, body: string, errors: readonly RegExp[], head?: string])[] = [
    ["an error in the console", "<script>console.error('oh dear')</script>", [/^console: oh dear/]],
    [
      "an uncaught error",
      "<script>setTimeout(() => { throw new Error('oh dear') })</script>",
      [/^uncaught: .*oh dear/],
    ],
    ["an unhandled rejection", "<script>Promise.reject(new Error('oh dear'))</script>", [/^uncaught: .*oh dear/]],
    [
      "a policy violation",
      "<p style='color: red'>t</p>",
      [/^policy: style-src-attr inline/, /^console: .*Content Security Policy/],
      `<meta http-equiv="Content-Security-Policy" content="style-src 'none'">`,
    ],
  ];
  test.for(errors)("a page opened by a test is watched: %s", async ([, body, expected, head = ""]) => {
    const page = await openPage({ expected });
    await page.goto(html(body, head));
    await page.waitForLoadState("load");
  });
  test.fails.for(errors)("a page fails its test if unexpected: %s", { retry: 0 }, async ([, body, , head = ""]) => {
    const page = await openPage();
    await page.goto(html(body, head));
    await page.waitForLoadState("load");
  });
  test.fails("a page fails its test if an expected error doesn't occur", { retry: 0 }, async () => {
    await openPage({ expected: [/^console: oh dear/] });
  });

  test("a page opened by a test is checked for accessibility", async () => {
    const page = await openPage();
    await page.goto(html("<p>Good.</p>", `<meta http-equiv="Content-Security-Policy" content="default-src 'none'">`));
    await expectAccessible(page);
    await page.goto(html("<img id=picture src='data:,'><button id=bare></button>"));
    const failure = await expectAccessible(page).catch((error: Error) => error.message);
    expect(failure).toMatch(/image-alt/);
    expect(failure).toMatch(/button-name .*#bare/);
  });

  test("a page opened by a test is captured at phone size", async () => {
    const page = await openPage();
    await page.goto(html("<p>Wide?</p>"));
    const bytes = readFileSync(await screenshotOnPhone(page, "harness"));
    expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    expect([bytes.readUInt32BE(16), page.viewportSize()?.width]).toEqual([PHONE.width, 1_280]);
    const phone = await openPage({ phone: true });
    await phone.goto(html("<p>Narrow.</p>", `<meta name="viewport" content="width=device-width">`));
    expect(await phone.evaluate("innerWidth")).toBe(PHONE.width);
  });
});
