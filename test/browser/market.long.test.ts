/** A market's page: its book at any depth, the user's own orders in it, and the chart of all outcomes. */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { admin } from "../support/admin.ts";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import type { ResultJson } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";
import { traceTasks } from "./support/main-thread.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, levelsOf, ownTab, PATIENTLY, signInTo } from "./support/user-actions.ts";

/** Of each side. */
const LEVELS = 1_000;
/** Orders of a batch. */
const BATCH = 50;
/** A task of this CPU time is a long one. */
const LONG_TASK_MS = 50;

describe.skipIf(NO_BROWSER)("a market's page", () => {
  const openPage = useBrowser();
  let world: World;
  let maker: Client;
  beforeAll(async () => {
    world = await World.start({ users: 2, named: { trader: { password: PASSWORD } }, markets: [2, 2, 3, 2, 3, 2] });
    maker = world.user();
  });
  afterAll(() => expectEndsWell(world));

  async function openMarket(market: TestMarket) {
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, `/markets/${market.slug}`, "trader@example.com");
    await expectLoaded(page);
    return page;
  }

  /** Offers and bids 1 share at each of many prices. */
  async function deepBook(market: TestMarket): Promise<void> {
    await world.split(maker, market, LEVELS);
    const orders = Array.from({ length: LEVELS }, (_, i) => [
      terms(market, 0, SELL, 5_010 + i, 1),
      terms(market, 0, BUY, 4_990 - i, 1),
    ]).flat();
    for (let at = 0; at < orders.length; at += BATCH) {
      const operations = orders.slice(at, at + BATCH).map((order) => ({ op: "place", ...order }));
      const { results } = await maker.data<{ results: ResultJson[] }>("POST", "/orders/batch", { operations });
      expect(results.filter(({ code }) => code !== 0)).toEqual([]);
    }
  }

  test("a market's page scrolls and groups a book of 2,000 levels, and draws only what is in view", {
    timeout: 60_000,
  }, async () => {
    const market = world.market();
    await deepBook(market);
    const page = await openMarket(market);
    const drawn = () => page.locator(".book .level").count();
    await expect.poll(async () => (await levelsOf(page, "buy"))[0], PATIENTLY).toBe("49.9 1");
    expect(await drawn()).toBeLessThan(60);
    const spread = page.locator(".book .spread");
    const frame = page.locator(".levels-scroll");
    // The middle is in the middle, and stays in view at either end.
    const [outer, inner] = [await frame.boundingBox(), await spread.boundingBox()];
    expect(Math.abs(outer!.y + outer!.height / 2 - inner!.y - inner!.height / 2)).toBeLessThan(3);
    for (const [top, text] of [
      [0, "60.09"],
      [1_000_000, "40.0"],
    ] as const) {
      await frame.evaluate(scrollTo, top);
      await expect.poll(() => frame.getByText(text, { exact: true }).isVisible(), PATIENTLY).toBe(true);
      expect(await drawn()).toBeLessThan(60);
      const at = await spread.boundingBox();
      expect(at!.y).toBeGreaterThanOrEqual(outer!.y - 1);
      expect(at!.y + at!.height).toBeLessThanOrEqual(outer!.y + outer!.height + 1);
    }
    await page.getByRole("button", { name: /^Last price/ }).click();
    await page.getByLabel("Group prices by").selectOption({ label: "1¢" });
    // Bids round down, offers up.
    await expect
      .poll(async () => (await levelsOf(page, "buy")).slice(0, 2), PATIENTLY)
      .toEqual(["49.0 91", "48.0 100"]);
    expect((await levelsOf(page, "sell")).slice(0, 2)).toEqual(["51.0 91", "52.0 100"]);
    await page.reload();
    await expectLoaded(page);
    await expect.poll(async () => (await levelsOf(page, "buy"))[0], PATIENTLY).toBe("49.0 91");
  });

  test("a market's page stays fluid while a book of 2,000 levels changes", { timeout: 60_000 }, async () => {
    const market = world.market();
    await deepBook(market);
    const page = await openMarket(market);
    await expect.poll(async () => (await levelsOf(page, "buy"))[0], PATIENTLY).toBe("49.9 1");
    const endTrace = await traceTasks(page);
    for (let round = 0; round < 40; round++) await maker.place(terms(market, 0, BUY, 4_991 + (round % 5), 1));
    await expect.poll(async () => (await levelsOf(page, "buy"))[0], PATIENTLY).toBe("49.95 8");
    const tasks = await endTrace();
    console.log(`the longest of ${tasks.length} tasks took ${Math.max(...tasks).toFixed(1)} ms of CPU time`);
    expect(tasks.length).toBeGreaterThan(40);
    expect(tasks.filter((ms) => ms >= LONG_TASK_MS)).toEqual([]);
  });

  test("a market's page pins the user's own orders outside the view, where they can be canceled", async () => {
    const market = world.market(3);
    const trader = world.client("trader");
    for (let i = 0; i < 20; i++) await maker.place(terms(market, 0, BUY, 3_000 - 10 * i, 10));
    await trader.place(terms(market, 0, BUY, 2_990, 7));
    await trader.place(terms(market, 0, BUY, 500, 33));
    await trader.place(terms(market, 0, BUY, 400, 44));
    const page = await openMarket(market);
    const pinned = page.getByRole("list", { name: "Your bids outside the view" });
    await expect
      .poll(() => pinned.getByRole("listitem").allTextContents(), PATIENTLY)
      .toEqual(["5.033Yours", "4.044Yours"]);
    // One in view has a mark.
    expect(await page.locator(".book .level .mine").count()).toBe(1);
    await pinned.getByRole("button", { name: "Cancel your bid at 5.0¢" }).click();
    await expect.poll(() => pinned.getByRole("listitem").count(), PATIENTLY).toBe(1);
    await page.locator(".levels-scroll").evaluate(scrollTo, 1_000_000);
    await pinned.waitFor({ state: "detached" });
    const orders = await ownTab(page, "Orders");
    expect(await orders.getByRole("row").count()).toBe(3);
  });

  test("a market's chart draws a line for each outcome, with a table of the same values", async () => {
    const market = world.markets[2]!;
    const buyer = world.user();
    await world.split(maker, market, 100);
    for (const [outcome, price] of [4_000, 3_500].entries()) {
      await maker.place(terms(market, outcome, SELL, price, 20));
      await buyer.place(terms(market, outcome, BUY, price, 20));
    }
    const page = await openMarket(market);
    await page.locator(".canvas canvas").first().waitFor();
    await page.getByText("Show as table").click();
    const heads = page.locator(".as-table th");
    await expect.poll(() => heads.allTextContents(), PATIENTLY).toEqual(["Time", "Outcome 0, ¢", "Outcome 1, ¢"]);
    // A trade extends it.
    await maker.place(terms(market, 2, SELL, 2_500, 5));
    await buyer.place(terms(market, 2, BUY, 2_500, 5));
    await expect.poll(() => heads.allTextContents(), PATIENTLY).toContain("Outcome 2, ¢");
    for (const view of ["Candles", "Depth", "Line"]) {
      await page.locator(".chart-tools").getByText(view, { exact: true }).click({ force: true });
      await expectLoaded(page);
    }
    expect(await page.getByRole("list", { name: "Lines of the chart" }).getByRole("listitem").count()).toBe(3);
  });

  test("a guest downloads a day of the market's history", { timeout: 60_000 }, async () => {
    const market = world.market();
    await maker.place(terms(market, 0, BUY, 4_000, 5));
    const page = await openPage({ baseURL: world.server.root });
    await page.goto(`/markets/${market.slug}`);
    await expectLoaded(page);
    const button = page.getByRole("button", { name: "Download history" });
    await button.click();
    const dialog = page.getByRole("dialog", { name: "Book history" });
    await dialog.getByText("No history yet.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    const today = new Date().toISOString().slice(0, 10);
    expect((await admin(world.server.dataDir, "history", today, today)).errors).toBe("");
    await button.click();
    const row = dialog.getByRole("row", { name: new RegExp(`^${today} so far`) });
    await row.waitFor();
    expect(await row.getByRole("cell").allTextContents()).toEqual([
      `${today} so far`,
      "2",
      expect.stringMatching(/^\d KB$/),
      "1 KB",
    ]);
    const [download] = await Promise.all([page.waitForEvent("download"), row.getByRole("link").last().click()]);
    expect(download.suggestedFilename()).toBe(`${market.id}-${today}.jsonl.gz`);
    const [status, level] = gunzipSync(readFileSync(await download.path()))
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect([status, level]).toMatchObject([
      { kind: "status", status: "open" },
      { kind: "level", price: 4_000, quantity: 5 },
    ]);
  });
});

/** Runs in the page. */
function scrollTo(element: { scrollTop: number }, top: number): void {
  element.scrollTop = top;
}
