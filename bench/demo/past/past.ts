/**
 * Makes the demo's past: the bots of the demo trade through 90 days on a clock that jumps from one happening to the next, an
 * operator opens and ends markets, and the person who signs in trades and moves money. All of it are requests to the
 * exchange's own routes. The same seed makes the same past relative to its end.
 */
import { Side } from "../../../engine/constants.ts";
import { assert } from "../../../engine/util/assert.ts";
import { TokenPrincipal } from "../../../server/accounts/principal.ts";
import type { Config } from "../../../server/bootstrap/config.ts";
import { applySeed, createSeedTarget, type Seed } from "../../../server/bootstrap/seed.ts";
import { NO_ADDRESS } from "../../../server/http/client-address.ts";
import type { Logger } from "../../../server/logger.ts";
import type { Market } from "../../../server/markets/types.ts";
import { itemAt } from "../../support/item-at.ts";
import { MAKERS, TAKERS } from "../crowd.ts";
import { emailOf, NEWCOMER, OPERATOR, PERSON } from "../folder.ts";
import { listAll } from "../list-all.ts";
import { Maker } from "../maker.ts";
import { Taker } from "../taker.ts";
import type { Caller, FairPrices, Position, TradedMarket } from "../types.ts";
import { LocalCaller, RouteFinder } from "./caller.ts";
import { openPastExchange, type PastExchange } from "./exchange.ts";
import { FairPath } from "./fair-path.ts";
import { HandLoop } from "./hand-loop.ts";
import {
  ENDED_MARKETS,
  type EndedMarket,
  type MarketStory,
  OPEN_STORIES,
  PAST_DAYS,
  PERSONAL_TRADES,
  type PersonalTrade,
} from "./story.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MINUTE_MS = 60_000;
/** Bursts of trading are drawn for so long at a time. */
const SLOT_MS = 20 * MINUTE_MS;
/** Bursts a day of a market with weight 1, on a usual day. */
const BURSTS_A_DAY = 4.6;
/** Takers of one burst. */
const MOST_TAKERS = 5;
/** After news a market trades so many times as much, which halves every few hours. */
const NEWS_RUSH = 9;
const NEWS_HALF_LIFE_MS = 4 * HOUR_MS;
/** In its last hours, the charts of minutes fill. */
const LAST_HOURS_MS = 6 * HOUR_MS;
const LAST_HOURS_RUSH = 3;
/** The hour of the day at the end of the past, and the share of trading by hour: people sleep. */
const LAST_HOUR = 16;
const TEMPO = [
  0.3, 0.2, 0.12, 0.08, 0.08, 0.1, 0.2, 0.4, 0.7, 0.9, 1, 1.1, 1.1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.7, 1.5, 1, 0.6,
];
/** Makers requote when a value has moved by this many basis points, and pull their quotes first beyond the second number. */
const MOVED = 80;
const JUMPED = 160;
/** How likely a maker requotes in a burst, with and without a reason. */
const MOVED_SHARE = 0.8;
const REQUOTE_SHARE = 0.1;
/** An operator ends a market that closed so long ago. */
const DECISION_MS = 5 * HOUR_MS;
const REFILL_EVERY = 40;
const USDC = 1_000_000;
/** BPS that the person pays beyond the value. */
const SLIPPAGE = 300;
const MAX_PRICE = 9_999;

interface PastMarket extends TradedMarket {
  readonly fair: FairPath;
  readonly story: MarketStory;
  /** ms */
  readonly since: number;
  readonly until: number;
  readonly news: readonly number[];
  /** By maker: the values that it quotes around. */
  readonly quoted: readonly QuotedPrices[];
  bursts: number;
}

interface Happening {
  /** ms */
  readonly at: number;
  readonly run: () => Promise<unknown>;
}

/** What the whole exchange takes for the time, ms since the epoch. */
interface HandClock {
  time: number;
}

/** The values that a maker quotes around: it leaves its quotes where they are until a value has moved enough. */
class QuotedPrices implements FairPrices {
  private readonly values: number[];

  constructor(outcomes: number) {
    this.values = new Array<number>(outcomes).fill(0);
  }

  prices(): readonly number[] {
    return this.values;
  }

  /** How far the furthest value has moved, BPS. */
  distance(prices: readonly number[]): number {
    return Math.max(...prices.map((price, i) => Math.abs(price - itemAt(this.values, i))));
  }

  /** Takes over the prices that moved by `least` BPS. */
  follow(prices: readonly number[], least: number): void {
    prices.forEach((price, i) => {
      if (Math.abs(price - itemAt(this.values, i)) >= least) this.values[i] = price;
    });
  }
}

export interface PastOptions {
  readonly config: Config;
  readonly seed: Seed;
  readonly random: () => number;
  /** When the past ends, ms. */
  readonly end: number;
  readonly logger: Logger;
  /** Called with the days that are done. */
  readonly progress: (days: number) => void;
}

/** Makes the past in the folder of the configuration, which has no exchange. @throws Error where a request fails */
export async function makePast(options: PastOptions): Promise<void> {
  const past = await Past.open(options);
  await past.run();
  await past.close();
}

class Past {
  private readonly options: PastOptions;
  private readonly start: number;
  private readonly clock: HandClock;
  private readonly exchange: PastExchange;
  private readonly finder: RouteFinder;
  private readonly random: () => number;
  private readonly markets: PastMarket[] = [];
  private makers: readonly Maker[] = [];
  private takers: readonly Taker[] = [];

  private constructor(options: PastOptions, clock: HandClock, exchange: PastExchange) {
    this.options = options;
    this.start = clock.time;
    this.clock = clock;
    this.exchange = exchange;
    this.finder = new RouteFinder(exchange.routes);
    this.random = options.random;
  }

  static async open(options: PastOptions): Promise<Past> {
    const { config, seed, end, logger } = options;
    const clock = { time: end - PAST_DAYS * DAY_MS };
    const exchange = await openPastExchange(config, new HandLoop(() => clock.time), logger);
    const { accounts, trading, identity } = exchange;
    const target = createSeedTarget(accounts, trading.writer, identity.passwords);
    await exchange.complete(applySeed(seed, target, clock.time));
    return new Past(options, clock, exchange);
  }

  async run(): Promise<void> {
    const { end, progress } = this.options;
    const makers: Maker[] = [];
    for (const [name, style, phase] of MAKERS) {
      makers.push(new Maker(await this.callerOf(emailOf(name)), style, phase, this.random));
    }
    this.makers = makers;
    const takers: Taker[] = [];
    for (const name of TAKERS)
      takers.push(new Taker(await this.callerOf(emailOf(name)), this.random, () => this.clock.time));
    this.takers = takers;
    const operator = await this.callerOf(OPERATOR);
    for (const story of OPEN_STORIES) await this.open(story);
    const planned = [
      ...ENDED_MARKETS.flatMap((market) => this.lifeOf(market, operator)),
      ...this.money(operator, await this.callerOf(PERSON)),
      ...this.waitingForOperators(await this.callerOf(NEWCOMER), itemAt(takers, 4).api),
    ].sort((a, b) => a.at - b.at);
    for (let slot = this.start; slot < end; slot += SLOT_MS) {
      const until = Math.min(slot + SLOT_MS, end);
      const happenings = this.markets.flatMap((market) => this.burstsOf(market, slot, until));
      while (planned[0] !== undefined && planned[0].at < until) happenings.push(itemAt(planned.splice(0, 1), 0));
      for (const { at, run } of happenings.sort((a, b) => a.at - b.at)) {
        await this.moveTo(at);
        await run();
      }
      progress((until - this.start) / DAY_MS);
      // As the exchange's own timer does: finished days go into archives.
      this.exchange.operators.upkeep.check();
    }
    await this.moveTo(end);
    const open = this.markets.filter(({ until }) => until >= end);
    for (const market of open) await this.exchange.complete(Promise.all(await this.requote(market, true)));
    await this.exchange.archive();
  }

  async close(): Promise<void> {
    await this.exchange.close();
  }

  /** Signs the user in. */
  private async callerOf(email: string): Promise<Caller> {
    const { clock, exchange, finder } = this;
    const user = exchange.accounts.userByEmail(email);
    assert(user !== undefined, "the seed lists the user");
    const context = { now: clock.time, requestId: "", ...NO_ADDRESS, userAgent: "" };
    const { session } = await exchange.complete(exchange.identity.sessions.open(user, "password", context));
    const principal = new TokenPrincipal(session, null);
    return new LocalCaller({ name: email, principal, finder, reads: exchange.exchange.reads, now: () => clock.time });
  }

  /** Sets the clock, and does what fell due. */
  private async moveTo(at: number): Promise<void> {
    const { clock, exchange } = this;
    clock.time = Math.max(clock.time, Math.round(at));
    exchange.exchange.tick(clock.time);
    while (!exchange.operators.life.closeDue(clock.time)) await exchange.settle();
    await exchange.settle();
  }

  // ---------------------------------------------------------------- markets

  private marketOf(slug: string): Market {
    const market = this.exchange.exchange.registry.findBySlug(slug);
    assert(market !== undefined, "the market of the story exists");
    return market;
  }

  /** Brings a market that exists to life: makers get shares to sell. */
  private async open(story: MarketStory): Promise<void> {
    const { end } = this.options;
    const { id, outcomes } = this.marketOf(story.slug);
    const times = story.points.map(({ daysAgo }) => end - daysAgo * DAY_MS);
    const market: PastMarket = {
      id,
      outcomes: outcomes.map((outcome) => outcome.id),
      weight: story.weight,
      fair: new FairPath(story.points, story.volatility, end, this.random),
      story,
      since: itemAt(times, 0),
      until: itemAt(times, times.length - 1),
      news: times.filter((at, i) => i > 0 && at - itemAt(times, i - 1) < HOUR_MS),
      quoted: this.makers.map(() => new QuotedPrices(outcomes.length)),
      bursts: 0,
    };
    this.markets.push(market);
    await this.exchange.complete(Promise.all(this.makers.map((maker) => maker.refill(market))));
  }

  private lifeOf(ended: EndedMarket, operator: Caller): Happening[] {
    const { end } = this.options;
    const { slug, question, description, category, event, outcomes, winner, note, points } = ended;
    const opensAt = end - itemAt(points, 0).daysAgo * DAY_MS;
    const closesAt = end - itemAt(points, points.length - 1).daysAgo * DAY_MS;
    const create = async (): Promise<void> => {
      const event_id = event === undefined ? {} : { event_id: this.eventOf(event) };
      const body = { slug, question, description, category, outcomes, closes_at: Math.round(closesAt), ...event_id };
      await this.ask(operator, "POST", "/admin/markets", body);
      await this.open(ended);
    };
    const decide = (): Promise<unknown> => {
      const { id, outcomes: made } = this.marketOf(slug);
      if (winner === null) return this.ask(operator, "POST", `/admin/markets/${id}/void`, { note });
      return this.ask(operator, "POST", `/admin/markets/${id}/resolve`, { outcome_id: itemAt(made, winner).id, note });
    };
    return [
      { at: opensAt, run: create },
      { at: closesAt + DECISION_MS, run: decide },
    ];
  }

  private eventOf(slug: string): number {
    const event = this.exchange.exchange.registry.findEventBySlug(slug);
    assert(event !== undefined, "the seed lists the event");
    return event.id;
  }

  // ---------------------------------------------------------------- trading

  private tempo(at: number): number {
    const hours = LAST_HOUR + 24 * (PAST_DAYS + 1) - (this.options.end - at) / HOUR_MS;
    return itemAt(TEMPO, Math.floor(hours) % 24);
  }

  /** The market's bursts of trading from `since` to `until`, ms. */
  private burstsOf(market: PastMarket, since: number, until: number): Happening[] {
    if (since < market.since || until > market.until) return [];
    const rush = market.news.reduce(
      (sum, at) => (at > since ? sum : sum + NEWS_RUSH * 2 ** ((at - since) / NEWS_HALF_LIFE_MS)),
      1,
    );
    const tempo = this.tempo(since);
    const last = this.options.end - since <= LAST_HOURS_MS ? LAST_HOURS_RUSH : 1;
    const mean = (BURSTS_A_DAY * market.weight * tempo * rush * last * (until - since)) / DAY_MS;
    return Array.from({ length: poisson(mean, this.random) }, () => {
      const at = since + this.random() * (until - since);
      return { at, run: () => this.burst(market, at, Math.min(1, tempo)) };
    });
  }

  private async burst(market: PastMarket, at: number, tempo: number): Promise<void> {
    const { exchange, random, takers } = this;
    market.fair.moveTo(at, tempo);
    const requests = await this.requote(market);
    for (let count = 1 + Math.floor(MOST_TAKERS * random()); count > 0; count--) {
      requests.push(itemAt(takers, Math.floor(takers.length * random())).trade(market, false));
      this.clock.time += 1 + Math.floor(30 * random());
    }
    await exchange.complete(Promise.all(requests));
    if (++market.bursts % REFILL_EVERY !== 0) return;
    await exchange.complete(Promise.all(this.makers.map((maker) => maker.refill(market))));
  }

  /**
   * Makers follow the values that have moved. When one jumps, all of them pull their quotes before anyone trades on them.
   * Returns what they then ask for. @param isForced as if a value had jumped
   */
  private async requote(market: PastMarket, isForced = false): Promise<Promise<unknown>[]> {
    const { exchange, makers, random } = this;
    const prices = market.fair.prices();
    const hasJumped = isForced || market.quoted.some((quoted) => quoted.distance(prices) >= JUMPED);
    if (hasJumped) await exchange.complete(Promise.all(makers.map((maker) => maker.pull(market))));
    const requests: Promise<unknown>[] = [];
    makers.forEach((maker, i) => {
      const fair = itemAt(market.quoted, i);
      const share = fair.distance(prices) >= MOVED ? MOVED_SHARE : REQUOTE_SHARE;
      if (!hasJumped && random() >= share) return;
      fair.follow(prices, hasJumped ? 0 : MOVED);
      requests.push(maker.quote({ ...market, fair }, hasJumped));
    });
    return requests;
  }

  // ---------------------------------------------------------------- people

  /** The person's deposits, trades, orders and withdrawal. */
  private money(operator: Caller, person: Caller): Happening[] {
    const ago = (days: number): number => this.options.end - days * DAY_MS;
    const userId = this.exchange.accounts.userByEmail(PERSON)?.id;
    const address = `0x${"7e57".repeat(10)}`;
    const deposit = { user_id: userId, amount: 1_500 * USDC, reference: "wire 2291" };
    const pay = async (): Promise<void> => {
      const { items } = await this.ask<{ items: { id: number }[] }>(
        operator,
        "GET",
        "/admin/withdrawals?status=pending",
      );
      await this.ask(operator, "POST", `/admin/withdrawals/${itemAt(items, 0).id}/pay`, { reference: "payout 118" });
    };
    const place = (slug: string, side: number, away: number, quantity: number) => async (): Promise<void> => {
      const { id, outcomes, fair } = this.pastMarket(slug);
      const price = Math.round(itemAt(fair.prices(), 0) + (side === Side.buy ? -away : away));
      await this.ask(person, "POST", "/orders", {
        market_id: id,
        outcome_id: itemAt(outcomes, 0),
        side,
        price,
        quantity,
      });
    };
    return [
      ...PERSONAL_TRADES.map((trade) => ({ at: ago(trade.daysAgo), run: () => this.tradeOnce(person, trade) })),
      { at: ago(47.1), run: () => this.ask(operator, "POST", "/admin/deposits", deposit) },
      { at: ago(21.4), run: () => this.ask(person, "POST", "/wallet/withdrawals", { amount: 800 * USDC, address }) },
      { at: ago(21.1), run: pay },
      { at: ago(4.2), run: place("moon-landing-this-decade", Side.buy, 600, 100) },
      { at: ago(2.6), run: () => this.ask(person, "DELETE", "/orders") },
      { at: ago(0.21), run: place("central-bank-next-meeting", Side.buy, 450, 200) },
      { at: ago(0.17), run: place("most-valuable-company", Side.sell, 500, 80) },
      { at: ago(0.08), run: place("champions-cup-winner", Side.buy, 380, 150) },
    ];
  }

  /** Trades what makers offer at that time; sells at most what the person has. */
  private async tradeOnce(person: Caller, { daysAgo, slug, outcome, side, quantity }: PersonalTrade): Promise<void> {
    const market = this.pastMarket(slug);
    await this.burst(market, this.options.end - daysAgo * DAY_MS, 1);
    const outcome_id = itemAt(market.outcomes, outcome);
    const isSale = side === "sell";
    const held = isSale ? await this.exchange.complete(listAll<Position>(person, "/me/positions")) : [];
    const least = isSale ? (held.find((position) => position.outcome_id === outcome_id)?.quantity ?? 0) : quantity;
    const value = itemAt(market.fair.prices(), outcome);
    const price = Math.round(Math.min(MAX_PRICE, Math.max(1, isSale ? value - SLIPPAGE : value + SLIPPAGE)));
    const terms = {
      side: isSale ? Side.sell : Side.buy,
      price,
      quantity: Math.min(quantity, least),
      time_in_force: "ioc",
    };
    if (least > 0) await this.ask(person, "POST", "/orders", { market_id: market.id, outcome_id, ...terms });
  }

  private pastMarket(slug: string): PastMarket {
    const market = this.markets.find(({ story }) => story.slug === slug);
    assert(market !== undefined, "the market has begun");
    return market;
  }

  /** What an operator finds at the desk. */
  private waitingForOperators(newcomer: Caller, proposer: Caller): Happening[] {
    const { end } = this.options;
    const document = { document_type: "passport", document_number: "P-4471 902", country: "PT" };
    const proposal = {
      question: "Will the metro line to the airport open this year?",
      description: "Pays on Yes if passengers can ride it before the end of the year.",
      category: "local",
      outcomes: ["Yes", "No"],
      closes_at: Math.round(end + 60 * DAY_MS),
    };
    return [
      { at: end - 9 * HOUR_MS, run: () => this.ask(newcomer, "POST", "/me/identity", document) },
      { at: end - 6 * HOUR_MS, run: () => this.ask(proposer, "POST", "/markets/proposals", proposal) },
    ];
  }

  /** A request that must succeed. */
  private async ask<T>(caller: Caller, method: string, path: string, body?: object): Promise<T> {
    const { code, msg, data } = await this.exchange.complete(caller.call<T>(method, path, body));
    if (code !== 0) throw new Error(`${caller.name}: ${method} ${path}: ${code} ${msg}`);
    return data as T;
  }
}

/** The number of events whose mean number this is (Knuth). */
function poisson(mean: number, random: () => number): number {
  const least = Math.exp(-mean);
  let count = 0;
  for (let product = random(); product > least; product *= random()) count++;
  return count;
}
