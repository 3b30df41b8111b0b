/**
 * Money on the page: a withdrawal and a split whose responses are lost are retried and take effect once, an address is
 * validated as typed, and at the desk the second operator sees the account's audit trail.
 */
import type { Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { OPERATORS } from "../support/markets.ts";
import { ADDRESS } from "../support/money.ts";
import { operatorOf, userNamed } from "../support/operator.ts";
import { USDC, World } from "../support/world.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { PATIENTLY, signInTo } from "./support/user-actions.ts";

describe.skipIf(NO_BROWSER)("money on the page", () => {
  const openPage = useBrowser();
  let world: World;
  let trader: Client;
  beforeAll(async () => {
    world = await World.start({
      users: 0,
      named: { trader: { password: PASSWORD, deposit: 100 * USDC }, ...OPERATORS },
      env: { TWO_PERSON_RULE: "deposits,terms" },
    });
    trader = world.client("trader");
  });
  afterAll(() => expectEndsWell(world));

  const lost = { expected: [/ERR_FAILED/] };
  /** Lets the exchange process each request, and drops the response to the first. */
  async function loseFirstResponse(page: Page, path: string): Promise<string[]> {
    const keys: string[] = [];
    await page.route(`**${path}`, async (route: Route) => {
      if (route.request().method() !== "POST") return route.continue();
      keys.push(route.request().headers()["idempotency-key"] ?? "");
      if (keys.length > 1) return route.continue();
      await route.fetch();
      await route.abort();
    });
    return keys;
  }

  test("a withdrawal whose response is lost is retried, and takes effect once", async () => {
    const page = await openPage({ baseURL: world.server.root, ...lost });
    await signInTo(page, "/wallet?show=withdrawals", "trader@example.com");
    const keys = await loseFirstResponse(page, "/wallet/withdrawals");
    const form = page.getByRole("region", { name: "Withdraw", exact: true });
    await form.getByLabel("Amount").fill("12.5");
    await form.getByLabel("Address").fill(ADDRESS.replace("5aAe", "5aae"));
    await form.getByText("Its checksum (EIP-55) is wrong").waitFor();
    await form.getByLabel("Address").fill(ADDRESS);
    await form.getByRole("button", { name: "Withdraw" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Withdraw" }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByRole("button", { name: "Withdraw" }).click();
    await page.getByText("Withdrawal of 12.50 USDC requested.").waitFor();
    expect(keys).toHaveLength(2);
    expect([keys[0], keys[0]!.length]).toEqual([keys[1], 32]);
    expect((await trader.balance()).held).toBe(12.5 * USDC);
    // Submitting the same values again is a new withdrawal.
    await form.getByLabel("Amount").fill("12.5");
    await form.getByRole("button", { name: "Withdraw" }).click();
    await dialog.getByRole("button", { name: "Withdraw" }).click();
    await expect.poll(async () => (await trader.balance()).held, PATIENTLY).toBe(25 * USDC);
    // The list shows an operator's decision by itself.
    const operator = await operatorOf(world.server);
    const [newest] = await operator.all<{ id: number }>("/admin/withdrawals?status=pending");
    await operator.data("POST", `/admin/withdrawals/${newest!.id}/refuse`, { note: "a test" });
    operator.close();
    await page.getByRole("row", { name: /rejected.*a test/ }).waitFor();
  });

  test("a split whose response is lost is retried, and takes effect once", async () => {
    const page = await openPage({ baseURL: world.server.root, ...lost });
    await signInTo(page, "/portfolio?show=sets", "trader@example.com");
    const keys = await loseFirstResponse(page, "/wallet/split");
    const sets = page.getByRole("region", { name: "Split or merge complete sets" });
    await sets.getByLabel("Market").selectOption({ index: 1 });
    await sets.getByLabel("Number of sets").fill("3");
    await sets.getByRole("button", { name: /^Split/ }).click();
    await sets.getByRole("alert").waitFor();
    await sets.getByRole("button", { name: /^Split/ }).click();
    await page.getByText("3 sets split.").waitFor();
    expect([keys.length, keys[0]]).toEqual([2, keys[1]]);
    expect((await trader.position(world.markets[0]!.outcomes[0]!))!.quantity).toBe(3);
  });

  test("the second operator approves a deposit and terms, and sees the account's audit trail", async () => {
    const first = await operatorOf(world.server);
    const { id } = await userNamed(first, "trader");
    await first.data("POST", "/admin/deposits", { user_id: id, amount: 30 * USDC, reference: "wire 2" });
    await first.data("PATCH", `/admin/users/${id}/terms`, { maker_rebate: 20, daily_limit: null });
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, "/desk/approvals", "second@example.com");
    const row = (name: RegExp) => page.getByRole("row", { name });
    await row(/Credit a user/)
      .getByRole("button", { name: /^Approve/ })
      .click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("row", { name: /seed:trader@example\.com seed,/ }).waitFor();
    await dialog.getByRole("button", { name: "Approve and execute" }).click();
    await page.getByText("Credited 30.00 USDC with reference wire 2.").waitFor();
    await row(/Set a user's terms.*0\.2\s?%/)
      .getByRole("button", { name: /^Approve/ })
      .click();
    await dialog.getByRole("row", { name: /wire 2 operator \d+.*first approval by operator \d+/ }).waitFor();
    await dialog.getByRole("button", { name: "Approve and execute" }).click();
    await page.getByText("Terms set.").waitFor();
    await page.getByText("No approvals pending.").waitFor();
    const user = await userNamed(first, "trader");
    // 3 USDC are in complete sets.
    expect([user.terms.maker_rebate, user.balance.total]).toEqual([20, (100 + 30 - 3) * USDC]);
    first.close();
  });

  test("two operators take a deposit back, and the user sees which", async () => {
    const first = await operatorOf(world.server);
    const { id } = await userNamed(first, "trader");
    const [deposit] = await first.all<{ id: number }>(`/admin/deposits?user_id=${id}`);
    const before = (await trader.balance()).total;
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, `/desk/deposits?user_id=${id}`, "second@example.com");
    await page.getByRole("button", { name: `Reverse deposit ${deposit!.id}` }).click();
    const dialog = page.getByRole("dialog", { name: `Reverse deposit ${deposit!.id}` });
    const amount = dialog.getByLabel("Amount");
    expect(await amount.inputValue()).toBe("30.00");
    await dialog.getByRole("button", { name: "Take back" }).click();
    await dialog.getByText("Use ASCII letters").waitFor();
    // The focus goes to the field with the problem.
    await dialog.locator("input[aria-invalid=true]:focus").waitFor();
    await amount.fill("5.5");
    await dialog.getByLabel("Reference").fill("0xAB back");
    await dialog.getByLabel("Note").fill("wrong account");
    await dialog.getByRole("button", { name: "Take back" }).click();
    await page.getByText("Approval recorded: another operator must repeat the action.").waitFor();
    expect((await trader.balance()).total).toBe(before);
    const path = `/admin/deposits/${deposit!.id}/reverse`;
    await first.data("POST", path, { amount: 5.5 * USDC, reference: "0xab BACK", note: "wrong account" });
    expect((await trader.balance()).total).toBe(before - 5.5 * USDC);
    await page.reload();
    await page
      .getByRole("row", { name: new RegExp(`[-−]5\\.50.*0xAB back.*reverses deposit ${deposit!.id}`) })
      .waitFor();
    // The other way round: asked for by the API, approved at the desk.
    await first.data("POST", path, { amount: 24.5 * USDC, reference: "the rest" });
    await page.goto("/desk/approvals");
    const waiting = page.getByRole("row", { name: /Reverse a deposit .*24\.50 USDC.*the rest/ });
    await waiting.getByRole("button", { name: /^Approve/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Approve and execute" }).click();
    await page.getByText(`Took back 24.50 USDC of deposit ${deposit!.id}.`).waitFor();
    expect((await trader.balance()).total).toBe(before - 30 * USDC);
    await page.goto("/desk");
    const wallet = await openPage({ baseURL: world.server.root });
    await signInTo(wallet, "/wallet?show=deposits", "trader@example.com");
    await wallet
      .getByRole("row", { name: new RegExp(`the rest.*takes back deposit ${deposit!.id}.*[-−]24\\.50`) })
      .waitFor();
    first.close();
  });
});
