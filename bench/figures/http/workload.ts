/**
 * The orders that the HTTP bench sends, the same for every client and server: of a hundred, 45 buys and 45 sells
 * that rest, and 5 of each that take the best order of the other side. Users and markets are many, notionals small, so
 * that no account runs out of money or shares. One outcome of each market is traded: cheap sells of
 * both would merge.
 */
import { Side } from "../../../engine/constants.ts";
import { MICRO_PER_SHARE } from "../../../engine/limits.ts";
import { Api, dataOf, type ListedMarket } from "../../support/api.ts";
import { itemAt } from "../../support/item-at.ts";
import { randomFrom } from "../../support/random.ts";
import { UNBOUNDED_TERMS } from "../../support/terms.ts";

export const USERS = 200;
export const MARKETS = 100;
const ORDERS = 20_000;
/** A user sells in one market only, and has this many sets of it. */
const SETS = 200_000;
const HELPERS = 16;

const tokenOf = (user: number): string => `pm_pat_bench-${String(user).padStart(37, "0")}`;
const slugOf = (market: number): string => `bench-${market}-market`;

export const seed: object = {
  users: Array.from({ length: USERS }, (_, user) => ({
    email: `bench-${user}@example.com`,
    kyc_tier: 2,
    terms: UNBOUNDED_TERMS,
    deposit: 2 * SETS * MICRO_PER_SHARE,
    pats: [{ name: "bench", scopes: ["orders:write", "portfolio:read"], token: tokenOf(user) }],
  })),
  markets: Array.from({ length: MARKETS }, (_, market) => ({
    slug: slugOf(market),
    question: `Does ${market} win?`,
    outcomes: ["Yes", "No"],
  })),
};

export interface OrderRequest {
  readonly token: string;
  readonly body: string;
}

/** Splits every user's shares; returns the orders to send and the length of the response to one. */
export async function prepare(root: string): Promise<{ requests: OrderRequest[]; answerBytes: number }> {
  const api = new Api(root, HELPERS);
  await api.open();
  const markets = await api.markets(Array.from({ length: MARKETS }, (_, market) => slugOf(market)));
  await api.each(USERS, async (user, send) => {
    const body = { market_id: itemAt(markets, user % MARKETS).id, quantity: SETS };
    dataOf("/wallet/split", await send(api.bytes("POST", "/wallet/split", tokenOf(user), body)));
  });
  const random = randomFrom(20_241_120);
  const requests = Array.from({ length: ORDERS }, (_, i) => makeOrder(i, markets, random));
  let answerBytes = 0;
  await api.each(1, async (_, send) => {
    const { token, body } = itemAt(requests, 0);
    const answer = await send(api.bytes("POST", "/orders", token, JSON.parse(body)));
    dataOf("/orders", answer);
    answerBytes = JSON.stringify(answer).length;
  });
  api.close();
  return { requests, answerBytes };
}

function makeOrder(index: number, markets: readonly ListedMarket[], random: () => number): OrderRequest {
  const upTo = (count: number): number => Math.floor(random() * count);
  const user = upTo(USERS);
  const side = index % 2 === 0 ? Side.buy : Side.sell;
  const market = itemAt(markets, side === Side.sell ? user % MARKETS : upTo(MARKETS));
  const takes = upTo(10) === 0;
  const resting = side === Side.buy ? 1 + upTo(100) : 101 + upTo(100);
  const price = takes ? (side === Side.buy ? 200 : 1) : resting;
  const outcome = itemAt(market.outcomes, 0);
  const order = { market_id: market.id, outcome_id: outcome.id, side, price, quantity: 1 + upTo(10) };
  return { token: tokenOf(user), body: JSON.stringify(order) };
}
