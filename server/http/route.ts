/**
 * A route: its path, schemas and access, and its handler. A handler returns JSON text, now or later; or it returns
 * undefined, keeps the reply, and responds itself once the log has committed. It never sees a socket.
 */
import type { Static, TSchema, TUnknown } from "typebox";
import { assert } from "../../engine/util/assert.ts";
import type { Principal, Scope, TokenKind } from "../accounts/types.ts";
import { type ApiError, notFound } from "../errors.ts";
import type { Origin, Reply } from "../trading/types.ts";
import type { ClientAddress } from "./client-address.ts";
import type { Deprecation } from "./deprecation.ts";
import type { RateClass } from "./rate-limiter.ts";
import { NoQuery } from "./schemas.ts";

/** The path of every route that isn't `unversioned`. */
export const API_BASE = "/api/v1";

/** What precedes the bytes of a file. */
export interface FileResponse {
  /** 200, or 206 for a part. */
  readonly status: 200 | 206;
  readonly type: string;
  readonly name: string;
  /** Bytes of the response. */
  readonly length: number;
  /** Cache-Control. */
  readonly cache: string;
}

/** The response to one request. Only the first call has an effect. */
export interface RequestReply extends Reply {
  readonly requestId: string;
  /** A body without envelope: text, or bytes over HTTP on a route with a `contentType`. */
  plain(status: number, body: string | Uint8Array): void;
  /**
   * A success in chunks, over HTTP: it requests a chunk when the one before has left. An error before the first chunk is
   * the response; a later one truncates it, which chunked encoding shows. @param type its Content-Type
   */
  stream(type: string, fileName: string, chunks: AsyncIterable<string>): void;
  /** A file of known length, or a part of it, over HTTP; errors as with `stream`. */
  file(file: FileResponse, chunks: AsyncIterable<Uint8Array>): void;
  /** Redirects a browser, over HTTP. @param error of the failed request, to log and count */
  redirect(location: string, error?: ApiError): void;
  /** Adds a header to the response, over HTTP. */
  header(name: string, value: string): void;
  /** Responds with an error that a handler threw. */
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
  /** "" where the client sent none. */
  readonly idempotencyKey: string;
  /** The headers that the route reads, "" where they are missing. */
  readonly headers: Readonly<Record<Header, string>>;
  readonly origin: Origin;
  /** Path parameters in the order of the path, as text. */
  readonly params: readonly [string, string];
  readonly query: Query;
  body: Body;
  readonly reply: RequestReply;
}

/**
 * What a client that sends an Idempotency-Key gets. `kept`: a repeat gets the first response. `client_order_id`: the key is
 * the order's, where the body has none. `harmless`: a repeat has no second effect, whether it has a key or not. Otherwise
 * the route rejects a key, and says what to use instead.
 */
export type IdempotencyKeyUse = "kept" | "client_order_id" | "harmless" | { readonly instead: string };

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below /api/v1, or at the root where `unversioned`. */
  readonly path: string;
  readonly unversioned: boolean;
  readonly summary: string;
  /** Operators' routes work over HTTP and from the machine's own shell (control-socket.ts). */
  readonly access: "public" | "user" | "operator";
  /** On a public route: the handler uses the holder of a valid token, if the request has one. */
  readonly optionalAuth: boolean;
  readonly tokens: readonly TokenKind[];
  readonly scope: Scope | null;
  /** Another scope that suffices instead. */
  readonly orScope: Scope | null;
  /** The KYC tier that the caller needs. */
  readonly minTier: number;
  /** The session needs a second factor. */
  readonly secondFactor: boolean;
  /** Accounts with an unverified email address may use it: reads, and routes that end access. */
  readonly unverified: boolean;
  /** A call may write to the log: it is refused while nothing can be acknowledged. */
  readonly writes: boolean;
  /** The rate limits that count a call. */
  readonly rateClass: RateClass;
  /** The response shows the caller's own trading: it leaves after the messages about what it shows. */
  readonly ordered: boolean;
  /** Builder codes may credit its orders to an integration. */
  readonly credited: boolean;
  /** What an Idempotency-Key does. */
  readonly idempotencyKey: IdempotencyKeyUse;
  /** Request headers that the handler reads, in lower case. */
  readonly headers: readonly string[];
  readonly query: TSchema;
  readonly body: TSchema | null;
  /** The body is a form (RFC 6749), and errors have that standard's shape. */
  readonly oauth: boolean;
  /** Without a body of its own, it takes the form with which mail programs end mails (RFC 8058). */
  readonly oneClick: boolean;
  /** The schema of `data`, or of the whole body without an envelope. */
  readonly response: TSchema;
  readonly status: number;
  readonly enveloped: boolean;
  /** The content type of a successful response that is neither JSON nor MessagePack; else null. */
  readonly contentType: string | null;
  /** The URL of a page that explains an error to a person who followed a link here; null: only programs use the route. */
  readonly failurePage: ((error: ApiError) => string) | null;
  /** Cache-Control of a success; null: no-store. */
  readonly cache: string | null;
  /** Clients that accept gzip get long responses compressed. */
  readonly compressed: boolean;
  /** It will be removed: each response says so. */
  readonly deprecated: Deprecation | null;
  readonly handler: (request: RouteRequest) => string | Promise<string | undefined> | undefined;
}

type Optional =
  | "unversioned"
  | "access"
  | "optionalAuth"
  | "tokens"
  | "scope"
  | "orScope"
  | "minTier"
  | "secondFactor"
  | "unverified"
  | "writes"
  | "rateClass"
  | "ordered"
  | "credited"
  | "idempotencyKey"
  | "headers"
  | "query"
  | "body"
  | "oauth"
  | "oneClick"
  | "status"
  | "enveloped"
  | "contentType"
  | "failurePage"
  | "cache"
  | "compressed"
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

/** For a route whose response alone shows a secret, which the exchange doesn't keep. */
export const SECRET_ONCE: IdempotencyKeyUse = {
  instead: "only one response can show the secret; if it is lost, delete what it made and create another",
};
/** For a route that begins a session. */
export const SIGNS_IN: IdempotencyKeyUse = { instead: "sign in again after a lost response" };

/** Access for the user's own sign-in alone: no personal access token and no third party. */
export const OWN_SESSION = { access: "user", tokens: ["session"] } as const;

/** A read of the caller's own trading. */
export const OWN_READ = { scope: "portfolio:read", ordered: true } as const;

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
  const { idempotencyKey = input.method === "POST" ? null : "harmless" } = given;
  assert(idempotencyKey !== null, `POST ${input.path} says what an Idempotency-Key does`);
  return {
    unversioned: false,
    access: input.scope ? "user" : "public",
    optionalAuth: false,
    tokens: ANY_TOKEN,
    scope: null,
    orScope: null,
    minTier: 0,
    secondFactor: false,
    unverified: input.method === "GET",
    writes: input.method !== "GET",
    rateClass: "default",
    ordered: false,
    credited: false,
    headers: NO_HEADERS,
    query: NoQuery,
    body: null,
    oauth: false,
    oneClick: false,
    status: 200,
    enveloped: true,
    contentType: null,
    failurePage: null,
    cache: null,
    compressed: false,
    deprecated: null,
    ...given,
    idempotencyKey,
    handler: handler as Route["handler"],
  };
}

/** Matches the paths of a template such as /orders/:id, and captures its parameters. */
export function pathPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll(/:\w+/g, "([^/]+)")}$`);
}

/** Parses a path id, a positive integer. @throws ApiError 4040 for any other text */
export function pathId(text: string, what: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0;
  if (id === 0 || !Number.isSafeInteger(id)) throw notFound(what);
  return id;
}
