/**
 * Frames of length 0 within a message that never ends: uWebSockets.js reads them, and tells nobody. The limit of
 * docs/operations/nftables.conf keeps the exchange fast; the test loads it in a network of its own.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { builtScript } from "../../bench/support/root.ts";

const RULES = fileURLToPath(new URL("../../docs/operations/nftables.conf", import.meta.url));
const WORKER = fileURLToPath(builtScript("test/attack/unfinished-messages-worker.js"));
/** Requests one after the other: 1 ms each. Without the rules the first one takes seconds. */
const SLOWEST_P50_MS = 100;

const inNetwork = (command: string) =>
  spawnSync("unshare", ["--net", "sh", "-c", command], { encoding: "utf8", timeout: 120_000 });

test("frames of length 0 without end don't slow others down behind the rules of nftables.conf", ({ skip }) => {
  skip(inNetwork("ip link set lo up && nft list ruleset").status !== 0, "needs nftables, iproute2 and root's rights");
  const { stdout, stderr, status } = inNetwork(
    `ip link set lo up && nft -f '${RULES}' && exec '${process.execPath}' '${WORKER}'`,
  );
  expect([status, stderr]).toEqual([0, ""]);
  const { isAttacking, p50 } = JSON.parse(stdout) as { isAttacking: boolean; p50: number };
  expect(isAttacking).toBe(true);
  expect(p50).toBeLessThan(SLOWEST_P50_MS);
}, 180_000);
