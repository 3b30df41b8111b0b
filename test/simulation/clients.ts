/**
 * The clients of a simulated exchange: users who place, amend, cancel and quote, and an operator. One random source
 * decides what each does next. They receive the gateway's messages and check them against the committed state: no
 * message may precede its commit, no reply may come twice, and no update may be missing or come twice.
 */
import {
  MarketStatus,
  ORDER_STATUSES,
  OrderType,
  REASONS,
  SelfTradePrevention,
  Side,
  TimeInForce,
} from "../../engine/constants.ts";
import { HOUSE } from "../../engine/projection/writes/account-write.ts";
import { sideOf, termsType } from "../../engine/ring/records.ts";
import { ApiError } from "../../server/errors.ts";
import { isTradable } from "../../server/markets/registry.ts";
import type { Market } from "../../server/markets/types.ts";
import type {
  Answer,
  Connection,
  Hold,
  MarketListener,
  Origin,
  Placement,
  Quote,
  Trader,
  UserListener,
} from "../../server/trading/types.ts";
import { ensure } from "../engine/book/harness.ts";
import type { Random } from "../support/random.ts";
import type { Committed, Update } from "./committed.ts";
import { same } from "./executed.ts";
import type { Clock, Life } from "./life.ts";
import {
  DEALERS_MOOD,
  DEALING,
  dealersOf,
  dealersTerms,
  expectNoProfit,
  isOwnMarket,
  ownSlug,
} from "./self-dealers.ts";
import type { Tally } from "./tally.ts";

const USDC = 1_000_000;
/** The limit of the users whose activity is limited; all others have none. */
const TIGHT_LIMIT = 3_000 * USDC;
const NO_LIMIT = Number.MAX_SAFE_INTEGER;
/** Live orders that one user may have. */
const FEW_ORDERS = 4;
const OPERATOR = { actor: "admin", userId: null };
const DAY_MS = 86_400_000;

/** An order as in `order.updated`. */
interface Told {
  readonly id: number;
  readonly price: number | null;
  readonly quantity: number;
  readonly remaining: number;
  readonly status: string;
  readonly reason: string | null;
  readonly trades: readonly unknown[];
}

/** A client that awaits one reply. */
class Ask implements Answer {
  readonly what: string;
  answers = 0;
  private readonly clients: Clients;
  private readonly heard: (json: string) => void;

  constructor(clients: Clients, what: string, heard: (json: string) => void) {
    this.clients = clients;
    this.what = what;
    this.heard = heard;
    clients.asked(this);
  }

  data(json: string): void {
    this.answer();
    this.clients.hash.text(json.length, this.what);
    this.heard(json);
  }

  error(error: ApiError): void {
    this.answer();
    this.clients.refused(this.what, error);
  }

  private answer(): void {
    this.answers++;
    ensure(this.answers === 1, `${this.what} is answered once`);
    this.clients.answered(this);
  }
}

/** How the clients behave for a while. */
export interface Mood {
  /** BPS between the prices of buyers and sellers; below 0 they often cross. */
  readonly gap: number;
  /** Prices on each side. */
  readonly depth: number;
  readonly cancels: number;
  /** Shares that most orders ask for at most. */
  readonly most: number;
  /** How many of the orders take whatever there is. */
  readonly sweeps: number;
  /** Most of them want one and the same outcome. */
  readonly focuses: boolean;
}

export class Clients implements UserListener, MarketListener {
  mood: Mood = { gap: 0, depth: 5, cancels: 1, most: 40, sweeps: 0, focuses: false };
  readonly hash: Hash;
  private life!: Life;
  private readonly random: Random;
  private readonly clock: Clock;
  private readonly record: Committed;
  private readonly tally: Tally;
  private readonly open = new Set<Ask>();
  /** By user: the last update received, and whether its messages are held back. */
  private readonly received: number[] = [];
  private readonly held: number[] = [];
  private connections: { readonly user: number; readonly connection: Connection }[] = [];
  /** Placements with a client order id, to be repeated. */
  private readonly named: { readonly user: number; readonly order: Placement; readonly builderCode: string | null }[] =
    [];
  /** Withdrawals and markets that something is being done with. */
  private readonly busy = new Set<string>();
  private names = 0;
  private users = 0;
  /** The accounts that trade only with each other (self-dealers.ts), and whether they act next. */
  private dealers: readonly number[] = [];
  private isDealing = false;

  constructor(random: Random, clock: Clock, record: Committed, tally: Tally, hash: Hash) {
    this.random = random;
    this.clock = clock;
    this.record = record;
    this.tally = tally;
    this.hash = hash;
  }

  /** A new life has begun: whatever was in flight in the last one is lost; whatever it sent was committed. */
  begin(life: Life): void {
    this.life = life;
    this.open.clear();
    this.busy.clear();
    this.connections = [];
    // The numbers of lost orders are assigned again.
    this.record.texts.clear();
    this.held.length = 0;
    this.received.length = 0;
    for (const [user, { updates }] of this.record.accounts) this.received[user] = updates.length;
    for (const market of life.exchange.registry.all()) this.watch(market);
  }

  private watch(market: Market): void {
    market.isWatched = true;
    for (const outcome of market.outcomes) outcome.isWatched = true;
  }

  asked(ask: Ask): void {
    this.open.add(ask);
  }

  answered(ask: Ask): void {
    ensure(this.open.delete(ask), `${ask.what} is answered in the life that it was asked in`);
  }

  refused(what: string, error: ApiError): void {
    this.tally.add("refusal", String(error.kind.code));
    if (!this.life.exchange.writer.haveRoom) this.tally.add("full", "command ring");
    if (!this.life.exchange.store.hasSlots(1)) this.tally.add("full", "slots");
    this.hash.text(error.kind.code, what);
  }

  /** True if no client awaits a reply. */
  expectAnswered(): void {
    const [first] = this.open;
    ensure(first === undefined, `${first?.what} is never answered`);
  }

  // ---------------------------------------------------------------- messages

  listens(userId: number): boolean {
    return userId % 4 !== 0;
  }

  orderUpdated(userId: number, sequence: number, at: number, orderJson: string): void {
    const told = (this.received[userId] ?? 0) + 1;
    ensure(sequence === told, `user ${userId} hears update ${sequence} after ${told - 1}`);
    this.received[userId] = told;
    const update = this.record.account(userId).updates[sequence - 1];
    ensure(update !== undefined, `user ${userId} hears update ${sequence} before it is committed`);
    const isUnbound = termsType(this.record.orders.get(update.order)!.terms) === OrderType.unboundMarket;
    expectUpdate(JSON.parse(orderJson) as Told, update, isUnbound ? null : update.price);
    ensure(update.at === at, "an update tells its time");
    this.hash.add(sequence);
    this.tally.add("told", "order.updated");
  }

  tradeCreated(_market: Market, _sequence: number, _at: number, tradeJson: string): void {
    const { id } = JSON.parse(tradeJson) as { id: number };
    ensure(id <= this.record.lastEntry, "a trade is told after its commit");
    this.tally.add("told", "trade.created");
  }

  bookUpdated(): void {
    this.tally.add("told", "book.updated");
  }

  marketChanged(market: Market): void {
    const known = this.record.markets.get(market.id);
    // A settlement is committed as a whole before its market's orders are reported as final, and nothing is reported
    // earlier.
    ensure(known !== undefined && known.status >= Math.min(market.status, MarketStatus.closed), "told too early");
    this.watch(market);
    this.tally.add("told", "market.updated");
  }

  accountChanged(): void {
    this.tally.add("told", "balance.updated");
  }

  hold(userId: number): Hold {
    this.held[userId] = (this.held[userId] ?? 0) + 1;
    return {
      release: () => {
        this.held[userId]!--;
      },
    };
  }

  isHeld(userId: number): boolean {
    return (this.held[userId] ?? 0) > 0;
  }

  afterMessages(_userId: number, callback: () => void): void {
    callback();
  }

  endBatch(): void {
    // Gathered messages would go out now.
  }

  /** After a stop in good order everybody has heard everything. */
  expectAllTold(): void {
    for (const [user, { updates }] of this.record.accounts) {
      if (this.listens(user)) same(this.received[user] ?? 0, updates.length, `the updates that user ${user} heard`);
      same(this.held[user] ?? 0, 0, `messages held back from user ${user}`);
    }
  }

  // ---------------------------------------------------------------- actions

  /** One thing that somebody does. */
  act(): void {
    const usual = this.mood;
    this.isDealing = this.haveDealers() && this.random.chance(DEALING);
    if (this.isDealing) this.mood = DEALERS_MOOD;
    this.actSomehow();
    this.mood = usual;
    this.isDealing = false;
  }

  private haveDealers(): boolean {
    return this.dealers.length > 0 && this.record.accounts.size === this.users;
  }

  private actSomehow(): void {
    const { random } = this;
    // A client that builds up a book places orders.
    const kind = random.next() * (this.mood.focuses && random.chance(0.9) ? 52 : 100);
    try {
      if (kind < 52) this.place();
      else if (kind < 60 + 8 * this.mood.cancels) this.cancel();
      else if (kind < 76) this.amend();
      else if (kind < 83) this.quote();
      else if (kind < 87) this.changeSets();
      else if (kind < 88.5) this.cancelAll();
      else if (kind < 90) this.connect();
      else if (kind < 92) this.repeat();
      else this.account();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.refused("request", error);
    }
  }

  private user(): number {
    const { random, record, dealers } = this;
    if (this.isDealing) return random.pick(dealers);
    return random.integer(1, Math.min(record.accounts.size, this.users - dealers.length));
  }

  private trader(userId: number): Trader {
    const dailyLimit = userId === 2 ? TIGHT_LIMIT : NO_LIMIT;
    const mergeFee = this.record.account(userId).terms?.mergeFee ?? null;
    const maxLiveOrders = userId === 3 ? FEW_ORDERS : NO_LIMIT;
    return { userId, dailyLimit, maxLiveOrders, mergeFee, pat: this.random.chance(0.5) };
  }

  private origin(userId: number): Origin {
    const { random } = this;
    const own = this.connections.filter(({ user }) => user === userId);
    return {
      connection: own.length > 0 && random.chance(0.5) ? random.pick(own).connection : null,
      builderCode: random.chance(0.05) ? `builder-${random.integer(1, 3)}` : null,
    };
  }

  private market(): Market | null {
    const { random } = this;
    const all = this.life.exchange.registry.all().filter((market) => isOwnMarket(market) === this.isDealing);
    if (all.length === 0) return null;
    const open = all.filter(isTradable);
    if (open.length > 0 && this.mood.focuses && random.chance(0.85)) return open[0]!;
    return open.length > 0 && random.chance(0.98) ? random.pick(open) : random.pick(all);
  }

  /** A price near which the outcomes of the market add up to 10,000. */
  private price(market: Market, side: number): number {
    const { random, mood } = this;
    const away = random.integer(0, mood.depth) * 40 + mood.gap / 2;
    const middle = Math.floor(10_000 / market.outcomes.length);
    const price = side === Side.buy ? middle - away : middle + away;
    return Math.min(9_999, Math.max(1, Math.round(price)));
  }

  private sells(user: number, outcome: number): boolean {
    const shares = this.life.exchange.ledger.availableShares(user, outcome);
    return shares > 0 ? this.random.chance(0.55) : this.random.chance(0.03);
  }

  private quantity(user: number, outcome: number, side: number): number {
    const { random } = this;
    if (random.chance(0.004)) return 1_000_000_000;
    const most = random.chance(0.1) ? 10 * this.mood.most : this.mood.most;
    if (side === Side.buy) return random.integer(1, most);
    const shares = this.life.exchange.ledger.availableShares(user, outcome);
    return random.integer(1, Math.max(1, Math.min(most, shares)));
  }

  private placement(user: number, market: Market): Placement {
    const { random, clock } = this;
    const isFocused = this.mood.focuses && random.chance(0.85);
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
    return {
      marketId: market.id,
      outcomeId,
      side,
      price: isMarket && random.chance(0.5) ? null : this.price(market, side),
      quantity: this.quantity(user, outcomeId, side),
      type: isMarket ? OrderType.market : OrderType.limit,
      timeInForce,
      postOnly: random.chance(0.12) && timeInForce <= TimeInForce.gtd,
      selfTradePrevention: random.integer(SelfTradePrevention.cancelTaker, SelfTradePrevention.decrement),
      clientOrderId: isNamed ? `name-${++this.names}` : null,
      expiresAt: timeInForce === TimeInForce.gtd ? clock.now + random.integer(-20, 2_000) : null,
      validUntil: random.chance(0.08) ? clock.now + random.integer(-10, 40) : null,
      timestamps: random.chance(0.05),
    };
  }

  private place(): void {
    const market = this.market();
    if (market === null) return;
    const user = this.user();
    const order = this.random.chance(this.mood.sweeps) ? this.sweep(user, market) : this.placement(user, market);
    this.send(user, order, this.origin(user));
  }

  /** Takes all that the user's money can pay for: hundreds of events of one command. */
  private sweep(user: number, market: Market): Placement {
    const { ledger } = this.life.exchange;
    this.tally.add("placed", "sweep");
    // The rest of a set after many bids for the first outcome.
    const outcomeId = market.outcomes[1]!.id;
    const shares = ledger.availableShares(user, outcomeId);
    const payable = Math.floor(ledger.available(user) / USDC);
    const side = shares > payable ? Side.sell : Side.buy;
    const quantity = Math.max(1, Math.min(5_000, side === Side.sell ? shares : payable));
    const terms = { type: OrderType.market, timeInForce: TimeInForce.ioc, price: null, postOnly: false };
    const rest = { clientOrderId: null, expiresAt: null, validUntil: null, timestamps: false };
    const selfTradePrevention = SelfTradePrevention.cancelMaker;
    return { marketId: market.id, outcomeId, side, quantity, selfTradePrevention, ...terms, ...rest };
  }

  private send(user: number, order: Placement, origin: Origin): void {
    const { life, record } = this;
    const { store } = life.exchange;
    const before = store.liveCount;
    const ask = new Ask(this, "place", (json) => {
      const { id, status, ...told } = JSON.parse(json);
      const found = record.orders.get(id);
      ensure(found !== undefined && found.user === user, `order ${id} is answered before it is committed`);
      same(
        [status, told.client_order_id, told.outcome_id, told.side],
        ["queued", order.clientOrderId, order.outcomeId, order.side],
        "the order as answered",
      );
    });
    this.unless(ask, () => life.entry.place(this.trader(user), origin, order, this.clock.now, ask));
    this.tally.add(
      "placed",
      `${order.type === OrderType.market ? "market" : "limit"} ${TIME_IN_FORCE[order.timeInForce]}`,
    );
    if (order.postOnly) this.tally.add("placed", "post-only");
    if (store.liveCount === before) return;
    const id = store.ids[store.newestOf(user)]!;
    if (order.clientOrderId === null && origin.builderCode === null) return;
    record.texts.set(id, { clientOrderId: order.clientOrderId, builderCode: origin.builderCode });
    if (order.clientOrderId !== null) this.named.push({ user, order, builderCode: origin.builderCode });
  }

  /** An immediate refusal gets no reply besides. */
  private unless(ask: Ask, act: () => void): void {
    try {
      act();
    } catch (error) {
      this.answered(ask);
      throw error;
    }
  }

  /** The same client order id again, with the same body or another one. */
  private repeat(): void {
    const { random } = this;
    if (this.named.length === 0) return;
    const { user, order, builderCode } =
      this.named[random.integer(Math.max(0, this.named.length - 60), this.named.length - 1)]!;
    const other = random.chance(0.3);
    this.tally.add("repeat", other ? "another body" : "same body");
    const again = other ? { ...order, quantity: order.quantity + 1 } : order;
    this.send(user, again, { connection: null, builderCode });
  }

  /** A live order of somebody. */
  private live(): { readonly user: number; readonly slot: number } | null {
    const { store } = this.life.exchange;
    const user = this.user();
    let slot = store.newestOf(user);
    for (let skip = this.random.integer(0, 12); skip > 0 && slot !== 0 && store.olderOf(slot) !== 0; skip--) {
      slot = store.olderOf(slot);
    }
    return slot === 0 ? null : { user, slot };
  }

  private cancel(): void {
    const { random, life, clock, record } = this;
    const found = this.live();
    const kind = random.next();
    const user = found?.user ?? this.user();
    if (kind < 0.04) {
      const id = random.integer(1, record.lastOrder + 2);
      const ask = new Ask(this, "cancel of some order", () => {});
      this.unless(ask, () => life.entry.cancel(user, id, clock.now, ask));
      return;
    }
    if (found === null) return;
    const { store } = life.exchange;
    const id = store.ids[found.slot]!;
    const ask = new Ask(this, "cancel", (json) => {
      ensure((JSON.parse(json) as Told).id === id, "a cancel is answered with its order");
      ensure(!record.live.has(id), "a cancel is answered when its order has ended");
    });
    const name = store.clientOrderId(found.slot);
    this.unless(ask, () => {
      if (name !== null && kind < 0.5) life.entry.cancelByClientId(user, name, clock.now, ask);
      else life.entry.cancel(user, id, clock.now, ask);
    });
    this.tally.add("request", "cancel");
  }

  private amend(): void {
    const { random, life, clock, record } = this;
    const found = this.live();
    if (found === null) return;
    const { store, registry } = life.exchange;
    const id = store.ids[found.slot]!;
    const market = registry.get(store.markets[found.slot]!)!;
    const change = {
      price: random.chance(0.5) ? this.price(market, sideOf(store.packed[found.slot]!)) : null,
      quantity: random.chance(0.6) ? random.integer(1, 80) : null,
      validUntil: random.chance(0.1) ? clock.now + random.integer(-10, 40) : null,
    };
    const ask = new Ask(this, "amend", (json) => {
      ensure((JSON.parse(json) as Told).id === id && record.orders.has(id), "an amend is answered with its order");
    });
    const trader = this.trader(found.user);
    this.unless(ask, () => life.entry.amend(trader, this.origin(found.user), id, change, clock.now, ask));
    this.tally.add("request", "amend");
  }

  private quote(): void {
    const { random, life, clock, record } = this;
    const market = this.market();
    if (market === null) return;
    const user = this.user();
    const quotes = new Map<string, Quote>();
    for (let i = random.integer(0, 6); i > 0; i--) {
      const outcomeId = random.pick(market.outcomes).id;
      const side = this.sells(user, outcomeId) ? Side.sell : Side.buy;
      const price = this.price(market, side);
      quotes.set(`${outcomeId} ${side} ${price}`, {
        outcomeId,
        side,
        price,
        quantity: random.integer(1, this.mood.most),
      });
    }
    const { store } = life.exchange;
    // Often the same quotes as the resting ones, with another expiry.
    if (random.chance(0.3)) {
      quotes.clear();
      for (let slot = store.newestQuoteOf(user, market.id); slot !== 0; slot = store.olderQuoteOf(slot)) {
        if (quotes.size === MOST_QUOTES) break;
        const [outcomeId, side] = [store.outcomes[slot]!, sideOf(store.packed[slot]!)];
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
    const ask = new Ask(this, "quotes", (json) => {
      const { results } = JSON.parse(json) as { results: { data: { id: number } }[] };
      ensure(results.length === quotes.size, "a result for each quote");
      for (const { data } of results) ensure(record.orders.has(data.id), "quotes are answered when they are committed");
    });
    this.unless(ask, () => {
      const request = { trader: this.trader(user), origin, marketId: market.id, quotes: [...quotes.values()], terms };
      life.entry.quotes.replace({ ...request, now: clock.now }, ask);
    });
    this.tally.add("request", "quotes");
    if (origin.builderCode === null) return;
    for (let slot = store.newestOf(user); slot !== 0 && store.ids[slot]! > last; slot = store.olderOf(slot)) {
      record.texts.set(store.ids[slot]!, { clientOrderId: null, builderCode: origin.builderCode });
    }
  }

  private changeSets(): void {
    const { random, life, clock, record } = this;
    const market = this.market();
    if (market === null) return;
    const user = this.user();
    const isSplit = random.chance(0.75);
    const quantity = random.integer(1, isSplit ? 150 : 30);
    const entries = record.entries.length;
    const ask = new Ask(this, isSplit ? "split" : "merge", () => {
      ensure(record.entries.length > entries, "a change of sets is answered when it is committed");
    });
    this.unless(ask, () => {
      const change = isSplit ? "split" : "merge";
      life.entry.sets[change](this.trader(user), market.id, quantity, clock.now, ask, () => {});
    });
    this.tally.add("request", ask.what);
  }

  private cancelAll(): void {
    const { random, life, clock, record } = this;
    const user = this.user();
    const market = random.chance(0.6) ? this.market() : null;
    const filter = {
      marketId: market?.id,
      side: random.chance(0.4) ? random.pick([Side.buy, Side.sell]) : undefined,
    };
    const ask = new Ask(this, "cancel-all", (json) => {
      const { order_ids: ids } = JSON.parse(json) as { order_ids: number[] };
      for (const id of ids) ensure(!record.live.has(id), "a cancel-all is answered when its orders have ended");
    });
    this.unless(ask, () => life.entry.cancelAll(user, filter, clock.now, ask));
    this.tally.add("request", "cancel-all");
  }

  /** Connections open, with or without cancel on disconnect, and close. */
  private connect(): void {
    const { random } = this;
    if (this.connections.length < 4 && random.chance(0.6)) {
      const user = this.user();
      const connection = { number: this.names++ + 1, cancelOnDisconnect: random.chance(0.7), ended: false };
      this.connections.push({ user, connection });
      return;
    }
    const [ended] = this.connections.splice(random.integer(0, this.connections.length), 1);
    if (ended === undefined) return;
    this.life.entry.endConnection(ended.user, ended.connection);
    this.tally.add("request", "disconnect");
  }

  // ---------------------------------------------------------------- money and the operator

  /** Everybody of this exchange, with some money, and its first markets. */
  found(users: number): void {
    this.users = users;
    this.dealers = dealersOf(users);
    const at = this.clock.now;
    for (let i = 1; i <= users; i++) {
      const verified = { passwordHash: null, emailVerifiedAt: at, phoneVerifiedAt: at };
      const rest = { role: "user", kycTier: 2, ...verified, at };
      this.write("createUser", [{ kind: "createUser", email: `user-${i}@example.com`, ...rest }]);
    }
  }

  private account(): void {
    const { random } = this;
    if (this.record.accounts.size < this.users) return;
    const kind = random.next();
    if (kind < 0.3) this.deposit();
    else if (kind < 0.38) this.house();
    else if (kind < 0.55) this.withdraw();
    else if (kind < 0.65) this.decide();
    else if (kind < 0.7) this.setTerms();
    else if (kind < 0.8) this.createMarket();
    else this.changeMarket();
  }

  /** Sends writes to the journal; checks their results against the committed state. */
  private write(
    what: string,
    writes: Parameters<Life["writer"]["write"]>[0],
    then: (ids: number[]) => void = () => {},
  ): void {
    const { life } = this;
    this.tally.add("write", what);
    const audits = this.random.chance(0.3) ? [auditOf(what, this.clock.now)] : [];
    life.writer.write(writes, audits).then(
      (results) => {
        if (life === this.life) then(results.map(({ id }) => id));
      },
      (error: ApiError) => {
        if (life === this.life) this.refused(what, error);
      },
    );
  }

  deposit(): void {
    const { random, clock } = this;
    const references = [...this.record.references.keys()];
    const isRepeat = references.length > 0 && random.chance(0.2);
    const known = isRepeat ? this.record.references.get(random.pick(references))! : null;
    const reference = isRepeat ? random.pick(references) : `bank-${++this.names}`;
    const userId = known !== null && known.user !== HOUSE ? known.user : this.user();
    const amount =
      known !== null && known.amount > 0 ? known.amount : random.integer(1, 20_000) * USDC + random.integer(0, 999);
    this.write("deposit", [{ kind: "deposit", userId, amount, reference, at: clock.now }]);
  }

  private house(): void {
    const { random, clock } = this;
    const [amount, reference] = [random.integer(1, 500 * USDC), `house-${++this.names}`];
    if (random.chance(0.6)) this.write("house", [{ kind: "deposit", userId: HOUSE, amount, reference, at: clock.now }]);
    else this.write("house", [{ kind: "withdrawFromHouse", amount, reference, at: clock.now }]);
  }

  private withdraw(): void {
    const { life, random, clock } = this;
    const user = this.user();
    const { exchange } = life;
    const amount = random.integer(1, 200 * USDC);
    if (exchange.refusal !== null || exchange.ledger.available(user) < amount) return;
    exchange.cash.hold(user, amount);
    const row = { userId: user, amount, address: "0x0", createdAt: clock.now, status: "pending" };
    this.write("withdrawal", [{ kind: "insert", table: "withdrawals", row }]);
  }

  /** A withdrawal is paid or canceled. */
  private decide(): void {
    const { random, life, clock } = this;
    const pending = [...this.record.withdrawals].filter(
      ([id, { status }]) => status === "pending" && !this.busy.has(`w${id}`),
    );
    if (pending.length === 0) return;
    const [id, { user, amount }] = random.pick(pending);
    this.busy.add(`w${id}`);
    if (random.chance(0.6)) {
      const rest = { reference: random.chance(0.5) ? `paid-${id}` : null, note: null, at: clock.now };
      return this.write("payment", [{ kind: "payWithdrawal", id, userId: user, amount, ...rest }]);
    }
    const set = { status: "canceled", note: null, decidedAt: clock.now };
    this.write("cancel of a withdrawal", [{ kind: "update", table: "withdrawals", id, set }], () => {
      life.exchange.cash.release(user, amount);
    });
  }

  private setTerms(): void {
    const { random } = this;
    const some = (most: number): number | null => (random.chance(0.4) ? null : random.integer(0, most));
    const terms = {
      dailyLimit: null,
      tradingFee: some(1_000),
      makerRebate: some(150),
      patRebate: some(150),
      mergeFee: some(1_000),
      ...(this.isDealing ? dealersTerms((rates) => random.pick(rates)) : {}),
      rateLimitFactor: null,
      maxLiveOrders: null,
    };
    this.write("setTerms", [{ kind: "setTerms", userId: this.user(), ...terms }]);
  }

  createMarket(): void {
    const { random, clock, life } = this;
    // Books and ids are few in these exchanges.
    const open = life.exchange.registry.all().filter(({ status }) => status <= MarketStatus.halted);
    if (open.length >= MAX_OPEN_MARKETS || this.record.markets.size >= MAX_MARKETS) return;
    const isOwn = this.haveDealers() && open.length > 1 && !open.some(isOwnMarket);
    const slug = isOwn ? ownSlug(`${++this.names}`) : `market-${++this.names}`;
    const outcomes = Array.from({ length: random.pick([2, 2, 3, 4]) }, (_, i) => `outcome ${i + 1}`);
    const texts = { slug, question: "What will be?", description: null, category: null, eventId: null };
    const closesAt = random.chance(0.3) ? clock.now + random.integer(100, 20_000) : null;
    const rest = { outcomes, opensAt: clock.now, closesAt, proposedBy: null, at: clock.now };
    this.write("createMarket", [{ kind: "createMarket", ...texts, ...rest }]);
  }

  private changeMarket(): void {
    const { random, life } = this;
    const all = life.exchange.registry.all();
    const least = this.isDealing ? 0 : this.record.markets.size < MAX_MARKETS ? 1 : 2;
    const candidates = all.filter(
      (market) => market.status <= MarketStatus.closed && isOwnMarket(market) === this.isDealing,
    );
    if (candidates.length === 0) return;
    const full = candidates.filter(isTradable)[0];
    // The market that everybody wants has the most orders to cancel.
    if (this.mood.sweeps > 0 && full !== undefined && random.chance(0.4)) return this.step(full, "close");
    const halted = candidates.filter(({ status }) => status === MarketStatus.halted);
    const market = halted.length > 0 && random.chance(0.8) ? halted[0]! : random.pick(candidates);
    const isLast = candidates.filter(isTradable).length <= least;
    if (market.status === MarketStatus.open) {
      if (random.chance(0.5)) this.step(market, "halt");
      else if (!isLast && random.chance(0.3)) this.step(market, "close");
    } else if (market.status === MarketStatus.halted) {
      this.step(market, random.chance(0.1) && !isLast ? "close" : "resume");
    } else this.resolve(market);
  }

  private step(market: Market, step: "halt" | "resume" | "close"): void {
    this.through(step, () => this.life.markets.change(market, step, null, OPERATOR, this.context()));
  }

  private resolve(market: Market): void {
    const { random, life } = this;
    if (random.chance(0.3))
      return this.through("void", () => life.markets.void(market, null, OPERATOR, this.context()));
    const payouts = market.outcomes.map(() => 0);
    for (let left = 10_000, i = 0; left > 0; i++) {
      const share = i === payouts.length - 1 ? left : random.pick([0, left, Math.floor(left / 3)]);
      payouts[i] = share;
      left -= share;
    }
    this.through("resolve", () =>
      life.markets.resolve(market, { payouts, outcomeId: null }, null, OPERATOR, this.context()),
    );
  }

  // ---------------------------------------------------------------- the dealers

  isDealer(user: number): boolean {
    return this.dealers.includes(user);
  }

  private ownMarkets(): Market[] {
    return this.life.exchange.registry.all().filter(isOwnMarket);
  }

  /** When nothing is on its way. */
  expectNoProfit(): void {
    const markets = this.ownMarkets().map(({ id }) => id);
    expectNoProfit(this.record, this.dealers, markets);
  }

  /** The dealers leave their markets: they cancel, merge what they can, and the rest is voided. */
  async closeOut(becomeQuiet: () => Promise<void>): Promise<void> {
    const { life, clock } = this;
    for (const market of this.ownMarkets()) {
      if (market.status > MarketStatus.closed) continue;
      for (const user of this.dealers) {
        const ask = new Ask(this, "cancel-all", () => {});
        this.attempt(ask, () => life.entry.cancelAll(user, { marketId: market.id }, clock.now, ask));
      }
      await becomeQuiet();
      for (const user of this.dealers) {
        const sets = Math.min(...market.outcomes.map(({ id }) => life.exchange.ledger.availableShares(user, id)));
        const ask = new Ask(this, "merge", () => {});
        this.attempt(ask, () => {
          life.entry.sets.merge(this.trader(user), market.id, Math.max(1, sets), clock.now, ask, () => {});
        });
      }
      await becomeQuiet();
      if (market.status !== MarketStatus.closed) this.step(market, "close");
      await becomeQuiet();
      this.through("void", () => life.markets.void(market, null, OPERATOR, this.context()));
      await becomeQuiet();
      ensure(market.status === MarketStatus.voided, "the dealers' market is voided");
      this.tally.add("self-dealers", "closed out");
    }
    for (const { id } of this.ownMarkets())
      ensure(this.record.markets.get(id)!.sets === 0, "nothing is left in a market that ended");
    this.expectNoProfit();
  }

  private attempt(ask: Ask, act: () => void): void {
    try {
      this.unless(ask, act);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.refused(ask.what, error);
    }
  }

  private context() {
    return { now: this.clock.now, requestId: "simulated", address: "", client: "", userAgent: "" };
  }

  private through(what: string, act: () => Promise<unknown>): void {
    const { life } = this;
    this.tally.add("operator", what);
    act().catch((error) => {
      if (life !== this.life) return;
      if (!(error instanceof ApiError)) this.failed ??= error;
      else this.refused(what, error);
    });
  }

  /** The error of a rejected promise, unless it is a refusal. */
  failed: unknown = null;
}

/** A world's ids and books are bounded by its shape. */
const MAX_OPEN_MARKETS = 4;
export const MAX_MARKETS = 24;
/** Of one set: the longest chain holds as many, and as many that they replace. */
export const MOST_QUOTES = 8;
const TIME_IN_FORCE = ["gtc", "gtd", "ioc", "fok"];
export const SOME_DAYS_MS = 2 * DAY_MS;

function auditOf(action: string, at: number) {
  return {
    at,
    action,
    actor: "admin",
    userId: null,
    write: 0,
    subject: null,
    details: null,
    requestId: null,
    address: null,
  };
}

/** @param price as it must be shown */
function expectUpdate(told: Told, update: Update, price: number | null): void {
  const isSame =
    told.id === update.order &&
    told.price === price &&
    told.quantity === update.quantity &&
    told.remaining === update.remaining &&
    told.status === ORDER_STATUSES[update.status] &&
    told.reason === REASONS[update.reason] &&
    told.trades.length === update.fills;
  if (!isSame) same(told, update, "an update as told, and as it is on record");
}

/** Everything that happened, as one number: two runs of a seed must have the same. */
export class Hash {
  private state = 0x811c9dc5;

  add(value: number): void {
    this.state = Math.imul(this.state ^ (value | 0), 0x01000193);
    this.state ^= this.state >>> 15;
  }

  text(value: number, text: string): void {
    this.add(value);
    this.add(text.length * 31 + (text.charCodeAt(0) || 0));
  }

  get value(): number {
    return this.state >>> 0;
  }
}
