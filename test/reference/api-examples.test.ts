/**
 * Sends every documented request to a real server, which must respond with the documented status and a body of the
 * documented schema.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectEndsWell } from "../support/checks.ts";
import { API_BASE, type Client, type OrderJson } from "../support/client.ts";
import {
  asyncApiOf,
  examplesIn,
  expectOf,
  type Node,
  type Operation,
  openApiOf,
  operationsOf,
  resolved,
} from "../support/documents.ts";
import { Guests, PASSWORD } from "../support/identity.ts";
import { TestProvider } from "../support/oidc-provider.ts";
import { type Frame, Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { PUBLIC_URL, tokenOf, World } from "../support/world.ts";
import { type Cast, type Example, sessionOf, setUpsWith } from "./example-setups.ts";

const OPEN_API = openApiOf(PUBLIC_URL);
const ASYNC_API = asyncApiOf(PUBLIC_URL);
const FORM = "application/x-www-form-urlencoded";
const REDIRECT_URI = `${PUBLIC_URL}${API_BASE}/auth/social/example/callback`;

const OPERATIONS = operationsOf(OPEN_API);
/** The content of a request body or a response, by media type. */
const contentOf = (part: Node): Node => resolved(OPEN_API, part)?.content ?? {};
const bodyOf = ({ node }: Operation): Node => Object.values<Node>(contentOf(node.requestBody))[0]?.example;
const named = (id: string): Operation => OPERATIONS.find((operation) => operation.id === id)!;

const setUps = setUpsWith({
  authorization: examplesIn(OPEN_API, named("authorize"), "query"),
  redemption: bodyOf(named("requestToken")),
});

const guests = new Guests();
let world: World;
let cast: Cast;
beforeAll(async () => {
  const provider = await TestProvider.start([REDIRECT_URI]);
  const { issuer, clientId: client_id, clientSecret: client_secret } = provider;
  world = await World.start({
    users: 3,
    markets: Array<number>(14).fill(2),
    named: {
      trader: { password: PASSWORD },
      operator: { role: "operator", password: PASSWORD, deposit: 0 },
      customer: { tier: 1 },
    },
    env: {
      PUBLIC_URL,
      SOCIAL_PROVIDERS: JSON.stringify({ example: { issuer, client_id, client_secret } }),
      // Creates a first approval that can be taken back.
      TWO_PERSON_RULE: "withdrawals",
      // Mails the links of examples.
      MAIL_INTERVAL: "1",
    },
  });
  // Examples name the first market; operations that change a market take later ones.
  expect(world.market()).toMatchObject({ id: 1, outcomes: [1, 2] });
  const session = await sessionOf(world, guests, "trader");
  const operator = await sessionOf(world, guests, "operator");
  cast = { world, guests, trader: world.client("trader"), session, operator, provider };
});
afterAll(async () => {
  guests.close();
  await cast.provider.close();
  if (world.server.alive) await expectEndsWell(world);
});

/** A client that may use the operation. */
function callerOf({ node }: Operation): Client {
  if (node["x-access"] === "operator") return cast.operator;
  if (node["x-access"] === "public") return world.anonymous();
  return node["x-token-kinds"].includes("pat") ? cast.trader : cast.session;
}

describe("each operation's example gets the documented response", () => {
  test("every preparation of an example belongs to an existing operation", () => {
    expect(Object.keys(setUps).filter((id) => named(id) === undefined)).toEqual([]);
  });

  test.each(OPERATIONS.map((operation) => [operation.id, operation] as const))(
    "an operation's example gets the documented response: %s",
    async (id, operation) => {
      const { method, path, isRoot, node, status } = operation;
      const example: Example = { query: examplesIn(OPEN_API, operation, "query"), body: bodyOf(operation) };
      const setUp = (await setUps[id]?.(cast, example)) ?? {};
      const params = { ...examplesIn(OPEN_API, operation, "path"), ...setUp.params };
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])));
      const query = new URLSearchParams({ ...(example.query as object), ...setUp.query }).toString();
      const url = `${isRoot ? "" : API_BASE}${filled}${query === "" ? "" : `?${query}`}`;
      const headers = { ...(examplesIn(OPEN_API, operation, "header") as Record<string, string>), ...setUp.headers };
      const isForm = contentOf(node.requestBody)[FORM] !== undefined;
      const body = example.body === undefined ? undefined : { ...example.body, ...setUp.body };
      const sent = isForm ? new URLSearchParams(body as Record<string, string>).toString() : body;
      const options = isForm ? { body: sent, headers: { ...headers, "Content-Type": FORM } } : { body: sent, headers };

      const client = setUp.client ?? callerOf(operation);
      const answer = await client.requestRoot(method, url, options);
      expect([answer.status, answer.msg]).toEqual([status, status === 302 || isBare(node, status) ? "" : "ok"]);
      const response = resolved(OPEN_API, node.responses[status]);
      const content = contentOf(response);
      for (const name of Object.keys(response.headers)) {
        // Rate limits are off here.
        if (!name.startsWith("RateLimit-")) expect(answer.headers, name).toHaveProperty(name.toLowerCase());
      }
      if (status === 302) return;
      const [type, media] = Object.entries<Node>(content)[0]!;
      expect(answer.headers["content-type"]?.split(";")[0]).toBe(type);
      const whole = isBare(node, status) ? answer.data : { code: answer.code, msg: answer.msg, data: answer.data };
      expectOf(OPEN_API, media.schema, whole, id);
      const { results = [] } = (answer.data ?? {}) as { results?: { code: number }[] };
      expect(results.map(({ code }) => code)).toEqual(results.map(() => 0));

      if (content["text/csv"] === undefined) return;
      const csv = await client.send(method, url, { Authorization: `Bearer ${client.token}`, Accept: "text/csv" }, null);
      const headingOf = (text: string): string | undefined => text.split("\r\n")[0];
      expect([csv.status, headingOf(csv.body.toString())]).toEqual([200, headingOf(content["text/csv"].example)]);
    },
  );
});

/** A success of this operation has no envelope. */
function isBare(node: Node, status: number): boolean {
  const media = Object.values<Node>(contentOf(node.responses[status]))[0];
  return media?.example?.code !== 0;
}

describe("WebSocket", () => {
  const messages: Node[] = Object.values(ASYNC_API.channels.socket.messages);
  const operations: Node[] = messages.filter((message) => message.payload.properties.op !== undefined);
  const payloadOf = (name: string): Node => messages.find((message) => message.name === name).payload;

  test("each example of a WebSocket operation is acknowledged, and every event arrives, as documented", async () => {
    const market = world.markets[0]!;
    const trader = await Socket.open(world.server, cast.trader.token);
    const resting = (): Promise<OrderJson> =>
      cast.trader.place(
        terms(market, 0, BUY, 40, 100, { client_order_id: `socket-${trader.acknowledgements.length}` }),
      );
    const real: Record<string, () => Promise<object>> = {
      "order.amend": async () => ({ data: { id: (await resting()).id, quantity: 80 } }),
      "order.cancel": async () => ({ data: { client_order_id: (await resting()).client_order_id } }),
      auth: async () => ({ token: tokenOf("trader") }),
      // The REST example has used the other client_order_id.
      "order.place": async () => ({
        data: { market_id: 1, outcome_id: 1, side: 1, price: 4_200, quantity: 100, client_order_id: "mm-1-0002" },
      }),
    };
    // In the order of the document, which unsubscribes at the end: the test subscribes again below.
    for (const { name, examples, payload } of operations) {
      for (const { payload: example } of examples) {
        const sent = { ...example, ...(await real[name]?.()) };
        expectOf(ASYNC_API, payload, sent, name);
        const answer = await trader.ask(sent);
        expect([name, answer.code, answer.msg]).toEqual([name, 0, "ok"]);
        expectOf(ASYNC_API, payloadOf(`${name} answer`), answer, `the answer to ${name}`);
      }
    }
    for (const channel of ["book", "ticker"]) await trader.subscribe(channel, market.id, market.outcomes[0]);
    const other = world.user();
    await world.split(other, market, 30);
    await cast.trader.place(terms(market, 0, BUY, 9_500, 10));
    await other.place(terms(market, 0, SELL, 9_500, 20));
    await cast.operator.data("POST", `/admin/markets/${market.id}/halt`, {});
    const events = messages.map(({ name }) => name).filter((name) => payloadOf(name).properties.event !== undefined);
    const came = (): Frame[] => [...trader.frames, ...trader.heartbeats];
    const awaited = events.filter((name) => name !== "system.shutdown");
    await eventually(async () => {
      expect(awaited.filter((name) => !came().some(({ event }) => event === name))).toEqual([]);
    });
    for (const frame of came()) expectOf(ASYNC_API, payloadOf(frame.event), frame, frame.event);
    await cast.operator.data("POST", `/admin/markets/${market.id}/resume`, {});
    await trader.close();
  });

  // The last test: it stops the server.
  test("the WebSocket's farewell is as documented", async () => {
    const socket = await Socket.open(world.server, null);
    await expectEndsWell(world);
    const farewell = await socket.frame("system.shutdown");
    expectOf(ASYNC_API, payloadOf("system.shutdown"), farewell, "system.shutdown");
  });
});
