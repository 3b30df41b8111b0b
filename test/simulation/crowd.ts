/**
 * What the clients of a simulated exchange have in common: the random source that decides what each does next, the current
 * life, who the users are, and the requests that await a reply. Knows no kind of request.
 */
import { ApiError } from "../../server/errors.ts";
import { isTradable } from "../../server/markets/registry.ts";
import type { Market } from "../../server/markets/types.ts";
import { JsonReply } from "../../server/orders/json-reply.ts";
import type { Trader } from "../../server/trading/types.ts";
import { ensure } from "../engine/book/harness.ts";
import type { Random } from "../support/random.ts";
import type { Committed } from "./committed.ts";
import type { Hash } from "./hash.ts";
import type { Clock, Life } from "./life.ts";
import { isOwnMarket } from "./self-dealers.ts";
import type { Tally } from "./tally.ts";

export const USDC = 1_000_000;
/** The limit of the users whose activity is limited; all others have none. */
const TIGHT_LIMIT = 3_000 * USDC;
const NO_LIMIT = Number.MAX_SAFE_INTEGER;
/** Live orders that one user may have. */
const FEW_ORDERS = 4;

/** A request of a client that awaits one reply. */
export class PendingRequest extends JsonReply {
  /** For messages: what kind of request it is. */
  readonly name: string;
  readonly requestId = "";
  private replies = 0;
  private readonly crowd: Crowd;
  private readonly onReply: (json: string) => void;

  constructor(crowd: Crowd, name: string, onReply: (json: string) => void) {
    super();
    this.crowd = crowd;
    this.name = name;
    this.onReply = onReply;
    crowd.sent(this);
  }

  data(json: string): void {
    this.end();
    this.crowd.hash.text(json.length, this.name);
    this.onReply(json);
  }

  error(error: ApiError): void {
    this.end();
    this.crowd.refused(this.name, error);
  }

  private end(): void {
    this.replies++;
    ensure(this.replies === 1, `${this.name} gets one reply`);
    this.crowd.ended(this);
  }
}

/** How the clients behave for a while. */
export interface Mood {
  /** BPS between the prices of buyers and sellers; below 0 they often cross. */
  readonly gap: number;
  /** Prices on each side. */
  readonly depth: number;
  readonly cancels: number;
  /** The largest quantity of most orders. */
  readonly most: number;
  /** The share of orders that take all available liquidity. */
  readonly sweeps: number;
  /** Most orders are for one and the same outcome. */
  readonly focuses: boolean;
}

export class Crowd {
  mood: Mood = { gap: 0, depth: 5, cancels: 1, most: 40, sweeps: 0, focuses: false };
  readonly random: Random;
  readonly clock: Clock;
  readonly record: Committed;
  readonly tally: Tally;
  readonly hash: Hash;
  life!: Life;
  users = 0;
  /** The accounts that trade only with each other (self-dealers.ts), and whether they act next. */
  dealers: readonly number[] = [];
  isDealing = false;
  /** The error of a rejected promise, unless it is a rejection. */
  failed: unknown = null;
  private readonly pending = new Set<PendingRequest>();
  private lastNumber = 0;

  constructor(random: Random, clock: Clock, record: Committed, tally: Tally, hash: Hash) {
    this.random = random;
    this.clock = clock;
    this.record = record;
    this.tally = tally;
    this.hash = hash;
  }

  /** A new life has begun: requests in flight in the last one are lost. */
  begin(life: Life): void {
    this.life = life;
    this.pending.clear();
  }

  /** Makes names unique. */
  nextNumber(): number {
    return ++this.lastNumber;
  }

  // ---------------------------------------------------------------- who and where

  haveDealers(): boolean {
    return this.dealers.length > 0 && this.record.accounts.size === this.users;
  }

  isDealer(user: number): boolean {
    return this.dealers.includes(user);
  }

  /** Some user that exists: one of the dealers if they act. */
  user(): number {
    const { random, record, dealers } = this;
    if (this.isDealing) return random.pick(dealers);
    return random.integer(1, Math.min(record.accounts.size, this.users - dealers.length));
  }

  trader(userId: number): Trader {
    const dailyLimit = userId === 2 ? TIGHT_LIMIT : NO_LIMIT;
    const mergeFee = this.record.account(userId).terms?.mergeFee ?? null;
    const maxLiveOrders = userId === 3 ? FEW_ORDERS : NO_LIMIT;
    return { userId, dailyLimit, maxLiveOrders, mergeFee, pat: this.random.chance(0.5) };
  }

  /** Some market, most often a tradable one; null if there is none yet. */
  market(): Market | null {
    const { random } = this;
    const all = this.life.exchange.registry.all().filter((market) => isOwnMarket(market) === this.isDealing);
    if (all.length === 0) return null;
    const open = all.filter(isTradable);
    if (open.length > 0 && this.mood.focuses && random.chance(0.85)) return open[0]!;
    return open.length > 0 && random.chance(0.98) ? random.pick(open) : random.pick(all);
  }

  ownMarkets(): Market[] {
    return this.life.exchange.registry.all().filter(isOwnMarket);
  }

  // ---------------------------------------------------------------- requests

  sent(request: PendingRequest): void {
    this.pending.add(request);
  }

  ended(request: PendingRequest): void {
    ensure(this.pending.delete(request), `${request.name} gets its reply in the life that it was sent in`);
  }

  /** Sends a request; it stays pending only if the exchange accepts it. @throws ApiError on an immediate rejection */
  send(request: PendingRequest, act: () => void): void {
    try {
      act();
    } catch (error) {
      this.ended(request);
      throw error;
    }
  }

  /** Sends a request that the exchange may reject. */
  attempt(request: PendingRequest, act: () => void): void {
    try {
      this.send(request, act);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.refused(request.name, error);
    }
  }

  refused(what: string, error: ApiError): void {
    this.tally.add("rejection", String(error.kind.code));
    if (!this.life.exchange.writer.haveRoom) this.tally.add("full", "command ring");
    if (!this.life.exchange.store.hasSlots(1)) this.tally.add("full", "slots");
    this.hash.text(error.kind.code, what);
  }

  expectAnswered(): void {
    const [first] = this.pending;
    ensure(first === undefined, `${first?.name} gets no reply`);
  }
}
