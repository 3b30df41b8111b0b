/**
 * The OpenAPI 3.1 document, generated from the route table, the schemas that the server validates with, and the texts and
 * examples of this room. Pure: a document for a public URL.
 */

import type { TSchema } from "typebox";
import type { SCOPES } from "../accounts/types.ts";
import { ErrorKind } from "../errors.ts";
import { scopeText } from "../http/dispatch.ts";
import { IDEMPOTENCY_KEY } from "../http/idempotency.ts";
import { MAX_IDEMPOTENCY_KEY_LENGTH, MAX_IDEMPOTENCY_KEYS_PER_USER } from "../http/limits.ts";
import { DEFAULT_RATE_LIMITS, type RateClass } from "../http/rate-limiter.ts";
import type { Route } from "../http/route.ts";
import { API_BASE } from "../http/route.ts";
import { Id, Text } from "../http/schemas.ts";
import { isForOwnPages } from "../http/security-headers.ts";
import { CLIENT_ORDER_ID_PATTERN } from "../trading/schemas.ts";
import { ACCOUNT_TEXTS, OAUTH_TEXTS, SIGN_IN_TEXTS, WALLET_TEXTS } from "./account-texts.ts";
import { definitionsFor, documented, type Json, type JsonObject } from "./components.ts";
import { CONVENTIONS, ERROR_TABLE, LICENSE } from "./convention-text.ts";
import { type OperationText, type OperationTexts, TAGS } from "./operation-text.ts";
import { OPERATOR_TEXTS, SERVICE_TEXTS } from "./operator-texts.ts";
import { SECOND_FACTOR_TEXTS } from "./second-factor-texts.ts";
import { MARKET_TEXTS, ORDER_TEXTS, PROPOSAL_TEXTS } from "./trading-texts.ts";

const TEXTS: OperationTexts = {
  ...ORDER_TEXTS,
  ...MARKET_TEXTS,
  ...WALLET_TEXTS,
  ...ACCOUNT_TEXTS,
  ...SIGN_IN_TEXTS,
  ...SECOND_FACTOR_TEXTS,
  ...OAUTH_TEXTS,
  ...PROPOSAL_TEXTS,
  ...OPERATOR_TEXTS,
  ...SERVICE_TEXTS,
};
const JSON_TYPE = "application/json";
const MESSAGE_PACK = "application/msgpack";
const FORM = "application/x-www-form-urlencoded";
const CSV = "text/csv";

/**
 * Generates the document, one step per route: generating it all at once would delay trading.
 * @param publicUrl without a trailing slash @param version of the exchange
 */
export function* openApi(
  routes: readonly Route[],
  publicUrl: string,
  version: string,
): Generator<undefined, JsonObject> {
  const paths = yield* pathsOf(routes, publicUrl);
  const components = {
    securitySchemes: securitySchemes(publicUrl),
    parameters: PARAMETERS,
    headers: HEADERS,
    responses: errorResponses(),
  };
  const schemas = { Error: ERROR, OAuthError: OAUTH_ERROR, ...definitionsFor([paths]) };
  yield;
  return {
    openapi: "3.1.0",
    info: {
      title: "Prediction exchange",
      version,
      summary: "Trade shares in the outcomes of markets: REST.",
      description: description(publicUrl),
      license: LICENSE,
    },
    servers: [{ url: publicUrl + API_BASE, description: "This exchange" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: { ...components, schemas },
  };
}

function description(publicUrl: string): string {
  return `${CONVENTIONS}
- **Responses** have an envelope, \`{code, msg, data}\`: \`code\` is 0 on success; on errors, \`data\` is null, and 5xx add a
  \`trace_id\`. Formats of other standards have no envelope: OAuth, key sets, health, metrics, these documents.
- **Encoding**: JSON, or the same objects as MessagePack with \`Accept: ${MESSAGE_PACK}\`; bodies may be \`Content-Type: ${MESSAGE_PACK}\`.
  A body has at most 64 KiB, or 8 KiB on sign-in routes. HEAD works wherever GET does: same status and headers, no body.
- **Lists** take \`limit\` and \`cursor\` and return \`{items, next_cursor}\`, newest first (\`created_at\` never rises down a list);
  \`next_cursor\` is null on the last page. Only \`/feed\` has numbered pages.
- **Rate limits** count each route separately over a sliding minute. \`RateLimit-Limit\`, \`RateLimit-Remaining\` and
  \`RateLimit-Reset\` (seconds) state the remaining allowance, \`GET /me/limits\` that of all routes; 429 adds \`Retry-After\`.
- **Tokens** go in \`Authorization: Bearer\`: a session token (15 minutes, refreshable), a personal access token (for bots), or an
  OAuth access token. Each operation states the token kinds, the scope and the KYC tier that it needs.
- **Request ids**: the response repeats \`X-Request-Id\`, or has a generated one.
- **Deprecated** routes say so in every response, at least 30 days before their removal: \`Deprecation\`, \`Sunset\`, \`Link\`.

The WebSocket is described in [asyncapi.json](${publicUrl}/asyncapi.json).

### Errors

${ERROR_TABLE}`;
}

// ---------------------------------------------------------------- paths

/** A path that the server also serves at the root is one path with two servers. */
function* pathsOf(routes: readonly Route[], publicUrl: string): Generator<undefined, JsonObject> {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    const item = (paths[path] ??= {});
    item[route.method.toLowerCase()] ??= operation(route);
    yield;
    if (!route.unversioned) continue;
    const isVersioned = routes.some((other) => other.path === route.path && !other.unversioned);
    const versioned = isVersioned ? [{ url: publicUrl + API_BASE, description: "Within the API's version" }] : [];
    item["servers"] = [...versioned, { url: publicUrl, description: "Outside the API's versions" }];
  }
  return paths;
}

function operation(route: Route): JsonObject {
  const text = TEXTS[`${route.method} ${route.path}`];
  if (text === undefined) throw new Error(`${route.method} ${route.path} is not documented`);
  const parameters = [...pathParameters(route, text), ...queryParameters(route, text), ...headerParameters(route)];
  return {
    operationId: text.id,
    tags: [text.tag],
    summary: route.summary,
    description: [text.description ?? "", accessText(route), RATE_TEXTS[route.rateClass]].filter(Boolean).join("\n\n"),
    ...(route.deprecated === null ? {} : { deprecated: true }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === null ? {} : { requestBody: requestBody(route, route.body, text) }),
    responses: { [route.status]: success(route, text), ...failures(route) },
    security: security(route),
    "x-access": route.access,
    "x-token-kinds": route.access === "public" ? [] : [...route.tokens],
    "x-scope": scopeText(route),
    "x-min-kyc-tier": route.minTier,
    "x-rate-class": route.rateClass,
  };
}

function accessText({ access, knowsHolder, tokens, scope, orScope, minTier, oauth }: Route): string {
  if (oauth) return "";
  if (knowsHolder) return "Public; accepts a session token.";
  if (access === "public") return "Public: no credentials.";
  const kinds = tokens.length === 3 ? "Any token" : "Session token only";
  const who = access === "operator" ? ", of an operator" : "";
  const other = orScope === null ? "" : ` or \`${orScope}\``;
  const withScope = scope === null ? "" : `, with the scope \`${scope}\`${other}`;
  return `${kinds}${who}${withScope}${minTier === 0 ? "" : `; KYC tier ${minTier} or higher`}.`;
}

const { user, address, orderUser, orderAddress, authIdentifier, refreshAddress, registrationAddress } =
  DEFAULT_RATE_LIMITS;
/** The default limits; the settings of an exchange may differ. */
const RATE_TEXTS: Readonly<Record<RateClass, string>> = {
  default: `Rate limit: ${user} per minute and user; without a token, ${address} per minute and IP address.`,
  order: `Rate limit of orders: ${orderUser} per minute and user, ${orderAddress} per minute and IP address.`,
  identifier:
    `Rate limit: ${authIdentifier} per minute and email address, and as many from each IP address from which its account ` +
    `signed in during the last 30 days; ${address} per minute and IP address.`,
  mail: `Rate limit: ${authIdentifier} per minute and email address, ${address} per minute and IP address.`,
  refresh: `Rate limit: ${refreshAddress} per minute and IP address.`,
  registration: `Rate limit: ${registrationAddress} per minute and IP address.`,
  none: "",
};

// ---------------------------------------------------------------- requests

/** Paths whose first parameter is an id or a slug. */
const NAMED_BY_SLUG = [
  "/markets/:id",
  "/orderbook/:market_id",
  "/events/:id",
  "/admin/markets/:id",
  "/admin/proposals/:id",
];
const ID_OR_SLUG: Json = {
  anyOf: [documented(Id), { type: "string", minLength: 1 }],
};
const OTHER_PARAMETERS: JsonObject = {
  provider: { type: "string", minLength: 1 },
  client_id: { type: "string", minLength: 1 },
  code: { type: "string", pattern: "^[A-Za-z0-9._-]{1,32}$" },
  client_order_id: { type: "string", pattern: CLIENT_ORDER_ID_PATTERN },
};

function pathParameters({ path }: Route, { params = {} }: OperationText): Json[] {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
  const isSlugged = NAMED_BY_SLUG.some((start) => path.startsWith(start));
  return names.map((name, i) => {
    const schema = OTHER_PARAMETERS[name] ?? (isSlugged && i === 0 ? ID_OR_SLUG : documented(Id));
    const description = isSlugged && i === 0 ? { description: "id or slug" } : {};
    return { name, in: "path", required: true, ...description, schema, example: params[name]! };
  });
}

interface ObjectSchema {
  readonly properties: Readonly<Record<string, TSchema & { readonly description?: string }>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
}

function queryParameters({ query }: Route, { query: example = {} }: OperationText): Json[] {
  const { properties, required = [] } = query as unknown as ObjectSchema;
  return Object.entries(properties).map(([name, schema]) => {
    const { description, ...rest } = documented(schema) as JsonObject;
    const shown = example[name];
    return {
      name,
      in: "query",
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
      ...(shown === undefined ? {} : { example: shown }),
    };
  });
}

function headerParameters(route: Route): Json[] {
  const { credited, headers } = route;
  const names = ["RequestId"];
  if (credited) names.push("BuilderCode");
  if (headers.includes("if-none-match")) names.push("IfNoneMatch");
  if (headers.includes(IDEMPOTENCY_KEY)) names.push("IdempotencyKey");
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

const PARAMETERS: JsonObject = {
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    description: "Appears in the response and in the exchange's log; visible ASCII. Generated if missing.",
    schema: { type: "string", maxLength: 128 },
  },
  BuilderCode: {
    name: "X-Builder-Code",
    in: "header",
    description: "The integration that receives credit for the fills of these orders.",
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,32}$" },
    example: "acme-terminal",
  },
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Makes a retry safe: for 24 hours, even across restarts, the same request with the same key returns the first response " +
      "and does nothing; with another body, or on another route, the key returns 40900. Requests with one key that are in " +
      "flight together share one response. A rejected request keeps no key. Each user has its own keys, " +
      `at most ${MAX_IDEMPOTENCY_KEYS_PER_USER} in 24 hours (42900).`,
    schema: { type: "string", pattern: `^[!-~]{1,${MAX_IDEMPOTENCY_KEY_LENGTH}}$` },
  },
  IfNoneMatch: {
    name: "If-None-Match",
    in: "header",
    description: "The ETag of the caller's copy: 304 if it is current.",
    schema: { type: "string" },
  },
};

/** A POST whose fields are all optional needs no body. */
function requestBody(route: Route, body: TSchema, { body: example = {} }: OperationText): JsonObject {
  const { required = [] } = body as unknown as ObjectSchema;
  const schema = documented(body);
  return {
    required: route.oauth || route.method !== "POST" || required.length > 0,
    content: {
      [route.oauth ? FORM : JSON_TYPE]: { schema, example },
      ...(route.oauth ? {} : { [MESSAGE_PACK]: { schema } }),
    },
  };
}

function security({ access, knowsHolder, scope, orScope, tokens, oauth }: Route): Json[] {
  if (oauth) return [{ client: [] }, {}];
  if (knowsHolder) return [{}, { bearer: [] }];
  if (access === "public") return [];
  const ways: Json[] = [{ bearer: [] }];
  if (tokens.includes("oauth")) ways.push({ oauth2: scope === null ? [] : [scope] });
  if (tokens.includes("oauth") && orScope !== null) ways.push({ oauth2: [orScope] });
  return ways;
}

const SCOPE_TEXTS: Readonly<Record<(typeof SCOPES)[number], string>> = {
  "markets:read": "view market data, prices, order books",
  "markets:propose": "submit new market proposals",
  "orders:write": "place, cancel and manage orders",
  "portfolio:read": "view positions, balances, trade history",
};

function securitySchemes(publicUrl: string): JsonObject {
  const base = publicUrl + API_BASE;
  return {
    bearer: {
      type: "http",
      scheme: "bearer",
      description:
        "A session's access token (JWT), a personal access token (`pm_pat_...`), or an OAuth access token (JWT).",
    },
    oauth2: {
      type: "oauth2",
      description: "For third parties acting for a user.",
      flows: {
        authorizationCode: {
          authorizationUrl: `${base}/oauth/authorize`,
          tokenUrl: `${base}/oauth/token`,
          refreshUrl: `${base}/oauth/token`,
          scopes: SCOPE_TEXTS,
        },
      },
    },
    client: { type: "http", scheme: "basic", description: "An OAuth client's id and secret; or both in the form." },
  };
}

// ---------------------------------------------------------------- responses

const HEADERS: JsonObject = {
  RequestId: { description: "The request's own id, or a generated one.", schema: { type: "string" } },
  RateLimitLimit: { description: "Requests per minute, if limits apply.", schema: { type: "integer" } },
  RateLimitRemaining: { description: "Remaining requests.", schema: { type: "integer" } },
  RateLimitReset: { description: "Seconds until the full limit is available again.", schema: { type: "integer" } },
  RetryAfter: { description: "Seconds to wait before a retry.", schema: { type: "integer", minimum: 1 } },
  WWWAuthenticate: { description: "`Bearer`: the expected scheme.", schema: { type: "string" } },
  Location: { description: "The redirect's target.", schema: { type: "string" } },
  ETag: { description: "Of this document.", schema: { type: "string" } },
};
const headerRef = (name: string): Json => ({ $ref: `#/components/headers/${name}` });
const REQUEST_ID = { "X-Request-Id": headerRef("RequestId") };
const RATE_HEADERS = {
  "RateLimit-Limit": headerRef("RateLimitLimit"),
  "RateLimit-Remaining": headerRef("RateLimitRemaining"),
  "RateLimit-Reset": headerRef("RateLimitReset"),
};

/** Not among the components: there may be no deprecated route to refer to them. */
const DEPRECATION_HEADERS: JsonObject = {
  Deprecation: { description: "When the deprecation began (RFC 9745).", schema: { type: "string" } },
  Sunset: { description: "The earliest time of removal (RFC 8594).", schema: { type: "string" } },
};

function headersOf(route: Route): JsonObject {
  return {
    ...REQUEST_ID,
    ...(route.rateClass === "none" ? {} : RATE_HEADERS),
    ...(route.deprecated === null ? {} : DEPRECATION_HEADERS),
    ...(route.status === 302 ? { Location: headerRef("Location") } : {}),
    ...(route.headers.includes("if-none-match") ? { ETag: headerRef("ETag") } : {}),
  };
}

/** The envelope of a success, which has no trace_id. */
function envelope(data: TSchema): JsonObject {
  return {
    type: "object",
    required: ["code", "msg", "data"],
    properties: { code: { type: "integer", const: 0 }, msg: { type: "string" }, data: documented(data) },
    additionalProperties: false,
  };
}

function success(route: Route, { response, csv }: OperationText): JsonObject {
  const headers = headersOf(route);
  if (route.status === 302) return { description: "Redirect.", headers };
  const schema = route.enveloped ? envelope(route.response) : documented(route.response);
  const example = (route.enveloped ? { code: 0, msg: "ok", data: response } : response) as Json;
  const type = route.contentType?.split(";")[0] ?? JSON_TYPE;
  const content: Record<string, Json> = { [type]: { schema, example } };
  if (route.contentType === null) content[MESSAGE_PACK] = { schema };
  if (csv !== undefined) content[CSV] = { schema: documented(Text), example: csv };
  return { description: SUCCESSES[route.status]!, headers, content };
}

const SUCCESSES: Readonly<Record<number, string>> = { 200: "Success.", 201: "Created.", 202: "Accepted." };

/** Returns the error statuses that a route may respond with. */
export function errorStatuses(route: Route): number[] {
  const { access, path, body, rateClass, oauth, unversioned, query } = route;
  const { errors = [] } = TEXTS[`${route.method} ${path}`] ?? {};
  const found = new Set<number>([400, 500, ...errors]);
  if (access !== "public" || oauth) found.add(401).add(403);
  if (isForOwnPages(route)) found.add(403);
  if (path.includes(":") || "market_id" in (query as unknown as ObjectSchema).properties) found.add(404);
  if (body !== null) found.add(413);
  if (rateClass !== "none") found.add(429);
  if (!unversioned || path === "/readyz") found.add(503);
  return [...found].sort((a, b) => a - b);
}

function failures(route: Route): JsonObject {
  const found: Record<string, Json> = {};
  if (route.headers.includes("if-none-match"))
    found["304"] = { description: "Not modified: the caller's copy is current." };
  for (const status of errorStatuses(route)) found[status] = failure(route, status);
  return found;
}

function failure(route: Route, status: number): Json {
  if (route.path === "/readyz" && status === 503) {
    const content = { [JSON_TYPE]: { schema: documented(route.response), example: { status: "starting" } } };
    return { description: "Not ready.", headers: REQUEST_ID, content };
  }
  return { $ref: `#/components/responses/${route.oauth ? "OAuthError" : RESPONSES[status]!.name}` };
}

interface ErrorText {
  readonly name: string;
  readonly description: string;
  /** `msg` of its examples, by code. */
  readonly examples: Readonly<Record<number, string>>;
}

const RESPONSES: Readonly<Record<number, ErrorText>> = {
  400: {
    name: "BadRequest",
    description: "A parameter or field is invalid or missing: `msg` names it and the bound.",
    examples: { 40000: "price: must be <= 9999" },
  },
  401: {
    name: "Unauthenticated",
    description: "No valid token; code 2002 if it has expired.",
    examples: { 40100: "the token is not valid", 2002: "the token has expired" },
  },
  403: {
    name: "Forbidden",
    description: "KYC tier too low, scope missing, or action not permitted.",
    examples: { 40300: "the token lacks the scope orders:write" },
  },
  404: { name: "NotFound", description: "No such resource.", examples: { 4040: "no such market" } },
  409: {
    name: "Conflict",
    description: "The name is in use, or the current state doesn't allow the request.",
    examples: { 40900: "the order is finished" },
  },
  413: {
    name: "TooLarge",
    description: "The body is too large.",
    examples: { 40000: "the body is larger than 65536 bytes" },
  },
  422: {
    name: "Unprocessable",
    description:
      "Insufficient balance or shares, market not open, or the account has its maximum number of live orders.",
    examples: {
      42201: "needs 42000000 micro-USDC, 1000000 are available",
      42202: "needs 100 shares, 40 are available",
      42203: "the market is closed",
      42204: "the account has 500 of at most 500 live orders: cancel some first",
    },
  },
  429: {
    name: "LimitExceeded",
    description: "The request exceeds a rate limit or the daily activity limit.",
    examples: {
      42900: "at most 30 requests a minute",
      42901: "daily activity: 90000000 of 100000000 micro-USDC are used, the order adds 42000000",
    },
  },
  500: {
    name: "Internal",
    description: "Internal error, or no response in time: check before you retry.",
    examples: { 50000: "internal error" },
  },
  503: {
    name: "Overloaded",
    description: "Overloaded, starting or stopping: the request had no effect.",
    examples: { 50300: "the exchange is starting" },
  },
};

const ERROR: Json = {
  type: "object",
  description: "Every error except OAuth's.",
  required: ["code", "msg", "data"],
  properties: {
    code: { type: "integer", enum: [...new Set(Object.values(ErrorKind).map(({ code }) => code))] },
    msg: { type: "string" },
    data: { type: "null" },
    trace_id: { type: "string", minLength: 1, description: "on 5xx, equal to X-Request-Id: quote it in reports" },
  },
  additionalProperties: false,
};
const OAUTH_ERROR: Json = {
  type: "object",
  description: "RFC 6749, section 5.2.",
  required: ["error"],
  properties: { error: { type: "string" }, error_description: { type: "string" } },
};

function errorResponses(): JsonObject {
  const found: Record<string, Json> = {};
  for (const [status, { name, description, examples }] of Object.entries(RESPONSES)) {
    const trace = Number(status) >= 500 ? { trace_id: "example" } : {};
    const shown = Object.entries(examples).map(([code, msg]) => {
      return [code, { value: { code: Number(code), msg, data: null, ...trace } }];
    });
    const waits = status === "429" || status === "503" ? { "Retry-After": headerRef("RetryAfter") } : {};
    const asks = status === "401" ? { "WWW-Authenticate": headerRef("WWWAuthenticate") } : {};
    const schema = { $ref: "#/components/schemas/Error" };
    const content = { [JSON_TYPE]: { schema, examples: Object.fromEntries(shown) }, [MESSAGE_PACK]: { schema } };
    found[name] = { description, headers: { ...REQUEST_ID, ...RATE_HEADERS, ...asks, ...waits }, content };
  }
  const content = {
    [JSON_TYPE]: {
      schema: { $ref: "#/components/schemas/OAuthError" },
      example: { error: "invalid_grant", error_description: "Invalid grant: authorization code is invalid" },
    },
  };
  found["OAuthError"] = { description: "An error as RFC 6749 defines it.", headers: REQUEST_ID, content };
  return found;
}
