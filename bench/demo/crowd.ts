/**
 * All the demo's bots in all open markets, including those that an operator opens later: sets them up, and trades at a
 * human pace until stopped. One random source decides, so that a seed repeats the choices, though not the timing.
 */
import { setMaxListeners } from "node:events";
import { assert } from "../../engine/util/assert.ts";
import { itemAt } from "../support/item-at.ts";
import { Api, type Boxes, pause } from "./api.ts";
import { MARKETS } from "./catalog.ts";
import { FairValues } from "./fair-values.ts";
import { emailOf } from "./folder.ts";
import { listAll } from "./list-all.ts";
import { Maker, type MakerStyle } from "./maker.ts";
import { Taker } from "./taker.ts";
import type { Caller, Reply, TradedMarket } from "./types.ts";

export const MAKERS: readonly (readonly [name: string, style: MakerStyle, phase: number])[] = [
  ["maker-1", "both", 0],
  ["maker-2", "both", 0.5],
  ["maker-3", "bids", 0.3],
  ["maker-4", "asks", 0.7],
];
export const TAKERS = ["taker-1", "taker-2", "taker-3", "taker-4", "taker-5", "taker-6", "taker-7", "taker-8"];
export const BOTS: readonly string[] = [...MAKERS.map(([name]) => name), ...TAKERS];

/** The bots' terms beyond those of people: micro-USDC per day, and a factor for rate limits. */
const BOT_TERMS = { daily_limit: 1_000_000_000_000_000, rate_limit_factor: 1_000 };
const VALUE_TICK_MS = 1_000;
/** How often a maker requotes each market, and a taker's mean waiting time. */
const MAKER_ROUND_MS = 6_000;
const TAKER_WAIT_MS = 5_000;
const MARKETS_EVERY_MS = 15_000;
const REFILL_EVERY_MS = 30_000;
const MAX_BPS = 10_000;

/** Expected rejections: no balance, no shares, a market that isn't open. */
const USUAL = [0, 42201, 42202, 42203];

/** A market whose values the crowd moves. */
interface LiveMarket extends TradedMarket {
  readonly fair: FairValues;
}

interface ListedMarket {
  readonly id: number;
  readonly slug: string;
  readonly outcomes: readonly {
    readonly id: number;
    readonly name: string;
    readonly last_price: number | null;
    readonly implied_bid: number | null;
    readonly implied_ask: number | null;
  }[];
}

export interface CrowdOptions {
  readonly boxes: Boxes;
  readonly tokens: Readonly<Record<string, string>>;
  readonly operator: { readonly email: string; readonly password: string };
  readonly random: () => number;
  /** Called with a line for each unexpected kind of rejection, once per kind. */
  readonly warn: (line: string) => void;
}

export class Crowd {
  private readonly options: CrowdOptions;
  private readonly stopping = new AbortController();
  private readonly makers: readonly Maker[];
  private readonly takers: readonly Taker[];
  private readonly reader: Caller;
  private readonly known = new Map<number, LiveMarket>();
  private markets: readonly LiveMarket[] = [];
  private readonly warned = new Set<string>();
  private running: Promise<unknown> = Promise.resolve();

  constructor(options: CrowdOptions) {
    this.options = options;
    // Each bot listens to it, in several places.
    setMaxListeners(0, this.stopping.signal);
    const { tokens, random } = options;
    const api = (name: string): Api => {
      const token = tokens[name];
      assert(token !== undefined, "every bot has a token");
      return new Api(name, options.boxes, token, this.stopping.signal);
    };
    this.makers = MAKERS.map(([name, style, phase]) => new Maker(api(name), style, phase, random));
    this.takers = TAKERS.map((name) => new Taker(api(name), random, Date.now));
    this.reader = itemAt(this.takers, 0).api;
  }

  /**
   * Brings the makers' quotes to where the market is. @throws Error if the exchange rejects what bots need
   */
  async prepare(): Promise<void> {
    await this.setTerms();
    await this.readMarkets();
    for (const market of this.markets) await Promise.all(this.makers.map((maker) => maker.refill(market)));
    // Quotes that cross another maker's old ones are rejected; the second pass has no such conflicts.
    await this.quoteAll();
    await this.quoteAll();
  }

  /** Trades until `stop`. */
  start(): void {
    this.running = Promise.all([
      this.walk(),
      ...this.makers.map((maker) => this.runMaker(maker)),
      ...this.makers.map((maker) => this.keepSets(maker)),
      ...this.takers.map((taker) => this.runTaker(taker)),
    ]);
  }

  /** Resolves once all bots are idle. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** Raises the bots' KYC and rate limits as an operator would for any market maker. */
  private async setTerms(): Promise<void> {
    const { boxes, operator } = this.options;
    const { signal } = this.stopping;
    const visitor = new Api("operator", boxes, null, signal);
    const login = required(await visitor.call<{ access_token: string }>("POST", "/auth/login", operator), "sign-in");
    const desk = new Api("operator", boxes, login.access_token, signal);
    for (const name of BOTS) {
      type Users = { items: { id: number; terms: typeof BOT_TERMS }[] };
      const found = await desk.call<Users>("GET", `/admin/users?email=${encodeURIComponent(emailOf(name))}`);
      const user = required(found, name).items[0];
      if (user === undefined) throw new Error(`${name}: the exchange doesn't know this user`);
      if (user.terms.daily_limit === BOT_TERMS.daily_limit) continue;
      required(await desk.call("PATCH", `/admin/users/${user.id}/terms`, BOT_TERMS), `${name}'s terms`);
    }
  }

  private async readMarkets(): Promise<void> {
    const listed = await listAll<ListedMarket>(this.reader, "/markets");
    this.markets = listed.map((market) => {
      const trading = this.known.get(market.id) ?? tradingOf(market, this.options.random);
      this.known.set(market.id, trading);
      return trading;
    });
  }

  private async quoteAll(): Promise<void> {
    for (const maker of this.makers) await Promise.all(this.markets.map((market) => this.quote(maker, market, true)));
  }

  /** Moves the values and refreshes the markets. */
  private async walk(): Promise<void> {
    let lastLook = performance.now();
    for (let last = performance.now(); !this.isStopping; ) {
      await pause(VALUE_TICK_MS, this.stopping.signal);
      const now = performance.now();
      for (const { fair } of this.markets) fair.advance((now - last) / 1_000);
      last = now;
      if (now - lastLook < MARKETS_EVERY_MS) continue;
      lastLook = now;
      await this.readMarkets();
    }
  }

  private async runMaker(maker: Maker): Promise<void> {
    while (!this.isStopping) {
      for (const market of this.markets) {
        await this.rest(MAKER_ROUND_MS / this.markets.length);
        if (this.isStopping) return;
        await this.quote(maker, market);
      }
      if (this.markets.length === 0) await this.rest(MAKER_ROUND_MS);
    }
  }

  private async keepSets(maker: Maker): Promise<void> {
    while (!this.isStopping) {
      await this.rest(REFILL_EVERY_MS);
      for (const market of this.markets) if (!this.isStopping) await maker.refill(market);
    }
  }

  private async runTaker(taker: Taker): Promise<void> {
    const { random } = this.options;
    while (!this.isStopping) {
      await pause(-Math.log(1 - random()) * TAKER_WAIT_MS, this.stopping.signal);
      const market = pickWeighted(this.markets, random);
      if (!this.isStopping && market !== null) await this.trade(taker, market, true);
    }
  }

  private async quote(maker: Maker, market: TradedMarket, always = false): Promise<void> {
    const reply = await maker.quote(market, always);
    if (reply !== null) this.look(maker.api, "PUT /quotes", reply);
  }

  private async trade(taker: Taker, market: TradedMarket, mayRest: boolean): Promise<void> {
    this.look(taker.api, "POST /orders", await taker.trade(market, mayRest));
  }

  private look({ name }: Caller, what: string, { code, msg }: Reply<unknown>): void {
    const kind = `${what} ${code}`;
    if (USUAL.includes(code) || this.isStopping || this.warned.has(kind)) return;
    this.warned.add(kind);
    this.options.warn(`${name}: ${what}: ${code} ${msg}`);
  }

  /** Pauses for `ms` on average. */
  private async rest(ms: number): Promise<void> {
    await pause(ms * (0.5 + this.options.random()), this.stopping.signal);
  }

  private get isStopping(): boolean {
    return this.stopping.signal.aborted;
  }
}

/** Values start in the middle of the book, so that a restart doesn't break the charts; or at the last prices, or the catalog's. */
function tradingOf({ id, slug, outcomes }: ListedMarket, random: () => number): LiveMarket {
  const known = MARKETS.find((market) => market.slug === slug);
  const equal = MAX_BPS / outcomes.length;
  const chances = outcomes.map(({ name }) => known?.outcomes[name] ?? equal);
  const now = outcomes.map(({ last_price, implied_bid, implied_ask }) =>
    implied_bid === null || implied_ask === null ? (last_price ?? 0) : (implied_bid + implied_ask) / 2,
  );
  const fair = new FairValues(chances, now.includes(0) ? chances : now, random);
  return { id, outcomes: outcomes.map((outcome) => outcome.id), fair, weight: known?.weight ?? 1 };
}

function required<T>({ code, msg, data }: Reply<T>, what: string): T {
  if (code !== 0 || data === null) throw new Error(`${what}: ${code} ${msg}`);
  return data;
}

function pickWeighted(markets: readonly TradedMarket[], random: () => number): TradedMarket | null {
  let left = random() * markets.reduce((sum, { weight }) => sum + weight, 0);
  for (const market of markets) {
    left -= market.weight;
    if (left < 0) return market;
  }
  return markets.at(-1) ?? null;
}
