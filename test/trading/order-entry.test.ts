/**
 * Every entry point at once, by one user on several connections with scarce means, while takers trade against it:
 * nothing goes negative, and at the end fills, orders, balances and positions agree to the last micro-USDC.
 */
import { afterEach, expect, test } from "vitest";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson, OwnFillJson, PositionJson } from "../support/client.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { notional } from "../support/reference.ts";
import {
  BUY, cancelAll, expectAccounted, idsOf, patch, post, putQuotes, type QuoteSpec, type ResultJson, SELL, terms,
} from "../support/trading.ts"; // biome-ignore format: one list
import { type TestMarket, USDC, World } from "../support/world.ts";

const CONNECTIONS = 4;
const STEPS = 150;
const MAKER_SETS = 4;
const TAKER_SETS = 500;
const MAKER_DEPOSIT = 25 * USDC;
/** Accepted; gtd order past its end; unknown order; ended order; no money, no shares, daily activity used up. */
const FAIR_CODES = [0, 40000, 4040, 40900, 42201, 42202, 42900, 42901];

let world: World | null = null;
afterEach(async () => {
  await world?.server.kill();
  world = null;
});

/** What one user does on one connection, at random. */
class Maker {
  /** Orders that the user has learned of, on any connection. */
  readonly known: Set<number>;
  readonly codes: Map<number, number>;
  private readonly client: Client;
  private readonly random: Random;
  private readonly markets: readonly TestMarket[];

  constructor(client: Client, random: Random, markets: readonly TestMarket[], shared: Pick<Maker, "known" | "codes">) {
    this.client = client;
    this.random = random;
    this.markets = markets;
    this.known = shared.known;
    this.codes = shared.codes;
  }

  async step(): Promise<void> {
    const { client, random } = this;
    const kind = random.next();
    if (kind < 0.25) {
      const { code, data } = await post(client, this.placement());
      this.learn([{ code, data }]);
    } else if (kind < 0.5) {
      const { code, data } = await patch(client, this.order(), this.change());
      this.learn([{ code, data }]);
    } else if (kind < 0.6) {
      const { code } = await client.request("DELETE", `/orders/${this.order()}`);
      this.learn([{ code, data: null }]);
    } else if (kind < 0.78) {
      const operations = Array.from({ length: random.integer(1, 12) }, () => this.operation());
      const { data } = await client.request<{ results: ResultJson[] }>("POST", "/orders/batch", {
        body: { operations },
      });
      expect(data.results).toHaveLength(operations.length);
      this.learn(data.results);
    } else if (kind < 0.97) {
      const market = random.pick(this.markets);
      const answer = await putQuotes(client, market, this.quotes(market));
      const { results } = (answer.data ?? { results: [{ code: answer.code, data: null }] }) as {
        results: ResultJson[];
      };
      this.learn(results);
    } else await cancelAll(client, random.pick(["", "?side=1", `?market_id=${random.pick(this.markets).id}`]));
    await this.expectNothingNegative();
  }

  private learn(results: readonly Pick<ResultJson, "code" | "data">[]): void {
    for (const { code, data } of results) {
      expect(FAIR_CODES).toContain(code);
      this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
      if (data !== null) this.known.add(data.id);
    }
  }

  private async expectNothingNegative(): Promise<void> {
    const { available, held, total } = await this.client.balance();
    expect([available >= 0, held >= 0, total]).toEqual([true, true, available + held]);
    for (const { quantity, held: shares } of await this.client.all<PositionJson>("/me/positions")) {
      expect(quantity).toBeGreaterThanOrEqual(shares);
    }
  }

  private order(): number {
    const newest = [...this.known].slice(-12);
    return newest.length === 0 ? 1 : this.random.pick(newest);
  }

  private price(market: TestMarket, side: number): number {
    const even = Math.round(10_000 / market.outcomes.length);
    return even + (side === BUY ? -1 : 1) * this.random.integer(1, 400);
  }

  private placement(): object {
    const { random } = this;
    const market = random.pick(this.markets);
    const side = random.pick([BUY, SELL]);
    const more = {
      self_trade_prevention: random.pick(["cancel_taker", "cancel_maker", "cancel_both", "decrement"]),
      ...(random.chance(0.2) ? { time_in_force: "gtd", expires_at: Date.now() + random.integer(5, 500) } : {}),
      ...(random.chance(0.2) ? { valid_until: Date.now() + random.integer(0, 5) } : {}),
    };
    const outcome = random.integer(0, market.outcomes.length - 1);
    return terms(market, outcome, side, this.price(market, side), random.integer(1, 12), more);
  }

  private change(): object {
    const { random } = this;
    const change: Record<string, number> = {};
    if (random.chance(0.7)) change["price"] = this.price(random.pick(this.markets), random.pick([BUY, SELL]));
    if (random.chance(0.7) || change["price"] === undefined) change["quantity"] = random.integer(1, 15);
    return change;
  }

  private operation(): object {
    const kind = this.random.next();
    if (kind < 0.25) return { op: "cancel", id: this.order() };
    if (kind < 0.55) return { op: "amend", id: this.order(), ...this.change() };
    return { op: "place", ...this.placement() };
  }

  private quotes(market: TestMarket): QuoteSpec[] {
    return Array.from({ length: this.random.integer(0, 6) }, (): QuoteSpec => {
      const side = this.random.pick([BUY, SELL]);
      const outcome = this.random.integer(0, market.outcomes.length - 1);
      return [outcome, side, this.price(market, side), this.random.integer(1, 10)];
    });
  }
}

for (const threads of variants([1], [3])) {
  test(`all entry points at once leave exact balances, with ENGINE_THREADS=${threads}`, async () => {
    const random = Random.printed(`everything at once, ${threads} threads`);
    const env = { ENGINE_THREADS: String(threads) };
    const named = { maker: { deposit: MAKER_DEPOSIT } };
    world = await World.start({ users: 2, named, markets: [2, 2, 3], env });
    const markets = world.markets;
    const user = world.client("maker", 0, CONNECTIONS);
    const takers = [world.user(), world.user()];
    for (const market of markets) {
      await world.split(user, market, MAKER_SETS);
      for (const taker of takers) await world.split(taker, market, TAKER_SETS);
    }
    const shared = { known: new Set<number>(), codes: new Map<number, number>() };
    let making = true;
    const take = async (taker: Client): Promise<void> => {
      while (making) {
        const market = random.pick(markets);
        const side = random.pick([BUY, SELL]);
        const outcome = random.integer(0, market.outcomes.length - 1);
        const body = terms(market, outcome, side, side === BUY ? 6_000 : 3_000, random.integer(1, 2));
        const { code } = await post(taker, { ...body, time_in_force: "ioc" });
        expect(FAIR_CODES).toContain(code);
      }
    };
    const taking = Promise.all(takers.map(take));
    const make = async (): Promise<void> => {
      const maker = new Maker(user, random, markets, shared);
      for (let i = 0; i < STEPS; i++) await maker.step();
    };
    try {
      await Promise.all(Array.from({ length: CONNECTIONS }, make));
    } catch (error) {
      (error as Error).message += `\nTEST_SEED=${random.seed}`;
      throw error;
    } finally {
      making = false;
    }
    await taking;
    for (const code of [0, 40900, 42201, 42202]) expect(shared.codes.get(code) ?? 0).toBeGreaterThan(5);
    await expectHeld(user);
    await cancelAll(user);
    await eventually(async () => expect(await user.all("/orders")).toEqual([]));
    const orders = await user.all<OrderJson>("/orders?status=all");
    expect(new Set(idsOf(orders))).toEqual(shared.known);
    const filled = new Map<number, number>();
    for (const { order_id, quantity } of await user.all<OwnFillJson>("/me/fills")) {
      filled.set(order_id, (filled.get(order_id) ?? 0) + quantity);
    }
    for (const order of orders) {
      expect([order.id, order.filled]).toEqual([order.id, filled.get(order.id) ?? 0]);
      expect(order.filled + order.remaining).toBe(order.quantity);
      expect(["filled", "canceled", "expired", "rejected"]).toContain(order.status);
    }
    expect(filled.size).toBeGreaterThan(20);
    await expectAccounted(user, markets, MAKER_DEPOSIT, MAKER_SETS);
    for (const taker of takers) await expectAccounted(taker, markets, 10_000 * USDC, TAKER_SETS);
    await expectBalanced(user);
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  });
}

/** Without traffic, holds equal those of the live orders. A gtd order may end in between. */
async function expectHeld(user: Client): Promise<void> {
  await eventually(async () => {
    const live = await user.all<OrderJson>("/orders");
    const { held } = await user.balance();
    const bids = live.filter(({ side }) => side === BUY);
    expect(held).toBe(bids.reduce((sum, { price, remaining }) => sum + notional(price, remaining), 0));
    for (const { outcome_id, held: shares } of await user.all<PositionJson>("/me/positions")) {
      const asks = live.filter((order) => order.side === SELL && order.outcome_id === outcome_id);
      expect(shares).toBe(asks.reduce((sum, { remaining }) => sum + remaining, 0));
    }
  });
}
