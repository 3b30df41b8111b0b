/**
 * The API documents: the served documents cover the route table and the schemas completely, and each example matches the
 * schema next to it. api-linters.long.test.ts runs the linters of both formats.
 */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BatchOperations } from "../../server/trading/schemas.ts";

import { CONNECTION_OPERATIONS, ROUTE_OPERATIONS, SOCKET_EVENTS } from "../../server/websocket/schemas.ts";
import { API_BASE, Client, ROUTES } from "../support/client.ts";
import {
  asyncApiOf,
  expectOf,
  type Node,
  openApiOf,
  operationsOf,
  resolved,
  spelledOut,
} from "../support/documents.ts";
import { TestServer } from "../support/server.ts";
import { PUBLIC_URL } from "../support/world.ts";

const OPEN_API = openApiOf(PUBLIC_URL);
const ASYNC_API = asyncApiOf(PUBLIC_URL);

let server: TestServer;
let client: Client;
beforeAll(async () => {
  server = await TestServer.start({ env: { PUBLIC_URL } });
  client = new Client(server, null);
});
afterAll(async () => {
  client.close();
  await server.stop();
});

describe("served", () => {
  test.each([
    ["/openapi.json", OPEN_API],
    ["/asyncapi.json", ASYNC_API],
  ])("the API documents are served: %s, to be kept and asked about", async (path, document) => {
    const { status, data, headers } = await client.requestRoot("GET", path);
    expect([status, headers["cache-control"]]).toEqual([200, "public, no-cache"]);
    expect(data).toEqual(document);
    const again = await client.send("GET", path, { "If-None-Match": `"other", ${headers.etag}` }, null);
    expect([again.status, again.body.length, again.headers.etag]).toEqual([304, 0, headers.etag]);
    expect(again.headers["content-length"]).toBeUndefined();
    const any = await client.send("GET", path, { "If-None-Match": "*" }, null);
    expect([any.status, any.body.length]).toEqual([304, 0]);
    const other = await client.send("GET", path, { "If-None-Match": '"other"' }, null);
    expect([other.status, other.body.length > 1_000]).toEqual([200, true]);
    const zipped = await client.send("GET", path, { "Accept-Encoding": "br, gzip" }, null);
    expect(JSON.parse(gunzipSync(zipped.body).toString())).toEqual(document);
    expect([zipped.headers["content-encoding"], zipped.headers.vary]).toEqual(["gzip", "Accept-Encoding"]);
    expect(zipped.headers.etag).not.toBe(headers.etag);
    const known = { "Accept-Encoding": "gzip", "If-None-Match": zipped.headers.etag! };
    expect((await client.send("GET", path, known, null)).status).toBe(304);
    const refused = await client.send("GET", path, { "Accept-Encoding": "gzip;q=0, *" }, null);
    expect([refused.headers["content-encoding"], refused.headers.vary]).toEqual([undefined, "Accept-Encoding"]);
  });
});

test("the binary protocol's schema is served as it is, to be kept and asked about", async () => {
  const file = readFileSync(new URL("../../server/websocket/sbe/sbe.xml", import.meta.url));
  const path = `${API_BASE}/sbe.xml`;
  const { status, body, headers } = await client.send("GET", path, {}, null);
  expect([status, headers["content-type"], headers["cache-control"]]).toEqual([
    200,
    "application/xml",
    "public, no-cache",
  ]);
  expect(body.equals(file)).toBe(true);
  const again = await client.send("GET", path, { "If-None-Match": headers.etag! }, null);
  expect([again.status, again.body.length]).toEqual([304, 0]);
  const zipped = await client.send("GET", path, { "Accept-Encoding": "gzip" }, null);
  expect(gunzipSync(zipped.body).equals(file)).toBe(true);
});

describe("OpenAPI", () => {
  const operations = operationsOf(OPEN_API);

  test("the OpenAPI document has every route, each with a unique name, and nothing else", () => {
    const documented = operations.flatMap(({ method, path, isRoot, node }) => {
      const template = path.replaceAll(/\{(\w+)\}/g, ":$1");
      const servers: Node[] = OPEN_API.paths[path].servers ?? OPEN_API.servers;
      expect(node.summary).toEqual(expect.stringMatching(/^[A-Z]/));
      expect(isRoot).toBe(servers.length === 1 && servers[0].url === PUBLIC_URL);
      return servers.map(({ url }) => `${method} ${url}${template}`);
    });
    const routes = ROUTES.map(({ method, path, unversioned }) => {
      return `${method} ${PUBLIC_URL}${unversioned ? "" : API_BASE}${path}`;
    });
    expect(documented.sort()).toEqual(routes.sort());
    expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
    for (const { id } of operations) expect(id).toMatch(/^[a-z][A-Za-z0-9]+$/);
  });

  /** The schemas that a route checks with, as JSON. */
  const plain = (schema: unknown): Node => JSON.parse(JSON.stringify(schema));
  /** Without the promise that there are no other fields; in a request, without the type of other fields. */
  const open = (schema: unknown, isRequest = false): Node =>
    JSON.parse(
      JSON.stringify(schema, (key, value) => {
        const isOpen = isRequest ? typeof value === "object" : value !== true;
        return key === "additionalProperties" && isOpen ? undefined : value;
      }),
    );

  test.each(ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    "the OpenAPI document: %s: the schemas are those that the server checks with",
    (_, { method, path, response, body, query, enveloped, status, contentType, oauth }) => {
      const node = OPEN_API.paths[path.replaceAll(/:(\w+)/g, "{$1}")][method.toLowerCase()];
      const parameters = (node.parameters ?? []).map((parameter: Node) => resolved(OPEN_API, parameter));
      const inQuery = parameters.filter((parameter: Node) => parameter.in === "query");
      const { properties, required = [] } = plain(query);
      expect(
        Object.fromEntries(
          inQuery.map(({ name, schema, description }: Node) => {
            const whole = description === undefined ? schema : { ...schema, description };
            return [name, spelledOut(OPEN_API, whole)];
          }),
        ),
      ).toEqual(properties);
      expect(inQuery.filter(({ required }: Node) => required).map(({ name }: Node) => name)).toEqual(required);
      const names = parameters.filter((parameter: Node) => parameter.in === "path").map(({ name }: Node) => name);
      expect(names).toEqual([...path.matchAll(/:(\w+)/g)].map(([, name]) => name));

      const content = resolved(OPEN_API, node.requestBody ?? {}).content ?? {};
      const bodyTypes = oauth ? ["application/x-www-form-urlencoded"] : ["application/json", "application/msgpack"];
      expect(Object.keys(content)).toEqual(body === null ? [] : bodyTypes);
      for (const { schema } of Object.values<Node>(content)) {
        const shown = spelledOut(OPEN_API, schema);
        // The server checks the items of the list one by one, by `op`.
        if (path === "/orders/batch") {
          const variants = shown.properties.operations.items.oneOf;
          shown.properties.operations.items = plain(body).properties.operations.items;
          for (const [i, [op, checked]] of Object.entries(BatchOperations).entries()) {
            const { properties } = plain(checked);
            expect(variants[i].properties).toEqual({ ...properties, op: { type: "string", const: op } });
            expect(variants[i].required).toEqual(expect.arrayContaining(plain(checked).required));
          }
        }
        expect(shown).toEqual(open(body, true));
      }

      const answer = resolved(OPEN_API, node.responses[status]);
      const types = contentType === null ? ["application/json", "application/msgpack"] : [contentType.split(";")[0]];
      const shown = Object.entries<Node>(answer.content ?? {}).filter(
        ([type]) => types.includes(type) || type !== "text/csv",
      );
      expect(shown.map(([type]) => type)).toEqual(status === 302 ? [] : types);
      for (const [, { schema }] of shown) {
        const found = spelledOut(OPEN_API, schema);
        expect(enveloped ? found.properties.data : found).toEqual(open(response));
        if (enveloped) expect(found).toMatchObject({ type: "object", required: ["code", "msg", "data"] });
      }
    },
  );

  test("the OpenAPI document's example of each response, body and error matches its schema", () => {
    let count = 0;
    const check = (content: Node, what: string): void => {
      for (const [type, { schema, example, examples }] of Object.entries<Node>(content ?? {})) {
        const shown = [...Object.values<Node>(examples ?? {}).map(({ value }) => value)];
        if (example !== undefined) shown.push(example);
        if (type !== "application/msgpack") expect(shown.length, what).toBeGreaterThan(0);
        for (const value of shown) expectOf(OPEN_API, schema, value, what);
        count += shown.length;
      }
    };
    for (const { id, node } of operations) {
      check(resolved(OPEN_API, node.requestBody ?? {}).content, `the body of ${id}`);
      for (const [status, response] of Object.entries<Node>(node.responses)) {
        check(resolved(OPEN_API, response).content, `${status} of ${id}`);
      }
    }
    expect(count).toBeGreaterThan(operations.length * 5);
  });

  test("the OpenAPI document marks a route that will be removed as deprecated", () => {
    const deprecated = { since: "2027-01-31", sunset: "2027-03-31" };
    const routes = ROUTES.map((route) => (route.path === "/time" ? { ...route, deprecated } : route));
    const { get } = openApiOf(PUBLIC_URL, routes).paths["/time"];
    expect([get.deprecated, Object.keys(get.responses[200].headers)]).toEqual([
      true,
      expect.arrayContaining(["Deprecation", "Sunset"]),
    ]);
    expect(JSON.stringify(OPEN_API)).not.toContain('"deprecated"');
  });

  test("the check of examples detects a value that doesn't match its schema", () => {
    const order = OPEN_API.paths["/orders"].post.responses[202].content["application/json"];
    const wrong = { ...order.example, data: { ...order.example.data, price: 10_000 } };
    expect(() => expectOf(OPEN_API, order.schema, wrong, "an order")).toThrow(/price/);
  });
});

describe("AsyncAPI", () => {
  test("the AsyncAPI document has every operation with its response, and every event", () => {
    const names = Object.values<Node>(ASYNC_API.channels.socket.messages).map(({ name }) => name);
    const ops = [...Object.keys(CONNECTION_OPERATIONS), ...ROUTE_OPERATIONS.keys()];
    const wanted = [...ops.flatMap((op) => [op, `${op} answer`]), ...Object.keys(SOCKET_EVENTS)];
    expect(names.sort()).toEqual(wanted.sort());
    const actions = Object.values<Node>(ASYNC_API.operations).map(({ action }) => action);
    expect(actions.filter((action) => action === "receive").length).toBe(ops.length);
    expect(actions.filter((action) => action === "send").length).toBe(Object.keys(SOCKET_EVENTS).length);
  });

  test("the AsyncAPI document's examples each match their schema", () => {
    for (const { name, payload, examples } of Object.values<Node>(ASYNC_API.channels.socket.messages)) {
      expect(examples.length, name).toBeGreaterThan(0);
      for (const example of examples) expectOf(ASYNC_API, payload, example.payload, name);
    }
  });
});
