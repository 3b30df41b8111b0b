/** Frames as they are written: several messages a frame, several frames a turn, and messages longer than a frame. */
import { expect, test } from "vitest";
import { OrderStatus, Reason } from "../../engine/constants.ts";
import { ApiError, ErrorKind } from "../../server/errors.ts";
import type { FillView, OrderReport } from "../../server/orders/order-json.ts";
import { FramePool, FrameWriter } from "../../server/websocket/sbe/frame-writer.ts";
import { SbeMessages } from "../../server/websocket/sbe/messages.ts";
import { decoded } from "../support/sbe.ts";

const MAX_FRAME_BYTES = 64 * 1024;
const TO = { idLow: 7, idHigh: 0, index: -1, rateRemaining: -1 };

function report(fills: number): OrderReport {
  const fill = (id: number): FillView => ({ id, matchId: id, price: 5, quantity: 1, role: 1, matchType: 0, fee: 0, rebate: 0, createdAt: 1 }); // biome-ignore format: one line
  return {
    ...{ id: 1, clientOrderId: "a", market: 2, outcome: 3, terms: 1 << 8, price: 5, quantity: 9, remaining: 1 },
    ...{
      expiresAt: null,
      status: OrderStatus.open,
      reason: Reason.none,
      builderCode: null,
      createdAt: 1,
      updatedAt: 2,
    },
    trades: Array.from({ length: fills }, (_, at) => fill(at + 1)),
    timestamps: null,
  };
}

test("many messages leave in frames of at most 64 KiB, each with whole messages, in their order", () => {
  const [messages, frame] = [new SbeMessages(), new FrameWriter()];
  for (let sequence = 1; sequence <= 2_000; sequence++) messages.orderUpdated(frame, sequence, report(sequence % 3));
  const frames = frame.frames().map((bytes) => Buffer.from(bytes));
  expect(frames.length).toBeGreaterThan(3);
  for (const bytes of frames) expect(bytes.length).toBeLessThanOrEqual(MAX_FRAME_BYTES);
  const read = frames.flatMap(decoded);
  expect(read.map(({ header }) => Number(header.id))).toEqual(Array.from({ length: 2_000 }, (_, at) => at + 1));
  expect(read.map(({ groups }) => groups["fills"]!.length)).toEqual(Array.from({ length: 2_000 }, (_, at) => (at + 1) % 3)); // biome-ignore format: one line
});

test("a message longer than a frame leaves alone, and its memory goes with it", () => {
  const [messages, pool] = [new SbeMessages(), new FramePool()];
  const frame = pool.take();
  messages.orderUpdated(frame, 1, report(0));
  messages.orderUpdated(frame, 2, report(5_000));
  messages.orderUpdated(frame, 3, report(0));
  const lengths = frame.frames().map((bytes) => decoded(Buffer.from(bytes)).map(({ header }) => header.id));
  expect(lengths[0]).toEqual(["1"]);
  expect(lengths.flat()).toEqual(["1", "2", "3"]);
  pool.give(frame);
  const again = pool.take();
  expect([again === frame, again.isEmpty, again.words.byteLength]).toEqual([true, true, 4_096]);
});

test("an update with more fills than a group may have comes in several messages with one sequence", () => {
  const frame = new FrameWriter();
  new SbeMessages().orderUpdated(frame, 9, report(130_000));
  const read = decoded(Buffer.from(frame.take()));
  expect(read.map(({ header, groups }) => [header.id, groups["fills"]!.length])).toEqual([
    ...[["9", 60_000], ["9", 60_000], ["9", 10_000]], // biome-ignore format: pairs
  ]);
  expect(read.flatMap(({ groups }) => groups["fills"]!.map(({ fillId }) => Number(fillId))).at(-1)).toBe(130_000);
});

test("a cancel-all of very many orders, and one of none, are answered in full", () => {
  const [messages, frame] = [new SbeMessages(), new FrameWriter()];
  const ids = Array.from({ length: 120_001 }, (_, at) => 2 ** 40 + at);
  messages.canceled(frame, TO, ids);
  messages.canceled(frame, TO, []);
  const read = frame.frames().flatMap((bytes) => decoded(Buffer.from(bytes)));
  expect(read.map(({ groups }) => groups["orders"]!.length)).toEqual([60_000, 60_000, 1, 0]);
  expect(read.flatMap(({ groups }) => groups["orders"]!.map(({ orderId }) => Number(orderId)))).toEqual(ids);
});

test("a rejection's words are cut between characters, and whole words aren't", () => {
  const [messages, frame] = [new SbeMessages(), new FrameWriter()];
  const words = ["price: must be >= 1", "é€😀".repeat(1_000)];
  for (const each of words) messages.rejected(frame, TO, new ApiError(ErrorKind.badRequest, each), null, null);
  const texts = decoded(Buffer.from(frame.take())).map(({ texts: { message } }) => message!);
  expect(texts[0]).toBe(words[0]);
  expect(words[1]!.startsWith(texts[1]!)).toBe(true);
  expect(Buffer.byteLength(texts[1]!)).toBeGreaterThan(4_090);
});
