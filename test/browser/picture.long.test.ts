/** An operator gives a market a picture at the desk, and takes it away; traders see it at once. */
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { OPERATORS } from "../support/markets.ts";
import { type TestMarket, World } from "../support/world.ts";
import { NO_BROWSER, useBrowser } from "./support/page.ts";
import { expectLoaded, PATIENTLY, signInTo } from "./support/user-actions.ts";

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
/** Larger than the exchange takes: the page scales it down. */
const LARGE = file("../../docs/figures/page.webp");
const NO_PICTURE = file("../../package.json");

describe.skipIf(NO_BROWSER)("a market's picture", () => {
  const openPage = useBrowser();
  let world: World;
  let market: TestMarket;

  beforeAll(async () => {
    world = await World.start({ named: OPERATORS });
    market = world.market();
  });
  afterAll(() => expectEndsWell(world));

  /** The width of the picture of the tile, in the file's pixels; 0 for initials. */
  const shownIn = (page: Page, selector: string): Promise<unknown> =>
    page.evaluate(`document.querySelector(${JSON.stringify(`${selector} img.tile`)})?.naturalWidth ?? 0`);

  test("a market's picture is chosen and removed at the desk, and shown to who looks at the market", async () => {
    const reader = await openPage({ baseURL: world.server.root });
    await reader.goto(`/markets/${market.slug}`);
    await expectLoaded(reader);
    expect(await shownIn(reader, ".market-head")).toBe(0);

    const desk = await openPage({ baseURL: world.server.root });
    await signInTo(desk, `/desk/markets?market=${market.id}`, "operator@example.com");
    const dialog = desk.getByRole("dialog");
    const edit = async (): Promise<void> => {
      await desk.getByRole("button", { name: "Edit", exact: true }).click();
      await dialog.waitFor();
    };
    const save = async (): Promise<void> => {
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.waitFor({ state: "detached" });
    };
    await edit();
    await dialog.getByLabel("Picture").setInputFiles(NO_PICTURE);
    await dialog.getByText(/can't read this file/).waitFor();
    await dialog.getByLabel("Picture").setInputFiles(LARGE);
    await expect.poll(() => shownIn(desk, "dialog"), PATIENTLY).toBe(192);
    // What is removed before it was saved is gone from the dialog.
    await dialog.getByRole("button", { name: "Remove" }).click();
    expect(await shownIn(desk, "dialog")).toBe(0);
    await dialog.getByLabel("Picture").setInputFiles([]);
    await dialog.getByLabel("Picture").setInputFiles(LARGE);
    await expect.poll(() => shownIn(desk, "dialog"), PATIENTLY).toBe(192);
    await save();
    await expect.poll(() => shownIn(reader, ".market-head"), PATIENTLY).toBe(96);
    await reader.goto("/");
    await expect.poll(() => shownIn(reader, "main"), PATIENTLY).toBe(96);

    await edit();
    await expect.poll(() => shownIn(desk, "dialog"), PATIENTLY).toBe(96);
    await dialog.getByRole("button", { name: "Remove" }).click();
    expect(await shownIn(desk, "dialog")).toBe(0);
    await save();
    await reader.goto(`/markets/${market.slug}`);
    await expectLoaded(reader);
    expect(await shownIn(reader, ".market-head")).toBe(0);
  });
});
