/**
 * A route: its path, schemas and access, and its handler. A handler returns JSON text, now or later; or it returns
 * undefined, keeps the reply, and responds itself once the log has committed. It never sees a socket.
 */

import type { Static, TSchema, TUnknown } from "typebox";
import type { Principal, Scope, TokenKind } from "../accounts/types.ts";
import { type ApiError, notFound } from "../errors.ts";
import type { Answer, Origin } from "../trading/types.ts";
import type { ClientAddress } from "./client-address.ts";
import type { Deprecation } from "./deprecation.ts";
import type { RateClass } from "./rate-limiter.ts";
import { NoQuery } from "./schemas.ts";

/** The path of every route that isn't `unversioned`. */
export const API_BASE = "/api/v1";

/** The response to one request. Only the first call has an effect. */
export interface Responder extends Answer {
  readonly requestId: string;
  /** A body that is not enveloped: text, or, over HTTP and of a route with a `contentType`, bytes. */
  plain(status: number, body: string | Uint8Array): void;
  /**
   * A success in pieces, over HTTP: the next is asked for when the one before has left. What they throw first is answered
   * as an error; after that the answer is cut short, which chunked encoding tells. @param type its Content-Type
   */
  stream(type: string, fileName: string, pieces: AsyncIterable<string>): void;
  /** Sends a browser elsewhere, over HTTP. @param error why, where what it asked for failed: logged and counted as such */
  redirect(location: string, error?: ApiError): void;
  /** Adds a header to the answer, over HTTP. */
  header(name: string, value: string): void;
  /** Answers whatever a handler threw. */
  fail(thrown: unknown): void;
}

/**
 * What a handler gets. @template Query the validated query @template Body the validated body @template Caller null only
 * where the route's access allows it @template Header the names of the headers that the route reads
 */
export interface RouteRequest<
  Query = unknown,
  Body = unknown,
  Caller extends Principal | null = Principal | null,
  Header extends string = string,
> {
  /** When the request was complete, in ms since the Unix epoch. */
  now: number;
  /** Null without a valid token, and on public routes that don't ask for one. */
  readonly principal: Caller;
  /** The client's; unknown on hot paths without limits. */
  readonly address: ClientAddress;
  /** The headers that the route reads, "" where they are missing. */
  readonly headers: Readonly<Record<Header, string>>;
  readonly origin: Origin;
  /** Path parameters in the order of the path, as text. */
  readonly params: readonly [string, string];
  readonly query: Query;
  body: Body;
  readonly reply: Responder;
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below /api/v1, or at the root where `unversioned`. */
  readonly path: string;
  readonly unversioned: boolean;
  readonly summary: string;
  /** For operators it is the same whether one asks over HTTP or from the machine's own shell (control-socket.ts). */
  readonly access: "public" | "user" | "operator";
  /** On a public route: the handler asks whose good token came with the request, if one did. */
  readonly knowsHolder: boolean;
  readonly tokens: readonly TokenKind[];
  readonly scope: Scope | null;
  /** Another scope that will do in its place. */
  readonly orScope: Scope | null;
  /** KYC tier that the caller must have. */
  readonly minTier: number;
  /** The session must have been made with a second factor. */
  readonly secondFactor: boolean;
  /** Accounts whose e-mail address isn't verified may use it: reads, and what ends access. */
  readonly unverified: boolean;
  /** Which rate limits count a call. */
  readonly rateClass: RateClass;
  /** Orders that it places may be credited to an integration. */
  readonly credited: boolean;
  /** Request headers that the handler reads, in lower case. */
  readonly headers: readonly string[];
  readonly query: TSchema;
  readonly body: TSchema | null;
  /** The body is a form (RFC 6749), and errors have that standard's shape. */
  readonly oauth: boolean;
  /** Of `data`, or of the whole body where not enveloped. */
  readonly response: TSchema;
  readonly status: number;
  readonly enveloped: boolean;
  /** Of a success that is neither JSON nor MessagePack, null otherwise. */
  readonly contentType: string | null;
  /** Where a person whom a link led here reads what went wrong, in place of JSON; null where only programs come. */
  readonly failurePage: ((error: ApiError) => string) | null;
  /** Cache-Control of a success; null where nobody may keep it. */
  readonly cache: string | null;
  /** It will go: each answer says so. */
  readonly deprecated: Deprecation | null;
  readonly handler: (request: RouteRequest) => string | Promise<string | undefined> | undefined;
}

type Optional =
  | "unversioned"
  | "access"
  | "knowsHolder"
  | "tokens"
  | "scope"
  | "orScope"
  | "minTier"
  | "secondFactor"
  | "unverified"
  | "rateClass"
  | "credited"
  | "headers"
  | "query"
  | "body"
  | "oauth"
  | "status"
  | "enveloped"
  | "contentType"
  | "failurePage"
  | "cache"
  | "deprecated";
type Access = Route["access"];

/** The caller of a route: known where it needs a token. Operators' routes also serve the machine's own shell, which has none. */
type CallerOf<Level extends Access, Needed extends Scope | null> = Level extends "user"
  ? Principal
  : Needed extends Scope
    ? Principal
    : Principal | null;

/** A route as a room writes it: defaults left out, and its handler typed by its schemas, access and headers. */
type RouteInput<
  Query extends TSchema,
  Body extends TSchema | null,
  Level extends Access,
  Needed extends Scope | null,
  Header extends string,
> = Omit<Route, Optional | "handler"> &
  Partial<Omit<Pick<Route, Optional>, "query" | "body" | "access" | "scope" | "headers">> & {
    readonly query?: Query;
    readonly body?: Body;
    readonly access?: Level;
    readonly scope?: Needed;
    readonly headers?: readonly Header[];
    handler(
      request: RouteRequest<
        Static<Query>,
        Body extends TSchema ? Static<Body> : unknown,
        CallerOf<Level, Needed>,
        Header
      >,
    ): ReturnType<Route["handler"]>;
  };

/** Access for the user's own sign-in alone: no personal access token and no third party. */
export const OWN_SESSION = { access: "user", tokens: ["session"] } as const;

const ANY_TOKEN: readonly TokenKind[] = ["session", "oauth", "pat"];
const NO_HEADERS: readonly string[] = [];

/** Fills in the defaults of a route. The types of its request are gone afterwards: dispatch validates against the schemas. */
export function route<
  Query extends TSchema = typeof NoQuery,
  Body extends TSchema | null = TUnknown,
  Level extends Access = "public",
  Needed extends Scope | null = null,
  Header extends string = never,
>(input: RouteInput<Query, Body, Level, Needed, Header>): Route {
  const { handler, ...given } = input;
  return {
    unversioned: false,
    access: input.scope ? "user" : "public",
    knowsHolder: false,
    tokens: ANY_TOKEN,
    scope: null,
    orScope: null,
    minTier: 0,
    secondFactor: false,
    unverified: input.method === "GET",
    rateClass: "default",
    credited: false,
    headers: NO_HEADERS,
    query: NoQuery,
    body: null,
    oauth: false,
    status: 200,
    enveloped: true,
    contentType: null,
    failurePage: null,
    cache: null,
    deprecated: null,
    ...given,
    handler: handler as Route["handler"],
  };
}

/** A path id: a positive integer, or it names nothing. @throws ApiError 4040 */
export function pathId(text: string, what: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0;
  if (id === 0 || !Number.isSafeInteger(id)) throw notFound(what);
  return id;
}
