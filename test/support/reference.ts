/**
 * A reference exchange, written only from the contract (section 2, "Orders", "Matching" and "Money"): plain maps, one order
 * at a time. test/engine/book/reference-book.ts matches; this file owns the money: balances, holds, shares, collateral, the
 * house and daily activity, and the requirements of amends and quotes. The caller assigns order numbers. Never imports the
 * server's code.
 */
import { type Placement, ReferenceBook, type ReferenceOrder } from "../engine/book/reference-book.ts";

/** n = price * 100 micro-USDC a share. */
export const notional = (price: number, quantity: number): number => price * quantity * 100;
/** ceil(n * 150 / 10000): the seller's fee. */
export const feeOn = (n: number, bps = 150): number => Number((BigInt(n) * BigInt(bps) + 9_999n) / 10_000n);
/** floor(n * 5 / 10000), or 10 with a PAT: the largest rebate of the resting side. */
export const rebateOn = (n: number, pat: boolean): number => rebateAt(n, pat ? 10 : 5);
const rebateAt = (n: number, bps: number): number => Number((BigInt(n) * BigInt(bps)) / 10_000n);

/** Fees and rebates of a match's sides, in their order: its fees pay its rebates and bound them. */
export function ratesOf(quantity: number, legs: readonly Leg[]): { readonly fee: number; readonly rebate: number }[] {
  const fees = legs.map(({ side, price, own }) => (side === BUY ? 0 : feeOn(notional(price, quantity), own?.fee)));
  let left = fees.reduce((sum, fee) => sum + fee, 0);
  return legs.map(({ price, rebateFor, own }, i) => {
    const bps = rebateFor === null ? 0 : (own?.rebate ?? (rebateFor ? 10 : 5));
    const rebate = Math.min(left, rebateAt(notional(price, quantity), bps));
    left -= rebate;
    return { fee: fees[i]!, rebate };
  });
}

export const MICRO_PER_SET = 1_000_000;
const BUY = 1;

export interface Rejection {
  readonly refused: number;
}

/** A position: shares and their average cost; `realized` is the proceeds of sales beyond the cost. */
export interface Holding {
  quantity: number;
  cost: number;
  realized: number;
}

export type MatchType = "direct" | "mint" | "merge";

/** One order's side of a match. `rebateFor`: null for the taker, else whether the maker came with a PAT. */
export interface Leg {
  readonly user: number;
  readonly outcome: number;
  readonly side: number;
  readonly price: number;
  readonly rebateFor: boolean | null;
  /** BPS, of a user with terms. */
  readonly own?: { readonly fee: number; readonly rebate: number } | undefined;
}

/** Requirements beyond existing holds: micro-USDC, which also count as daily activity, and shares by outcome. */
interface Needs {
  money: number;
  readonly shares: Map<number, number>;
}

export interface Quote {
  readonly outcome: number;
  readonly side: 1 | 2;
  readonly price: number;
  readonly quantity: number;
}

interface Market {
  readonly outcomes: readonly number[];
  readonly book: ReferenceBook;
  sets: number;
  /** Matches of the book that the ledger has settled. */
  settled: number;
}

export class ReferenceExchange {
  readonly markets = new Map<number, Market>();
  readonly balances = new Map<number, number>();
  deposits = 0;
  withdrawals = 0;
  house = 0;
  private readonly holdings = new Map<string, Holding>();
  /** Micro-USDC that entered positions: filled buys, and splits. */
  private readonly entered = new Map<number, number>();
  /** Orders placed as quotes. */
  private readonly quotes = new Set<number>();

  addMarket(id: number, outcomes: readonly number[]): void {
    this.markets.set(id, { outcomes, book: new ReferenceBook(outcomes), sets: 0, settled: 0 });
  }

  deposit(user: number, amount: number): void {
    this.balances.set(user, this.balance(user) + amount);
    this.deposits += amount;
  }

  withdraw(user: number, amount: number): void {
    this.balances.set(user, this.balance(user) - amount);
    this.withdrawals += amount;
  }

  /** Deposits to the house, or withdrawals from it, micro-USDC. */
  fundHouse(amount: number): void {
    if (amount > 0) this.deposits += amount;
    else this.withdrawals -= amount;
    this.house += amount;
  }

  /** Settles a market at a payout per outcome in BPS; the house gets the rest of the sets' value. */
  settleShares(marketId: number, payouts: readonly number[]): void {
    const market = this.markets.get(marketId)!;
    this.house += market.sets * MICRO_PER_SET;
    market.sets = 0;
    for (const [key, holding] of this.holdings) {
      const [user, outcome] = key.split(":").map(Number) as [number, number];
      const place = market.outcomes.indexOf(outcome);
      if (place < 0) continue;
      const amount = notional(payouts[place]!, holding.quantity);
      this.balances.set(user, this.balance(user) + amount);
      this.house -= amount;
      holding.realized += amount - holding.cost;
      holding.quantity = 0;
      holding.cost = 0;
    }
  }

  balance(user: number): number {
    return this.balances.get(user) ?? 0;
  }

  holding(user: number, outcome: number): Holding {
    const key = `${user}:${outcome}`;
    if (!this.holdings.has(key)) this.holdings.set(key, { quantity: 0, cost: 0, realized: 0 });
    return this.holdings.get(key)!;
  }

  /** USDC held by the user's live buys. */
  held(user: number): number {
    return this.sumLive(user, ({ terms, price, remaining }) => (terms.side === BUY ? notional(price, remaining) : 0));
  }

  /** Shares held by the user's live sells. */
  heldShares(user: number, outcome: number): number {
    return this.sumLive(user, ({ terms, remaining }) =>
      terms.side !== BUY && terms.outcome === outcome ? remaining : 0,
    );
  }

  /** Daily activity: notional of the user's buys, filled and live, and 1 USDC per set split. */
  activity(user: number): number {
    return (this.entered.get(user) ?? 0) + this.held(user);
  }

  get collateral(): number {
    return [...this.markets.values()].reduce((sum, { sets }) => sum + sets * MICRO_PER_SET, 0);
  }

  get usersTotal(): number {
    return [...this.balances.values()].reduce((sum, balance) => sum + balance, 0);
  }

  order(market: number, id: number): ReferenceOrder | undefined {
    return this.markets.get(market)!.book.orders.get(id);
  }

  /** Why the exchange must reject the placement, or null. */
  rejection(terms: Placement, limit: number): Rejection | null {
    if (terms.side === BUY) return this.lackMoney(terms.user, notional(terms.price, terms.quantity), limit);
    const owned = this.holding(terms.user, terms.outcome).quantity;
    const available = owned - this.heldShares(terms.user, terms.outcome);
    return terms.quantity > available ? { refused: 42202 } : null;
  }

  place(marketId: number, terms: Placement): void {
    const market = this.markets.get(marketId)!;
    market.book.place(terms);
    this.settle(marketId, market);
  }

  cancel(marketId: number, id: number): void {
    this.markets.get(marketId)!.book.cancel(id, "user");
  }

  /** Why the exchange must reject an amend for lack of means; null if they suffice, or it needs none. */
  amendRejection(
    user: number,
    marketId: number,
    id: number,
    price: number,
    total: number,
    limit: number,
  ): Rejection | null {
    const order = this.order(marketId, id)!;
    const needs: Needs = { money: 0, shares: new Map() };
    addNeeds(needs, order, { price, quantity: Math.max(0, total - (order.quantity - order.remaining)) });
    return this.lack(user, needs, limit);
  }

  /** True if the book rejects it: a post-only order would cross. */
  amend(marketId: number, id: number, price: number, total: number, at: number): boolean {
    const market = this.markets.get(marketId)!;
    const { rejections } = market.book;
    const before = rejections.length;
    market.book.amend(id, price, total, at, 0);
    this.settle(marketId, market);
    return rejections.length > before;
  }

  /** The user's live orders that match; newest first. */
  liveOrders(user: number, fits: (terms: Placement, marketId: number) => boolean): [marketId: number, id: number][] {
    const found: [number, number][] = [];
    for (const [marketId, { book }] of this.markets) {
      for (const [id, order] of book.orders) {
        if (order.terms.user === user && isLive(order) && fits(order.terms, marketId)) found.push([marketId, id]);
      }
    }
    return found.sort(([, a], [, b]) => b - a);
  }

  isQuote(id: number): boolean {
    return this.quotes.has(id);
  }

  standingQuotes(user: number, marketId: number): ReferenceOrder[] {
    const found = this.liveOrders(user, ({ id }, market) => market === marketId && this.quotes.has(id));
    return found.map(([, id]) => this.order(marketId, id)!);
  }

  /** For each quote the identical resting one, or null. Quotes of one outcome and side differ in price. */
  unchangedQuotes(user: number, marketId: number, quotes: readonly Quote[]): (number | null)[] {
    const standing = this.standingQuotes(user, marketId);
    return quotes.map((quote) => {
      const { outcome, side, price, quantity } = quote;
      const same = standing.find(({ terms, ...now }) => {
        return terms.outcome === outcome && terms.side === side && now.price === price && now.remaining === quantity;
      });
      return same?.terms.id ?? null;
    });
  }

  /** Why the exchange must reject the set as a whole, or null. */
  quotesRejection(user: number, marketId: number, quotes: readonly Quote[], limit: number): Rejection | null {
    const unchanged = this.unchangedQuotes(user, marketId, quotes);
    const added = quotes.filter((_, i) => unchanged[i] === null);
    const together: Needs = { money: 0, shares: new Map() };
    for (const quote of added) addNeeds(together, null, quote, quote);
    if (this.lack(user, together, limit) === null) return null;
    // Old and new together exceed the means: pairs them by price, best first, each as an amend.
    const old = this.standingQuotes(user, marketId).filter(({ terms }) => !unchanged.includes(terms.id));
    const replaced: Needs = { money: 0, shares: new Map() };
    const better = (side: number, a: number, b: number): number => (side === BUY ? b - a : a - b);
    for (const quote of added.toSorted((a, b) => better(a.side, a.price, b.price))) {
      const { outcome, side } = quote;
      const pairs = old.filter(({ terms }) => terms.outcome === outcome && terms.side === side);
      const [pair] = pairs.sort((a, b) => better(side, a.price, b.price));
      addNeeds(replaced, pair ?? null, quote, quote);
      if (pair !== undefined) old.splice(old.indexOf(pair), 1);
    }
    return this.lack(user, replaced, limit);
  }

  /** Makes `terms` the user's quotes in the market; identical resting ones stay. */
  replaceQuotes(user: number, marketId: number, terms: readonly Placement[]): void {
    const ids = terms.map(({ id }) => id);
    const old = this.standingQuotes(user, marketId).filter((order) => !ids.includes(order.terms.id));
    for (const order of old) this.cancel(marketId, order.terms.id);
    for (const placement of terms) {
      if (this.quotes.has(placement.id)) continue;
      this.quotes.add(placement.id);
      this.place(marketId, placement);
    }
  }

  split(user: number, marketId: number, quantity: number, limit = Number.POSITIVE_INFINITY): Rejection | null {
    const market = this.markets.get(marketId)!;
    const rejection = this.lackMoney(user, quantity * MICRO_PER_SET, limit);
    if (rejection !== null) return rejection;
    this.enter(user, quantity * MICRO_PER_SET);
    this.balances.set(user, this.balance(user) - quantity * MICRO_PER_SET);
    market.sets += quantity;
    for (const [i, outcome] of market.outcomes.entries()) {
      this.acquire(user, outcome, quantity, this.costShare(quantity, market, i));
    }
    return null;
  }

  /** @param feeBps of 1 USDC a set */
  merge(user: number, marketId: number, quantity: number, feeBps = 0): Rejection | null {
    const market = this.markets.get(marketId)!;
    for (const outcome of market.outcomes) {
      const available = this.holding(user, outcome).quantity - this.heldShares(user, outcome);
      if (quantity > available) return { refused: 42202 };
    }
    const fee = quantity * feeBps * 100;
    this.balances.set(user, this.balance(user) + quantity * MICRO_PER_SET - fee);
    this.house += fee;
    market.sets -= quantity;
    for (const [i, outcome] of market.outcomes.entries()) {
      this.dispose(user, outcome, quantity, this.costShare(quantity, market, i, fee));
    }
    return null;
  }

  /** Best first: [price, shares]. */
  levels(marketId: number, outcome: number, side: 1 | 2): [number, number][] {
    const levels: [number, number][] = [];
    for (const { price, remaining } of this.markets.get(marketId)!.book.resting(outcome, side)) {
      const last = levels.at(-1);
      if (last?.[0] === price) last[1] += remaining;
      else levels.push([price, remaining]);
    }
    return levels;
  }

  /** In the order of the exchange's checks. */
  private lack(user: number, { money, shares }: Needs, limit: number): Rejection | null {
    const rejection = this.lackMoney(user, money, limit);
    if (rejection !== null) return rejection;
    for (const [outcome, needed] of shares) {
      const available = this.holding(user, outcome).quantity - this.heldShares(user, outcome);
      if (needed > available) return { refused: 42202 };
    }
    return null;
  }

  private lackMoney(user: number, money: number, limit: number): Rejection | null {
    if (money > 0 && this.activity(user) + money > limit) return { refused: 42901 };
    return money > this.balance(user) - this.held(user) ? { refused: 42201 } : null;
  }

  private enter(user: number, amount: number): void {
    this.entered.set(user, (this.entered.get(user) ?? 0) + amount);
  }

  private fill(
    user: number,
    outcome: number,
    side: number,
    price: number,
    quantity: number,
    { fee, rebate }: { readonly fee: number; readonly rebate: number },
  ): void {
    const n = notional(price, quantity);
    const change = (side === BUY ? -n : n - fee) + rebate;
    this.balances.set(user, this.balance(user) + change);
    this.house -= change;
    if (side === BUY) {
      this.acquire(user, outcome, quantity, n);
      this.enter(user, n);
    } else this.dispose(user, outcome, quantity, n - fee);
    this.holding(user, outcome).realized += rebate;
  }

  /** One match: its makers' sides and its taker's, then the sets that it minted or merged. */
  match(marketId: number, type: MatchType, quantity: number, legs: readonly Leg[]): void {
    const rates = ratesOf(quantity, legs);
    for (const [i, { user, outcome, side, price }] of legs.entries()) {
      this.fill(user, outcome, side, price, quantity, rates[i]!);
    }
    // A mint's buyers pay for the sets; a merge's sets pay its sellers.
    const sets = type === "mint" ? quantity : type === "merge" ? -quantity : 0;
    this.markets.get(marketId)!.sets += sets;
    this.house -= sets * MICRO_PER_SET;
  }

  private settle(marketId: number, market: Market): void {
    const { book } = market;
    for (const { type, quantity, taker, price, makers } of book.matches.slice(market.settled)) {
      const legOf = (id: number, paid: number, isMaker: boolean): Leg => {
        const { user, outcome, side, pat } = book.orders.get(id)!.terms;
        return { user, outcome, side, price: paid, rebateFor: isMaker ? pat : null };
      };
      const legs = makers.map((maker) => legOf(maker.id, maker.price, true));
      this.match(marketId, type, quantity, [...legs, legOf(taker, price, false)]);
    }
    market.settled = book.matches.length;
  }

  /** One outcome's share of the sets' cost: equal, the remainder to the first outcomes. */
  private costShare(quantity: number, market: Market, index: number, fee = 0): number {
    const count = market.outcomes.length;
    const partOf = (amount: number): number => Math.floor(amount / count) + (index < amount % count ? 1 : 0);
    return quantity * partOf(MICRO_PER_SET) - partOf(fee);
  }

  private acquire(user: number, outcome: number, quantity: number, cost: number): void {
    const holding = this.holding(user, outcome);
    holding.quantity += quantity;
    holding.cost += cost;
  }

  private dispose(user: number, outcome: number, quantity: number, proceeds: number): void {
    const holding = this.holding(user, outcome);
    const removed = Number((BigInt(holding.cost) * BigInt(quantity)) / BigInt(holding.quantity));
    holding.quantity -= quantity;
    holding.cost -= removed;
    holding.realized += proceeds - removed;
    if (holding.quantity < 0) throw new Error("the reference sold more than there was");
  }

  private sumLive(user: number, part: (order: ReferenceOrder) => number): number {
    let sum = 0;
    for (const { book } of this.markets.values()) {
      for (const order of book.orders.values()) {
        if (order.terms.user !== user || !isLive(order)) continue;
        sum += part(order);
      }
    }
    return sum;
  }
}

export const isLive = ({ status }: ReferenceOrder): boolean => status === "open" || status === "partially_filled";

/**
 * The additional means for an order that becomes `next`, in the worst order of fills in flight: for a higher price the
 * larger of both holds, for a lower one the old hold and the added shares. Without an old order, the whole hold.
 */
function addNeeds(
  needs: Needs,
  old: ReferenceOrder | null,
  next: { readonly price: number; readonly quantity: number },
  quote: { readonly outcome: number; readonly side: number } = old!.terms,
): void {
  const [before, shares] = old === null ? [0, 0] : [notional(old.price, old.remaining), old.remaining];
  const isUp = old === null || next.price >= old.price;
  const after = isUp
    ? notional(next.price, next.quantity)
    : before + notional(next.price, Math.max(0, next.quantity - shares));
  const money = Math.max(before, after) - before;
  if (quote.side === BUY) needs.money += money;
  else {
    const added = Math.max(shares, next.quantity) - shares;
    needs.shares.set(quote.outcome, (needs.shares.get(quote.outcome) ?? 0) + added);
  }
}
