/**
 * Daily activity as tests see it: what the API reports, what a rejected order leaves unchanged, and a plain count of one
 * market to compare with. Amounts are in micro-USDC.
 */
import { expect } from "vitest";
import { eventually } from "../support/checks.ts";
import type { Answer, Client, FillJson, OrderJson, OwnFillJson } from "../support/client.ts";
import type { UserJson } from "../support/identity.ts";
import { notional } from "../support/reference.ts";
import { BUY, expectRefused } from "../support/trading.ts";
import { type TestMarket, USDC } from "../support/world.ts";

export const TIER_1 = 100 * USDC;
export const TIER_2 = 10_000 * USDC;
export const DAY_MS = 86_400_000;

/** Keeps the day from ending during a test: waits until after midnight if it is close. */
export async function awayFromMidnight(ms: number): Promise<void> {
  const left = DAY_MS - (Date.now() % DAY_MS);
  if (left < ms) await new Promise((resolve) => setTimeout(resolve, left + 1_000));
}
/** The most time that a test takes. */
export const TEST_MS = 20_000;

/** Returns the daily activity, on which GET /me and GET /me/limits must agree. */
export async function activity(user: Client): Promise<{ used: number; limit: number }> {
  const { daily_activity: shown } = await user.get<UserJson>("/me");
  const limits = await user.get<{ daily_activity: { used: number; limit: number } }>("/me/limits");
  expect(limits.daily_activity).toEqual(shown);
  return shown;
}

export async function expectUsed(user: Client, used: number): Promise<void> {
  expect((await activity(user)).used).toBe(used);
}

/** Expects a rejection for daily activity: no funds on hold, no order, and Retry-After up to the next UTC day. */
export async function expectOverLimit(user: Client, ask: () => Promise<Answer>): Promise<void> {
  const before = [await user.balance(), await activity(user), await user.all<OrderJson>("/orders")];
  const answer = await expectRefused(ask(), 429, 42901, /daily activity/);
  const untilMidnight = (DAY_MS - (Date.now() % DAY_MS)) / 1_000;
  const wait = Number(answer.headers["retry-after"]);
  expect([wait, Math.abs(wait - untilMidnight) <= 3]).toEqual([wait, true]);
  expect([await user.balance(), await activity(user), await user.all<OrderJson>("/orders")]).toEqual(before);
}

/** Returns the order once it is closed. */
export async function ended(user: Client, id: number): Promise<OrderJson> {
  let found: OrderJson | null = null;
  await eventually(async () => {
    found = await user.order(id);
    expect(["filled", "canceled", "expired", "rejected"]).toContain(found.status);
  });
  return found!;
}

/**
 * Returns the highest notional of an amended order, over all possible fills at its old price while the amend is in
 * flight.
 */
export function worstOf(order: OrderJson, price: number, quantity: number): number {
  let worst = 0;
  for (let filled = 0; filled <= order.remaining; filled++) {
    const left = Math.max(0, quantity - order.filled - filled);
    worst = Math.max(worst, notional(order.price, filled) + notional(price, left));
  }
  return worst;
}

/** Notional of the filled and live buys in one market, from their owner's updates. */
export class PlainActivity {
  private readonly before = new Map<Client, number>();
  private readonly now = new Map<Client, number>();

  /** @param used activity in other markets before this one */
  add(user: Client, used: number): void {
    this.before.set(user, used);
    this.now.set(user, used);
  }

  async count(user: Client, market: TestMarket): Promise<void> {
    let sum = this.before.get(user)!;
    const sumOf = ({ price, quantity }: Pick<FillJson, "price" | "quantity">): number => notional(price, quantity);
    for (const fill of await user.all<OwnFillJson>(`/me/fills?market_id=${market.id}`)) {
      if (fill.side === BUY) sum += sumOf(fill);
    }
    for (const { price, remaining } of await user.all<OrderJson>(`/orders?market_id=${market.id}&side=${BUY}`)) {
      sum += sumOf({ price, quantity: remaining });
    }
    this.now.set(user, sum);
  }

  used(user: Client): number {
    return this.now.get(user)!;
  }
}
