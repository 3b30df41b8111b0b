/** The browser that other tests use: that it runs, and that nothing goes wrong in a page unseen. */
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { World } from "../support/world.ts";
import { expectAccessible } from "./support/accessibility.ts";
import { findBrowser } from "./support/browser.ts";
import { describeInBrowser, PHONE, screenshotOnPhone } from "./support/page.ts";

const html = (body: string, head = ""): string =>
  `data:text/html,${encodeURIComponent(`<!doctype html><html lang="en"><title>t</title>${head}<main><h1>t</h1>${body}</main>`)}`;

afterEach(() => {
  vi.unstubAllEnvs();
});

test("the browser is that of CHROMIUM_PATH where it exists", () => {
  vi.stubEnv("CHROMIUM_PATH", process.execPath);
  expect(findBrowser()).toBe(process.execPath);
  vi.stubEnv("CHROMIUM_PATH", "");
  const usual = findBrowser();
  vi.stubEnv("CHROMIUM_PATH", "/nowhere/chromium");
  expect(findBrowser()).toBe(usual);
});

describeInBrowser("a page that a test opens", (openPage) => {
  let world: World;
  beforeAll(async () => {
    world = await World.start({ users: 0, markets: [] });
  });
  afterAll(() => expectEndsWell(world));

  test("shows what the server answers", async () => {
    const page = await openPage({ baseURL: world.server.root });
    const answer = await page.goto("/livez");
    expect(answer!.status()).toBe(200);
    expect(await page.textContent("body")).toContain("ok");
  });

  const troubles: readonly (readonly [what: string, body: string, troubles: readonly RegExp[], head?: string])[] = [
    ["an error in the console", "<script>console.error('oh dear')</script>", [/^console: oh dear/]],
    [
      "an uncaught error",
      "<script>setTimeout(() => { throw new Error('oh dear') })</script>",
      [/^uncaught: .*oh dear/],
    ],
    [
      "a promise that nobody waits for",
      "<script>Promise.reject(new Error('oh dear'))</script>",
      [/^uncaught: .*oh dear/],
    ],
    [
      "what its policy forbids",
      "<p style='color: red'>t</p>",
      [/^policy: style-src-attr inline/, /^console: .*Content Security Policy/],
      `<meta http-equiv="Content-Security-Policy" content="style-src 'none'">`,
    ],
  ];
  test.for(troubles)("is watched: %s", async ([, body, expected, head = ""]) => {
    const page = await openPage({ expected });
    await page.goto(html(body, head));
    await page.waitForLoadState("load");
  });
  test.fails.for(troubles)("fails its test otherwise: %s", async ([, body, , head = ""]) => {
    const page = await openPage();
    await page.goto(html(body, head));
    await page.waitForLoadState("load");
  });
  test.fails("fails its test where a trouble that it waits for doesn't come", async () => {
    await openPage({ expected: [/^console: oh dear/] });
  });

  test("is looked at for barriers", async () => {
    const page = await openPage();
    await page.goto(html("<p>Good.</p>", `<meta http-equiv="Content-Security-Policy" content="default-src 'none'">`));
    await expectAccessible(page);
    await page.goto(html("<img id=picture src='data:,'><button id=bare></button>"));
    const failure = await expectAccessible(page).catch((error: Error) => error.message);
    expect(failure).toMatch(/image-alt/);
    expect(failure).toMatch(/button-name .*#bare/);
  });

  test("has its picture taken as on a phone", async () => {
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
