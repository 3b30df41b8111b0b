/** Changes of markets whose engine's command ring is full, with this test at the engine's and at the log's end. */

import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import { MarketStatus } from "../../engine/constants.ts";
import { Ledger } from "../../engine/ledger.ts";
import { MailCount } from "../../engine/log/mail-count.ts";
import type { LogReply, LogRequest } from "../../engine/log/messages.ts";
import { unpackRequest } from "../../engine/log/request.ts";
import { UNDECIDED } from "../../engine/projection/load/markets.ts";
import * as R from "../../engine/ring/records.ts";
import { createRing, RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { createMicroClock, readClockEpoch } from "../../engine/util/micro-clock.ts";
import { Accounts } from "../../server/accounts/accounts.ts";
import { Approvals } from "../../server/accounts/approvals.ts";
import { MarketLifecycle, type MarketLifecycleOptions } from "../../server/markets/lifecycle.ts";
import { type MarketLookups, MarketWrites } from "../../server/markets/market-writes.ts";
import { MarketRegistry } from "../../server/markets/registry.ts";
import { ClientOrderIds } from "../../server/trading/client-order-ids.ts";
import { Exchange } from "../../server/trading/exchange.ts";
import { OrderStore } from "../../server/trading/order-store.ts";
import { OrderTimes } from "../../server/trading/order-times.ts";
import { nodeLoop } from "../../server/trading/turn-loop.ts";
import { Counters } from "../../server/util/counters.ts";
import { Timeline } from "../../server/util/timeline.ts";
import { LogWriter } from "../../server/writes/log-writer.ts";
import { PortMailbox } from "../../server/writes/mailbox.ts";
import { PlainWrites } from "../../server/writes/plain-writes.ts";
import { RowIds } from "../../server/writes/row-ids.ts";

const RECORDS = 2_048;
const NOW = 1_800_000_000_000;

function rig() {
  const commands = createRing(RECORDS);
  const engine = new RingConsumer(commands, false);
  const registry = new MarketRegistry(1, 0, systemClock);
  const link = {
    commands: new RingProducer(commands),
    events: new RingConsumer(createRing(RECORDS), true),
    waker: new Waker(),
  };
  const exchange = new Exchange({
    projected: { isDue: false, resolveDue() {} },
    links: [link],
    loop: nodeLoop(new Waker(), systemClock),
    store: new OrderStore(),
    ledger: new Ledger(),
    registry,
    clientOrderIds: new ClientOrderIds(NOW),
    lastOrderId: 0,
    userSequences: [],
    counters: new Counters(),
    times: new OrderTimes(createMicroClock(readClockEpoch())),
    timeline: new Timeline(NOW),
  });
  const { port1: port, port2: log } = new MessageChannel();
  const accounts = new Accounts(() => {});
  const ids = new RowIds(new Map([["markets", 1]]));
  const markets = new MarketWrites({ registry, trading: exchange, ids, lookups: {} as MarketLookups });
  const writer = new LogWriter({
    rooms: [new PlainWrites(ids, () => {}), markets],
    gate: exchange.gate,
    mailbox: new PortMailbox(port, new MailCount(), new Waker()),
    time: () => exchange.time(),
  });
  const approvals = new Approvals(writer, accounts, new Set(), []);
  const life = new MarketLifecycle({ exchange, writer, approvals } as unknown as MarketLifecycleOptions);
  const texts = { slug: "due", question: "Is it due?", description: null, category: null, eventId: null };
  const outcomes = [1, 2].map((id) => ({
    id,
    marketId: 1,
    position: id - 1,
    name: `${id}`,
    lastPrice: null,
    volume: 0,
    payout: null,
  }));
  const market = registry.add(
    { id: 1, ...texts, status: MarketStatus.open, sets: 0, opensAt: 1, closesAt: NOW, createdAt: 1, proposedBy: null, ...UNDECIDED, firstOutcomeId: 1, outcomes: 2 },
    outcomes,
  ); // biome-ignore format: one row
  /** Writes commands until not even those find room that can't be rejected. */
  const fill = (): void => {
    while (exchange.writer.hasReservedRoom(1)) exchange.writer.probe(() => 0);
    exchange.writer.publish();
  };
  /** Consumes all commands as an engine would; returns their kinds except those of `fill`. */
  const drain = (): number[] => {
    exchange.writer.publish();
    const kinds: number[] = [];
    for (let count = engine.available(); count > 0; count--) {
      kinds.push(R.kindOf(engine.words[(engine.tail & engine.mask) * R.RECORD_WORDS]!));
      engine.tail = (engine.tail + 1) | 0;
    }
    engine.release();
    return kinds.filter((kind) => kind !== R.CommandKind.cancelOrder);
  };
  return { exchange, registry, market, life, writer, log, port, fill, drain };
}

test("a market past its closes_at closes once the ring has room, and publishes it once", async () => {
  const { life, market, log, port, fill, drain } = rig();
  fill();
  expect(life.closeDue(NOW - 1)).toBe(true);
  expect(life.closeDue(NOW)).toBe(false);
  const operator = { actor: "admin", userId: null };
  const context = { now: NOW, requestId: "r", address: "", client: "", userAgent: "" };
  await expect(life.change(market, "close", null, operator, context)).rejects.toMatchObject({ kind: { code: 50300 } });
  expect(drain()).toEqual([]);
  expect(life.closeDue(NOW)).toBe(true);
  // The close is in flight: nobody else may change the market, and the next tick does nothing.
  await expect(life.change(market, "halt", null, operator, context)).rejects.toMatchObject({ kind: { code: 40900 } });
  expect(life.closeDue(NOW + 200)).toBe(true);
  expect(drain()).toEqual([R.CommandKind.closeMarket]);
  const [{ payload }] = (await once(log, "message")) as [LogRequest];
  const { audits } = unpackRequest(Buffer.from(payload));
  expect(audits).toMatchObject([
    { action: "market.close", actor: "exchange", subject: 1, details: { closes_at: NOW } },
  ]);
  port.close();
});

test("a new market exists once the ring has room for its command", async () => {
  const { registry, writer, log, port, fill, drain } = rig();
  const made = writer.write([
    {
      kind: "createMarket",
      ...{
        slug: "new",
        question: "Is it new?",
        description: null,
        category: null,
        eventId: null,
        outcomes: ["Yes", "No"],
      },
      ...{ opensAt: NOW, closesAt: null, proposedBy: null, at: NOW },
    },
  ]);
  const [{ id, payload }] = (await once(log, "message")) as [LogRequest];
  expect(unpackRequest(Buffer.from(payload)).writes).toMatchObject([
    { kind: "createMarket", id: 2, firstOutcomeId: 3 },
  ]);
  fill();
  log.postMessage({ id, firstEntry: 0 } satisfies LogReply);
  // One turn, in which the reply arrives.
  await once(port, "message");
  expect(registry.get(2)).toBeUndefined();
  expect(drain()).toEqual([]);
  await made;
  expect(registry.get(2)).toMatchObject({ slug: "new", status: MarketStatus.open });
  expect(drain()).toEqual([R.CommandKind.openMarket]);
  port.close();
});
