/** The simulation from a fixed seed: no difference to the references, and full coverage. */
import { expect, test } from "vitest";
import { FIXED_SEED, STEPS, simulate } from "./command.ts";

/** What the fixed seed must cover, by the lines of the command's report. */
const COVERED: Record<string, readonly string[]> = {
  step: ["client", "gateway", "engine", "log", "projector", "clock", "tick", "idle", "checkpoint", "recovery", "check", "in between"],
  end: ["between steps", "at a statement", "after COMMIT", "torn log", "failing disk", "stop", "during recovery", "in the middle of a command", "lost tables", "while the tables caught up"],
  rebuild: ["equal"],
  release: ["of all", "of some"],
  full: ["event ring", "command ring", "slots"],
  match: ["direct", "mint", "merge"],
  placed: ["limit gtc", "limit gtd", "limit ioc", "limit fok", "market ioc", "market fok", "post-only", "sweep"],
  request: ["cancel", "amend", "quotes", "split", "merge", "cancel-all", "disconnect"],
  repeat: ["same body", "another body"],
  operator: ["halt", "resume", "close", "resolve", "void"],
  write: ["createUser", "createMarket", "deposit", "reversal", "house", "withdrawal", "payment", "cancel of a withdrawal", "setTerms"],
  rejection: ["40000", "4040", "40900", "42201", "42202", "42203", "42204", "42901", "50300"],
  "self-dealers": ["direct", "mint", "merge", "closed out"],
  told: ["order.updated", "trade.created", "book.updated", "market.updated", "balance.updated"],
}; // biome-ignore format: a line each

/** The count of each covered thing. */
function countsOf(report: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [, kind, names] of report.matchAll(/^ {2}(.+?): (.*)$/gm)) {
    for (const [, name, count] of names!.matchAll(/(?:^|, )(.+?) (\d+)(?=,|$)/g)) {
      counts.set(`${kind}: ${name}`, Number(count));
    }
  }
  return counts;
}

test("no difference to the references from a fixed seed", { timeout: 240_000 }, async () => {
  const report = await simulate(FIXED_SEED, STEPS);
  expect(report).toContain("without a difference");
  const counts = countsOf(report);
  const missing = Object.entries(COVERED).flatMap(([kind, names]) =>
    names.map((name) => `${kind}: ${name}`).filter((key) => !counts.has(key)),
  );
  expect(missing).toEqual([]);
});
