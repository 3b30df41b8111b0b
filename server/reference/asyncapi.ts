/**
 * The AsyncAPI 3.0 document of the WebSocket, generated from the tables of its operations and events, the routes that some
 * operations run, and the examples of this room. Pure: a document for a public URL.
 */

import type { TProperties, TSchema } from "typebox";
import { assert } from "../../engine/util/assert.ts";
import type { Route } from "../http/route.ts";
import { API_BASE } from "../http/route.ts";
import { closed, Id } from "../http/schemas.ts";
import {
  acknowledgementOf,
  CONNECTION_OPERATIONS,
  frameOf,
  type OperationRoute,
  ROUTE_OPERATIONS,
  RouteOperation,
  SOCKET_EVENTS,
} from "../websocket/schemas.ts";
import {
  definitionsFor,
  type Json,
  type JsonObject,
  requestSchema,
  responseSchema,
  withOperation,
} from "./components.ts";
import { CONVENTIONS, ERROR_TABLE, LICENSE } from "./convention-text.ts";
import { EVENT_EXAMPLES, OPERATION_EXAMPLES } from "./socket-examples.ts";

const CHANNEL = { $ref: "#/channels/socket" };
const MESSAGE_PREFIX = "#/channels/socket/messages/";

/** An operation that a client can send. */
interface Operation {
  readonly op: string;
  readonly summary: string;
  readonly request: TSchema;
  readonly reply: TSchema;
}

/**
 * Generates the document, one step per message.
 * @param publicUrl without a trailing slash @param version of the exchange
 */
export function* asyncApi(
  routes: readonly Route[],
  publicUrl: string,
  version: string,
): Generator<undefined, JsonObject> {
  const asked = operationsOf(routes);
  const messages: Record<string, Json> = {};
  const operations: Record<string, Json> = {};
  for (const operation of asked) {
    const { op, summary } = operation;
    const key = keyOf(op);
    messages[key] = request(operation);
    messages[`${key}Answer`] = replyTo(operation);
    yield;
    operations[key] = {
      action: "receive",
      channel: CHANNEL,
      summary,
      messages: [{ $ref: MESSAGE_PREFIX + key }],
      reply: { channel: CHANNEL, messages: [{ $ref: `${MESSAGE_PREFIX}${key}Answer` }] },
    };
  }
  for (const [event, { summary, channel, data }] of Object.entries(SOCKET_EVENTS)) {
    const key = keyOf(event);
    const payload = responseSchema(frameOf(event, data));
    const { [event]: example } = EVENT_EXAMPLES;
    messages[key] = {
      name: event,
      title: event,
      summary: channel === null ? summary : `Channel ${channel}: ${summary}`,
      payload,
      examples: [{ payload: example as unknown as Json }],
    };
    operations[`${key}Event`] = {
      action: "send",
      channel: CHANNEL,
      summary,
      messages: [{ $ref: MESSAGE_PREFIX + key }],
    };
  }
  const { host, protocol, pathname } = new URL(publicUrl);
  const path = pathname === "/" ? API_BASE : pathname + API_BASE;
  return {
    asyncapi: "3.0.0",
    info: { title: "Prediction exchange: WebSocket", version, description: description(publicUrl), license: license() },
    defaultContentType: "application/json",
    servers: {
      exchange: { host, protocol: protocol === "https:" ? "wss" : "ws", pathname: path, description: "This exchange" },
    },
    channels: { socket: socketChannel(messages) },
    operations,
    components: {
      schemas: definitionsFor([messages]),
      securitySchemes: {
        token: {
          type: "httpApiKey",
          name: "token",
          in: "query",
          description: "An access token, a personal access token, or a ticket from POST /ws-tickets.",
        },
        bearer: { type: "http", scheme: "bearer", description: "The same in the upgrade's Authorization header." },
      },
    },
  };
}

const license = (): JsonObject => ({ name: LICENSE.name, url: "https://www.apache.org/licenses/LICENSE-2.0" });

function description(publicUrl: string): string {
  return `Connect to \`/ws?token=TOKEN\`, with \`Authorization: Bearer TOKEN\`, or without a token for public channels only. The exchange rejects
an invalid token before the upgrade, with 401 and the REST API's error envelope, and a token in another place with 400. \`POST /ws-tickets\` issues a ticket for one connection, so that no URL
contains a token.
Text frames carry JSON; with the subprotocol \`msgpack\`, binary frames carry the same objects. With \`sbe\`, binary frames carry
the fixed layouts of \`/api/v1/sbe.xml\` (FIX SBE 1.0), with the same operations, checks and codes.

${CONVENTIONS}
- **Operations** get a response \`{id, code, msg, data}\` with the operation's id. Operations of routes, and \`resume\`, count
  towards the same rate limits as over HTTP and state the remaining allowance in \`rate_limit\`. With 42900, \`retry_after\` is the
  number of seconds until the exchange accepts the next request.
- **Events** are \`{event, sequence, ts, data}\`. \`sequence\` rises by exactly 1 per message: for each outcome of \`book\` and \`ticker\`, each
  market of \`trades\` and \`markets\`, each user for \`order.updated\`. A \`heartbeat\` every 5 s carries the last of each. \`ts\` never
  falls within a stream; for balances, positions and heartbeats, it is the time up to which the client has everything.
- **Implied books**: \`book\` with \`implied: true\` is the book with mint and merge liquidity. It is numbered separately,
  like \`?implied=true\` in REST; its \`implied\` is the part that mint and merge provide.
- **Orders**: \`order.updated\` needs no subscription. The response to a placement precedes its first \`order.updated\`. \`resume\`
  replays the updates after a sequence, for 7 days and across restarts; an older sequence is 4040.
- **Closes**: 4401 when the token is revoked, logged out or expired (present a fresh one with \`auth\` first), 4408 when more
  than 1 MiB is unread (a client that stops reading sees 1006 instead), 1009 after a message above 64 KiB, 1001 when the exchange
  shuts down. 1006 means a broken connection or a killed exchange.

The REST API is described in [openapi.json](${publicUrl}/openapi.json).

### Errors

${ERROR_TABLE}`;
}

function socketChannel(messages: JsonObject): JsonObject {
  return {
    address: "/ws",
    title: "WebSocket",
    description: "One connection for everything: clients send operations; the exchange sends responses and events.",
    messages,
    bindings: {
      ws: {
        method: "GET",
        query: {
          type: "object",
          properties: { token: { type: "string", description: "access token, personal access token, or ticket" } },
        },
      },
    },
  };
}

// ---------------------------------------------------------------- messages

function operationsOf(routes: readonly Route[]): Operation[] {
  const own = Object.entries(CONNECTION_OPERATIONS).map(([op, { summary, request, reply }]) => {
    return { op, summary, request: withOperation(request, op), reply };
  });
  const ofRoutes = [...ROUTE_OPERATIONS].map(([op, operation]) => {
    const route = routes.find(({ method, path }) => `${method} ${path}` === operation.template);
    assert(route !== undefined, "an operation runs an existing route");
    return { op, summary: route.summary, request: requestOf(op, route, operation), reply: route.response };
  });
  return [...own, ...ofRoutes];
}

/** The message that runs a route: its body or query under `data`, path parameters included. */
function requestOf(op: string, route: Route, operation: OperationRoute): TSchema {
  const { data: _, builder_code, timestamps, ...rest } = RouteOperation.properties;
  const properties: TProperties = { ...rest, data: dataOf(route, operation) };
  if (route.credited) properties["builder_code"] = builder_code;
  if (operation.timestamps) properties["timestamps"] = timestamps;
  return withOperation(closed(properties), op);
}

function dataOf(route: Route, { param, either }: OperationRoute): TSchema {
  if (either !== null) return either.data;
  const schema = route.body ?? route.query;
  if (param === null) return schema;
  const { properties } = schema as unknown as { properties: TProperties };
  return closed({ [param]: Id, ...properties });
}

function request({ op, summary, request }: Operation): JsonObject {
  const examples = (OPERATION_EXAMPLES[op] ?? []).map(({ request }) => ({ payload: request as Json }));
  return { name: op, title: op, summary, payload: requestSchema(request), examples };
}

function replyTo({ op, reply }: Operation): JsonObject {
  const examples = (OPERATION_EXAMPLES[op] ?? []).map(({ reply }) => ({ payload: reply as unknown as Json }));
  return {
    name: `${op} answer`,
    title: `Response to ${op}`,
    payload: responseSchema(acknowledgementOf(reply)),
    examples,
  };
}

/** `order.cancel_all` becomes orderCancelAll. */
const keyOf = (name: string): string => name.replaceAll(/[._](\w)/g, (_, letter: string) => letter.toUpperCase());
