/**
 * Reads what a user's portfolio was worth over time: the balance, and the shares at the prices of then, from the hourly
 * rows of holdings (engine/projection/hourly-holdings.ts) and from candles. To be called in a read transaction.
 */
import type Database from "better-sqlite3";
import { MS_PER_HOUR, valueMicro } from "../../engine/money.ts";
import { preparePrices } from "./candle-reader.ts";
import { MAX_HOLDING_ROWS } from "./limits.ts";
import { RARE_ENTRIES } from "./payment-reader.ts";

export interface PortfolioOptions {
  readonly userId: number;
  /** The first and the last wanted moment, ms, and the minutes between two: one hour or one day. All are multiples of it. */
  readonly first: number;
  readonly last: number;
  readonly minutes: number;
}

/** micro-USDC. */
type PortfolioValue = [at: number, value: number, netDeposits: number];

export interface PortfolioHistory {
  /** Ascending. Begins when the user first had money, and later than asked where that would read too much. */
  readonly items: PortfolioValue[];
  /** When the user first had money, ms; null: never. */
  readonly firstAt: number | null;
}

type Step = readonly [hour: number, before: number];

export function preparePortfolio(db: Database.Database): (options: PortfolioOptions) => PortfolioHistory {
  const firstAt = db.prepare("SELECT created_at FROM entries WHERE user_id = ? ORDER BY id LIMIT 1").pluck();
  const tooMany = db
    .prepare(
      `SELECT hour FROM position_hours WHERE user_id = ? AND hour >= ? ORDER BY hour DESC LIMIT 1 OFFSET ${MAX_HOLDING_ROWS}`,
    )
    .pluck();
  const readHoldings = prepareHoldings(db);
  const worthAt = prepareWorth(db);
  return ({ userId, first, last, minutes }) => {
    const began = (firstAt.get(userId) as number | undefined) ?? null;
    if (began === null) return { items: [], firstAt: null };
    const step = minutes * 60_000;
    const cut = tooMany.get(userId, first / MS_PER_HOUR) as number | undefined;
    const from = Math.max(first, ceilTo(began, step), cut === undefined ? 0 : ceilTo((cut + 1) * MS_PER_HOUR, step));
    const times: number[] = [];
    for (let at = from; at <= last; at += step) times.push(at);
    if (times.length === 0) return { items: [], firstAt: began };
    const { balances, deposits, shares } = readHoldings(userId, times);
    const values = [...balances];
    const worthOf = worthAt(times, minutes);
    for (const [outcomeId, quantities] of shares) {
      worthOf(outcomeId, quantities).forEach((worth, i) => {
        values[i]! += worth;
      });
    }
    return { items: times.map((at, i) => [at, values[i]!, deposits[i]!]), firstAt: began };
  };
}

const ceilTo = (at: number, step: number): number => Math.ceil(at / step) * step;

/** For each of the ascending times: the value of the first step at or after it, else the current one. */
function before(steps: readonly Step[], current: number, times: readonly number[]): number[] {
  let next = 0;
  return times.map((at) => {
    while (next < steps.length && steps[next]![0] * MS_PER_HOUR < at) next++;
    return steps[next]?.[1] ?? current;
  });
}

/** Returns a reader of the balance, the sum of deposits less withdrawals, and the shares of each outcome at some times. */
function prepareHoldings(db: Database.Database) {
  const balance = db.prepare("SELECT balance FROM accounts WHERE user_id = ?").pluck();
  const balanceSteps = db
    .prepare("SELECT hour, balance FROM balance_hours WHERE user_id = ? AND hour >= ? ORDER BY hour")
    .raw();
  const payments = db
    .prepare(
      `SELECT created_at, amount FROM entries INDEXED BY rare_entries WHERE ${RARE_ENTRIES} AND user_id = @userId
         AND type IN ('deposit', 'withdrawal') ORDER BY id`,
    )
    .raw();
  const positions = db.prepare("SELECT outcome_id, quantity FROM positions WHERE user_id = ? AND quantity > 0").raw();
  const positionSteps = db
    .prepare("SELECT outcome_id, hour, quantity FROM position_hours WHERE user_id = ? AND hour >= ? ORDER BY hour")
    .raw();
  return (userId: number, times: readonly number[]) => {
    const hour = times[0]! / MS_PER_HOUR;
    const steps = new Map<number, Step[]>();
    const held = new Map(positions.all(userId) as [number, number][]);
    for (const outcomeId of held.keys()) steps.set(outcomeId, []);
    for (const [outcomeId, at, quantity] of positionSteps.all(userId, hour) as [number, number, number][]) {
      const own = steps.get(outcomeId);
      if (own === undefined) steps.set(outcomeId, [[at, quantity]]);
      else own.push([at, quantity]);
    }
    const paid = payments.all({ userId }) as [number, number][];
    let next = 0;
    let sum = 0;
    return {
      balances: before(balanceSteps.all(userId, hour) as Step[], Number(balance.get(userId)), times),
      deposits: times.map((at) => {
        for (; next < paid.length && paid[next]![0] < at; next++) sum += paid[next]![1];
        return sum;
      }),
      shares: [...steps].map(([id, own]) => [id, before(own, held.get(id) ?? 0, times)] as const),
    };
  };
}

/** Returns a reader of what shares of an outcome were worth at some times, micro-USDC, by the last prices of then. */
function prepareWorth(db: Database.Database) {
  const readPrices = preparePrices(db);
  const siblings = db
    .prepare(
      "SELECT id FROM outcomes WHERE market_id = (SELECT market_id FROM outcomes WHERE id = ?) ORDER BY position",
    )
    .pluck();
  return (times: readonly number[], minutes: number) => {
    const known = new Map<number, (number | null)[]>();
    const pricesOf = (outcomeId: number): (number | null)[] => {
      const found = known.get(outcomeId) ?? readPrices(outcomeId, minutes, times);
      known.set(outcomeId, found);
      return found;
    };
    return (outcomeId: number, shares: readonly number[]): number[] => {
      const prices = pricesOf(outcomeId);
      const isPriced = shares.every((quantity, i) => quantity === 0 || prices[i] !== null);
      // The prices of the market's others matter only where this one has none.
      const ids = isPriced ? [outcomeId] : (siblings.all(outcomeId) as number[]);
      const all = ids.map(pricesOf);
      const index = ids.indexOf(outcomeId);
      return shares.map((quantity, i) =>
        quantity === 0
          ? 0
          : valueMicro(
              all.map((each) => each[i] ?? null),
              index,
              quantity,
            ),
      );
    };
  };
}
