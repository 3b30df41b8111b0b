/**
 * POST /orders/batch: its operations run in order, each with a result of its own. With one engine thread and with three.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { OrderJson, OwnFillJson } from "../support/client.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { notional } from "../support/reference.ts";
import {BUY, batch, books, cancelAll, expectRefused, expectStanding, idsOf, type ResultJson, SELL, terms,
} from "../support/trading.ts"; // biome-ignore format: one list
import { USDC, World } from "../support/world.ts";

const codesOf = (results: readonly ResultJson[]): number[] => results.map(({ code }) => code);
const place = (...args: Parameters<typeof terms>): object => ({ op: "place", ...terms(...args) });

describe.each(variants([1], [3]))("with ENGINE_THREADS=%i", (threads) => {
  let world: World;
  beforeAll(async () => {
    world = await World.start({
      users: 60,
      named: {
        five: { deposit: 5 * USDC },
        "five-b": { deposit: 5 * USDC },
        active: { tier: 1, deposit: 1_000 * USDC },
        tier0: { tier: 0 },
        reader: { scopes: [["portfolio:read"]] },
      },
      markets: [...Array<number>(60).fill(2), 3, 3, 3],
      env: { ENGINE_THREADS: String(threads) },
    });
  });
  afterAll(async () => {
    await expectBalanced(world.anonymous());
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  });

  describe("a batch", () => {
    test("a batch places, amends and cancels in several markets; results are in order, each like that of a single request", async () => {
      const markets = [world.market(), world.market(), world.market(), world.market(3)] as const;
      const [user, other] = [world.user(), world.user()];
      await world.split(user, markets[3], 10);
      const old = await Promise.all([0, 1, 2].map((i) => user.place(terms(markets[i]!, 0, BUY, 4_000, 5))));
      const before = await user.balance();
      const results = await batch(user, [
        { op: "cancel", id: old[0]!.id },
        place(markets[0], 0, BUY, 4_500, 3, { client_order_id: "new" }),
        { op: "amend", id: old[1]!.id, price: 4_100 },
        place(markets[3], 2, SELL, 9_000, 4, { post_only: true }),
        { op: "amend", id: old[2]!.id, quantity: 2 },
        { op: "cancel", client_order_id: "new" },
        place(markets[1], 1, BUY, 5_000, 1, { time_in_force: "ioc" }),
        place(markets[2], 1, BUY, 5_000, 1, { type: "market" }),
      ]);
      expect(codesOf(results)).toEqual(Array(8).fill(0));
      expect(results.every(({ msg }) => msg.length > 0)).toBe(true);
      const data = results.map((result) => result.data!);
      expect(idsOf(data)).toEqual([
        ...[old[0]!.id, data[1]!.id, old[1]!.id, data[3]!.id, old[2]!.id, data[1]!.id, data[6]!.id, data[7]!.id],
      ]);
      for (const i of [1, 3, 6, 7]) expect(data[i]).toMatchObject({ status: "queued", filled: 0, trades: [] });
      expect(data[0]).toMatchObject({ remaining: 5, price: 4_000 });
      expect(data[2]).toMatchObject({ price: 4_100, quantity: 5 });
      expect(data[4]).toMatchObject({ price: 4_000, quantity: 2 });
      const ended = await Promise.all([0, 1, 6, 7].map((i) => user.order(data[i]!.id)));
      expect(ended.map(({ status, reason }) => [status, reason])).toEqual([
        ...[
          ["canceled", "user"],
          ["canceled", "user"],
          ["canceled", "ioc_remainder"],
          ["canceled", "ioc_remainder"],
        ],
      ]);
      expect((await user.all("/orders")).map((order) => (order as OrderJson).id)).toEqual([
        ...[data[3]!.id, old[2]!.id, old[1]!.id],
      ]);
      const held = notional(4_100, 5) + notional(4_000, 2);
      expect(await user.balance()).toEqual({ ...before, held, available: before.total - held });
      expect(await other.all("/orders?status=all")).toEqual([]);
    });

    test("a batch goes on past operations that are wrong or rejected, each with its own code", async () => {
      const [market, user, other] = [world.market(), world.user(), world.user()];
      const theirs = await other.place(terms(market, 0, BUY, 4_000, 5));
      const gone = await user.place(terms(market, 0, BUY, 4_000, 5));
      await user.cancel(gone.id);
      const wrong: [operation: object, code: number, message: RegExp][] = [
        [{ op: "nothing" }, 40000, /op/],
        [{ op: "" }, 40000, /op/],
        [{ op: "Place", ...terms(market, 0, BUY, 1, 1) }, 40000, /op/],
        [{ op: "__proto__" }, 40000, /op/],
        [{ op: "place" }, 40000, /market_id/],
        [{ ...place(market, 0, BUY, 1, 1), quantity: 0 }, 40000, /quantity/],
        [{ ...place(market, 0, BUY, 1, 1), price: null }, 40000, /price/],
        [{ ...place(market, 0, BUY, 1, 1), id: 1 }, 40000, /id/],
        [{ ...place(market, 0, BUY, 1, 1), nothing: 1 }, 40000, /nothing/],
        [{ ...place(market, 0, BUY, 1, 1), client_order_id: "a b" }, 40000, /client_order_id/],
        [{ ...place(market, 0, BUY, 1, 1), outcome_id: 999_999 }, 40000, /outcome_id/],
        [{ ...place(market, 0, BUY, 1, 1), time_in_force: "gtd", expires_at: 1 }, 40000, /expires_at/],
        [{ ...place(market, 0, BUY, 1, 1), market_id: 999_999 }, 4040, /market/],
        [place(market, 0, SELL, 1, 1), 42202, /./],
        [place(market, 0, BUY, 5_000, 1_000_000_000), 42901, /activity/],
        [{ op: "cancel" }, 40000, /id/],
        [{ op: "cancel", id: 1, client_order_id: "a" }, 40000, /id/],
        [{ op: "cancel", id: "1" }, 40000, /id/],
        [{ op: "cancel", id: 0 }, 40000, /id/],
        [{ op: "cancel", id: gone.id, price: 1 }, 40000, /price/],
        [{ op: "cancel", id: 999_999_999 }, 4040, /order/],
        [{ op: "cancel", id: theirs.id }, 4040, /order/],
        [{ op: "cancel", id: gone.id }, 40900, /./],
        [{ op: "cancel", client_order_id: "unknown" }, 4040, /order/],
        [{ op: "amend", id: gone.id }, 40000, /price/],
        [{ op: "amend", price: 1 }, 40000, /id/],
        [{ op: "amend", id: gone.id, price: 10_000 }, 40000, /price/],
        [{ op: "amend", id: gone.id, price: 1 }, 40900, /./],
        [{ op: "amend", id: theirs.id, price: 1 }, 4040, /order/],
        [{ op: "amend", id: gone.id, price: 1, client_order_id: "x" }, 40000, /client_order_id/],
      ];
      const good = (i: number): object => place(market, 1, BUY, 100 + i, 1);
      const shuffled = [0, 1].map((half) => wrong.filter((_, i) => i % 2 === half));
      const placed: number[] = [];
      for (const list of shuffled) {
        const results = await batch(
          user,
          list.flatMap(([operation], i) => [operation, good(i)]),
        );
        for (const [i, [operation, code, message]] of list.entries()) {
          expect([operation, results[2 * i]]).toEqual([
            operation,
            { code, msg: expect.stringMatching(message), data: null },
          ]);
          expect(results[2 * i + 1]).toMatchObject({ code: 0, data: { price: 100 + i, status: "queued" } });
          placed.push(results[2 * i + 1]!.data!.id);
        }
      }
      await expectStanding(user, market, placed);
      expect(await other.order(theirs.id)).toEqual({ ...theirs, status: "open" });
    });

    test("a batch of anything but 1 to 50 operations is rejected as a whole", async () => {
      const [market, user] = [world.market(), world.user()];
      const one = place(market, 0, BUY, 1, 1);
      const send = (body: unknown) => user.request("POST", "/orders/batch", { body: body as object });
      await expectRefused(send({ operations: [] }), 400, 40000, /operations/);
      await expectRefused(send({ operations: Array(51).fill(one) }), 400, 40000, /operations/);
      await expectRefused(send({}), 400, 40000, /operations/);
      await expectRefused(send({ operations: one }), 400, 40000, /operations/);
      await expectRefused(send({ operations: [one], valid_until: 1 }), 400, 40000, /valid_until/);
      await expectRefused(send([one]), 400, 40000);
      expect(await user.all("/orders?status=all")).toEqual([]);
      expect(codesOf(await batch(user, Array(50).fill(one)))).toEqual(Array(50).fill(0));
      expect(await user.all("/orders")).toHaveLength(50);
    });

    test("a batch needs the tier and the scope of trading", async () => {
      const operations = [place(world.market(), 0, BUY, 1, 1)];
      for (const name of ["tier0", "reader"]) {
        const answer = world.client(name).request("POST", "/orders/batch", { body: { operations } });
        await expectRefused(answer, 403, 40300);
      }
    });

    test("a batch takes the money that an earlier cancel sets free, also over markets, and in the right turn", async () => {
      const [market, other, user] = [world.market(), world.market(), world.client("five")];
      const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
      const again = (n: number) =>
        place(n % 2 === 0 ? market : other, 1, BUY, 5_000, 10, { client_order_id: `again-${n}` });
      const wrongTurn = await batch(user, [
        again(0),
        { op: "cancel", id },
        again(1),
        { op: "cancel", client_order_id: "again-1" },
        again(2),
      ]);
      expect(codesOf(wrongTurn)).toEqual([42201, 0, 0, 0, 0]);
      expect(await user.balance()).toMatchObject({ available: 0, held: 5 * USDC });
      const many = Array.from({ length: 24 }, (_, i) => [
        { op: "cancel", client_order_id: `again-${i + 2}` },
        again(i + 3),
      ]);
      expect(codesOf(await batch(user, many.flat()))).toEqual(Array(48).fill(0));
      expect((await user.all<OrderJson>("/orders")).map(({ client_order_id }) => client_order_id)).toEqual([
        "again-26",
      ]);
      expect(await user.balance()).toMatchObject({ available: 0, held: 5 * USDC });
      const last = await batch(user, [
        { op: "cancel", client_order_id: "again-26" },
        place(market, 1, BUY, 5_001, 10),
        again(27),
      ]);
      expect(codesOf(last)).toEqual([0, 42201, 0]);
      await cancelAll(user);
      expect(await user.balance()).toMatchObject({ available: 5 * USDC, held: 0 });
    });

    test("a batch takes shares, activity and what amends set free likewise", async () => {
      const [market, user] = [world.market(), world.user()];
      await world.split(user, market, 10);
      const sell = await user.place(terms(market, 0, SELL, 9_000, 10));
      const shares = await batch(user, [
        place(market, 0, SELL, 8_000, 1),
        { op: "amend", id: sell.id, quantity: 4 },
        place(market, 0, SELL, 8_000, 6),
        place(market, 0, SELL, 8_000, 1),
      ]);
      expect(codesOf(shares)).toEqual([42202, 0, 0, 42202]);
      expect(await user.position(market.outcomes[0]!)).toMatchObject({ held: 10 });
      const active = world.client("active");
      const { id } = await active.place(terms(market, 0, BUY, 5_000, 200));
      const activity = await batch(active, [
        { op: "amend", id, price: 1_000 },
        place(market, 0, BUY, 1_000, 800),
        place(market, 0, BUY, 1, 1),
      ]);
      expect(codesOf(activity)).toEqual([0, 0, 42901]);
      const poor = world.client("five-b");
      const first = await poor.place(terms(market, 1, BUY, 5_000, 10));
      // Money that a self-trade sets free is known a commit later too.
      const money = await batch(poor, [{ op: "amend", id: first.id, quantity: 6 }, place(market, 1, BUY, 4_000, 5)]);
      expect(codesOf(money)).toEqual([0, 0]);
      expect(await poor.balance()).toMatchObject({ available: 0, held: 5 * USDC });
    });

    test("a batch knows its own client order ids: repeats, conflicts, cancels", async () => {
      const [market, user] = [world.market(), world.user()];
      const named = (name: string, price = 4_000) => place(market, 0, BUY, price, 2, { client_order_id: name });
      const results = await batch(user, [
        ...[named("a"), named("a"), named("a", 4_001), named("b")],
        ...[{ op: "cancel", client_order_id: "a" }, named("a"), { op: "cancel", client_order_id: "a" }],
        ...[{ op: "cancel", client_order_id: "c" }, named("c")],
      ]);
      expect(codesOf(results)).toEqual([0, 0, 40900, 0, 0, 0, 40900, 4040, 0]);
      expect(results[1]!.data).toEqual(results[0]!.data);
      // The repeat after the cancel returns the first response, and places nothing.
      expect(results[5]!.data).toEqual(results[0]!.data);
      expect(results[4]!.data).toMatchObject({ id: results[0]!.data!.id, remaining: 2 });
      await expectStanding(user, market, [results[3]!.data!.id, results[8]!.data!.id]);
      // The whole batch again: what it placed stays placed once.
      const again = await batch(user, [named("a"), named("b"), named("c")]);
      expect(again.map(({ data }) => data)).toEqual([results[0]!.data, results[3]!.data, results[8]!.data]);
      expect(await user.all("/orders?status=all")).toHaveLength(3);
    });

    test("a batch is taken in turn: its orders queue and match in their order", async () => {
      const [market, user, other] = [world.market(), world.user(), world.user()];
      await world.split(user, market, 20);
      await world.split(other, market, 20);
      const bids = await batch(
        user,
        [3, 2, 4].map((quantity) => place(market, 0, BUY, 4_000, quantity)),
      );
      await other.place(terms(market, 0, SELL, 4_000, 4));
      const states = await Promise.all(bids.map(({ data }) => user.order(data!.id)));
      expect(states.map(({ filled }) => filled)).toEqual([3, 1, 0]);
      // An own bid is canceled before the sell comes that would meet it: no self-trade.
      const results = await batch(user, [
        { op: "cancel", id: bids[1]!.data!.id },
        { op: "cancel", id: bids[2]!.data!.id },
        place(market, 0, SELL, 4_000, 5),
        place(market, 0, BUY, 3_999, 1),
      ]);
      expect(codesOf(results)).toEqual([0, 0, 0, 0]);
      expect(await user.order(results[2]!.data!.id)).toMatchObject({ status: "open", remaining: 5 });
      expect(await books(user, market)).toMatchObject([{ bids: [[3_999, 1]], asks: [[4_000, 5]] }, {}]);
    });

    test("a batch amends one field of an order that operations before it changed, and leaves the other as they made it", async () => {
      const [market, user] = [world.market(), world.user()];
      await world.split(user, market, 10);
      const bid = await user.place(terms(market, 0, BUY, 4_000, 5));
      const sell = place(market, 0, SELL, 4_000, 2, { self_trade_prevention: "decrement" });
      const results = await batch(user, [
        { op: "amend", id: bid.id, price: 4_100 },
        { op: "amend", id: bid.id, quantity: 6 },
        { op: "amend", id: bid.id, price: 4_000 },
        sell,
        { op: "amend", id: bid.id, price: 3_900 },
      ]);
      expect(codesOf(results)).toEqual([0, 0, 0, 0, 0]);
      expect(await user.order(bid.id)).toMatchObject({ price: 3_900, quantity: 4, remaining: 4, filled: 0 });
      expect(await user.balance()).toMatchObject({ held: notional(3_900, 4) });
    });

    test("a batch amends one field after an amend that was too late, and takes nothing over from that", async () => {
      const [market, user] = [world.market(), world.user()];
      const [bid, other] = [
        await user.place(terms(market, 0, BUY, 4_000, 5)),
        await user.place(terms(market, 1, BUY, 4_000, 5)),
      ];
      const late = { valid_until: 1 };
      const results = await batch(user, [
        { op: "amend", id: bid.id, quantity: 8, ...late },
        { op: "amend", id: bid.id, price: 3_900 },
        { op: "amend", id: other.id, price: 5_000, ...late },
        { op: "amend", id: other.id, quantity: 4 },
      ]);
      expect(codesOf(results)).toEqual([40900, 0, 40900, 0]);
      expect(await user.order(bid.id)).toMatchObject({ price: 3_900, quantity: 5, remaining: 5 });
      expect(await user.order(other.id)).toMatchObject({ price: 4_000, quantity: 4, remaining: 4 });
      expect(await user.balance()).toMatchObject({ held: notional(3_900, 5) + notional(4_000, 4) });
    });

    test("a batch at the same time as others of the same user loses nothing of anyone's", async () => {
      const random = Random.printed(`batches at once, ${threads} threads`);
      const markets = [world.market(), world.market(), world.market()];
      const fresh = [world.user(), world.user()];
      const users = fresh.map((user) => world.client(user.token!.split("-")[1]!, 0, 4));
      for (const user of users) for (const market of markets) await world.split(user, market, 100);
      const ids = users.map(() => new Set<number>());
      async function trade(who: number, stream: number): Promise<void> {
        for (let round = 0; round < 12; round++) {
          const operations = Array.from({ length: random.integer(1, 50) }, (_, i) => {
            const known = [...ids[who]!];
            const id = known.length === 0 ? 1 : random.pick(known);
            const kind = random.next();
            if (kind < 0.15) return { op: "cancel", id };
            if (kind < 0.3)
              return { op: "amend", id, price: random.integer(4_900, 5_100), quantity: random.integer(1, 6) };
            const side = random.pick([BUY, SELL]);
            const more = { client_order_id: `${stream}-${round}-${i}`, self_trade_prevention: "cancel_maker" };
            return place(
              random.pick(markets),
              random.integer(0, 1),
              side,
              random.integer(4_900, 5_100),
              random.integer(1, 3),
              more,
            );
          });
          const results = await batch(users[who]!, operations);
          for (const [i, { code, data }] of results.entries()) {
            const { op } = operations[i]! as { op: string };
            expect(op === "place" ? [0, 42202] : [0, 40900, 4040, 42202]).toContain(code);
            if (op === "place" && data !== null) {
              expect(data.client_order_id).toBe(`${stream}-${round}-${i}`);
              ids[who]!.add(data.id);
            }
          }
        }
      }
      await Promise.all([trade(0, 0), trade(0, 1), trade(1, 2), trade(1, 3)]);
      for (const [who, user] of users.entries()) {
        const orders = await user.all<OrderJson>("/orders?status=all");
        expect(new Set(idsOf(orders))).toEqual(ids[who]);
        for (const { filled, remaining, quantity } of orders) expect(filled + remaining).toBe(quantity);
        const fills = await user.all<OwnFillJson>("/me/fills");
        expect(fills.length).toBeGreaterThan(20);
        await cancelAll(user);
        expect(await user.all("/orders")).toEqual([]);
        expect(await user.balance()).toMatchObject({ held: 0 });
        for (const market of markets) {
          for (const outcome of market.outcomes) {
            const bought = fills.filter((fill) => fill.outcome_id === outcome);
            const change = bought.reduce((sum, { side, quantity }) => sum + (side === BUY ? quantity : -quantity), 0);
            const position = (await user.position(outcome)) ?? { quantity: 0, held: 0 };
            expect(position).toMatchObject({ quantity: 100 + change, held: 0 });
          }
        }
      }
    });
  });
});
