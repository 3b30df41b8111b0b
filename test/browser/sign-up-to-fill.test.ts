/**
 * Two people in two windows, from the sign-up to a fill, and an operator at the desk: all by the page alone, but for what
 * is mailed and sent to phones. What the ticket says before an order is sent is held to integer arithmetic.
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { freshEmail, messagesTo, PASSWORD, phoneCode, register, verificationToken } from "../support/identity.ts";
import { OPERATOR } from "../support/operator.ts";
import { World } from "../support/world.ts";
import { describeInBrowser, type OpenPage } from "./support/page.ts";
import { fillInSignIn, fillInTicket, levelsOf, outlookOf, PATIENTLY, signInTo, ticketOf } from "./support/person.ts";

/** Set in a page's window: gone where the page was loaded anew. */
const MARK = "untouched";

describeInBrowser("two people", (openPage) => {
  let world: World;
  beforeAll(async () => {
    world = await World.start({ users: 0, named: { operator: OPERATOR }, markets: [2] });
  });
  afterAll(() => expectEndsWell(world));

  test("sign up, are credited and trade with each other, and both see it live", async () => {
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

  test("confirm an address without the password where its account is signed in, and with it elsewhere", async () => {
    const { server } = world;
    const [ada, bert] = [freshEmail("ada"), freshEmail("bert")];
    for (const email of [ada, bert]) expect((await register(server, email)).code).toBe(0);
    const page = await openPage({ baseURL: server.root, expected: [/ 400 .*auth\/verify-email/] });
    const main = page.getByRole("main");
    await page.goto("/sign-in");
    await fillInSignIn(page, ada);
    await page.waitForURL(({ pathname }) => pathname === "/welcome");
    await main.getByText("Confirm your e-mail address first.").waitFor();
    const confirmed = page.getByRole("heading", { name: "Your e-mail address is confirmed" });
    await page.goto(`/verify-email?token=${await verificationToken(server, bert)}`);
    await main.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await main.getByRole("button", { name: "Confirm" }).click();
    await confirmed.waitFor();
    await main.getByText(`Here you are signed in as ${ada}, another account.`).waitFor();
    await page.goto(`/verify-email?token=${await verificationToken(server, ada)}`);
    await confirmed.waitFor();
    await main.getByRole("link", { name: "Go on" }).waitFor();
  });
});

/** From the sign-up to tier 1, at the page of the market. */
async function newTrader(openPage: OpenPage, { server }: World, phone: string): Promise<{ page: Page; email: string }> {
  const page = await openPage({ baseURL: server.root, expected: [/ 401 .*auth\/verify-email/] });
  const main = page.getByRole("main");
  const email = freshEmail("trader");
  await page.goto("/");
  await page.getByRole("link", { name: "Sign up" }).click();
  await main.getByLabel("E-mail").fill(email);
  await main.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await main.getByRole("button", { name: "Sign up" }).click();
  await page.getByRole("heading", { name: "Look into your mail" }).waitFor();
  await page.goto(`/verify-email?token=${await verificationToken(server, email)}`);
  await main.getByLabel("Password", { exact: true }).fill(PASSWORD.toUpperCase());
  await main.getByRole("button", { name: "Confirm" }).click();
  await main.getByText("Wrong password.").waitFor();
  await main.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await main.getByRole("button", { name: "Confirm" }).click();
  await page.getByRole("heading", { name: "Your e-mail address is confirmed" }).waitFor();
  await main.getByRole("link", { name: "Go on" }).click();
  await page.getByRole("heading", { name: "One step before you trade" }).waitFor();
  await main.getByLabel("Phone number").fill(phone);
  await main.getByRole("button", { name: "Send me a code" }).click();
  await main.getByLabel("Code").fill(await phoneCode(server, phone));
  await main.getByRole("button", { name: "Verify" }).click();
  await page.getByRole("heading", { name: "You may trade" }).waitFor();
  expect(messagesTo(server, phone)).toHaveLength(1);
  await main.getByRole("link", { name: "Go to the markets" }).click();
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
  const dialog = desk.getByRole("dialog", { name: "Credit the user" });
  await dialog.getByRole("button", { name: `Credit ${amount}` }).click();
  await desk
    .getByRole("row")
    .filter({ hasText: `wire of ${email}` })
    .waitFor();
}

/** What is available, in the page's head. */
async function expectBalance(page: Page, text: string): Promise<void> {
  const shown = page.getByRole("banner").getByTitle("Available balance, USDC");
  await expect.poll(() => shown.textContent(), PATIENTLY).toBe(`${text} USDC`);
}

const ownOrders = (page: Page) => page.getByRole("region", { name: "Your open orders" });
const ownShares = (page: Page) => page.getByRole("region", { name: "Your position" });
const toasts = (page: Page) => page.locator(".toasts");

/** Ada's bid for one outcome and Bert's for the other come to more than a set costs: she made the price, he gets better. */
async function tradeSets(ada: Page, bert: Page): Promise<void> {
  await fillInTicket(ada, { side: "Buy", outcome: "Outcome 0", price: "42", shares: "123" });
  await expect
    .poll(() => outlookOf(ada))
    .toEqual({
      "Waits in the book": "all",
      Cost: "51.66 USDC",
      "Trading fee": "none for buyers",
      "Pays if Outcome 0": "123.00 USDC",
      "Profit then": "+71.34 USDC",
    });
  await ticketOf(ada).getByRole("button", { name: "Buy 123 Outcome 0" }).click();
  await ownOrders(ada).getByRole("row").filter({ hasText: "0 of 123" }).waitFor();
  await expectBalance(ada, "448.59");
  for (const page of [ada, bert]) await expect.poll(() => levelsOf(page, "buy"), PATIENTLY).toEqual(["42.00 % 123"]);

  await fillInTicket(bert, { side: "Buy", outcome: "Outcome 1", price: "60", shares: "123" });
  // The price of what Ada's order leaves of a set, and the rest of what he would pay set aside until then.
  await expect
    .poll(() => outlookOf(bert), PATIENTLY)
    .toEqual({
      "Trades at once": "all, about 58 % each",
      Cost: "71.34 USDC",
      "Trading fee": "none for buyers",
      "Set aside meanwhile": "73.80 USDC",
      "Pays if Outcome 1": "123.00 USDC",
      "Profit then": "+51.66 USDC",
      "Part of it comes from orders for the other outcomes, by minting sets.": "",
    });
  await ticketOf(bert).getByRole("button", { name: "Buy 123 Outcome 1" }).click();
  await ticketOf(bert)
    .getByText(/all 123 shares bought/)
    .waitFor();
  await toasts(ada)
    .getByText(/123 of 123 shares filled/)
    .waitFor();
  await ownOrders(ada).getByText("You have no open orders here.").waitFor();
  await ownShares(ada)
    .getByRole("row", { name: /^Outcome 0 123 42 %/ })
    .waitFor();
  await ownShares(bert)
    .getByRole("row", { name: /^Outcome 1 123 58 %/ })
    .waitFor();
  // A mint has no fee, so that nothing comes back to hers, which was there first.
  await expectBalance(ada, "448.59");
  await expectBalance(bert, "428.66");
  for (const page of [ada, bert]) {
    await page.getByRole("region", { name: "Recent trades" }).getByRole("row", { name: /Buy Outcome 1.* 58\.00 % 123$/ }).waitFor(); // biome-ignore format: one line
    await page.getByText("Nobody offers anything yet").waitFor();
  }
}

/** Ada offers shares, changes her mind twice, and Bert takes some of them in between. */
async function amendFillCancel(ada: Page, bert: Page): Promise<void> {
  await fillInTicket(ada, { side: "Sell", outcome: "Outcome 0", price: "50", shares: "23" });
  await expect
    .poll(() => outlookOf(ada))
    .toEqual({
      "Waits in the book": "all",
      Proceeds: "11.50 USDC",
      "Trading fee": "−0.1725 USDC",
      "You receive": "11.3275 USDC",
      "Profit against what you paid": "+1.6675 USDC",
    });
  await ticketOf(ada).getByRole("button", { name: "Sell 23 Outcome 0" }).click();
  await ownOrders(ada)
    .getByRole("button", { name: /^Amend order/ })
    .click();
  const dialog = ada.getByRole("dialog", { name: /^Amend order/ });
  await dialog.getByLabel("Price").fill("45");
  await dialog.getByLabel("Quantity in all").fill("20");
  await dialog.getByText(/loses its place/).waitFor();
  await dialog.getByRole("button", { name: "Amend" }).click();
  await ownOrders(ada)
    .getByRole("row", { name: /Sell Outcome 0 45 % 0 of 20/ })
    .waitFor();

  await bert.getByRole("button", { name: "Outcome 0", exact: true }).click();
  await expect.poll(() => levelsOf(bert, "sell"), PATIENTLY).toEqual(["45.00 % 20"]);
  await bert
    .getByRole("list", { name: /^Offers to sell/ })
    .getByRole("button")
    .click();
  await ticketOf(bert).getByLabel("Shares").fill("5");
  await expect
    .poll(() => outlookOf(bert))
    .toMatchObject({ "Trades at once": "all, about 45 % each", Cost: "2.25 USDC" });
  await ticketOf(bert).getByRole("button", { name: "Buy 5 Outcome 0" }).click();
  await expectBalance(bert, "426.41");
  await ownOrders(ada)
    .getByRole("row", { name: /5 of 20/ })
    .waitFor();
  // 2.25 USDC less 1.5 % of it, and 5 BPS of it.
  await expectBalance(ada, "450.807375");

  await ownOrders(ada)
    .getByRole("button", { name: /^Cancel order/ })
    .click();
  await ownOrders(ada).getByText("You have no open orders here.").waitFor();
  await bert.getByText("Nobody offers anything yet").waitFor();
  await ownShares(ada)
    .getByRole("row", { name: /^Outcome 0 118/ })
    .waitFor();
}
