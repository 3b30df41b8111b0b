/**
 * A trader's day: keyboard only, a reload, a second tab, a server crash. Each test watches the page of a market, whose book
 * must be correct afterwards.
 */
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../bench/support/free-port.ts";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { type TestMarket, World } from "../support/world.ts";
import { NO_BROWSER, type OpenPage, useBrowser } from "./support/page.ts";
import {
  amountOf,
  expectLoaded,
  fillInTicket,
  levelsOf,
  orderResultOf,
  PATIENTLY,
  priceOf,
  signInTo,
  ticketOf,
} from "./support/user-actions.ts";

/** More tab stops than the page has. */
const MAX_TABS = 100;

describe.skipIf(NO_BROWSER)("a trader's page", () => {
  const openPage = useBrowser();
  let world: World;
  let maker: Client;
  let market: TestMarket;

  beforeAll(async () => {
    // A fixed port, so that the restarted server can bind it: the system doesn't reassign an ephemeral one after a kill.
    const env = { PORT: String(await freePort()) };
    world = await World.start({ users: 1, named: { trader: { password: PASSWORD } }, env });
    [maker, market] = [world.user(), world.market()];
    await world.split(maker, market, 1_000);
    for (const price of [5_000, 5_125, 5_300]) await maker.place(terms(market, 0, SELL, price, 100));
    for (const price of [4_700, 4_650]) await maker.place(terms(market, 0, BUY, price, 80));
  });
  afterAll(() => expectEndsWell(world));

  async function openMarket(options: Parameters<OpenPage>[0] = {}): Promise<Page> {
    const page = await openPage({ baseURL: world.server.root, ...options });
    await signInTo(page, `/markets/${market.slug}`, "trader@example.com");
    await expectLoaded(page);
    return page;
  }
  /** Expects the page to show the book as the API returns it. */
  async function expectBook(page: Page): Promise<void> {
    const shown = async () => ({ bids: await levelsOf(page, "buy"), asks: await levelsOf(page, "sell") });
    const textOf = ([price, quantity]: readonly number[]): string =>
      `${(price! / 100).toFixed(price! % 10 === 0 ? 1 : 2)} ${quantity}`;
    const { bids, asks } = await maker.book(market.id, market.outcomes[0]!);
    await expect.poll(shown, PATIENTLY).toEqual({ bids: bids.map(textOf), asks: asks.map(textOf) });
  }

  test("a trader's page works without a mouse", async () => {
    const page = await openMarket();
    await page.reload();
    await expectLoaded(page);
    await page.keyboard.press("Tab");
    await expectFocused(page.getByRole("link", { name: "Skip to content" }));
    await page.keyboard.press("Enter");
    await expectFocused(page.getByRole("main"));
    const ticket = ticketOf(page);
    await tabTo(page, ticket.getByRole("radio", { name: "Buy" }));
    await tabTo(page, ticket.getByRole("radio", { name: "Market" }));
    await page.keyboard.press("ArrowRight");
    await tabTo(page, priceOf(ticket));
    await page.keyboard.type("45.5");
    await tabTo(page, ticket.getByRole("radio", { name: "USDC" }));
    await page.keyboard.press("ArrowRight");
    await tabTo(page, amountOf(ticket));
    await page.keyboard.type("0");
    await page.keyboard.press("Enter");
    await ticket.getByText(/^Must be a whole number/).waitFor();
    await expectFocused(amountOf(ticket));
    await page.keyboard.press("Backspace");
    await page.keyboard.type("7");
    await page.keyboard.press("Enter");
    const orders = page.getByRole("region", { name: "Open orders" });
    await orders.getByRole("row", { name: / Outcome 0 Buy 45\.5 0 7 / }).waitFor();
    expect(await maker.book(market.id, market.outcomes[0]!)).toMatchObject({
      bids: expect.arrayContaining([[4_550, 7]]),
    });
    // The focus stays in the ticket, at what became of the order.
    await expectFocused(ticket.getByRole("heading", { name: "Bid placed" }));
    // Without a position, the orders are shown first.
    const tab = (name: RegExp) => page.getByRole("tab", { name });
    await tabTo(page, tab(/^Orders/), "Shift+Tab");
    await page.keyboard.press("ArrowLeft");
    await expectFocused(tab(/^Position/));
    await page.keyboard.press("ArrowRight");
    await expectFocused(tab(/^Orders/));
    await tabTo(page, orders.getByRole("button", { name: /^Cancel order/ }));
    await page.keyboard.press("Enter");
    await orders.getByText("No open orders.").waitFor();
    await expectFocused(orders);
    await expectBook(page);
  });

  test("a trader stays signed in after a reload, until one of the tabs signs out", async () => {
    // The stream may close before the sign-out completes, and then tries to renew the token.
    const page = await openMarket({ possible: [/ 40[01] .*auth\/refresh/] });
    await page.reload();
    await ticketOf(page).getByRole("button", { name: "Buy Outcome 0", exact: true }).waitFor();
    const other = await page.context().newPage();
    await other.goto(`${world.server.root}/portfolio`);
    await other.getByRole("heading", { level: 1, name: "Portfolio" }).waitFor();
    await page.getByLabel("Account menu").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await other.getByRole("heading", { name: "Sign in to continue" }).waitFor();
    for (const each of [page, other]) {
      await each.getByRole("banner").getByRole("link", { name: "Sign in" }).waitFor();
      await each.reload();
      await each.getByRole("banner").getByRole("link", { name: "Sign in" }).waitFor();
    }
  });

  test("the page shows that the connection is lost while the server is down, and recovers", async () => {
    const page = await openMarket({ possible: [/WebSocket|ERR_CONNECTION_REFUSED/] });
    await page.getByLabel("Include mint and merge").uncheck();
    const own = await maker.place(terms(market, 0, BUY, 4_600, 30));
    await expectBook(page);
    const banner = page.getByRole("alert").filter({ hasText: "No connection to the exchange." });
    await world.server.kill();
    await banner.waitFor();
    expect(await banner.textContent()).toMatch(/Prices are from \d\d:\d\d:\d\d\. Your orders stay in the book\.$/);
    await ticketOf(page).getByText("Trading resumes with the connection.").waitFor();
    world.server = await world.server.restart();
    await maker.cancel(own.id);
    await maker.place(terms(market, 0, SELL, 4_900, 45));
    await banner.waitFor({ state: "detached" });
    await expectBook(page);
    await maker.place(terms(market, 0, BUY, 4_750, 60));
    await expectBook(page);
    await page.getByRole("contentinfo").getByText("Prices live", { exact: true }).waitFor();
    await fillInTicket(page, { side: "Buy", price: "49", shares: "45" });
    await ticketOf(page).getByRole("button", { name: "Buy Outcome 0", exact: true }).click();
    await expect.poll(() => orderResultOf(page), PATIENTLY).toEqual(expect.arrayContaining(["Bought 45 Outcome 0"]));
    await expectBook(page);
  });

  test("a page opened while the server is away says so, and recovers with the connection", async () => {
    // A server that starts answers with 503 until it is ready.
    const possible = [/WebSocket|ERR_CONNECTION_REFUSED|Failed to fetch|503/];
    const page = await openPage({ baseURL: world.server.root, possible });
    await page.goto("/");
    await expectLoaded(page);
    // Its parts beside the list come last.
    await page.waitForLoadState("networkidle");
    await world.server.kill();
    await page.getByRole("alert").filter({ hasText: "No connection to the exchange." }).waitFor();
    // The page's code isn't there yet, nor are the market's data.
    await page.getByRole("main").getByRole("link", { name: "Question 0?" }).click();
    await page.getByText("Can't reach the exchange. The page tries again by itself.").waitFor();
    world.server = await world.server.restart();
    await page.getByRole("heading", { level: 1, name: "Question 0?" }).waitFor();
    await expectLoaded(page);
    await page.getByRole("contentinfo").getByText("Prices live", { exact: true }).waitFor();
    // Nor are the data of a page whose code is.
    await world.server.kill();
    await page.getByRole("alert").filter({ hasText: "No connection to the exchange." }).waitFor();
    await page.goBack();
    await page.getByText("Can't reach the exchange. The page tries again by itself.").waitFor();
    world.server = await world.server.restart();
    await page.getByRole("main").getByRole("link", { name: "Question 0?" }).waitFor();
  });
});

const isFocused = async (element: Locator): Promise<boolean> =>
  (await element.and(element.page().locator(":focus")).count()) === 1;

async function expectFocused(element: Locator): Promise<void> {
  await expect.poll(() => isFocused(element), PATIENTLY).toBe(true);
}

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, element: Locator, key = "Tab"): Promise<void> {
  for (let presses = 0; presses < MAX_TABS; presses++) {
    await page.keyboard.press(key);
    if (await isFocused(element)) return;
  }
  throw new Error(`can't reach ${element} by keyboard`);
}
