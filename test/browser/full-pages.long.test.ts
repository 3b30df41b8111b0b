/** The pages with months of content: the demo's past, as the person who signs in and an operator see it. */
import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DemoFolder, OPERATOR, PERSON } from "../../bench/demo/folder.ts";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { expectQuiet } from "../support/checks.ts";
import { makePast } from "../support/past.ts";
import { TestServer } from "../support/server.ts";
import { expectAccessible } from "./support/accessibility.ts";
import { overflows } from "./support/focus.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, fillInSignIn } from "./support/user-actions.ts";

const SEED = 4_711;
const NARROW = { width: 360, height: 740 };
const MARKET = "/markets/central-bank-next-meeting";
/** Addresses with a text that only the past can have made. */
const PERSONAL: readonly (readonly [path: string, text: RegExp])[] = [
  ["/", /[\d.]+K shares/],
  [MARKET, /Cut leads[\s\S]*in 24 h/],
  ["/markets/champions-cup-winner", /Another/],
  ["/markets/northfield-by-election", /Resolved: Liberals/],
  ["/markets/charity-match-attendance", /Voided/],
  ["/events/champions-cup", /Madrid/],
  ["/portfolio", /Unrealized/],
  ["/portfolio?show=orders", /Good till canceled/],
  ["/portfolio?show=orders&orders=all", /filled/],
  ["/portfolio?show=fills", /bitcoin/],
  ["/portfolio?show=resolved", /Northfield/],
  ["/portfolio?show=transactions", /withdrawal/],
  ["/wallet", /withdrawal/],
  ["/wallet?show=deposits", /wire 2291/],
  ["/wallet?show=withdrawals", /paid/],
];
const AT_DESK: readonly (readonly [path: string, text: RegExp])[] = [
  ["/desk", /Proposals/],
  ["/desk/proposals", /metro line/],
  ["/desk/identity", /newcomer@example\.com/],
  ["/desk/markets", /Champions Cup/],
  ["/desk/audit", /resolve/],
];

describe.skipIf(NO_BROWSER)("pages full of content", () => {
  const openPage = useBrowser();
  let folder: DemoFolder;
  let server: TestServer;

  beforeAll(async () => {
    folder = makePast(SEED, Date.now());
    server = await TestServer.start({ dataDir: folder.path, seed: {} as Seed });
  }, 120_000);
  afterAll(async () => {
    expectQuiet(server);
    await server.stop();
  });

  async function open(email: string, password: string): Promise<Page> {
    // Before signing in, the page asks whether there is a session.
    const page = await openPage({ baseURL: server.root, possible: [/401 \(Unauthorized\)/] });
    await page.goto("/sign-in?to=%2F");
    await fillInSignIn(page, email, password);
    await page.waitForURL((url) => url.pathname !== "/sign-in");
    return page;
  }

  async function expectFull(page: Page, path: string, text: RegExp): Promise<void> {
    await page.goto(path);
    await expectLoaded(page);
    await expect.poll(() => page.getByRole("main").innerText(), { timeout: 20_000 }).toMatch(text);
    await expectAccessible(page);
    const before = page.viewportSize();
    await page.setViewportSize(NARROW);
    expect([path, await overflows(page)]).toEqual([path, []]);
    if (before !== null) await page.setViewportSize(before);
  }

  test("full pages show the person's months, fit a phone and are accessible", { timeout: 120_000 }, async () => {
    const page = await open(PERSON, folder.password);
    for (const [path, text] of PERSONAL) await expectFull(page, path, text);
  });

  test("full pages show operators what waits and what happened", { timeout: 120_000 }, async () => {
    const page = await open(OPERATOR, folder.operatorPassword);
    for (const [path, text] of AT_DESK) await expectFull(page, path, text);
  });

  test("a full portfolio shows its value over time, profits, and the steps of a withdrawal", async () => {
    const page = await open(PERSON, folder.password);
    await page.goto("/portfolio");
    const worth = page.getByRole("region", { name: "Portfolio value" });
    const rows = worth.locator("table tbody tr");
    await expect.poll(() => rows.count(), { timeout: 20_000 }).toBeGreaterThan(20);
    // Nobody trades, so the last point is the value above the line.
    const value = (await worth.locator(".worth").innerText()).replace(/\s*USDC$/, "");
    expect(await rows.last().locator("td").last().textContent()).toBe(value);
    await worth.locator(".area").hover();
    expect(await worth.locator(".tip").innerText()).toMatch(/\d{4}.*\d\d:\d\d [\d,]+\.\d\d$/);
    await worth.getByText("Profit", { exact: true }).first().click();
    const profit = await rows.last().locator("td").last().textContent();
    expect(profit).toMatch(/^[+−][\d,]+\.\d\d$/);
    expect(await worth.innerText()).toContain(`${profit} (`);
    for (const range of ["1D", "1W", "All"]) {
      await worth.getByText(range, { exact: true }).click();
      await expect.poll(() => rows.count(), { timeout: 20_000 }).toBeGreaterThan(20);
    }
    const positions = page.getByRole("region", { name: "Positions" });
    expect(await positions.locator("tfoot").innerText()).toMatch(/^\d+ positions, cost [\d,.]+/);
    expect(await page.getByRole("region", { name: "Wallet" }).innerText()).toMatch(
      /Withdrawal, [\d.]+ USDC[\s\S]*Requested[\s\S]*Paid/,
    );
  });

  test("a full portfolio's lists have a row each, a filter by market, and a file for spreadsheets", async () => {
    const page = await open(PERSON, folder.password);
    const list = (name: string): Locator => page.getByRole("region", { name, exact: true }).locator("tbody tr");
    const cells = async (row: Locator): Promise<string[]> => {
      await row.waitFor();
      return row.locator("td").allInnerTexts();
    };
    await page.goto("/portfolio?show=orders");
    const [placed, , , side, price, , shares, held, lasts] = await cells(list("Open orders").first());
    expect([placed, side, lasts]).toEqual([
      expect.stringMatching(/^\d+ \w{3}, \d\d:\d\d$/),
      "Buy",
      "Good till canceled",
    ]);
    const number = (text: string | undefined): number => Number(text?.replaceAll(",", ""));
    expect(number(held)).toBeCloseTo((number(price) * number(shares)) / 100, 2);
    const live = await list("Open orders").count();
    expect(await page.getByRole("link", { name: `Orders , ${live}` }).count()).toBe(1);
    await page.getByRole("button", { name: `Cancel all ${live}` }).waitFor();
    await page.getByText("All", { exact: true }).last().click();
    await expect.poll(() => list("Order history").count()).toBeGreaterThan(live);

    // The filter: some markets, one, none.
    const filter = page.getByRole("combobox", { name: "Filter by market" });
    await filter.fill("champions");
    await page.getByText(/of your markets have this in their names/).waitFor();
    await page.getByRole("button", { name: "Who will win the Champions Cup?" }).click();
    await expect
      .poll(() => list("Order history").locator("td:nth-child(2)").allInnerTexts())
      .toSatisfy(
        (names: string[]) =>
          names.length > 0 && names.every((name) => name.endsWith("Who will win the Champions Cup?")),
      );
    const file = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    expect((await file).suggestedFilename()).toBe("orders.csv");
    const lines = readFileSync(await (await file).path(), "utf8")
      .trimEnd()
      .split("\r\n");
    expect(lines[0]).toMatch(/^\uFEFF"Placed, UTC",Market,Outcome,Side,/);
    expect(lines.length - 1).toBe(await list("Order history").count());
    for (const line of lines.slice(1)) expect(line).toContain(",Who will win the Champions Cup?,");
    await filter.fill("no such market");
    await page.getByText("None of your markets has this in its name.").waitFor();

    await page.goto("/portfolio?show=fills&market=bitcoin+make");
    await expect.poll(() => list("Fills").count()).toBeGreaterThan(5);
    const fill = await cells(list("Fills").first());
    expect(fill[0]).toMatch(/^\d+ \w{3}, \d\d:\d\d:\d\d$/);
    expect(Math.abs(number(fill[6]?.replace("−", "-")))).toBeCloseTo((number(fill[4]) * number(fill[5])) / 100, 1);

    await page.goto("/portfolio?show=resolved&market=northfield");
    const resolved = await cells(list("Resolved").first());
    expect(resolved.slice(1, 3)).toEqual(["Liberals", expect.stringMatching(/^[\d,]+ Liberals$/)]);
    const [, , , average, cost, paid, profit] = resolved;
    expect(number(profit?.replace("+", ""))).toBeCloseTo(number(paid) - number(cost), 1);
    expect(number(average)).toBeCloseTo((100 * number(cost)) / Number.parseInt(resolved[2] ?? "", 10), 1);

    // On a phone, two lines a row, with all of it to be tapped.
    await page.setViewportSize(NARROW);
    const row = list("Resolved").first();
    expect(await row.innerText()).toMatch(
      /^NB\s+Who will win the Northfield by-election\?\s+\d+ Liberals, result Liberals\s+[\d.]+\s+[+−][\d.]+$/,
    );
    await row.click();
    await page.waitForURL(/\/markets\/northfield-by-election/);
  });

  test("a full chart has trades in every interval, and the book many levels", async () => {
    const page = await open(PERSON, folder.password);
    await page.goto(MARKET);
    await expectLoaded(page);
    for (const interval of ["1H", "6H", "1D", "1W", "1M", "All"]) {
      await page.getByText(interval, { exact: true }).first().click();
      await expectLoaded(page);
      await page.getByText("Show as table").click();
      // The last hour may be a quiet one.
      const few = interval === "1H" ? 0 : 5;
      await expect.poll(() => page.locator(".chart table tbody tr").count(), { timeout: 20_000 }).toBeGreaterThan(few);
      await page.getByText("Show as table").click();
    }
    expect(await page.locator(".levels .level").count()).toBeGreaterThanOrEqual(20);
  });
});
