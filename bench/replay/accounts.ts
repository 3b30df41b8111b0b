/**
 * The accounts of a recording's users: a token, a deposit, and the complete sets for their sells. Derived only from the
 * recording, so that a seed file written earlier has the same ones.
 */
import { createHash } from "node:crypto";
import { Side } from "../../engine/constants.ts";
import { MAX_MONEY_MICRO, MAX_PRICE_BPS, MAX_QUANTITY, MICRO_PER_SHARE } from "../../engine/limits.ts";
import { notionalMicro } from "../../engine/money.ts";
import { itemAt } from "../support/item-at.ts";
import { UNBOUNDED_TERMS } from "../support/terms.ts";
import { FolderError, type RecordedOrder, type Recording } from "./folder.ts";

const SCOPES = ["markets:read", "orders:write", "portfolio:read"];

/** Complete sets that a user is given before the first order. */
interface Sets {
  readonly user: number;
  readonly market: number;
  readonly quantity: number;
}

export interface Plan {
  /** By index of the recording's users. */
  readonly tokens: readonly string[];
  /** By index of the recording's markets. */
  readonly slugs: readonly string[];
  readonly sets: readonly Sets[];
  /** As SEED_FILE holds it. */
  readonly seed: object;
}

/** @throws FolderError if the money exceeds the exchange's bound */
export function planAccounts(recording: Recording): Plan {
  const { name, users, markets } = recording;
  const sets = neededSets(recording);
  const deposits = neededDeposits(recording, sets);
  const total = deposits.reduce((sum, amount) => sum + amount, 0);
  if (total > MAX_MONEY_MICRO) {
    throw new FolderError(`the orders need ${total} micro-USDC, an exchange holds ${MAX_MONEY_MICRO} at most`);
  }
  // Anyone with the folder can derive the tokens: use them only for exchanges started for a replay, with play money.
  const tokens = users.map((user) => {
    return `pm_pat_replay_${createHash("sha256").update(`${name}\n${user}`).digest("base64url")}`;
  });
  const areFit = markets.every((market) => /^[A-Za-z0-9._-]{1,100}$/.test(market.name));
  const slugs = markets.map((market, i) => `${name}-${areFit ? market.name : i + 1}`);
  const seed = {
    users: users.map((_, i) => ({
      email: `${name}-${i + 1}@example.com`,
      kyc_tier: 2,
      terms: UNBOUNDED_TERMS,
      deposit: deposits[i],
      pats: [{ name: "replay", scopes: SCOPES, token: tokens[i] }],
    })),
    markets: markets.map(({ question, outcomes }, i) => ({ slug: slugs[i], question, category: name, outcomes })),
  };
  return { tokens, slugs, sets, seed };
}

/** True if the exchange can accept the order, so that it needs money or shares. */
function isFit({ side, price, quantity }: RecordedOrder): boolean {
  const within = (value: number, max: number) => Number.isInteger(value) && value >= 1 && value <= max;
  return within(side, Side.sell) && within(price, MAX_PRICE_BPS) && within(quantity, MAX_QUANTITY);
}

/** A user's sets in a market: as many as it sells of the outcome that it sells most of. */
function neededSets({ orders, markets }: Recording): Sets[] {
  const sold = new Map<string, { user: number; market: number; byOutcome: number[] }>();
  for (const order of orders) {
    const { user, market, outcome, side, quantity } = order;
    if (side !== Side.sell || !isFit(order)) continue;
    const key = `${user} ${market}`;
    let entry = sold.get(key);
    if (entry === undefined) {
      entry = { user, market, byOutcome: itemAt(markets, market).outcomes.map(() => 0) };
      sold.set(key, entry);
    }
    entry.byOutcome[outcome]! += quantity;
  }
  const sets: Sets[] = [];
  for (const { user, market, byOutcome } of sold.values()) {
    for (let left = Math.max(...byOutcome); left > 0; left -= MAX_QUANTITY) {
      sets.push({ user, market, quantity: Math.min(left, MAX_QUANTITY) });
    }
  }
  return sets;
}

/** Enough for a user's sets and all of its buys at the same time. */
function neededDeposits({ orders, users }: Recording, sets: readonly Sets[]): number[] {
  const deposits = users.map(() => 0);
  for (const { user, quantity } of sets) deposits[user]! += quantity * MICRO_PER_SHARE;
  for (const order of orders) {
    if (order.side === Side.sell || !isFit(order)) continue;
    deposits[order.user]! += notionalMicro(order.price, order.quantity);
  }
  return deposits;
}
