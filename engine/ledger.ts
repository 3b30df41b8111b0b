/**
 * The ledger: balances, holds, positions, collateral, the house account and daily activity, in integers.
 *
 * The gateway and the projector each own one. Both apply the same committed events in the same order, and so agree on
 * balances, positions and totals. Only the gateway's ledger knows holds and live activity, which derive from live orders.
 * The ledger asserts that nothing goes negative; callers check beforehand what a user may do (`available`,
 * `availableShares`). It never does I/O and never reads a clock.
 *
 * The house is the counterparty of every fill: buyers pay it, it pays sellers, and at the end of a match it pays or
 * receives the collateral of the sets that the match minted or merged. It keeps fees and what minters paid beyond 10000,
 * less rebates, which come out of the fees of their own match. So only an operator's withdrawal or reversal lowers it,
 * which is asserted after each match and in each batch.
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
import type { EngineEvent } from "./ring/engine-event.ts";
import { rebateOf } from "./ring/records.ts";
import { assert } from "./util/assert.ts";
import { NumberMap } from "./util/number-map.ts";
import { withIndex } from "./util/typed-arrays.ts";

const OUTCOME_SPAN = 2 ** OUTCOME_ID_BITS;

/** The exchange's totals, micro-USDC. deposits - withdrawals = usersTotal + collateral + house, always. */
export interface LedgerTotals {
  deposits: number;
  withdrawals: number;
  usersTotal: number;
  collateral: number;
  house: number;
}

/** A market's outcomes `first..first+count-1`. */
export interface SetsMarket {
  readonly id: number;
  readonly first: number;
  readonly count: number;
}

/** Sets that are split or merged. */
export interface SetsChange {
  readonly user: number;
  readonly quantity: number;
  /** Each set has its parts of 1 USDC, so that what is split and merged leaves no profit; false in logs of earlier versions. */
  readonly isSetBySet: boolean;
}

/** The cost or the proceeds of an outcome's shares, micro-USDC. @param index of the outcome @param fee of all sets */
function partOfSets({ quantity, isSetBySet }: SetsChange, index: number, count: number, fee: number): number {
  if (!isSetBySet) return equalPart(quantity * MICRO_PER_SHARE - fee, index, count);
  return quantity * equalPart(MICRO_PER_SHARE, index, count) - equalPart(fee, index, count);
}

/** A user's account on record: micro-USDC, and the UTC day that `activityUsed` is of. */
export interface AccountState {
  readonly balance: number;
  readonly activityDay: number;
  readonly activityUsed: number;
  readonly fees: number;
  readonly rebates: number;
}

export class Ledger {
  readonly totals: LedgerTotals = { deposits: 0, withdrawals: 0, usersTotal: 0, collateral: 0, house: 0 };
  /** The fee and rebate of the last `fill`, micro-USDC. */
  lastFee = 0;
  lastRebate = 0;

  /** The current match: the remaining bound of its rebates, and the house before it. */
  private rebatesLeft = 0;
  private houseBeforeMatch = 0;
  /** The house at the end of the last batch, less operators' withdrawals and reversals since. */
  private houseFloor = 0;

  // By user.
  private balances = new Float64Array(1024);
  private holds = new Float64Array(1024);
  private activityDay = new Int32Array(1024);
  private activityUsed = new Float64Array(1024);
  private activityLive = new Float64Array(1024);
  private fees = new Float64Array(1024);
  private rebates = new Float64Array(1024);
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

  /** What the user has paid in fees in all, micro-USDC. */
  feesPaid(user: number): number {
    return this.fees[user] ?? 0;
  }

  /** What the user has earned in rebates in all, micro-USDC. */
  rebatesEarned(user: number): number {
    return this.rebates[user] ?? 0;
  }

  /** A new user, without money. */
  openAccount(user: number): void {
    this.restoreAccount(user, { balance: 0, activityDay: 0, activityUsed: 0, fees: 0, rebates: 0 });
  }

  /** At recovery. */
  restoreAccount(user: number, { balance, activityDay, activityUsed, fees, rebates }: AccountState): void {
    this.growUsers(user);
    this.balances[user] = balance;
    this.activityDay[user] = activityDay;
    this.activityUsed[user] = activityUsed;
    this.fees[user] = fees;
    this.rebates[user] = rebates;
  }

  /** True if a deposit keeps the exchange's deposits within their bound. */
  canDeposit(amount: number): boolean {
    return this.totals.deposits + amount <= MAX_MONEY_MICRO;
  }

  deposit(user: number, amount: number): void {
    assert(amount > 0 && this.canDeposit(amount), "a deposit is positive and within the exchange's bound");
    this.growUsers(user);
    this.totals.deposits += amount;
    this.move(user, amount);
  }

  /** Takes back credited money, as if it had never been deposited. The caller releases its hold first, if there is one. */
  reverseDeposit(user: number, amount: number): void {
    this.totals.deposits -= amount;
    this.move(user, -amount);
  }

  /** Debits money that leaves the exchange. The caller releases its hold first, if there is one. */
  withdraw(user: number, amount: number): void {
    this.totals.withdrawals += amount;
    this.move(user, -amount);
  }

  /** Moves an operator's own money into the house, or out of it if negative. Users' money is never involved. */
  fundHouse(amount: number): void {
    if (amount > 0) this.totals.deposits += amount;
    else {
      this.totals.withdrawals -= amount;
      this.houseFloor += amount;
    }
    this.totals.house += amount;
  }

  /** Takes back what `fundHouse` moved into the house, as if it had never been deposited. */
  unfundHouse(amount: number): void {
    this.totals.deposits -= amount;
    this.houseFloor -= amount;
    this.totals.house -= amount;
  }

  /** Sets the totals at recovery. The house may be negative in a database from before rebates were bounded. */
  restoreTotals(totals: LedgerTotals): void {
    Object.assign(this.totals, totals);
    this.houseFloor = totals.house;
  }

  /** Asserts that only operators lowered the house since the last call. */
  endBatch(): void {
    assert(this.totals.house >= this.houseFloor, "only an operator's withdrawal or reversal lowers the house");
    this.houseFloor = this.totals.house;
  }

  /** Holds USDC for a live order, a split in flight or a pending withdrawal. */
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
   * Daily activity, micro-USDC: the notional of buy fills on `day`, 1 USDC per set split on it, and what live buys and
   * splits in flight can add. Exits (sells, merges) never count. Source: contract, section "KYC and daily activity".
   */
  activity(user: number, day: number): number {
    return this.entriesOfDay(user, day) + (this.activityLive[user] ?? 0);
  }

  /**
   * The day whose activity counts now. Entries count by their stamps, so where the machine's clock was set back, the day of
   * the user's last one goes on. @param now the machine's clock, ms
   */
  countedDay(user: number, now: number): number {
    return Math.max(utcDay(now), this.activityDayOf(user));
  }

  /** `activity` of the counted day. @param now the machine's clock, ms */
  activityNow(user: number, now: number): number {
    return this.activity(user, this.countedDay(user, now));
  }

  /** The executed part of `activity`: buy fills and splits. */
  entriesOfDay(user: number, day: number): number {
    return this.activityDay[user] === day ? this.activityUsed[user]! : 0;
  }

  /** The day that `entriesOfDay` counts for this user, in days since the epoch. */
  activityDayOf(user: number): number {
    return this.activityDay[user] ?? 0;
  }

  /** Adds the notional of a live buy or of a split in flight; subtracts it with a negative amount. */
  changeLiveActivity(user: number, amount: number): void {
    this.growUsers(user);
    this.activityLive[user]! += amount;
    assert(this.activityLive[user]! >= 0, "live activity is not negative");
  }

  private countEntry(user: number, amount: number, atMs: number): void {
    const day = utcDay(atMs);
    // An event of another engine thread may belong to the previous day and arrive later.
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
    this.fees = withIndex(this.fees, user);
    this.rebates = withIndex(this.rebates, user);
    this.firstPosition = withIndex(this.firstPosition, user);
  }

  // ---------------------------------------------------------------- positions

  /** The position's index; 0 if there is none. */
  findPosition(user: number, outcome: number): number {
    return this.positionOf.get(user * OUTCOME_SPAN + outcome);
  }

  /** The user's newest position, to iterate with `nextPosition`; 0 if there is none. */
  firstPositionOf(user: number): number {
    return this.firstPosition[user] ?? 0;
  }

  /** The user's next older position; 0 at the end. */
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

  /** The average cost of the shares owned, in total, micro-USDC, without fees and rebates. */
  cost(position: number): number {
    return this.costs[position]!;
  }

  /** Proceeds after fees, plus rebates, less the cost of the shares sold; may be negative. */
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

  /** Removes shares for `proceeds`, and moves the difference to their average cost into the realized profit. */
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
   * Begins a match: all its fills follow, without another's in between.
   * @param fees the sum of its sellers' fees, micro-USDC (match-fees.ts), which bounds its rebates
   */
  beginMatch(fees: number): void {
    this.rebatesLeft = fees;
    this.houseBeforeMatch = this.totals.house;
  }

  /**
   * Settles one order's side of the match that `beginMatch` began; the caller releases holds. Sets `lastFee` and
   * `lastRebate`, and returns the position's index.
   * @param fill an orderFilled event
   */
  fill(fill: EngineEvent, market: number): number {
    const { user, price, quantity, role, rates } = fill;
    const position = this.claimPosition(user, fill.outcome);
    const notional = notionalMicro(price, quantity);
    let fee = 0;
    if (fill.side === Side.buy) {
      this.move(user, -notional);
      this.totals.house += notional;
      this.acquire(position, quantity, notional);
      this.countEntry(user, notional, fill.time);
    } else {
      fee = sellerFeeMicro(price, quantity, rates);
      this.fees[user]! += fee;
      this.move(user, notional - fee);
      this.totals.house -= notional - fee;
      this.dispose(position, quantity, notional - fee);
    }
    let rebate = 0;
    if (role === Role.maker && this.rebatesLeft > 0) {
      const full =
        rates === 0 ? makerRebateMicro(price, quantity, fill.isPat) : ownRebateMicro(price, quantity, rebateOf(rates));
      rebate = Math.min(full, this.rebatesLeft);
      this.rebatesLeft -= rebate;
      this.move(user, rebate);
      this.totals.house -= rebate;
      this.realized[position]! += rebate;
      this.rebates[user]! += rebate;
    }
    // The taker's fill is the last of its match.
    if (fill.endsMatch) {
      const { matchType } = fill;
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

  /** Converts USDC into complete sets: one share of each outcome `first..first+count-1` per 1 USDC. */
  split(market: SetsMarket, change: SetsChange, atMs: number): void {
    const { user, quantity } = change;
    const amount = quantity * MICRO_PER_SHARE;
    this.growUsers(user);
    this.move(user, -amount);
    this.countEntry(user, amount, atMs);
    this.changeSets(market.id, quantity);
    for (let i = 0; i < market.count; i++) {
      this.acquire(this.claimPosition(user, market.first + i), quantity, partOfSets(change, i, market.count, 0));
    }
  }

  /** Converts complete sets into USDC, less the house's fee of `feeBps`; returns the fee, micro-USDC. */
  merge(market: SetsMarket, change: SetsChange, feeBps: number): number {
    const { user, quantity } = change;
    const fee = mergeFeeMicro(quantity, feeBps);
    const amount = quantity * MICRO_PER_SHARE - fee;
    this.move(user, amount);
    this.totals.house += fee;
    this.fees[user]! += fee;
    this.changeSets(market.id, -quantity);
    for (let i = 0; i < market.count; i++) {
      this.dispose(this.claimPosition(user, market.first + i), quantity, partOfSets(change, i, market.count, fee));
    }
    return fee;
  }

  // ---------------------------------------------------------------- settlement

  /** Positions with shares of the outcomes `first..first+count-1`, by user and outcome. Scans all positions. */
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

  /** Pays out a position of a resolved market; returns the amount, micro-USDC. `endSets` ends the market's sets. */
  settle(position: number, payoutBps: number): number {
    assert(this.heldQuantities[position] === 0, "a settled market has no live order");
    const quantity = this.quantities[position]!;
    const amount = notionalMicro(payoutBps, quantity);
    this.totals.house -= amount;
    this.move(this.positionUser[position]!, amount);
    this.dispose(position, quantity, amount);
    return amount;
  }

  /** Ends the sets of a market whose shares are all settled; the house keeps the remainder. Returns the number of sets. */
  endSets(market: number): number {
    const sets = this.outstandingSets(market);
    this.changeSets(market, -sets);
    this.totals.house += sets * MICRO_PER_SHARE;
    return sets;
  }

  /**
   * Begins a settlement whose holders are paid one by one (`payHolder`): the totals change at once and never show it half
   * done. A market has as many shares of each outcome as it has sets, so users get exactly its collateral.
   * Returns that amount, micro-USDC.
   */
  beginSettlement(market: number): number {
    const sets = this.outstandingSets(market);
    this.changeSets(market, -sets);
    this.totals.usersTotal += sets * MICRO_PER_SHARE;
    return sets * MICRO_PER_SHARE;
  }

  /** Pays out a position of a settlement that has begun; returns the amount, micro-USDC. */
  payHolder(position: number, payoutBps: number): number {
    assert(this.heldQuantities[position] === 0, "a settled market has no live order");
    const quantity = this.quantities[position]!;
    const amount = notionalMicro(payoutBps, quantity);
    this.balances[this.positionUser[position]!]! += amount;
    this.dispose(position, quantity, amount);
    return amount;
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

/** True if the totals add up: no money was created or lost. */
export function addsUp(totals: LedgerTotals): boolean {
  return totals.deposits - totals.withdrawals === totals.usersTotal + totals.collateral + totals.house;
}

/** True if the totals add up and the house isn't negative: the money of users and markets is complete. */
export function isBalanced(totals: LedgerTotals): boolean {
  return addsUp(totals) && totals.house >= 0;
}
