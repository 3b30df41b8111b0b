/**
 * The page under programs that change its text, as translations and extensions do: what it shows stays true, and where it
 * can't, it says so.
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { BUY, terms } from "../support/terms.ts";
import type { TestMarket, World } from "../support/world.ts";
import { startWithOffers } from "./support/offers.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, fillInTicket, PATIENTLY, signInTo, ticketOf } from "./support/user-actions.ts";

/**
 * "Translates" into capitals, now and whenever the page changes. Numbers stay as they are, and are wrapped as well.
 * @param isObedient leaves what has translate="no" alone
 */
const TRANSLATOR = `(way, isObedient) => {
  const WAYS = {
    "replaces each text by elements": (text, font) => text.replaceWith(font),
    "puts elements beside each text and removes it": (text, font) => { text.before(font); text.remove(); },
    "wraps each text": (text, font) => {
      font.replaceChildren();
      text.replaceWith(font);
      font.append(text);
      text.data = text.data.toUpperCase();
    },
    "changes each text": (text) => { text.data = text.data.toUpperCase(); },
  };
  const done = new WeakMap();
  const translate = (text) => {
    if (done.get(text) === text.data || text.parentElement === null || text.parentElement.closest("font, style, .broken")) return;
    if (isObedient && text.parentElement.translate === false) return;
    if (text.data.trim() === "") return;
    const font = document.createElement("font");
    const inner = document.createElement("font");
    inner.textContent = text.data.toUpperCase();
    done.set(inner.firstChild, inner.textContent);
    font.append(inner);
    done.set(text, text.data.toUpperCase());
    WAYS[way](text, font);
  };
  const all = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const texts = [];
    for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) texts.push(text);
    texts.forEach(translate);
  };
  all(document.body);
  new MutationObserver((records) => {
    for (const { type, target, addedNodes } of records) {
      if (type === "characterData") translate(target);
      else for (const node of addedNodes) node instanceof Text ? translate(node) : all(node);
    }
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}`;

const CHANGES = "changes each text";
const WAYS = [
  "replaces each text by elements",
  "puts elements beside each text and removes it",
  "wraps each text",
  CHANGES,
];

describe.skipIf(NO_BROWSER)("with a program that changes the page's text", () => {
  const openPage = useBrowser();
  let world: World;
  let maker: Client;
  let market: TestMarket;

  beforeAll(async () => {
    ({ world, maker, market } = await startWithOffers());
  });
  afterAll(() => expectEndsWell(world));

  async function openMarket(): Promise<Page> {
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, `/markets/${market.slug}`, "trader@example.com");
    await expectLoaded(page);
    return page;
  }

  /** All text of the page, without the differences that a translation makes. */
  async function textOf(page: Page): Promise<string> {
    await expectLoaded(page);
    const text = await page.evaluate<string>(
      `[...document.querySelectorAll("#page > *")].filter((each) => !each.matches(".toasts")).map((each) => each.innerText).join("\\n")`,
    );
    return text.toUpperCase().replace(/\s+/g, " ");
  }

  const bannerOf = (page: Page) => page.locator(".broken");
  const translate = (page: Page, way: string, isObedient: boolean): Promise<unknown> =>
    page.evaluate(`(${TRANSLATOR})(${JSON.stringify(way)}, ${isObedient})`);

  async function enter(page: Page, price: string, shares: string): Promise<void> {
    await fillInTicket(page, { side: "Buy", price, shares });
  }

  const summaryOf = (page: Page): Promise<string> =>
    ticketOf(page)
      .locator("dl.order-summary")
      .evaluate((list) => String(Reflect.get(list, "innerText")).toUpperCase().replace(/\s+/g, " "));

  test.each(
    WAYS.flatMap((way) => [true, false].map((isObedient) => [way, isObedient ? "leaves" : "ignores"] as const)),
  )('a page that a program translates: one that %s and %s translate="no"', async (way, isObedient) => {
    const [page, plain] = [await openMarket(), await openMarket()];
    await translate(page, way, isObedient === "leaves");
    // Each entry is shown, and the last one is sent.
    for (const shares of ["3", "70", "7"]) {
      await enter(page, "50", shares);
      await expect.poll(() => summaryOf(page), PATIENTLY).toContain(`COST ${(Number(shares) / 2).toFixed(2)}`);
    }
    const button = ticketOf(page).locator("button[type=submit]");
    expect((await button.textContent())?.toUpperCase()).toBe("BUY OUTCOME 0");
    await button.click();
    await expect.poll(() => ticketOf(page).locator(".result h3").textContent(), PATIENTLY).toMatch(/bought 7/i);
    // Somebody else's price appears and goes.
    const order = await maker.place(terms(market, 0, BUY, 4_900, 1));
    const bids = () => page.locator(".book .bids .level .up").allTextContents();
    await expect.poll(bids, PATIENTLY).toContain("49.0");
    await maker.request("DELETE", `/orders/${order.id}`);
    await expect.poll(bids, PATIENTLY).not.toContain("49.0");
    // All that it shows is what a page without that program shows.
    await ticketOf(page).locator(".result .ink").click();
    for (const path of [null, "/portfolio", "/wallet", "/", null]) {
      for (const each of [page, plain]) {
        if (path === null) continue;
        await each.locator(`header.top a[href="${path}"]`).first().click();
        await each.waitForURL((url) => url.pathname === path);
        await expectLoaded(each);
      }
      if (path === null) continue;
      // Either may show its figures later.
      await expect.poll(async () => (await textOf(page)) === (await textOf(plain)), PATIENTLY).toBe(true);
    }
    // One that keeps changing names in their places is reported.
    expect(await bannerOf(page).count()).toBe(way === CHANGES && isObedient === "ignores" ? 1 : 0);
  });

  test("elements that another program takes away are said to be missing, with a way to load the page anew", async () => {
    const page = await openMarket();
    await page.evaluate(`document.querySelector(".page-facts > div").remove()`);
    await expect.poll(() => bannerOf(page).textContent(), PATIENTLY).toContain("another program");
    await bannerOf(page).getByRole("button", { name: "Reload" }).click();
    await expect.poll(() => bannerOf(page).count(), PATIENTLY).toBe(0);
    await expectLoaded(page);
    expect(await page.locator(".page-facts > div").count()).toBeGreaterThan(1);
  });

  test("the page says so if a program changes its numbers again and again", async () => {
    const page = await openMarket();
    await page.evaluate(`{
      const text = document.querySelector(".chart-head .legend b").firstChild;
      new MutationObserver(() => { if (text.data !== "1%") text.data = "1%"; }).observe(text, { characterData: true });
      text.data = "1%";
    }`);
    await expect.poll(() => bannerOf(page).count(), PATIENTLY).toBe(1);
  });
});
