/** Long public responses, compressed for clients that accept it: the same content, and nothing else changes. */
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MAX_COMPRESSING } from "../../server/http/limits.ts";
import { expectEndsWell } from "../support/checks.ts";
import { API_BASE, Client, type RawAnswer } from "../support/client.ts";
import { World } from "../support/world.ts";
import { sendAndReset } from "./raw-connection.ts";

let world: World;
let client: Client;
beforeAll(async () => {
  world = await World.start({ users: 0, markets: Array.from({ length: 30 }, () => 2) });
  client = new Client(world.server, null, 4 * MAX_COMPRESSING);
});
afterAll(async () => {
  client.close();
  await expectEndsWell(world);
});

const get = (path: string, headers: Record<string, string> = {}, method = "GET"): Promise<RawAnswer> =>
  client.send(method, API_BASE + path, headers, null);
const GZIP = { "accept-encoding": "gzip, deflate, br" };
const encodingOf = ({ headers }: RawAnswer): string | undefined => headers["content-encoding"] as string | undefined;

test.for(["/feed?size=100", "/markets?limit=200", "/markets/1/candles"])(
  "%s is the same, only shorter",
  async (path) => {
    const plain = await get(path);
    const zipped = await get(path, GZIP);
    const isLong = plain.body.length > 1_400;
    expect([path, plain.status, encodingOf(plain), zipped.status, encodingOf(zipped)]).toEqual([
      path,
      200,
      undefined,
      200,
      isLong ? "gzip" : undefined,
    ]);
    expect((isLong ? gunzipSync(zipped.body) : zipped.body).toString()).toBe(plain.body.toString());
    if (isLong) expect(zipped.body.length).toBeLessThan(plain.body.length / 4);
    for (const { headers } of [plain, zipped]) {
      expect([headers["vary"], headers["content-type"]]).toEqual(["Accept-Encoding", "application/json"]);
    }
    const head = await get(path, GZIP, "HEAD");
    expect([head.status, head.headers["content-length"], head.body.length]).toEqual([
      200,
      String(zipped.body.length),
      0,
    ]);
  },
);

test.for([
  ["gzip", "gzip"],
  ["*", "gzip"],
  ["br;q=1, GZIP;q=0.2", "gzip"],
  ["gzip;q=0", undefined],
  ["*;q=0", undefined],
  ["br", undefined],
  ["identity", undefined],
  ["", undefined],
] as const)("Accept-Encoding: %s", async ([accepted, encoding]) => {
  const answer = await get("/feed?size=100", { "accept-encoding": accepted });
  expect([answer.status, encodingOf(answer)]).toEqual([200, encoding]);
});

test("MessagePack, short responses, errors and order books leave as they are", async () => {
  for (const [path, headers, status] of [
    ["/feed?size=100", { accept: "application/msgpack" }, 200],
    ["/feed?size=1", {}, 200],
    [`/feed?q=${"x".repeat(201)}`, {}, 400],
    ["/markets/1/orderbook", {}, 200],
  ] as const) {
    const answer = await get(path, { ...GZIP, ...headers });
    expect([path, answer.status, encodingOf(answer)]).toEqual([path, status, undefined]);
  }
});

test("many at a time: each gets the feed, compressed or not, and clients that leave disturb nobody", async () => {
  const [first] = world.markets;
  const expected = (await get("/feed?size=100")).body.toString();
  const request = `GET ${API_BASE}/feed?size=100 HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n`;
  const leaving = Array.from({ length: 50 }, () => sendAndReset(world.server.port, request));
  const answers = await Promise.all(Array.from({ length: 8 * MAX_COMPRESSING }, () => get("/feed?size=100", GZIP)));
  await Promise.all(leaving);
  const bodies = answers.map((answer) => (encodingOf(answer) === "gzip" ? gunzipSync(answer.body) : answer.body));
  expect(new Set(bodies.map(String))).toEqual(new Set([expected]));
  expect((await get(`/markets/${first!.id}`)).status).toBe(200);
});
