/**
 * PUT /quotes and the means of its user: money, shares and daily activity must cover the worst order of fills, to the
 * last micro-USDC, and a rejected request changes nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { notional } from "../support/reference.ts";
import {BUY, expectRefused, putQuotes, type QuoteSpec, quote, SELL, 
} from "../support/trading.ts"; // biome-ignore format: one list
import { USDC, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  const exactly = (deposit: number, tier = 2) => ({ deposit, tier });
  world = await World.start({
    users: 10,
    named: {
      ten: exactly(10 * USDC),
      "ten-b": exactly(10 * USDC),
      "ten-c": exactly(10 * USDC),
      "ten-short": exactly(10 * USDC - 1),
      active: exactly(1_000 * USDC, 1),
    },
    markets: [...Array<number>(10).fill(2), 3, 3, 5],
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

describe("means", () => {
  async function expectUntouched(user: Client, refused: () => Promise<unknown>): Promise<void> {
    const state = () =>
      Promise.all(["/orders?status=all", "/me/positions", "/wallet/transactions"].map((path) => user.all(path)));
    const before = [await user.balance(), ...(await state())];
    await refused();
    expect([await user.balance(), ...(await state())]).toEqual(before);
  }

  test("the means for a set of quotes suffice to the last micro-USDC, or it is rejected as a whole", async () => {
    const [market, user, short] = [world.market(), world.client("ten"), world.client("ten-short")];
    // 4 + 3 + 3 = 10 USDC.
    const quotes: QuoteSpec[] = [
      [0, BUY, 4_000, 10],
      [1, BUY, 3_000, 10],
      [1, BUY, 1_000, 30],
    ];
    await expectUntouched(short, () => expectRefused(putQuotes(short, market, quotes), 422, 42201));
    await quote(user, market, quotes);
    expect(await user.balance()).toEqual({ available: 0, held: 10 * USDC, total: 10 * USDC });
    for (const more of [
      [...quotes, [0, BUY, 1, 1]],
      [[0, BUY, 4_001, 10], ...quotes.slice(1)],
    ] as QuoteSpec[][]) {
      await expectUntouched(user, () => expectRefused(putQuotes(user, market, more), 422, 42201));
    }
    // Unchanged ones need nothing; the first has its price up, the last gives nothing for it: it may be filled before.
    await quote(user, market, quotes);
    await expectUntouched(user, () =>
      expectRefused(
        putQuotes(user, market, [
          [0, BUY, 4_100, 10],
          [1, BUY, 3_000, 10],
        ]),
        422,
        42201,
      ),
    );
    await quote(user, market, quotes.slice(0, 2));
    await quote(user, market, [
      [0, BUY, 5_000, 14],
      [1, BUY, 3_000, 10],
    ]);
    expect(await user.balance()).toMatchObject({ available: 0, held: 10 * USDC });
    await quote(user, market, []);
  });

  test("a replacement of quotes needs money for the worst order of fills, not for old and new together", async () => {
    const [market, user] = [world.market(), world.client("ten-b")];
    const refused = (quotes: QuoteSpec[]) =>
      expectUntouched(user, () => expectRefused(putQuotes(user, market, quotes), 422, 42201));
    // Price up: the larger of the two.
    await quote(user, market, [[0, BUY, 6_000, 10]]);
    await refused([[0, BUY, 9_001, 12]]);
    const [up] = await quote(user, market, [[0, BUY, 8_000, 12]]);
    expect(up).toMatchObject({ price: 8_000, quantity: 12 });
    expect(await user.order(up!.id)).toMatchObject({ status: "open", quantity: 12, remaining: 12 });
    expect(await user.balance()).toMatchObject({ held: 9_600_000 });
    // Price down and more: the old, and the added shares at the new price. 9.6 + 0.1 * 4 = 10.
    await refused([[0, BUY, 1_000, 17]]);
    const [down] = await quote(user, market, [[0, BUY, 1_000, 16]]);
    expect(await user.order(down!.id)).toMatchObject({ status: "open", quantity: 16, remaining: 16 });
    expect(await user.balance()).toMatchObject({ held: 1_600_000 });
    // Best price to best price: 6 * 0.9 = 5.4 to 0.8 * 6, 6 * 0.6 = 3.6 to 0.7 * 6 = 4.2. 5.4 + 4.2 = 9.6; 0.4 are left.
    await quote(user, market, [
      [0, BUY, 6_000, 6],
      [0, BUY, 9_000, 6],
    ]);
    await refused([
      [0, BUY, 7_000, 6],
      [0, BUY, 8_000, 6],
      [1, BUY, 1_001, 4],
    ]);
    const pairs = await quote(user, market, [
      [0, BUY, 7_000, 6],
      [0, BUY, 8_000, 6],
      [1, BUY, 1_000, 4],
    ]);
    for (const { id, quantity } of pairs) expect(await user.order(id)).toMatchObject({ status: "open", quantity });
    expect(await user.balance()).toMatchObject({ held: 9_400_000 });
    // An old one of another outcome or side frees nothing.
    await refused([[1, BUY, 7_000, 6]]);
    await refused([
      [1, BUY, 7_000, 6],
      [1, BUY, 8_000, 6],
    ]);
    await quote(user, market, []);
    expect(await user.balance()).toEqual({ available: 10 * USDC, held: 0, total: 10 * USDC });
  });

  test("a replacement of quotes needs shares for the worst order of fills", async () => {
    const [market, user] = [world.market(), world.user()];
    await world.split(user, market, 10);
    const refused = (quotes: QuoteSpec[]) =>
      expectUntouched(user, () => expectRefused(putQuotes(user, market, quotes), 422, 42202));
    await refused([[0, SELL, 9_000, 11]]);
    await refused([
      [0, SELL, 9_000, 6],
      [0, SELL, 9_100, 5],
    ]);
    await quote(user, market, [
      [0, SELL, 9_000, 6],
      [0, SELL, 9_100, 4],
      [1, SELL, 9_000, 10],
    ]);
    await refused([
      [0, SELL, 8_000, 6],
      [0, SELL, 8_100, 5],
    ]);
    await refused([
      [0, SELL, 8_000, 10],
      [0, SELL, 8_100, 1],
    ]);
    // Paired: 6 to 5 and 4 to 4, then the 5 and the 4 to 6 and 4.
    await quote(user, market, [
      [0, SELL, 8_000, 5],
      [0, SELL, 8_100, 4],
    ]);
    expect(await user.position(market.outcomes[1]!)).toMatchObject({ held: 0 });
    const orders = await quote(user, market, [
      [0, SELL, 7_000, 6],
      [0, SELL, 9_900, 4],
    ]);
    for (const { id, quantity } of orders) expect(await user.order(id)).toMatchObject({ status: "open", quantity });
    expect(await user.position(market.outcomes[0]!)).toMatchObject({ quantity: 10, held: 10 });
    await quote(user, market, []);
    expect(await user.position(market.outcomes[0]!)).toMatchObject({ quantity: 10, held: 0 });
  });

  test("a replacement of quotes counts daily activity for the worst order of fills", async () => {
    // 100 USDC a day.
    const [market, user] = [world.market(), world.client("active")];
    const refused = (quotes: QuoteSpec[]) =>
      expectUntouched(user, () => expectRefused(putQuotes(user, market, quotes), 429, 42901, /activity/));
    await refused([[0, BUY, 5_000, 201]]);
    await quote(user, market, [
      [0, BUY, 5_000, 100],
      [1, BUY, 4_000, 125],
    ]);
    await refused([
      [0, BUY, 5_001, 100],
      [1, BUY, 4_000, 125],
    ]);
    await quote(user, market, [
      [0, BUY, 4_999, 100],
      [1, BUY, 3_999, 125],
    ]);
    expect((await user.get<{ daily_activity: object }>("/me/limits")).daily_activity).toEqual({
      ...{ used: notional(4_999, 100) + notional(3_999, 125), limit: 100 * USDC },
    });
  });
});
