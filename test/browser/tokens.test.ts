/**
 * A token's life on the page: made, shown once, used by a program of its own process, revoked. What tokens may do is
 * test/accounts/pats.test.ts.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { API_BASE } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { World } from "../support/world.ts";
import { describeInBrowser } from "./support/page.ts";
import { expectLoaded, levelsOf, PATIENTLY, signInTo } from "./support/person.ts";

/** Places an order as README.md shows it; writes the answer's status and code. */
const SCRIPT = `
const { BASE, TOKEN, ORDER } = process.env;
const headers = { Authorization: "Bearer " + TOKEN, "Content-Type": "application/json" };
const answer = await fetch(BASE + "/orders", { method: "POST", headers, body: ORDER });
console.log(answer.status, (await answer.json()).code);
`;

describeInBrowser("a token of the page", (openPage) => {
  let world: World;
  beforeAll(async () => {
    world = await World.start({ users: 0, named: { trader: { password: PASSWORD, scopes: [] } } });
  });
  afterAll(() => expectEndsWell(world));

  async function runScript(token: string, price: number): Promise<string> {
    const [market] = world.markets;
    const order = { market_id: market!.id, outcome_id: market!.outcomes[0], side: 1, price, quantity: 100 };
    const env = { BASE: world.server.root + API_BASE, TOKEN: token, ORDER: JSON.stringify(order) };
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", SCRIPT], { env });
    return stdout.trim();
  }

  test("is shown once, trades for its owner, and ends at once", async () => {
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, "/account/tokens", "trader@example.com");
    const token = await makeToken(page);

    const market = await page.context().newPage();
    await market.goto(`/markets/${world.markets[0]!.slug}`);
    const orders = market.getByRole("region", { name: "Your open orders" });
    await orders.getByText("You have no open orders here.").waitFor();
    expect(await runScript(token, 4_200)).toBe("202 0");
    await orders.getByRole("row", { name: /Buy Outcome 0 42 % 0 of 100/ }).waitFor();
    await expect.poll(() => levelsOf(market, "buy"), PATIENTLY).toEqual(["42.00 % 100"]);

    expect(await page.content()).not.toContain(token);
    await page.reload();
    const own = page.getByRole("region", { name: "Your tokens" });
    await own.getByRole("heading", { name: "Quoting bot" }).waitFor();
    await expectLoaded(page);
    expect(await page.content()).not.toContain(token);
    expect(await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")).not.toContain(token);

    await own.getByRole("button", { name: "Revoke Quoting bot" }).click();
    const dialog = page.getByRole("dialog", { name: 'Revoke "Quoting bot"?' });
    await dialog.getByRole("button", { name: "Revoke the token" }).click();
    await own.getByText("You have no tokens yet.").waitFor();
    expect(await runScript(token, 4_100)).toBe("401 40100");
    // What it placed stays, as the dialog said.
    expect(await levelsOf(market, "buy")).toEqual(["42.00 % 100"]);
  });
});

/** With the right to trade; its text, read from the dialog and put away. */
async function makeToken(page: Page): Promise<string> {
  const form = page.getByRole("form", { name: "New token" });
  await form.getByRole("button", { name: "Make the token" }).click();
  await form.getByText("Give it a name that says what it is for.").waitFor();
  await form.getByLabel("Name").fill("Quoting bot");
  await form.getByLabel("Trade for you").check();
  await form.getByRole("button", { name: "Make the token" }).click();
  const dialog = page.getByRole("dialog", { name: 'Token "Quoting bot"' });
  const field = dialog.getByLabel("Token", { exact: true });
  const token = await field.inputValue();
  expect(token).toMatch(/^pm_pat_[\w-]{43}$/);
  // Closed by mistake it isn't lost yet.
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Show it again" }).click();
  expect(await field.inputValue()).toBe(token);
  await dialog.getByRole("button", { name: "I have stored it" }).click();
  await dialog.waitFor({ state: "detached" });
  return token;
}
