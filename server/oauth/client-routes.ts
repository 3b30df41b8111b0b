/** Users' routes of OAuth: their grants to third parties, their own clients, and the decision on the consent page. */

import type { Accounts } from "../accounts/accounts.ts";
import { contextOf } from "../accounts/audit.ts";
import type { Grant, OAuthClient } from "../accounts/types.ts";
import { notFound } from "../errors.ts";
import { ownList, pageJson } from "../http/paging.ts";
import { OWN_SESSION, pathId, type Route, route, SECRET_ONCE } from "../http/route.ts";
import { Nothing, PageQuery, pageOf } from "../http/schemas.ts";
import type { OAuth } from "./oauth.ts";
import * as S from "./schemas.ts";

export interface ClientRouteContext {
  readonly accounts: Accounts;
  readonly oauth: OAuth;
}

export function createClientRoutes(context: ClientRouteContext): Route[] {
  return [...grantRoutes(context), ...clientRoutes(context), ...consentRoutes(context)];
}

function grantRoutes({ accounts, oauth }: ClientRouteContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/oauth-grants",
      summary: "The caller's grants to third parties, newest first",
      query: PageQuery,
      response: pageOf(S.OAuthGrant),
      handler({ principal, query }) {
        const rows = accounts.grants.of(principal.userId).map((grant) => ({ id: grant.row.id, grant }));
        return pageJson(ownList("/me/oauth-grants", principal), rows, query, ({ grant }) => grantView(grant));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/oauth-grants/:id",
      summary: "Revoke all access of a third party immediately",
      response: Nothing,
      async handler(request) {
        await oauth.grants.revoke(request.principal, pathId(request.params[0], "grant"), contextOf(request));
        return "null";
      },
    }),
  ];
}

function clientRoutes({ accounts, oauth }: ClientRouteContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/oauth-clients",
      summary: "The caller's third-party clients, newest first",
      query: PageQuery,
      response: pageOf(S.OAuthClient),
      handler({ principal, query }) {
        const rows = accounts.clients.of(principal.userId).map((client) => ({ id: client.row.id, client }));
        return pageJson(ownList("/me/oauth-clients", principal), rows, query, ({ client }) => clientView(client));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/oauth-clients/:id",
      summary: "One of the caller's third-party clients",
      response: S.OAuthClient,
      handler({ principal, params }) {
        const client = accounts.clients.get(pathId(params[0], "client"));
        if (client === undefined || client.row.userId !== principal.userId) throw notFound("client");
        return JSON.stringify(clientView(client));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/oauth-clients",
      idempotencyKey: SECRET_ONCE,
      summary: "Register a third-party client; only this response shows its secret",
      rateClass: "registration",
      body: S.NewOAuthClient,
      response: S.CreatedOAuthClient,
      status: 201,
      async handler(request) {
        const { name, redirect_uris, confidential } = request.body;
        const fields = { name, redirectUris: redirect_uris, isConfidential: confidential };
        const { client, secret } = await oauth.clients.create(request.principal, fields, contextOf(request));
        return JSON.stringify({ ...clientView(client), client_secret: secret });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/oauth-clients/:id",
      summary: "Remove a third-party client and all of its access",
      response: Nothing,
      async handler(request) {
        await oauth.clients.remove(request.principal, pathId(request.params[0], "client"), contextOf(request));
        return "null";
      },
    }),
  ];
}

function consentRoutes({ accounts, oauth }: ClientRouteContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/oauth/clients/:client_id",
      summary: "A third-party client, as the consent page shows it",
      response: S.AskingClient,
      handler({ params }) {
        const client = accounts.clientByName(params[0]);
        if (client === undefined) throw notFound("client");
        const { clientId: client_id, name, createdAt: created_at } = client.row;
        return JSON.stringify({ client_id, name, redirect_uris: client.redirectUris, created_at });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/oauth/authorize",
      idempotencyKey: { instead: "begin the authorization again after a lost response" },
      summary: "The user's decision on the consent page; returns where to redirect the browser",
      body: S.AuthorizeDecision,
      response: S.RedirectTo,
      async handler(request) {
        const { decision, ...params } = request.body;
        const isApproved = decision === "approve";
        const { authorization } = await oauth.endpoints();
        const location = await authorization.decide(params, request.principal, isApproved, contextOf(request));
        return JSON.stringify({ redirect_to: location });
      },
    }),
  ];
}

function clientView({ row, redirectUris }: OAuthClient): object {
  return {
    id: row.id,
    client_id: row.clientId,
    name: row.name,
    redirect_uris: redirectUris,
    confidential: row.secretHash !== null,
    created_at: row.createdAt,
  };
}

function grantView({ row, client, lastUsedAt }: Grant): object {
  return {
    id: row.id,
    client_id: client.row.clientId,
    client_name: client.row.name,
    scopes: row.scopes.split(" "),
    created_at: row.createdAt,
    last_used_at: lastUsedAt === 0 ? null : lastUsedAt,
  };
}
