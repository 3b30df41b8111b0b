/**
 * The OpenAPI 3.1 document, made of the route table, of the schemas that the server validates with, and of the texts and
 * examples beside it. Pure: a document for a public URL.
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
 * Makes the document, a step for each route: all of it at once would keep trading waiting.
 * @param publicUrl without a slash in the end @param version of the exchange
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
      summary: "Markets whose outcomes are traded as shares: REST.",
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
- **Answers** are enveloped, \`{code, msg, data}\`: \`code\` is 0 on success; on an error \`data\` is null, and 5xx add a \`trace_id\`.
  Only what other standards fix has no envelope: OAuth, key sets, health, metrics, these documents.
- **Encoding**: JSON, or the same objects as MessagePack with \`Accept: ${MESSAGE_PACK}\`; bodies may be \`Content-Type: ${MESSAGE_PACK}\`.
  A body has at most 64 KiB, 8 KiB where one signs in. HEAD is answered wherever GET is: same status and headers, no body.
- **Lists** take \`limit\` and \`cursor\` and answer \`{items, next_cursor}\`, newest first (\`created_at\` never rises down a list); \`next_cursor\` is null at the end. \`/feed\`
  alone has numbered pages.
- **Rate limits** count each route by itself over a sliding minute. \`RateLimit-Limit\`, \`RateLimit-Remaining\` and
  \`RateLimit-Reset\` (seconds) say what is left, \`GET /me/limits\` of all of them; 429 adds \`Retry-After\`.
- **Tokens** come in \`Authorization: Bearer\`: a session's (15 minutes, refreshed), a personal access token (for bots), or an OAuth
  access token. Each operation says which kinds, which scope and which KYC tier it takes.
- **Request ids**: \`X-Request-Id\` is echoed, or made.
- **What will go** says so in each of its answers: \`Deprecation\`, \`Sunset\`, \`Link\`; at least 30 days before.

The WebSocket is described in [asyncapi.json](${publicUrl}/asyncapi.json).

### Errors

${ERROR_TABLE}`;
}

// ---------------------------------------------------------------- paths

/** A path that is served at the root too is one path with two servers. */
function* pathsOf(routes: readonly Route[], publicUrl: string): Generator<undefined, JsonObject> {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    const item = (paths[path] ??= {});
    item[route.method.toLowerCase()] ??= operation(route);
    yield;
    if (!route.unversioned) continue;
    const isVersioned = routes.some((other) => other.path === route.path && !other.unversioned);
    const versioned = isVersioned ? [{ url: publicUrl + API_BASE, description: "With the API" }] : [];
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
  if (knowsHolder) return "Public; a session's token may be sent.";
  if (access === "public") return "Public: no credentials.";
  const kinds = tokens.length === 3 ? "Any token" : "A session's token only";
  const who = access === "operator" ? ", of an operator" : "";
  const other = orScope === null ? "" : ` or \`${orScope}\``;
  const withScope = scope === null ? "" : `, with the scope \`${scope}\`${other}`;
  return `${kinds}${who}${withScope}${minTier === 0 ? "" : `; KYC tier ${minTier} or more`}.`;
}

const { user, address, orderUser, orderAddress, authIdentifier, refreshAddress, registrationAddress } =
  DEFAULT_RATE_LIMITS;
/** As the exchange is set up unless its operator says otherwise. */
const RATE_TEXTS: Readonly<Record<RateClass, string>> = {
  default: `Rate limit: ${user} a minute for a user, without a token ${address} for an address.`,
  order: `Rate limit of orders: ${orderUser} a minute for a user and ${orderAddress} for an address.`,
  identifier:
    `Rate limit: ${authIdentifier} a minute for an e-mail address, and as many from each IP address from which its account ` +
    `signed in during the last 30 days; ${address} for an IP address.`,
  mail: `Rate limit: ${authIdentifier} a minute for an e-mail address, ${address} for an IP address.`,
  refresh: `Rate limit: ${refreshAddress} a minute for an IP address.`,
  registration: `Rate limit: ${registrationAddress} a minute for an IP address.`,
  none: "",
};

// ---------------------------------------------------------------- requests

/** Paths whose first parameter takes a slug beside the id. */
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
    description:
      "Comes back with the answer, and stands in the exchange's log; visible ASCII. Made where it is missing.",
    schema: { type: "string", maxLength: 128 },
  },
  BuilderCode: {
    name: "X-Builder-Code",
    in: "header",
    description: "The integration that the fills of what this places are credited to.",
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,32}$" },
    example: "acme-terminal",
  },
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Makes a retry safe: for 24 hours, also over restarts, the same request with the same key returns the first answer " +
      "and does nothing; with another body, or on another route, the key returns 40900. Requests with one key that are in " +
      "flight together share one answer. A request that was refused keeps no key. Each user has keys of its own, " +
      `${MAX_IDEMPOTENCY_KEYS_PER_USER} at most in 24 hours (42900).`,
    schema: { type: "string", pattern: `^[!-~]{1,${MAX_IDEMPOTENCY_KEY_LENGTH}}$` },
  },
  IfNoneMatch: {
    name: "If-None-Match",
    in: "header",
    description: "The ETag of what the caller has: 304 where it is the same still.",
    schema: { type: "string" },
  },
};

/** A POST whose fields are all optional may come without a body. */
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

// ---------------------------------------------------------------- answers

const HEADERS: JsonObject = {
  RequestId: { description: "The request's own id, or one that was made.", schema: { type: "string" } },
  RateLimitLimit: { description: "Requests a minute, where limits are on.", schema: { type: "integer" } },
  RateLimitRemaining: { description: "What is left of them.", schema: { type: "integer" } },
  RateLimitReset: { description: "Seconds until the whole limit is free again.", schema: { type: "integer" } },
  RetryAfter: { description: "Seconds to wait before another try.", schema: { type: "integer", minimum: 1 } },
  WWWAuthenticate: { description: "`Bearer`: what is wanted.", schema: { type: "string" } },
  Location: { description: "Where the browser is sent.", schema: { type: "string" } },
  ETag: { description: "Of this text.", schema: { type: "string" } },
};
const headerRef = (name: string): Json => ({ $ref: `#/components/headers/${name}` });
const REQUEST_ID = { "X-Request-Id": headerRef("RequestId") };
const RATE_HEADERS = {
  "RateLimit-Limit": headerRef("RateLimitLimit"),
  "RateLimit-Remaining": headerRef("RateLimitRemaining"),
  "RateLimit-Reset": headerRef("RateLimitReset"),
};

/** No route may be deprecated, and what nothing refers to has no place among the components. */
const DEPRECATION_HEADERS: JsonObject = {
  Deprecation: { description: "Since when it is deprecated (RFC 9745).", schema: { type: "string" } },
  Sunset: { description: "From when on it may be gone (RFC 8594).", schema: { type: "string" } },
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
  if (route.status === 302) return { description: "The browser is sent on.", headers };
  const schema = route.enveloped ? envelope(route.response) : documented(route.response);
  const example = (route.enveloped ? { code: 0, msg: "ok", data: response } : response) as Json;
  const type = route.contentType?.split(";")[0] ?? JSON_TYPE;
  const content: Record<string, Json> = { [type]: { schema, example } };
  if (route.contentType === null) content[MESSAGE_PACK] = { schema };
  if (csv !== undefined) content[CSV] = { schema: documented(Text), example: csv };
  return { description: SUCCESSES[route.status]!, headers, content };
}

const SUCCESSES: Readonly<Record<number, string>> = { 200: "Done.", 201: "Made.", 202: "Accepted." };

/** Statuses of the errors that a route may answer with. */
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
  if (route.headers.includes("if-none-match")) found["304"] = { description: "The caller has it." };
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
    description: "No good token; code 2002 where it has expired.",
    examples: { 40100: "the token is not valid", 2002: "the token has expired" },
  },
  403: {
    name: "Forbidden",
    description: "KYC tier too low, scope missing, or not the caller's to do.",
    examples: { 40300: "the token lacks the scope orders:write" },
  },
  404: { name: "NotFound", description: "There is no such thing.", examples: { 4040: "no such market" } },
  409: {
    name: "Conflict",
    description: "A name that is in use, or a state that doesn't allow it.",
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
      "Balance or shares don't suffice, the market is not open, or the account has its maximum number of live orders.",
    examples: {
      42201: "needs 42000000 micro-USDC, 1000000 are available",
      42202: "needs 100 shares, 40 are available",
      42203: "the market is closed",
      42204: "the account has 500 of at most 500 live orders: cancel some first",
    },
  },
  429: {
    name: "LimitExceeded",
    description: "A rate limit or the daily activity is exceeded.",
    examples: {
      42900: "at most 30 requests a minute",
      42901: "daily activity: 90000000 of 100000000 micro-USDC are used, the order adds 42000000",
    },
  },
  500: {
    name: "Internal",
    description: "An error of the exchange's own, or no response in time: check before you retry.",
    examples: { 50000: "internal error" },
  },
  503: {
    name: "Overloaded",
    description: "Overloaded, starting or stopping: nothing was done.",
    examples: { 50300: "the exchange is starting" },
  },
};

const ERROR: Json = {
  type: "object",
  description: "Every error, but for OAuth's.",
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
  found["OAuthError"] = { description: "As RFC 6749 has it.", headers: REQUEST_ID, content };
  return found;
}
