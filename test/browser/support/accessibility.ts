/** Accessibility checks with axe-core. */
import axe, { type AxeResults } from "axe-core";
import type { Page } from "playwright-core";

/**
 * Fails if the page violates a rule; names rules and elements.
 * @param rules restricts the check, for example to color-contrast after a change of colors; empty: all rules
 */
export async function expectAccessible(page: Page, rules: readonly string[] = []): Promise<void> {
  // Evaluated through the debugger: the page's policy forbids foreign scripts.
  if (await page.evaluate<boolean>("globalThis.axe === undefined")) await page.evaluate(axe.source);
  const options = { resultTypes: ["violations"], ...(rules.length === 0 ? {} : { runOnly: rules }) };
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  if (violations.length === 0) return;
  const shown = violations.map(
    ({ id, help, nodes }) => `${id} (${help}): ${nodes.map(({ target }) => target).join("; ")}`,
  );
  throw new Error(`accessibility violations at ${page.url().slice(0, 200)}:\n${shown.join("\n")}`);
}
