/** The home page: its leading card, orders, categories, the rail, and the watchlist, in a browser. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PERSON } from "../../bench/demo/folder.ts";
import { Client } from "../support/client.ts";
import { makePast } from "../support/past.ts";
import { TestServer } from "../support/server.ts";
import { seedOf } from "../support/world.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, signInTo } from "./support/user-actions.ts";

interface Place {
  readonly kind: string;
  readonly title?: string;
  readonly question?: string;
}

describe.skipIf(NO_BROWSER)("the feed", () => {
  const openPage = useBrowser();
  let server: TestServer;
  let client: Client;
  let password: string;
  beforeAll(async () => {
    const past = makePast(31, Date.now());
    password = past.password;
    server = await TestServer.start({ dataDir: past.path });
    client = new Client(server, null);
  }, 240_000);
  afterAll(async () => {
    client.close();
    await server.stop();
  });

  const titles = (page: Page): Promise<string[]> => page.locator(".feed .card:not(.proposal) h2").allTextContents();
  async function namesOf(query: string): Promise<string[]> {
    const { items } = await client.get<{ items: Place[] }>(`/feed?size=24&grouped=true&${query}`);
    return items.map(({ title, question }) => title ?? question!);
  }

  test("the feed leads with the most traded market, its outcomes and its chart", async () => {
    const page = await openPage({ baseURL: server.root });
    await page.goto("/");
    await expectLoaded(page);
    const names = await namesOf("");
    expect((await titles(page)).slice(1)).toEqual(names.slice(1));
    const lead = page.locator(".featured");
    expect(await lead.locator(".card-head").innerText()).toContain(names[0]);
    const chart = lead.getByRole("img");
    await expect.poll(() => chart.getAttribute("aria-label")).toMatch(/^Chances since .+, now .+ \d+%/);
    expect(await chart.locator("path").count()).toBeGreaterThanOrEqual(1);
    const spark = page.locator(".card.binary .sparkline");
    expect(await spark.count()).toBe(await page.locator(".card.binary").count());
    expect(await page.locator(".card.binary .change").first().innerText()).toMatch(/\d\.\d$/);
    // A price opens the market with this outcome chosen.
    const buy = lead.locator(".chances li").nth(1);
    const name = await buy.locator(".outcome").innerText();
    await buy.locator(".price-button").click();
    await page
      .getByRole("button", { name: `Buy ${name}`, exact: false })
      .first()
      .waitFor();
  });

  test("the feed has plain cards alone while nothing has traded", async () => {
    const fresh = await TestServer.start({ seed: seedOf({ users: 0, markets: [2, 3] }) });
    const page = await openPage({ baseURL: fresh.root });
    await page.goto("/");
    await expectLoaded(page);
    await expect.poll(() => titles(page)).toHaveLength(2);
    expect(await page.locator(".featured, .sparkline, .change").count()).toBe(0);
    await page.close();
    await fresh.stop();
  });

  test("the feed's orders, categories and kinds are in the address, and the archive has what ended", async () => {
    const page = await openPage({ baseURL: server.root });
    await page.goto("/");
    for (const [text, sort] of [
      ["Closing soon", "closes_at"],
      ["New", "created_at"],
    ] as const) {
      await page.locator(".filters").getByText(text, { exact: true }).click();
      await expect.poll(() => page.url()).toContain(`sort=${sort}`);
      const names = await namesOf(`sort=${sort}`);
      await expect.poll(() => titles(page)).toEqual(names);
    }
    await page.getByRole("button", { name: "Sports" }).click();
    await expect.poll(() => titles(page)).toEqual(await namesOf("sort=created_at&category=sports"));
    await page.reload();
    await expect.poll(() => titles(page)).toEqual(await namesOf("sort=created_at&category=sports"));
    await page.getByRole("button", { name: "More filters" }).click();
    await page.getByText("Events", { exact: true }).click();
    await expect.poll(() => titles(page)).toEqual(await namesOf("sort=created_at&category=sports&kind=event"));
    await page.goto("/?status=ended");
    await expect.poll(() => page.locator(".feed .card").count()).toBe(6);
    expect(await page.getByRole("navigation", { name: "Categories" }).getByRole("button").count()).toBeGreaterThan(1);
    expect(await page.locator(".feed .card footer").allInnerTexts()).toEqual(
      Array.from({ length: 6 }, () => expect.stringMatching(/Closed \d/)),
    );
  });

  test("the feed's rail shows what moved and what closes next", async () => {
    const page = await openPage({ baseURL: server.root });
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto("/");
    const rail = page.locator(".rail");
    await rail.getByRole("heading", { name: "Closing soon" }).waitFor();
    const [next] = (await client.get<{ items: Place[] }>("/feed?size=1&kind=market&sort=closes_at")).items;
    await rail.getByRole("link", { name: next!.question! }).first().waitFor();
    await rail.getByRole("link", { name: "All", exact: true }).click();
    await expect.poll(() => page.url()).toContain("sort=movers");
  });

  test("a star keeps a market or an event in the browser's watchlist, up to its bound", async () => {
    const page = await openPage({ baseURL: server.root });
    await page.goto("/");
    const watched = [await page.locator(".card.binary h2").first().innerText()];
    await page.getByRole("button", { name: `Watch ${watched[0]}` }).click();
    const event = await page.locator(".card.event h2").first().innerText();
    await page.getByRole("button", { name: `Watch ${event}` }).click();
    watched.unshift(event);
    await page.reload();
    await page.getByRole("navigation", { name: "Lists" }).getByText("Watchlist").click();
    await expect.poll(() => titles(page)).toEqual(watched);
    await page.getByRole("button", { name: `Watch ${event}`, pressed: true }).click();
    await expect.poll(() => titles(page)).toEqual(watched.slice(1));
    await page.getByRole("button", { name: `Watch ${watched[1]}` }).click();
    await page.getByText("Mark a market or an event with its star").waitFor();
    // A guest's list goes to the account at the sign-in, and the account has it in another browser.
    await page.getByRole("link", { name: "Markets", exact: true }).first().click();
    await page.getByRole("button", { name: `Watch ${watched[1]}` }).click();
    await signInTo(page, "/?list=watchlist", PERSON, password);
    await expect.poll(() => titles(page)).toEqual([watched[1]]);
    await expect.poll(() => page.evaluate(`localStorage.getItem("watchlist")`)).toBeNull();
    const other = await openPage({ baseURL: server.root });
    await signInTo(other, "/?list=watchlist", PERSON, password);
    await expect.poll(() => titles(other)).toEqual([watched[1]]);
    await other.getByRole("button", { name: `Watch ${watched[1]}` }).click();
    await other.getByText("Mark a market or an event with its star").waitFor();
    await other.close();
    await page.reload();
    await page.getByText("Mark a market or an event with its star").waitFor();
  });

  test("what other programs left in the browser's storage does the feed no harm", async () => {
    const page = await openPage({ baseURL: server.root });
    await page.goto("/?list=watchlist");
    // What other programs left in the browser's storage isn't understood, and does no harm.
    await page.evaluate(`localStorage.setItem("watchlist", "[1,2] market x event 0 market 999999 market 1")`);
    await page.reload();
    await expect.poll(async () => (await titles(page)).length).toBe(1);
  });
});
