/** What the caller's portfolio is worth, now and over time. */

import type { Static } from "typebox";
import type { Ledger } from "../../engine/ledger.ts";
import { MS_PER_DAY, MS_PER_HOUR, valueMicro } from "../../engine/money.ts";
import { intervalsOf } from "../http/paging.ts";
import { OWN_READ, type Route, route } from "../http/route.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import { lastPrices } from "../markets/views.ts";
import type { History } from "../queries/history.ts";
import type { Exchange } from "../trading/exchange.ts";
import * as S from "./schemas.ts";

const STEP_MS = { "1h": MS_PER_HOUR, "1d": MS_PER_DAY };

export function createPortfolioRoutes({ exchange, history }: { exchange: Exchange; history: History }): Route[] {
  return [
    route({
      method: "GET",
      path: "/me/portfolio",
      summary: "What the caller's money and positions are worth at the last prices, and the profit on them",
      ...OWN_READ,
      response: S.Portfolio,
      handler: ({ principal }) => JSON.stringify(portfolioView(exchange.ledger, exchange.registry, principal.userId)),
    }),
    route({
      method: "GET",
      path: "/me/portfolio/history",
      summary: "The caller's portfolio value and profit at the beginning of each hour or UTC day",
      ...OWN_READ,
      query: S.PortfolioHistoryQuery,
      response: S.PortfolioHistory,
      handler: ({ principal, query, now }) => portfolioHistory(history, principal.userId, query, now),
    }),
  ];
}

function portfolioView(ledger: Ledger, registry: MarketRegistry, userId: number): object {
  let inPositions = 0;
  let cost = 0;
  let realized = 0;
  for (let at = ledger.firstPositionOf(userId); at !== 0; at = ledger.nextPosition(at)) {
    realized += ledger.realizedPnl(at);
    const quantity = ledger.quantity(at);
    if (quantity === 0) continue;
    const outcomeId = ledger.outcomeOf(at);
    const market = registry.marketOf(outcomeId);
    inPositions += valueMicro(lastPrices(market), outcomeId - market.firstOutcomeId, quantity);
    cost += ledger.cost(at);
  }
  const balance = ledger.balance(userId);
  const held = ledger.held(userId);
  // What came in is what is there, less what was won.
  const netDeposits = balance + cost - realized;
  return {
    value: balance + inPositions,
    available: balance - held,
    held,
    in_positions: inPositions,
    cost,
    net_deposits: netDeposits,
    profit: balance + inPositions - netDeposits,
    unrealized_pnl: inPositions - cost,
    realized_pnl: realized,
    fees: ledger.feesPaid(userId),
    rebates: ledger.rebatesEarned(userId),
  };
}

async function portfolioHistory(
  history: History,
  userId: number,
  query: Static<typeof S.PortfolioHistoryQuery>,
  now: number,
): Promise<string> {
  const { interval = "1h" } = query;
  const step = STEP_MS[interval];
  const { first, last } = intervalsOf(query, { name: interval, step }, now, Math.ceil);
  const { items, firstAt } = await history.portfolio({ userId, first, last, minutes: step / 60_000 });
  return JSON.stringify({
    interval,
    first_at: firstAt,
    items: items.map(([at, value, netDeposits]) => [at, value, value - netDeposits]),
  });
}
