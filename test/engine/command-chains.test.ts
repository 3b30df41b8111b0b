/**
 * Chains of commands through the real engine thread: all events of a chain are published together, wherever the bound
 * of a batch or the end of the event ring falls. A batch ends with its changed levels, so levels among a chain's events
 * mean that the chain was split. The same commands without the flag are split, which proves that the test would notice.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, test } from "vitest";
import {
  COMMAND_RING_RECORDS,
  EVENT_RING_RECORDS,
  MAX_BATCH_COMMANDS,
  MAX_CHAIN_COMMANDS,
  MAX_EVENTS_PER_STEP,
} from "../../engine/limits.ts";
import { CommandKind, D_ORDER_ID, RECORD_DOUBLES, RECORD_WORDS, W_SLOT } from "../../engine/ring/records.ts";
import { createRing, RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import type { EngineThreadSetup, ThreadMessage } from "../../engine/thread-setup.ts";
import { createHistogram } from "../../engine/util/histogram.ts";
import { CommandRecord, decodeEvent, type EngineEvent, ensure } from "./book/harness.ts";
import type { Placement } from "./book/reference-book.ts";

const QUOTES = 100;
const CHAIN = 2 * QUOTES;
const CHAIN_ROOM = 4 * MAX_EVENTS_PER_STEP + 2 * MAX_CHAIN_COMMANDS;
const DEADLINE_MS = 5_000;
/** A batch's records in the ring besides its events. */
const STAMP = 1;

/** An engine thread without a log behind it: the test reads its published events. */
class Thread {
  readonly events: RingConsumer;
  readonly failed: Promise<string>;
  private readonly commands: RingProducer;
  private readonly engineWaker = new Waker();
  private readonly ownWaker = new Waker();
  private readonly worker: Worker;
  private readonly ready: Promise<unknown>;
  private lastId = 0;
  /** The quotes that rest. */
  private quotes: CommandRecord[] = [];

  constructor(eventRecords: number) {
    const setup: EngineThreadSetup = {
      ...{ commands: createRing(COMMAND_RING_RECORDS), events: createRing(eventRecords), capacity: 1_024 },
      ...{ waker: this.engineWaker.buffer, gatewayWaker: new Waker().buffer, logWaker: this.ownWaker.buffer },
      ...{ log: null, spinTurns: 0, clockEpoch: 0, batchCommands: createHistogram([1]) },
    };
    this.commands = new RingProducer(setup.commands);
    this.events = new RingConsumer(setup.events, false);
    this.worker = new Worker(new URL("../../dist/engine-thread.js", import.meta.url), { workerData: setup });
    this.ready = new Promise((resolve) => this.worker.once("message", resolve));
    this.failed = new Promise((resolve) => {
      this.worker.on("message", (message: ThreadMessage) => message.kind === "failed" && resolve(message.error));
    });
  }

  async openMarket(): Promise<void> {
    await this.ready;
    this.handOver([CommandRecord.market(CommandKind.openMarket, 1, 0, 1, 2)]);
  }

  handOver(records: readonly CommandRecord[]): void {
    const { commands } = this;
    ensure(commands.hasRoom(records.length), "a test's commands fit the ring");
    for (const { words, doubles } of records) {
      const index = commands.head & commands.mask;
      commands.words.set(words, index * RECORD_WORDS);
      commands.doubles.set(doubles, index * RECORD_DOUBLES);
      commands.head = (commands.head + 1) | 0;
    }
    commands.publish();
    this.engineWaker.wake();
  }

  /** Waits until `count` events are published and not yet released. */
  async untilAvailable(count: number): Promise<void> {
    const there = () => this.events.available() >= count;
    const deadline = performance.now() + DEADLINE_MS;
    while (!there()) {
      ensure(performance.now() < deadline, `${count} events, not ${this.events.available()}`);
      await this.ownWaker.sleepAsync(there, 100);
    }
  }

  /** Reads and releases all but stamps until `count` events other than levels came, and the levels of these. */
  async read(count: number): Promise<EngineEvent[]> {
    const { events } = this;
    const heard: EngineEvent[] = [];
    for (let others = 0; others < count; ) {
      await this.untilAvailable(1);
      for (let left = events.available(); left > 0; left--) {
        const event = decodeEvent(events.words, events.doubles, events.tail & events.mask);
        events.tail = (events.tail + 1) | 0;
        if (event.kind === "batchMatched") continue;
        if (event.kind !== "levelChanged") others++;
        heard.push(event);
      }
      events.release();
      this.engineWaker.wake();
    }
    return heard;
  }

  /** Replaces all quotes by as many others; the first time, there are none to cancel. */
  replaceQuotes(): CommandRecord[] {
    const old = this.quotes;
    const firstSlot = old[0]?.words[W_SLOT] === 1 ? 1 + QUOTES : 1;
    this.quotes = Array.from({ length: QUOTES }, (_, i) => {
      const order = quote(++this.lastId, 100 + i + (firstSlot === 1 ? 0 : 1_000));
      if (old.length === 0) return CommandRecord.place(CommandKind.placeOrder, firstSlot + i, 1, order);
      return CommandRecord.replace(firstSlot + i, 1, order, old[i]!.words[W_SLOT]!, order.quantity);
    });
    const cancels = old.map(({ words, doubles }) =>
      CommandRecord.cancel(words[W_SLOT]!, doubles[D_ORDER_ID]!, "user", 1),
    );
    return [...cancels, ...this.quotes];
  }

  async stop(): Promise<void> {
    await this.worker.terminate();
  }
}

function quote(id: number, price: number): Placement {
  return {
    ...{ id, user: 1, outcome: 1, side: 1, price, quantity: 5, type: "limit", timeInForce: "gtc" },
    ...{ prevention: "cancel_taker", postOnly: true, pat: false, at: 1, expiresAt: 0, validUntil: 0 },
  };
}

/** Commands that cause one event each and change no level. */
const fillers = (count: number): CommandRecord[] =>
  Array.from({ length: count }, () => CommandRecord.cancel(0, 2 ** 40, "user", 1));

const isChained = (event: EngineEvent): boolean => event.kind === "orderCanceled" || event.kind === "orderPlaced";

/** True if all events of the quotes' replacement are consecutive. */
function standTogether(events: readonly EngineEvent[]): boolean {
  const first = events.findIndex(isChained);
  const together = events.slice(first, first + CHAIN);
  ensure(events.filter(isChained).length === CHAIN, "each command has its event");
  return together.every(isChained);
}

let thread: Thread;

async function start(eventRecords: number): Promise<void> {
  thread = new Thread(eventRecords);
  await thread.openMarket();
  thread.handOver(thread.replaceQuotes());
  await thread.read(QUOTES);
}

afterEach(() => thread.stop());

describe("a chain around the end of a batch", () => {
  /** Commands handed over together; `fitting` of the quotes' commands still fit the batch. */
  const handOver = async (fitting: number, chained: boolean): Promise<EngineEvent[]> => {
    const records = thread.replaceQuotes();
    thread.handOver([...fillers(MAX_BATCH_COMMANDS - fitting), ...(chained ? CommandRecord.chain(records) : records)]);
    return thread.read(MAX_BATCH_COMMANDS - fitting + CHAIN);
  };

  test("a chain around the end of a batch is in one batch, wherever the batch's bound falls", async () => {
    await start(EVENT_RING_RECORDS);
    for (const fitting of [0, 1, 2, QUOTES, CHAIN - 1, CHAIN, CHAIN + 1, MAX_CHAIN_COMMANDS, MAX_CHAIN_COMMANDS + 1]) {
      expect(standTogether(await handOver(fitting, true)), `${fitting} commands fit`).toBe(true);
    }
  });

  test("without the flag, a chain around the end of a batch is split", async () => {
    await start(EVENT_RING_RECORDS);
    for (const fitting of [1, QUOTES, CHAIN - 1]) expect(standTogether(await handOver(fitting, false))).toBe(false);
  });

  test("a batch ends before a chain that might not fit, and includes one that does", async () => {
    await start(EVENT_RING_RECORDS);
    for (const [before, ends] of [
      [MAX_BATCH_COMMANDS - MAX_CHAIN_COMMANDS, false],
      [MAX_BATCH_COMMANDS - MAX_CHAIN_COMMANDS + 1, true],
    ] as const) {
      // Changes a level, whose event shows where the first batch ended.
      const outsider = { ...quote(2 ** 41, 9_000), outcome: 2 };
      const chain = CommandRecord.chain(thread.replaceQuotes());
      thread.handOver([
        CommandRecord.place(CommandKind.placeOrder, 900, 1, outsider),
        ...fillers(before - 1),
        ...chain,
      ]);
      const events = await thread.read(before + CHAIN);
      const level = events.findIndex(({ kind }) => kind === "levelChanged");
      expect(level).toBe(ends ? before : before + CHAIN);
      thread.handOver([CommandRecord.cancel(900, 2 ** 41, "user", 1)]);
      await thread.read(1);
    }
  });
});

describe("a chain before the end of the event ring", () => {
  const RECORDS = 2_048;

  /** Hands the quotes over while the ring holds this many records, which are released only afterwards. */
  const handOver = async (held: number, chained: boolean): Promise<EngineEvent[]> => {
    thread.handOver(fillers(held - STAMP));
    await thread.untilAvailable(held);
    const records = thread.replaceQuotes();
    thread.handOver(chained ? CommandRecord.chain(records) : records);
    if (RECORDS - held >= CHAIN_ROOM) await thread.untilAvailable(held + STAMP + CHAIN);
    else {
      await delay(20);
      if (chained) expect(thread.events.available(), "published while there was no room").toBe(held);
    }
    return thread.read(held - STAMP + CHAIN);
  };

  const heldCounts: number[] = [];
  for (let held = RECORDS - CHAIN_ROOM - 300; held < RECORDS - 4 * MAX_EVENTS_PER_STEP - 2; held += 41) {
    heldCounts.push(held);
  }

  test("a chain before the end of the event ring starts once there is room for the whole chain", async () => {
    await start(RECORDS);
    for (const held of [...heldCounts, RECORDS - CHAIN_ROOM, RECORDS - CHAIN_ROOM + 1]) {
      expect(standTogether(await handOver(held, true)), `${held} records held`).toBe(true);
    }
  });

  test("without the flag, a chain before the end of the event ring is split", async () => {
    await start(RECORDS);
    const together: boolean[] = [];
    for (const held of heldCounts) together.push(standTogether(await handOver(held, false)));
    expect(together.filter((whole) => !whole).length).toBeGreaterThan(5);
  });

  test("the thread sleeps while a chain waits for room in the event ring", async () => {
    await start(RECORDS);
    const held = RECORDS - CHAIN_ROOM + 1;
    thread.handOver(fillers(held - STAMP));
    await thread.untilAvailable(held);
    thread.handOver(CommandRecord.chain(thread.replaceQuotes()));
    await delay(50);
    const before = process.cpuUsage();
    await delay(400);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(200);
    expect(standTogether(await thread.read(held - STAMP + CHAIN))).toBe(true);
  });
});

describe("a gateway's mistakes with chains end the thread", () => {
  const place = (order: Partial<Placement>) =>
    CommandRecord.place(CommandKind.placeOrder, 500, 1, { ...quote(2 ** 41, 50), ...order });
  const whole = CommandRecord.chain;
  for (const [name, records, message] of [
    ["published in part", whole(fillers(3)).slice(0, 2), "published as a whole"],
    ["too long", whole(fillers(MAX_CHAIN_COMMANDS + 1)), "within its maximum length"],
    ["with a placement that may match", whole([place({ postOnly: false }), ...fillers(1)]), "emits one event"],
    ["with an amend at its end", whole([...fillers(1), CommandRecord.amend(1, 1, 50, 50, 1)]), "emits one event"],
  ] as const) {
    test(name, async () => {
      await start(EVENT_RING_RECORDS);
      thread.handOver(records);
      expect(await thread.failed).toContain(message);
    });
  }

  test("a chain of one more than the longest ends the thread; the longest is accepted", async () => {
    await start(EVENT_RING_RECORDS);
    thread.handOver(whole(fillers(MAX_CHAIN_COMMANDS)));
    expect(await thread.read(MAX_CHAIN_COMMANDS)).toHaveLength(MAX_CHAIN_COMMANDS);
  });
});
