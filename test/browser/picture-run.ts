/**
 * `npm run picture`: takes the pictures of docs/figures from the demo's past, as the person who signs in sees it. With a
 * folder, `npm run picture -- FOLDER`, takes every scene in light and dark into it; with a folder of drawn pictures of
 * the same names besides, `npm run picture -- FOLDER DRAWN`, FOLDER/index.html shows each beside the drawn one.
 * Needs Chromium. Takes ten seconds, or two minutes.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { BOTS } from "../../bench/demo/crowd.ts";
import { DemoExchange } from "../../bench/demo/exchange.ts";
import { openFolder, PERSON } from "../../bench/demo/folder.ts";
import { makePast } from "../../bench/demo/past-process.ts";
import { ROOT } from "../../bench/support/root.ts";
import { launch } from "./support/browser.ts";
import { SCENES, type Scene } from "./support/scenes.ts";

const FIGURES = fileURLToPath(new URL("docs/figures/", ROOT));
const THEMES = ["light", "dark"] as const;
type Theme = (typeof THEMES)[number];
/** The figures: a scene's name, the theme, and the file's name. */
const SHOWN: readonly (readonly [scene: string, theme: Theme, file: string])[] = [
  ["market-three", "light", "page.webp"],
  ["feed", "dark", "feed.webp"],
  ["phone-ticket", "light", "phone.webp"],
];
const SEED = 1;
const QUALITY = 80;
/** The charts and their labels are drawn. */
const DRAWN_MS = 1_000;
/** On a busy machine. */
const PATIENCE_MS = 120_000;

interface Stage {
  readonly browser: Browser;
  readonly url: string;
  readonly password: string;
}

/** One context for each kind of visitor: sign-ins are limited. */
const contexts = new Map<string, Promise<BrowserContext>>();

function contextFor(stage: Stage, { isGuest = false, width }: Scene): Promise<BrowserContext> {
  const isPhone = width < 600;
  const kind = `${isGuest} ${isPhone}`;
  const found = contexts.get(kind) ?? openContext(stage, isGuest, isPhone);
  contexts.set(kind, found);
  return found;
}

async function openContext({ browser, url, password }: Stage, isGuest: boolean, isPhone: boolean) {
  const context = await browser.newContext({ baseURL: url, hasTouch: isPhone, isMobile: isPhone });
  context.setDefaultTimeout(PATIENCE_MS);
  if (isGuest) return context;
  const page = await context.newPage();
  await page.goto("/sign-in");
  await page.getByLabel("Email").fill(PERSON);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("main").getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(({ pathname }) => pathname !== "/sign-in");
  await page.close();
  return context;
}

/** Chromium writes WebP files, which are a third of PNG files; its driver has no name for it. */
async function save(page: Page, path: string): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: QUALITY });
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, Buffer.from(data, "base64"));
  process.stdout.write(`${path}\n`);
}

async function take(stage: Stage, scene: Scene, theme: Theme, path: string): Promise<void> {
  const context = await contextFor(stage, scene);
  const page = await context.newPage();
  await page.setViewportSize({ width: scene.width, height: scene.height });
  await page.emulateMedia({ colorScheme: theme });
  await page.goto(scene.path);
  await page.locator(scene.shows).first().waitFor();
  await scene.steps?.(page);
  await page.waitForTimeout(DRAWN_MS);
  await save(page, path);
  await page.close();
}

async function takeFigures(stage: Stage): Promise<void> {
  for (const [name, theme, file] of SHOWN) {
    await take(stage, SCENES.find((scene) => scene.name === name)!, theme, join(FIGURES, file));
  }
}

async function takeAll(stage: Stage, folder: string, drawn: string | null): Promise<void> {
  const rows: string[] = [];
  for (const scene of SCENES) {
    for (const theme of THEMES) {
      const name = `${scene.name}-${theme}`;
      await take(stage, scene, theme, join(folder, `${name}.webp`));
      const file = drawn === null ? null : join(drawn, `${name}.png`);
      const beside = file !== null && existsSync(file) ? `<img src="${relative(folder, file)}">` : "";
      rows.push(`<h2>${name}</h2><div><img src="${name}.webp">${beside}</div>`);
    }
  }
  const style = "div{display:flex;gap:8px;align-items:start}img{max-width:calc(50% - 4px)}";
  writeFileSync(
    join(folder, "index.html"),
    `<!doctype html><meta charset="utf-8"><title>The page, and as drawn</title><style>${style}</style>${rows.join("\n")}\n`,
  );
}

const [folderOfAll, drawn] = process.argv.slice(2).map((path) => resolve(path));
const path = mkdtempSync(join(tmpdir(), "picture-"));
process.env["PORT"] = "0";
try {
  const end = Date.now();
  const folder = openFolder(path, false, BOTS, end);
  await makePast(folder, { seed: SEED, end, stop: new Promise(() => {}) });
  const exchange = await DemoExchange.start(folder.path, folder.seedFile);
  const browser = await launch();
  try {
    const stage = { browser, url: exchange.url, password: folder.password };
    if (folderOfAll === undefined) await takeFigures(stage);
    else await takeAll(stage, folderOfAll, drawn ?? null);
  } finally {
    await browser.close();
    await exchange.stop();
  }
} finally {
  rmSync(path, { recursive: true, force: true });
}
process.exit(0);
