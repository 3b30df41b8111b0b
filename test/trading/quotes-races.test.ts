/**
 * PUT /quotes while others trade, read and queue: nobody ever sees a half-replaced set, tight means never go negative, one
 * of several concurrent replacements wins, and quotes are still quotes after restarts and crashes.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Answer, Client, OrderJson } from "../support/client.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { notional } from "../support/reference.ts";
import {
  amend,
  BUY,
  books,
  cancelAll,
  expectAccounted,
  expectStanding,
  idsOf,
  liveOrders,
  putQuotes,
  type QuoteSpec,
  quote,
  type ResultJson,
  SELL,
  terms,
} from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 10,
    named: { tight: { deposit: 10 * USDC }, maker: {}, seller: {}, quoter: {}, amender: {} },
    markets: [2, 2, 2, 2, 2, 2, 3, 5],
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

describe("concurrent with others", () => {
  const ROUNDS = 100 * EFFORT;
  /** Two sets that cross each other: half replaced they would match among themselves, or with nobody. */
  const SETS: readonly (readonly QuoteSpec[])[] = [
    [
      [0, BUY, 4_000, 500],
      [0, SELL, 4_400, 500],
      [1, BUY, 5_500, 500],
      [1, SELL, 5_900, 500],
      [0, BUY, 3_990, 500],
    ],
    [
      [0, BUY, 5_500, 500],
      [0, SELL, 5_900, 500],
      [1, BUY, 4_000, 500],
      [1, SELL, 4_400, 500],
      [0, BUY, 3_990, 500],
    ],
  ];

  test("takers, readers and queued orders never see a half-replaced set of quotes", async () => {
    const [market, user, far, near, reader] = [
      ...[world.market(), world.user(), world.user(), world.user(), world.anonymous()],
    ] as [TestMarket, Client, Client, Client, Client];
    const takers = [world.user(), world.user()] as const;
    for (const client of [user, far, ...takers]) await world.split(client, market, 1_000);
    // A taker could reach these only if no quote were ahead of them.
    const walls = [
      ...[await far.place(terms(market, 0, BUY, 2_000, 100)), await far.place(terms(market, 1, BUY, 2_000, 100))],
      ...[await far.place(terms(market, 0, SELL, 8_000, 100)), await far.place(terms(market, 1, SELL, 8_000, 100))],
    ];
    await quote(user, market, SETS[0]!);
    // Queued behind the quote that stays in every set.
    const queued = await near.place(terms(market, 0, BUY, 3_990, 7));
    const [staying] = (await liveOrders(user, market)).filter(({ price }) => price === 3_990);
    let replacing = true;
    const random = Random.printed("takers while quotes are replaced");

    let taken = 0;
    async function take(taker: Client): Promise<void> {
      for (; replacing; taken++) {
        const side = random.pick([BUY, SELL]);
        const body = terms(market, random.integer(0, 1), side, side === BUY ? 8_000 : 2_000, 1, {
          time_in_force: "ioc",
        });
        const { id } = await taker.place(body);
        const order = await taker.order(id);
        expect(order).toMatchObject({ status: "filled" });
        expect(order.trades).toHaveLength(1);
      }
    }
    const levelsOf = (set: readonly QuoteSpec[], outcome: number, side: number, wall: number): number[] => {
      const prices = set.filter(([o, s]) => o === outcome && s === side).map(([, , price]) => price);
      return [...new Set([...prices, wall])];
    };
    const shapes = SETS.map((set) =>
      JSON.stringify([0, 1].map((o) => [levelsOf(set, o, BUY, 2_000), levelsOf(set, o, SELL, 8_000)])),
    );
    async function look(): Promise<Set<string>> {
      const seen = new Set<string>();
      while (replacing) {
        const shown = await books(reader, market);
        seen.add(
          JSON.stringify(shown.map(({ bids, asks }) => [bids, asks].map((side) => side.map(([price]) => price)))),
        );
      }
      return seen;
    }

    let failed = false;
    const others = Promise.all([look(), ...takers.map(take)]);
    others.catch(() => {
      failed = true;
    });
    for (let round = 1; (round <= ROUNDS || taken <= 50) && !failed; round++) {
      await quote(user, market, SETS[round % 2]!);
    }
    replacing = false;
    const [seen] = await others;
    expect([...seen].toSorted()).toEqual(shapes.toSorted());
    for (const { id } of walls) expect(await far.order(id)).toMatchObject({ status: "open", remaining: 100 });
    const all = await user.all<OrderJson>("/orders?status=all");
    expect(all.length).toBeGreaterThan(ROUNDS * 4);
    // None crossed on entry, and each old quote ended for its replacement.
    for (const { status, reason } of all) if (status !== "open") expect(["user", null]).toContain(reason);
    expect(await user.order(staying!.id)).toMatchObject({ status: "open", filled: 0 });
    expect(await near.order(queued.id)).toMatchObject({ status: "open", filled: 0 });
    await quote(user, market, [SETS[0]![4]!]);
    await takers[0].place(terms(market, 0, SELL, 3_990, 501, { time_in_force: "ioc" }));
    expect(await user.order(staying!.id)).toMatchObject({ status: "filled" });
    expect(await near.order(queued.id)).toMatchObject({ filled: 1 });
    await cancelAll(user);
    await expectAccounted(user, [market], 10_000 * USDC, 1_000);
  });

  test("quotes with means for the worst case only: fills in flight reduce new ones, and the balance never goes negative", async () => {
    const random = Random.printed("tight quotes against takers");
    const [market, user, taker] = [world.market(), world.client("tight"), world.user()];
    await world.split(taker, market, 1_000);
    let replacing = true;
    const taking = (async (): Promise<void> => {
      while (replacing) {
        const body = terms(market, random.integer(0, 1), SELL, 1, random.integer(1, 3), { time_in_force: "ioc" });
        await taker.place(body);
      }
    })();
    const codes = new Map<number, number>();
    let last: OrderJson[] = [];
    for (let round = 0; round < 200 * EFFORT; round++) {
      const { available, total } = await user.balance();
      expect(available).toBeGreaterThanOrEqual(0);
      if (total < USDC) break;
      // Nearly all the money, in two quotes of cheap shares.
      const [a, b] = [random.integer(20, 90), random.integer(20, 90)];
      const sizes = [a, b].map((price) => Math.max(1, Math.floor((total * 0.47) / notional(price, 1))));
      const set: QuoteSpec[] = [
        [0, BUY, a, sizes[0]!],
        [1, BUY, b, sizes[1]!],
      ];
      const answer: Answer<{ results: ResultJson[] } | null> = (await putQuotes(user, market, set)) as Answer<never>;
      codes.set(answer.code, (codes.get(answer.code) ?? 0) + 1);
      if (answer.data === null) {
        await quote(user, market, []);
        continue;
      }
      last = answer.data.results.map(({ data }) => data!);
      // An unchanged quote may be partly filled: its remainder is the requested size.
      for (const [i, order] of last.entries()) expect(order.remaining).toBeLessThanOrEqual(sizes[i]!);
    }
    replacing = false;
    await taking;
    expect(codes.get(0)).toBeGreaterThan(50);
    for (const code of codes.keys()) expect([0, 42201]).toContain(code);
    for (const order of await user.all<OrderJson>("/orders?status=all")) {
      expect(order.filled + order.remaining).toBe(order.quantity);
      if (order.status === "rejected") expect([order.reason, order.filled]).toEqual(["too_late", 0]);
    }
    await quote(user, market, []);
    await expectStanding(user, market, []);
    await expectAccounted(user, [market], 10 * USDC, 0);
    await expectAccounted(taker, [market], 10_000 * USDC, 1_000);
  });

  test("the same set of quotes sent ten times at once is one set, and every response lists its orders", async () => {
    const [market, fresh] = [world.market(), world.user()];
    const user = world.client(fresh.token!.split("-")[1]!, 0, 10);
    for (let round = 0; round < 15; round++) {
      const set: QuoteSpec[] = [
        [0, BUY, 1_000 + round, 3],
        [1, BUY, 1_000, 1 + round],
        [1, BUY, 500, 1],
      ];
      const answers = await Promise.all(Array.from({ length: 10 }, () => quote(user, market, set)));
      for (const orders of answers) expect(idsOf(orders)).toEqual(idsOf(answers[0]!));
      await expectStanding(user, market, idsOf(answers[0]!));
    }
    expect(await user.all("/orders?status=all")).toHaveLength(1 + 15 * 2);
  });

  test("of concurrent replacements one set of quotes is live, and nothing of the others", async () => {
    const [market, fresh] = [world.market(), world.user()];
    const user = world.client(fresh.token!.split("-")[1]!, 0, 4);
    for (let round = 0; round < 30; round++) {
      const sets = [0, 1, 2, 3].map((i): QuoteSpec[] => [
        [0, BUY, 1_000 + round * 10 + i, 1 + i],
        [1, BUY, 2_000 + i, 1 + i],
      ]);
      const answers = await Promise.all(sets.map((set) => quote(user, market, set)));
      const standing = (await liveOrders(user, market)).map(({ id }) => id).toSorted();
      expect(answers.map((orders) => idsOf(orders).toSorted())).toContainEqual(standing);
      const held = (await liveOrders(user, market)).reduce(
        (sum, { price, remaining }) => sum + notional(price, remaining),
        0,
      );
      expect(await user.balance()).toMatchObject({ held });
    }
  });
});

describe("over restarts", () => {
  const SET: readonly QuoteSpec[] = [
    [0, BUY, 3_000, 5],
    [0, BUY, 3_100, 5],
    [1, BUY, 3_000, 5],
  ];
  let market: TestMarket;
  let other: TestMarket;
  /** The maker's plain order and its quotes, in the order of SET, and its quote in the other market. */
  let plain: OrderJson;
  let first: number[];
  let elsewhere: number[];
  beforeAll(async () => {
    [market, other] = [world.market(), world.market(3)];
    const maker = world.client("maker");
    plain = await maker.place(terms(market, 0, BUY, 3_000, 5, { post_only: true }));
    first = idsOf(await quote(maker, market, SET));
    elsewhere = idsOf(await quote(maker, other, [[2, BUY, 1_000, 1]]));
    await world.server.stop();
    world.server = await world.server.restart();
  });

  test("after SIGTERM an unchanged set keeps its quotes", async () => {
    const maker = world.client("maker");
    expect(idsOf(await quote(maker, market, SET))).toEqual(first);
    await expectStanding(maker, market, [plain.id, ...first]);
  });

  test("kill -9 while quotes are replaced and an order is amended: a whole set is live, nothing acknowledged is lost", async () => {
    const random = Random.printed("kill -9 between quotes");
    const [quoted, amended] = [world.market(5), world.market()];
    const { id } = await world.client("amender").place(terms(amended, 0, BUY, 1, 1));
    let round = 0;
    for (let crash = 0; crash < 3; crash++) {
      const acknowledged = await trafficUntilKill(quoted, id, round, random.integer(20, 120));
      round = acknowledged.round + 1;
      world.server = await world.server.restart();
      const live = await liveOrders(world.client("quoter"), quoted);
      expect(live.map(({ outcome_id }) => outcome_id).toReversed()).toEqual(quoted.outcomes);
      const sizes = new Set(live.map(({ quantity }) => quantity));
      expect(sizes.size).toBe(1);
      expect([sizeOf(acknowledged.round), sizeOf(acknowledged.round + 1)]).toContain([...sizes][0]);
      const { price } = await world.client("amender").order(id);
      expect([acknowledged.price, acknowledged.price + 1]).toContain(price);
      expect(await world.client("quoter").balance()).toMatchObject({ held: 5 * notional(1_000, [...sizes][0]!) });
      expectSoundDatabase(world.server.dataDir);
    }
    expect(round).toBeGreaterThanOrEqual(20);
  });

  test("after kill -9 quotes are still quotes, other orders aren't, and time priority holds", async () => {
    const [maker, seller] = [world.client("maker"), world.client("seller")];
    expect(idsOf(await quote(maker, market, SET))).toEqual(first);
    await expectStanding(maker, market, [plain.id, ...first]);
    await world.split(seller, market, 20);
    const [next] = idsOf(
      await quote(maker, market, [
        [1, BUY, 3_000, 5],
        [0, BUY, 3_000, 6],
      ]),
    );
    expect(next).toBe(first[2]);
    await world.server.kill();
    world.server = await world.server.restart();
    const again = world.client("maker");
    // The plain order is older than the replacement of the quote at its price.
    await world.client("seller").place(terms(market, 0, SELL, 3_000, 5));
    expect(await again.order(plain.id)).toMatchObject({ status: "filled" });
    await quote(again, market, []);
    await expectStanding(again, market, []);
    await expectStanding(again, other, elsewhere);
    for (const id of first) expect(await again.order(id)).toMatchObject({ status: "canceled", reason: "user" });
    expect(await again.balance()).toMatchObject({ held: notional(1_000, 1) });
  });
});

/** The size of the quotes of a round. */
const sizeOf = (round: number): number => 1 + (round % 900);

/**
 * Replaces the quoter's quotes from round `from` on, and amends the amender's order, until the server is killed in the
 * middle of it. Returns the last acknowledged round and price; the next of each may be done as well.
 */
async function trafficUntilKill(
  market: TestMarket,
  id: number,
  from: number,
  roundsBeforeKill: number,
): Promise<{ round: number; price: number }> {
  const [quoter, amender] = [world.client("quoter"), world.client("amender")];
  let isKilled = false;
  let killed: Promise<void> | null = null;
  const repeat = async (step: () => Promise<unknown>): Promise<void> => {
    try {
      for (;;) await step();
    } catch (error) {
      if (!isKilled) throw error;
    }
  };
  let round = from;
  let { price } = await amender.order(id);
  await Promise.all([
    repeat(async () => {
      const size = sizeOf(round + 1);
      await quote(quoter, market, [0, 1, 2, 3, 4].map((outcome): QuoteSpec => [outcome, BUY, 1_000, size])); // biome-ignore format: one call
      round++;
      if (round - from === roundsBeforeKill) {
        isKilled = true;
        killed = world.server.kill();
      }
    }),
    repeat(async () => {
      await amend(amender, id, { price: price + 1 });
      price++;
    }),
  ]);
  await killed;
  return { round, price };
}
