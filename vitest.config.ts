import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take half a minute and more: begun last, one of them would run on alone. */
const LONG =
  /\/test\/(crash\/kill|bench\/smoke|browser\/|server\/(cancel-on-disconnect|login-flood|transactions-export))/;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/build.ts",
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Servers under test and their threads share the machine's few cores.
    maxWorkers: 2,
    sequence: { sequencer: LongFirst },
  },
});
