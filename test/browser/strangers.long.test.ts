/**
 * The page on other people's computers: clocks that are wrong by seconds and days, other time zones, keyboards whose
 * numbers have a decimal comma.
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { ADDRESS } from "../support/money.ts";
import { SELL, terms } from "../support/terms.ts";
import type { TestMarket, World } from "../support/world.ts";
import { startWithOffers } from "./support/offers.ts";
import { NO_BROWSER, type OpenPage, useBrowser } from "./support/page.ts";
import {
  amountOf,
  expectLoaded,
  fillInTicket,
  orderResultOf,
  orderSummaryOf,
  PATIENTLY,
  signInTo,
  ticketOf,
} from "./support/user-actions.ts";

const DAY_MS = 86_400_000;

/** Browsers that keep no site data, or lack what others have. Each function runs in the page. */
const BROWSERS: Readonly<Record<string, () => void>> = {
  "storage that throws": () => {
    for (const name of ["localStorage", "sessionStorage"]) {
      const refuse = (): never => {
        throw new DOMException("denied", "SecurityError");
      };
      Object.defineProperty(globalThis, name, { get: refuse });
    }
  },
  "storage that is null": () => {
    for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(globalThis, name, { value: null });
  },
  "storage that is full": () => {
    // @ts-expect-error: the page's own
    globalThis.Storage.prototype.setItem = () => {
      throw new DOMException("full", "QuotaExceededError");
    };
  },
  "neither tabs, locks, clipboard nor names of countries": () => {
    const missing = { value: undefined, configurable: true };
    Object.defineProperty(globalThis, "BroadcastChannel", missing);
    Object.defineProperty(Intl, "DisplayNames", missing);
    for (const name of ["locks", "clipboard"])
      Object.defineProperty(Reflect.get(globalThis, "navigator"), name, missing);
  },
};

describe.skipIf(NO_BROWSER)("on another computer", () => {
  const openPage = useBrowser();
  let world: World;
  let maker: Client;
  let market: TestMarket;

  beforeAll(async () => {
    ({ world, maker, market } = await startWithOffers());
  });
  afterAll(() => expectEndsWell(world));

  async function openSignedIn(path: string, options: Parameters<OpenPage>[0] = {}): Promise<Page> {
    const page = await openPage({ baseURL: world.server.root, ...options });
    await signInTo(page, path, "trader@example.com");
    await expectLoaded(page);
    return page;
  }

  test.each([
    ["40 s fast", 40_000],
    ["40 s slow", -40_000],
    ["a day fast", DAY_MS],
    ["a day slow", -DAY_MS],
    ["ten years slow", -3_650 * DAY_MS],
  ])("on a computer with a clock that is %s, the chart loads, and a fill is announced", async (_, shiftMs) => {
    const page = await openSignedIn(`/markets/${market.slug}`, { shiftMs });
    expect(Math.abs((await page.evaluate<number>("Date.now()")) - Date.now() - shiftMs)).toBeLessThan(10_000);
    for (const interval of ["1H", "1D", "All"]) {
      await page.getByText(interval, { exact: true }).first().click();
      await expectLoaded(page);
      expect(await page.locator("main .notice.bad").allTextContents()).toEqual([]);
    }
    await fillInTicket(page, { side: "Buy", price: "50", shares: "3" });
    await ticketOf(page).getByRole("button", { name: "Buy Outcome 0", exact: true }).click();
    await expect.poll(() => orderResultOf(page), PATIENTLY).toEqual(expect.arrayContaining(["Bought 3 Outcome 0"]));
    // What the ticket doesn't show is told in a toast.
    await fillInTicket(page, { side: "Buy", price: "40", shares: "2" });
    await ticketOf(page).getByRole("button", { name: "Place bid for Outcome 0" }).click();
    await expect.poll(() => orderResultOf(page), PATIENTLY).toEqual(expect.arrayContaining(["Bid placed"]));
    await ticketOf(page).getByRole("button", { name: "Done" }).click();
    await maker.place(terms(market, 0, SELL, 4_000, 2));
    await page.locator(".toasts").getByText("Bought 2 Outcome 0 at 40.0¢").waitFor();
    // A trade of this minute shows a time of day, not a date.
    await expect.poll(() => page.getByRole("main").textContent(), PATIENTLY).toMatch(/\d\d:\d\d:\d\d/);
  });

  test.each(Object.entries(BROWSERS))("with %s the page shows markets, signs in and trades", async (_, prepare) => {
    // Without site data the page asks whether there is a session; the account has no identity application.
    const possible = [/status of 400 .*auth\/refresh/];
    const page = await openPage({ baseURL: world.server.root, prepare, possible });
    await page.goto("/");
    await page
      .getByRole("link", { name: /market-0|Market 0|\?/ })
      .first()
      .waitFor();
    await signInTo(page, `/markets/${market.slug}`, "trader@example.com");
    await expectLoaded(page);
    for (const name of [/^Switch to/, /^Switch to/]) await page.getByRole("button", { name }).click();
    await fillInTicket(page, { side: "Buy", price: "50", shares: "1" });
    await ticketOf(page).getByRole("button", { name: "Buy Outcome 0", exact: true }).click();
    await expect.poll(() => orderResultOf(page), PATIENTLY).toEqual(expect.arrayContaining(["Bought 1 Outcome 0"]));
    // The cookie outlives the page, whatever else the browser keeps.
    await page.reload();
    await expectLoaded(page);
    await expect.poll(() => ticketOf(page).textContent(), PATIENTLY).toMatch(/Available/);
    await page.goto("/account");
    await expectLoaded(page);
    expect(await page.locator("main .notice.bad").allTextContents()).toEqual([]);
  });

  test.each([
    ["Australia/Brisbane", "Times are in Australia/Brisbane, UTC+10."],
    ["UTC", "Times are in UTC."],
  ])("in the zone %s the page names it", async (timezoneId, text) => {
    const page = await openPage({ baseURL: world.server.root, timezoneId });
    await page.goto("/");
    await page.getByText(text).waitFor();
  });

  test("numbers with a comma mean what their writers mean, and the page shows what it understood", async () => {
    const page = await openSignedIn(`/markets/${market.slug}`);
    const ticket = ticketOf(page);
    await fillInTicket(page, { side: "Buy", price: "42,5", shares: "1,234" });
    await expect.poll(() => ticket.textContent()).toMatch(/= 42\.5¢\..*= 1,234\./s);
    expect(JSON.stringify(await orderSummaryOf(page))).toMatch(/1,234/);
    for (const shares of ["0,500", "00,100", "1,5", "1 234,567"]) {
      await amountOf(ticket).fill(shares);
      await expect.poll(() => ticket.textContent()).toMatch(/whole number/);
    }
    await amountOf(ticket).fill("1 234");
    await expect.poll(() => ticket.textContent()).toMatch(/= 1,234\./);
  });

  test("an amount with a decimal comma is withdrawn exactly", async () => {
    const page = await openSignedIn("/wallet?show=withdrawals");
    const form = page.getByRole("region", { name: "Withdraw", exact: true });
    await form.getByLabel("Amount").fill("0,001");
    await form.getByText("= 0.001 USDC.").waitFor();
    await form.getByLabel("Address").fill(ADDRESS);
    await form.getByRole("button", { name: "Withdraw", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("0.001 USDC").waitFor();
    await dialog.getByRole("button", { name: "Withdraw" }).click();
    await expect.poll(() => page.locator(".toasts").textContent(), PATIENTLY).toMatch(/Withdrawal of 0\.001 USDC/);
    expect((await world.client("trader").balance()).held).toBe(1_000);
  });
});
