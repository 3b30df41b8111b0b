/**
 * Who has what: balances, holds, positions, collateral, the house account and daily activity, in integers.
 *
 * The gateway and the journal each own one. Both apply the same committed facts in the same order and so agree on
 * balances, positions and totals; only the gateway's knows holds and live activity, which derive from live orders.
 * The ledger asserts that nothing goes negative; whether a user may do something is asked before (`available`,
 * `availableShares`). It never does I/O and never reads a clock.
 *
 * The house is the counterparty of every fill: buyers pay it, it pays sellers, and at the end of a match it gives or
 * takes the collateral of the sets that were made or dissolved. What stays with it are fees and what minters paid
 * beyond 10000, less rebates, which come out of the fees of their own match. So nothing but an operator's withdrawal
 * lowers it, which is asserted after each match and in each batch.
 */

import { sellerFeeMicro } from "./book/match-fees.ts";
import { MatchType, Role, Side } from "./constants.ts";
import { MAX_MONEY_MICRO, MICRO_PER_SHARE, OUTCOME_ID_BITS } from "./limits.ts";
import {
  equalPart,
  makerRebateMicro,
  mergeFeeMicro,
  mulDivFloor,
  notionalMicro,
  ownRebateMicro,
  utcDay,
} from "./money.ts";
import { rebateOf } from "./ring/records.ts";
import { assert } from "./util/assert.ts";
import { NumberMap } from "./util/number-map.ts";
import { withIndex } from "./util/typed-arrays.ts";

const OUTCOME_SPAN = 2 ** OUTCOME_ID_BITS;

/** The exchange's sums, micro-USDC. deposits - withdrawals = usersTotal + collateral + house, always. */
export interface LedgerTotals {
  deposits: number;
  withdrawals: number;
  usersTotal: number;
  collateral: number;
  house: number;
}

export class Ledger {
  readonly totals: LedgerTotals = { deposits: 0, withdrawals: 0, usersTotal: 0, collateral: 0, house: 0 };
  /** Of the last `fill`, micro-USDC. */
  lastFee = 0;
  lastRebate = 0;

  /** Of the match at hand: what its rebates may still come to, and what the house had before it. */
  private rebatesLeft = 0;
  private houseBeforeMatch = 0;
  /** What the house had at the end of the last batch, less what operators took out since. */
  private houseFloor = 0;

  // By user.
  private balances = new Float64Array(1024);
  private holds = new Float64Array(1024);
  private activityDay = new Int32Array(1024);
  private activityUsed = new Float64Array(1024);
  private activityLive = new Float64Array(1024);
  private firstPosition = new Int32Array(1024);

  // By position, from 1.
  private readonly positionOf = new NumberMap(1024);
  private positionCount = 0;
  private positionUser = new Int32Array(1024);
  private positionOutcome = new Int32Array(1024);
  private positionNext = new Int32Array(1024);
  private quantities = new Float64Array(1024);
  private heldQuantities = new Float64Array(1024);
  private costs = new Float64Array(1024);
  private realized = new Float64Array(1024);

  // By market: outstanding complete sets.
  private sets = new Float64Array(1024);

  // ---------------------------------------------------------------- users

  balance(user: number): number {
    return this.balances[user] ?? 0;
  }

  held(user: number): number {
    return this.holds[user] ?? 0;
  }

  available(user: number): number {
    return this.balance(user) - this.held(user);
  }

  /** Sets a user's balance and today's activity at recovery. */
  restoreAccount(user: number, balance: number, activityDay: number, activityUsed: number): void {
    this.growUsers(user);
    this.balances[user] = balance;
    this.activityDay[user] = activityDay;
    this.activityUsed[user] = activityUsed;
  }

  /** True when a deposit keeps the exchange's sum within its bound. */
  canDeposit(amount: number): boolean {
    return this.totals.deposits + amount <= MAX_MONEY_MICRO;
  }

  deposit(user: number, amount: number): void {
    assert(amount > 0 && this.canDeposit(amount), "a deposit is positive and within the exchange's bound");
    this.growUsers(user);
    this.totals.deposits += amount;
    this.move(user, amount);
  }

  /** Takes out what leaves the exchange. The hold on it, if any, is the caller's to release first. */
  withdraw(user: number, amount: number): void {
    this.totals.withdrawals += amount;
    this.move(user, -amount);
  }

  /** The operator's own money comes to the house, or leaves it where negative; no users' money is behind either. */
  fundHouse(amount: number): void {
    if (amount > 0) this.totals.deposits += amount;
    else {
      this.totals.withdrawals -= amount;
      this.houseFloor += amount;
    }
    this.totals.house += amount;
  }

  /** Sets the sums at recovery. The house of a database from before rebates were bounded may be negative. */
  restoreTotals(totals: LedgerTotals): void {
    Object.assign(this.totals, totals);
    this.houseFloor = totals.house;
  }

  /** Asserts that since the last call nothing but operators' withdrawals lowered the house. */
  endBatch(): void {
    assert(this.totals.house >= this.houseFloor, "only an operator's withdrawal lowers the house");
    this.houseFloor = this.totals.house;
  }

  /** Sets USDC aside for a live order, a pending split or a withdrawal. */
  hold(user: number, amount: number): void {
    this.growUsers(user);
    this.holds[user]! += amount;
    assert(this.holds[user]! <= this.balances[user]!, "a hold stays within the balance");
  }

  release(user: number, amount: number): void {
    this.holds[user]! -= amount;
    assert(this.holds[user]! >= 0, "no hold goes negative");
  }

  /**
   * Daily activity, micro-USDC: notional of the buy fills of `day`, 1 USDC per set split on it, and what live buys and
   * splits in flight may add. Exits (sells, merges) never count. Section "KYC and daily activity" of the contract.
   */
  activity(user: number, day: number): number {
    return this.entriesOfDay(user, day) + (this.activityLive[user] ?? 0);
  }

  /** The part of `activity` that has happened: buy fills and splits. */
  entriesOfDay(user: number, day: number): number {
    return this.activityDay[user] === day ? this.activityUsed[user]! : 0;
  }

  /** The day that `entriesOfDay` counts for this user, as days since the epoch. */
  activityDayOf(user: number): number {
    return this.activityDay[user] ?? 0;
  }

  /** Adds the notional of a live buy or of a split in flight, or takes it back with a negative amount. */
  changeLiveActivity(user: number, amount: number): void {
    this.growUsers(user);
    this.activityLive[user]! += amount;
    assert(this.activityLive[user]! >= 0, "live activity is not negative");
  }

  private countEntry(user: number, amount: number, atMs: number): void {
    const day = utcDay(atMs);
    // One of another engine thread may be of the day before, and come later.
    if (day > this.activityDay[user]!) {
      this.activityDay[user] = day;
      this.activityUsed[user] = 0;
    }
    if (day === this.activityDay[user]) this.activityUsed[user]! += amount;
  }

  private move(user: number, amount: number): void {
    this.balances[user]! += amount;
    this.totals.usersTotal += amount;
    assert(this.balances[user]! >= 0, "no balance goes negative");
  }

  private growUsers(user: number): void {
    if (user < this.balances.length) return;
    this.balances = withIndex(this.balances, user);
    this.holds = withIndex(this.holds, user);
    this.activityDay = withIndex(this.activityDay, user);
    this.activityUsed = withIndex(this.activityUsed, user);
    this.activityLive = withIndex(this.activityLive, user);
    this.firstPosition = withIndex(this.firstPosition, user);
  }

  // ---------------------------------------------------------------- positions

  /** The position's index, or 0. */
  findPosition(user: number, outcome: number): number {
    return this.positionOf.get(user * OUTCOME_SPAN + outcome);
  }

  /** The user's first position, then `nextPosition`; 0 ends. Newest first. */
  firstPositionOf(user: number): number {
    return this.firstPosition[user] ?? 0;
  }

  nextPosition(position: number): number {
    return this.positionNext[position]!;
  }

  userOf(position: number): number {
    return this.positionUser[position]!;
  }

  outcomeOf(position: number): number {
    return this.positionOutcome[position]!;
  }

  /** Shares owned, held ones included. */
  quantity(position: number): number {
    return this.quantities[position]!;
  }

  heldQuantity(position: number): number {
    return this.heldQuantities[position]!;
  }

  /** What the shares owned were bought for, micro-USDC, by average cost, fees and rebates apart. */
  cost(position: number): number {
    return this.costs[position]!;
  }

  /** Proceeds after fees, plus rebates, less the cost of what was sold; may be negative. */
  realizedPnl(position: number): number {
    return this.realized[position]!;
  }

  availableShares(user: number, outcome: number): number {
    const position = this.findPosition(user, outcome);
    return position === 0 ? 0 : this.quantities[position]! - this.heldQuantities[position]!;
  }

  restorePosition(user: number, outcome: number, quantity: number, cost: number, realizedPnl: number): void {
    const position = this.claimPosition(user, outcome);
    this.quantities[position] = quantity;
    this.costs[position] = cost;
    this.realized[position] = realizedPnl;
  }

  holdShares(user: number, outcome: number, quantity: number): void {
    const position = this.claimPosition(user, outcome);
    this.heldQuantities[position]! += quantity;
    assert(this.heldQuantities[position]! <= this.quantities[position]!, "held shares stay within those owned");
  }

  releaseShares(user: number, outcome: number, quantity: number): void {
    const position = this.claimPosition(user, outcome);
    this.heldQuantities[position]! -= quantity;
    assert(this.heldQuantities[position]! >= 0, "no share hold goes negative");
  }

  private claimPosition(user: number, outcome: number): number {
    const key = user * OUTCOME_SPAN + outcome;
    const found = this.positionOf.get(key);
    if (found !== 0) return found;
    const position = ++this.positionCount;
    this.growUsers(user);
    if (position >= this.quantities.length) this.growPositions();
    this.positionOf.set(key, position);
    this.positionUser[position] = user;
    this.positionOutcome[position] = outcome;
    this.positionNext[position] = this.firstPosition[user]!;
    this.firstPosition[user] = position;
    return position;
  }

  private growPositions(): void {
    const next = this.quantities.length;
    this.positionUser = withIndex(this.positionUser, next);
    this.positionOutcome = withIndex(this.positionOutcome, next);
    this.positionNext = withIndex(this.positionNext, next);
    this.quantities = withIndex(this.quantities, next);
    this.heldQuantities = withIndex(this.heldQuantities, next);
    this.costs = withIndex(this.costs, next);
    this.realized = withIndex(this.realized, next);
  }

  private acquire(position: number, quantity: number, cost: number): void {
    this.quantities[position]! += quantity;
    this.costs[position]! += cost;
  }

  /** Gives shares away for `proceeds`; answers nothing, moves the average cost of what left into the realized profit. */
  private dispose(position: number, quantity: number, proceeds: number): void {
    const owned = this.quantities[position]!;
    assert(quantity <= owned, "sales are covered");
    const cost = this.costs[position]!;
    const removed = quantity === owned ? cost : mulDivFloor(cost, quantity, owned);
    this.quantities[position] = owned - quantity;
    this.costs[position] = cost - removed;
    this.realized[position]! += proceeds - removed;
  }

  // ---------------------------------------------------------------- fills and sets

  /**
   * Begins a match: its fills follow, and no others in between.
   * @param fees what its sellers pay together, micro-USDC (match-fees.ts): its rebates come to no more
   */
  beginMatch(fees: number): void {
    this.rebatesLeft = fees;
    this.houseBeforeMatch = this.totals.house;
  }

  /**
   * Settles one order's side of the match that `beginMatch` began. Holds are the caller's to release. Leaves fee and rebate in `lastFee` and
   * `lastRebate`, and answers the position's index.
   *
   * @param endsMatch this is the taker's fill, the last of its match @param rates the user's own (records.ts), or 0
   */
  fill(
    user: number,
    market: number,
    outcome: number,
    side: number,
    priceBps: number,
    quantity: number,
    matchType: number,
    role: number,
    pat: boolean,
    endsMatch: boolean,
    atMs: number,
    rates = 0,
  ): number {
    const position = this.claimPosition(user, outcome);
    const notional = notionalMicro(priceBps, quantity);
    let fee = 0;
    if (side === Side.buy) {
      this.move(user, -notional);
      this.totals.house += notional;
      this.acquire(position, quantity, notional);
      this.countEntry(user, notional, atMs);
    } else {
      fee = sellerFeeMicro(priceBps, quantity, rates);
      this.move(user, notional - fee);
      this.totals.house -= notional - fee;
      this.dispose(position, quantity, notional - fee);
    }
    let rebate = 0;
    if (role === Role.maker && this.rebatesLeft > 0) {
      const full =
        rates === 0 ? makerRebateMicro(priceBps, quantity, pat) : ownRebateMicro(priceBps, quantity, rebateOf(rates));
      rebate = Math.min(full, this.rebatesLeft);
      this.rebatesLeft -= rebate;
      this.move(user, rebate);
      this.totals.house -= rebate;
      this.realized[position]! += rebate;
    }
    if (endsMatch) {
      if (matchType !== MatchType.direct) {
        this.changeSets(market, matchType === MatchType.mint ? quantity : -quantity);
        this.totals.house -= (matchType === MatchType.mint ? quantity : -quantity) * MICRO_PER_SHARE;
      }
      assert(this.totals.house >= this.houseBeforeMatch, "no match lowers the house");
    }
    this.lastFee = fee;
    this.lastRebate = rebate;
    return position;
  }

  /** Turns USDC into complete sets: one share of each outcome `first..first+count-1` for each 1 USDC. */
  split(user: number, market: number, first: number, count: number, quantity: number, atMs: number): void {
    const amount = quantity * MICRO_PER_SHARE;
    this.growUsers(user);
    this.move(user, -amount);
    this.countEntry(user, amount, atMs);
    this.changeSets(market, quantity);
    for (let i = 0; i < count; i++) {
      this.acquire(this.claimPosition(user, first + i), quantity, equalPart(amount, i, count));
    }
  }

  /** Turns complete sets into USDC, less the house's fee of `feeBps` of it: answers that, micro-USDC. */
  merge(user: number, market: number, first: number, count: number, quantity: number, feeBps: number): number {
    const fee = mergeFeeMicro(quantity, feeBps);
    const amount = quantity * MICRO_PER_SHARE - fee;
    this.move(user, amount);
    this.totals.house += fee;
    this.changeSets(market, -quantity);
    for (let i = 0; i < count; i++) {
      this.dispose(this.claimPosition(user, first + i), quantity, equalPart(amount, i, count));
    }
    return fee;
  }

  // ---------------------------------------------------------------- settlement

  /** Positions with shares in one of the outcomes `first..first+count-1`, by user and outcome. A walk through all positions. */
  holders(first: number, count: number): Int32Array {
    const found: number[] = [];
    for (let position = 1; position <= this.positionCount; position++) {
      const outcome = this.positionOutcome[position]!;
      if (outcome >= first && outcome < first + count && this.quantities[position]! > 0) found.push(position);
    }
    const { positionUser, positionOutcome } = this;
    return Int32Array.from(found).sort(
      (a, b) => positionUser[a]! - positionUser[b]! || positionOutcome[a]! - positionOutcome[b]!,
    );
  }

  /** Pays a position of a resolved market out; answers what its user gets, micro-USDC. The market's sets end apart from it. */
  settle(position: number, payoutBps: number): number {
    assert(this.heldQuantities[position] === 0, "no order is left in a market that is settled");
    const quantity = this.quantities[position]!;
    const amount = notionalMicro(payoutBps, quantity);
    this.totals.house -= amount;
    this.move(this.positionUser[position]!, amount);
    this.dispose(position, quantity, amount);
    return amount;
  }

  /** Ends a market's sets, all of whose shares are settled: what they leave is the house's. Answers how many there were. */
  endSets(market: number): number {
    const sets = this.outstandingSets(market);
    this.changeSets(market, -sets);
    this.totals.house += sets * MICRO_PER_SHARE;
    return sets;
  }

  /** Outstanding complete sets of a market; its collateral is 1 USDC each. */
  outstandingSets(market: number): number {
    return this.sets[market] ?? 0;
  }

  restoreSets(market: number, sets: number): void {
    this.growSets(market);
    this.sets[market] = sets;
  }

  private changeSets(market: number, quantity: number): void {
    this.growSets(market);
    this.sets[market]! += quantity;
    this.totals.collateral += quantity * MICRO_PER_SHARE;
    assert(this.sets[market]! >= 0, "no market's sets go negative");
  }

  private growSets(market: number): void {
    this.sets = withIndex(this.sets, market);
  }
}

/** True when the sums agree: nothing was made or lost. */
export function addsUp(totals: LedgerTotals): boolean {
  return totals.deposits - totals.withdrawals === totals.usersTotal + totals.collateral + totals.house;
}

/** True when the sums agree and the house owes nobody: users and markets have all that was paid in for them. */
export function isBalanced(totals: LedgerTotals): boolean {
  return addsUp(totals) && totals.house >= 0;
}
