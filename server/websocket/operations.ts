/**
 * A client's requests over its socket: parses a message, runs the operation through its route or on the connection itself,
 * and responds. It sends nothing that no operation asked for.
 */
import type { Static } from "typebox";
import type { Clock } from "../../engine/util/clock.ts";
import { ApiError, asApiError, badRequest } from "../errors.ts";
import { parseJson } from "../http/body.ts";
import { type CompiledRoute, creditedTo, execute } from "../http/dispatch.ts";
import { decodeMessage } from "../http/message-pack.ts";
import { RateLimited, type RateState } from "../http/rate-limiter.ts";
import { errorFields, newRequestId } from "../http/reply.ts";
import type { RequestReply, RouteRequest } from "../http/route.ts";
import { closed, Id } from "../http/schemas.ts";
import { type Check, compileSchema } from "../http/validate.ts";
import { type Logger, logInternal } from "../logger.ts";
import { JsonReply } from "../orders/json-reply.ts";
import type { OrderedReads } from "../trading/types.ts";
import type { Counters } from "../util/counters.ts";
import { subscribedJson } from "./channels.ts";
import type { SocketConnection } from "./connection.ts";
import type { ConnectionActions } from "./connection-actions.ts";
import type { OperationAdmission } from "./operation-admission.ts";
import * as S from "./schemas.ts";
import { CONNECTION_OPERATIONS, ROUTE_OPERATIONS } from "./schemas.ts";
import type { Subscription } from "./types.ts";

export interface OperationOptions {
  readonly reads: OrderedReads;
  readonly logger: Logger;
  readonly counters: Counters;
  readonly admission: OperationAdmission;
  readonly clock: Clock;
}

/** What operations need of the hub. */
export interface OperationHost {
  /** Sends a response, at the latest when the current microtasks end. */
  respond(connection: SocketConnection, message: string): void;
}

/** The response to one operation of a connection. */
class OperationReply extends JsonReply implements RequestReply {
  /** As the client gave it. */
  id: number | null = null;
  /** The remaining allowance of the rate limits; null: nothing is limited; undefined: limits don't count the operation. */
  rate: RateState | null | undefined;
  private readonly connection: SocketConnection;
  private readonly hub: OperationHost;
  private readonly options: OperationOptions;
  /** Seconds to wait before a retry, where a limit rejected it. */
  private retryAfter: number | null = null;
  private ownRequestId: string | null = null;
  private isAnswered = false;

  constructor(connection: SocketConnection, hub: OperationHost, options: OperationOptions) {
    super();
    this.connection = connection;
    this.hub = hub;
    this.options = options;
  }

  get requestId(): string {
    this.ownRequestId ??= newRequestId();
    return this.ownRequestId;
  }

  data(json: string): void {
    this.send(`"code":0,"msg":"ok","data":${json}`);
  }

  plain(_status: number, json: string): void {
    this.data(json);
  }

  redirect(): void {
    throw new Error("no operation redirects");
  }

  file(): void {
    throw new Error("no operation responds with a file");
  }

  stream(): void {
    throw new Error("no operation responds in chunks");
  }

  header(): void {}

  error(error: ApiError): void {
    if (error instanceof RateLimited) this.rate = error.rate;
    this.retryAfter = error.retryAfter;
    this.options.counters.rejected(error);
    logInternal(this.options.logger, error, this.requestId);
    this.send(errorFields(error, this.requestId));
  }

  fail(thrown: unknown): void {
    this.error(asApiError(thrown));
  }

  private send(fields: string): void {
    if (this.isAnswered) return;
    this.isAnswered = true;
    const rate = this.rate === undefined ? "" : `,"rate_limit":${rateJson(this.rate)}`;
    const retry = this.retryAfter === null ? "" : `,"retry_after":${this.retryAfter}`;
    this.hub.respond(this.connection, `{"id":${this.id},${fields}${rate}${retry}}`);
  }
}

function rateJson(rate: RateState | null): string {
  if (rate === null) return "null";
  return `{"limit":${rate.limit},"remaining":${rate.remaining},"reset":${rate.reset}}`;
}

/** The fields of an operation that runs a route. */
interface RouteMessage {
  data?: Record<string, unknown>;
  builder_code?: string | null;
  timestamps?: boolean;
}

type ConnectionOperation = keyof typeof CONNECTION_OPERATIONS;
type MessageOf<Op extends ConnectionOperation> = Static<(typeof CONNECTION_OPERATIONS)[Op]["request"]>;
/** What each operation of the connection does with its message. */
type ConnectionHandlers = {
  readonly [Op in ConnectionOperation]: (
    connection: SocketConnection,
    message: MessageOf<Op>,
    reply: OperationReply,
  ) => void;
};

type RunOnConnection = (connection: SocketConnection, parsed: unknown, reply: OperationReply) => void;

/** The handlers, each behind the check of its operation's schema. */
function checked(handlers: ConnectionHandlers): ReadonlyMap<string, RunOnConnection> {
  const ops = Object.keys(handlers) as ConnectionOperation[];
  return new Map(
    ops.map((op) => {
      const check = compileSchema(CONNECTION_OPERATIONS[op].request);
      const handler = handlers[op] as RunOnConnection;
      return [op, (connection, parsed, reply) => handler(connection, check(parsed), reply)];
    }),
  );
}

interface RouteOperation {
  readonly compiled: CompiledRoute;
  readonly param: string | null;
  readonly timestamps: boolean;
  readonly either: { readonly compiled: CompiledRoute; readonly param: string; readonly check: Check<unknown> } | null;
}

const checkId = compileSchema(closed({ id: Id }));
const checkRouteMessage = compileSchema(S.RouteOperation);
const OPERATION_NAMES = [...Object.keys(CONNECTION_OPERATIONS), ...ROUTE_OPERATIONS.keys()].join(", ");

export class Operations {
  private readonly options: OperationOptions;
  private readonly hub: OperationHost;
  /** By operation. */
  private readonly routes = new Map<string, RouteOperation>();
  /** By operation. */
  private readonly ownOperations: ReadonlyMap<string, RunOnConnection>;
  private readonly actions: ConnectionActions;

  constructor(options: OperationOptions, hub: OperationHost, actions: ConnectionActions) {
    this.options = options;
    this.hub = hub;
    this.actions = actions;
    const named = (template: string): CompiledRoute => options.admission.route(template);
    for (const [op, { template, param, timestamps, either }] of ROUTE_OPERATIONS) {
      const other =
        either === null ? null : { ...either, compiled: named(either.template), check: compileSchema(either.data) };
      this.routes.set(op, { compiled: named(template), param, timestamps, either: other });
    }
    this.ownOperations = checked({
      subscribe: (connection, message, reply) => this.subscribe(connection, message, reply),
      unsubscribe: (connection, message, reply) => this.unsubscribe(connection, message, reply),
      ping: (_connection, _message, reply) => reply.data(`{"now":${options.clock.now()}}`),
      cancel_on_disconnect: (connection, { enabled }, reply) => {
        actions.setCancelOnDisconnect(connection, enabled);
        reply.data(`{"enabled":${enabled}}`);
      },
      auth: (connection, { token }, reply) => this.presentToken(connection, token, reply),
      resume: (connection, { sequence }, reply) => this.resume(connection, sequence, reply),
    });
  }

  /** Runs the operation of one message and responds, now or later. @param now ms */
  run(connection: SocketConnection, message: ArrayBuffer, isBinary: boolean, now: number): void {
    const reply = new OperationReply(connection, this.hub, this.options);
    try {
      const parsed = parseMessage(message, isBinary, connection.format === "msgpack") as {
        id?: unknown;
        op?: unknown;
      } | null;
      // An error echoes the id too, so that the client can tell which message failed.
      const id = parsed?.id;
      if (Number.isSafeInteger(id)) reply.id = id as number;
      const op = typeof parsed?.op === "string" ? parsed.op : "";
      const operation = this.routes.get(op);
      if (operation !== undefined) return this.runRoute(connection, operation, parsed, now, reply);
      const own = this.ownOperations.get(op);
      if (own === undefined) throw badRequest(`op: must be one of ${OPERATION_NAMES}`);
      own(connection, parsed, reply);
    } catch (error) {
      reply.fail(error);
    }
  }

  // ---------------------------------------------------------------- operations of routes

  /** Runs an operation through its route: the same admission, schemas and handler as over HTTP. */
  private runRoute(
    connection: SocketConnection,
    operation: RouteOperation,
    parsed: unknown,
    now: number,
    reply: OperationReply,
  ): void {
    const { reads } = this.options;
    const { address, origin: own } = connection;
    const { route } = operation.compiled;
    const principal = this.options.admission.admit(connection, operation.compiled, "trade", now, reply);
    const { data = {}, builder_code, timestamps } = checkRouteMessage(parsed) as RouteMessage;
    const isCredited = builder_code !== undefined && builder_code !== null;
    if (isCredited && !route.credited) throw badRequest("builder_code: not for this operation");
    if (timestamps !== undefined && !operation.timestamps) throw badRequest("timestamps: only for order.place");
    const { compiled, value, rest } = targetOf(operation, data);
    const { body } = compiled;
    const request: RouteRequest = {
      now,
      principal,
      address,
      idempotencyKey: "",
      headers: {},
      origin: isCredited ? creditedTo(own, builder_code, "builder_code") : own,
      params: [value, ""],
      query: body === null ? compiled.values(rest) : timestamps === undefined ? {} : { timestamps },
      body: body === null ? null : body(rest),
      reply,
    };
    execute(compiled.route, request, reply, reads);
  }

  // ---------------------------------------------------------------- operations of the connection

  /** A fresh token of the same user replaces the connection's own; an anonymous connection signs in. */
  private presentToken(connection: SocketConnection, token: string, reply: OperationReply): void {
    this.actions.presentToken(connection, token, {
      accepted: ({ userId, expiresAt }) => reply.data(`{"user_id":${userId},"expires_at":${expiresAt}}`),
      rejected: (error) => reply.fail(error),
    });
  }

  private resume(connection: SocketConnection, sequence: number, reply: OperationReply): void {
    this.actions.resume(connection, sequence, reply, {
      started: (last) => reply.data(`{"after":${sequence},"last":${last}}`),
      rejected: (error) => reply.fail(error),
    });
  }

  private subscribe(connection: SocketConnection, named: Subscription, reply: OperationReply): void {
    this.actions.subscribe(connection, named, (list) => reply.data(`{"subscriptions":${subscribedJson(list)}}`));
  }

  private unsubscribe(connection: SocketConnection, named: Subscription, reply: OperationReply): void {
    reply.data(`{"subscriptions":${subscribedJson(this.actions.unsubscribe(connection, named))}}`);
  }
}

type Data = Readonly<Record<string, unknown>>;

/** What an operation's data means: a route, its path parameter, and the rest of the data. @throws ApiError 40000 */
function targetOf(operation: RouteOperation, data: Data): { compiled: CompiledRoute; value: string; rest: Data } {
  const { compiled, param, either } = operation;
  if (param === null) return { compiled, value: "", rest: data };
  if (either === null) return { compiled, ...splitId(param, data) };
  either.check(data);
  const isOther = either.param in data;
  if (isOther === param in data) throw badRequest(`${param}: required, or else ${either.param}`);
  const target = isOther ? either : operation;
  return { compiled: target.compiled, value: String(data[isOther ? either.param : param]), rest: {} };
}

/** Separates the path parameter from an operation's data. @throws ApiError 40000 unless it is an id */
function splitId(name: string, data: Data): { value: string; rest: Data } {
  const { [name]: value, ...rest } = data;
  try {
    checkId(value === undefined ? {} : { id: value });
  } catch (error) {
    // The words of a body's field.
    throw error instanceof ApiError ? badRequest(error.message.replace(/^id/, `data.${name}`)) : error;
  }
  return { value: String(value), rest };
}

/** @throws ApiError 40000 */
function parseMessage(message: ArrayBuffer, isBinary: boolean, packed: boolean): unknown {
  if (isBinary !== packed) throw badRequest(packed ? "send binary frames of MessagePack" : "send text frames of JSON");
  try {
    return packed ? decodeMessage(new Uint8Array(message)) : parseJson(Buffer.from(message));
  } catch {
    throw badRequest(`the message is not valid ${packed ? "MessagePack" : "JSON"}`);
  }
}
