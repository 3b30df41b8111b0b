/** The response side of an OpenAPI operation: successes, errors and response headers. */

import type { TSchema } from "typebox";
import { assert } from "../../engine/util/assert.ts";
import { ErrorKind } from "../errors.ts";
import type { Route } from "../http/route.ts";
import { Nothing, Text } from "../http/schemas.ts";
import { isForOwnPages } from "../http/security-headers.ts";
import { type Json, type JsonObject, nameOf, responseSchema } from "./components.ts";
import type { OperationText } from "./operation-text.ts";
import { capitalized, type SharedParts } from "./shared-parts.ts";
import { CSV, JSON_TYPE, MESSAGE_PACK, type ObjectSchema, TEXTS } from "./texts.ts";

export const HEADERS: JsonObject = {
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
    properties: { code: { type: "integer", const: 0 }, msg: { type: "string" }, data: responseSchema(data) },
  };
}

/** "Order", "OrderPage"; null for data without a name. */
function dataName(data: TSchema): string | null {
  const name = nameOf(data);
  if (name !== null) return name;
  if (data === Nothing) return "Empty";
  const { properties = {} } = data as { properties?: Record<string, { items?: TSchema }> };
  const item = properties["items"]?.items;
  const itemName = "next_cursor" in properties && Object.keys(properties).length === 2 && item ? nameOf(item) : null;
  return itemName === null ? null : `${itemName}Page`;
}

export function success(route: Route, { id, response, csv }: OperationText, shared: SharedParts): JsonObject {
  const headers = headersOf(route);
  if (route.status === 302) return { description: "Redirect.", headers };
  const schema = route.enveloped
    ? shared.refTo("schemas", `${dataName(route.response) ?? capitalized(id)}Response`, envelope(route.response))
    : responseSchema(route.response);
  const example = (route.enveloped ? { code: 0, msg: "ok", data: response } : response) as Json;
  const type = route.contentType?.split(";")[0] ?? JSON_TYPE;
  const content: Record<string, Json> = { [type]: { schema, example } };
  if (route.contentType === null) content[MESSAGE_PACK] = { schema };
  if (csv !== undefined) content[CSV] = { schema: responseSchema(Text), example: csv };
  return { description: SUCCESSES[route.status] ?? "Success.", headers, content };
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

export function failures(route: Route): JsonObject {
  const found: Record<string, Json> = {};
  if (route.headers.includes("if-none-match"))
    found["304"] = { description: "Not modified: the caller's copy is current." };
  for (const status of errorStatuses(route)) found[status] = failure(route, status);
  return found;
}

/** What a route that takes a Range responds to one. */
export function ranges(route: Route, { response }: OperationText): JsonObject {
  if (!route.headers.includes("range") || route.contentType === null) return {};
  const content = { [route.contentType]: { schema: responseSchema(route.response), example: response as Json } };
  const range = { description: "Which bytes, of how many.", schema: { type: "string" } };
  const headers = { ...headersOf(route), "Content-Range": range };
  return {
    206: { description: "The part of the file that Range names.", headers, content },
    416: { description: "The file has no byte of the range.", headers },
  };
}

function failure(route: Route, status: number): Json {
  if (route.path === "/readyz" && status === 503) {
    const content = { [JSON_TYPE]: { schema: responseSchema(route.response), example: { status: "starting" } } };
    return { description: "Not ready.", headers: REQUEST_ID, content };
  }
  const response = RESPONSES[status];
  assert(response !== undefined, "every error status has a description");
  return { $ref: `#/components/responses/${route.oauth ? "OAuthError" : response.name}` };
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

export const ERROR: Json = {
  type: "object",
  description: "Every error except OAuth's.",
  required: ["code", "msg", "data"],
  properties: {
    code: { type: "integer", enum: [...new Set(Object.values(ErrorKind).map(({ code }) => code))] },
    msg: { type: "string" },
    data: { type: "null" },
    trace_id: { type: "string", minLength: 1, description: "on 5xx, equal to X-Request-Id: quote it in reports" },
  },
};
export const OAUTH_ERROR: Json = {
  type: "object",
  description: "RFC 6749, section 5.2.",
  required: ["error"],
  properties: { error: { type: "string" }, error_description: { type: "string" } },
};

export function errorResponses(): JsonObject {
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
