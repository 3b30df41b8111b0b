/** The command writer beside the drawing in records.ts: what it writes, and that it allocates nothing once it is warm. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Reason, Side } from "../../engine/constants.ts";
import * as R from "../../engine/ring/records.ts";
import { createRing, RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { CommandWriter } from "../../server/trading/command-writer.ts";
import { OrderStore } from "../../server/trading/order-store.ts";
import { Timeline } from "../../server/util/timeline.ts";

const NOW = 1_800_000_000_000;

/** @param last the last time on record: later than NOW where the machine's clock was set back */
function rig(last: number) {
  const commands = createRing(64);
  const engine = new RingConsumer(commands, false);
  const store = new OrderStore(8);
  const events = new RingConsumer(createRing(16), true);
  const link = { commands: new RingProducer(commands), events, waker: new Waker() };
  const writer = new CommandWriter([link], store, new Timeline(last));
  const terms = R.packTerms(Side.sell, 1, 2, 1, R.FLAG_POST_ONLY);
  const fields = { id: 2 ** 40, user: 5, market: 3, outcome: 7, price: 4_200, quantity: 100, remaining: 60, terms };
  const times = { expiresAt: NOW + 9_000, createdAt: NOW, updatedAt: NOW };
  const slot = store.allocate({ ...fields, status: 0, connection: 0, ...times });
  /** The next command in the ring. */
  const next = () => {
    writer.publish();
    const w = (engine.tail & engine.mask) * R.RECORD_WORDS;
    const words = Array.from(engine.words.subarray(w, w + 8));
    const doubles = Array.from(engine.doubles.subarray(w / 2 + 4, w / 2 + 8));
    engine.tail = (engine.tail + 1) | 0;
    engine.release();
    return { words, doubles };
  };
  return { writer, slot, terms, next };
}

test("each command has the fields that its record names, and 0 elsewhere", () => {
  const { writer, slot, terms, next } = rig(NOW);
  const packed = R.CommandKind.placeOrder | terms;
  const order = [slot, 5, 7, 4_200];
  writer.placeOrder({ slot, at: NOW, validUntil: NOW + 5 });
  expect(next()).toEqual({ words: [packed, ...order, 100, 3, 0], doubles: [2 ** 40, NOW, NOW + 9_000, NOW + 5] });
  writer.replaceOrder({ slot, at: NOW, replaced: 2, expected: 40 });
  expect(next()).toEqual({
    words: [packed | R.FLAG_REPLACES, ...order, 100, 3, 2],
    doubles: [2 ** 40, NOW, NOW + 9_000, 40],
  });
  writer.restoreOrder(slot, true);
  const restore = R.CommandKind.restoreOrder | terms | R.FLAG_LAST;
  expect(next()).toEqual({ words: [restore, ...order, 60, 3, 100], doubles: [2 ** 40, NOW, NOW + 9_000, 0] });
  writer.cancelOrder({ slot, at: NOW, reason: Reason.expired, correlationId: -4 });
  expect(next()).toEqual({
    words: [R.packCancel(Reason.expired), slot, 5, 7, 0, 0, 3, -4],
    doubles: [2 ** 40, NOW, 0, 0],
  });
  writer.amendOrder({ slot, at: NOW, price: 0, quantity: 70, priority: 2 ** 41, validUntil: 0, correlationId: 6 });
  const { amendOrder } = R.CommandKind;
  expect(next()).toEqual({ words: [amendOrder, slot, 5, 7, 0, 70, 3, 6], doubles: [2 ** 40, NOW, 2 ** 41, 0] });
  writer.extendOrder({ slot, at: NOW, expiresAt: 0, correlationId: 8 });
  const extend = amendOrder | R.FLAG_EXTENDS;
  expect(next()).toEqual({ words: [extend, slot, 5, 7, 0, 0, 3, 8], doubles: [2 ** 40, NOW, 0, 0] });
  writer.changeMarket({ marketId: 3, at: NOW, change: "halt", correlationId: 9 });
  expect(next()).toEqual({ words: [R.CommandKind.haltMarket, 0, 0, 0, 0, 0, 3, 9], doubles: [0, NOW, 0, 0] });
  writer.splitSets({ userId: 5, marketId: 3, at: NOW, quantity: 10, correlationId: 11 });
  expect(next()).toEqual({ words: [R.CommandKind.splitSets, 0, 5, 0, 0, 10, 3, 11], doubles: [0, NOW, 0, 0] });
  writer.mergeSets({ userId: 5, marketId: 3, at: NOW, quantity: 10, feeBps: 7, correlationId: 12 });
  expect(next()).toEqual({ words: [R.CommandKind.mergeSets, 0, 5, 0, 7, 10, 3, 12], doubles: [0, NOW, 0, 0] });
});

test("a clock that was set back shifts valid_until, and leaves a replaced quote's hold unchanged", () => {
  const { writer, slot, next } = rig(NOW + 60_000);
  writer.placeOrder({ slot, at: NOW, validUntil: NOW + 5 });
  expect(next().doubles).toEqual([2 ** 40, NOW + 60_000, NOW + 9_000, NOW + 60_005]);
  writer.replaceOrder({ slot, at: NOW, replaced: 2, expected: 40 });
  expect(next().doubles).toEqual([2 ** 40, NOW + 60_000, NOW + 9_000, 40]);
});

test("a chain marks all but its last command", () => {
  const { writer, slot, next } = rig(NOW);
  writer.beginChain(2);
  writer.cancelOrder({ slot, at: NOW, reason: Reason.user, correlationId: 0 });
  writer.placeOrder({ slot, at: NOW, validUntil: 0 });
  writer.placeOrder({ slot, at: NOW, validUntil: 0 });
  const isFollowed = () => (next().words[0]! & R.FLAG_MORE) !== 0;
  expect([isFollowed(), isFollowed(), isFollowed()]).toEqual([true, false, false]);
});

test("a warm command writer allocates nothing", () => {
  const program = fileURLToPath(new URL("../../dist/test/trading/command-writer-worker.js", import.meta.url));
  const output = execFileSync(process.execPath, ["--expose-gc", program], { encoding: "utf8" });
  const rounds = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { bytes: number; collections: number });
  console.log(`allocation: ${rounds.map(({ bytes }) => bytes.toFixed(3)).join(" ")} bytes a command`);
  expect(rounds).toHaveLength(5);
  // The compiler itself allocates a little now and then; an allocation per command would show in every round.
  const best = rounds.reduce((a, b) => (a.bytes <= b.bytes ? a : b));
  expect(best.collections).toBe(0);
  expect(Math.abs(best.bytes)).toBeLessThan(0.25);
});
