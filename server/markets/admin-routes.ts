/** Operators' routes of markets and events: proposals, the lifecycle of a market, its resolution. */

import type { ApprovalRow } from "../../engine/log/rows.ts";
import type { EventRow } from "../../engine/projection/load/markets.ts";
import { approvalView } from "../accounts/approvals.ts";
import { contextOf, type RequestContext } from "../accounts/audit.ts";
import { noteOf, OPERATOR, type Operator, operatorOf } from "../accounts/operator.ts";
import { notFound } from "../errors.ts";
import { Listing, pageJson } from "../http/paging.ts";
import { type Route, type RouteRequest, route } from "../http/route.ts";
import { pageOf } from "../http/schemas.ts";
import { NoteOnly } from "../http/text-schemas.ts";
import type { MarketChanges, MarketLifecycle } from "./lifecycle.ts";
import { makeMarket, type ProposalRouteContext } from "./proposal-routes.ts";
import { marketStatusName } from "./registry.ts";
import { type MarketExchange, marketNamed } from "./routes.ts";
import * as S from "./schemas.ts";

import type { Market } from "./types.ts";
import { decisionView, marketView, newEventView } from "./views.ts";

export interface MarketAdminRouteContext extends ProposalRouteContext {
  readonly life: MarketLifecycle;
}

export function createMarketAdminRoutes(context: MarketAdminRouteContext): Route[] {
  return [...proposalRoutes(context), ...creationRoutes(context), ...lifeRoutes(context), ...endRoutes(context)];
}

/** The market's current public view. */
function marketJson(market: Market, exchange: MarketExchange): string {
  return JSON.stringify(marketView(market, exchange.registry, exchange.ledger, exchange.clock.now()));
}

function recordView(market: Market, { exchange, life }: MarketAdminRouteContext, now: number): object {
  const approval = life.approvalOf(market);
  return {
    ...marketView(market, exchange.registry, exchange.ledger, now),
    proposed_by: market.proposedBy,
    decision: decisionView(market),
    approval: approval && approvalView(approval),
  };
}

// ---------------------------------------------------------------- proposals

function proposalRoutes(context: MarketAdminRouteContext): Route[] {
  const { exchange, life } = context;
  const { registry } = exchange;
  const decision = (name: "approve" | "refuse", summary: string): Route =>
    route({
      ...OPERATOR,
      method: "POST",
      path: `/admin/proposals/:id/${name}`,
      idempotencyKey: "harmless",
      summary,
      body: NoteOnly,
      response: S.MarketSchema,
      async handler(request) {
        const market = marketNamed(registry, request.params[0]);
        if (market.proposedBy === null) throw notFound("proposal");
        await life.decide(market, name === "approve", noteOf(request), operatorOf(request), contextOf(request));
        return marketJson(market, exchange);
      },
    });
  return [
    route({
      ...OPERATOR,
      method: "GET",
      path: "/admin/proposals",
      summary: "Users' proposals, newest first; pending ones by default",
      query: S.ProposalsQuery,
      response: pageOf(S.MarketRecord),
      handler({ query, now }) {
        const { status = "proposed", ...rest } = query;
        const wanted = (market: Market): boolean => market.proposedBy !== null && marketStatusName(market) === status;
        const listing = new Listing("/admin/proposals", { status });
        return pageJson(listing, registry.all().filter(wanted), rest, (market) => recordView(market, context, now));
      },
    }),
    decision("approve", "Open a proposal for trading and notify the proposer"),
    decision("refuse", "Reject a proposal and notify the proposer"),
  ];
}

// ---------------------------------------------------------------- markets and events

function creationRoutes(context: MarketAdminRouteContext): Route[] {
  const { exchange, catalog, life, idempotency } = context;
  const { registry } = exchange;
  return [
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/events",
      summary: "Create an event, which groups markets",
      idempotencyKey: "kept",
      body: S.NewEvent,
      response: S.EventSchema,
      status: 201,
      handler(request) {
        const { slug, title, category = null, closes_at = null } = request.body;
        const texts = { slug, title, category, closesAt: closes_at };
        const view = (event: EventRow): string => JSON.stringify(newEventView(event, texts));
        return idempotency.serve(
          request,
          "POST /admin/events",
          texts,
          async (now, kept) =>
            view(await catalog.createEvent(operatorOf(request), texts, { ...contextOf(request), now }, kept)),
          ({ subject }) => view(registry.event(subject)),
        );
      },
    }),
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/markets",
      summary: "Create a market that opens immediately",
      idempotencyKey: "kept",
      body: S.NewMarket,
      response: S.MarketSchema,
      status: 201,
      handler: (request) =>
        makeMarket(request, "POST /admin/markets", { registry, idempotency }, (...given) =>
          catalog.create(operatorOf(request), ...given),
        ),
    }),
    route({
      ...OPERATOR,
      method: "GET",
      path: "/admin/markets/:id",
      summary:
        "A market by id or slug, with its proposer, the decision on the proposal, and a pending first approval of its resolution",
      response: S.MarketRecord,
      handler: ({ params, now }) => JSON.stringify(recordView(marketNamed(registry, params[0]), context, now)),
    }),
    route({
      ...OPERATOR,
      method: "PATCH",
      path: "/admin/markets/:id",
      summary: "Change the texts, the close time or the picture of an unresolved market; null clears",
      body: S.MarketChanges,
      response: S.MarketSchema,
      async handler(request) {
        const market = marketNamed(registry, request.params[0]);
        const { closes_at, ...texts } = request.body;
        const changes: MarketChanges = closes_at === undefined ? texts : { ...texts, closesAt: closes_at };
        await life.describe(market, changes, operatorOf(request), contextOf(request));
        return marketJson(market, exchange);
      },
    }),
  ];
}

// ---------------------------------------------------------------- lifecycle

type Change = (market: Market, note: string | null, operator: Operator, context: RequestContext) => Promise<void>;

function lifeRoutes({ exchange, life }: MarketAdminRouteContext): Route[] {
  const change = (name: string, summary: string, run: Change): Route =>
    route({
      ...OPERATOR,
      method: "POST",
      path: `/admin/markets/:id/${name}`,
      idempotencyKey: "harmless",
      summary,
      body: NoteOnly,
      response: S.MarketSchema,
      async handler(request) {
        const market = marketNamed(exchange.registry, request.params[0]);
        await run(market, noteOf(request), operatorOf(request), contextOf(request));
        return marketJson(market, exchange);
      },
    });
  return [
    change("open", "Open a proposal for trading, or reopen a halted market", (...args) => life.open(...args)),
    change("halt", "Halt matching; orders keep resting and can be canceled", (market, ...args) =>
      life.change(market, "halt", ...args),
    ),
    change("resume", "Resume trading in a halted market", (market, ...args) => life.change(market, "resume", ...args)),
    change("close", "Close the market for good and cancel all its orders", (market, ...args) =>
      life.change(market, "close", ...args),
    ),
  ];
}

type End = (
  market: Market,
  note: string | null,
  operator: Operator,
  context: RequestContext,
) => Promise<ApprovalRow | null>;

const TWO_PERSON_RULE = "under the two-person rule, another operator must request the same";

function endRoutes({ exchange, life }: MarketAdminRouteContext): Route[] {
  const end = async (request: RouteRequest, run: End): Promise<string> => {
    const market = marketNamed(exchange.registry, request.params[0]);
    const approval = await run(market, noteOf(request), operatorOf(request), contextOf(request));
    return `{"market":${marketJson(market, exchange)},"approval":${JSON.stringify(approval && approvalView(approval))}}`;
  };
  return [
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/markets/:id/resolve",
      idempotencyKey: "harmless",
      summary: `Resolve a closed market and pay the holders of its shares; ${TWO_PERSON_RULE}`,
      body: S.Resolution,
      response: S.Settlement,
      handler(request) {
        const { payouts = null, outcome_id: outcomeId = null } = request.body;
        return end(request, (market, ...args) => life.resolve(market, { payouts, outcomeId }, ...args));
      },
    }),
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/markets/:id/void",
      idempotencyKey: "harmless",
      summary: `Void a closed market: every outcome pays the same; ${TWO_PERSON_RULE}`,
      body: NoteOnly,
      response: S.Settlement,
      handler: (request) => end(request, (market, ...args) => life.void(market, ...args)),
    }),
  ];
}
