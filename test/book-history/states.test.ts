/** The states of markets in their history: proposals, halts, closes over a restart, resolutions with payouts, voids. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HistoryLine } from "../../bench/replay/history/lines.ts";
import { historyFolder, readMarketDay } from "../../server/book-history/history-folder.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectEndsWell } from "../support/checks.ts";
import type { Client, MarketJson } from "../support/client.ts";
import { ask, asOperator, newMarket, OPERATORS, take } from "../support/markets.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { PUBLIC_URL, type TestMarket, World } from "../support/world.ts";
import { linesIn } from "./history-rows.ts";

let world: World;
let operator: Client;
let user: Client;
let [closed, halted, voided]: TestMarket[] = [];
const proposals: MarketJson[] = [];

beforeAll(async () => {
  world = await World.start({ users: 0, named: { ...OPERATORS, user: {} }, markets: [2, 2, 3], env: { PUBLIC_URL } });
  [closed, halted, voided] = [world.market(), world.market(), world.market(3)];
  user = world.client("user");
  operator = await asOperator(world);
  for (const market of [closed, halted, voided]) {
    await world.split(user, market!, 10);
    await user.place(terms(market!, 0, BUY, 4_000, 5));
    await user.place(terms(market!, 1, SELL, 9_000, 5));
  }
  for (let i = 0; i < 2; i++) proposals.push(await user.data<MarketJson>("POST", "/markets/proposals", newMarket()));
  const decide = (id: number, decision: string) => operator.data("POST", `/admin/proposals/${id}/${decision}`, {});
  await decide(proposals[0]!.id, "refuse");
  await decide(proposals[1]!.id, "approve");
  await take(operator, halted!, "halt");
  await take(operator, closed!, "close");
  operator.close();
  await world.server.kill();
  // The engines don't know the closed market any more.
  world.server = await world.server.restart();
  operator = await asOperator(world);
  await take(operator, halted!, "resume");
  expect((await ask(operator, closed!, "resolve", { payouts: [2_500, 7_500] })).code).toBe(0);
  await take(operator, voided!, "close");
  expect((await ask(operator, voided!, "void")).code).toBe(0);
  operator.close();
  const reader = world.anonymous();
  for (const market of [closed, voided]) {
    await eventually(async () => {
      expect((await reader.get<MarketJson>(`/markets/${market!.id}`)).resolution).not.toBe(null);
    });
  }
  await expectEndsWell(world);
});

let made = false;
afterAll(() => expect(made).toBe(true));

/** A market's rows of all its days; null where it has none. */
async function linesOf(id: number): Promise<HistoryLine[] | null> {
  const { dataDir } = world.server;
  const [from, to] = [-1, 0].map((day) => new Date(Date.now() + day * 86_400_000).toISOString().slice(0, 10));
  if (!made) expect((await admin(dataDir, "history", from!, to!)).errors).toBe("");
  made = true;
  const folder = historyFolder(dataDir);
  const days = [from!, to!].map((date) => readMarketDay(folder, id, date)).filter((day) => day !== null);
  return days.length === 0 ? null : days.flatMap((day) => linesIn(folder, day));
}

/** What each state shows, without those that repeat it at a day's beginning. */
const statesOf = (lines: readonly HistoryLine[]): string[] =>
  lines
    .filter(({ kind }) => kind === "status")
    .map(({ status, outcome_id, price }) => (price === undefined ? `${status}` : `${status} ${outcome_id}: ${price}`))
    .filter((text, i, all) => text !== all[i - 1]);

test("a market that closed before a restart, and resolved after it", async () => {
  const lines = (await linesOf(closed!.id))!;
  const [yes, no] = closed!.outcomes;
  expect(statesOf(lines)).toEqual(["open", "closed", `resolved ${yes}: 2500`, `resolved ${no}: 7500`]);
  // Its orders went with the close, in the same commit or before it.
  const gone = lines.filter(({ kind, quantity }) => kind === "level" && quantity === 0);
  expect(gone.map(({ outcome_id, side, price }) => [outcome_id, side, price])).toEqual([
    [yes, 1, 4_000],
    [no, 2, 9_000],
  ]);
  const closedAt = lines.find(({ status }) => status === "closed")!.at;
  expect(gone.every(({ at }) => at <= closedAt)).toBe(true);
  const payouts = lines.filter(({ status }) => status === "resolved");
  expect(new Set(payouts.map(({ at }) => at)).size).toBe(1);
});

test("a halt over a restart, with the orders that stay", async () => {
  const lines = (await linesOf(halted!.id))!;
  expect(statesOf(lines)).toEqual(["open", "halted", "open"]);
  expect(lines.filter(({ kind }) => kind === "level").length).toBe(2);
});

test("a void pays each outcome the same", async () => {
  const shares = voided!.outcomes.map((id, i) => `voided ${id}: ${i === 0 ? 3_334 : 3_333}`);
  expect(statesOf((await linesOf(voided!.id))!)).toEqual(["open", "closed", ...shares]);
});

test("a proposal begins with its approval, and a refused one has no history", async () => {
  expect(await linesOf(proposals[0]!.id)).toBe(null);
  const lines = (await linesOf(proposals[1]!.id))!;
  expect(lines.map(({ seq, kind, status }) => [seq, kind, status])).toEqual([[1, "status", "open"]]);
});
