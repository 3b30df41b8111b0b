/**
 * The OpenAPI 3.1 document, generated from the route table, the schemas that the server validates with, and the texts and
 * examples of this room. Pure: a document for a public URL.
 */

import { scopeText } from "../http/dispatch.ts";
import { KEEP_ALIVE_S } from "../http/limits.ts";
import { DEFAULT_RATE_LIMITS, type RateClass } from "../http/rate-limiter.ts";
import { API_BASE, type Route } from "../http/route.ts";
import { definitionsFor, type Json, type JsonObject } from "./components.ts";
import { CONVENTIONS, ERROR_TABLE, LICENSE } from "./convention-text.ts";
import {
  headerParameters,
  PARAMETERS,
  pathParameters,
  queryParameters,
  requestBody,
  security,
  securitySchemes,
} from "./openapi-requests.ts";
import { ERROR, errorResponses, failures, HEADERS, OAUTH_ERROR, ranges, success } from "./openapi-responses.ts";
import { type OperationText, TAGS } from "./operation-text.ts";
import { capitalized, SharedParts } from "./shared-parts.ts";
import { MESSAGE_PACK, TEXTS } from "./texts.ts";

/**
 * Generates the document, one step per route: generating it all at once would delay trading.
 * @param publicUrl without a trailing slash @param version of the exchange
 */
export function* openApi(
  routes: readonly Route[],
  publicUrl: string,
  version: string,
): Generator<undefined, JsonObject> {
  const shared = new SharedParts();
  const paths = yield* pathsOf(routes, publicUrl, shared);
  const own = shared.of("schemas");
  const given = { ...PARAMETERS, ...shared.of("parameters") };
  // There are generators that find no reference within a shared parameter.
  const parameters = inlined(given, definitionsFor([given]));
  const components = {
    securitySchemes: securitySchemes(publicUrl),
    parameters,
    headers: HEADERS,
    responses: errorResponses(),
  };
  const named = definitionsFor([paths, own, parameters]);
  const schemas = { Error: ERROR, OAuthError: OAUTH_ERROR, ...named, ...own };
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
  A head has at most 16 KB, a body 64 KiB, or 8 KiB on sign-in routes. HEAD works wherever GET does: same status and headers, no body.
- **Lists** take \`limit\` and \`cursor\` and return \`{items, next_cursor}\`, newest first (\`created_at\` never rises down a list);
  \`next_cursor\` is null on the last page. Only \`/feed\` has numbered pages.
- **Rate limits** count each route separately over a sliding minute. \`RateLimit-Limit\`, \`RateLimit-Remaining\` and
  \`RateLimit-Reset\` (seconds) state the remaining allowance, \`GET /me/limits\` that of all routes; 429 adds \`Retry-After\`. The
  limits by \`x-rate-class\` (none: \`default\`), unless the exchange has others:
${Object.entries(RATE_TEXTS)
  .map(([name, text]) => `  - \`${name}\`: ${text}.`)
  .join("\n")}
- **Tokens** go in \`Authorization: Bearer\`: a session token (15 minutes, refreshable), a personal access token (for bots), or an
  OAuth access token. Each operation states the token kinds, the scope and the KYC tier that it needs.
- **Idle connections** stay open for the \`Keep-Alive: timeout=${KEEP_ALIVE_S}\` seconds of each response, and end within 12.
- **Request ids**: the response repeats \`X-Request-Id\`, or has a generated one.
- **Deprecated** routes say so in every response, at least 30 days before their removal: \`Deprecation\`, \`Sunset\`, \`Link\`.

The WebSocket is described in [asyncapi.json](${publicUrl}/asyncapi.json).

### Errors

${ERROR_TABLE}`;
}

// ---------------------------------------------------------------- paths

/** A path that the server also serves at the root is one path with two servers. */
function* pathsOf(routes: readonly Route[], publicUrl: string, shared: SharedParts): Generator<undefined, JsonObject> {
  const uses = new Map<string, number>();
  for (const route of routes) {
    for (const parameter of parametersOf(route, textOf(route))) {
      const content = JSON.stringify(parameter);
      uses.set(content, (uses.get(content) ?? 0) + 1);
    }
    yield;
  }
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    const item = (paths[path] ??= {});
    const method = route.method.toLowerCase();
    item[method] ??= operation(route, shared, uses);
    yield;
    if (!route.unversioned) continue;
    const isVersioned = routes.some((other) => other.path === route.path && !other.unversioned);
    const versioned = isVersioned ? [{ url: publicUrl + API_BASE, description: "Within the API's version" }] : [];
    item["servers"] = [...versioned, { url: publicUrl, description: "Outside the API's versions" }];
  }
  return paths;
}

function textOf(route: Route): OperationText {
  const text = TEXTS[`${route.method} ${route.path}`];
  if (text === undefined) throw new Error(`${route.method} ${route.path} is not documented`);
  return text;
}

function parametersOf(route: Route, text: OperationText): Json[] {
  return [...pathParameters(route, text), ...queryParameters(route, text), ...headerParameters(route)];
}

const SCHEMAS = "#/components/schemas/";

/** The value with every reference to a schema replaced by the schema, which has none to itself. */
function inlined(value: Json, schemas: JsonObject): Json {
  if (Array.isArray(value)) return value.map((each) => inlined(each, schemas));
  if (value === null || typeof value !== "object") return value;
  const { $ref, ...rest } = value as JsonObject;
  const others = Object.fromEntries(Object.entries(rest).map(([name, each]) => [name, inlined(each as Json, schemas)]));
  if (typeof $ref !== "string" || !$ref.startsWith(SCHEMAS)) return $ref === undefined ? others : { $ref, ...others };
  const named = inlined(schemas[$ref.slice(SCHEMAS.length)] as Json, schemas);
  return { ...(named as JsonObject), ...others };
}

/**
 * A parameter that several operations have becomes a reference. Bodies and successes don't: there are generators that look
 * for their content in the operation itself, and only their schemas are shared.
 * @param uses by content: how many operations have the parameter
 */
function operation(route: Route, shared: SharedParts, uses: ReadonlyMap<string, number>): JsonObject {
  const text = textOf(route);
  const parameters = parametersOf(route, text).map((parameter) => {
    const { $ref, name } = parameter as JsonObject;
    if ($ref !== undefined || uses.get(JSON.stringify(parameter)) === 1) return parameter;
    return shared.refTo("parameters", capitalized(text.id) + capitalized(String(name)), parameter);
  });
  return {
    operationId: text.id,
    tags: [text.tag],
    summary: route.summary,
    description: [text.description ?? "", accessText(route)].filter(Boolean).join("\n\n"),
    ...(route.deprecated === null ? {} : { deprecated: true }),
    security: security(route),
    "x-access": route.access,
    "x-token-kinds": route.access === "public" ? [] : [...route.tokens],
    ...(route.scope === null ? {} : { "x-scope": scopeText(route) }),
    ...(route.minTier === 0 ? {} : { "x-min-kyc-tier": route.minTier }),
    ...(route.rateClass === "default" ? {} : { "x-rate-class": route.rateClass }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === null ? {} : { requestBody: requestBody(route, route.body, text, shared) }),
    responses: { [route.status]: success(route, text, shared), ...ranges(route, text), ...failures(route) },
  };
}

function accessText({ access, optionalAuth, tokens, scope, orScope, minTier, oauth }: Route): string {
  if (oauth) return "";
  if (optionalAuth) return "Public; accepts a session token.";
  if (access === "public") return "Public: no credentials.";
  const kinds = tokens.length === 3 ? "Any token" : "Session token only";
  const who = access === "operator" ? ", of an operator" : "";
  const other = orScope === null ? "" : ` or \`${orScope}\``;
  const withScope = scope === null ? "" : `, with the scope \`${scope}\`${other}`;
  return `${kinds}${who}${withScope}${minTier === 0 ? "" : `; KYC tier ${minTier} or higher`}.`;
}

const { user, address, orderUser, orderAddress, authIdentifier, refreshAddress, registrationAddress } =
  DEFAULT_RATE_LIMITS;
const perAddress = (requests: number): string => `${requests} per minute and IP address`;
const perEmail = `${authIdentifier} per minute and email address`;
/** The default limits; the settings of an exchange may differ. */
const RATE_TEXTS: Readonly<Record<Exclude<RateClass, "none">, string>> = {
  default: `${user} per minute and user; without a token, ${perAddress(address)}`,
  order: `${orderUser} per minute and user, ${perAddress(orderAddress)}`,
  identifier:
    `${perEmail}, and as many from each IP address from which its account signed in during the last 30 days; ` +
    perAddress(address),
  mail: `${perEmail}, ${perAddress(address)}`,
  sign_up: `${perEmail}, ${perAddress(registrationAddress)}`,
  refresh: perAddress(refreshAddress),
  registration: perAddress(registrationAddress),
};
