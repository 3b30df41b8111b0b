/** A clock that was two days back for a while: ids of live orders are keys all the same, also after a restart. */
import { expect, onTestFinished, test } from "vitest";
import { OrderType, SelfTradePrevention, Side, TimeInForce } from "../../engine/constants.ts";
import type { Placement } from "../../server/order-entry.ts";
import { Random } from "../server/support/random.ts";
import { Clients, Hash } from "./clients.ts";
import { Committed } from "./committed.ts";
import { Disk } from "./disk.ts";
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
const HOUR_MS = 3_600_000;
const UNHEARD = { data(): void {}, error(): void {} };

test("a live order's client order id names it after a restart, whatever the clock did since", async () => {
  const clock = { now: Date.UTC(2026, 0, 10) };
  const random = new Random(1);
  const disk = new Disk(Disk.template(), random);
  const record = new Committed();
  const clients = new Clients(random, clock, record, new Tally(), new Hash());
  const begin = async (): Promise<Life> => {
    const witness = { committed() {}, event() {}, ringIsFull: () => expect.unreachable("few events") };
    const life = new Life(disk.path, SHAPE, clock, record, clients, witness);
    clients.begin(life);
    await life.becomeQuiet();
    life.isReady = true;
    return life;
  };
  let life = await begin();
  onTestFinished(() => {
    life.end();
    disk.remove();
  });
  clients.found(1);
  const at = clock.now;
  const texts = { slug: "m", question: "?", description: null, category: null, eventId: null, proposedBy: null };
  void life.writer.write([{ kind: "deposit", userId: 1, amount: 1e12, reference: "bank-1", at }]);
  void life.writer.write([
    { kind: "createMarket", ...texts, outcomes: ["Yes", "No"], opensAt: at, closesAt: null, at },
  ]);
  await life.becomeQuiet();
  const place = async (clientOrderId: string): Promise<void> => {
    const usual = { type: OrderType.limit, timeInForce: TimeInForce.gtc, postOnly: false, timestamps: false };
    const rest = { expiresAt: null, validUntil: null, selfTradePrevention: SelfTradePrevention.cancelTaker };
    const order: Placement = {
      marketId: 1, outcomeId: 1, side: Side.buy, price: 10, quantity: 1, clientOrderId, ...usual, ...rest,
    }; // biome-ignore format: one order
    const trader = { userId: 1, dailyLimit: Number.MAX_SAFE_INTEGER, pat: false };
    life.entry.place(trader, { connection: null, builderCode: null }, order, clock.now, UNHEARD);
    await life.becomeQuiet();
  };
  await place("first");
  clock.now -= 48 * HOUR_MS;
  for (let i = 0; i < 10; i++) await place(`back-${i}`);
  clock.now += 49 * HOUR_MS;
  await place("last");
  disk.crash(null);
  life.end();
  life = await begin();
  for (const id of ["first", "back-5", "last"]) {
    expect(life.exchange.clientOrderIds.find(1, id), id).not.toBe(0);
  }
  const count = record.live.size;
  await place("first");
  expect(record.live.size).toBe(count);
});
