/**
 * The path of the journal bench's orders, in one thread: traffic, the real matcher, an event ring, and the real journal
 * on its own database. Each batch returns the duration of its parts.
 */
import type Database from "better-sqlite3";
import { createMatcher } from "../../../engine/book/matcher.ts";
import { EVENT_RING_RECORDS, MAX_BATCH_COMMANDS } from "../../../engine/limits.ts";
import { BatchStamp } from "../../../engine/log/batch-stamp.ts";
import { Journal, type JournalOptions } from "../../../engine/log/journal.ts";
import { CommittedTotals } from "../../../engine/log/totals.ts";
import { type Durability, migrate, openDatabase } from "../../../engine/projection/database.ts";
import type { AccountWrite } from "../../../engine/projection/writes/account-write.ts";
import { OrderTexts } from "../../../engine/ring/order-texts.ts";
import { RECORD_WORDS } from "../../../engine/ring/records.ts";
import { createRing, RingConsumer, RingGate, RingProducer } from "../../../engine/ring/ring.ts";
import { assert } from "../../../engine/util/assert.ts";
import { createMicroClock, readClockEpoch } from "../../../engine/util/micro-clock.ts";
import { randomFrom } from "../../support/random.ts";
import { MARKETS, SLOTS, START_MS, Traffic, USERS } from "./traffic.ts";

const DEPOSIT_MICRO = 4e13;

export interface Rig {
  readonly db: Database.Database;
  readonly journal: Journal;
  readonly traffic: Traffic;
  /** An engine thread's work on `commands` of the traffic's batch; returns milliseconds. */
  runBatch(commands: number): { matchMs: number; commitMs: number };
}

/**
 * Opens the markets, funds the users with money and shares, and fills the books. @param more further options of the
 * journal
 */
export function createRig(
  path: string,
  durability: Durability,
  requestCheckpoint: () => void,
  more: Partial<Pick<JournalOptions, "now" | "keepUpdatesMs">> = {},
): Rig {
  const db = openDatabase(path, durability);
  migrate(db);
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
  const journal = new Journal({
    db,
    gates: [new RingGate(ring)],
    texts: new OrderTexts(SLOTS),
    totals: new CommittedTotals(),
    // The orders' own time, at which none of their updates is outdated.
    now: () => START_MS,
    clock,
    onCommit: () => {},
    requestCheckpoint,
    ...more,
  });
  const traffic = new Traffic(MAX_BATCH_COMMANDS, randomFrom(20_241_120));

  function runBatch(commands: number): { matchMs: number; commitMs: number } {
    const start = performance.now();
    stamp.open();
    for (let i = 0; i < commands; i++) matcher.execute(traffic.words, traffic.doubles, i * RECORD_WORDS);
    matcher.endBatch();
    const matched = performance.now();
    journal.commit(() => []);
    const end = performance.now();
    traffic.read(events);
    return { matchMs: matched - start, commitMs: end - matched };
  }

  journal.commit(() => [{ id: 1, at: 0, writes: accountWrites(), audits: [], kept: null }]);
  runBatch(traffic.makeSetup());
  for (let count = traffic.makeResting(); count > 0; count = traffic.makeResting()) runBatch(count);
  return { db, journal, traffic, runBatch };
}

function accountWrites(): AccountWrite[] {
  const writes: AccountWrite[] = [];
  const at = Date.now();
  for (let user = 1; user <= USERS; user++) {
    const verified = { passwordHash: null, emailVerifiedAt: at, phoneVerifiedAt: at };
    const made = { id: user, email: `${user}@example.com` };
    writes.push({ kind: "createUser", ...made, role: "user", kycTier: 2, ...verified, at });
    writes.push({ kind: "deposit", userId: user, amount: DEPOSIT_MICRO, reference: `bench:${user}`, at });
  }
  for (let market = 1; market <= MARKETS; market++) {
    const rest = {
      description: null,
      category: null,
      eventId: null,
      opensAt: null,
      closesAt: null,
      proposedBy: null,
      at,
    };
    const made = { id: market, firstOutcomeId: 2 * market - 1, slug: `market-${market}` };
    writes.push({ kind: "createMarket", ...made, question: "?", outcomes: ["Yes", "No"], ...rest });
  }
  return writes;
}
