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
export async function signInTo(page: Page, path: string, email: string): Promise<void> {
  await page.goto(`/sign-in?to=${encodeURIComponent(path)}`);
  await fillInSignIn(page, email);
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
  readonly outcome: string;
  /** Cents. */
  readonly price: string;
  readonly shares: string;
}

export async function fillInTicket(page: Page, { side, outcome, price, shares }: TicketInput): Promise<void> {
  const ticket = ticketOf(page);
  // The radio button itself is visually hidden: click its label.
  await ticket.getByText(side, { exact: true }).click();
  await ticket.getByLabel("Outcome").selectOption({ label: outcome });
  await ticket.getByLabel("Price").fill(price);
  await ticket.getByLabel("Shares").fill(shares);
}

/** Reads the ticket's order summary, line by line. */
export async function orderSummaryOf(page: Page): Promise<Record<string, string>> {
  const lines = ticketOf(page).locator("dl.order-summary");
  const [names, values] = [await lines.locator("dt").allTextContents(), await lines.locator("dd").allTextContents()];
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? ""]));
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
