/** Ends a test run with the tests that passed only when they were repeated, and why they failed: each is a defect to mend next. */
import type { Reporter, TestCase, TestModule } from "vitest/node";

/** Of a message, without the comparison that may follow. */
const FIRST_LINES = 3;

export class RetriedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const names: string[] = [];
    for (const module of modules) {
      for (const test of module.children.allTests("passed")) {
        // A test that must fail is repeated, too.
        if (test.options.fails !== true && test.diagnostic()?.flaky === true)
          names.push(`${module.relativeModuleId} > ${test.fullName}${reasonsOf(test)}`);
      }
    }
    if (names.length === 0) return;
    process.stdout.write(
      `\nPassed only when repeated, to be mended next:\n${names.map((name) => `  ${name}\n`).join("")}`,
    );
  }
}

/** What was thrown before the test passed, and where. */
function reasonsOf(test: TestCase): string {
  return (test.result().errors ?? [])
    .map(({ message, stacks }) => {
      const [at] = stacks ?? [];
      const place = at === undefined ? "" : ` (${at.file}:${at.line})`;
      return `\n    ${message.split("\n").slice(0, FIRST_LINES).join("\n    ")}${place}`;
    })
    .join("");
}
