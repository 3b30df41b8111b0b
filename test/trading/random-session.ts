/**
 * A random trading session beside the reference exchange: one connection, one request at a time. Each response and each
 * order's state must be the reference's, and every few steps all books, balances, holds, positions, collateral and the
 * house.
 */
import { expect } from "vitest";
import { DAILY_ACTIVITY_LIMIT_MICRO } from "../../engine/limits.ts";
import type { Placement, ReferenceOrder } from "../engine/book/reference-book.ts";
import type {
  BookJson,
  Client,
  OrderJson,
  OwnFillJson,
  PositionJson,
  TradeJson,
  TransactionJson,
} from "../support/client.ts";
import type { Random } from "../support/random.ts";
import { feeOn, isLive, notional, type Quote, ReferenceExchange, rebateOn } from "../support/reference.ts";
import type { ResultJson } from "../support/trading.ts";
import { type TestMarket, USDC, type UserSpec, type World } from "../support/world.ts";

const SELL = 2;
const STEPS_BETWEEN_COMPARISONS = 20;
export const USERS: Readonly<Record<string, Required<Pick<UserSpec, "tier" | "deposit">>>> = {
  alice: { tier: 2, deposit: 5_000 * USDC },
  bob: { tier: 2, deposit: 5_000 * USDC },
  carol: { tier: 2, deposit: 300 * USDC },
  dave: { tier: 2, deposit: 12 * USDC + 345_678 },
  erin: { tier: 1, deposit: 5_000 * USDC },
  frank: { tier: 0, deposit: 5_000 * USDC },
};
const NAMES = Object.keys(USERS);

type Body = ReturnType<RandomSession["placement"]>;
interface AmendBody {
  readonly id: number;
  readonly price: number | undefined;
  readonly quantity: number | undefined;
  readonly valid_until: number | undefined;
}
type Operation =
  | ({ readonly op: "place" } & Body)
  | ({ readonly op: "amend" } & AmendBody)
  | { readonly op: "cancel"; readonly id: number };

export class RandomSession {
  /** Placements sent, including rejected ones. */
  placed = 0;
  readonly log: string[] = [];
  private steps = 0;
  private readonly random: Random;
  private readonly markets: readonly TestMarket[];
  private readonly clients: readonly Client[];
  private readonly reference = new ReferenceExchange();
  /** Of every accepted placement: [order, market, user]. */
  private readonly taken: [id: number, market: TestMarket, user: number][] = [];
  /** Market orders without a bound, which show no price. */
  private readonly unbounded = new Set<number>();
  /** Placements with a client order id, and their first response. */
  private readonly named: [user: number, body: Body, first: OrderJson][] = [];
  private names = 0;
  /** Requests with the codes of their responses. */
  private readonly seen = new Set<string>();

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
    if (kind < 0.1) await this.cancel(user);
    else if (kind < 0.15) await this.changeSets(user, "split");
    else if (kind < 0.19) await this.changeSets(user, "merge");
    else if (kind < 0.33) await this.amend(user);
    else if (kind < 0.4) await this.batch(user);
    else if (kind < 0.5) await this.replaceQuotes(user);
    else if (kind < 0.515) await this.cancelAll(user);
    else if (kind < 0.54) await this.repeat();
    else await this.place(user);
    if (++this.steps % STEPS_BETWEEN_COMPARISONS === 0) await this.compare();
  }

  private limitOf(user: number): number {
    return DAILY_ACTIVITY_LIMIT_MICRO[USERS[NAMES[user]!]!.tier]!;
  }

  private isTierless(user: number): boolean {
    return USERS[NAMES[user]!]!.tier === 0;
  }

  private async place(user: number): Promise<void> {
    const body = this.placement();
    this.log.push(`${NAMES[user]} places ${JSON.stringify(body)}`);
    const answer = await this.clients[user]!.request<OrderJson>("POST", "/orders", { body });
    if (this.isTierless(user)) expect(answer.code).toBe(40300);
    else this.checkPlacement(user, body, answer.code, answer.data);
    if (answer.code === 0) await this.compareOrder(this.taken.at(-1)!);
  }

  /** A body for POST /orders. */
  private placement() {
    const { random } = this;
    const market = random.pick(this.markets);
    const outcome_id = random.pick(market.outcomes);
    const client_order_id = random.chance(0.2) ? `name-${++this.names}` : undefined;
    this.placed++;
    const side = random.pick([1, SELL] as const);
    return { market_id: market.id, outcome_id, side, ...this.terms(market), client_order_id };
  }

  /** The reference places what the exchange accepted, and must reject what it rejected. */
  private checkPlacement(user: number, body: Body, code: number, data: OrderJson | null): void {
    const { reference } = this;
    const price = body.price ?? (body.side === SELL ? 1 : 9_999);
    const placement: Placement = {
      ...{
        id: data?.id ?? 0,
        at: data?.created_at ?? 0,
        user,
        outcome: body.outcome_id,
        side: body.side,
        price,
        pat: true,
      },
      ...{ quantity: body.quantity, type: body.type, timeInForce: body.time_in_force, postOnly: body.post_only },
      ...{ prevention: body.self_trade_prevention, expiresAt: body.expires_at ?? 0, validUntil: body.valid_until ?? 0 },
    };
    this.seen.add(`place ${code}`);
    const rejection = reference.rejection(placement, this.limitOf(user));
    expect(code).toBe(rejection?.refused ?? 0);
    if (code !== 0) return;
    reference.place(body.market_id, placement);
    const market = this.markets.find(({ id }) => id === body.market_id)!;
    this.taken.push([data!.id, market, user]);
    if (body.price === undefined) this.unbounded.add(data!.id);
    if (body.client_order_id !== undefined) this.named.push([user, body, data!]);
  }

  /** Repeats a placement, exactly or with a change: expects the first response, or a conflict. */
  private async repeat(): Promise<void> {
    if (this.named.length === 0) return;
    const [user, body, first] = this.random.pick(this.named);
    const quantity = this.random.chance(0.3) ? (body.quantity % 1_000_000_000) + 1 : body.quantity;
    this.log.push(`${NAMES[user]} repeats ${body.client_order_id} with ${quantity}`);
    const answer = await this.clients[user]!.request<OrderJson>("POST", "/orders", { body: { ...body, quantity } });
    expect([answer.code, answer.data]).toEqual(quantity === body.quantity ? [0, first] : [40900, null]);
  }

  private async amend(user: number): Promise<void> {
    const wish = this.amendment(user);
    if (wish === null) return;
    const { id, ...body } = wish;
    this.log.push(`${NAMES[user]} amends ${id} ${JSON.stringify(body)}`);
    const { code, msg } = await this.clients[user]!.request("PATCH", `/orders/${id}`, { body });
    if (this.isTierless(user)) expect(code).toBe(40300);
    else this.checkAmend(user, wish, code, msg);
    const taken = this.taken.find(([taken]) => taken === id)!;
    await this.compareOrder(taken);
  }

  /** Of an order of the user, mostly; null while there is none. A quote keeps its price, so that no two are the same. */
  private amendment(user: number): AmendBody | null {
    const { random, reference } = this;
    const id = this.someOrder(user);
    if (id === null) return null;
    const market = this.taken.find(([taken]) => taken === id)![1];
    const valid_until = random.chance(0.05) ? Date.now() + random.pick([-60_000, 60_000]) : undefined;
    const keepsPrice = reference.isQuote(id) || random.chance(0.35);
    const quantity = random.chance(0.3) ? undefined : random.integer(1, random.chance(0.1) ? 30_000 : 16);
    return { id, price: keepsPrice ? undefined : this.terms(market).price, quantity, valid_until };
  }

  private checkAmend(user: number, body: AmendBody, code: number, msg: string): void {
    const { reference } = this;
    this.seen.add(`amend ${code}`);
    const [, market, owner] = this.taken.find(([taken]) => taken === body.id)!;
    const order = reference.order(market.id, body.id)!;
    if (body.price === undefined && body.quantity === undefined) return expect(code).toBe(40000);
    if (owner !== user) return expect(code).toBe(4040);
    if (!isLive(order)) return expect(code).toBe(40900);
    const [price, total] = [body.price ?? order.price, body.quantity ?? order.quantity];
    const rejection = reference.amendRejection(user, market.id, body.id, price, total, this.limitOf(user));
    if (body.valid_until !== undefined && body.valid_until < Date.now()) {
      // The exchange may report either of two reasons.
      expect([40900, rejection?.refused]).toContain(code);
      if (code === 40900) expect(msg).toMatch(/^too_late/);
      return;
    }
    if (rejection !== null) return expect(code).toBe(rejection.refused);
    const wouldCross = reference.amend(market.id, body.id, price, total, Date.now());
    expect(code).toBe(wouldCross ? 40900 : 0);
    if (wouldCross) expect(msg).toMatch(/^post_only_would_cross/);
  }

  /** Mostly one of the user's own, often a finished one. */
  private someOrder(user: number): number | null {
    if (this.taken.length === 0) return null;
    const own = this.taken.filter(([, , owner]) => owner === user);
    return this.random.pick(own.length > 0 && this.random.chance(0.9) ? own.slice(-30) : this.taken)[0];
  }

  /** A few operations of one user: their results must be those of the reference, one after the other. */
  private async batch(user: number): Promise<void> {
    const { random } = this;
    const operations = Array.from({ length: random.integer(1, 8) }, (): Operation => {
      const kind = random.next();
      const id = this.someOrder(user);
      if (kind < 0.2 && id !== null) return { op: "cancel", id };
      const amendment = kind < 0.45 ? this.amendment(user) : null;
      return amendment !== null ? { op: "amend", ...amendment } : { op: "place", ...this.placement() };
    });
    this.log.push(`${NAMES[user]} sends a batch ${JSON.stringify(operations)}`);
    const { code, data } = await this.clients[user]!.request<{ results: ResultJson[] }>("POST", "/orders/batch", {
      body: { operations },
    });
    expect(code).toBe(this.isTierless(user) ? 40300 : 0);
    if (code !== 0) return;
    expect(data.results).toHaveLength(operations.length);
    const touched = new Set<number>();
    for (const [i, operation] of operations.entries()) {
      const result = data.results[i]!;
      if (operation.op === "place") {
        const { op: _, ...body } = operation;
        this.checkPlacement(user, body, result.code, result.data);
      } else if (operation.op === "amend") this.checkAmend(user, operation, result.code, result.msg);
      else this.checkCancel(user, operation.id, result.code);
      touched.add(result.data?.id ?? 0);
    }
    for (const taken of this.taken) if (touched.has(taken[0])) await this.compareOrder(taken);
  }

  private checkCancel(user: number, id: number, code: number): void {
    const [, market, owner] = this.taken.find(([taken]) => taken === id)!;
    const live = isLive(this.reference.order(market.id, id)!);
    expect(code).toBe(owner !== user ? 4040 : live ? 0 : 40900);
    if (code === 0) this.reference.cancel(market.id, id);
  }

  private async replaceQuotes(user: number): Promise<void> {
    const { random, reference } = this;
    const market = random.pick(this.markets);
    const before = reference.standingQuotes(user, market.id);
    const quotes = this.wishedQuotes(before, market);
    const body = quotes.map(({ outcome, ...rest }) => ({ outcome_id: outcome, ...rest }));
    this.log.push(`${NAMES[user]} quotes in ${market.id} ${JSON.stringify(body)}`);
    const { code, data } = await this.clients[user]!.request<{ results: ResultJson[] }>("PUT", `/quotes/${market.id}`, {
      body: { quotes: body },
    });
    this.seen.add(`quotes ${code}`);
    const rejection = reference.quotesRejection(user, market.id, quotes, this.limitOf(user));
    expect(code).toBe(this.isTierless(user) ? 40300 : (rejection?.refused ?? 0));
    if (code !== 0) return;
    const unchanged = reference.unchangedQuotes(user, market.id, quotes);
    const placements = data.results.map(({ data: order }, i): Placement => {
      const { id, created_at: at } = order!;
      if (unchanged[i] !== null) expect(id).toBe(unchanged[i]);
      else this.taken.push([id, market, user]);
      const kind = {
        type: "limit",
        timeInForce: "gtc",
        postOnly: true,
        prevention: "cancel_taker",
        pat: true,
      } as const;
      return { id, at, user, ...quotes[i]!, ...kind, expiresAt: 0, validUntil: 0 };
    });
    expect(placements).toHaveLength(quotes.length);
    reference.replaceQuotes(user, market.id, placements);
    const touched = new Set([...before.map(({ terms }) => terms.id), ...placements.map(({ id }) => id)]);
    for (const taken of this.taken) if (touched.has(taken[0])) await this.compareOrder(taken);
  }

  /** Some resting quotes, some of them changed, and new ones; no two of one outcome and side at one price. */
  private wishedQuotes(standing: readonly ReferenceOrder[], market: TestMarket): Quote[] {
    const { random } = this;
    const wishes = new Map<string, Quote>();
    for (const { terms, price, remaining } of standing) {
      const { outcome, side } = terms;
      const quantity = random.chance(0.3) ? random.integer(1, 12) : remaining;
      if (random.chance(0.7)) wishes.set(`${outcome} ${side} ${price}`, { outcome, side, price, quantity });
    }
    for (let i = random.integer(0, 4); i > 0; i--) {
      const [outcome, side, { price = 5_000, quantity }] = [
        random.pick(market.outcomes),
        random.pick([1, SELL] as const),
        this.terms(market),
      ];
      wishes.set(`${outcome} ${side} ${price}`, { outcome, side, price, quantity });
    }
    return [...wishes.values()];
  }

  private async cancelAll(user: number): Promise<void> {
    const { random, reference } = this;
    const market = random.pick(this.markets);
    const filters = {
      market_id: random.chance(0.6) ? market.id : undefined,
      outcome_id: random.chance(0.4) ? random.pick(market.outcomes) : undefined,
      side: random.chance(0.4) ? random.pick([1, SELL]) : undefined,
    };
    const given = Object.entries(filters).filter(([, value]) => value !== undefined);
    const query = given.map(([name, value]) => `${name}=${value}`).join("&");
    this.log.push(`${NAMES[user]} cancels all ${query}`);
    const fitting = reference.liveOrders(user, ({ outcome, side }, marketId) => {
      const { market_id = marketId, outcome_id = outcome } = filters;
      return market_id === marketId && outcome_id === outcome && (filters.side ?? side) === side;
    });
    const { code, data } = await this.clients[user]!.request<{ order_ids: number[] }>("DELETE", `/orders?${query}`);
    expect(code).toBe(this.isTierless(user) ? 40300 : 0);
    if (code !== 0) return;
    expect(data.order_ids.toSorted((a, b) => b - a)).toEqual(fitting.map(([, id]) => id));
    for (const [marketId, id] of fitting) reference.cancel(marketId, id);
    for (const taken of this.taken) if (data.order_ids.includes(taken[0])) await this.compareOrder(taken);
  }

  /** An order's fields besides market, outcome and side. */
  private terms(market: TestMarket) {
    const { random } = this;
    const even = Math.round(10_000 / market.outcomes.length / 50) * 50;
    // Sometimes far above: with three or more outcomes, resting bids alone may exceed 10000.
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
    const id = this.someOrder(user);
    if (id === null) return;
    this.log.push(`${NAMES[user]} cancels ${id}`);
    const taken = this.taken.find(([each]) => each === id)!;
    const { status, remaining } = this.reference.order(taken[1].id, id)!;
    const answer = await this.clients[user]!.request<OrderJson>("DELETE", `/orders/${id}`);
    if (this.isTierless(user)) {
      expect(answer.code).toBe(40300);
      return;
    }
    this.checkCancel(user, id, answer.code);
    if (answer.code !== 0) return;
    expect(answer.data).toMatchObject({ id, status, remaining, reason: null });
    await this.compareOrder(taken);
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
    const { reference } = this;
    const rejection =
      name === "split"
        ? reference.split(user, market.id, quantity, this.limitOf(user))
        : reference.merge(user, market.id, quantity);
    expect(answer.code).toBe(rejection?.refused ?? 0);
  }

  private async compareOrder([id, market, user]: [number, TestMarket, number]): Promise<void> {
    const { status, reason, remaining, quantity, price: bound } = this.reference.order(market.id, id)!;
    const price = this.unbounded.has(id) ? null : bound;
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

  /** The history of the session: trades, fills with fee and rebate, transactions. */
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
        const rebate = fill.role === "maker" && fill.match_type !== "mint" ? rebateOn(n, true) : 0;
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
    if (this.placed >= 1_000) {
      const seen = [...this.seen];
      for (const code of [0, 42201, 42202, 42901]) expect(seen).toContain(`place ${code}`);
      for (const what of ["amend", "quotes"]) {
        expect(seen).toContain(`${what} 0`);
        expect(seen.join()).toMatch(new RegExp(`${what} 42\\d`));
      }
    }
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
