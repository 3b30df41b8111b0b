/** What surrounds every page: search, money in the header, colours and density, and the tabs of a phone. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { BUY, terms } from "../support/terms.ts";
import { type Offers, startWithOffers } from "./support/offers.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, PATIENTLY, signInTo } from "./support/user-actions.ts";

const TRADER = "trader@example.com";

describe.skipIf(NO_BROWSER)("the shell", () => {
  const openPage = useBrowser();
  let offers: Offers;
  beforeAll(async () => {
    offers = await startWithOffers();
    await offers.world.client("trader").place(terms(offers.market, 0, BUY, 5_000, 10));
  });
  afterAll(() => expectEndsWell(offers.world));

  const pathOf = (page: Page): string => {
    const { pathname, search } = new URL(page.url());
    return pathname + search;
  };

  test("the search is reached by its key from any page, keeps the focus, and Back leaves it", async () => {
    const page = await openPage({ baseURL: offers.world.server.root });
    await page.goto("/markets/market-0");
    await expectLoaded(page);
    const field = page.getByRole("banner").getByRole("searchbox");
    await page.keyboard.press("/");
    // A pause in typing, behind a space, takes nothing away.
    await page.keyboard.type("question ");
    await page.getByRole("main").getByRole("heading", { name: "Results for “question”" }).waitFor();
    await page.keyboard.type("0");
    await page.getByRole("main").getByRole("heading", { name: "Results for “question 0”" }).waitFor();
    expect(await page.locator(":focus").inputValue()).toBe("question 0");
    await expect.poll(() => page.locator("main .feed li").count(), PATIENTLY).toBe(1);
    await page.keyboard.type(" /x");
    await page.getByText("No open market or event matches.").waitFor();
    expect(pathOf(page)).toBe("/search?q=question%200%20%2Fx".replaceAll("%20", "+"));
    await page.goBack();
    await expect.poll(() => pathOf(page), PATIENTLY).toBe("/markets/market-0");
    await expect.poll(() => field.inputValue(), PATIENTLY).toBe("");
    // An address from before searches had a page of their own.
    await page.goto("/?q=question");
    await expect.poll(() => pathOf(page), PATIENTLY).toBe("/search?q=question");
    // Signed out, "/" is a letter like others in a field.
    await page.goto("/sign-in");
    await page.getByLabel("Email").fill("");
    await page.keyboard.type("a/b");
    expect(await page.getByLabel("Email").inputValue()).toBe("a/b");
  });

  test("the header shows the same money as the portfolio", async () => {
    const page = await openPage({ baseURL: offers.world.server.root });
    await signInTo(page, "/portfolio", TRADER);
    const shown = page.getByRole("banner").getByRole("link", { name: /^Portfolio, USDC/ });
    const total = page.getByRole("region", { name: "Portfolio value" }).locator(".worth");
    await expect.poll(() => total.textContent(), PATIENTLY).toMatch(/^[\d,]+\.\d\d USDC$/);
    await expect
      .poll(async () => `${await shown.locator("b").textContent()} USDC`, PATIENTLY)
      .toBe(await total.textContent());
  });

  test("colours and density stay after a reload", async () => {
    const page = await openPage({ baseURL: offers.world.server.root });
    await signInTo(page, "/portfolio", TRADER);
    const button = page.getByRole("banner").getByRole("link", { name: "Deposit" });
    const heightNow = async (): Promise<number> => (await button.boundingBox())!.height;
    await button.waitFor();
    const [height, ground] = [await heightNow(), await page.evaluate<string>(GROUND)];
    await page.getByRole("button", { name: "Switch to dark mode" }).click();
    await page.getByLabel("Account menu").click();
    await page.getByRole("button", { name: "Compact rows" }).click();
    expect(await heightNow()).toBeLessThan(height);
    expect(await page.evaluate(GROUND)).not.toBe(ground);
    const [compact, dark] = [await heightNow(), await page.evaluate(GROUND)];
    await page.reload();
    await button.waitFor();
    expect([await heightNow(), await page.evaluate(GROUND)]).toEqual([compact, dark]);
    await page.getByLabel("Account menu").click();
    await page.getByRole("button", { name: "Comfortable rows" }).click();
    expect(await heightNow()).toBe(height);
  });

  test("on a phone, tabs lead to the sections, and the account page has what the menu has", async () => {
    const page = await openPage({
      baseURL: offers.world.server.root,
      phone: true,
      possible: [/ 40[01] .*auth\/refresh/],
    });
    await signInTo(page, "/", TRADER);
    const tabs = page.getByRole("navigation", { name: "Main" });
    await tabs.getByRole("link", { name: "Search" }).click();
    await page.getByRole("main").getByRole("searchbox").fill("question 0");
    await expect.poll(() => page.locator("main .feed li").count(), PATIENTLY).toBe(1);
    await tabs.getByRole("link", { name: "Portfolio" }).click();
    await page.getByRole("heading", { name: "Portfolio", exact: true }).waitFor();
    expect(await tabs.locator("[aria-current]").textContent()).toBe("Portfolio");
    // The market's own bar takes the place of the tabs.
    await page.goto("/markets/market-0");
    await page.locator(".ticket-bar").waitFor();
    expect(await tabs.isVisible()).toBe(false);
    await page.goto("/account");
    const links = page.getByRole("navigation", { name: "More" });
    await links.getByRole("link", { name: "Wallet" }).click();
    await page.getByRole("heading", { name: "Wallet" }).waitFor();
    await tabs.getByRole("link", { name: "Account" }).click();
    await links.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("banner").getByRole("link", { name: "Sign in" }).waitFor();
  });

  test("Back returns to where the page was scrolled to", async () => {
    const page = await openPage({ baseURL: offers.world.server.root });
    await page.setViewportSize({ width: 390, height: 420 });
    await page.goto("/");
    await expectLoaded(page);
    const top = () => page.evaluate<number>("Math.round(scrollY)");
    await page.evaluate("scrollTo(0, 90)");
    await expect.poll(top).toBe(90);
    // A click by the mouse would scroll to its target first.
    const links = page.getByRole("main").getByRole("link", { name: /^Question/ });
    await links.last().dispatchEvent("click");
    await page.getByRole("heading", { level: 1, name: /^Question/ }).waitFor();
    expect(await top()).toBe(0);
    await page.goBack();
    await expect.poll(top, PATIENTLY).toBe(90);
    await page.goForward();
    await page.getByRole("heading", { level: 1, name: /^Question/ }).waitFor();
    await expect.poll(top, PATIENTLY).toBe(0);
  });
});

const GROUND = "getComputedStyle(document.body).backgroundColor";
