/**
 * The ledger beside the reference's plain maps: random matches of each kind, splits and merges, with and without PAT
 * and terms, over several days; after each step the sums balance, and no match has lowered the house. The arithmetic beside BigInt up to its bounds.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MatchType, Role, Side } from "../../engine/constants.ts";
import { isBalanced, Ledger } from "../../engine/ledger.ts";
import {
  MAX_MERGE_FEE_BPS,
  MAX_MONEY_MICRO,
  MAX_OUTCOMES,
  MAX_OWN_RATE_BPS,
  MAX_PRICE_BPS,
  MAX_QUANTITY,
  MICRO_PER_SHARE,
} from "../../engine/limits.ts";
import {
  MS_PER_DAY,
  makerRebateMicro,
  mulDivFloor,
  notionalMicro,
  ownFeeMicro,
  ownRebateMicro,
  tradingFeeMicro,
  utcDay,
} from "../../engine/money.ts";
import * as R from "../../engine/ring/records.ts";
import { Random } from "../support/random.ts";
import { feeOn, type Leg, notional, ReferenceExchange, ratesOf, rebateOn } from "../support/reference.ts";
import { fillEvent } from "./fill-event.ts";

const price = fc.integer({ min: 1, max: MAX_PRICE_BPS });
const quantity = fc.oneof(
  fc.integer({ min: 1, max: 1_000 }),
  fc.integer({ min: 1, max: MAX_QUANTITY }),
  fc.constant(MAX_QUANTITY),
);
const amount = fc.oneof(
  fc.nat(),
  fc.integer({ min: 0, max: MAX_MONEY_MICRO }),
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
);

describe("arithmetic", () => {
  test("the ledger's notional, fee and rebate are exact up to the largest order", () => {
    fc.assert(
      fc.property(price, quantity, fc.boolean(), (p, q, pat) => {
        const n = BigInt(p) * BigInt(q) * 100n;
        expect(BigInt(notionalMicro(p, q))).toBe(n);
        expect(BigInt(tradingFeeMicro(p, q))).toBe((n * 150n + 9_999n) / 10_000n);
        expect(BigInt(makerRebateMicro(p, q, pat))).toBe((n * (pat ? 10n : 5n)) / 10_000n);
        expect([feeOn(Number(n)), rebateOn(Number(n), pat)]).toEqual([
          tradingFeeMicro(p, q),
          makerRebateMicro(p, q, pat),
        ]);
      }),
    );
  });

  test("a user's own fee and rebate are exact up to the largest order, and come through a record as they are", () => {
    const rate = fc.integer({ min: 0, max: MAX_OWN_RATE_BPS });
    fc.assert(
      fc.property(price, quantity, rate, rate, fc.nat(MAX_OUTCOMES - 1), (p, q, fee, rebate, leg) => {
        const n = BigInt(p) * BigInt(q) * 100n;
        expect(BigInt(ownFeeMicro(p, q, fee))).toBe((n * BigInt(fee) + 9_999n) / 10_000n);
        expect(BigInt(ownRebateMicro(p, q, rebate))).toBe((n * BigInt(rebate)) / 10_000n);
        const word = new Int32Array([R.withRates(leg, R.packRates(fee, rebate))])[0]!;
        const rates = R.ratesOf(word);
        expect([R.legOf(word), R.feeOf(rates), R.rebateOf(rates)]).toEqual([leg, fee, rebate]);
        expect(rates).not.toBe(0);
        expect([R.legOf(leg), R.ratesOf(leg)]).toEqual([leg, 0]);
      }),
    );
  });

  test("mulDivFloor is exact where the product passes 2^53", () => {
    fc.assert(
      fc.property(amount, amount, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (a, b, c) => {
        const exact = (BigInt(a) * BigInt(b)) / BigInt(c);
        if (exact <= BigInt(Number.MAX_SAFE_INTEGER)) expect(BigInt(mulDivFloor(a, b, c))).toBe(exact);
      }),
    );
    expect(mulDivFloor(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)).toBe(
      Number.MAX_SAFE_INTEGER,
    );
  });

  test("days are UTC days", () => {
    for (const iso of ["1970-01-01T00:00:00.000Z", "2024-02-29T23:59:59.999Z", "2026-11-20T12:00:00.000Z"]) {
      expect(utcDay(Date.parse(iso))).toBe(Date.parse(iso.slice(0, 10)) / MS_PER_DAY);
    }
  });
});

const MARKETS: ReadonlyMap<number, readonly number[]> = new Map([
  [1, [1, 2]],
  [2, [3, 4, 5]],
  [3, [6, 7, 8, 9, 10]],
]);
const USERS = [1, 2, 3];
const MATCH_TYPES = { direct: MatchType.direct, mint: MatchType.mint, merge: MatchType.merge };

/** The ledger and the reference, taken through the same steps. */
class Pair {
  readonly ledger = new Ledger();
  readonly reference = new ReferenceExchange();
  day = 20_000;
  private activityDay = new Map<number, { day: number; used: number }>();

  constructor(deposits: readonly number[]) {
    for (const [id, outcomes] of MARKETS) this.reference.addMarket(id, outcomes);
    USERS.forEach((user, i) => {
      this.ledger.deposit(user, deposits[i]!);
      this.reference.deposit(user, deposits[i]!);
    });
  }

  /** Settles a match if everyone can pay for their side of it. */
  match(marketId: number, type: keyof typeof MATCH_TYPES, most: number, legs: readonly Leg[]): void {
    const { ledger, reference } = this;
    const affordable = legs.map(({ user, outcome, side, price: p }) => {
      if (side === Side.sell) return reference.holding(user, outcome).quantity;
      return Math.floor(reference.balance(user) / legs.length / notional(p, 1));
    });
    const shares = Math.min(most, ...affordable.map((count) => Math.floor(count / USERS.length) || count));
    if (shares < 1 || !this.ownsAll(legs, shares)) return;
    const rates = ratesOf(shares, legs);
    const before = ledger.totals.house;
    ledger.beginMatch(rates.reduce((sum, { fee }) => sum + fee, 0));
    legs.forEach(({ user, outcome, side, price: p, rebateFor, own }, i) => {
      const last = i === legs.length - 1;
      const role = last ? Role.taker : Role.maker;
      const at = this.day * MS_PER_DAY + i;
      const packed = own === undefined ? 0 : R.packRates(own.fee, own.rebate);
      const terms = { user, outcome, side, price: p, quantity: shares, matchType: MATCH_TYPES[type] };
      ledger.fill(fillEvent({ ...terms, role, pat: rebateFor === true, endsMatch: last, at, rates: packed }), marketId);
      const n = notional(p, shares);
      if (side === Side.buy) this.enter(user, n);
      expect({ fee: ledger.lastFee, rebate: ledger.lastRebate }).toEqual(rates[i]);
    });
    reference.match(marketId, type, shares, legs);
    expect(ledger.totals.house).toBeGreaterThanOrEqual(before);
  }

  private enter(user: number, amount: number): void {
    const today = this.activityDay.get(user);
    const used = today?.day === this.day ? today.used : 0;
    this.activityDay.set(user, { day: this.day, used: used + amount });
  }

  /** True when each seller has the shares for all of its legs together. */
  private ownsAll(legs: readonly Leg[], shares: number): boolean {
    return legs.every(({ user, outcome, side }) => {
      if (side !== Side.sell) return true;
      const sold = legs.filter((leg) => leg.user === user && leg.outcome === outcome && leg.side === Side.sell).length;
      return sold * shares <= this.reference.holding(user, outcome).quantity;
    });
  }

  changeSets(user: number, marketId: number, most: number, split: boolean, feeBps: number): void {
    const outcomes = MARKETS.get(marketId)!;
    const market = { id: marketId, first: outcomes[0]!, count: outcomes.length };
    const { ledger, reference } = this;
    const owned = outcomes.map((outcome) => reference.holding(user, outcome).quantity);
    const count = split
      ? Math.min(most, Math.floor(reference.balance(user) / MICRO_PER_SHARE))
      : Math.min(most, ...owned);
    if (count < 1) return;
    if (split) {
      ledger.split(market, { user, quantity: count, isSetBySet: true }, this.day * MS_PER_DAY);
      this.enter(user, count * MICRO_PER_SHARE);
      expect(reference.split(user, marketId, count)).toBeNull();
      return;
    }
    expect(ledger.merge(market, { user, quantity: count, isSetBySet: true }, feeBps)).toBe(count * feeBps * 100);
    expect(reference.merge(user, marketId, count, feeBps)).toBeNull();
  }

  withdraw(user: number, most: number): void {
    const amount = Math.min(most, this.reference.balance(user));
    this.ledger.withdraw(user, amount);
    this.reference.withdraw(user, amount);
  }

  fundHouse(amount: number): void {
    const { ledger, reference } = this;
    if (amount === 0 || (amount > 0 ? !ledger.canDeposit(amount) : reference.house < -amount)) return;
    ledger.fundHouse(amount);
    reference.fundHouse(amount);
  }

  settle(marketId: number, payouts: readonly number[]): void {
    const outcomes = MARKETS.get(marketId)!;
    const { ledger, reference } = this;
    const holders = ledger.holders(outcomes[0]!, outcomes.length);
    const owned = outcomes.flatMap((outcome) => USERS.filter((who) => reference.holding(who, outcome).quantity > 0));
    expect(holders.length).toBe(owned.length);
    const keys = [...holders].map((at) => ledger.userOf(at) * 100 + ledger.outcomeOf(at));
    expect(keys).toEqual(keys.toSorted((a, b) => a - b));
    for (const at of holders) {
      const due = notional(payouts[outcomes.indexOf(ledger.outcomeOf(at))]!, ledger.quantity(at));
      expect(ledger.settle(at, payouts[outcomes.indexOf(ledger.outcomeOf(at))]!)).toBe(due);
    }
    const { sets } = reference.markets.get(marketId)!;
    expect(ledger.endSets(marketId)).toBe(sets);
    reference.settleShares(marketId, payouts);
  }

  compare(): void {
    const { ledger, reference } = this;
    expect(isBalanced(ledger.totals)).toBe(true);
    ledger.endBatch();
    const { deposits, withdrawals, usersTotal, collateral, house } = reference;
    expect(ledger.totals).toEqual({ deposits, withdrawals, usersTotal, collateral, house });
    for (const [id, outcomes] of MARKETS) {
      expect(ledger.outstandingSets(id)).toBe(reference.markets.get(id)!.sets);
      for (const outcome of outcomes) {
        let shares = 0;
        for (const user of USERS) {
          const { quantity: count, cost, realized } = reference.holding(user, outcome);
          const at = ledger.findPosition(user, outcome);
          expect([ledger.quantity(at), ledger.cost(at), ledger.realizedPnl(at)]).toEqual([count, cost, realized]);
          shares += count;
        }
        expect(shares).toBe(reference.markets.get(id)!.sets);
      }
    }
    for (const user of USERS) {
      expect([ledger.balance(user), ledger.held(user)]).toEqual([reference.balance(user), 0]);
      const today = this.activityDay.get(user);
      expect(ledger.activity(user, this.day)).toBe(today?.day === this.day ? today.used : 0);
      expect(ledger.activity(user, this.day + 1)).toBe(0);
    }
  }
}

type Step = (pair: Pair) => void;
const user = fc.constantFrom(...USERS);
const marketId = fc.constantFrom(...MARKETS.keys());
const most = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1_000_000 }));
const pats = fc.array(fc.boolean(), { minLength: 5, maxLength: 5 });
const users = fc.array(user, { minLength: 5, maxLength: 5 });
/** Terms of their own: rebates above fees too, as operators could set them once. */
const terms = fc.array(
  fc.option(
    fc.record({ fee: fc.constantFrom(0, 1, 3, 150, MAX_OWN_RATE_BPS), rebate: fc.constantFrom(0, 4, 10, 150) }),
    { nil: undefined },
  ),
  { minLength: 5, maxLength: 5 },
);

const directStep = fc
  .record({ marketId, at: fc.nat(4), users, terms, price, most, pat: fc.boolean(), buys: fc.boolean() })
  .map(({ marketId: id, at, users: [maker, taker], terms: own, price: p, most: count, pat, buys }): Step => {
    const outcomes = MARKETS.get(id)!;
    const outcome = outcomes[at % outcomes.length]!;
    const sides = buys ? [Side.sell, Side.buy] : [Side.buy, Side.sell];
    return (pair) =>
      pair.match(id, "direct", count, [
        { user: maker!, outcome, side: sides[0]!, price: p, rebateFor: pat, own: own[0] },
        { user: taker!, outcome, side: sides[1]!, price: p, rebateFor: null, own: own[1] },
      ]);
  });

const setStep = fc
  .record({
    ...{ marketId, users, terms, pats, most },
    prices: fc.array(price, { minLength: 5, maxLength: 5 }),
    mint: fc.boolean(),
  })
  .map(({ marketId: id, users: owners, terms: own, pats: with_, most: count, prices, mint }): Step => {
    const outcomes = MARKETS.get(id)!;
    const makers = prices.slice(0, outcomes.length - 1);
    const sum = makers.reduce((total, p) => total + p, 0);
    // A merge's resting prices sum to less than 10000; a mint's may exceed it, then the taker pays 1.
    const scaled = mint || sum < 10_000 ? makers : makers.map((p) => Math.max(1, Math.floor((p * 9_000) / sum)));
    const rest = 10_000 - scaled.reduce((total, p) => total + p, 0);
    const legs = [...scaled, Math.max(1, rest)].map((p, i): Leg => {
      const last = i === scaled.length;
      const side = mint ? Side.buy : Side.sell;
      const rebateFor = last ? null : with_[i]!;
      return { user: owners[i]!, outcome: outcomes[i]!, side, price: p, rebateFor, own: own[i] };
    });
    return (pair) => pair.match(id, mint ? "mint" : "merge", count, legs);
  });

const feeBps = fc.constantFrom(0, 0, 1, 33, MAX_MERGE_FEE_BPS);
const splitStep = fc.record({ user, marketId, most, feeBps, split: fc.boolean() }).map(
  ({ user: who, marketId: id, most: count, feeBps: bps, split }): Step =>
    (pair) =>
      pair.changeSets(who, id, count, split, bps),
);

const withdrawStep = fc.record({ user, amount: fc.integer({ min: 1, max: 1_000_000_000 }) }).map(
  ({ user: who, amount: most_ }): Step =>
    (pair) =>
      pair.withdraw(who, most_),
);

const houseStep = fc.integer({ min: -10_000_000, max: 10_000_000 }).map(
  (funds): Step =>
    (pair) =>
      pair.fundHouse(funds),
);

/** A winner, a void, or any vector that sums to at most a set. */
const settleStep = fc
  .record({
    marketId,
    kind: fc.constantFrom("winner", "void", "any"),
    parts: fc.array(fc.nat(10_000), { minLength: 5 }),
  })
  .map(({ marketId: id, kind, parts }): Step => {
    const { length } = MARKETS.get(id)!;
    const chosen = parts.slice(0, length);
    const sum = Math.max(
      1,
      chosen.reduce((total, part) => total + part, 0),
    );
    const payouts = chosen.map((part, i) => {
      if (kind === "void") return Math.floor(10_000 / length) + (i < 10_000 % length ? 1 : 0);
      if (kind === "winner") return i === parts[0]! % length ? 10_000 : 0;
      return Math.floor((part * 10_000) / sum);
    });
    return (pair) => pair.settle(id, payouts);
  });

const dayStep = fc.constant<Step>((pair) => {
  pair.day++;
});

describe("beside the reference", () => {
  test("the ledger and the reference agree after each step on balances, positions with cost and profit, collateral, house and activity", () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: directStep },
      { weight: 6, arbitrary: setStep },
      { weight: 4, arbitrary: splitStep },
      { weight: 1, arbitrary: withdrawStep },
      { weight: 1, arbitrary: houseStep },
      { weight: 1, arbitrary: settleStep },
      { weight: 1, arbitrary: dayStep },
    );
    const deposits = fc.array(fc.integer({ min: 1, max: 2_000_000_000_000 }), { minLength: 3, maxLength: 3 });
    fc.assert(
      fc.property(deposits, fc.array(step, { maxLength: 60 }), (given, steps) => {
        const pair = new Pair(given);
        pair.compare();
        for (const run of steps) {
          run(pair);
          pair.compare();
        }
      }),
      { numRuns: 150 },
    );
  });

  test("a mint beyond 10000 leaves the rest to the house, whole", () => {
    const pair = new Pair([1e9, 1e9, 1e9]);
    const leg = (who: number, outcome: number, p: number, rebateFor: boolean | null): Leg => {
      return { user: who, outcome, side: Side.buy, price: p, rebateFor };
    };
    pair.match(2, "mint", 3, [leg(1, 3, 9_999, true), leg(2, 4, 9_999, false), leg(3, 5, 1, null)]);
    pair.compare();
    // Nobody sells in a mint: there is no fee, and so no rebate.
    expect(pair.ledger.totals.house).toBe(9_999 * 3 * 100);
  });

  test("cost parts of a set that doesn't divide add up, first outcomes first", () => {
    const ledger = new Ledger();
    ledger.deposit(1, 10 * MICRO_PER_SHARE);
    ledger.split({ id: 2, first: 3, count: 3 }, { user: 1, quantity: 1, isSetBySet: true }, 0);
    expect([3, 4, 5].map((outcome) => ledger.cost(ledger.findPosition(1, outcome)))).toEqual([
      333_334, 333_333, 333_333,
    ]);
    expect(ledger.merge({ id: 2, first: 3, count: 3 }, { user: 1, quantity: 1, isSetBySet: true }, 0)).toBe(0);
    for (const outcome of [3, 4, 5]) {
      const at = ledger.findPosition(1, outcome);
      expect([ledger.quantity(at), ledger.cost(at), ledger.realizedPnl(at)]).toEqual([0, 0, 0]);
    }
    expect(ledger.totals).toEqual({ ...ledger.totals, usersTotal: 10 * MICRO_PER_SHARE, collateral: 0, house: 0 });
  });
});

test.each([3, 6, 7, 9, 64])(
  "sets of %i outcomes, split and merged in any parts, leave no cost and no profit",
  (count) => {
    const random = Random.printed(`sets of ${count} outcomes`);
    const ledger = new Ledger();
    const market = { id: 2, first: 3, count };
    ledger.deposit(1, 1_000_000 * MICRO_PER_SHARE);
    for (let round = 0, sets = 0; round < 50; round++) {
      const quantity = random.integer(1, 999);
      const isLast = round === 49;
      if (sets > 0 && (isLast || random.chance(0.5))) {
        const merged = isLast ? sets : Math.min(sets, quantity);
        ledger.merge(market, { user: 1, quantity: merged, isSetBySet: true }, 0);
        sets -= merged;
      } else {
        ledger.split(market, { user: 1, quantity, isSetBySet: true }, 0);
        sets += quantity;
      }
      let cost = 0;
      for (let outcome = 3; outcome < 3 + count; outcome++) {
        const at = ledger.findPosition(1, outcome);
        expect(ledger.realizedPnl(at)).toBe(0);
        cost += ledger.cost(at);
      }
      expect(cost).toBe(sets * MICRO_PER_SHARE);
    }
  },
);

test("a log of an earlier version divides the whole amount", () => {
  const ledger = new Ledger();
  const market = { id: 2, first: 3, count: 3 };
  ledger.deposit(1, 10 * MICRO_PER_SHARE);
  ledger.split(market, { user: 1, quantity: 2, isSetBySet: false }, 0);
  const costs = (): number[] => [3, 4, 5].map((outcome) => ledger.cost(ledger.findPosition(1, outcome)));
  expect(costs()).toEqual([666_667, 666_667, 666_666]);
  ledger.merge(market, { user: 1, quantity: 1, isSetBySet: false }, 0);
  expect(costs()).toEqual([333_334, 333_334, 333_333]);
  expect([3, 4, 5].map((outcome) => ledger.realizedPnl(ledger.findPosition(1, outcome)))).toEqual([1, 0, 0]);
});

test("a settlement in slices changes the totals once, and like one in a single step", () => {
  const [whole, sliced] = [new Ledger(), new Ledger()];
  for (const ledger of [whole, sliced]) {
    for (const user of [1, 2]) {
      ledger.deposit(user, 10 * MICRO_PER_SHARE);
      ledger.split({ id: 2, first: 3, count: 3 }, { user: user, quantity: user, isSetBySet: true }, 0);
    }
    ledger.fundHouse(5);
  }
  const payouts = [3_334, 3_333, 3_333];
  const holders = [...whole.holders(3, 3)];
  for (const position of holders) whole.settle(position, payouts[whole.outcomeOf(position) - 3]!);
  whole.endSets(2);
  let unpaid = sliced.beginSettlement(2);
  expect(unpaid).toBe(3 * MICRO_PER_SHARE);
  for (const position of holders) {
    expect(sliced.totals).toEqual(whole.totals);
    unpaid -= sliced.payHolder(position, payouts[sliced.outcomeOf(position) - 3]!);
  }
  expect(unpaid).toBe(0);
  for (const user of [1, 2]) expect(sliced.balance(user)).toBe(whole.balance(user));
  for (const position of holders) expect(sliced.realizedPnl(position)).toBe(whole.realizedPnl(position));
});

test("a fill of the day before, of another engine thread, takes nothing from the new day's activity", () => {
  const ledger = new Ledger();
  ledger.deposit(1, 10 * MICRO_PER_SHARE);
  const buy = (at: number): void => {
    ledger.fill(fillEvent({ at }), 1);
  };
  for (const at of [2 * MS_PER_DAY, 2 * MS_PER_DAY - 1, 2 * MS_PER_DAY + 1]) buy(at);
  expect([ledger.entriesOfDay(1, 2), ledger.entriesOfDay(1, 1)]).toEqual([MICRO_PER_SHARE, 0]);
});

test("buys and splits count for the day, sales and merges don't", () => {
  const ledger = new Ledger();
  ledger.deposit(1, 10 * MICRO_PER_SHARE);
  const fill = (side: number, type: number, at: number): void => {
    ledger.fill(fillEvent({ side, quantity: 2, matchType: type, endsMatch: false, at }), 1);
  };
  fill(Side.buy, MatchType.mint, 0);
  expect(ledger.activity(1, 0)).toBe(MICRO_PER_SHARE);
  ledger.split({ id: 1, first: 1, count: 2 }, { user: 1, quantity: 3, isSetBySet: true }, 1);
  expect(ledger.activity(1, 0)).toBe(4 * MICRO_PER_SHARE);
  // Exits of the next day leave what the day before counted, and begin no day of their own.
  fill(Side.sell, MatchType.direct, MS_PER_DAY);
  ledger.merge({ id: 1, first: 1, count: 2 }, { user: 1, quantity: 1, isSetBySet: true }, 0);
  expect([ledger.activity(1, 0), ledger.activity(1, 1), ledger.activityDayOf(1)]).toEqual([4 * MICRO_PER_SHARE, 0, 0]);
  ledger.split({ id: 1, first: 1, count: 2 }, { user: 1, quantity: 1, isSetBySet: true }, MS_PER_DAY);
  expect([ledger.activity(1, 0), ledger.activity(1, 1)]).toEqual([0, MICRO_PER_SHARE]);
  ledger.changeLiveActivity(1, 7);
  expect(ledger.activity(1, 1)).toBe(MICRO_PER_SHARE + 7);
});

describe("what must not happen ends the process", () => {
  const withMoney = (): Ledger => {
    const ledger = new Ledger();
    ledger.deposit(1, 1_000_000);
    return ledger;
  };
  const wrong: [string, (ledger: Ledger) => void][] = [
    ["a hold beyond the balance", (ledger) => ledger.hold(1, 1_000_001)],
    ["two holds beyond the balance", (ledger) => [ledger.hold(1, 600_000), ledger.hold(1, 600_000)]],
    ["a release of what isn't held", (ledger) => ledger.release(1, 1)],
    ["a hold of shares that aren't there", (ledger) => ledger.holdShares(1, 1, 1)],
    ["a release of shares that aren't held", (ledger) => ledger.releaseShares(1, 1, 1)],
    ["live activity below zero", (ledger) => ledger.changeLiveActivity(1, -1)],
    ["a deposit of nothing", (ledger) => ledger.deposit(1, 0)],
    ["a deposit beyond the exchange's bound", (ledger) => ledger.deposit(1, MAX_MONEY_MICRO)],
    [
      "a split beyond the balance",
      (ledger) => ledger.split({ id: 1, first: 1, count: 2 }, { user: 1, quantity: 2, isSetBySet: true }, 0),
    ],
    ["a withdrawal beyond the balance", (ledger) => ledger.withdraw(1, 1_000_001)],
    [
      "a settlement while an order holds shares",
      (ledger) => [
        ledger.split({ id: 1, first: 1, count: 2 }, { user: 1, quantity: 1, isSetBySet: true }, 0),
        ledger.holdShares(1, 1, 1),
        ledger.settle(1, 10_000),
      ],
    ],
    [
      "a merge of sets that aren't there",
      (ledger) => ledger.merge({ id: 1, first: 1, count: 2 }, { user: 1, quantity: 1, isSetBySet: true }, 0),
    ],
    [
      "a house that something else than a withdrawal lowered",
      (ledger) => {
        ledger.fundHouse(10);
        ledger.endBatch();
        ledger.totals.house -= 1;
        ledger.endBatch();
      },
    ],
    [
      "a match that lowers the house",
      (ledger) => {
        ledger.beginMatch(0);
        ledger.totals.house -= MICRO_PER_SHARE;
        ledger.fill(fillEvent(), 1);
        ledger.fill(fillEvent({ side: Side.sell }), 1);
      },
    ],
    ["a purchase beyond the balance", (ledger) => ledger.fill(fillEvent({ quantity: 3 }), 1)],
    ["a sale of what isn't owned", (ledger) => ledger.fill(fillEvent({ side: Side.sell }), 1)],
  ];
  test.for(wrong)("what must not happen in the ledger ends the process: %s", ([, act]) => {
    expect(() => act(withMoney())).toThrow();
  });
});

test("holds keep money and shares in place until they are released", () => {
  const ledger = new Ledger();
  ledger.deposit(1, 5_000_000);
  ledger.split({ id: 1, first: 1, count: 2 }, { user: 1, quantity: 3, isSetBySet: true }, 0);
  ledger.hold(1, 2_000_000);
  ledger.holdShares(1, 2, 2);
  expect([ledger.available(1), ledger.held(1), ledger.balance(1)]).toEqual([0, 2_000_000, 2_000_000]);
  expect([ledger.availableShares(1, 1), ledger.availableShares(1, 2), ledger.availableShares(1, 3)]).toEqual([3, 1, 0]);
  ledger.release(1, 500_000);
  ledger.releaseShares(1, 2, 1);
  expect([ledger.available(1), ledger.availableShares(1, 2)]).toEqual([500_000, 2]);
});

test("many users, markets and positions: nothing is mixed up where the arrays grow", () => {
  const ledger = new Ledger();
  const count = 3_000;
  for (let id = count; id >= 1; id--) {
    ledger.deposit(id, (id + 1) * MICRO_PER_SHARE);
    ledger.split({ id, first: 2 * id - 1, count: 2 }, { user: id, quantity: id % 7, isSetBySet: true }, 0);
    ledger.hold(id, id);
  }
  for (let id = 1; id <= count; id++) {
    expect(ledger.balance(id)).toBe((id + 1 - (id % 7)) * MICRO_PER_SHARE);
    expect(ledger.held(id)).toBe(id);
    expect(ledger.outstandingSets(id)).toBe(id % 7);
    const found: number[] = [];
    for (let at = ledger.firstPositionOf(id); at !== 0; at = ledger.nextPosition(at)) {
      expect([ledger.userOf(at), ledger.quantity(at)]).toEqual([id, id % 7]);
      found.push(ledger.outcomeOf(at));
    }
    expect(found).toEqual([2 * id, 2 * id - 1]);
  }
  expect(isBalanced(ledger.totals)).toBe(true);
  expect([ledger.balance(count + 1), ledger.held(1_000_000), ledger.firstPositionOf(1_000_000)]).toEqual([0, 0, 0]);
});
