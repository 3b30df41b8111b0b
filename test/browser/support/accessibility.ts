/** What axe-core finds in a page: barriers for those who don't see it, don't hear it or don't use a mouse. */
import axe, { type AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const GRAVE = ["serious", "critical"];

/** Fails where the page as it stands has a serious or critical barrier; says by which rule, and where. */
export async function expectAccessible(page: Page): Promise<void> {
  // Evaluated by the debugger: the page's policy takes no script from elsewhere.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, { resultTypes: ["violations"] })`);
  const grave = violations.filter(({ impact }) => GRAVE.includes(impact ?? ""));
  if (grave.length === 0) return;
  const shown = grave.map(({ id, help, nodes }) => `${id} (${help}): ${nodes.map(({ target }) => target).join("; ")}`);
  throw new Error(`barriers at ${page.url().slice(0, 200)}:\n${shown.join("\n")}`);
}
