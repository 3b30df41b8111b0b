/**
 * The life of a token on the page: created, shown once, used by a separate process, revoked. test/sign-in/pats.test.ts
 * covers what tokens can do.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { API_BASE } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { World } from "../support/world.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, levelsOf, ownTab, PATIENTLY, signInTo } from "./support/user-actions.ts";

/** Places an order as README.md shows it; prints the status and code of the response. */
const SCRIPT = `
const { BASE, TOKEN, ORDER } = process.env;
const headers = { Authorization: "Bearer " + TOKEN, "Content-Type": "application/json" };
const answer = await fetch(BASE + "/orders", { method: "POST", headers, body: ORDER });
console.log(answer.status, (await answer.json()).code);
`;

describe.skipIf(NO_BROWSER)("a token created on the page", () => {
  const openPage = useBrowser();
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

  test("a token created on the page is shown once, trades for its owner, and stops working when revoked", async () => {
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, "/account/tokens", "trader@example.com");
    const token = await createToken(page);

    const market = await page.context().newPage();
    await market.goto(`/markets/${world.markets[0]!.slug}`);
    const orders = await ownTab(market, "Orders");
    await orders.getByText("No open orders.").waitFor();
    expect(await runScript(token, 4_200)).toBe("202 0");
    await orders.getByRole("row", { name: / Outcome 0 Buy 42\.0 0 100 / }).waitFor();
    await expect.poll(() => levelsOf(market, "buy"), PATIENTLY).toEqual(["42.0 100"]);

    expect(await page.content()).not.toContain(token);
    await page.reload();
    const own = page.getByRole("region", { name: "Your tokens" });
    await own.getByRole("heading", { name: "Quoting bot" }).waitFor();
    await expectLoaded(page);
    expect(await page.content()).not.toContain(token);
    expect(await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")).not.toContain(token);

    await own.getByRole("button", { name: "Revoke Quoting bot" }).click();
    const dialog = page.getByRole("dialog", { name: 'Revoke "Quoting bot"?' });
    await dialog.getByRole("button", { name: "Revoke token" }).click();
    await own.getByText("No tokens yet.").waitFor();
    expect(await runScript(token, 4_100)).toBe("401 40100");
    // Its orders stay open, as the dialog said.
    expect(await levelsOf(market, "buy")).toEqual(["42.0 100"]);
  });
});

/** Creates a token that can trade, reads it from the dialog and confirms having stored it. */
async function createToken(page: Page): Promise<string> {
  const form = page.getByRole("form", { name: "New token" });
  await form.getByRole("button", { name: "Create token" }).click();
  await form.getByText("Enter a name.").waitFor();
  await form.getByLabel("Name").fill("Quoting bot");
  await form.getByLabel("Trade on your behalf").check();
  await form.getByRole("button", { name: "Create token" }).click();
  const dialog = page.getByRole("dialog", { name: 'Token "Quoting bot"' });
  const field = dialog.getByLabel("Token", { exact: true });
  const token = await field.inputValue();
  expect(token).toMatch(/^pm_pat_[\w-]{43}$/);
  // Closing the dialog by mistake doesn't lose the token.
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Show again" }).click();
  expect(await field.inputValue()).toBe(token);
  await dialog.getByRole("button", { name: "I've stored it" }).click();
  await dialog.waitFor({ state: "detached" });
  return token;
}
