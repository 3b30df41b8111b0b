/** Every page, as a visitor, a trader and an operator see it: on desktop and phone, in light and dark mode. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PAGE_PATHS, type PagePath } from "../../server/http/page-paths.ts";
import { expectEndsWell } from "../support/checks.ts";
import { operatorOf } from "../support/operator.ts";
import { expectAccessible } from "./support/accessibility.ts";
import { hiddenStops, overflows } from "./support/focus.ts";
import { NO_BROWSER, PHONE, screenshotOnPhone, useBrowser } from "./support/page.ts";
import { EVENT, type Scene, setScene } from "./support/scene.ts";
import { expectLoaded, signInTo } from "./support/user-actions.ts";

/** For tests that visit many pages. */
const LONG = { timeout: 240_000 };
/** Most browsers' letters, pixels. */
const LETTERS = 16;
/** The narrowest phones still in use. */
const NARROW = { width: 360, height: 740 };
/** A laptop at 200 %. */
const LARGE = { width: 1_440, height: 900 };
const ZOOMED = { width: 640, height: 400 };
/** A laptop at 400 %; a phone held across with its keyboard open leaves about as much. */
const TINY = { width: 320, height: 256 };

type Addresses = Partial<Record<PagePath, readonly string[]>>;

const VISITOR_PAGES: Addresses = {
  "/": ["/"],
  "/markets/:market": ["/markets/market-0", "/markets/market-1"],
  "/search": ["/search", "/search?q=market"],
  "/sign-in": ["/sign-in"],
  "/sign-in/done": ["/sign-in/done"],
  "/sign-up": ["/sign-up"],
  "/verify-email": ["/verify-email", "/verify-email?token=abc"],
  "/forgot-password": ["/forgot-password"],
  "/reset-password": ["/reset-password?token=abc"],
  "/unsubscribe/:token": ["/unsubscribe/1.abc"],
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

  test("every page is covered by this file", () => {
    const shown = [VISITOR_PAGES, traderPages(scene), OPERATOR_PAGES].flatMap((each) => Object.keys(each));
    expect([...new Set(shown)].sort()).toEqual([...PAGE_PATHS].sort());
  });

  test(
    "every page has a heading and a title, is accessible, and needs no horizontal scrolling: for a visitor",
    LONG,
    async () => {
      const expected = [/ 400 .*auth\/refresh/];
      await checkAll(await openPage({ baseURL: scene.world.server.root, expected }), "visitor", VISITOR_PAGES);
    },
  );

  test(
    "every page has a heading and a title, is accessible, and needs no horizontal scrolling: for a trader",
    LONG,
    async () => {
      const page = await openPage({ baseURL: scene.world.server.root });
      await signInTo(page, "/portfolio", "trader@example.com");
      await checkAll(page, "trader", traderPages(scene));
    },
  );

  test(
    "every page has a heading and a title, is accessible, and needs no horizontal scrolling: for an operator",
    LONG,
    async () => {
      const page = await openPage({ baseURL: scene.world.server.root });
      await signInTo(page, "/desk", "operator@example.com");
      await checkAll(page, "operator", OPERATOR_PAGES);
    },
  );

  test("dialogs fit on a window of 320 by 256, and hold large letters", LONG, async () => {
    const { server } = scene.world;
    const operator = await operatorOf(server);
    await operator.data("POST", "/admin/markets/2/close", {});
    operator.close();
    for (const [who, dialogs] of [
      ["trader", TRADER_DIALOGS],
      ["operator", OPERATOR_DIALOGS],
    ] as const) {
      const page = await openPage({ baseURL: server.root });
      await signInTo(page, "/portfolio", `${who}@example.com`);
      await checkDialogs(page, dialogs);
    }
  });
});

/** By address: the buttons that open a dialog there. */
const TRADER_DIALOGS: Readonly<Record<string, readonly RegExp[]>> = {
  "/portfolio?show=orders": [/^Cancel all \d/, /^Amend order/],
  "/markets/market-0": [/^Buy/, /^Set a price alert/],
  "/account": [/^Trading settings$/],
  "/account/tokens": [/^Revoke token/],
  "/account/apps": [/^Revoke access/, /^Delete/],
  "/account/sessions": [/^Sign out everywhere/, /^End session/],
  "/account/security": [/^Add authenticator app$/],
};
const OPERATOR_DIALOGS: Readonly<Record<string, readonly RegExp[]>> = {
  "/desk/proposals": [/^Approve/, /^Reject/],
  "/desk/identity": [/^Approve/, /^Reject/],
  "/desk/withdrawals": [/^Pay/, /^Reject/, /^Revoke/],
  "/desk/approvals": [/^Revoke/],
  "/desk/deposits": [/^Reverse/],
  "/desk/markets?market=1": [/^Halt$/, /^Close$/, /^Edit$/],
  "/desk/markets?market=2": [/^Resolve/, /^Void/],
  "/desk/users?user=1": [/^Suspend/, /^Edit terms$/],
};

/** Opens each dialog on a window of 320 by 256, and with large letters. */
async function checkDialogs(page: Page, dialogs: Readonly<Record<string, readonly RegExp[]>>): Promise<void> {
  const faults: string[] = [];
  for (const [address, names] of Object.entries(dialogs)) {
    await page.setViewportSize(TINY);
    await page.goto(address);
    await expectLoaded(page);
    for (const name of names) {
      await page.getByRole("button", { name }).first().click();
      await page.getByRole("dialog").waitFor();
      for (const [what, size, letters] of [
        ["at 320 by 256", TINY, LETTERS],
        ["with large letters", ZOOMED, 2 * LETTERS],
      ] as const) {
        await page.setViewportSize(size);
        await setLetters(page, letters);
        const found = await layoutFaultsOf(page);
        faults.push(...found.map((fault) => `${address}, ${name}, ${what}: ${fault}`));
      }
      await page.setViewportSize(TINY);
      await setLetters(page, LETTERS);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
  }
  expect(faults).toEqual([]);
}

async function checkAll(page: Page, who: string, addresses: Addresses): Promise<void> {
  const faults: string[] = [];
  for (const [first, ...others] of Object.values(addresses)) {
    for (const address of [first!, ...others]) {
      await page.goto(address);
      await expectLoaded(page);
      // Sections of a page share their colors and their layout.
      const found = await faultsOf(page, address === first);
      faults.push(...found.map((fault) => `${who} ${address}: ${fault}`));
      await screenshotOnPhone(page, `${who}${address.replaceAll(/\W+/g, "-").slice(0, 40)}`);
    }
  }
  expect(faults).toEqual([]);
}

/** @param isWhole at both widths and in both themes */
async function faultsOf(page: Page, isWhole: boolean): Promise<string[]> {
  const faults: string[] = [];
  if ((await page.locator("h1").count()) !== 1) faults.push("it doesn't have exactly one h1");
  if ((await page.title()) === "") faults.push("it has no title");
  const before = page.viewportSize()!;
  if (!isWhole) await expectAccessible(page).catch((error: Error) => faults.push(error.message));
  else {
    for (const size of [LARGE, PHONE]) {
      await page.setViewportSize(size);
      for (const colorScheme of ["dark", "light"] as const) {
        await page.emulateMedia({ colorScheme });
        const where = `${colorScheme}, ${size.width} wide`;
        await expectAccessible(page).catch((error: Error) => faults.push(`${where}: ${error.message}`));
      }
    }
    await page.setViewportSize(before);
  }
  for (const size of [before, NARROW, ZOOMED, TINY]) {
    await page.setViewportSize(size);
    faults.push(...(await layoutFaultsOf(page)).map((fault) => `at ${size.width} by ${size.height}: ${fault}`));
  }
  await page.setViewportSize(before);
  await setLetters(page, 2 * LETTERS);
  faults.push(...(await layoutFaultsOf(page)).map((fault) => `with large letters: ${fault}`));
  await setLetters(page, LETTERS);
  return faults;
}

/** The browser's setting, pixels. */
async function setLetters(page: Page, standard: number): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Page.setFontSizes", { fontSizes: { standard, fixed: standard } });
  await session.detach();
}

/** Nothing is wider than the window, and the focus is always seen. */
async function layoutFaultsOf(page: Page): Promise<string[]> {
  // The page measures what sticks to its edges once a frame.
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  const excess = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  const wide = excess > 0 ? [`${excess} pixels too wide`] : [];
  return [...wide, ...(await overflows(page)), ...(await hiddenStops(page))];
}
