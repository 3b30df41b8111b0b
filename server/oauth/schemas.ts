/** The shapes of the OAuth server's requests and responses: clients, grants, the token endpoint, metadata. */
import Type, { type TProperties } from "typebox";
import { Scopes } from "../accounts/schemas.ts";
import { closed, Id, names, nullable, Time } from "../http/schemas.ts";
import { MAX_REDIRECT_URIS } from "./limits.ts";

/** Users decide by this name: it contains no invisible characters, no reversed text and no stacked marks. */
const ClientName = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: "^(?!\\s)(?!.*\\p{M}{4})[^\\p{C}\\p{Zl}\\p{Zp}]{1,100}(?<!\\s)$",
});

export const NewOAuthClient = closed({
  name: ClientName,
  redirect_uris: Type.Array(Type.String({ minLength: 1, maxLength: 2_000 }), {
    minItems: 1,
    maxItems: MAX_REDIRECT_URIS,
    description: "https, http on the user's own machine, or an app's own scheme; compared exactly",
  }),
  confidential: Type.Boolean({ description: "true: the client can keep a secret, and gets one" }),
});

const oauthClient = {
  id: Id,
  client_id: Type.String(),
  name: Type.String(),
  redirect_uris: Type.Array(Type.String()),
  confidential: Type.Boolean(),
  created_at: Time,
};

export const OAuthClient = closed(oauthClient);

export const CreatedOAuthClient = closed({
  ...oauthClient,
  client_secret: nullable(Type.String({ description: "shown once; null for a public client" })),
});

/** What the consent page shows of a client to any user. */
export const AskingClient = closed({
  client_id: Type.String(),
  name: Type.String(),
  redirect_uris: Type.Array(Type.String()),
  created_at: Time,
});

export const OAuthGrant = closed({
  id: Id,
  client_id: Type.String(),
  client_name: Type.String(),
  scopes: Scopes,
  created_at: Time,
  last_used_at: nullable(Time),
});

const param = Type.Optional(Type.String({ maxLength: 2_048 }));

const authorization = {
  client_id: param,
  redirect_uri: param,
  response_type: param,
  scope: param,
  state: param,
  code_challenge: param,
  code_challenge_method: param,
};

/** Other parameters are ignored: RFC 6749, section 3.1. */
export const AuthorizeQuery = Type.Object(authorization, { additionalProperties: Type.String() });

export const AuthorizeDecision = closed({ ...authorization, decision: names(["approve", "deny"]) });

export const RedirectTo = closed({ redirect_to: Type.String() });

const form = (properties: TProperties) => Type.Object(properties, { additionalProperties: Type.String() });

const clientAuthentication = { client_id: param, client_secret: param };

export const TokenForm = form({
  ...clientAuthentication,
  grant_type: param,
  code: param,
  redirect_uri: param,
  code_verifier: param,
  refresh_token: param,
  scope: param,
});

export const TokenOnlyForm = form({
  ...clientAuthentication,
  token: Type.Optional(Type.String({ maxLength: 8_192 })),
  token_type_hint: param,
});

export const TokenAnswer = Type.Object({
  access_token: Type.String(),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer({ description: "seconds" }),
  refresh_token: Type.String({ description: "works once: the response has the next one" }),
  scope: Type.String({ description: "scopes separated by spaces" }),
});

/** For a token that is inactive, or another client's, the response says nothing more. */
export const Introspection = Type.Object({
  active: Type.Boolean(),
  scope: Type.Optional(Type.String()),
  client_id: Type.Optional(Type.String()),
  token_type: Type.Optional(Type.String()),
  sub: Type.Optional(Type.String({ description: "the user's id" })),
  exp: Type.Optional(Type.Integer({ description: "seconds since the Unix epoch" })),
});

export const Empty = closed({});

export const Jwks = closed({
  keys: Type.Array(
    closed({
      kty: Type.Literal("RSA"),
      n: Type.String(),
      e: Type.String(),
      kid: Type.String(),
      alg: Type.Literal("RS256"),
      use: Type.Literal("sig"),
    }),
  ),
});

export const ServerMetadata = Type.Object({
  issuer: Type.String(),
  authorization_endpoint: Type.String(),
  token_endpoint: Type.String(),
  revocation_endpoint: Type.String(),
  introspection_endpoint: Type.String(),
  jwks_uri: Type.String(),
  scopes_supported: Type.Array(Type.String()),
  response_types_supported: Type.Array(Type.String()),
  grant_types_supported: Type.Array(Type.String()),
  code_challenge_methods_supported: Type.Array(Type.String()),
});
