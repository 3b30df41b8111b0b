/** The bell: fills of resting orders and price alerts are counted until they were seen; topics can be switched off. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { PASSWORD } from "../support/identity.ts";
import { BUY, SELL, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";
import { expectAccessible } from "./support/accessibility.ts";
import { overflows } from "./support/focus.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, PATIENTLY, signInTo } from "./support/user-actions.ts";

describe.skipIf(NO_BROWSER)("notifications", () => {
  const openPage = useBrowser();
  let world: World;
  let market: TestMarket;

  beforeAll(async () => {
    world = await World.start({ users: 2, named: { reader: { password: PASSWORD } } });
    market = world.market();
  });
  afterAll(() => expectEndsWell(world));

  test("notifications count what is new, say what happened, and lead there", async () => {
    const [reader, other] = [world.client("reader"), world.user()];
    await world.split(other, market, 100);
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, `/markets/${market.slug}`, "reader@example.com");
    await expectLoaded(page);
    const bell = page.locator(".bell > summary");
    // The deposit that the account began with.
    await page.getByLabel("Notifications, 1 new").click();
    const items = page.locator(".bell li");
    await expect
      .poll(() => items.allInnerTexts(), PATIENTLY)
      .toEqual([expect.stringMatching(/^Deposit of 10,000\.00 credited\s+(now|\d+ min)\s+Available now\.$/)]);
    await expectAccessible(page);
    await expect.poll(() => bell.getAttribute("aria-label"), PATIENTLY).toBe("Notifications");
    await bell.click();

    await page.getByRole("button", { name: /^Set a price alert/ }).click();
    const dialog = page.getByRole("dialog", { name: "Alert me" });
    await dialog.getByLabel("Price").fill("0");
    await dialog.getByText(/Price must be between/).waitFor();
    await dialog.getByLabel("Price").fill("45.5");
    await dialog.getByRole("button", { name: "Set alert" }).click();
    await page.getByText("Alert set: Outcome 0 at 45.5¢ or more.").waitFor();

    await reader.place(terms(market, 0, BUY, 4_600, 20));
    await other.place(terms(market, 0, SELL, 4_600, 12));
    await page.getByLabel("Notifications, 2 new").waitFor({ timeout: 40_000 });
    await bell.click();
    await expect
      .poll(() => items.allInnerTexts(), PATIENTLY)
      .toEqual(
        expect.arrayContaining([
          expect.stringMatching(/^Bought 12 Outcome 0 at 46\.0¢\s+(now|\d+ min)\s+Question 0\? · 5\.52 USDC$/),
          expect.stringMatching(
            /^Outcome 0 reached 45\.5¢\s+(now|\d+ min)\s+Your alert: 45\.5¢ or more · Question 0\?$/,
          ),
        ]),
      );
    expect(await page.locator(".bell li.new").count()).toBe(2);
    await page.getByRole("link", { name: /^Bought 12/ }).click();
    await page.waitForURL(/\/portfolio\?show=fills/);
    await page.getByLabel("Notifications", { exact: true }).waitFor();

    // A topic that is switched off leaves the list, here and after a reload.
    await page.goto("/account");
    const off = page.getByLabel("Fills of resting orders: Page");
    const saved = page.waitForResponse((response) => response.request().method() === "PATCH");
    await off.uncheck();
    await saved;
    await page.reload();
    expect(await page.getByLabel("Fills of resting orders: Page").isChecked()).toBe(false);
    await bell.click();
    await expect.poll(() => items.count(), PATIENTLY).toBe(2);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await items.first().isVisible()).toBe(true);
    expect(await overflows(page)).toEqual([]);
  });
});
