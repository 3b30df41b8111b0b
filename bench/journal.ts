/**
 * Orders a second that the journal makes durable (FULL): the real matcher fills an event ring, the real journal commits
 * it batch by batch, and the clock counts the two, as the thread that runs both would. Full batches are what comes while
 * everyone sends as fast as the exchange takes it; small ones show what a commit costs alone.
 */
import { join } from "node:path";
import { Piscina } from "piscina";
import { check } from "../engine/check.ts";
import { migrate, openDatabase, openReadOnly } from "../engine/journal/database.ts";
import { Journal } from "../engine/journal/journal.ts";
import { CommittedTotals } from "../engine/journal/totals.ts";
import { verifyDatabase } from "../engine/journal/verify.ts";
import type { AccountWrite } from "../engine/journal/writes.ts";
import { EVENT_RING_RECORDS, MAX_BATCH_COMMANDS } from "../engine/limits.ts";
import { createMatcher } from "../engine/matcher.ts";
import { OrderTexts } from "../engine/order-texts.ts";
import { RECORD_WORDS } from "../engine/records.ts";
import { createRing, RingConsumer, RingGate, RingProducer } from "../engine/ring.ts";
import { MARKETS, SLOTS, Traffic, USERS } from "./journal/traffic.ts";
import { grouped, printHead, printResult } from "./report.ts";
import { makeFolder, removeFolder } from "./support/folder.ts";
import { randomFrom } from "./support/random.ts";

const smoke = process.argv.includes("--smoke");
const SECONDS = smoke ? 0.2 : 8;
const WARM_UP_SECONDS = smoke ? 0.1 : 3;
const NEEDED = 150_000;
/** Commands a batch: what many clients at once give, and what 256 and 64 connections do. */
const BATCHES = [MAX_BATCH_COMMANDS, 256, 64];

const folder = makeFolder("bench-journal");
const path = join(folder, "exchange.db");
const db = openDatabase(path, "full");
migrate(db);
// The WAL is checkpointed from another thread, as the server does it.
const pool = new Piscina({
  filename: new URL("../history-worker.js", import.meta.url).href,
  maxThreads: 1,
  workerData: { path },
});
let checkpoint: Promise<void> | null = null;
let checkpointed = false;

const ring = createRing(EVENT_RING_RECORDS);
const matcher = createMatcher(new RingProducer(ring), {
  capacity: SLOTS,
  onRingFull: () => check(false, "a batch's events fit the ring"),
});
const events = new RingConsumer(ring, true);
const journal = new Journal({
  db,
  gates: [new RingGate(ring)],
  texts: new OrderTexts(SLOTS),
  totals: new CommittedTotals(),
  now: Date.now,
  requestCheckpoint() {
    checkpoint = pool.run({}, { name: "checkpoint" }).then(() => {
      checkpointed = true;
    });
  },
});
const traffic = new Traffic(MAX_BATCH_COMMANDS, randomFrom(20_241_120));

/** What the engine thread does with a batch; answers the milliseconds of the whole and of the journal's part. */
function runBatch(commands: number): { totalMs: number; journalMs: number } {
  const start = performance.now();
  for (let i = 0; i < commands; i++) matcher.execute(traffic.words, traffic.doubles, i * RECORD_WORDS);
  matcher.endBatch();
  const matched = performance.now();
  if (checkpointed) {
    checkpointed = false;
    checkpoint = null;
    journal.finishCheckpoint();
  }
  journal.commit([]);
  const end = performance.now();
  traffic.read(events);
  return { totalMs: end - start, journalMs: end - matched };
}

function setUp(): void {
  const writes: AccountWrite[] = [];
  const at = Date.now();
  for (let user = 1; user <= USERS; user++) {
    writes.push({ kind: "createUser", email: `${user}@example.com`, role: "user", kycTier: 2, at });
    writes.push({ kind: "deposit", userId: user, amount: 4e13, reference: `bench:${user}`, at });
  }
  for (let market = 1; market <= MARKETS; market++) {
    const rest = { description: null, category: null, eventId: null, opensAt: null, closesAt: null, at };
    const what = { slug: `market-${market}`, question: "?", outcomes: ["Yes", "No"] };
    writes.push({ kind: "createMarket", ...what, ...rest });
  }
  journal.commit([{ id: 1, writes }]);
  runBatch(traffic.makeSetup());
  for (let count = traffic.makeResting(); count > 0; count = traffic.makeResting()) runBatch(count);
}

interface Measured {
  readonly batch: number;
  readonly ordersPerSecond: number;
  readonly operationsPerSecond: number;
  readonly matchesPerSecond: number;
  /** Share of the time that the journal took; the matcher took the rest. */
  readonly journalShare: number;
  readonly commitMs: number;
}

/** Batches for so many seconds of measured time. */
async function measure(batch: number, seconds: number): Promise<Measured> {
  let [totalMs, journalMs, batches] = [0, 0, 0];
  const [orders, matches] = [traffic.placements, traffic.matches];
  while (totalMs < seconds * 1_000) {
    traffic.makeBatch(batch);
    const took = runBatch(batch);
    totalMs += took.totalMs;
    journalMs += took.journalMs;
    batches++;
    // Lets the checkpoint's answer in.
    if (checkpoint !== null) await new Promise((resolve) => setImmediate(resolve));
  }
  const perSecond = (count: number) => Math.round(count / (totalMs / 1_000));
  return {
    batch,
    ordersPerSecond: perSecond(traffic.placements - orders),
    operationsPerSecond: perSecond(batches * batch),
    matchesPerSecond: perSecond(traffic.matches - matches),
    journalShare: Number((journalMs / totalMs).toFixed(3)),
    commitMs: Number((journalMs / batches).toFixed(3)),
  };
}

printHead(
  "journal",
  `${USERS} users, ${MARKETS} markets; of ten operations 5 rest, 1 takes, 4 cancel; FULL in ${folder}`,
);
setUp();
await measure(MAX_BATCH_COMMANDS, WARM_UP_SECONDS);
const results: Measured[] = [];
for (const batch of BATCHES) {
  const measured = await measure(batch, SECONDS);
  results.push(measured);
  const { ordersPerSecond, operationsPerSecond, matchesPerSecond, journalShare, commitMs } = measured;
  const needed = batch === MAX_BATCH_COMMANDS ? `, needed ${grouped(NEEDED)}` : "";
  console.log(`  batches of ${batch}: ${grouped(ordersPerSecond)} orders/s${needed}`);
  console.log(
    `    ${grouped(operationsPerSecond)} operations/s with ${grouped(matchesPerSecond)} matches/s; a commit takes ${commitMs} ms, ${(journalShare * 100).toFixed(0)} % of the time`,
  );
}
await checkpoint;
await pool.destroy();
journal.close();
const reader = openReadOnly(path);
const broken = verifyDatabase(reader).filter(({ ok }) => !ok);
reader.close();
check(broken.length === 0, `the database holds: ${JSON.stringify(broken)}`);
removeFolder(folder);
printResult({ needed: NEEDED, batches: results });
