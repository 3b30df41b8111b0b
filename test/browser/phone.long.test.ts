/**
 * The page on a phone: a market's parts in tabs, what Back and a swipe do where a sheet is open, and what a phone needs to
 * install it.
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { type TestMarket, World } from "../support/world.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, levelsOf, PATIENTLY, signInTo } from "./support/user-actions.ts";

describe.skipIf(NO_BROWSER)("on a phone", () => {
  const openPage = useBrowser();
  let world: World;
  let maker: Client;
  let two: TestMarket;
  let three: TestMarket;
  beforeAll(async () => {
    world = await World.start({ users: 1, named: { trader: { password: PASSWORD } }, markets: [2, 3] });
    maker = world.user();
    [two, three] = [world.market(2), world.market(3)];
    const trader = world.client("trader");
    for (const market of [two, three]) {
      await world.split(maker, market, 500);
      for (const [outcome, price] of [4_600, 3_000].entries()) {
        await maker.place(terms(market, outcome, SELL, price, 100));
        await maker.place(terms(market, outcome, BUY, price - 100, 100));
      }
    }
    await trader.place(terms(two, 0, BUY, 4_600, 40));
    await trader.place(terms(two, 0, BUY, 1_000, 5));
  });
  afterAll(() => expectEndsWell(world));

  const sheetOf = (page: Page) => page.getByRole("dialog", { name: "Order ticket" });
  const barOf = (page: Page) => page.locator(".ticket-bar");
  const pathOf = (page: Page): string => new URL(page.url()).pathname;
  async function openAt(path: string): Promise<Page> {
    const page = await openPage({ baseURL: world.server.root, phone: true });
    await signInTo(page, path, "trader@example.com");
    await expectLoaded(page);
    return page;
  }

  test("on a phone, a market's parts are tabs, of which one is shown", async () => {
    const page = await openAt(`/markets/${two.slug}`);
    const tabs = page.getByRole("tablist", { name: "About this market" });
    await expect
      .poll(() => tabs.getByRole("tab").allTextContents(), PATIENTLY)
      .toEqual(["Rules", "Book", "Trades", "Position, 1", "Orders, 1", "Fills", "Split or merge"]);
    const panel = page.getByRole("tabpanel");
    expect(await panel.getByText("Pays out").isVisible()).toBe(true);
    expect(await page.locator(".book, .trades").count()).toBe(0);
    await tabs.getByRole("tab", { name: "Book" }).click();
    await expect.poll(async () => (await levelsOf(page, "sell"))[0], PATIENTLY).toBe("46.0 60");
    await tabs.getByRole("tab", { name: "Trades" }).click();
    await panel.getByRole("row").nth(1).waitFor();
    await tabs.getByRole("tab", { name: "Orders" }).click();
    await panel
      .getByRole("button", { name: /^Cancel/ })
      .first()
      .waitFor();
    await tabs.getByRole("tab", { name: "Rules" }).click();
    // What the user holds leads to all of it.
    await page.getByRole("button", { name: /^40 Outcome 0/ }).click();
    await panel.getByRole("button", { name: /^Sell/ }).waitFor();
    // A price of the book goes into the ticket.
    await tabs.getByRole("tab", { name: "Book" }).click();
    await page.locator(".book .level").first().click();
    await sheetOf(page).waitFor();
  });

  test("on a phone, the bar buys either outcome of two; of more, it buys and sells the chosen one", async () => {
    const page = await openAt(`/markets/${two.slug}`);
    await expect.poll(() => barOf(page).getByRole("button").allTextContents(), PATIENTLY).toHaveLength(2);
    await barOf(page).getByRole("button", { name: "Buy Outcome 1" }).click();
    await sheetOf(page).getByRole("button", { name: "Buy Outcome 1", exact: true }).waitFor();
    await page.goto(`/markets/${three.slug}?outcome=${three.outcomes[1]}`);
    await expectLoaded(page);
    expect(await barOf(page).textContent()).toMatch(/^Outcome 1Buy .+Sell .+$/);
  });

  test("on a phone, Back closes what is open, and then leaves; the arrow leads where Back does", async () => {
    const page = await openAt("/");
    await page.locator(".feed a", { hasText: /\?/ }).first().waitFor();
    await page.locator(`a[href="/markets/${two.slug}"]`).first().click();
    await barOf(page).getByRole("button").first().click();
    await sheetOf(page).waitFor();
    // Another outcome, whose address stays after the step back.
    await sheetOf(page).getByText("Outcome 1", { exact: true }).first().click();
    await page.goBack();
    await sheetOf(page).waitFor({ state: "detached" });
    expect(page.url()).toContain(`${two.slug}?outcome=${two.outcomes[1]}`);
    // Closed otherwise, it leaves no step behind.
    await barOf(page).getByRole("button").first().click();
    await sheetOf(page).getByRole("button", { name: "Close" }).click();
    await sheetOf(page).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Markets" }).first().click();
    await expect.poll(() => pathOf(page), PATIENTLY).toBe("/");
    await page.goForward();
    await barOf(page).getByRole("button").first().click();
    await sheetOf(page).getByRole("button", { name: "Close" }).click();
    await page.goBack();
    await expect.poll(() => pathOf(page), PATIENTLY).toBe("/");
  });

  test("on a phone, a page that a sheet leads to takes its place in the history", async () => {
    const page = await openPage({ baseURL: world.server.root, phone: true });
    await page.goto(`/markets/${two.slug}`);
    await barOf(page).getByRole("button").first().click();
    await sheetOf(page)
      .getByRole("link", { name: /Sign in/ })
      .first()
      .click();
    await expect.poll(() => pathOf(page), PATIENTLY).toBe("/sign-in");
    await page.goBack();
    await expect.poll(() => pathOf(page), PATIENTLY).toBe(`/markets/${two.slug}`);
    expect(await sheetOf(page).count()).toBe(0);
  });

  test("a sheet can be swiped down by its top, far enough", async () => {
    const page = await openAt(`/markets/${two.slug}`);
    await barOf(page).getByRole("button").first().click();
    const { x, y, width } = (await sheetOf(page).boundingBox())!;
    const touch = await page.context().newCDPSession(page);
    const swipe = async (from: number, by: number): Promise<void> => {
      const at = (dy: number): object[] => [{ x: x + width / 2, y: from + dy }];
      await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: at(0) as never });
      for (const part of [0.25, 0.5, 0.75, 1]) {
        await touch.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: at(part * by) as never });
      }
      await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    };
    await swipe(y + 12, 40);
    await swipe(y + 200, 300);
    expect((await sheetOf(page).boundingBox())!.y).toBe(y);
    await swipe(y + 12, 200);
    await sheetOf(page).waitFor({ state: "detached" });
  });

  test("the page can be installed on a phone, and no copy of it grows stale", async () => {
    const page = await openPage({ baseURL: world.server.root, phone: true });
    await page.goto("/");
    const session = await page.context().newCDPSession(page);
    const { errors, data } = await session.send("Page.getAppManifest");
    expect(errors).toEqual([]);
    const { icons, start_url, display } = JSON.parse(data ?? "") as {
      icons: { src: string; sizes: string; type: string; purpose?: string }[];
      start_url: string;
      display: string;
    };
    expect([start_url, display]).toEqual(["./", "standalone"]);
    expect(icons.filter(({ purpose }) => purpose === "maskable").length).toBe(1);
    const apple = { src: "./apple-touch-icon.png", sizes: "180x180", type: "image/png" };
    for (const { src, sizes, type } of [...icons, apple]) {
      const response = await page.request.get(new URL(src, page.url()).href);
      expect([response.status(), response.headers()["content-type"]]).toEqual([200, type]);
      if (type !== "image/png") continue;
      const bytes = await response.body();
      expect(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`).toBe(sizes);
    }
    // No service worker answers for the server; a browser asks whether its copies are the latest.
    expect(await page.evaluate("navigator.serviceWorker.getRegistrations().then(({ length }) => length)")).toBe(0);
    for (const path of ["/", "/page.webmanifest", "/icon-192.png"]) {
      expect((await page.request.get(path)).headers()["cache-control"]).toBe("no-cache");
    }
  });
});
