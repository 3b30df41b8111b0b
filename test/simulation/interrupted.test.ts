/**
 * A crash in the middle of an order's matching: the event ring was full, so that a part of it was committed by itself. What
 * is left of the order must not come back to rest at a price that crosses what rests there.
 */
import { expect, onTestFinished, test } from "vitest";
import { OrderStatus, OrderType, Reason, SelfTradePrevention, Side, TimeInForce } from "../../engine/constants.ts";
import type { Placement } from "../../server/order-entry.ts";
import { Random } from "../server/support/random.ts";
import { compareBooks, compareDatabase, compareGateway, verify } from "./checks.ts";
import { Clients, Hash } from "./clients.ts";
import { Committed } from "./committed.ts";
import { Crash, Disk } from "./disk.ts";
import { Life } from "./life.ts";
import { Tally } from "./tally.ts";

const SHAPE = {
  engines: 1,
  commandRecords: 512,
  eventRecords: 512,
  reservedCommands: 4,
  longestChain: 16,
  capacity: 400,
  largestId: 10,
  activeBooks: 8,
  keepUpdatesMs: 86_400_000,
  maxUntold: 1_000,
};
const CLOCK = { now: Date.UTC(2026, 0, 1) };
const BIDS = 300;
const UNHEARD = { data(): void {}, error(): void {} };

function order(outcomeId: number, side: number, price: number, quantity: number): Placement {
  const usual = { type: OrderType.limit, timeInForce: TimeInForce.gtc, postOnly: false, timestamps: false };
  const none = { clientOrderId: null, expiresAt: null, validUntil: null };
  return {
    marketId: 1, outcomeId, side, price, quantity, selfTradePrevention: SelfTradePrevention.cancelTaker, ...usual, ...none,
  }; // biome-ignore format: one order
}

test.for([
  ["a buy that mints", 2],
  ["a buy that takes asks", 1],
] as const)("%s is ended by the recovery", async ([, outcome]) => {
  const random = new Random(1);
  const disk = new Disk(Disk.template(), random);
  const record = new Committed();
  const clients = new Clients(random, CLOCK, record, new Tally(), new Hash());
  const begin = (ringIsFull: () => void): Life => {
    const life = new Life(disk.path, SHAPE, CLOCK, record, clients, { committed() {}, event() {}, ringIsFull });
    clients.begin(life);
    return life;
  };
  let life = begin(() => {
    life.commit();
    throw new Crash("in the middle of a command");
  });
  onTestFinished(() => {
    life.end();
    disk.remove();
  });
  const { entry } = life;
  const place = (userId: number, wish: Placement): void => {
    const trader = { userId, dailyLimit: Number.MAX_SAFE_INTEGER, pat: false };
    entry.place(trader, { connection: null, builderCode: null }, wish, CLOCK.now, UNHEARD);
  };
  await life.becomeQuiet();
  life.isReady = true;
  clients.found(2);
  await life.becomeQuiet();
  const at = CLOCK.now;
  const deposits = [1, 2].map((userId) => {
    return { kind: "deposit", userId, amount: 1e12, reference: `bank-${userId}`, at } as const;
  });
  const texts = { slug: "m", question: "?", description: null, category: null, eventId: null, proposedBy: null };
  const market = { kind: "createMarket", ...texts, outcomes: ["Yes", "No"], opensAt: at, closesAt: null, at } as const;
  for (const write of [...deposits, market]) void life.writer.write([write]);
  await life.becomeQuiet();

  // User 1 offers 300 times a share: by bids for Yes, which make No to be had, or by asks for Yes.
  const trader = { userId: 1, dailyLimit: Number.MAX_SAFE_INTEGER, pat: false };
  entry.changeSets(trader, 1, BIDS, true, CLOCK.now, UNHEARD, () => {});
  await life.becomeQuiet();
  for (let i = 0; i < BIDS; i++) {
    place(1, outcome === 2 ? order(1, Side.buy, 5_000 - (i % 20), 1) : order(1, Side.sell, 5_000 + (i % 20), 1));
    if (i % 50 === 0) await life.becomeQuiet();
  }
  await life.becomeQuiet();
  place(2, order(outcome, Side.buy, 9_000, BIDS));
  await expect(life.becomeQuiet()).rejects.toThrow(Crash);
  const id = record.lastOrder;
  const interrupted = { ...record.live.get(id)! };
  expect(interrupted.remaining).toBeGreaterThan(0);
  expect(interrupted.remaining).toBeLessThan(BIDS);

  disk.crash(null);
  life.end();
  life = begin(() => expect.unreachable("few events"));
  await life.becomeQuiet();
  await life.restored;
  expect(record.orders.get(id)).toMatchObject({
    status: OrderStatus.canceled,
    reason: Reason.operator,
    remaining: interrupted.remaining,
  });
  expect(record.live.size).toBe(interrupted.remaining);
  compareBooks(life, record);
  compareGateway(life, record);
  compareDatabase(life.database, record, { fills: 0, entries: 0, updates: 0 });
  verify(life.database);
});

test.for([
  ["cancels its owner's asks", SelfTradePrevention.cancelMaker],
  ["takes from its owner's asks", SelfTradePrevention.decrement],
] as const)("what was told before an order that %s was caught in it outlasts the crash", async ([, prevention]) => {
  const random = new Random(1);
  const disk = new Disk(Disk.template(), random);
  const record = new Committed();
  const clients = new Clients(random, CLOCK, record, new Tally(), new Hash());
  const begin = (ringIsFull: () => void): Life => {
    const life = new Life(disk.path, SHAPE, CLOCK, record, clients, { committed() {}, event() {}, ringIsFull });
    clients.begin(life);
    return life;
  };
  let life = begin(() => {
    life.commit();
    throw new Crash("in the middle of a command");
  });
  onTestFinished(() => {
    life.end();
    disk.remove();
  });
  const { entry } = life;
  const trader = { userId: 1, dailyLimit: Number.MAX_SAFE_INTEGER, pat: false };
  const place = (wish: Placement): void => {
    entry.place(trader, { connection: null, builderCode: null }, wish, CLOCK.now, UNHEARD);
  };
  await life.becomeQuiet();
  life.isReady = true;
  clients.found(1);
  await life.becomeQuiet();
  const at = CLOCK.now;
  const texts = { slug: "m", question: "?", description: null, category: null, eventId: null, proposedBy: null };
  void life.writer.write([{ kind: "deposit", userId: 1, amount: 1e12, reference: "bank-1", at }]);
  void life.writer.write([
    { kind: "createMarket", ...texts, outcomes: ["Yes", "No"], opensAt: at, closesAt: null, at },
  ]);
  await life.becomeQuiet();
  entry.changeSets(trader, 1, BIDS, true, CLOCK.now, UNHEARD, () => {});
  await life.becomeQuiet();
  for (let i = 0; i < BIDS; i++) {
    place(order(1, Side.sell, 5_000 + i, 1));
    if (i % 50 === 0) await life.becomeQuiet();
  }
  await life.becomeQuiet();
  place({ ...order(1, Side.buy, 9_000, BIDS), selfTradePrevention: prevention });
  await expect(life.becomeQuiet()).rejects.toThrow(Crash);
  const canceled = [...record.orders.values()].filter(({ status }) => status === OrderStatus.canceled).length;
  expect(canceled).toBeGreaterThan(10);
  verify(life.database);

  disk.crash(null);
  life.end();
  life = begin(() => expect.unreachable("few events"));
  await life.becomeQuiet();
  await life.restored;
  compareBooks(life, record);
  compareGateway(life, record);
  compareDatabase(life.database, record, { fills: 0, entries: 0, updates: 0 });
  verify(life.database);
});
