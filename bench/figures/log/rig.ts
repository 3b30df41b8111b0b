/**
 * The path of the log bench's orders, in one thread: traffic, the real matcher, an event ring, the real log on its own
 * journal.db, and a projector that follows it. Each batch returns the duration of its parts.
 */

import { join } from "node:path";
import type Database from "better-sqlite3";
import { createMatcher } from "../../../engine/book/matcher.ts";
import { EVENT_RING_RECORDS, MAX_BATCH_COMMANDS } from "../../../engine/limits.ts";
import { NO_HASH } from "../../../engine/log/append.ts";
import { BatchStamp } from "../../../engine/log/batch-stamp.ts";
import { openJournal } from "../../../engine/log/database.ts";
import { Log } from "../../../engine/log/log.ts";
import { JournalReader } from "../../../engine/log/log-reader.ts";
import { LogProgress } from "../../../engine/log/progress.ts";
import { packRequest } from "../../../engine/log/request.ts";
import type { Write } from "../../../engine/log/writes.ts";
import { migrate } from "../../../engine/projection/database.ts";
import { loadProjection } from "../../../engine/projection/load/projection.ts";
import { Projector } from "../../../engine/projection/projector.ts";
import { OrderTexts } from "../../../engine/ring/order-texts.ts";
import { RECORD_WORDS } from "../../../engine/ring/records.ts";
import { createRing, RingConsumer, RingGate, RingProducer } from "../../../engine/ring/ring.ts";
import { assert } from "../../../engine/util/assert.ts";
import { createMicroClock, readClockEpoch } from "../../../engine/util/micro-clock.ts";
import { type Durability, openDatabase } from "../../../engine/util/wal-database.ts";
import { randomFrom } from "../../support/random.ts";
import { MARKETS, SLOTS, START_MS, Traffic, USERS } from "./traffic.ts";

const DEPOSIT_MICRO = 4e13;

export interface Rig {
  readonly tables: Database.Database;
  readonly journal: Database.Database;
  readonly progress: LogProgress;
  readonly projector: Projector;
  readonly log: Log;
  readonly traffic: Traffic;
  /** An engine thread's work on `commands` of the traffic's batch; returns milliseconds. */
  runBatch(commands: number): { matchMs: number; commitMs: number };
}

/**
 * Opens the markets, funds the users with money and shares, and fills the books.
 * @param now the time of the batches, ms; by default the orders' own
 */
export function createRig(
  folder: string,
  durability: Durability,
  requestCheckpoint: () => void,
  now = (): number => START_MS,
): Rig {
  const tables = openDatabase(join(folder, "exchange.db"), durability === "full" ? "normal" : durability);
  migrate(tables);
  const journal = openJournal(join(folder, "journal.db"), durability);
  const ring = createRing(EVENT_RING_RECORDS);
  const producer = new RingProducer(ring);
  const clock = createMicroClock(readClockEpoch());
  const stamp = new BatchStamp(producer, clock);
  const matcher = createMatcher(producer, {
    capacity: SLOTS,
    beforePublish: () => stamp.close(),
    onRingFull: () => assert(false, "a batch's events fit the ring"),
  });
  const events = new RingConsumer(ring, true);
  const progress = new LogProgress();
  const { exchange } = loadProjection(tables);
  const log = new Log({
    db: journal,
    end: { exchange, batch: 0, records: 0, at: 0, hash: NO_HASH },
    last: { entry: 0, at: 0, updates: [] },
    rates: [],
    gates: [new RingGate(ring)],
    texts: new OrderTexts(SLOTS),
    progress,
    now,
    clock,
    onCommit: () => {},
    requestCheckpoint,
    replication: null,
  });
  const traffic = new Traffic(MAX_BATCH_COMMANDS, randomFrom(20_241_120));

  function runBatch(commands: number): { matchMs: number; commitMs: number } {
    const start = performance.now();
    stamp.open();
    for (let i = 0; i < commands; i++) matcher.execute(traffic.words, traffic.doubles, i * RECORD_WORDS);
    matcher.endBatch();
    const matched = performance.now();
    log.commit(() => []);
    const end = performance.now();
    traffic.read(events);
    return { matchMs: matched - start, commitMs: end - matched };
  }

  const payload = packRequest({ at: 0, writes: accountWrites(), audits: [], kept: null });
  log.commit(() => [{ id: 1, at: 0, entries: USERS, rates: [], payload }]);
  runBatch(traffic.makeSetup());
  for (let count = traffic.makeResting(); count > 0; count = traffic.makeResting()) runBatch(count);
  const projector = new Projector(tables, new JournalReader(journal), { capacity: SLOTS });
  return { tables, journal, progress, projector, log, traffic, runBatch };
}

function accountWrites(): Write[] {
  const writes: Write[] = [];
  const at = START_MS;
  for (let user = 1; user <= USERS; user++) {
    const verified = { passwordHash: null, emailVerifiedAt: at, phoneVerifiedAt: at };
    const rest = { role: "user", kycTier: 2, ...verified, at };
    writes.push({ kind: "createUser", id: user, email: `${user}@example.com`, ...rest });
    writes.push({ kind: "deposit", userId: user, amount: DEPOSIT_MICRO, reference: `bench:${user}`, at });
  }
  for (let market = 1; market <= MARKETS; market++) {
    const nothing = {
      description: null,
      category: null,
      eventId: null,
      opensAt: null,
      closesAt: null,
      proposedBy: null,
    };
    const ids = { id: market, firstOutcomeId: 2 * market - 1, outcomes: ["Yes", "No"] };
    writes.push({ kind: "createMarket", ...ids, slug: `market-${market}`, question: "?", ...nothing, at });
  }
  return writes;
}
