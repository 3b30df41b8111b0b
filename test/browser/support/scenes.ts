/** The pages that are drawn in the design, as a visitor of the demo's past gets to them. */
import type { Page } from "playwright-core";

export interface Scene {
  /** Of the picture, without its theme. */
  readonly name: string;
  readonly path: string;
  readonly width: number;
  readonly height: number;
  /** A visitor who isn't signed in. */
  readonly isGuest?: boolean;
  /** What shows that the page is drawn. */
  readonly shows: string;
  /** What the visitor does there. */
  readonly steps?: (page: Page) => Promise<void>;
}

const BINARY = "/markets/election-turnout-above-70";
const THREE = "/markets/central-bank-next-meeting";
const SIX = "/markets/champions-cup-winner";
const CHART = ".chart canvas";
const DESK = { width: 1_440, height: 900 };
const PHONE = { width: 390, height: 844 };

export const SCENES: readonly Scene[] = [
  { name: "feed", path: "/", ...DESK, shows: "main article" },
  { name: "feed-768", path: "/", width: 768, height: 900, shows: "main article" },
  { name: "feed-2560", path: "/", width: 2_560, height: 1_440, shows: "main article" },
  { name: "event", path: "/events/general-election", ...DESK, shows: "main h1" },
  { name: "market", path: BINARY, ...DESK, shows: CHART },
  { name: "market-1366", path: BINARY, width: 1_366, height: 768, shows: CHART },
  {
    name: "market-candles",
    path: BINARY,
    ...DESK,
    shows: CHART,
    steps: (page) => page.locator(".chart label").filter({ hasText: "Candles" }).click(),
  },
  { name: "market-three", path: THREE, ...DESK, shows: CHART },
  { name: "market-six", path: SIX, ...DESK, shows: CHART },
  { name: "portfolio", path: "/portfolio", ...DESK, shows: "main table" },
  { name: "portfolio-orders", path: "/portfolio?show=orders", ...DESK, shows: "main table" },
  { name: "sign-in", path: "/sign-in", ...DESK, isGuest: true, shows: "main form" },
  { name: "sign-up", path: "/sign-up", ...DESK, isGuest: true, shows: "main form" },
  { name: "phone-feed", path: "/", ...PHONE, shows: "main article" },
  { name: "phone-market", path: BINARY, ...PHONE, shows: CHART },
  {
    name: "phone-ticket",
    path: BINARY,
    ...PHONE,
    shows: CHART,
    steps: (page) =>
      page
        .getByRole("button", { name: /^Buy Yes/ })
        .last()
        .click(),
  },
  { name: "phone-portfolio", path: "/portfolio", ...PHONE, shows: "main" },
];
