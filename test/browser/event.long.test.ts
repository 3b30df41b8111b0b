/** The page of an event: the market that leads it, with its ticket, and the others; and the way between them. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client, MarketJson } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { asOperator, OPERATORS, settle } from "../support/markets.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { type TestMarket, World } from "../support/world.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, fillInTicket, orderResultOf, PATIENTLY, signInTo, ticketOf } from "./support/user-actions.ts";

describe.skipIf(NO_BROWSER)("an event's page", () => {
  const openPage = useBrowser();
  let world: World;
  let maker: Client;
  /** In the event: the first is traded most, the third has ended. */
  let parties: TestMarket;
  let turnout: TestMarket;

  beforeAll(async () => {
    world = await World.start({ users: 2, named: { ...OPERATORS, trader: { password: PASSWORD } } });
    const operator = await asOperator(world);
    const { id: event_id } = await operator.data<{ id: number }>("POST", "/admin/events", {
      slug: "election",
      title: "The election",
      category: "politics",
    });
    const make = async (slug: string, question: string, ...outcomes: string[]): Promise<TestMarket> => {
      const body = { slug, question, outcomes, event_id };
      const made = await operator.data<MarketJson>("POST", "/admin/markets", body);
      return { id: made.id, slug, outcomes: made.outcomes.map(({ id }) => id) };
    };
    parties = await make("parties", "Which party wins?", "Red", "Blue", "Green");
    turnout = await make("turnout", "Is turnout above 70 %?", "Yes", "No");
    const early = await make("early", "Is it called early?", "Yes", "No");
    const ended = await make("by-election", "Who won the by-election?", "Red", "Blue");
    await settle(operator, ended, { outcome_id: ended.outcomes[0] });
    operator.close();
    maker = world.user();
    for (const [market, price] of [
      [parties, 4_000],
      [turnout, 6_000],
    ] as const) {
      await world.split(maker, market, 500);
      await maker.place(terms(market, 0, SELL, price, 300));
      await maker.place(terms(market, 0, BUY, price - 200, 100));
    }
    const taker = world.user();
    await taker.place(terms(parties, 0, BUY, 4_000, 10));
    // No alone has traded, and nothing is left in the book.
    await world.split(maker, early, 5);
    await maker.place(terms(early, 1, SELL, 8_000, 5));
    await taker.place(terms(early, 1, BUY, 8_000, 5));
  });
  afterAll(() => expectEndsWell(world));

  const open = async (path: string): Promise<Page> => {
    const page = await openPage({ baseURL: world.server.root });
    await signInTo(page, path, "trader@example.com");
    await expectLoaded(page);
    return page;
  };

  test("an event's page leads with its most traded market, which can be traded there, and lists the others", async () => {
    const page = await open("/events/election");
    const main = page.getByRole("main");
    expect(await main.getByRole("heading", { level: 1 }).textContent()).toBe("The election");
    await main.getByRole("heading", { name: "Which party wins?" }).waitFor();
    await main.getByText("Red leads").waitFor();
    const others = main.getByRole("region", { name: "Other markets of this event" });
    expect(await others.getByRole("row").filter({ hasText: "turnout" }).textContent()).toMatch(/59%.*Yes.*60\.0¢.*No/);
    expect(await others.getByRole("row").filter({ hasText: "early" }).textContent()).toMatch(/early\?20%/);
    await main.getByRole("region", { name: "Ended" }).getByText("Resolved: Red").waitFor();
    // No part of a single market that the event has no room for.
    expect(await main.getByRole("heading", { name: "Rules" }).count()).toBe(0);

    await main
      .getByRole("row")
      .filter({ hasText: "Green" })
      .getByRole("button", { name: "Green", exact: true })
      .click();
    await expect.poll(() => page.url(), PATIENTLY).toContain(`outcome=${parties.outcomes[2]}`);
    await main.getByRole("row").filter({ hasText: "Red" }).getByRole("button", { name: /^Buy/ }).click();
    await fillInTicket(page, { side: "Buy", price: "40", shares: "5" });
    await ticketOf(page).getByRole("button", { name: "Buy Red" }).click();
    await expect.poll(() => orderResultOf(page), PATIENTLY).toContain("Average price: 40.0¢");
  });

  test("an event's page marks a price that moves, for a moment", async () => {
    const page = await open("/events/election");
    const price = page.getByRole("row").filter({ hasText: "turnout" }).locator(".price-button b").first();
    await expect.poll(() => price.textContent(), PATIENTLY).toBe("60.0¢");
    // Prices out of view aren't followed.
    await price.scrollIntoViewIfNeeded();
    await page.evaluate(`(() => {
      window.moves = [];
      new MutationObserver((all) => {
        for (const { target } of all) if (target.dataset.moved) window.moves.push(target.textContent + " " + target.dataset.moved);
      }).observe(document.querySelector("main"), { subtree: true, attributeFilter: ["data-moved"] });
    })()`);
    await maker.place(terms(turnout, 0, SELL, 5_900, 10));
    await expect.poll(() => price.textContent(), PATIENTLY).toBe("59.0¢");
    await expect.poll(() => page.evaluate("window.moves"), PATIENTLY).toContain("59.0¢ down");
    await expect.poll(() => page.locator("[data-moved]").count(), PATIENTLY).toBe(0);
  });

  test("the pages of an event's markets lead to each other", async () => {
    const page = await open("/markets/turnout");
    expect(await page.getByRole("navigation", { name: "Main" }).getByText("Markets").getAttribute("aria-current")).toBe(
      "true",
    );
    const strip = page.getByRole("navigation", { name: "Markets of the event The election" });
    expect(await strip.getByRole("link").count()).toBe(3);
    await strip.getByRole("link", { name: "Is it called early? Yes 20%" }).waitFor();
    expect(await strip.locator("[aria-current=page]").textContent()).toMatch(/turnout.*Yes \d\d%/);
    await strip.getByRole("link", { name: /Which party wins/ }).click();
    await page.getByRole("heading", { level: 1, name: "Which party wins?" }).waitFor();
    await page.getByRole("main").getByRole("link", { name: "The election" }).click();
    await page.getByRole("heading", { level: 1, name: "The election" }).waitFor();
  });
});
