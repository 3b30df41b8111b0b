/**
 * A maker with just enough money and shares changes its orders as fast as it can, several changes in flight, while others
 * trade with it: no sequence of fills, amends, cancels and replacements may find less than its holds. The server asserts
 * each hold; money and shares must add up exactly.
 */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import type { Acknowledgement, Socket } from "../support/socket.ts";
import { BUY, cancelAll, expectAccounted, post, quote as quoted, SELL, terms } from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

const BURSTS = Number(process.env["TIGHT_BURSTS"] ?? 300 * EFFORT);
const SETS = 20;
const DEPOSIT = 40 * USDC;
/** Codes that a maker with tight means can receive. */
const EXPECTED = [0, 4040, 40900, 42201, 42202, 42901];
const MODES = ["cancel_taker", "cancel_maker", "cancel_both", "decrement"];

/** Random requests of a maker in two outcomes, at prices where its own orders sometimes cross. */
class MakerRequests {
  private readonly random: Random;
  private readonly market: TestMarket;
  /** The ids of its orders, the latest last. */
  private readonly ids: number[] = [];

  constructor(random: Random, market: TestMarket) {
    this.random = random;
    this.market = market;
  }

  met(id: number): void {
    if (this.ids.at(-1) !== id) this.ids.push(id);
  }

  next(): { op: string; data: object } {
    const { random } = this;
    if (random.chance(0.35))
      return { op: "quotes.replace", data: { market_id: this.market.id, quotes: this.quotes() } };
    if (random.chance(0.4)) {
      const operations = Array.from({ length: random.integer(2, 5) }, () => {
        if (random.chance(0.4)) return { op: "place", ...this.order() };
        return random.chance(0.7) ? { op: "amend", ...this.amend() } : { op: "cancel", id: this.own() };
      });
      return { op: "order.batch", data: { operations } };
    }
    return random.chance(0.7) ? { op: "order.amend", data: this.amend() } : { op: "order.place", data: this.order() };
  }

  private own(): number {
    return this.ids[Math.max(0, this.ids.length - this.random.integer(1, 8))] ?? 1;
  }

  private price(): number {
    return this.random.integer(20, 80) * 100;
  }

  private quantity(): number {
    return this.random.chance(0.3) ? this.random.integer(10, 2 * SETS) : this.random.integer(1, 10);
  }

  private quotes(): object[] {
    const { random, market } = this;
    return Array.from({ length: random.integer(0, 4) }, () => {
      const outcome_id = market.outcomes[random.integer(0, 1)];
      return { outcome_id, side: random.pick([BUY, SELL]), price: this.price(), quantity: this.quantity() };
    });
  }

  private order(): object {
    const { random } = this;
    return terms(this.market, random.integer(0, 1), random.pick([BUY, SELL]), this.price(), this.quantity(), {
      time_in_force: random.chance(0.7) ? "gtc" : "ioc",
      self_trade_prevention: random.pick(MODES),
    });
  }

  /** Some amends reach the engine too late and change nothing. */
  private amend(): object {
    const { random } = this;
    const late = random.chance(0.3) ? { valid_until: Date.now() + random.integer(0, 1) } : {};
    const price = random.chance(0.7) ? { price: this.price() } : {};
    const isBare = !("price" in price);
    return {
      id: this.own(),
      ...price,
      ...(isBare || random.chance(0.5) ? { quantity: this.quantity() } : {}),
      ...late,
    };
  }
}

/** A maker for each test: sets and money as its rounds need. */
const MAKERS: Readonly<Record<string, { readonly sets: number; readonly money: number }>> = {
  any: { sets: SETS, money: DEPOSIT - SETS * USDC },
  "self-trade": { sets: 20, money: 10 * USDC },
  "late-amend": { sets: 0, money: 6 * USDC + 100 },
  decrement: { sets: 12, money: 10 * USDC },
  twice: { sets: 0, money: 1.25 * USDC },
};

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 1,
    named: Object.fromEntries(
      Object.entries(MAKERS).map(([name, { sets, money }]) => [name, { deposit: sets * USDC + money }]),
    ),
    markets: Array<number>(5).fill(2),
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

test("tight means cover any sequence of changes in flight and fills", { timeout: 120_000 }, async () => {
  const random = Random.printed("tight means");
  const [market, maker, other] = [world.market(), world.client("any"), world.user()];
  await world.split(maker, market, SETS);
  await world.split(other, market, 2_000);
  const socket = await world.socket(maker);
  const requests = new MakerRequests(random, market);
  const read = follow(socket, requests);
  let trading = true;
  const trade = async (): Promise<void> => {
    while (trading) {
      const side = random.pick([BUY, SELL]);
      const price = random.integer(20, 80) * 100;
      const more = { time_in_force: random.chance(0.8) ? "ioc" : "gtc" };
      const { code } = await post(other, terms(market, random.integer(0, 1), side, price, random.integer(1, 6), more));
      expect([0, 42901]).toContain(code);
    }
  };
  const taking = trade();
  taking.catch(() => {});
  const codes = new Map<number, number>();
  const under: Promise<void>[] = [];
  for (let burst = 0; burst < BURSTS; burst++) {
    const sent = Array.from({ length: random.integer(1, 4) }, () => socket.post(requests.next()));
    for (const id of sent) {
      const taken = async (): Promise<void> => {
        const { code, msg } = await socket.answer(id);
        expect(EXPECTED, msg).toContain(code);
        codes.set(code, (codes.get(code) ?? 0) + 1);
      };
      const answered = taken();
      // Awaited below: a rejection must not count as unhandled before.
      answered.catch(() => {});
      under.push(answered);
    }
    if (under.length > 12) await Promise.all(under.splice(0, 8));
    // Changes meet at every distance: in one turn, in one commit, one commit later.
    if (random.chance(0.7)) await pause(random.integer(0, 2));
    read();
  }
  await Promise.all(under);
  trading = false;
  await taking;
  process.stdout.write(`codes: ${JSON.stringify(Object.fromEntries(codes))}\n`);
  expect([...codes.keys()].toSorted()).toEqual(expect.arrayContaining([0, 40900, 42201, 42202]));
  await quoted(maker, market, []);
  await cancelAll(maker);
  await cancelAll(other);
  await socket.fence();
  expect(await maker.all<OrderJson>("/orders")).toEqual([]);
  await expectAccounted(maker, [market], DEPOSIT, SETS);
  await socket.close();
});

describe("the next order doesn't spend what a change in flight relies on", () => {
  const ROUNDS = 24 * EFFORT;

  interface Round {
    readonly market: TestMarket;
    readonly socket: Socket;
    readonly maker: Client;
  }

  /** Sends both; in some rounds the first is on its way to the database when the second arrives. Returns both responses. */
  async function meet(socket: Socket, round: number, first: object, second: object): Promise<Acknowledgement[]> {
    const ids = [socket.post(first)];
    // The event loop must turn for the first to leave.
    await pause(0);
    const until = performance.now() + (round % 24) / 16;
    while (performance.now() < until);
    ids.push(socket.post(second));
    return Promise.all(ids.map((id) => socket.answer(id)));
  }

  const codesOf = ({ data }: Acknowledgement): number[] =>
    (data as { results: { code: number }[] }).results.map(({ code }) => code);

  /** Plays rounds with one of MAKERS, which holds its sets and its money beside them; each must leave nothing live. */
  async function rounds(name: string, play: (round: Round, n: number) => Promise<void>): Promise<void> {
    const { sets, money } = MAKERS[name]!;
    const [market, maker] = [world.market(), world.client(name)];
    if (sets > 0) await world.split(maker, market, sets);
    const socket = await world.socket(maker);
    for (let n = 0; n < ROUNDS; n++) {
      await play({ market, socket, maker }, n);
      await quoted(maker, market, []);
      await cancelAll(maker);
      expect(await maker.balance()).toEqual({ available: money, held: 0, total: money });
    }
    await expectAccounted(maker, [market], sets * USDC + money, sets);
    await socket.close();
  }

  test("the next order doesn't spend the shares of a quote that a self-trade ends before the new one is placed", async () => {
    await rounds("self-trade", async ({ market, socket, maker }, n) => {
      await maker.place(terms(market, 0, BUY, 3_000, 1));
      const [{ id }] = (await quoted(maker, market, [[0, SELL, 6_000, 20]])) as [OrderJson];
      const next = { op: "place", ...terms(market, 0, SELL, 7_000, 20) };
      const operations = [{ op: "amend", id, price: 3_000 }, next];
      const quotes = [{ outcome_id: market.outcomes[0], side: SELL, price: 6_500, quantity: 20 }];
      const [batch, replaced] = await meet(
        ...([socket, n, { op: "order.batch", data: { operations } }, replace(market, quotes)] as const),
      );
      // Either the quote or the order after the amend gets the shares.
      expect([codesOf(batch!)[1], replaced!.code].toSorted()).toEqual([0, 42202]);
    });
  });

  test("the next order doesn't spend the money of a quote whose amend arrives too late", async () => {
    await rounds("late-amend", async ({ market, socket, maker }, n) => {
      const [{ id }] = (await quoted(maker, market, [[0, BUY, 2_000, 10]])) as [OrderJson];
      const next = { op: "place", ...terms(market, 1, BUY, 4_000, 10) };
      // A change without effect needs no commit; the order before it does.
      const committed = { op: "place", ...terms(market, 1, BUY, 1, 1, { time_in_force: "ioc" }) };
      const operations = [committed, { op: "amend", id, price: 6_000, valid_until: 1 }, next];
      const quotes = [{ outcome_id: market.outcomes[0], side: BUY, price: 6_000, quantity: 10 }];
      const [batch, replaced] = await meet(
        ...([socket, n, { op: "order.batch", data: { operations } }, replace(market, quotes)] as const),
      );
      expect([codesOf(batch!)[2], replaced!.code].toSorted()).toEqual([0, 42201]);
    });
  });

  test("the next order doesn't spend shares that a self-trade takes from an order and an amend restores", async () => {
    await rounds("decrement", async ({ market, socket, maker }, n) => {
      const { id } = await maker.place(terms(market, 0, SELL, 5_000, 10));
      const decrement = { self_trade_prevention: "decrement", time_in_force: "ioc" };
      const operations = [
        { op: "place", ...terms(market, 0, BUY, 5_000, 3, decrement) },
        { op: "place", ...terms(market, 0, SELL, 9_000, 3) },
      ];
      const [batch, amended] = await meet(
        ...([socket, n, { op: "order.batch", data: { operations } }, change({ id, quantity: 12 })] as const),
      );
      // If the amend follows the batch, the two shares left and the three freed are too few.
      expect([codesOf(batch!)[1], amended!.code].toSorted()).toEqual([0, 42202]);
    });
  });

  test("the next order doesn't spend the money of an order that is amended twice at once", async () => {
    await rounds("twice", async ({ market, socket, maker }) => {
      const { id } = await maker.place(terms(market, 0, BUY, 2_000, 5));
      const amends = [
        { id, price: 500, quantity: 10 },
        { id, price: 1_500, quantity: 10 },
      ];
      const answers = await Promise.all(amends.map((data) => socket.ask(change(data))));
      expect(answers.map(({ code }) => code)).toEqual([0, 42201]);
    });
  });

  const replace = (market: TestMarket, quotes: object[]) => ({
    op: "quotes.replace",
    data: { market_id: market.id, quotes },
  });
  const change = (data: object) => ({ op: "order.amend", data });
});

/** Reports to `requests` the orders that the socket received updates of since the last call. */
function follow(socket: Socket, requests: MakerRequests): () => void {
  let next = 0;
  return () => {
    for (; next < socket.frames.length; next++) {
      const { event, data } = socket.frames[next]!;
      if (event === "order.updated") requests.met((data as OrderJson).id);
    }
  };
}
