/**
 * A random trading session over HTTP beside the reference exchange: users of all tiers, markets of 2, 3 and 5 outcomes,
 * every kind of order. Each answer and each order's state must be the reference's, and every few steps all books,
 * balances, holds, positions, collateral and the house. One connection, one request at a time; TEST_SEED repeats a run.
 */
import { afterEach, expect, test } from "vitest";
import { DAILY_ACTIVITY_LIMIT_MICRO } from "../../engine/limits.ts";
import type { Placement } from "../engine/reference-book.ts";
import { expectSoundDatabase } from "./support/checks.ts";
import type {
  BookJson,
  Client,
  OrderJson,
  OwnFillJson,
  PositionJson,
  TradeJson,
  TransactionJson,
} from "./support/client.ts";
import { Random } from "./support/random.ts";
import { feeOn, notional, ReferenceExchange, rebateOn } from "./support/reference.ts";
import { type TestMarket, USDC, type UserSpec, World } from "./support/world.ts";

const SELL = 2;
const STEPS_BETWEEN_COMPARISONS = 20;
const USERS: Readonly<Record<string, Required<Pick<UserSpec, "tier" | "deposit">>>> = {
  alice: { tier: 2, deposit: 5_000 * USDC },
  bob: { tier: 2, deposit: 5_000 * USDC },
  carol: { tier: 2, deposit: 300 * USDC },
  dave: { tier: 2, deposit: 12 * USDC + 345_678 },
  erin: { tier: 1, deposit: 5_000 * USDC },
  frank: { tier: 0, deposit: 5_000 * USDC },
};
const NAMES = Object.keys(USERS);

let world: World | null = null;
afterEach(async () => {
  await world?.server.kill();
  world = null;
});

for (const [threads, orders] of [
  [1, 1_500],
  [2, 300],
  [3, 300],
] as const) {
  test(`${orders} random orders end as the reference says, with ENGINE_THREADS=${threads}`, async () => {
    const random = Random.printed(`session of ${orders} orders`);
    world = await World.start({
      users: 0,
      named: USERS,
      markets: [2, 3, 5, 2],
      env: { ENGINE_THREADS: String(threads) },
    });
    const session = new Session(world, random);
    try {
      while (session.placed < orders) await session.step();
      await session.compare();
      await session.compareHistory();
    } catch (error) {
      (error as Error).message += `\nTEST_SEED=${random.seed}, after\n${session.log.slice(-12).join("\n")}`;
      throw error;
    }
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  });
}

class Session {
  /** Placements sent, refused ones too. */
  placed = 0;
  readonly log: string[] = [];
  private steps = 0;
  private readonly random: Random;
  private readonly markets: readonly TestMarket[];
  private readonly clients: readonly Client[];
  private readonly reference = new ReferenceExchange();
  /** Of every placement that was taken: [order, market, user]. */
  private readonly taken: [id: number, market: TestMarket, user: number][] = [];

  constructor(on: World, random: Random) {
    this.random = random;
    this.markets = on.markets;
    this.clients = NAMES.map((name) => on.client(name));
    for (const { id, outcomes } of on.markets) this.reference.addMarket(id, outcomes);
    NAMES.forEach((name, user) => {
      this.reference.deposit(user, USERS[name]!.deposit);
    });
  }

  async step(): Promise<void> {
    const { random } = this;
    const user = random.integer(0, this.clients.length - 1);
    const kind = random.next();
    if (kind < 0.15 && this.taken.length > 0) await this.cancel(user);
    else if (kind < 0.21) await this.changeSets(user, "split");
    else if (kind < 0.25) await this.changeSets(user, "merge");
    else await this.place(user);
    if (++this.steps % STEPS_BETWEEN_COMPARISONS === 0) await this.compare();
  }

  private async place(user: number): Promise<void> {
    const { random, reference } = this;
    const market = random.pick(this.markets);
    const outcome = random.pick(market.outcomes);
    const side = random.pick([1, SELL] as const);
    const terms = this.terms(market);
    const body = { market_id: market.id, outcome_id: outcome, side, ...terms };
    const unbound = terms.price === undefined;
    const price = terms.price ?? (side === SELL ? 1 : 9_999);
    this.placed++;
    this.log.push(`${NAMES[user]} places ${JSON.stringify(body)}`);
    const answer = await this.clients[user]!.request<OrderJson>("POST", "/orders", { body });
    const placement: Placement = {
      ...{ id: answer.data?.id ?? 0, at: answer.data?.created_at ?? 0, user, outcome, side, price, pat: true },
      ...{ quantity: terms.quantity, type: terms.type, timeInForce: terms.time_in_force, postOnly: terms.post_only },
      ...{
        prevention: terms.self_trade_prevention,
        expiresAt: terms.expires_at ?? 0,
        validUntil: terms.valid_until ?? 0,
      },
    };
    const { tier } = USERS[NAMES[user]!]!;
    const limit = DAILY_ACTIVITY_LIMIT_MICRO[tier]!;
    const refusal = tier === 0 ? { refused: 40300 } : reference.refusal(placement, limit, unbound);
    expect(answer.code).toBe(refusal?.refused ?? 0);
    if (refusal !== null) return;
    reference.place(market.id, placement);
    this.taken.push([answer.data.id, market, user]);
    await this.compareOrder(this.taken.at(-1)!);
  }

  /** What an order says beside market, outcome and side. */
  private terms(market: TestMarket) {
    const { random } = this;
    const even = Math.round(10_000 / market.outcomes.length / 50) * 50;
    // Now and then far up: with three or more outcomes resting bids alone may pass 10000.
    const near = even + 50 * (random.chance(0.1) ? random.integer(10, 40) : random.integer(-4, 4));
    const price = random.chance(0.06) ? random.pick([1, 2, 9_998, 9_999, random.integer(1, 9_999)]) : near;
    const quantity = random.chance(0.03) ? random.pick([1_000, 20_000, 1_000_000_000]) : random.integer(1, 12);
    const self_trade_prevention = random.pick(["cancel_taker", "cancel_maker", "cancel_both", "decrement"] as const);
    const now = Date.now();
    const valid_until = random.chance(0.05) ? now + random.pick([-60_000, 60_000]) : undefined;
    const usual = { price, quantity, self_trade_prevention, valid_until, post_only: false, expires_at: undefined };
    const type = "limit" as const;
    const kind = random.next();
    if (kind < 0.6) return { ...usual, type, time_in_force: "gtc" as const };
    if (kind < 0.68) return { ...usual, type, time_in_force: "gtc" as const, post_only: true };
    if (kind < 0.75) return { ...usual, type, time_in_force: "gtd" as const, expires_at: now + 3_600_000 };
    if (kind < 0.83) return { ...usual, type, time_in_force: "ioc" as const };
    if (kind < 0.91) return { ...usual, type, time_in_force: "fok" as const };
    const bound = random.chance(0.5) ? price : undefined;
    return { ...usual, type: "market" as const, price: bound, time_in_force: random.pick(["ioc", "fok"] as const) };
  }

  private async cancel(user: number): Promise<void> {
    const { random } = this;
    // Mostly one of the user's own, often a finished one.
    const own = this.taken.filter(([, , owner]) => owner === user);
    const among = own.length > 0 && random.chance(0.9) ? own.slice(-30) : this.taken;
    const [id, market, owner] = random.pick(among);
    this.log.push(`${NAMES[user]} cancels ${id}`);
    const { status } = this.reference.order(market.id, id)!;
    const live = status === "open" || status === "partially_filled";
    const answer = await this.clients[user]!.request<OrderJson>("DELETE", `/orders/${id}`);
    const tierless = USERS[NAMES[user]!]!.tier === 0;
    expect(answer.code).toBe(tierless ? 40300 : owner !== user ? 4040 : live ? 0 : 40900);
    if (answer.code !== 0) return;
    expect(answer.data).toMatchObject({ id, status, reason: null });
    this.reference.cancel(market.id, id);
    await this.compareOrder([id, market, owner]);
  }

  private async changeSets(user: number, name: "split" | "merge"): Promise<void> {
    const market = this.random.pick(this.markets);
    const quantity = this.random.chance(0.05) ? 100_000 : this.random.integer(1, 25);
    this.log.push(`${NAMES[user]} ${name}s ${quantity} sets of ${market.id}`);
    const body = { market_id: market.id, quantity };
    const answer = await this.clients[user]!.request("POST", `/wallet/${name}`, { body });
    if (USERS[NAMES[user]!]!.tier === 0) {
      expect(answer.code).toBe(40300);
      return;
    }
    expect(answer.code).toBe(this.reference[name](user, market.id, quantity)?.refused ?? 0);
  }

  private async compareOrder([id, market, user]: [number, TestMarket, number]): Promise<void> {
    const { status, reason, remaining, quantity, price } = this.reference.order(market.id, id)!;
    const order = await this.clients[user]!.order(id);
    expect(order).toMatchObject({ id, status, reason, remaining, quantity, price, filled: quantity - remaining });
    expect(order.trades.reduce((sum, trade) => sum + trade.quantity, 0)).toBe(order.filled);
  }

  /** Everything that is visible now. */
  async compare(): Promise<void> {
    const { reference } = this;
    const { deposits, withdrawals, users_total, collateral, house, balanced } = await this.clients[0]!.solvency();
    expect([deposits, withdrawals, users_total, collateral, house, balanced]).toEqual([
      ...[reference.deposits, 0, reference.usersTotal, reference.collateral, reference.house, true],
    ]);
    for (const { id, outcomes } of this.markets) {
      const { outcomes: books } = await this.clients[0]!.get<{ outcomes: BookJson[] }>(`/markets/${id}/orderbook`);
      for (const [i, outcome] of outcomes.entries()) {
        const { outcome_id, bids, asks } = books[i]!;
        expect([outcome_id, bids, asks]).toEqual([
          outcome,
          reference.levels(id, outcome, 1),
          reference.levels(id, outcome, SELL),
        ]);
      }
    }
    for (const [user, client] of this.clients.entries()) await this.compareUser(user, client);
  }

  private async compareUser(user: number, client: Client): Promise<void> {
    const { reference } = this;
    const [total, held] = [reference.balance(user), reference.held(user)];
    expect(await client.balance()).toEqual({ available: total - held, held, total });
    const positions = await client.all<PositionJson>("/me/positions");
    for (const { outcomes } of this.markets) {
      for (const outcome of outcomes) {
        const { quantity, cost, realized } = reference.holding(user, outcome);
        const found = positions.find(({ outcome_id }) => outcome_id === outcome);
        expect({ outcome, quantity: found?.quantity ?? 0, held: found?.held ?? 0 }).toEqual({
          ...{ outcome, quantity, held: reference.heldShares(user, outcome) },
        });
        expect({ cost: found?.cost ?? 0, pnl: found?.realized_pnl ?? 0 }).toEqual({ cost, pnl: realized });
        if (found !== undefined) expect(found.average_price).toBe(quantity === 0 ? null : cost / quantity / 100);
      }
    }
    const live = await client.all<OrderJson>("/orders");
    const expected = this.taken.filter(([id, market, owner]) => {
      const { status } = reference.order(market.id, id)!;
      return owner === user && (status === "open" || status === "partially_filled");
    });
    expect(live.map(({ id }) => id)).toEqual(expected.map(([id]) => id).reverse());
  }

  /** All that the session leaves behind: trades, fills with fee and rebate, transactions. */
  async compareHistory(): Promise<void> {
    for (const market of this.markets) {
      const { matches, orders } = this.reference.markets.get(market.id)!.book;
      const trades = await this.clients[0]!.all<TradeJson>(`/markets/${market.id}/trades`);
      const seen = trades.map(({ outcome_id, side, price, quantity, match_type }) => {
        return [outcome_id, side, price, quantity, match_type];
      });
      const expected = matches.map(({ taker, price, quantity, type }) => {
        const { outcome, side } = orders.get(taker)!.terms;
        return [outcome, side, price, quantity, type];
      });
      expect(seen.reverse()).toEqual(expected);
    }
    for (const [user, client] of this.clients.entries()) {
      for (const fill of await client.all<OwnFillJson>("/me/fills")) {
        const n = notional(fill.price, fill.quantity);
        const fee = fill.side === SELL ? feeOn(n) : 0;
        const rebate = fill.role === "maker" ? rebateOn(n, true) : 0;
        expect([fill.id, fill.fee, fill.rebate]).toEqual([fill.id, fee, rebate]);
      }
      const transactions = (await client.all<TransactionJson>("/wallet/transactions")).reverse();
      let balance = 0;
      for (const { id, amount, balance_after } of transactions) {
        balance += amount;
        expect([id, balance_after]).toEqual([id, balance]);
      }
      expect(balance).toBe(this.reference.balance(user));
    }
    expect(this.taken.length).toBeGreaterThan(this.placed / 3);
    const statuses = await this.statusCounts();
    for (const status of ["open", "filled", "canceled", "rejected"]) expect([...statuses.keys()]).toContain(status);
  }

  private async statusCounts(): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    for (const [user, client] of this.clients.entries()) {
      const own = this.taken.filter(([, , owner]) => owner === user);
      const orders: OrderJson[] = await client.all("/orders?status=all");
      expect(orders.map(({ id }) => id)).toEqual(own.map(([id]) => id).reverse());
      for (const order of orders) {
        const market = this.markets.find(({ id }) => id === order.market_id)!;
        const { status, reason, remaining } = this.reference.order(market.id, order.id)!;
        expect([order.id, order.status, order.reason, order.remaining]).toEqual([order.id, status, reason, remaining]);
        counts.set(status, (counts.get(status) ?? 0) + 1);
      }
    }
    return counts;
  }
}
