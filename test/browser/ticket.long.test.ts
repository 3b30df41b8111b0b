/**
 * The order ticket against the exchange: what an order is bounded by, what stands in its way, what becomes of it, and the
 * keys, widths and sign-ups around it.
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { freshEmail, PASSWORD, phoneCode, verificationToken } from "../support/identity.ts";
import { OPERATOR, operatorOf } from "../support/operator.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { type TestMarket, World } from "../support/world.ts";
import { NO_BROWSER, type OpenPage, PHONE, useBrowser } from "./support/page.ts";
import {
  amountOf,
  expectLoaded,
  fillInTicket,
  orderResultOf,
  orderSummaryOf,
  PATIENTLY,
  priceOf,
  signInTo,
  ticketOf,
} from "./support/user-actions.ts";

/** Where the page has no room to spare. */
const LAPTOP = { width: 1366, height: 768 };
const MICRO = 1_000_000;

describe.skipIf(NO_BROWSER)("the ticket", () => {
  const openPage = useBrowser();
  let world: World;
  let maker: Client;
  let market: TestMarket;
  let trader: Client;

  beforeAll(async () => {
    const named = { trader: { password: PASSWORD }, operator: OPERATOR };
    world = await World.start({ users: 1, named, markets: [2, 3, 2] });
    [maker, market, trader] = [world.user(), world.market(), world.client("trader")];
    await world.split(maker, market, 3_000);
    for (const [price, quantity] of [
      [1_300, 100],
      [1_400, 1_000],
      [9_000, 1_000],
    ] as const) {
      await maker.place(terms(market, 0, SELL, price, quantity));
    }
    await maker.place(terms(market, 0, BUY, 1_200, 500));
  });
  afterAll(() => expectEndsWell(world));

  async function openMarket(of = market, options: Parameters<OpenPage>[0] = {}): Promise<Page> {
    const page = await openPage({ baseURL: world.server.root, ...options });
    if (options.phone !== true) await page.setViewportSize(LAPTOP);
    await signInTo(page, `/markets/${of.slug}`, "trader@example.com");
    await expectLoaded(page);
    return page;
  }
  const sendButton = (page: Page) => ticketOf(page).locator("button[type=submit]");
  const noteOf = (page: Page) => ticketOf(page).locator(".note");
  /** The label of a radio button, which is visually hidden itself. */
  const choose = (page: Page, text: string) => ticketOf(page).locator("label").getByText(text, { exact: true }).click();
  /** Whether the window shows all of the button, without scrolling. */
  const isInView = (page: Page) =>
    page.evaluate<boolean>(`(() => {
      const box = document.querySelector(".ticket-foot .send").getBoundingClientRect();
      return box.top >= 0 && box.bottom <= innerHeight && box.height > 30;
    })()`);

  test("the ticket bounds a market order by the best price and the slippage, and holds no more than that", async () => {
    const page = await openMarket();
    await choose(page, "Shares");
    await amountOf(ticketOf(page)).fill("150");
    await ticketOf(page).getByText("At most 15.0¢ a share").waitFor();
    // 100 at 13.0¢ and 50 at 14.0¢.
    await expect
      .poll(() => orderSummaryOf(page))
      .toEqual(expect.arrayContaining(["150 shares at 13.33¢", "Cost 20.00"]));
    await ticketOf(page).getByText("slippage 2.0¢").click();
    await ticketOf(page).getByLabel("Slippage").fill("0,5");
    await ticketOf(page).getByText("At most 13.5¢ a share").waitFor();
    await noteOf(page).getByText("Only 100 shares fill at this price.").waitFor();
    await ticketOf(page).getByLabel("Slippage").fill("2");
    const sent = page.waitForRequest((each) => each.method() === "POST" && each.url().endsWith("/orders"));
    await sendButton(page).click();
    expect((await sent).postDataJSON()).toMatchObject({
      type: "market",
      price: 1_500,
      quantity: 150,
      time_in_force: "ioc",
    });
    await expect
      .poll(() => orderResultOf(page), PATIENTLY)
      .toEqual([
        "Bought 150 Outcome 0",
        "Average price: 13.33¢",
        "Cost: 20.00 USDC",
        "Fee: 0.00",
        "Pays if Outcome 0: 150.00 USDC",
        "Your position: 150 Outcome 0",
      ]);
    // The browser keeps the slippage; sells are bounded likewise.
    await page.reload();
    await expectLoaded(page);
    await choose(page, "Sell");
    await ticketOf(page).getByText("At least 10.0¢ a share").waitFor();
    await ticketOf(page).getByRole("button", { name: "All" }).click();
    await expect
      .poll(() => orderSummaryOf(page))
      .toEqual(expect.arrayContaining(["150 shares at 12.0¢", "Sale 18.00"]));
    await sendButton(page).click();
    await expect.poll(() => orderResultOf(page), PATIENTLY).toEqual(expect.arrayContaining(["Sold 150 Outcome 0"]));
  });

  test("the ticket's Max fills in what can be sent", async () => {
    const page = await openMarket();
    for (const unit of ["USDC", "Shares"]) {
      await choose(page, unit);
      await ticketOf(page).getByRole("button", { name: "Max" }).click();
      await expect.poll(() => sendButton(page).isEnabled()).toBe(true);
      expect(await noteOf(page).filter({ hasText: "You have" }).count()).toBe(0);
    }
    await amountOf(ticketOf(page)).fill("1000000");
    await noteOf(page)
      .getByText(/^You have .* USDC\.$/)
      .waitFor();
    expect(await sendButton(page).isEnabled()).toBe(false);
    await noteOf(page).getByRole("button", { name: "Use Max" }).click();
    await expect.poll(() => sendButton(page).isEnabled()).toBe(true);
    const { available } = await trader.balance();
    await choose(page, "USDC");
    await ticketOf(page).getByRole("button", { name: "Max" }).click();
    expect(Number(await amountOf(ticketOf(page)).inputValue()) * MICRO).toBeLessThanOrEqual(available);
  });

  test("the ticket asks about a limit far beyond the market, unless that is turned off", async () => {
    const page = await openMarket();
    await fillInTicket(page, { side: "Buy", price: "90", shares: "200" });
    await noteOf(page)
      .getByText(/^90\.0¢ is 7\d\.\d¢ above the best offer\.$/)
      .waitFor();
    await noteOf(page)
      .getByText(/it can cost up to 180\.00\./)
      .waitFor();
    // Enter doesn't send it either.
    await amountOf(ticketOf(page)).press("Enter");
    await ticketOf(page)
      .getByRole("button", { name: /^Use 1\d\.\d¢$/ })
      .click();
    expect(await priceOf(ticketOf(page)).inputValue()).toMatch(/^1\d\.0$/);
    expect(await noteOf(page).count()).toBe(0);
    await priceOf(ticketOf(page)).fill("90");
    await ticketOf(page).getByLabel("Don't ask again").check();
    await ticketOf(page).getByRole("button", { name: "Buy at 90.0¢" }).click();
    await expect.poll(() => orderResultOf(page), PATIENTLY).toEqual(expect.arrayContaining(["Bought 200 Outcome 0"]));
    await fillInTicket(page, { side: "Buy", price: "90", shares: "1" });
    await expect.poll(() => sendButton(page).textContent()).toBe("Buy Outcome 0");
    expect(await noteOf(page).count()).toBe(0);
    // The settings turn it on again, and can ask before every order.
    await page.getByLabel("Account menu").click();
    await page.getByRole("button", { name: "Trading settings" }).click();
    const dialog = page.getByRole("dialog", { name: "Trading settings" });
    await dialog.getByLabel("Ask before an order far from the market").check();
    await dialog.getByLabel("Ask before every order").check();
    await dialog.getByRole("button", { name: "Close" }).click();
    await noteOf(page)
      .getByText(/above the best offer/)
      .waitFor();
    await priceOf(ticketOf(page)).fill("15");
    await sendButton(page).click();
    const question = page.getByRole("dialog", { name: "Buy 1 shares of Outcome 0?" });
    await question.getByText("Held until it fills").waitFor();
    await question.getByRole("button", { name: "Back" }).click();
    await sendButton(page).click();
    await question.getByRole("button", { name: "Buy Outcome 0" }).click();
    await expect.poll(() => orderResultOf(page), PATIENTLY).toEqual(expect.arrayContaining(["Bought 1 Outcome 0"]));
  });

  test("the ticket's button is in view at 1366 by 768 and 1440 by 900, with warnings and errors", async () => {
    const page = await openMarket();
    for (const viewport of [LAPTOP, { width: 1440, height: 900 }, { width: 1024, height: 700 }]) {
      await page.setViewportSize(viewport);
      await page.evaluate("scrollTo(0, 0)");
      expect(await isInView(page)).toBe(true);
      await fillInTicket(page, { side: "Buy", price: "90", shares: "200" });
      await noteOf(page).waitFor();
      expect(await isInView(page)).toBe(true);
      await amountOf(ticketOf(page)).fill("99999999");
      await noteOf(page)
        .getByText(/You have/)
        .waitFor();
      expect(await isInView(page)).toBe(true);
      await ticketOf(page).locator(".ticket-head .choice label").nth(0).click();
      await amountOf(ticketOf(page)).fill("2000");
      await noteOf(page).waitFor();
      expect(await isInView(page)).toBe(true);
    }
  });

  test("the ticket of two outcomes lets buy the other one instead of selling what isn't there", async () => {
    const page = await openMarket();
    await ticketOf(page).locator(".outcome-choice").getByText("Outcome 1").click();
    await choose(page, "Sell");
    await amountOf(ticketOf(page)).fill("20");
    await noteOf(page).getByText("You have no shares of Outcome 1 to sell.").waitFor();
    await noteOf(page)
      .getByRole("button", { name: /^Buy Outcome 0 at .*¢ instead$/ })
      .click();
    await expect.poll(() => sendButton(page).textContent()).toBe("Buy Outcome 0");
    expect(await amountOf(ticketOf(page)).inputValue()).toBe("20");
  });

  test("the ticket says why an order ended without a fill, and forgets it once the order changes", async () => {
    const page = await openMarket();
    await fillInTicket(page, { side: "Buy", price: "12.5", shares: "5" });
    await ticketOf(page).getByText("Advanced").click();
    await ticketOf(page).getByLabel("Post-only").check();
    // The best offer falls to the price while the order is on its way: the page can't have known.
    await page.route("**/api/v1/orders", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      await maker.place(terms(market, 0, SELL, 1_250, 5));
      await route.continue();
    });
    await sendButton(page).click();
    await noteOf(page).getByText("Not placed.").waitFor();
    expect(await noteOf(page).first().textContent()).toMatch(
      /post-only order would have crossed the book\. Nothing was charged/,
    );
    expect(await amountOf(ticketOf(page)).inputValue()).toBe("5");
    await page.unroute("**/api/v1/orders");
    await amountOf(ticketOf(page)).fill("6");
    await expect.poll(() => noteOf(page).filter({ hasText: "Not placed." }).count()).toBe(0);
    // Now it knows, and offers the next price.
    await noteOf(page)
      .getByText(/would trade at once/)
      .waitFor();
    await noteOf(page).getByRole("button", { name: "Use 12.49¢" }).click();
    await sendButton(page).click();
    await expect
      .poll(() => orderResultOf(page), PATIENTLY)
      .toEqual(["Bid placed", "Still open: 6 shares, at most 12.49¢", "On hold: 0.75 USDC"]);
    await ticketOf(page).getByRole("button", { name: "Cancel it" }).click();
    await sendButton(page).waitFor();
    expect((await trader.request<{ items: unknown[] }>("GET", "/orders")).data.items).toEqual([]);
  });

  test("the ticket asks a busy exchange again with the same order", async () => {
    const page = await openMarket(market, { expected: [/ 503 /] });
    const ids: string[] = [];
    await page.route("**/api/v1/orders", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      ids.push(route.request().postDataJSON().client_order_id);
      if (ids.length > 1) return route.continue();
      const body = JSON.stringify({ code: 50300, msg: "overloaded", data: null, trace_id: "7f3c-91aa" });
      return route.fulfill({ status: 503, headers: { "Retry-After": "1" }, contentType: "application/json", body });
    });
    await fillInTicket(page, { side: "Buy", price: "14", shares: "2" });
    await sendButton(page).click();
    await noteOf(page).getByText("Not placed: the exchange is busy.").waitFor();
    await ticketOf(page).getByText("Error 50300 · reference 7f3c-91aa").waitFor();
    await ticketOf(page).getByRole("button", { name: "Retry", exact: true }).click();
    await expect.poll(() => orderResultOf(page), PATIENTLY).toEqual(expect.arrayContaining(["Bought 2 Outcome 0"]));
    expect(ids).toHaveLength(2);
    expect(ids[1]).toBe(ids[0]);
  });

  test("the ticket's keys of one letter choose, unless a field has the focus or they are turned off", async () => {
    const page = await openMarket();
    const ticket = ticketOf(page);
    const isChosen = (name: string) => ticket.getByRole("radio", { name }).isChecked();
    await page.keyboard.press("s");
    await expect.poll(() => isChosen("Sell")).toBe(true);
    await page.keyboard.press("b");
    await page.keyboard.press("l");
    await expect.poll(async () => [await isChosen("Buy"), await isChosen("Limit")]).toEqual([true, true]);
    await page.keyboard.press("n");
    await expect.poll(() => isChosen("Outcome 1")).toBe(true);
    await page.keyboard.press("y");
    await expect.poll(() => isChosen("Outcome 0")).toBe(true);
    await amountOf(ticket).focus();
    await page.keyboard.press("m");
    expect(await isChosen("Limit")).toBe(true);
    await amountOf(ticket).blur();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).getByText("First outcome, such as Yes").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("p");
    await page.getByRole("heading", { level: 1, name: "Portfolio" }).waitFor();
    await page.getByLabel("Account menu").click();
    await page.getByRole("button", { name: "Trading settings" }).click();
    await page.getByLabel("Keys of one letter").uncheck();
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("m");
    await page.goto(`/markets/${market.slug}`);
    await expectLoaded(page);
    await page.keyboard.press("s");
    expect(await isChosen("Buy")).toBe(true);
  });

  test("a guest's order waits while they sign up, and they come back to it", async () => {
    const { server } = world;
    const page = await openPage({ baseURL: server.root });
    const main = page.getByRole("main");
    await page.goto(`/markets/${market.slug}?outcome=${market.outcomes[0]}`);
    await expectLoaded(page);
    await fillInTicket(page, { side: "Buy", price: "14", shares: "7" });
    await ticketOf(page).getByRole("link", { name: "Sign up to buy Outcome 0" }).click();
    await main.getByText(/Your order of 7 Outcome 0 at 1\d\.\d+¢ waits\./).waitFor();
    const email = freshEmail("guest");
    await main.getByLabel("Email").fill(email);
    await main.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await main.getByRole("button", { name: "Create account" }).click();
    await page.getByRole("heading", { name: "Check your email" }).waitFor();
    // The link opens a tab of its own.
    const tab = await page.context().newPage();
    const body = tab.getByRole("main");
    await tab.goto(`/verify-email?token=${await verificationToken(server, email)}`);
    await body.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await body.getByRole("button", { name: "Verify" }).click();
    await body.getByRole("link", { name: "Continue" }).click();
    const phone = "+14155552399";
    await body.getByLabel("Phone number").fill(phone);
    await body.getByRole("button", { name: "Send code" }).click();
    await body.getByLabel("Code").fill(await phoneCode(server, phone));
    await body.getByRole("button", { name: "Verify" }).click();
    await body.getByRole("link", { name: "Continue" }).click();
    await tab.waitForURL(({ pathname }) => pathname === `/markets/${market.slug}`);
    await expectLoaded(tab);
    expect([await priceOf(ticketOf(tab)).inputValue(), await amountOf(ticketOf(tab)).inputValue()]).toEqual([
      "14",
      "7",
    ]);
    await noteOf(tab).getByText("You have 0.00 USDC.").waitFor();
  });

  test("a phone has the ticket as a sheet, with its result and the toasts above all else", async () => {
    const page = await openMarket(market, { phone: true });
    await page
      .locator(".ticket-bar")
      .getByRole("button", { name: /^Buy Outcome 0/ })
      .click();
    const sheet = page.getByRole("dialog", { name: "Order ticket" });
    await sheet.locator(".amount .choice label").nth(1).click();
    await amountOf(sheet).fill("3");
    await sheet.getByRole("button", { name: "Buy Outcome 0", exact: true }).click();
    await sheet.getByRole("heading", { name: "Bought 3 Outcome 0" }).waitFor();
    await sheet.getByRole("button", { name: "Done" }).click();
    // A bid of the same page that fills behind the sheet.
    await sheet.locator(".ticket-head .choice label").nth(1).click();
    await priceOf(sheet).fill("12.6");
    await amountOf(sheet).fill("4");
    await sheet.getByRole("button", { name: "Place bid for Outcome 0" }).click();
    await sheet.getByRole("button", { name: "Done" }).click();
    await maker.place(terms(market, 0, SELL, 1_260, 4));
    const toast = page.locator(".toasts").getByText("Bought 4 Outcome 0 at 12.6¢");
    await toast.waitFor();
    const toasted = await toast.boundingBox();
    const topmost = `document.elementFromPoint(${toasted!.x + 5}, ${toasted!.y + 5}).closest(".toast")?.textContent`;
    expect(await page.evaluate(topmost)).toContain("Bought 4 Outcome 0 at 12.6¢");
    await page.locator(".toasts").getByRole("button", { name: "Dismiss" }).first().click();
    await page.mouse.click(100, 20);
    await sheet.waitFor({ state: "detached" });
  });

  test("where a market has ended, its result takes the place of ticket and book", async () => {
    const ended = world.market();
    await world.split(trader, ended, 10);
    const page = await openMarket(ended);
    const operator = await operatorOf(world.server);
    await trader.place(terms(ended, 1, SELL, 4_000, 10));
    await maker.place(terms(ended, 1, BUY, 4_000, 10));
    await operator.data("POST", `/admin/markets/${ended.id}/close`);
    await ticketOf(page).getByRole("heading", { name: "Closed for trading" }).waitFor();
    await operator.data("POST", `/admin/markets/${ended.id}/resolve`, { outcome_id: ended.outcomes[0] });
    await ticketOf(page).getByRole("heading", { name: "Resolved: Outcome 0" }).waitFor();
    await ticketOf(page).getByText("10.00 USDC").waitFor();
    await expect
      .poll(() => orderResultOf(page), PATIENTLY)
      .toEqual([
        "Resolved: Outcome 0",
        "You held: 10 Outcome 0",
        "Paid to your wallet: 10.00 USDC",
        expect.stringMatching(/^Profit at settlement: \+\d\.\d\d$/),
      ]);
    expect(await page.getByText(/Nobody offers|The book is empty/).count()).toBe(0);
    await page.setViewportSize(PHONE);
    await ticketOf(page).getByRole("heading", { name: "Resolved: Outcome 0" }).waitFor();
    expect(await page.locator(".ticket-bar").count()).toBe(0);
    // The feed has an archive, and the search finds it.
    const card = page.getByRole("main").getByRole("article").filter({ hasText: "Resolved: Outcome 0" });
    await page.goto("/");
    await expectLoaded(page);
    expect(await card.count()).toBe(0);
    await page.locator(".sort-choice select").selectOption("Archive");
    await card.waitFor();
    await page.goto("/search?q=question");
    await page.getByRole("heading", { name: "Closed and resolved" }).waitFor();
    await card.waitFor();
  });
});
