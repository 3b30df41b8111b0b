/**
 * Two users in two windows from sign-up to a fill, and an operator at the desk, all through the page except for emails and
 * text messages. Checks the ticket's order summary against integer arithmetic.
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { freshEmail, messagesTo, PASSWORD, phoneCode, register, verificationToken } from "../support/identity.ts";
import { OPERATOR } from "../support/operator.ts";
import { World } from "../support/world.ts";
import { NO_BROWSER, type OpenPage, useBrowser } from "./support/page.ts";
import {
  amountOf,
  fillInSignIn,
  fillInTicket,
  levelsOf,
  orderResultOf,
  orderSummaryOf,
  ownTab,
  PATIENTLY,
  signInTo,
  ticketOf,
} from "./support/user-actions.ts";

/** Set in the page's window; a reload would clear it. */
const MARK = "untouched";

describe.skipIf(NO_BROWSER)("two users", () => {
  const openPage = useBrowser();
  let world: World;
  beforeAll(async () => {
    world = await World.start({ users: 0, named: { operator: OPERATOR }, markets: [2] });
  });
  afterAll(() => expectEndsWell(world));

  test("two users sign up, receive deposits, trade with each other, and see it live", async () => {
    const [ada, bert] = await Promise.all([
      newTrader(openPage, world, "+14155552301"),
      newTrader(openPage, world, "+14155552302"),
    ]);
    const desk = await openPage({ baseURL: world.server.root });
    await signInTo(desk, "/desk/deposits", "operator@example.com");
    await credit(desk, ada.email, "500.25");
    await expectBalance(ada.page, "500.25");
    await credit(desk, bert.email, "500.00");
    await expectBalance(bert.page, "500.00");
    await tradeSets(ada.page, bert.page);
    await amendFillCancel(ada.page, bert.page);
    for (const { page } of [ada, bert]) expect(await page.evaluate(MARK)).toBe(true);
    await expectBalanced(world.anonymous());
  });

  test("two users verify an email without the password if its account is signed in, and with it otherwise", async () => {
    const { server } = world;
    const [ada, bert] = [freshEmail("ada"), freshEmail("bert")];
    for (const email of [ada, bert]) expect((await register(server, email)).code).toBe(0);
    const page = await openPage({ baseURL: server.root, expected: [/ 400 .*auth\/verify-email/] });
    const main = page.getByRole("main");
    await page.goto("/sign-in");
    await fillInSignIn(page, ada);
    await page.waitForURL(({ pathname }) => pathname === "/welcome");
    await main.getByText("Verify your email first.").waitFor();
    const confirmed = page.getByRole("heading", { name: "Email verified" });
    await page.goto(`/verify-email?token=${await verificationToken(server, bert)}`);
    await main.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await main.getByRole("button", { name: "Verify" }).click();
    await confirmed.waitFor();
    await main.getByText(`You're signed in as ${ada}, another account.`).waitFor();
    await page.goto(`/verify-email?token=${await verificationToken(server, ada)}`);
    await confirmed.waitFor();
    await main.getByRole("link", { name: "Continue" }).waitFor();
  });
});

/** Signs up a user, verifies email and phone, and opens the market's page. */
async function newTrader(openPage: OpenPage, { server }: World, phone: string): Promise<{ page: Page; email: string }> {
  const page = await openPage({ baseURL: server.root, expected: [/ 401 .*auth\/verify-email/] });
  const main = page.getByRole("main");
  const email = freshEmail("trader");
  await page.goto("/");
  await page.getByRole("link", { name: "Sign up" }).click();
  await main.getByLabel("Email").fill(email);
  await main.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await main.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("heading", { name: "Check your email" }).waitFor();
  await page.goto(`/verify-email?token=${await verificationToken(server, email)}`);
  await main.getByLabel("Password", { exact: true }).fill(PASSWORD.toUpperCase());
  await main.getByRole("button", { name: "Verify" }).click();
  await main.getByText("Wrong password.").waitFor();
  await main.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await main.getByRole("button", { name: "Verify" }).click();
  await page.getByRole("heading", { name: "Email verified" }).waitFor();
  await main.getByRole("link", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "One step before you can trade" }).waitFor();
  await main.getByLabel("Phone number").fill(phone);
  await main.getByRole("button", { name: "Send code" }).click();
  await main.getByLabel("Code").fill(await phoneCode(server, phone));
  await main.getByRole("button", { name: "Verify" }).click();
  await page.getByRole("heading", { name: "You can trade now" }).waitFor();
  expect(messagesTo(server, phone)).toHaveLength(1);
  await main.getByRole("link", { name: "Browse markets" }).click();
  await main.getByRole("link", { name: "Question 0?" }).click();
  await page.getByRole("heading", { level: 1, name: "Question 0?" }).waitFor();
  await page.evaluate(`${MARK} = true`);
  return { page, email };
}

async function credit(desk: Page, email: string, amount: string): Promise<void> {
  const form = desk.getByRole("region", { name: "Credit a user" });
  await form.getByLabel("User").fill(email);
  await form.getByRole("button", { name: "Find" }).click();
  await form.getByLabel("Amount").fill(amount);
  await form.getByLabel("Reference").fill(`wire of ${email}`);
  await form.getByRole("button", { name: "Credit…" }).click();
  const dialog = desk.getByRole("dialog", { name: "Credit user" });
  await dialog.getByRole("button", { name: `Credit ${amount}` }).click();
  await desk
    .getByRole("row")
    .filter({ hasText: `wire of ${email}` })
    .waitFor();
}

/** Expects the available balance in the page header. */
async function expectBalance(page: Page, text: string): Promise<void> {
  const shown = page.getByRole("banner").getByTitle("Available balance, USDC");
  await expect.poll(() => shown.textContent(), PATIENTLY).toBe(`Available, USDC${text}`);
}

/** Bids on both outcomes sum to over 1 USDC and mint: Ada's order makes the price, Bert's gets price improvement. */
async function tradeSets(ada: Page, bert: Page): Promise<void> {
  await fillInTicket(ada, { side: "Buy", outcome: "Outcome 0", price: "42", shares: "123" });
  await expect
    .poll(() => orderSummaryOf(ada))
    .toEqual(["123 shares rest at 42.0¢", "Cost 51.66", "Fee 0.00 · 52 of 100 today", "Pays 123.00 +138%"]);
  await ticketOf(ada).getByRole("button", { name: "Place bid for Outcome 0" }).click();
  await (await ownTab(ada, "Orders")).getByRole("row", { name: / 42\.0 0 123 / }).waitFor();
  await expectBalance(ada, "448.59");
  for (const page of [ada, bert]) await expect.poll(() => levelsOf(page, "buy"), PATIENTLY).toEqual(["42.0 123"]);

  await fillInTicket(bert, { side: "Buy", outcome: "Outcome 1", price: "60", shares: "123" });
  // Bert pays what Ada's order leaves of 1 USDC; the rest of his limit price is on hold until the fill.
  await expect
    .poll(() => orderSummaryOf(bert), PATIENTLY)
    .toEqual(["123 shares at 58.0¢", "Cost 71.34", "Fee 0.00 · 71 of 100 today", "Pays 123.00 +72%"]);
  await ticketOf(bert).getByRole("button", { name: "Buy Outcome 1", exact: true }).click();
  const bought = "Pays if Outcome 1: 123.00 USDC";
  await expect
    .poll(() => orderResultOf(bert), PATIENTLY)
    .toEqual([
      "Bought 123 Outcome 1",
      "Average price: 58.0¢",
      "Cost: 71.34 USDC",
      "Fee: 0.00",
      bought,
      "Your position: 123 Outcome 1",
    ]);
  // Ada's ticket still shows her bid: now it is filled.
  await expect
    .poll(() => orderResultOf(ada), PATIENTLY)
    .toEqual(expect.arrayContaining(["Bought 123 Outcome 0", "Average price: 42.0¢", "Cost: 51.66 USDC"]));
  await (await ownTab(ada, "Orders")).getByText("No open orders.").waitFor();
  await (await ownTab(ada, "Position")).getByRole("row", { name: /^Outcome 0 123 42\.0/ }).waitFor();
  await (await ownTab(bert, "Position")).getByRole("row", { name: /^Outcome 1 123 58\.0/ }).waitFor();
  // A mint has no fee and therefore pays no rebate to Ada, the maker.
  await expectBalance(ada, "448.59");
  await expectBalance(bert, "428.66");
  for (const page of [ada, bert]) {
    await page.getByRole("region", { name: "Trades", exact: true }).first().getByRole("row", { name: /^Buy at 58\.0 Outcome 1 123 / }).waitFor(); // biome-ignore format: one line
    await page.getByText("The book is empty").waitFor();
  }
}

/** Ada places, amends and cancels a sell order; Bert buys some of it in between. */
async function amendFillCancel(ada: Page, bert: Page): Promise<void> {
  await fillInTicket(ada, { side: "Sell", outcome: "Outcome 0", price: "50", shares: "23" });
  await expect
    .poll(() => orderSummaryOf(ada))
    .toEqual(["23 shares rest at 50.0¢", "Sale 11.50", "Fee 1.5% −0.17", "You get 11.33"]);
  await ticketOf(ada).getByRole("button", { name: "Place offer of Outcome 0" }).click();
  await (await ownTab(ada, "Orders")).getByRole("button", { name: /^Amend order/ }).click();
  const dialog = ada.getByRole("dialog", { name: /^Amend order/ });
  await dialog.getByLabel("Price").fill("45");
  await dialog.getByLabel("Total quantity").fill("20");
  await dialog.getByText(/loses its queue priority/).waitFor();
  await dialog.getByRole("button", { name: "Amend" }).click();
  await (await ownTab(ada, "Orders")).getByRole("row", { name: / Outcome 0 Sell 45\.0 0 20 20 sh\./ }).waitFor();

  await ticketOf(bert).getByRole("button", { name: "Done" }).click();
  await ticketOf(bert).locator(".outcome-choice").getByText("Outcome 0").click();
  await expect.poll(() => levelsOf(bert, "sell"), PATIENTLY).toEqual(["45.0 20"]);
  await bert.getByRole("list", { name: /^Asks/ }).getByRole("button").click();
  await amountOf(ticketOf(bert)).fill("5");
  await expect.poll(() => orderSummaryOf(bert)).toEqual(expect.arrayContaining(["5 shares at 45.0¢", "Cost 2.25"]));
  await ticketOf(bert).getByRole("button", { name: "Buy Outcome 0", exact: true }).click();
  await expectBalance(bert, "426.41");
  await (await ownTab(ada, "Orders")).getByRole("row", { name: / 5 20 15 sh\./ }).waitFor();
  // 2.25 USDC less the 1.5% fee, plus a rebate of 5 BPS: 450.807375.
  await expectBalance(ada, "450.80");

  await (await ownTab(ada, "Orders")).getByRole("button", { name: /^Cancel order/ }).click();
  await (await ownTab(ada, "Orders")).getByText("No open orders.").waitFor();
  await bert.getByText("The book is empty").waitFor();
  await (await ownTab(ada, "Position")).getByRole("row", { name: /^Outcome 0 118/ }).waitFor();
}
