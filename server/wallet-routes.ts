/** The routes of the wallet: the caller's balance, positions, complete sets, deposits and withdrawals, and what came of them. */
import type { Static } from "typebox";
import type { AccountWriter } from "./account-writer.ts";
import { actorOf, audit, contextOf } from "./audit.ts";
import { badRequest } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import { type History, historyPage } from "./history.ts";
import type { OrderEntry } from "./order-entry.ts";
import { pageJson, readPage } from "./paging.ts";
import { type Route, route } from "./route.ts";
import * as S from "./schemas.ts";
import { balanceView, positionsOf, positionView } from "./views.ts";

export interface WalletRouteContext {
  readonly exchange: Exchange;
  readonly entry: OrderEntry;
  readonly history: History;
  readonly writer: AccountWriter;
}

export function createWalletRoutes({ exchange, entry, history, writer }: WalletRouteContext): Route[] {
  const { ledger, registry } = exchange;
  const balance = (path: string): Route =>
    route({
      method: "GET",
      path,
      summary: "The caller's platform balance",
      scope: "portfolio:read",
      response: S.Balance,
      handler: ({ principal }) => JSON.stringify(balanceView(ledger, principal!.userId)),
    });
  const sets = (name: "split" | "merge", summary: string): Route =>
    route({
      method: "POST",
      path: `/wallet/${name}`,
      summary,
      scope: "orders:write",
      minTier: 1,
      body: S.ChangeSets,
      response: S.SetsChange,
      handler(request) {
        const { principal, body, now, reply } = request;
        const { market_id, quantity } = body as Static<typeof S.ChangeSets>;
        const change = { action: `wallet.${name}`, userId: principal!.userId, subject: market_id };
        const line = audit(contextOf(request), actorOf(principal!), { ...change, details: { market_id, quantity } });
        // On its way before the command: it is durable no later than what it tells of.
        const begin = (): void => void writer.write([], [line]).catch(() => {});
        entry.changeSets(principal!, market_id, quantity, name === "split", now, reply, begin);
        return undefined;
      },
    });
  return [
    balance("/wallet/balance"),
    balance("/me/balance"),
    balance("/users/me/balance"),
    sets("split", "Turn USDC into complete sets: one share of each outcome for 1 USDC"),
    sets("merge", "Turn complete sets into USDC"),
    route({
      method: "GET",
      path: "/wallet/transactions",
      summary: "Every change of the caller's balance, newest first",
      scope: "portfolio:read",
      query: S.TransactionsQuery,
      response: S.pageOf(S.Transaction),
      handler({ principal, query }) {
        const { type, from, to, ...rest } = query as Static<typeof S.TransactionsQuery>;
        if (from !== undefined && to !== undefined && from > to) throw badRequest("from: must not be later than to");
        const options = { userId: principal!.userId, ...readPage(rest), type: type as string | undefined, from, to };
        return historyPage(history.transactions(options));
      },
    }),
    route({
      method: "GET",
      path: "/me/positions",
      summary: "The caller's positions, largest outcome id first",
      scope: "portfolio:read",
      query: S.PositionsQuery,
      response: S.pageOf(S.Position),
      handler({ principal, query }) {
        const { market_id, ...rest } = query as Static<typeof S.PositionsQuery>;
        const { before, limit } = readPage(rest);
        const found = positionsOf(ledger, principal!.userId).filter((position) => {
          const outcomeId = ledger.outcomeOf(position);
          return outcomeId < before && (market_id === undefined || registry.ofOutcome(outcomeId)!.id === market_id);
        });
        found.sort((a, b) => ledger.outcomeOf(b) - ledger.outcomeOf(a));
        const shown = found.slice(0, limit);
        const items = shown.map((position) => JSON.stringify(positionView(ledger, registry, position)));
        return pageJson(items, found.length > limit ? ledger.outcomeOf(shown.at(-1)!) : null);
      },
    }),
  ];
}
