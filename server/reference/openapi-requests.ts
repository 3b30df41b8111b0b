/** The request side of an OpenAPI operation: parameters, headers, bodies and security. */

import type { TSchema } from "typebox";
import type { SCOPES } from "../accounts/types.ts";
import { MAX_IDEMPOTENCY_KEY_LENGTH, MAX_IDEMPOTENCY_KEYS_PER_USER } from "../http/limits.ts";
import { API_BASE, type Route } from "../http/route.ts";
import { Id } from "../http/schemas.ts";
import { BUILDER_CODE, CLIENT_ORDER_ID } from "../http/text-schemas.ts";
import { type Json, type JsonObject, nameOf, requestSchema } from "./components.ts";
import type { OperationText } from "./operation-text.ts";
import { capitalized, type SharedParts } from "./shared-parts.ts";
import { FORM, JSON_TYPE, MESSAGE_PACK, type ObjectSchema } from "./texts.ts";

/** Paths whose first parameter is an id or a slug. */
const NAMED_BY_SLUG = [
  "/markets/:id",
  "/orderbook/:market_id",
  "/events/:id",
  "/admin/markets/:id",
  "/admin/proposals/:id",
];
const ID_OR_SLUG: Json = {
  anyOf: [requestSchema(Id), { type: "string", minLength: 1 }],
};
const OTHER_PARAMETERS: JsonObject = {
  provider: { type: "string", minLength: 1 },
  client_id: { type: "string", minLength: 1 },
  token: { type: "string", minLength: 1 },
  code: { type: "string", ...BUILDER_CODE.schema },
  hash: { type: "string", pattern: "^[0-9a-f]{32}$" },
  file: { type: "string", pattern: "^\\d{4}-\\d{2}-\\d{2}\\.(parquet|jsonl\\.gz)$" },
  client_order_id: { type: "string", ...CLIENT_ORDER_ID.schema },
};

export function pathParameters({ path }: Route, { params = {} }: OperationText): Json[] {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  const isSlugged = NAMED_BY_SLUG.some((start) => path.startsWith(start));
  return names.map((name, i) => {
    const schema = OTHER_PARAMETERS[name] ?? (isSlugged && i === 0 ? ID_OR_SLUG : requestSchema(Id));
    const description = isSlugged && i === 0 ? { description: "id or slug" } : {};
    return { name, in: "path", required: true, ...description, schema, example: params[name] ?? null };
  });
}

export function queryParameters({ query }: Route, { query: example = {} }: OperationText): Json[] {
  const { properties, required = [] } = query as unknown as ObjectSchema;
  return Object.entries(properties).map(([name, schema]) => {
    const { description, ...rest } = requestSchema(schema) as JsonObject;
    const shown = example[name];
    return {
      name,
      in: "query",
      ...(required.includes(name) ? { required: true } : {}),
      ...(description === undefined ? {} : { description }),
      schema: rest,
      ...(shown === undefined ? {} : { example: shown }),
    };
  });
}

export function headerParameters(route: Route): Json[] {
  const { credited, idempotencyKey, headers } = route;
  const names = ["RequestId"];
  if (credited) names.push("BuilderCode");
  if (headers.includes("if-none-match")) names.push("IfNoneMatch");
  if (headers.includes("range")) names.push("Range", "IfRange");
  if (idempotencyKey === "kept") names.push("IdempotencyKey");
  if (idempotencyKey === "client_order_id") names.push("OrderIdempotencyKey");
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

export const PARAMETERS: JsonObject = {
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    description:
      "Appears in the response and in the exchange's log. Generated if missing, or if it isn't 1 to 64 letters, digits, `.`, " +
      "`_` and `-`.",
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,64}$" },
  },
  BuilderCode: {
    name: "X-Builder-Code",
    in: "header",
    description: "The integration that receives credit for the fills of these orders.",
    schema: { type: "string", ...BUILDER_CODE.schema },
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
  OrderIdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description: "Stands for the `client_order_id` where the body has none, and so makes a retry safe.",
    schema: { type: "string", ...CLIENT_ORDER_ID.schema },
  },
  IfNoneMatch: {
    name: "If-None-Match",
    in: "header",
    description: "The ETag of the caller's copy: 304 if it is current.",
    schema: { type: "string" },
  },
  Range: {
    name: "Range",
    in: "header",
    description:
      "One range of bytes, such as `bytes=0-1023` or `bytes=-512`: 206. Several, or another unit: the whole file.",
    schema: { type: "string" },
  },
  IfRange: {
    name: "If-Range",
    in: "header",
    description: "The ETag of the part that the caller has: the range counts only if the file is still the same.",
    schema: { type: "string" },
  },
};

/** A POST whose fields are all optional needs no body. */
export function requestBody(
  route: Route,
  body: TSchema,
  { id, body: example = {} }: OperationText,
  shared: SharedParts,
): JsonObject {
  const { required = [] } = body as unknown as ObjectSchema;
  const schema =
    nameOf(body) === null
      ? shared.refTo("schemas", `${capitalized(id)}Body`, requestSchema(body))
      : requestSchema(body);
  return {
    ...(route.oauth || route.method !== "POST" || required.length > 0 ? { required: true } : {}),
    content: {
      [route.oauth ? FORM : JSON_TYPE]: { schema, example },
      ...(route.oauth ? {} : { [MESSAGE_PACK]: { schema } }),
    },
  };
}

export function security({ access, optionalAuth, scope, orScope, tokens, oauth }: Route): Json[] {
  if (oauth) return [{ client: [] }, {}];
  if (optionalAuth) return [{}, { bearer: [] }];
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

export function securitySchemes(publicUrl: string): JsonObject {
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
