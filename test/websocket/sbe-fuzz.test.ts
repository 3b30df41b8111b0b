/**
 * Damaged binary frames: valid ones with up to four bytes changed, or cut. Each message of a frame whose lengths add up gets
 * its response exactly once, any other frame one rejection; everything that the server sends decodes, and it lives on.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { API_BASE } from "../support/client.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { decoded, encode, frameOfRequest, plainMessage, SBE } from "../support/sbe.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import { World } from "../support/world.ts";

const FRAMES = 600 * EFFORT;
const HEADER_BYTES = 24;
const BATCH = 8;

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 2, markets: [2, 3] });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

test("each message of a damaged frame gets its response exactly once", { timeout: 120_000 }, async () => {
  const random = Random.printed("damaged SBE frames");
  const user = world.user();
  for (const market of world.markets) await world.split(user, market, 1_000);
  const url = `${world.server.root.replace("http", "ws")}${API_BASE}/ws?token=${user.token}`;
  const socket = new WebSocket(url, [SBE], { perMessageDeflate: false });
  await new Promise((resolve) => socket.once("open", resolve));
  let expected = 0;
  let received = 0;
  const rejections = new Set<string>();
  const codes = new Set<string>();
  socket.on("message", (bytes: Buffer) => {
    for (const { template, header, texts, fields } of decoded(bytes)) {
      if (template === "Rejected") codes.add(fields["code"] as string);
      if (!isResponse(template) || header.index !== null) continue;
      received++;
      if (template === "Rejected") rejections.add(texts["message"]!.split(":")[0]!);
    }
  });
  for (let n = 0; n < FRAMES; n++) {
    const frame = damaged(frameFor(world, random, n), random);
    expected += responsesTo(frame);
    socket.send(frame);
    // A few at a time, so that a failure is close to its frame.
    if (n % 20 === 19) await expect.poll(() => received, { timeout: 15_000 }).toBe(expected);
  }
  socket.send(encode([plainMessage("Ping", 1, {})]));
  await expect.poll(() => received, { timeout: 15_000 }).toBe(expected + 1);
  expect(socket.readyState).toBe(WebSocket.OPEN);
  expect(rejections.size).toBeGreaterThan(8);
  expect([...codes].filter((code) => code.startsWith("5"))).toEqual([]);
  socket.close();
});

const RESPONSES = /^(Rejected|OrderAccepted|Done|OrdersCanceled|\w+Set|Subscriptions|Resumed|Pong|Authenticated)$/;
const isResponse = (template: string): boolean => RESPONSES.test(template);

/** One to three messages of every kind. */
function frameFor({ markets }: World, random: Random, n: number): Buffer {
  const market = random.pick(markets);
  const outcome = random.integer(0, market.outcomes.length - 1);
  const place = (): object => {
    const price = random.integer(1, 9_999);
    return terms(market, outcome, random.pick([BUY, SELL]), price, random.integer(1, 3), {
      ...(random.chance(0.3) && { client_order_id: random.pick([String(n), `fuzz-${n}`]) }),
    });
  };
  const requests: (() => object)[] = [
    () => ({ op: "order.place", data: place(), builder_code: "fuzz" }),
    () => ({ op: "order.cancel", data: { id: random.integer(1, 500) } }),
    () => ({ op: "order.amend", data: { id: random.integer(1, 500), price: random.integer(1, 9_999) } }),
    () => ({ op: "order.cancel_all", data: { market_id: market.id } }),
    () => ({ op: "order.cancel_after", data: { timeout_ms: 300_000 } }),
    () => ({ op: "cancel_on_disconnect", enabled: false }),
    () => ({ op: "quotes.replace", data: { market_id: market.id, quotes: [quote(market, outcome, BUY, 5, 1)] } }),
    () => ({
      op: "order.batch",
      data: {
        operations: [
          { op: "place", ...place() },
          { op: "cancel", id: 3 },
        ],
      },
    }),
    () => ({ op: "subscribe", channel: "book", market_id: market.id }),
    () => ({ op: "unsubscribe", channel: "ticker", market_id: market.id }),
    () => ({ op: "auth", token: "pm_pat_wrong" }),
    () => ({ op: "ping" }),
  ];
  const count = random.integer(1, 3);
  return Buffer.concat(Array.from({ length: count }, () => frameOfRequest({ ...random.pick(requests)(), id: n })));
}

function damaged(frame: Buffer, random: Random): Buffer {
  const bytes = Buffer.from(frame);
  if (random.chance(0.15)) return bytes.subarray(0, random.integer(0, bytes.length));
  for (let i = random.integer(1, 4); i > 0; i--) bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255);
  return bytes;
}

/** As docs/sbe.md has it: one response to each message, none to a batch's operations, one to bytes that are no frame. */
function responsesTo(frame: Buffer): number {
  const starts = messagesOf(frame);
  if (starts === null) return 1;
  let responses = 0;
  for (let i = 0; i < starts.length; i++) {
    responses++;
    const at = starts[i]!;
    if (frame.readUInt16LE(at + 2) !== BATCH) continue;
    // A block too short for its count claims whatever follows.
    i += frame.readUInt16LE(at) < 8 ? starts.length : frame.readUInt16LE(at + HEADER_BYTES);
  }
  return responses;
}

/** Where the messages begin; null where the lengths don't add up. */
function messagesOf(frame: Buffer): number[] | null {
  const starts: number[] = [];
  for (let at = 0; at < frame.length; ) {
    if (at + HEADER_BYTES > frame.length) return null;
    const length = frame.readUInt32LE(at + 8);
    const least = HEADER_BYTES + frame.readUInt16LE(at);
    if (length % 8 !== 0 || length < least || at + length > frame.length) return null;
    starts.push(at);
    at += length;
  }
  return starts.length === 0 ? null : starts;
}
