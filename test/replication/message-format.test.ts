/** The messages that carry the log: whole batches, batches in parts, the base, and everything that is none of them. */
import { expect, test } from "vitest";
import { HASH_BYTES } from "../../engine/log/batch-format.ts";
import {
  assertMessageLayout,
  BadMessage,
  MAX_MESSAGE_BYTES,
  MESSAGE_HEADER_BYTES,
  MessageKind,
  NONCE_BYTES,
  packBase,
  packBatches,
  packParts,
  readMessage,
} from "../../engine/replication/message-format.ts";
import { Random } from "../support/random.ts";

const random = Random.printed("messages");
const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, () => random.integer(0, 255)));

test("the layout is as documented", () => {
  assertMessageLayout();
  const message = packBatches(3, 7, [Buffer.from("ab"), Buffer.from("c")]);
  expect(message.toString("latin1", 0, 4)).toBe("PXS1");
  expect(message.readUInt16LE(4)).toBe(1);
  expect([message.readUInt8(6), message.readUInt8(7)]).toEqual([1, 0]);
  expect([8, 16, 24].map((at) => message.readDoubleLE(at))).toEqual([3, 7, 8]);
  expect([message.readUInt32LE(32), message.readUInt16LE(36), message.readUInt16LE(38)]).toEqual([2, 1, 1]);
  expect(message.subarray(40)).toEqual(Buffer.from("\x02\0\0\0ab\x01\0\0\0c", "latin1"));
});

test("batches come back as they were", () => {
  const bodies = Array.from({ length: 20 }, () => bytes(random.integer(1, 400)));
  const read = readMessage(packBatches(2, 11, bodies));
  expect(read).toMatchObject({ kind: MessageKind.batches, epoch: 2, first: 11, last: 30, base: null });
  expect(read.bodies).toEqual(bodies);
});

test("a batch in parts comes back whole, and no part is longer than a message may be", () => {
  const room = MAX_MESSAGE_BYTES - MESSAGE_HEADER_BYTES - 4;
  for (const length of [room + 1, 2 * room, 2 * room + 1, 5 * room - 1]) {
    const body = Buffer.alloc(length, 7);
    const messages = packParts(1, 5, body, MAX_MESSAGE_BYTES);
    expect(Math.max(...messages.map((message) => message.length))).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
    const parts = messages.map((message) => readMessage(message));
    expect(parts.map(({ part, parts: of, first, last }) => [part, of, first, last])).toEqual(
      parts.map((_, i) => [i + 1, parts.length, 5, 5]),
    );
    expect(Buffer.concat(parts.map(({ bodies }) => bodies[0]!)).equals(body)).toBe(true);
  }
});

test("a base says where the stream begins", () => {
  const position = { exchange: 2 ** 52 + 1, batch: 41, hash: bytes(HASH_BYTES) };
  const read = readMessage(packBase(1, position, bytes(NONCE_BYTES)));
  expect(read).toMatchObject({ kind: MessageKind.base, epoch: 1, first: 41, last: 41, bodies: [] });
  expect(read.base).toEqual(position);
});

test("no two processes say the same where a stream begins", () => {
  const position = { exchange: 1, batch: 41, hash: bytes(HASH_BYTES) };
  const [own, other] = [1, 2].map((fill) => packBase(1, position, Buffer.alloc(NONCE_BYTES, fill)));
  expect(own!.equals(other!)).toBe(false);
  expect(readMessage(own!)).toEqual(readMessage(other!));
});

test("what isn't a message is refused, whatever byte is wrong or missing", () => {
  const bodies = [bytes(40), bytes(50)];
  const whole = [
    packBatches(1, 3, bodies),
    packBase(1, { exchange: 1, batch: 2, hash: bytes(HASH_BYTES) }, bytes(NONCE_BYTES)),
    ...packParts(1, 3, bytes(300), 200),
  ];
  for (const message of whole) {
    for (let length = 0; length < message.length; length++) {
      expect(() => readMessage(message.subarray(0, length)), `${length} bytes`).toThrow(BadMessage);
    }
    expect(() => readMessage(Buffer.concat([message, Buffer.from([0])]))).toThrow(BadMessage);
  }
  const changed = (at: number, value: number): Buffer => {
    const message = Buffer.from(whole[0]!);
    message.writeUInt8(value, at);
    return message;
  };
  expect(() => readMessage(changed(0, 0))).toThrow("not a message of an exchange's log");
  expect(() => readMessage(changed(4, 2))).toThrow("the message has format 2, this program reads 1");
  expect(() => readMessage(changed(6, 9))).toThrow("this program knows no message of kind 9: a newer one wrote it");
  expect(() => readMessage(changed(32, 3))).toThrow("the message is cut short");
  expect(() => readMessage(changed(31, 0))).toThrow("the message contradicts itself");
  expect(() => readMessage(changed(36, 2))).toThrow("the message contradicts itself");
});
