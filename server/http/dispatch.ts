/**
 * Routes compiled for serving, and the one way into their handlers: HTTP, the WebSocket's operations and the control
 * socket share each route's schemas. Who may enter: admission.ts. Knows no sockets.
 */
import { Check as accepts } from "typebox/value";
import { badRequest } from "../errors.ts";
import type { OrderedReads, Origin } from "../trading/types.ts";
import { deprecationHeaders, type Header } from "./deprecation.ts";
import { MAX_BODY_BYTES, MAX_SIGN_IN_BODY_BYTES } from "./limits.ts";
import type { RequestReply, Route, RouteRequest } from "./route.ts";
import { isForOwnPages } from "./security-headers.ts";
import { BUILDER_CODE } from "./text-schemas.ts";
import { type Check, compileQuery, compileSchema } from "./validate.ts";

/** A route with what serving a request needs of it, derived once at startup. */
export interface CompiledRoute {
  readonly route: Route;
  /** Names its rate buckets: method and path. */
  readonly template: string;
  /** Parses and checks a query string. */
  readonly query: Check<unknown>;
  /** Checks the query's values where they arrive as JSON. */
  readonly values: Check<unknown>;
  readonly hasParams: boolean;
  readonly body: Check<unknown> | null;
  readonly maxBodyBytes: number;
  /** Every field of its body is optional: an empty body stands for `{}`. */
  readonly takesNothing: boolean;
  /** The rate limits count what the body names. */
  readonly countsBody: boolean;
  /** A token endpoint, called without a token. */
  readonly signsIn: boolean;
  /** Only pages of PUBLIC_URL may use it. */
  readonly isOwn: boolean;
  /** It needs the client's address even where nothing is limited. */
  readonly needsAddress: boolean;
  /** Headers of all its responses. */
  readonly headers: readonly Header[];
}

const VARIES: readonly Header[] = [["Vary", "Accept-Encoding"]];

export function compileRoutes(routes: readonly Route[]): CompiledRoute[] {
  return routes.map((route) => {
    const { method, path, rateClass, oauth } = route;
    const body = route.body === null ? null : compileSchema(route.body);
    const isNamed = rateClass === "identifier" || rateClass === "mail" || rateClass === "sign_up";
    const signsIn = isNamed || rateClass === "refresh" || oauth;
    // Without limits, trading and reading need it only for a token that is bound to addresses.
    const needsAddress = (rateClass !== "order" && method !== "GET") || route.headers.length > 0;
    return {
      route,
      template: `${method} ${path}`,
      query: compileQuery(route.query),
      values: compileSchema(route.query),
      hasParams: path.includes(":"),
      body,
      maxBodyBytes: signsIn ? MAX_SIGN_IN_BODY_BYTES : MAX_BODY_BYTES,
      takesNothing: method === "POST" && !oauth && route.body !== null && accepts(route.body, {}),
      countsBody: isNamed,
      signsIn,
      isOwn: isForOwnPages(route),
      needsAddress,
      headers: [...deprecationHeaders(route.deprecated), ...(route.compressed ? VARIES : [])],
    };
  });
}

/** The scope that a route requires, or two of which either suffices; null where it requires none. */
export function scopeText({ scope, orScope }: Pick<Route, "scope" | "orScope">): string | null {
  return orScope === null ? scope : `${scope} or ${orScope}`;
}

/**
 * Runs the handler, which returns a response, a promise of one, or undefined where it responds through the reply itself.
 * The response of an ordered route leaves after the messages about what it shows.
 */
export function execute(route: Route, request: RouteRequest, reply: RequestReply, reads: OrderedReads): void {
  const response = route.handler(request);
  if (response === undefined) return;
  const respond = (json: string): void => {
    if (route.enveloped) reply.data(json);
    else reply.plain(route.status, json);
  };
  const reader = route.ordered && request.principal !== null ? request.principal.userId : null;
  if (!(response instanceof Promise)) {
    if (reader === null) respond(response);
    else reads.afterMessagesSent(reader, request.now, () => respond(response));
    return;
  }
  response.then(
    (json) => {
      if (json === undefined) return;
      if (reader === null) respond(json);
      else reads.afterCommitted(reader, () => respond(json));
    },
    (error) => reply.fail(error),
  );
}

/** The origin of a request without connection and builder code. */
export const DIRECT: Origin = { connection: null, builderCode: null };

/** The origin with a builder code. @param name of its header or field @throws ApiError 40000 */
export function creditedTo(origin: Origin, builderCode: string, name: string): Origin {
  if (!BUILDER_CODE.accepts(builderCode)) {
    throw badRequest(`${name}: 1 to 32 characters of A-Z a-z 0-9 . _ -, not "." or ".."`);
  }
  return { connection: origin.connection, builderCode };
}
