/**
 * What operators of a simulated exchange do, and users with their money: deposits, withdrawals, terms, and the lives of
 * markets. Each method is one action, chosen at random.
 */
import { MarketStatus } from "../../engine/constants.ts";
import { HOUSE } from "../../engine/log/writes.ts";
import { ApiError } from "../../server/errors.ts";
import { isTradable } from "../../server/markets/registry.ts";
import type { Market } from "../../server/markets/types.ts";
import type { RequestedWrite } from "../../server/writes/types.ts";
import { type Crowd, USDC } from "./crowd.ts";
import type { Life } from "./life.ts";
import { dealersOf, dealersTerms, isOwnMarket, ownSlug } from "./self-dealers.ts";

const OPERATOR = { actor: "admin", userId: null };
/** A world's ids and books are bounded by its shape. */
const MAX_OPEN_MARKETS = 4;
export const MAX_MARKETS = 24;

export class Operators {
  private readonly crowd: Crowd;
  /** Withdrawals with a decision in flight. */
  private readonly busy = new Set<string>();

  constructor(crowd: Crowd) {
    this.crowd = crowd;
  }

  /** A new life has begun. */
  begin(): void {
    this.busy.clear();
  }

  /** Creates the users of this exchange. */
  createUsers(users: number): void {
    this.crowd.users = users;
    this.crowd.dealers = dealersOf(users);
    const at = this.crowd.clock.now;
    for (let i = 1; i <= users; i++) {
      const verified = { passwordHash: null, emailVerifiedAt: at, phoneVerifiedAt: at };
      const rest = { role: "user", kycTier: 2, ...verified, at };
      this.write("createUser", [{ kind: "createUser", email: `user-${i}@example.com`, ...rest }]);
    }
  }

  /** One action, on an account or on a market. */
  act(): void {
    const { random } = this.crowd;
    if (this.crowd.record.accounts.size < this.crowd.users) return;
    const kind = random.next();
    if (kind < 0.25) this.deposit();
    else if (kind < 0.3) this.reverse();
    else if (kind < 0.38) this.house();
    else if (kind < 0.55) this.withdraw();
    else if (kind < 0.65) this.decide();
    else if (kind < 0.7) this.setTerms();
    else if (kind < 0.8) this.createMarket();
    else this.changeMarket();
  }

  /** Sends writes to the log; checks their results against the committed state. */
  private write(
    what: string,
    writes: Parameters<Life["writer"]["write"]>[0],
    then: (ids: number[]) => void = () => {},
  ): void {
    const { life } = this.crowd;
    this.crowd.tally.add("write", what);
    const audits = this.crowd.random.chance(0.3) ? [auditOf(what, this.crowd.clock.now)] : [];
    const [first] = writes;
    life.writer.write(writes, audits).then(
      (results) => {
        if (life !== this.crowd.life) return;
        this.expectFate(first, results[0]?.created === true ? "new" : "there");
        then(results.map(({ id }) => id));
      },
      (error: ApiError) => {
        if (life !== this.crowd.life) return;
        if (/^reference: .* has it$/.test(error.message)) this.expectFate(first, "refused");
        this.crowd.refused(what, error);
      },
    );
  }

  /** Compares the fate of a payment with the committed state, which has it by now if it is new. */
  private expectFate(write: RequestedWrite | undefined, fate: "new" | "there" | "refused"): void {
    if (write?.kind !== "deposit" && write?.kind !== "reverseDeposit" && write?.kind !== "withdrawFromHouse") return;
    const expected = this.crowd.record.fateOf(write);
    const isAsExpected = fate === "new" ? expected === "there" : expected === fate;
    if (!isAsExpected) this.crowd.failed ??= new Error(`${write.kind} ${write.reference}: ${fate}, not ${expected}`);
  }

  deposit(): void {
    const { random, clock } = this.crowd;
    const references = [...this.crowd.record.references.keys()];
    const isRepeat = references.length > 0 && random.chance(0.2);
    const known = isRepeat ? this.crowd.record.references.get(random.pick(references))! : null;
    const picked = isRepeat ? random.pick(references) : `bank-${this.crowd.nextNumber()}`;
    // Whoever types a reference types it in any case.
    const reference = random.chance(0.3) ? picked.toUpperCase() : picked;
    const userId = known !== null && known.user !== HOUSE ? known.user : this.crowd.user();
    const amount =
      known !== null && known.amount > 0 ? known.amount : random.integer(1, 20_000) * USDC + random.integer(0, 999);
    this.write("deposit", [{ kind: "deposit", userId, amount, reference, at: clock.now }]);
  }

  /** Takes back a deposit to a user or the house, or a part of it; repeats an earlier reversal sometimes. */
  private reverse(): void {
    const { random, clock, record } = this.crowd;
    if (record.deposited.size === 0) return;
    const [depositId, { user: userId, amount: most }] = random.pick([...record.deposited]);
    const amount = random.chance(0.3) ? most : random.integer(1, most + 1);
    const reversals = [...record.references].filter(([, { reverses }]) => reverses !== null);
    const reference =
      reversals.length > 0 && random.chance(0.2) ? random.pick(reversals)[0] : `back-${this.crowd.nextNumber()}`;
    this.write("reversal", [{ kind: "reverseDeposit", userId, depositId, amount, reference, at: clock.now }]);
  }

  private house(): void {
    const { random, clock } = this.crowd;
    const [amount, reference] = [random.integer(1, 500 * USDC), `house-${this.crowd.nextNumber()}`];
    if (random.chance(0.6)) this.write("house", [{ kind: "deposit", userId: HOUSE, amount, reference, at: clock.now }]);
    else this.write("house", [{ kind: "withdrawFromHouse", amount, reference, at: clock.now }]);
  }

  private withdraw(): void {
    const { life, random, clock } = this.crowd;
    const user = this.crowd.user();
    const { exchange } = life;
    const amount = random.integer(1, 200 * USDC);
    if (exchange.gate.hasFailed || exchange.ledger.available(user) < amount) return;
    exchange.cash.hold(user, amount);
    const row = { userId: user, amount, address: "0x0", createdAt: clock.now, status: "pending" };
    this.write("withdrawal", [{ kind: "insert", table: "withdrawals", row }]);
  }

  /** Pays or cancels a pending withdrawal. */
  private decide(): void {
    const { random, life, clock } = this.crowd;
    const pending = [...this.crowd.record.withdrawals].filter(
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
    const { random } = this.crowd;
    const some = (most: number): number | null => (random.chance(0.4) ? null : random.integer(0, most));
    const terms = {
      dailyLimit: null,
      tradingFee: some(1_000),
      makerRebate: some(150),
      patRebate: some(150),
      mergeFee: some(1_000),
      ...(this.crowd.isDealing ? dealersTerms((rates) => random.pick(rates)) : {}),
      rateLimitFactor: null,
      maxLiveOrders: null,
    };
    this.write("setTerms", [{ kind: "setTerms", userId: this.crowd.user(), ...terms }]);
  }

  createMarket(): void {
    const { random, clock, life } = this.crowd;
    // Books and ids are few in these exchanges.
    const open = life.exchange.registry.all().filter(({ status }) => status <= MarketStatus.halted);
    if (open.length >= MAX_OPEN_MARKETS || this.crowd.record.markets.size >= MAX_MARKETS) return;
    const isOwn = this.crowd.haveDealers() && open.length > 1 && !open.some(isOwnMarket);
    const slug = isOwn ? ownSlug(`${this.crowd.nextNumber()}`) : `market-${this.crowd.nextNumber()}`;
    const outcomes = Array.from({ length: random.pick([2, 2, 3, 4]) }, (_, i) => `outcome ${i + 1}`);
    const texts = { slug, question: "What will be?", description: null, category: null, eventId: null };
    const closesAt = random.chance(0.3) ? clock.now + random.integer(100, 20_000) : null;
    const rest = { outcomes, opensAt: clock.now, closesAt, proposedBy: null, at: clock.now };
    this.write("createMarket", [{ kind: "createMarket", ...texts, ...rest }]);
  }

  private changeMarket(): void {
    const { random, life } = this.crowd;
    const all = life.exchange.registry.all();
    const least = this.crowd.isDealing ? 0 : this.crowd.record.markets.size < MAX_MARKETS ? 1 : 2;
    const candidates = all.filter(
      (market) => market.status <= MarketStatus.closed && isOwnMarket(market) === this.crowd.isDealing,
    );
    if (candidates.length === 0) return;
    const full = candidates.filter(isTradable)[0];
    // The market that everyone trades in has the most orders to cancel.
    if (this.crowd.mood.sweeps > 0 && full !== undefined && random.chance(0.4)) return this.step(full, "close");
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

  step(market: Market, step: "halt" | "resume" | "close"): void {
    this.through(step, () => this.crowd.life.markets.change(market, step, null, OPERATOR, this.context()));
  }

  void(market: Market): void {
    this.through("void", () => this.crowd.life.markets.void(market, null, OPERATOR, this.context()));
  }

  private resolve(market: Market): void {
    const { random, life } = this.crowd;
    if (random.chance(0.3)) return this.void(market);
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

  private context() {
    return { now: this.crowd.clock.now, requestId: "simulated", address: "", client: "", userAgent: "" };
  }

  private through(what: string, act: () => Promise<unknown>): void {
    const { life } = this.crowd;
    this.crowd.tally.add("operator", what);
    act().catch((error) => {
      if (life !== this.crowd.life) return;
      if (!(error instanceof ApiError)) this.crowd.failed ??= error;
      else this.crowd.refused(what, error);
    });
  }
}

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
