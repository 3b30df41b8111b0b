/** What a person does on the page, by the words on it: signs in, waits until all is there, reads and sends the ticket. */
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { PASSWORD } from "../../support/identity.ts";

/** For what a loaded machine may take its time for. */
export const PATIENTLY = { timeout: 20_000 };

/** Fills in the form of /sign-in, which is shown. */
export async function fillInSignIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  const main = page.getByRole("main");
  await main.getByLabel("E-mail").fill(email);
  await main.getByLabel("Password", { exact: true }).fill(password);
  await main.getByRole("button", { name: "Sign in" }).click();
}

/** Signs in, and is led to a path of the page. */
export async function signInTo(page: Page, path: string, email: string): Promise<void> {
  await page.goto(`/sign-in?to=${encodeURIComponent(path)}`);
  await fillInSignIn(page, email);
  await page.waitForURL((url) => url.pathname + url.search === path);
}

/** The page has its heading, and nothing on it is still being loaded. */
export async function expectLoaded(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await expect.poll(() => page.locator("main .loading:visible").allTextContents(), PATIENTLY).toEqual([]);
}

/** Beside the market, where the window is wide. */
export const ticketOf = (page: Page): Locator => page.getByRole("complementary", { name: "Order ticket" });

export interface Wish {
  readonly side: "Buy" | "Sell";
  readonly outcome: string;
  /** Percent. */
  readonly price: string;
  readonly shares: string;
}

export async function fillInTicket(page: Page, { side, outcome, price, shares }: Wish): Promise<void> {
  const ticket = ticketOf(page);
  // The button itself is hidden below its words.
  await ticket.getByText(side, { exact: true }).click();
  await ticket.getByLabel("Outcome").selectOption({ label: outcome });
  await ticket.getByLabel("Price").fill(price);
  await ticket.getByLabel("Shares").fill(shares);
}

/** What the ticket says that the order comes to, line by line, before it is sent. */
export async function outlookOf(page: Page): Promise<Record<string, string>> {
  const lines = ticketOf(page).locator("dl.outlook");
  const [names, values] = [await lines.locator("dt").allTextContents(), await lines.locator("dd").allTextContents()];
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? ""]));
}

const QUANTITY = /([\d,]+) shares, sum $/;

/** Levels of the book that is shown, the best first, such as "42.00 % 100". */
export async function levelsOf(page: Page, side: "buy" | "sell"): Promise<string[]> {
  const list = page.getByRole("list", { name: side === "buy" ? /^Offers to buy/ : /^Offers to sell/ });
  const [prices, quantities] = [
    await list.locator(".level > span:nth-of-type(1)").allTextContents(),
    await list.locator(".level > span:nth-of-type(2)").allTextContents(),
  ];
  const levels = prices.map((price, i) => `${price} ${QUANTITY.exec(quantities[i] ?? "")?.[1]}`);
  return side === "buy" ? levels : levels.reverse();
}
