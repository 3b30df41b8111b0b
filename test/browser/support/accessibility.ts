/** What axe-core finds in a page: barriers for those who don't see it, don't hear it or don't use a mouse. */
import axe, { type AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const GRAVE = ["serious", "critical"];

/**
 * Fails where the page as it stands has a serious or critical barrier; says by which rule, and where.
 * @param rules what to look at alone, such as color-contrast where nothing but colours has changed; empty: all
 */
export async function expectAccessible(page: Page, rules: readonly string[] = []): Promise<void> {
  // Evaluated by the debugger: the page's policy takes no script from elsewhere.
  if (await page.evaluate<boolean>("globalThis.axe === undefined")) await page.evaluate(axe.source);
  const options = { resultTypes: ["violations"], ...(rules.length === 0 ? {} : { runOnly: rules }) };
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  const grave = violations.filter(({ impact }) => GRAVE.includes(impact ?? ""));
  if (grave.length === 0) return;
  const shown = grave.map(({ id, help, nodes }) => `${id} (${help}): ${nodes.map(({ target }) => target).join("; ")}`);
  throw new Error(`barriers at ${page.url().slice(0, 200)}:\n${shown.join("\n")}`);
}
