/**
 * Two tiers of tests. `npm test` runs every functional case, in four minutes on two cores. `npm run test:long` runs the
 * rest: files named `*.long.test.ts`, more rounds of random tests, several engine threads, and sockets that speak SBE.
 * `npm run test:all` runs both. By hand, `npx vitest run --project all FILE` runs a file of either tier.
 */
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { RetriedReporter } from "./test/retried.ts";

/** Files that take the longest start first: one that started last would run on alone. */
const SLOW =
  /\/test\/(accounts\/login-flood|bench\/(smoke|build|log-replay)|crash\/(kill|threads|start)|cli\/(admin|backup)|wallet\/transaction-exports|trading\/(cancel-after|cancel-on-disconnect|bot)|browser\/|websocket\/)/;

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification): boolean => SLOW.test(moduleId);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

const pathsOf = (names: readonly string[]): string[] => names.map((name) => `test/${name}.test.ts`);

/** Files that `npm test` runs with fewer rounds: test/support/projects.ts. */
const MORE_ROUNDS = pathsOf([
  "accounts/user-terms",
  "accounts/user-terms.property",
  "engine/book/matcher.property",
  "http/idempotency",
  "http/idempotency-restarts",
  "http/message-pack",
  "http/rate-limiter",
  "http/rate-limiter.property",
  "queries/order-updates",
  "trading/money.property",
  "trading/ordered-reads",
  "trading/quotes-races",
  "trading/buying-power",
  "wallet/wallet.property",
]);

/** Files whose outcome could depend on how many engine threads there are, or that have variants for several. */
const THREE_THREADS = pathsOf([
  "accounts/user-terms",
  "accounts/user-terms.property",
  "crash/disk.long",
  "crash/stop",
  "crash/threads.long",
  "crash/torn-wal.long",
  "http/idempotency-key",
  "trading/amend",
  "trading/batch",
  "trading/cancel-all",
  "trading/cancel-on-disconnect",
  "trading/money.property",
  "trading/order-entry",
  "trading/order-life",
  "trading/quote-buying-power",
  "trading/quotes",
  "trading/quotes-races",
  "trading/restarts",
  "trading/timestamps",
  "wallet/wallet.property",
  "websocket/channels",
  "websocket/hub",
  "websocket/implied-books",
  "websocket/markets-channel",
  "websocket/operations",
  "websocket/pipelined-operations",
]);

/** Files whose sockets speak the binary protocol, too. */
const SBE = pathsOf([
  "trading/batch",
  "trading/cancel-after",
  "trading/cancel-on-disconnect",
  "trading/cancel-on-disconnect-restarts",
  "trading/quotes",
  "trading/timestamps",
  "websocket/channels",
  "websocket/hub",
  "websocket/implied-books",
  "websocket/operations",
  "websocket/pipelined-operations",
  "websocket/private-events",
  "websocket/replay",
]);

const common = {
  // The modules of server and schemas load once a worker, not once a file: that saves a second of each file.
  isolate: false,
  setupFiles: ["test/setup.ts"],
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

/** The long tier's tests of kills, proxies and browsers meet a busy machine's pauses: a test that fails is repeated once. */
const repeated = { ...common, retry: 1 };

export default defineConfig({
  test: {
    reporters: ["default", new RetriedReporter()],
    globalSetup: "test/build.ts",
    // Servers under test and their threads share the machine's few cores. `npm test` takes 4: its tests often wait for a clock.
    maxWorkers: 2,
    sequence: { sequencer: SlowFirst },
    projects: [
      { test: { name: "all", include: ["test/**/*.test.ts"], ...common } },
      {
        test: { name: "long", include: ["test/**/*.long.test.ts", ...MORE_ROUNDS], env: { EFFORT: "5" }, ...repeated },
      },
      { test: { name: "3 engine threads", include: THREE_THREADS, env: { TEST_ENGINE_THREADS: "3" }, ...repeated } },
      { test: { name: "sbe", include: SBE, env: { TEST_SOCKET_PROTOCOL: "sbe" }, ...repeated } },
    ],
  },
});
