import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take half a minute and more: begun last, one of them would run on alone. */
const LONG =
  /\/test\/(crash\/kill|bench\/smoke|browser\/|trading\/cancel-on-disconnect|accounts\/login-flood|wallet\/transaction-exports)/;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** What each engine thread could turn round: these files run with one, as all do, and once more with three. */
const ALSO_WITH_THREE = [
  "trading/quotes",
  "trading/quotes-races",
  "trading/order-life",
  "trading/amend",
  "websocket/channels",
  "websocket/hub",
];
const timeouts = { testTimeout: 60_000, hookTimeout: 60_000 };

export default defineConfig({
  test: {
    globalSetup: "test/build.ts",
    // Servers under test and their threads share the machine's few cores.
    maxWorkers: 2,
    sequence: { sequencer: LongFirst },
    projects: [
      { test: { name: "all", include: ["test/**/*.test.ts"], ...timeouts } },
      {
        test: {
          name: "3 engine threads",
          include: ALSO_WITH_THREE.map((name) => `test/${name}.test.ts`),
          env: { TEST_ENGINE_THREADS: "3" },
          ...timeouts,
        },
      },
    ],
  },
});
