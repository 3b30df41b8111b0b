/** Every page, as a stranger, a trader and an operator see it: on a desk and on a phone, in light and in dark. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PAGE_PATHS, type PagePath } from "../../server/web/paths.ts";
import { expectEndsWell } from "../support/checks.ts";
import { expectAccessible } from "./support/accessibility.ts";
import { describeInBrowser, screenshotOnPhone } from "./support/page.ts";
import { expectLoaded, signInTo } from "./support/person.ts";
import { EVENT, type Scene, setScene } from "./support/scene.ts";

/** For a test that looks at so many. */
const LONG = { timeout: 240_000 };
/** The narrowest phones that are still about. */
const NARROW = { width: 360, height: 740 };

type Addresses = Partial<Record<PagePath, readonly string[]>>;

const OF_STRANGERS: Addresses = {
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
const SHOWN_OF_PORTFOLIO = ["orders", "history", "fills", "settlements", "sets"];

const ofTraders = ({ app }: Scene): Addresses => ({
  "/markets/:market": ["/markets/market-0?side=sell", "/markets/market-2"],
  "/events/:event": [`/events/${EVENT}`],
  "/portfolio": ["/portfolio", ...SHOWN_OF_PORTFOLIO.map((name) => `/portfolio?show=${name}`)],
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
const OF_OPERATORS: Addresses = {
  "/desk": ["/desk"],
  "/desk/:section": SECTIONS.map((name) => `/desk/${name}`),
};

describeInBrowser("every page", (openPage) => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await setScene();
  });
  afterAll(() => expectEndsWell(scene.world));

  test("is among these", () => {
    const shown = [OF_STRANGERS, ofTraders(scene), OF_OPERATORS].flatMap((each) => Object.keys(each));
    expect([...new Set(shown)].sort()).toEqual([...PAGE_PATHS].sort());
  });

  test("has a heading and a title, no barriers, and needs no sideways scrolling: a stranger's", LONG, async () => {
    const expected = [/ 400 .*auth\/refresh/];
    await lookAtAll(await openPage({ baseURL: scene.world.server.root, expected }), "stranger", OF_STRANGERS);
  });

  test("and a trader's", LONG, async () => {
    // Who never asked for tier 2 has no application.
    const page = await openPage({ baseURL: scene.world.server.root, expected: [/ 404 .*me\/identity/] });
    await signInTo(page, "/portfolio", "trader@example.com");
    await lookAtAll(page, "trader", ofTraders(scene));
  });

  test("and an operator's", LONG, async () => {
    const page = await openPage({ baseURL: scene.world.server.root });
    await signInTo(page, "/desk", "operator@example.com");
    await lookAtAll(page, "operator", OF_OPERATORS);
  });
});

async function lookAtAll(page: Page, who: string, addresses: Addresses): Promise<void> {
  const faults: string[] = [];
  for (const [first, ...others] of Object.values(addresses)) {
    for (const address of [first!, ...others]) {
      await page.goto(address);
      await expectLoaded(page);
      // Parts of one page have the same colours.
      const found = await faultsOf(page, address === first);
      faults.push(...found.map((fault) => `${who} ${address}: ${fault}`));
      await screenshotOnPhone(page, `${who}${address.replaceAll(/\W+/g, "-").slice(0, 40)}`);
    }
  }
  expect(faults).toEqual([]);
}

async function faultsOf(page: Page, isLookedAtInDark: boolean): Promise<string[]> {
  const faults: string[] = [];
  if ((await page.locator("h1").count()) !== 1) faults.push("there isn't one heading of the first rank");
  if ((await page.title()) === "") faults.push("it has no title");
  const before = page.viewportSize()!;
  await expectAccessible(page).catch((error: Error) => faults.push(error.message));
  if (isLookedAtInDark) {
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
