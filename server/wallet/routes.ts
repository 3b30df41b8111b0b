/** The wallet's routes: balance, positions, complete sets, transactions, deposits and withdrawals. */
import type { KeptRequest } from "../../engine/log/request.ts";
import { actorOf, audit, contextOf } from "../accounts/audit.ts";
import { badRequest, notFound } from "../errors.ts";
import { prefers } from "../http/content-negotiation.ts";
import type { Idempotency } from "../http/idempotency.ts";
import { checkSpan, Listing, ownList } from "../http/paging.ts";
import { OWN_READ, OWN_SESSION, pathId, type Route, route } from "../http/route.ts";
import { PageQuery, pageOf } from "../http/schemas.ts";
import { balanceJson, balanceView, positionJson, positionsOf, positionView, solvencyView } from "../markets/views.ts";
import { textReply } from "../orders/json-reply.ts";
import { CSV } from "../queries/exports.ts";
import { type History, historyPage } from "../queries/history.ts";
import type { Payment, Withdrawal } from "../queries/payment-reader.ts";
import { checkLive } from "../sign-in/authenticator.ts";
import { setsJson } from "../trading/event-projection.ts";
import type { OrderEntry } from "../trading/order-entry.ts";
import type { ExchangeTotals, Reply } from "../trading/types.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import { depositReference } from "./deposit-reference.ts";
import { createExportRoutes, type ExportRouteContext } from "./export-routes.ts";
import { createPortfolioRoutes } from "./portfolio-routes.ts";
import * as S from "./schemas.ts";
import type { AddressRule } from "./withdrawal-address.ts";
import { pendingWithdrawal, type Withdrawals } from "./withdrawals.ts";

export interface WalletRouteContext extends ExportRouteContext {
  readonly entry: OrderEntry;
  readonly history: History;
  readonly writer: LogWriter;
  readonly withdrawals: Withdrawals;
  readonly idempotency: Idempotency;
  readonly addressRule: AddressRule;
  readonly depositInstructions: string | null;
  readonly totals: () => ExchangeTotals;
}

export function createWalletRoutes(context: WalletRouteContext): Route[] {
  return [
    ...balanceRoutes(context),
    positionsRoute(context),
    ...createPortfolioRoutes(context),
    ...historyRoutes(context),
    depositInstructionsRoute(context),
    ...createExportRoutes(context),
    withdrawalRequestRoute(context),
    ...withdrawalRoutes(context),
    solvencyRoute(context),
  ];
}

// ---------------------------------------------------------------- balance and positions

function balanceRoutes({ exchange, entry, writer, idempotency }: WalletRouteContext): Route[] {
  const { ledger } = exchange;
  const balance = (path: string): Route =>
    route({
      method: "GET",
      path,
      summary: "The caller's platform balance",
      ...OWN_READ,
      response: S.Balance,
      handler: ({ principal }) => balanceJson(balanceView(ledger, principal.userId)),
    });
  const sets = (name: "split" | "merge", summary: string): Route =>
    route({
      method: "POST",
      path: `/wallet/${name}`,
      summary,
      scope: "orders:write",
      minTier: 1,
      idempotencyKey: "kept",
      body: S.ChangeSets,
      response: S.SetsChange,
      handler(request) {
        const principal = request.principal;
        const { userId } = principal;
        const { market_id, quantity } = request.body;
        const details = { market_id, quantity };
        const change = (now: number, reply: Reply, kept: Omit<KeptRequest, "reference"> | null): void => {
          const record = { action: `wallet.${name}`, userId, subject: market_id, details };
          const line = audit({ ...contextOf(request), now }, actorOf(principal), record);
          // Written before the command, so that the audit line is durable no later than the change.
          const begin = (reference: number): void =>
            void writer.write([], [line], kept && { ...kept, reference }).catch(() => {});
          entry.sets[name](principal, { marketId: market_id, quantity }, now, reply, begin);
        };
        const { idempotencyKey: key } = request;
        if (key === "") return void change(request.now, request.reply, null);
        return idempotency.run(
          { userId, key, name: `POST /wallet/${name}`, body: details },
          {
            act(kept) {
              checkLive(principal, kept.at);
              return new Promise((data, error) => change(kept.at, textReply(data, error), kept));
            },
            repeat: ({ fee }) => setsJson(market_id, quantity, fee),
          },
        );
      },
    });
  return [
    balance("/wallet/balance"),
    balance("/me/balance"),
    balance("/users/me/balance"),
    sets("split", "Split USDC into complete sets: one share of each outcome for 1 USDC"),
    sets("merge", "Merge complete sets into USDC"),
  ];
}

function positionsRoute({ exchange }: WalletRouteContext): Route {
  const { ledger, registry } = exchange;
  return route({
    method: "GET",
    path: "/me/positions",
    summary: "The caller's positions, largest outcome id first",
    ...OWN_READ,
    query: S.PositionsQuery,
    response: pageOf(S.Position),
    handler({ principal, query }) {
      const { market_id, ...rest } = query;
      const listing = new Listing("/me/positions", { userId: principal.userId, market_id });
      const { before, limit } = listing.page(rest);
      const found = positionsOf(ledger, principal.userId).filter((position) => {
        const outcomeId = ledger.outcomeOf(position);
        return outcomeId < before && (market_id === undefined || registry.marketOf(outcomeId).id === market_id);
      });
      found.sort((a, b) => ledger.outcomeOf(b) - ledger.outcomeOf(a));
      const shown = found.slice(0, limit);
      const last = shown.at(-1);
      const items = shown.map((position) => positionJson(positionView(ledger, registry, position)));
      return listing.json(items, found.length > limit && last !== undefined ? ledger.outcomeOf(last) : null);
    },
  });
}

// ---------------------------------------------------------------- transactions, deposits, settlements

function historyRoutes({ history, exports }: WalletRouteContext): Route[] {
  return [
    route({
      method: "GET",
      path: "/wallet/transactions",
      summary:
        "Every change of the caller's balance, newest first; with Accept: text/csv, all matching rows in one file",
      ...OWN_READ,
      headers: ["accept"],
      query: S.TransactionsQuery,
      response: pageOf(S.Transaction),
      handler({ principal, query, headers, reply }) {
        const { type, from, to, ...rest } = query;
        checkSpan(query);
        const filters = { userId: principal.userId, type, from, to };
        if (prefers(headers.accept, CSV)) {
          const [paged] = Object.keys(rest);
          if (paged !== undefined) throw badRequest(`${paged}: a ${CSV} export has no pages`);
          return exports.stored(reply, "fields", { kind: "transactions", ...filters });
        }
        const listing = new Listing("/wallet/transactions", filters);
        return historyPage(listing, history.transactions({ ...filters, ...listing.page(rest) }));
      },
    }),
    route({
      method: "GET",
      path: "/wallet/deposits",
      summary: "The caller's deposits and their reversals, newest first",
      ...OWN_READ,
      query: PageQuery,
      response: pageOf(S.OwnDeposit),
      handler({ principal, query }) {
        const listing = ownList("/wallet/deposits", principal);
        const page = listing.page(query);
        return historyPage(listing, history.deposits({ userId: principal.userId, ...page }), ownPaymentView);
      },
    }),
    route({
      method: "GET",
      path: "/wallet/settlements",
      summary: "Payouts of the caller's shares in resolved and voided markets, newest first",
      ...OWN_READ,
      query: S.SettlementsQuery,
      response: pageOf(S.Settlement),
      handler({ principal, query }) {
        const { market_id, ...rest } = query;
        const filters = { userId: principal.userId, marketId: market_id };
        const listing = new Listing("/wallet/settlements", filters);
        return historyPage(listing, history.settlements({ ...filters, ...listing.page(rest) }));
      },
    }),
  ];
}

// ---------------------------------------------------------------- withdrawals

function withdrawalRequestRoute({ withdrawals, idempotency, addressRule }: WalletRouteContext): Route {
  return route({
    ...OWN_SESSION,
    method: "POST",
    path: "/wallet/withdrawals",
    summary: "Request a withdrawal: its amount is held until an operator pays or rejects it",
    minTier: 2,
    idempotencyKey: "kept",
    body: S.NewWithdrawal,
    response: S.OwnWithdrawal,
    status: 201,
    async handler(request) {
      const { principal } = request;
      const { amount, address } = request.body;
      addressRule.check(address);
      const wanted = { amount, address };
      const make = async (now: number, kept: KeptRequest | null): Promise<string> => {
        const made = await withdrawals.request(principal, wanted, { ...contextOf(request), now }, kept);
        return JSON.stringify(ownWithdrawalView(made));
      };
      return idempotency.serve(request, "POST /wallet/withdrawals", wanted, make, ({ subject, createdAt }) =>
        JSON.stringify(ownWithdrawalView(pendingWithdrawal(principal.userId, subject, wanted, createdAt))),
      );
    },
  });
}

function withdrawalRoutes({ history, withdrawals }: WalletRouteContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/wallet/withdrawals",
      summary: "The caller's withdrawals, newest first",
      query: S.WithdrawalsQuery,
      response: pageOf(S.OwnWithdrawal),
      handler({ principal, query }) {
        const { status, ...rest } = query;
        const filters = { userId: principal.userId, status };
        const listing = new Listing("/wallet/withdrawals", filters);
        return historyPage(listing, history.withdrawals({ ...filters, ...listing.page(rest) }), ownWithdrawalView);
      },
    }),
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/wallet/withdrawals/:id",
      summary: "One withdrawal of the caller",
      response: S.OwnWithdrawal,
      async handler({ principal, params }) {
        const found = await history.withdrawal(pathId(params[0], "withdrawal"));
        if (found?.userId !== principal.userId) throw notFound("withdrawal");
        return JSON.stringify(ownWithdrawalView(found));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/wallet/withdrawals/:id",
      summary: "Cancel a pending withdrawal and release its amount",
      response: S.OwnWithdrawal,
      async handler(request) {
        const id = pathId(request.params[0], "withdrawal");
        return JSON.stringify(ownWithdrawalView(await withdrawals.cancel(request.principal, id, contextOf(request))));
      },
    }),
  ];
}

function depositInstructionsRoute({ depositInstructions }: WalletRouteContext): Route {
  return route({
    method: "GET",
    path: "/wallet/deposit-instructions",
    summary: "How to pay money in, and the reference that names the caller in a payment",
    scope: "portfolio:read",
    response: S.DepositInstructions,
    handler({ principal }) {
      const reference = depositReference(principal.userId);
      const instructions = depositInstructions?.replaceAll("{reference}", reference) ?? null;
      return JSON.stringify({ reference, instructions });
    },
  });
}

function solvencyRoute({ totals }: WalletRouteContext): Route {
  return route({
    method: "GET",
    path: "/solvency",
    summary: "The exchange's totals as of the last committed transaction",
    response: S.Solvency,
    handler: () => JSON.stringify(solvencyView(totals())),
  });
}

export function ownPaymentView({ id, amount, reference, reverses, createdAt }: Payment): object {
  return { id, amount, reference, reverses, created_at: createdAt };
}

export function ownWithdrawalView(withdrawal: Withdrawal): object {
  const { id, amount, address, status, reference, note, createdAt, decidedAt } = withdrawal;
  return { id, amount, address, status, reference, note, created_at: createdAt, decided_at: decidedAt };
}
