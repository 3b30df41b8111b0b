/**
 * Orders per second that the journal makes durable (FULL): the real matcher fills an event ring, the real journal
 * commits it batch by batch, and the measured time includes both, as in the thread that runs both. Full batches occur
 * when all clients send as fast as the exchange accepts; small ones show the cost of a commit itself.
 */
import { openSync } from "node:fs";
import { join } from "node:path";
import { Piscina } from "piscina";
import { OrderStatus } from "../../engine/constants.ts";
import { KEEP_UPDATES_MS, MAX_BATCH_COMMANDS } from "../../engine/limits.ts";
import { migrate, openDatabase, openReadOnly } from "../../engine/projection/database.ts";
import { OrderUpdates } from "../../engine/projection/order-updates.ts";
import { RowLinks } from "../../engine/projection/row-links.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { assert } from "../../engine/util/assert.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { randomFrom } from "../support/random.ts";
import { goal, grouped, median, printHead, printResult } from "../support/report.ts";
import { builtScript } from "../support/root.ts";
import { createRig } from "./journal/rig.ts";
import { MARKETS, START_MS, USERS } from "./journal/traffic.ts";

const smoke = process.argv.includes("--smoke");
const ROUNDS = smoke ? 1 : 5;
const ROUND_SECONDS = smoke ? 0.2 : 2;
const WARM_UP_SECONDS = smoke ? 0.1 : 3;
const NEEDED = 300_000;
/** Commands per batch: at full load, and with 256 and 64 connections that wait for their responses. */
const BATCHES = [MAX_BATCH_COMMANDS, 256, 64];

const folder = makeFolder("bench-journal");
const path = join(folder, "exchange.db");
// The WAL is checkpointed from another thread, as the server does it. It starts when it is first needed: until the rig
// has made the database there are no tables to look at.
const pool = new Piscina({
  filename: builtScript("history-worker.js").href,
  minThreads: 0,
  maxThreads: 1,
  idleTimeout: Number.POSITIVE_INFINITY,
  workerData: { path },
});
const file = openSync(path, "a");
let checkpoint: Promise<void> | null = null;
let checkpointed = false;
const { db, journal, traffic, runBatch } = createRig(path, "full", () => {
  checkpoint = pool.run({ file }, { name: "checkpoint" }).then(() => {
    checkpointed = true;
  });
});

interface Measured {
  readonly ordersPerSecond: number;
  readonly operationsPerSecond: number;
  readonly matchesPerSecond: number;
  readonly matchMs: number;
  readonly commitMs: number;
}

/** Runs batches for `seconds` of measured time. */
async function measure(batch: number, seconds: number): Promise<Measured> {
  let [matchMs, commitMs, batches] = [0, 0, 0];
  const [orders, matches] = [traffic.placements, traffic.matches];
  while (matchMs + commitMs < seconds * 1_000) {
    traffic.makeBatch(batch);
    if (checkpointed) {
      checkpointed = false;
      checkpoint = null;
      const start = performance.now();
      journal.finishCheckpoint();
      commitMs += performance.now() - start;
    }
    const took = runBatch(batch);
    matchMs += took.matchMs;
    commitMs += took.commitMs;
    batches++;
    // Lets the checkpoint's message in.
    if (checkpoint !== null) await new Promise((resolve) => setImmediate(resolve));
  }
  const perSecond = (count: number) => Math.round(count / ((matchMs + commitMs) / 1_000));
  return {
    ordersPerSecond: perSecond(traffic.placements - orders),
    operationsPerSecond: perSecond(batches * batch),
    matchesPerSecond: perSecond(traffic.matches - matches),
    matchMs: matchMs / batches,
    commitMs: commitMs / batches,
  };
}

interface Batches {
  readonly batch: number;
  readonly orders_per_s: number;
  readonly best_orders_per_s: number;
  readonly match_ms: number;
  readonly commit_ms: number;
}

async function measureRounds(batch: number): Promise<Batches> {
  const rounds: Measured[] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push(await measure(batch, ROUND_SECONDS));
  const of = (field: keyof Measured) => median(rounds.map((round) => round[field]));
  const orders = of("ordersPerSecond");
  const best = Math.max(...rounds.map(({ ordersPerSecond }) => ordersPerSecond));
  const needed = batch === MAX_BATCH_COMMANDS ? `, needed ${grouped(NEEDED)}` : "";
  console.log(
    `  batches of ${batch}: ${grouped(orders)} orders/s${needed} (median of ${ROUNDS}, best ${grouped(best)})`,
  );
  const [operations, matches] = [grouped(of("operationsPerSecond")), grouped(of("matchesPerSecond"))];
  const [matchMs, commitMs] = [of("matchMs").toFixed(3), of("commitMs").toFixed(3)];
  console.log(`    ${operations} operations/s, ${matches} matches/s; ${matchMs} ms to match, ${commitMs} ms to commit`);
  return { batch, orders_per_s: orders, best_orders_per_s: best, match_ms: +matchMs, commit_ms: +commitMs };
}

/**
 * The time per order update's row, µs, in transactions as large as a full batch's, on a separate database that never
 * waits for a disk: to write it, and to write it while an old one is pruned, as happens after eight days.
 */
function measureUpdates(updatesPerBatch: number): { written: number; pruned: number } {
  const db = openDatabase(join(folder, "updates.db"), "off");
  migrate(db);
  const chains = new RowLinks(db);
  const updates = new OrderUpdates(db, chains, 0, KEEP_UPDATES_MS);
  const random = randomFrom(20_261_121);
  const times: Record<"written" | "pruned", number[]> = { written: [], pruned: [] };
  for (const what of ["written", "pruned"] as const) {
    for (let round = 0; round < ROUNDS; round++) {
      const start = performance.now();
      db.exec("BEGIN IMMEDIATE");
      for (let i = 0; i < updatesPerBatch; i++) {
        const user = 1 + Math.floor(random() * USERS);
        updates.add(user, i + 1, 5_000, 100, 100, OrderStatus.open, 0, 0, START_MS, 0);
      }
      updates.flush();
      // A row is pruned only after the tables of newest rows include it.
      chains.write({ order: 0, fill: 0, update: updates.count }, what === "pruned");
      while (what === "pruned" && updates.isPruningDue) {
        updates.prune(START_MS + 2 * KEEP_UPDATES_MS, updates.count);
      }
      db.exec("COMMIT");
      times[what].push(((performance.now() - start) * 1_000) / updatesPerBatch);
    }
  }
  const left = db.prepare("SELECT count(*) FROM order_updates").pluck().get() as number;
  assert(left < (ROUNDS + 2) * updatesPerBatch, `outdated updates are pruned: ${left} are left`);
  db.close();
  return { written: median(times.written), pruned: median(times.pruned) };
}

printHead(
  "journal",
  `${USERS} users, ${MARKETS} markets; of ten operations 5 rest, 1 takes, 4 cancel; FULL in ${folder}`,
);
await measure(MAX_BATCH_COMMANDS, WARM_UP_SECONDS);
const results: Batches[] = [];
for (const batch of BATCHES) results.push(await measureRounds(batch));
const { orders_per_s: atFullBatches } = itemAt(results, 0);
const written = db.prepare("SELECT order_updates FROM totals").pluck().get() as number;
const updatesPerOrder = written / traffic.placements;
const micros = measureUpdates(Math.round((MAX_BATCH_COMMANDS * written) / traffic.operations));
const perOrder = (micro: number): string => `${(updatesPerOrder * micro).toFixed(2)} µs an order`;
console.log(
  `  for the private stream to be durable: ${updatesPerOrder.toFixed(2)} updates an order, ${micros.written.toFixed(2)} µs ` +
    `each: ${perOrder(micros.written)}; with pruning ${perOrder(micros.pruned)}`,
);
await checkpoint;
await pool.destroy();
journal.close();
const reader = openReadOnly(path);
const broken = verifyDatabase(reader).filter(({ ok }) => !ok);
reader.close();
assert(broken.length === 0, `the database holds: ${JSON.stringify(broken)}`);
removeFolder(folder);
const updates = { per_order: updatesPerOrder, us_written: micros.written, us_pruned: micros.pruned };
const goals = [goal("journal, orders/s in full batches", NEEDED, atFullBatches)];
printResult({ bench: "journal", needed: NEEDED, batches: results, updates, goals });
