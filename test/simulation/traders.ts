/**
 * The traders of a simulated exchange: they place, amend, cancel and quote, change sets, and connect. Each method is one
 * action, chosen at random; replies are checked against the committed state: no reply may precede its commit.
 */

import { OrderType, SelfTradePrevention, Side, TimeInForce } from "../../engine/constants.ts";
import type { ClientOrderId } from "../../engine/ring/order-texts.ts";
import { FLAG_POST_ONLY, packTerms, sideOf, timeInForceOf, typeOf } from "../../engine/ring/records.ts";
import type { Market } from "../../server/markets/types.ts";
import { ResultsReply } from "../../server/trading/results-reply.ts";
import type { Connection, Origin, Placement, Quote } from "../../server/trading/types.ts";
import { ensure } from "../engine/book/harness.ts";
import { type Crowd, PendingRequest, USDC } from "./crowd.ts";
import { same } from "./executed.ts";

/** The most quotes of one set: the longest chain holds as many, and as many that they replace. */
export const MOST_QUOTES = 8;
const TIME_IN_FORCE = ["gtc", "gtd", "ioc", "fok"];

const idIn = (json: string): number => (JSON.parse(json) as { id: number }).id;

export class Traders {
  private readonly crowd: Crowd;
  private connections: { readonly user: number; readonly connection: Connection }[] = [];
  /** Placements with a client order id, which may be reused. */
  private readonly named: { readonly user: number; readonly order: Placement; readonly builderCode: string | null }[] =
    [];

  constructor(crowd: Crowd) {
    this.crowd = crowd;
  }

  /** A new life has begun. */
  begin(): void {
    this.connections = [];
    // The numbers of lost orders are assigned again.
    this.crowd.record.texts.clear();
  }

  place(): void {
    const market = this.crowd.market();
    if (market === null) return;
    const user = this.crowd.user();
    const order = this.crowd.random.chance(this.crowd.mood.sweeps)
      ? this.sweep(user, market)
      : this.placement(user, market);
    this.submit(user, order, this.origin(user));
  }

  private placement(user: number, market: Market): Placement {
    const { random, clock } = this.crowd;
    const isFocused = this.crowd.mood.focuses && random.chance(0.85);
    const outcomeId = isFocused ? market.outcomes[0]!.id : random.pick(market.outcomes).id;
    const side = !isFocused && this.sells(user, outcomeId) ? Side.sell : Side.buy;
    const isMarket = !isFocused && random.chance(0.08);
    const kind = random.next();
    const timeInForce = isMarket
      ? random.pick([TimeInForce.ioc, TimeInForce.fok])
      : kind < 0.68
        ? TimeInForce.gtc
        : kind < 0.8
          ? TimeInForce.gtd
          : kind < 0.91
            ? TimeInForce.ioc
            : TimeInForce.fok;
    const isNamed = random.chance(0.3);
    const price = isMarket && random.chance(0.5) ? null : this.price(market, side);
    const quantity = this.quantity(user, outcomeId, side);
    const type = !isMarket ? OrderType.limit : price === null ? OrderType.unboundMarket : OrderType.market;
    const flags = random.chance(0.12) && timeInForce <= TimeInForce.gtd ? FLAG_POST_ONLY : 0;
    const prevention = random.integer(SelfTradePrevention.cancelTaker, SelfTradePrevention.decrement);
    return {
      marketId: market.id,
      outcomeId,
      terms: packTerms(side, type, timeInForce, prevention, flags),
      price,
      quantity,
      clientOrderId: isNamed ? nameOf(this.crowd.nextNumber()) : null,
      expiresAt: timeInForce === TimeInForce.gtd ? clock.now + random.integer(-20, 2_000) : null,
      validUntil: random.chance(0.08) ? clock.now + random.integer(-10, 40) : null,
      timestamps: random.chance(0.05),
    };
  }

  /** A price near which the outcomes of the market add up to 10,000. */
  private price(market: Market, side: number): number {
    const { random, mood } = this.crowd;
    const away = random.integer(0, mood.depth) * 40 + mood.gap / 2;
    const middle = Math.floor(10_000 / market.outcomes.length);
    const price = side === Side.buy ? middle - away : middle + away;
    return Math.min(9_999, Math.max(1, Math.round(price)));
  }

  private sells(user: number, outcome: number): boolean {
    const shares = this.crowd.life.exchange.ledger.availableShares(user, outcome);
    return shares > 0 ? this.crowd.random.chance(0.55) : this.crowd.random.chance(0.03);
  }

  private quantity(user: number, outcome: number, side: number): number {
    const { random } = this.crowd;
    if (random.chance(0.004)) return 1_000_000_000;
    const most = random.chance(0.1) ? 10 * this.crowd.mood.most : this.crowd.mood.most;
    if (side === Side.buy) return random.integer(1, most);
    const shares = this.crowd.life.exchange.ledger.availableShares(user, outcome);
    return random.integer(1, Math.max(1, Math.min(most, shares)));
  }

  /** An order for as much as the user can pay for: one command with hundreds of events. */
  private sweep(user: number, market: Market): Placement {
    const { ledger } = this.crowd.life.exchange;
    this.crowd.tally.add("placed", "sweep");
    // The other outcome of a set whose first outcome has many bids.
    const outcomeId = market.outcomes[1]!.id;
    const shares = ledger.availableShares(user, outcomeId);
    const payable = Math.floor(ledger.available(user) / USDC);
    const side = shares > payable ? Side.sell : Side.buy;
    const quantity = Math.max(1, Math.min(5_000, side === Side.sell ? shares : payable));
    const terms = packTerms(side, OrderType.unboundMarket, TimeInForce.ioc, SelfTradePrevention.cancelMaker, 0);
    const rest = { clientOrderId: null, expiresAt: null, validUntil: null, timestamps: false };
    return { marketId: market.id, outcomeId, terms, price: null, quantity, ...rest };
  }

  private submit(user: number, order: Placement, origin: Origin): void {
    const { life, record } = this.crowd;
    const { store } = life.exchange;
    const before = store.liveCount;
    const request = new PendingRequest(this.crowd, "place", (json) => {
      const { id, status, ...shown } = JSON.parse(json);
      const found = record.orders.get(id);
      ensure(found !== undefined && found.user === user, `the reply about order ${id} follows its commit`);
      same(
        [status, shown.client_order_id, shown.outcome_id, shown.side],
        ["queued", textOf(order.clientOrderId), order.outcomeId, sideOf(order.terms)],
        "the order in its reply",
      );
    });
    this.crowd.send(request, () =>
      life.entry.place(this.crowd.trader(user), origin, order, this.crowd.clock.now, request),
    );
    this.crowd.tally.add(
      "placed",
      `${typeOf(order.terms) === OrderType.limit ? "limit" : "market"} ${TIME_IN_FORCE[timeInForceOf(order.terms)]}`,
    );
    if ((order.terms & FLAG_POST_ONLY) !== 0) this.crowd.tally.add("placed", "post-only");
    if (store.liveCount === before) return;
    const id = store.ids[store.newestOf(user)]!;
    if (order.clientOrderId === null && origin.builderCode === null) return;
    record.texts.set(id, { clientOrderId: textOf(order.clientOrderId), builderCode: origin.builderCode });
    if (order.clientOrderId !== null) this.named.push({ user, order, builderCode: origin.builderCode });
  }

  private origin(userId: number): Origin {
    const { random } = this.crowd;
    const own = this.connections.filter(({ user }) => user === userId);
    return {
      connection: own.length > 0 && random.chance(0.5) ? random.pick(own).connection : null,
      builderCode: random.chance(0.05) ? `builder-${random.integer(1, 3)}` : null,
    };
  }

  /** Reuses a client order id, with the same body or another one. */
  repeat(): void {
    const { random } = this.crowd;
    if (this.named.length === 0) return;
    const { user, order, builderCode } =
      this.named[random.integer(Math.max(0, this.named.length - 60), this.named.length - 1)]!;
    const other = random.chance(0.3);
    this.crowd.tally.add("repeat", other ? "another body" : "same body");
    const again = other ? { ...order, quantity: order.quantity + 1 } : order;
    this.submit(user, again, { connection: null, builderCode });
  }

  private someLiveOrder(): { readonly user: number; readonly slot: number } | null {
    const { store } = this.crowd.life.exchange;
    const user = this.crowd.user();
    let slot = store.newestOf(user);
    for (let skip = this.crowd.random.integer(0, 12); skip > 0 && slot !== 0 && store.olderOf(slot) !== 0; skip--) {
      slot = store.olderOf(slot);
    }
    return slot === 0 ? null : { user, slot };
  }

  cancel(): void {
    const { random, life, clock, record } = this.crowd;
    const found = this.someLiveOrder();
    const kind = random.next();
    const user = found?.user ?? this.crowd.user();
    if (kind < 0.04) {
      const id = random.integer(1, record.lastOrder + 2);
      const request = new PendingRequest(this.crowd, "cancel of some order", () => {});
      this.crowd.send(request, () => life.entry.cancel(user, id, clock.now, request));
      return;
    }
    if (found === null) return;
    const { store } = life.exchange;
    const id = store.ids[found.slot]!;
    const request = new PendingRequest(this.crowd, "cancel", (json) => {
      ensure(idIn(json) === id, "the reply to a cancel is its order");
      ensure(!record.live.has(id), "the reply to a cancel follows the end of its order");
    });
    const name = store.clientOrderId(found.slot);
    this.crowd.send(request, () => {
      if (name !== null && kind < 0.5) life.entry.cancelByClientId(user, name, clock.now, request);
      else life.entry.cancel(user, id, clock.now, request);
    });
    this.crowd.tally.add("request", "cancel");
  }

  amend(): void {
    const { random, life, clock, record } = this.crowd;
    const found = this.someLiveOrder();
    if (found === null) return;
    const { store, registry } = life.exchange;
    const id = store.ids[found.slot]!;
    const market = registry.get(store.markets[found.slot]!)!;
    const change = {
      price: random.chance(0.5) ? this.price(market, sideOf(store.terms[found.slot]!)) : null,
      quantity: random.chance(0.6) ? random.integer(1, 80) : null,
      validUntil: random.chance(0.1) ? clock.now + random.integer(-10, 40) : null,
    };
    const request = new PendingRequest(this.crowd, "amend", (json) => {
      ensure(idIn(json) === id && record.orders.has(id), "the reply to an amend is its order");
    });
    const trader = this.crowd.trader(found.user);
    this.crowd.send(request, () =>
      life.entry.amend(trader, this.origin(found.user), { orderId: id, ...change }, clock.now, request),
    );
    this.crowd.tally.add("request", "amend");
  }

  quote(): void {
    const { random, life, clock, record } = this.crowd;
    const market = this.crowd.market();
    if (market === null) return;
    const user = this.crowd.user();
    const quotes = new Map<string, Quote>();
    for (let i = random.integer(0, 6); i > 0; i--) {
      const outcomeId = random.pick(market.outcomes).id;
      const side = this.sells(user, outcomeId) ? Side.sell : Side.buy;
      const price = this.price(market, side);
      quotes.set(`${outcomeId} ${side} ${price}`, {
        outcomeId,
        side,
        price,
        quantity: random.integer(1, this.crowd.mood.most),
      });
    }
    const { store } = life.exchange;
    // Often the same quotes as the resting ones, with another expiry.
    if (random.chance(0.3)) {
      quotes.clear();
      for (let slot = store.newestQuoteOf(user, market.id); slot !== 0; slot = store.olderQuoteOf(slot)) {
        if (quotes.size === MOST_QUOTES) break;
        const [outcomeId, side] = [store.outcomes[slot]!, sideOf(store.terms[slot]!)];
        const [price, quantity] = [store.prices[slot]!, store.remaining[slot]!];
        if (quantity > 0) quotes.set(`${outcomeId} ${side} ${price}`, { outcomeId, side, price, quantity });
      }
    }
    const terms = {
      expiresAt: random.chance(0.4) ? clock.now + random.integer(1, 2_000) : null,
      validUntil: random.chance(0.1) ? clock.now + random.integer(-10, 40) : null,
    };
    const last = store.ids[store.newestOf(user)] ?? 0;
    const origin = this.origin(user);
    const request = new PendingRequest(this.crowd, "quotes", (json) => {
      const { results } = JSON.parse(json) as { results: { data: { id: number } }[] };
      ensure(results.length === quotes.size, "a result for each quote");
      for (const { data } of results) ensure(record.orders.has(data.id), "the reply to quotes follows their commit");
    });
    this.crowd.send(request, () => {
      const set = { marketId: market.id, quotes: [...quotes.values()], terms };
      const trader = this.crowd.trader(user);
      const { entry, exchange } = life;
      const open = () => new ResultsReply(exchange, user, quotes.size, clock.now, request);
      entry.quotes.replace({ trader, origin, ...set, now: clock.now }, open);
    });
    this.crowd.tally.add("request", "quotes");
    if (origin.builderCode === null) return;
    for (let slot = store.newestOf(user); slot !== 0 && store.ids[slot]! > last; slot = store.olderOf(slot)) {
      record.texts.set(store.ids[slot]!, { clientOrderId: null, builderCode: origin.builderCode });
    }
  }

  changeSets(): void {
    const { random, life, clock, record } = this.crowd;
    const market = this.crowd.market();
    if (market === null) return;
    const user = this.crowd.user();
    const isSplit = random.chance(0.75);
    const quantity = random.integer(1, isSplit ? 150 : 30);
    const entries = record.entries.length;
    const request = new PendingRequest(this.crowd, isSplit ? "split" : "merge", () => {
      ensure(record.entries.length > entries, "the reply to a change of sets follows its commit");
    });
    this.crowd.send(request, () => {
      const change = isSplit ? "split" : "merge";
      life.entry.sets[change](this.crowd.trader(user), { marketId: market.id, quantity }, clock.now, request, () => {});
    });
    this.crowd.tally.add("request", request.name);
  }

  cancelAll(): void {
    const { random, life, clock, record } = this.crowd;
    const user = this.crowd.user();
    const market = random.chance(0.6) ? this.crowd.market() : null;
    const filter = {
      marketId: market?.id,
      side: random.chance(0.4) ? random.pick([Side.buy, Side.sell]) : undefined,
    };
    const request = new PendingRequest(this.crowd, "cancel-all", (json) => {
      const { order_ids: ids } = JSON.parse(json) as { order_ids: number[] };
      for (const id of ids) ensure(!record.live.has(id), "the reply to a cancel-all follows the end of its orders");
    });
    this.crowd.send(request, () => life.entry.cancelAll(user, filter, clock.now, request));
    this.crowd.tally.add("request", "cancel-all");
  }

  /** Connections open, with or without cancel on disconnect, and close. */
  connect(): void {
    const { random } = this.crowd;
    if (this.connections.length < 4 && random.chance(0.6)) {
      const user = this.crowd.user();
      const connection = { number: this.crowd.nextNumber(), cancelOnDisconnect: random.chance(0.7), ended: false };
      this.connections.push({ user, connection });
      return;
    }
    const [ended] = this.connections.splice(random.integer(0, this.connections.length), 1);
    if (ended === undefined) return;
    this.crowd.life.entry.endConnection(ended.user, ended.connection);
    this.crowd.tally.add("request", "disconnect");
  }
}

/** Every second name is a number. */
const nameOf = (number: number): ClientOrderId => (number % 2 === 0 ? number : `name-${number}`);
const textOf = (id: ClientOrderId | null): string | null => (id === null ? null : String(id));
