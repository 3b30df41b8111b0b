/** Ends a test run with the names of the tests that passed only when they were repeated: each is a defect to mend next. */
import type { Reporter, TestModule } from "vitest/node";

export class RetriedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const names: string[] = [];
    for (const module of modules) {
      for (const test of module.children.allTests("passed")) {
        // A test that must fail is repeated, too.
        if (test.options.fails !== true && test.diagnostic()?.flaky === true)
          names.push(`${module.relativeModuleId} > ${test.fullName}`);
      }
    }
    if (names.length === 0) return;
    process.stdout.write(
      `\nPassed only when repeated, to be mended next:\n${names.map((name) => `  ${name}\n`).join("")}`,
    );
  }
}
