/** The routes of the OAuth 2.0 server: the endpoints that the standards fix, metadata, the key set, and users' own clients. */

import { contextOf } from "../accounts/audit.ts";
import { SCOPES } from "../accounts/types.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import { prefers } from "../http/content-negotiation.ts";
import { API_BASE, type Route, type RouteRequest, route } from "../http/route.ts";
import { Nothing } from "../http/schemas.ts";
import type { SigningKeys } from "../sign-in/signing-keys.ts";
import { type ClientRouteContext, createClientRoutes } from "./client-routes.ts";
import { AUTHORIZATION_CODE_MS } from "./limits.ts";
import * as S from "./schemas.ts";
import type { OAuthResponse, Params } from "./types.ts";

export interface OAuthRouteContext extends ClientRouteContext {
  readonly keys: SigningKeys;
  /** The service's own address, which is the issuer of its tokens too. */
  readonly publicUrl: () => string;
}

/** Browsers accept this type for pages that a person reads; programs don't. */
const HTML = "text/html";
/** Caches may keep key sets for less time than a retired key stays listed. */
const JWKS_CACHE = "public, max-age=300";

export function createOAuthRoutes(context: OAuthRouteContext): Route[] {
  return [...createClientRoutes(context), ...endpointRoutes(context), ...metadataRoutes(context)];
}

function give({ reply }: RouteRequest, { status, body, headers }: OAuthResponse): undefined {
  for (const [name, value] of Object.entries(headers)) reply.header(name, value);
  reply.plain(status, JSON.stringify(body));
  return undefined;
}

function endpointRoutes({ oauth, publicUrl }: OAuthRouteContext): Route[] {
  const form = {
    method: "POST",
    oauth: true,
    enveloped: false,
    idempotencyKey: "harmless",
    headers: ["authorization", "user-agent"],
  } as const;
  return [
    route({
      method: "GET",
      path: "/oauth/authorize",
      summary:
        "Authorization endpoint: redirects the browser to sign-in and consent, or back to the client with an error",
      headers: ["user-agent", "accept"],
      query: S.AuthorizeQuery,
      response: Nothing,
      status: 302,
      async handler(request) {
        const { query, headers, reply } = request;
        const params = query as Params;
        const { authorization } = await oauth.endpoints();
        const back = await authorization.inspect(params, contextOf(request)).catch((error: unknown) => {
          // The consent page explains to a person that this request is invalid.
          if (error instanceof ApiError && error.kind === ErrorKind.badRequest && prefers(headers["accept"], HTML))
            return null;
          throw error;
        });
        reply.redirect(back ?? `${publicUrl()}/consent?${new URLSearchParams(params)}`);
        return undefined;
      },
    }),
    route({
      ...form,
      path: "/oauth/token",
      idempotencyKey: { instead: "begin the authorization again after a lost response" },
      summary: `Token endpoint: exchanges a code (valid once, for ${AUTHORIZATION_CODE_MS / 1_000} s) or a refresh token`,
      body: S.TokenForm,
      response: S.TokenAnswer,
      async handler(request) {
        const { body, headers } = request;
        const { tokens } = await oauth.endpoints();
        return give(request, await tokens.respond(body as Params, headers["authorization"], contextOf(request)));
      },
    }),
    route({
      ...form,
      path: "/oauth/revoke",
      summary: "Revocation endpoint (RFC 7009): ends the access behind a token",
      body: S.TokenOnlyForm,
      response: S.Empty,
      async handler(request) {
        const { body, headers } = request;
        return give(
          request,
          await oauth.management.revoke(body as Params, headers["authorization"], contextOf(request)),
        );
      },
    }),
    route({
      ...form,
      path: "/oauth/introspect",
      summary: "Introspection endpoint (RFC 7662), for confidential clients and their own tokens",
      body: S.TokenOnlyForm,
      response: S.Introspection,
      async handler(request) {
        const { body, headers, now } = request;
        return give(request, await oauth.management.introspect(body as Params, headers["authorization"], now));
      },
    }),
  ];
}

function metadataRoutes({ keys, publicUrl }: OAuthRouteContext): Route[] {
  const jwks = (unversioned: boolean): Route =>
    route({
      method: "GET",
      path: "/.well-known/jwks.json",
      unversioned,
      summary: "The keys that verify session and OAuth access tokens (RFC 7517)",
      response: S.Jwks,
      enveloped: false,
      cache: JWKS_CACHE,
      handler: ({ now }) => keys.jwks(now),
    });
  return [
    jwks(false),
    jwks(true),
    route({
      method: "GET",
      path: "/.well-known/oauth-authorization-server",
      unversioned: true,
      summary: "Metadata of the authorization server (RFC 8414)",
      response: S.ServerMetadata,
      enveloped: false,
      handler: () => JSON.stringify(metadata(publicUrl())),
    }),
  ];
}

function metadata(issuer: string): object {
  const base = issuer + API_BASE;
  const methods = ["client_secret_basic", "client_secret_post"];
  return {
    issuer,
    authorization_endpoint: `${base}/oauth/authorize`,
    token_endpoint: `${base}/oauth/token`,
    revocation_endpoint: `${base}/oauth/revoke`,
    introspection_endpoint: `${base}/oauth/introspect`,
    jwks_uri: `${base}/.well-known/jwks.json`,
    service_documentation: `${issuer}/docs`,
    scopes_supported: SCOPES,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "refresh_token"],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: [...methods, "none"],
    revocation_endpoint_auth_methods_supported: [...methods, "none"],
    introspection_endpoint_auth_methods_supported: methods,
    authorization_response_iss_parameter_supported: true,
  };
}
