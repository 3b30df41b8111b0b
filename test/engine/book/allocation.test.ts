/** The matcher allocates nothing for an order once it is warm: measured in a process of its own, from the build. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { AllocationRound } from "./allocation-worker.ts";

test("a warm matcher's heap doesn't grow with its commands", () => {
  const program = fileURLToPath(new URL("../../../dist/test/engine/book/allocation-worker.js", import.meta.url));
  const output = execFileSync(process.execPath, ["--expose-gc", program], { encoding: "utf8" });
  const rounds = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as AllocationRound);
  expect(rounds).toHaveLength(5);
  for (const round of rounds) expect(round.events).toBeGreaterThan(round.commands);
  // The compiler itself sometimes allocates a little; an allocation per order would show in every round.
  const best = rounds.reduce((a, b) => (a.bytesPerCommand <= b.bytesPerCommand ? a : b));
  console.log(`allocation: ${rounds.map((round) => round.bytesPerCommand.toFixed(3)).join(" ")} bytes a command`);
  expect(best.collections).toBe(0);
  expect(best.bytesPerCommand).toBeLessThan(0.25);
  expect(best.bytesPerCommand).toBeGreaterThan(-0.25);
});
