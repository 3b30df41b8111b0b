/**
 * PUT /quotes while others trade, look and queue: nobody ever meets a half-replaced set, tight means never go negative,
 * of several replacements at once one stands, and quotes are quotes still after restarts and crashes.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Answer, Client, OrderJson } from "../support/client.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { notional } from "../support/reference.ts";
import {
  alone,
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
  world = await World.start({ users: 10, named: { tight: { deposit: 10 * USDC } }, markets: [2, 2, 2, 2] });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

describe("others in between", () => {
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

  test("takers, readers and queues never meet a half-replaced set", async () => {
    const [market, user, far, near, reader] = [
      ...[world.market(), world.user(), world.user(), world.user(), world.anonymous()],
    ] as [TestMarket, Client, Client, Client, Client];
    const takers = [world.user(), world.user()] as const;
    for (const client of [user, far, ...takers]) await world.split(client, market, 1_000);
    // What a taker could only reach if no quote stood in front of it.
    const walls = [
      ...[await far.place(terms(market, 0, BUY, 2_000, 100)), await far.place(terms(market, 1, BUY, 2_000, 100))],
      ...[await far.place(terms(market, 0, SELL, 8_000, 100)), await far.place(terms(market, 1, SELL, 8_000, 100))],
    ];
    await quote(user, market, SETS[0]!);
    // Behind the quote that stays in every set.
    const queued = await near.place(terms(market, 0, BUY, 3_990, 7));
    const [staying] = (await liveOrders(user, market)).filter(({ price }) => price === 3_990);
    let replacing = true;
    const random = Random.printed("takers while quotes are replaced");

    async function take(taker: Client): Promise<number> {
      let count = 0;
      for (; replacing; count++) {
        const side = random.pick([BUY, SELL]);
        const body = terms(market, random.integer(0, 1), side, side === BUY ? 8_000 : 2_000, 1, {
          time_in_force: "ioc",
        });
        const { id } = await taker.place(body);
        const order = await taker.order(id);
        expect(order).toMatchObject({ status: "filled" });
        expect(order.trades).toHaveLength(1);
      }
      return count;
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

    const others = Promise.all([...takers.map(take), look()]);
    for (let round = 1; round <= ROUNDS; round++) await quote(user, market, SETS[round % 2]!);
    replacing = false;
    const [first, second, seen] = (await others) as [number, number, Set<string>];
    expect(first + second).toBeGreaterThan(50);
    expect([...seen].toSorted()).toEqual(shapes.toSorted());
    for (const { id } of walls) expect(await far.order(id)).toMatchObject({ status: "open", remaining: 100 });
    const all = await user.all<OrderJson>("/orders?status=all");
    expect(all.length).toBeGreaterThan(ROUNDS * 4);
    // None crossed on entry, and each old one ended for its replacement.
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

  test("with means for the worst case alone, quotes come out smaller by what was filled in flight, never negative", async () => {
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
      // About all the money there is, in two quotes of cheap shares.
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
      // One that stands unchanged has been filled in part: what remains of it is what was asked for.
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

  test("the same set on ten sockets at once is one set, and all are answered with its orders", async () => {
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

  test("two replacements at once: one set stands, and nothing of the other", async () => {
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

test("over restarts and crashes quotes are quotes still, and other orders aren't", async () => {
  await alone({ users: 2, markets: [2, 3] }, async (own) => {
    const [market, other] = [own.market(), own.market(3)];
    let user = own.client("user0");
    const plain = await user.place(terms(market, 0, BUY, 3_000, 5, { post_only: true }));
    const set: QuoteSpec[] = [
      [0, BUY, 3_000, 5],
      [0, BUY, 3_100, 5],
      [1, BUY, 3_000, 5],
    ];
    const first = idsOf(await quote(user, market, set));
    const elsewhere = idsOf(await quote(user, other, [[2, BUY, 1_000, 1]]));
    for (const end of ["stop", "kill"] as const) {
      await own.server[end]();
      own.server = await own.server.restart();
      user = own.client("user0");
      expect(idsOf(await quote(user, market, set))).toEqual(first);
      await expectStanding(user, market, [plain.id, ...first]);
    }
    const seller = own.client("user1");
    await own.split(seller, market, 20);
    const [next] = idsOf(
      await quote(user, market, [
        [1, BUY, 3_000, 5],
        [0, BUY, 3_000, 6],
      ]),
    );
    expect(next).toBe(first[2]);
    await own.server.kill();
    own.server = await own.server.restart();
    user = own.client("user0");
    // The plain order is older than the quote that was replaced.
    await own.client("user1").place(terms(market, 0, SELL, 3_000, 5));
    expect(await user.order(plain.id)).toMatchObject({ status: "filled" });
    await quote(user, market, []);
    await expectStanding(user, market, []);
    await expectStanding(user, other, elsewhere);
    for (const id of first) expect(await user.order(id)).toMatchObject({ status: "canceled", reason: "user" });
    expect(await user.balance()).toMatchObject({ held: notional(1_000, 1) });
  });
});

test("kill -9 while quotes are replaced and an order is amended: a whole set stands, nothing that was answered is lost", async () => {
  const random = Random.printed("kill -9 between quotes");
  await alone({ users: 2, markets: [5, 2] }, async (own) => {
    const [market, other] = [own.market(5), own.market()];
    const sizeOf = (round: number): number => 1 + (round % 900);
    const set = (round: number): QuoteSpec[] => [0, 1, 2, 3, 4].map((outcome) => [outcome, BUY, 1_000, sizeOf(round)]);
    let round = 0;
    const { id } = await own.client("user1").place(terms(other, 0, BUY, 1, 1));
    for (let crash = 0; crash < 3; crash++) {
      const [quoter, amender] = [own.client("user0"), own.client("user1")];
      const crashed = { now: false };
      const until = async (step: () => Promise<unknown>): Promise<void> => {
        try {
          for (;;) await step();
        } catch (error) {
          if (!crashed.now) throw error;
        }
      };
      // What was answered last; the one after it may have been done as well.
      let quoted = round;
      let price = (await amender.order(id)).price;
      const enough = random.integer(20, 120);
      let killed: Promise<void> | null = null;
      const kill = (): Promise<void> => {
        crashed.now = true;
        return own.server.kill();
      };
      await Promise.all([
        until(async () => {
          await quote(quoter, market, set(++round));
          quoted = round;
          if (round % 150 === enough) killed ??= kill();
        }),
        until(async () => {
          await amend(amender, id, { price: price + 1 });
          price++;
        }),
      ]);
      await killed;
      own.server = await own.server.restart();
      const standing = await liveOrders(own.client("user0"), market);
      expect(standing.map(({ outcome_id }) => outcome_id).toReversed()).toEqual(market.outcomes);
      const sizes = new Set(standing.map(({ quantity }) => quantity));
      expect(sizes.size).toBe(1);
      expect([sizeOf(quoted), sizeOf(quoted + 1)]).toContain([...sizes][0]);
      expect([price, price + 1]).toContain((await own.client("user1").order(id)).price);
      expect(await own.client("user0").balance()).toMatchObject({ held: 5 * notional(1_000, [...sizes][0]!) });
      expectSoundDatabase(own.server.dataDir);
    }
    expect(round).toBeGreaterThanOrEqual(20);
  });
});
