/** A user's actions on the page, by its visible texts: sign in, wait for a page, fill in and read the ticket. */
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { PASSWORD } from "../../support/identity.ts";

/** Timeout for steps that are slow on a busy machine. */
export const PATIENTLY = { timeout: 20_000 };

/** Fills in and submits the sign-in form, which must be visible. */
export async function fillInSignIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  const main = page.getByRole("main");
  await main.getByLabel("Email").fill(email);
  await main.getByLabel("Password", { exact: true }).fill(password);
  await main.getByRole("button", { name: "Sign in" }).click();
}

/** Signs in and waits for the return path. */
export async function signInTo(page: Page, path: string, email: string, password = PASSWORD): Promise<void> {
  await page.goto(`/sign-in?to=${encodeURIComponent(path)}`);
  await fillInSignIn(page, email, password);
  await page.waitForURL((url) => url.pathname + url.search === path);
}

/** Waits until the page has its heading and nothing is loading. */
export async function expectLoaded(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await expect.poll(() => page.evaluate(FIND_LOADING), PATIENTLY).toEqual([]);
}

/** A state of loading takes its place before it becomes visible; one within closed details has none. */
const FIND_LOADING = `[...document.querySelectorAll("main .loading")].filter((each) => each.checkVisibility()).map((each) => each.textContent)`;

/** The ticket beside the market, on wide screens. */
export const ticketOf = (page: Page): Locator => page.getByRole("complementary", { name: "Order ticket" });

export interface TicketInput {
  readonly side: "Buy" | "Sell";
  /** The chosen one by default. */
  readonly outcome?: string;
  /** Cents. */
  readonly price: string;
  readonly shares: string;
}

/** Fills in a limit order for a number of shares. */
export async function fillInTicket(page: Page, { side, outcome, price, shares }: TicketInput): Promise<void> {
  const ticket = ticketOf(page);
  const done = ticket.locator(".result .ink");
  if (await done.isVisible()) await done.click();
  // The radio buttons themselves are visually hidden: click their labels, whose texts a program may have changed.
  await ticket
    .locator(".sides label")
    .nth(side === "Buy" ? 0 : 1)
    .click();
  await ticket.locator(".ticket-head .choice label").nth(1).click();
  if (outcome !== undefined) await ticket.locator(".outcome-choice").getByText(outcome, { exact: true }).click();
  await priceOf(ticket).fill(price);
  if (side === "Buy") await ticket.locator(".amount .choice label").nth(1).click();
  await amountOf(ticket).fill(shares);
}

export const priceOf = (ticket: Locator): Locator => ticket.locator(".with-bests .input input");
/** Of money or shares, whichever the ticket counts. */
export const amountOf = (ticket: Locator): Locator => ticket.locator(".amount .input input");

/** Opens a tab of the user's own trading in a market. */
export async function ownTab(page: Page, name: "Position" | "Orders" | "Fills" | "Split or merge"): Promise<Locator> {
  const own = page.getByRole("region", { name: "Your trading in this market" });
  await own.getByRole("tab", { name }).click();
  return own.getByRole("tabpanel");
}

/** Reads the two lines of the ticket's summary, such as "3 shares at 50.0¢" and "Cost 1.50". */
export async function orderSummaryOf(page: Page): Promise<string[]> {
  const texts = await ticketOf(page).locator("dl.order-summary :is(dt, dd)").allTextContents();
  return texts.map((text) => text.trim());
}

/** Reads what the ticket says of the order that it sent: "Bought 3 Outcome 0", "Average price: 50.0¢", ... */
export async function orderResultOf(page: Page): Promise<string[]> {
  const result = ticketOf(page).locator(".result");
  const title = await result.getByRole("heading").textContent();
  const [names, values] = [await result.locator("dt").allTextContents(), await result.locator("dd").allTextContents()];
  return [title ?? "", ...names.map((name, i) => `${name}: ${values[i]}`)];
}

const QUANTITY = /([\d,]+) shares, total $/;

/** Reads the levels of the visible book, best first, such as "42.0 100". */
export async function levelsOf(page: Page, side: "buy" | "sell"): Promise<string[]> {
  const list = page.getByRole("list", { name: side === "buy" ? /^Bids/ : /^Asks/ });
  const [prices, quantities] = [
    await list.locator(".level > span:nth-of-type(1)").allTextContents(),
    await list.locator(".level > span:nth-of-type(2)").allTextContents(),
  ];
  const levels = prices.map((price, i) => `${price} ${QUANTITY.exec(quantities[i] ?? "")?.[1]}`);
  return side === "buy" ? levels : levels.reverse();
}
