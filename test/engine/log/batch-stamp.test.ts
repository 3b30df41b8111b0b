/**
 * Stamps around the real matcher: each publish begins with its time, and the other events are the same as without
 * stamps.
 */
import { expect, test } from "vitest";
import { createMatcher, type Matcher } from "../../../engine/book/matcher.ts";
import { BatchStamp } from "../../../engine/log/batch-stamp.ts";
import { CommandKind, D_MATCHED, RECORD_WORDS } from "../../../engine/ring/records.ts";
import { createRing, RingConsumer, RingProducer } from "../../../engine/ring/ring.ts";
import { CommandRecord, decodeEvent } from "../book/harness.ts";
import type { Placement } from "../book/reference-book.ts";

const RESTING = 400;
/** So few that the sweep is published in parts, and enough for all of it. */
const SMALL_RING = 256;
const LARGE_RING = 4_096;

/** A sweep over many levels and its end in one batch, after a batch for each order that it takes. */
function batches(): CommandRecord[][] {
  const usual = { outcome: 1, quantity: 2, type: "limit", timeInForce: "gtc", prevention: "cancel_taker" } as const;
  const rest = { ...usual, postOnly: false, pat: false, at: 1, expiresAt: 0, validUntil: 0 };
  const place = (slot: number, order: Partial<Placement>): CommandRecord =>
    CommandRecord.place(CommandKind.placeOrder, slot, 1, { ...rest, id: slot, user: 1, ...order } as Placement);
  const resting = Array.from({ length: RESTING }, (_, i) => [place(1 + i, { side: 2, price: 100 + i })]);
  const sweep = place(900, { user: 2, side: 1, price: 9_000, quantity: 2 * RESTING });
  const next = place(901, { user: 2, side: 1, price: 50 });
  return [[CommandRecord.market(CommandKind.openMarket, 1, 0, 1, 2)], ...resting, [sweep, next]];
}

/** Runs the batches as an engine thread does; returns the records of each publish. */
function run(isStamped: boolean, ringRecords: number): Int32Array[][] {
  const memory = createRing(ringRecords);
  const events = new RingProducer(memory);
  const consumer = new RingConsumer(memory, false);
  const published: Int32Array[][] = [];
  let time = 0;
  const stamp = new BatchStamp(events, () => ++time);
  const drain = (): void => {
    const records: Int32Array[] = [];
    for (let left = consumer.available(); left > 0; left--) {
      const w = (consumer.tail & consumer.mask) * RECORD_WORDS;
      records.push(consumer.words.slice(w, w + RECORD_WORDS));
      consumer.tail = (consumer.tail + 1) | 0;
    }
    consumer.release();
    published.push(records);
  };
  const matcher: Matcher = createMatcher(events, {
    capacity: 1_024,
    activeBooks: 4,
    onRingFull() {
      drain();
      if (isStamped) stamp.open();
    },
    ...(isStamped ? { beforePublish: () => stamp.close() } : {}),
  });
  for (const batch of batches()) {
    if (isStamped) stamp.open();
    for (const { words, doubles } of batch) matcher.execute(words, doubles, 0);
    matcher.endBatch();
    drain();
  }
  return published;
}

const kindOf = (record: Int32Array): string => decodeEvent(record, new Float64Array(record.buffer), 0).kind;
const isStamp = (record: Int32Array): boolean => kindOf(record) === "batchMatched";

test("each publish begins with its only stamp, even in the middle of a command", () => {
  const published = run(true, SMALL_RING);
  expect(published.length).toBeGreaterThan(RESTING + 2 + 2);
  published.forEach((records, i) => {
    expect(records.map(isStamp)).toEqual(records.map((_, place) => place === 0));
    expect(new Float64Array(records[0]!.buffer)[D_MATCHED]).toBe(i + 1);
  });
});

test("the other records are the same without stamps, byte for byte", () => {
  const plain = run(false, LARGE_RING).flat();
  expect(plain.some(isStamp)).toBe(false);
  expect(plain.some((record) => kindOf(record) === "orderFilled")).toBe(true);
  const stamped = run(true, LARGE_RING).flat();
  expect(stamped.length).toBe(plain.length + batches().length);
  expect(stamped.filter((record) => !isStamp(record))).toEqual(plain);
});

test("a publish without a stamp, or two stamps before one, is a mistake", () => {
  const stamp = new BatchStamp(new RingProducer(createRing(4)), () => 1);
  expect(() => stamp.close()).toThrow("a publish has a stamp");
  stamp.open();
  expect(() => stamp.open()).toThrow("a publish has one stamp");
});
