/** Users' routes of proposals: markets that they ask operators to open. */

import type { Static } from "typebox";
import type { KeptRequest } from "../../engine/log/request.ts";
import { contextOf, type RequestContext } from "../accounts/audit.ts";
import type { Idempotency } from "../http/idempotency.ts";
import { ownList, pageJson } from "../http/paging.ts";
import { type Route, type RouteRequest, route } from "../http/route.ts";
import { PageQuery } from "../http/schemas.ts";
import type { MarketCatalog, MarketTexts } from "./catalog.ts";
import type { MarketRegistry } from "./registry.ts";
import type { MarketExchange } from "./routes.ts";
import * as S from "./schemas.ts";

import type { Market } from "./types.ts";
import { decisionView, marketView, newMarketView } from "./views.ts";

export interface ProposalRouteContext {
  readonly exchange: MarketExchange;
  readonly catalog: MarketCatalog;
  readonly idempotency: Idempotency;
}

export function createProposalRoutes({ exchange, catalog, idempotency }: ProposalRouteContext): Route[] {
  const { registry, ledger } = exchange;
  return [
    route({
      method: "POST",
      path: "/markets/proposals",
      summary: "Propose a market; an operator decides",
      scope: "markets:propose",
      minTier: 1,
      idempotencyKey: "kept",
      body: S.NewMarket,
      response: S.MarketSchema,
      status: 201,
      handler: (request) =>
        makeMarket(request, "POST /markets/proposals", { registry, idempotency }, (...given) =>
          catalog.propose(request.principal, ...given),
        ),
    }),
    route({
      method: "GET",
      path: "/markets/proposals",
      summary: "The caller's proposals in every status, newest first, with the decisions",
      scope: "markets:propose",
      query: PageQuery,
      response: S.Proposals,
      handler({ principal, query, now }) {
        const listing = ownList("/markets/proposals", principal);
        return pageJson(listing, registry.proposalsOf(principal.userId), query, (market) => {
          return { market: marketView(market, registry, ledger, now), decision: decisionView(market) };
        });
      },
    }),
  ];
}

/**
 * Serves a request for a new market, once per Idempotency-Key: the response is the market as it was made.
 * @param name method and path
 */
export function makeMarket(
  request: RouteRequest<unknown, Static<typeof S.NewMarket>>,
  name: string,
  { registry, idempotency }: { registry: MarketRegistry; idempotency: Idempotency },
  make: (texts: MarketTexts, context: RequestContext, kept: KeptRequest | null) => Promise<Market>,
): Promise<string> {
  const texts = readTexts(request.body);
  const view = (market: Market): string => JSON.stringify(newMarketView(market, texts));
  return idempotency.serve(
    request,
    name,
    texts,
    async (now, kept) => view(await make(texts, { ...contextOf(request), now }, kept)),
    ({ subject }) => view(registry.market(subject)),
  );
}

/** Returns the texts of a new market, null where the request has none. */
function readTexts(given: Static<typeof S.NewMarket>): MarketTexts {
  const { question, outcomes, description = null, category = null, slug = null } = given;
  const { closes_at: closesAt = null, event_id: eventId = null } = given;
  return { question, outcomes, description, category, slug, closesAt, eventId };
}
