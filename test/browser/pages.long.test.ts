/** Every page, as a visitor, a trader and an operator see it: on desktop and phone, in light and dark mode. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PAGE_PATHS, type PagePath } from "../../server/web/paths.ts";
import { expectEndsWell } from "../support/checks.ts";
import { expectAccessible } from "./support/accessibility.ts";
import { NO_BROWSER, screenshotOnPhone, useBrowser } from "./support/page.ts";
import { EVENT, type Scene, setScene } from "./support/scene.ts";
import { expectLoaded, signInTo } from "./support/user-actions.ts";

/** For tests that visit many pages. */
const LONG = { timeout: 240_000 };
/** The narrowest phones still in use. */
const NARROW = { width: 360, height: 740 };

type Addresses = Partial<Record<PagePath, readonly string[]>>;

const VISITOR_PAGES: Addresses = {
  "/": ["/"],
  "/markets/:market": ["/markets/market-0", "/markets/market-1"],
  "/sign-in": ["/sign-in"],
  "/sign-in/done": ["/sign-in/done"],
  "/sign-up": ["/sign-up"],
  "/verify-email": ["/verify-email", "/verify-email?token=abc"],
  "/forgot-password": ["/forgot-password"],
  "/reset-password": ["/reset-password?token=abc"],
  "/docs": ["/docs"],
  "/docs/:document": ["/docs/rest", "/docs/websocket"],
};
const PORTFOLIO_SECTIONS = ["orders", "history", "fills", "settlements", "sets"];

const traderPages = ({ app }: Scene): Addresses => ({
  "/markets/:market": ["/markets/market-0?side=sell", "/markets/market-2"],
  "/events/:event": [`/events/${EVENT}`],
  "/portfolio": ["/portfolio", ...PORTFOLIO_SECTIONS.map((name) => `/portfolio?show=${name}`)],
  "/wallet": ["/wallet", "/wallet?show=deposits", "/wallet?show=withdrawals"],
  "/propose": ["/propose"],
  "/welcome": ["/welcome"],
  "/account": ["/account"],
  "/account/tokens": ["/account/tokens"],
  "/account/apps": ["/account/apps"],
  "/account/sessions": ["/account/sessions"],
  "/account/security": ["/account/security"],
  "/consent": [`/consent?${new URLSearchParams(app.request("portfolio:read orders:write").params)}`],
  "/desk": ["/desk"],
});

const SECTIONS = [
  "proposals",
  "identity",
  "withdrawals",
  "approvals",
  "deposits",
  "house",
  "markets",
  "users",
  "audit",
];
const OPERATOR_PAGES: Addresses = {
  "/desk": ["/desk"],
  "/desk/:section": SECTIONS.map((name) => `/desk/${name}`),
};

describe.skipIf(NO_BROWSER)("every page", () => {
  const openPage = useBrowser();
  let scene: Scene;
  beforeAll(async () => {
    scene = await setScene();
  });
  afterAll(() => expectEndsWell(scene.world));

  test("is covered by this file", () => {
    const shown = [VISITOR_PAGES, traderPages(scene), OPERATOR_PAGES].flatMap((each) => Object.keys(each));
    expect([...new Set(shown)].sort()).toEqual([...PAGE_PATHS].sort());
  });

  test("has a heading and a title, is accessible, and needs no horizontal scrolling: for a visitor", LONG, async () => {
    const expected = [/ 400 .*auth\/refresh/];
    await checkAll(await openPage({ baseURL: scene.world.server.root, expected }), "visitor", VISITOR_PAGES);
  });

  test("for a trader", LONG, async () => {
    // A user who never applied for tier 2 has no application.
    const page = await openPage({ baseURL: scene.world.server.root, expected: [/ 404 .*me\/identity/] });
    await signInTo(page, "/portfolio", "trader@example.com");
    await checkAll(page, "trader", traderPages(scene));
  });

  test("for an operator", LONG, async () => {
    const page = await openPage({ baseURL: scene.world.server.root });
    await signInTo(page, "/desk", "operator@example.com");
    await checkAll(page, "operator", OPERATOR_PAGES);
  });
});

async function checkAll(page: Page, who: string, addresses: Addresses): Promise<void> {
  const faults: string[] = [];
  for (const [first, ...others] of Object.values(addresses)) {
    for (const address of [first!, ...others]) {
      await page.goto(address);
      await expectLoaded(page);
      // Sections of a page share their colors: check dark mode once.
      const found = await faultsOf(page, address === first);
      faults.push(...found.map((fault) => `${who} ${address}: ${fault}`));
      await screenshotOnPhone(page, `${who}${address.replaceAll(/\W+/g, "-").slice(0, 40)}`);
    }
  }
  expect(faults).toEqual([]);
}

async function faultsOf(page: Page, isCheckedInDark: boolean): Promise<string[]> {
  const faults: string[] = [];
  if ((await page.locator("h1").count()) !== 1) faults.push("it doesn't have exactly one h1");
  if ((await page.title()) === "") faults.push("it has no title");
  const before = page.viewportSize()!;
  await expectAccessible(page).catch((error: Error) => faults.push(error.message));
  if (isCheckedInDark) {
    await page.emulateMedia({ colorScheme: "dark" });
    await expectAccessible(page, ["color-contrast"]).catch((error: Error) => faults.push(`dark: ${error.message}`));
    await page.emulateMedia({ colorScheme: "light" });
  }
  for (const size of [before, NARROW]) {
    await page.setViewportSize(size);
    const excess = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    if (excess > 0) faults.push(`${excess} pixels wider than ${size.width}`);
  }
  await page.setViewportSize(before);
  return faults;
}
