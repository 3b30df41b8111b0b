/** The value and the profit of a portfolio. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client, PositionJson } from "../support/client.ts";
import { BUY, expectRefused, SELL, terms } from "../support/trading.ts";
import { USDC, World } from "../support/world.ts";

const HOUR_MS = 3_600_000;
const FIRST = 10_000 * USDC;

interface PortfolioJson {
  readonly value: number;
  readonly profit: number;
  readonly net_deposits: number;
  readonly in_positions: number;
  readonly unrealized_pnl: number;
  readonly realized_pnl: number;
  readonly fees: number;
  readonly rebates: number;
}
interface HistoryJson {
  readonly interval: string;
  readonly first_at: number | null;
  readonly items: readonly (readonly [at: number, value: number, profit: number])[];
}

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 5, named: { maker: {}, taker: {} }, markets: [2, 3, 2] });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

const portfolio = (user: Client): Promise<PortfolioJson> => user.get<PortfolioJson>("/me/portfolio");
const history = (user: Client, query = ""): Promise<HistoryJson> =>
  user.get<HistoryJson>(`/me/portfolio/history${query}`);

test("profit = value - deposits = unrealized + realized, with fees and rebates", async () => {
  const [market, maker, taker] = [world.market(), world.user(), world.user()];
  await world.split(maker, market, 100);
  // Without a price, a complete set is worth what it cost.
  expect(await portfolio(maker)).toMatchObject({ value: FIRST, profit: 0, in_positions: 100 * USDC, fees: 0 });
  await maker.place(terms(market, 0, SELL, 7_000, 40));
  await taker.place(terms(market, 0, BUY, 7_000, 40));
  // Sold 40 at 70¢ that cost 50¢, for a fee of 1.5 % less a rebate of 0.1 %; the others are worth 70¢ and 30¢.
  const [fee, rebate] = [420_000, 28_000];
  expect(await portfolio(maker)).toEqual({
    value: FIRST - 100 * USDC + 28 * USDC - fee + rebate + 42 * USDC + 30 * USDC,
    available: FIRST - 72 * USDC - fee + rebate,
    held: 0,
    in_positions: 72 * USDC,
    cost: 80 * USDC,
    net_deposits: FIRST,
    profit: -fee + rebate,
    unrealized_pnl: -8 * USDC,
    realized_pnl: 8 * USDC - fee + rebate,
    fees: fee,
    rebates: rebate,
  });
  expect(await portfolio(taker)).toMatchObject({ value: FIRST, in_positions: 28 * USDC, profit: 0, fees: 0 });
  const positions = await maker.all<PositionJson>("/me/positions");
  const { unrealized_pnl, realized_pnl } = await portfolio(maker);
  expect(positions.reduce((sum, each) => sum + each.unrealized_pnl!, 0)).toBe(unrealized_pnl);
  expect(positions.reduce((sum, each) => sum + each.realized_pnl, 0)).toBe(realized_pnl);
});

test("outcomes without a price share what the others leave", async () => {
  const [market, maker, taker] = [world.market(3), world.user(), world.user()];
  await world.split(maker, market, 10);
  await maker.place(terms(market, 0, SELL, 4_000, 1));
  await taker.place(terms(market, 0, BUY, 4_000, 1));
  expect((await portfolio(maker)).in_positions).toBe(9 * 400_000 + 20 * 300_000);
});

test("sums of fees and rebates outlive a restart", async () => {
  const [market, maker, taker] = [world.market(), world.client("maker"), world.client("taker")];
  await world.split(maker, market, 100);
  await maker.place(terms(market, 1, SELL, 2_000, 100));
  await taker.place(terms(market, 1, BUY, 2_000, 100));
  const before = [await portfolio(maker), await portfolio(taker)];
  expect(before[0]!.fees).toBe(300_000);
  expect(before[0]!.rebates).toBe(20_000);
  await world.server.stop();
  world.server = await world.server.restart();
  expect([await portfolio(world.client("maker")), await portfolio(world.client("taker"))]).toEqual(before);
});

test("the history begins with the first deposit, at whole hours and days; wrong spans are refused", async () => {
  const user = world.user();
  const { now } = await user.get<{ now: number }>("/time");
  const { first_at, items, interval } = await history(user);
  expect([interval, first_at! <= now, first_at! > now - HOUR_MS]).toEqual(["1h", true, true]);
  // An hour can begin during the test.
  for (const item of items) expect(item).toEqual([expect.any(Number), FIRST, 0]);
  expect(items.length).toBeLessThan(2);
  expect(await history(user, "?interval=1d")).toMatchObject({ interval: "1d", first_at });
  expect((await history(user, `?from=${now - 1_499 * HOUR_MS}`)).items.length).toBe(items.length);
  for (const query of [`from=${now - 1_502 * HOUR_MS}`, `from=${now}&to=${now - 1}`, "interval=1m", "from=-1", "a=1"]) {
    await expectRefused(user.request("GET", `/me/portfolio/history?${query}`), 400, 40000);
  }
  expect((await history(user, `?from=${now + HOUR_MS}&to=${now + 9 * HOUR_MS}`)).items).toEqual([]);
  await expectRefused(world.anonymous().request("GET", "/me/portfolio"), 401, 40100);
});
