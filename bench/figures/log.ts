/**
 * Orders per second that the log makes durable (FULL): the real matcher fills an event ring, the real log commits it batch
 * by batch. Full batches occur when all clients send as fast as the exchange accepts; small ones show the cost of a commit
 * itself. Then the projector's processor time per order over the same log, and the size of the tables and of the log, as it
 * is and in an archive.
 */
import { openSync, statSync } from "node:fs";
import { join } from "node:path";
import { MAX_BATCH_COMMANDS } from "../../engine/limits.ts";
import { writeArchive } from "../../engine/log/archive.ts";
import { dayOf } from "../../engine/log/archive-format.ts";
import { checkpoint } from "../../engine/log/checkpoint.ts";
import { JournalReader } from "../../engine/log/log-reader.ts";
import { projectAll } from "../../engine/projection/follow.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { assert } from "../../engine/util/assert.ts";
import { emptyWal } from "../../engine/util/wal-database.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { goal, grouped, median, printHead, printResult } from "../support/report.ts";
import { createRig } from "./log/rig.ts";
import { MARKETS, START_MS, USERS } from "./log/traffic.ts";

const smoke = process.argv.includes("--smoke");
const ROUNDS = smoke ? 1 : 5;
const ROUND_SECONDS = smoke ? 0.1 : 0.25;
const WARM_UP_SECONDS = smoke ? 0.1 : 0.5;
const NEEDED = 600_000;
const NEEDED_PROJECTOR_MICROS = 2.5;
/** Commands per batch: at full load, and with 256 and 64 connections that wait for their responses. */
const BATCHES = [MAX_BATCH_COMMANDS, 256, 64];
const WAL_PAGES = 4_000;
/** Compressing the whole log would take a minute. */
const SAMPLE_BYTES = smoke ? 2 ** 20 : 2 ** 28;
const NEEDED_MIB = 150;

const folder = makeFolder("bench-log");
const journalPath = join(folder, "journal.db");
let isCheckpointDue = false;
const rig = createRig(folder, "full", () => {
  isCheckpointDue = true;
});
const { journal, log, projector, tables, traffic, runBatch } = rig;
const file = openSync(journalPath, "a");

interface Measured {
  readonly ordersPerSecond: number;
  readonly matchMs: number;
  readonly commitMs: number;
}

/** Runs batches for `seconds` of the log's time. The checkpoint's bulk, another thread's work in the server, is not counted. */
function measure(batch: number, seconds: number): Measured {
  let [matchMs, commitMs, batches] = [0, 0, 0];
  const orders = traffic.placements;
  while (commitMs < seconds * 1_000) {
    traffic.makeBatch(batch);
    const took = runBatch(batch);
    matchMs += took.matchMs;
    commitMs += took.commitMs;
    batches++;
    if (!isCheckpointDue) continue;
    isCheckpointDue = false;
    checkpoint(journalPath, file);
    const start = performance.now();
    log.finishCheckpoint();
    commitMs += performance.now() - start;
  }
  const placed = traffic.placements - orders;
  const ordersPerSecond = Math.round(placed / (commitMs / 1_000));
  return { ordersPerSecond, matchMs: matchMs / batches, commitMs: commitMs / batches };
}

interface Batches {
  readonly batch: number;
  readonly orders_per_s: number;
  readonly best_orders_per_s: number;
  readonly match_ms: number;
  readonly commit_ms: number;
}

function measureRounds(batch: number): Batches {
  const rounds: Measured[] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push(measure(batch, ROUND_SECONDS));
  const of = (field: keyof Measured) => median(rounds.map((round) => round[field]));
  const orders = of("ordersPerSecond");
  const best = Math.max(...rounds.map(({ ordersPerSecond }) => ordersPerSecond));
  const needed = batch === MAX_BATCH_COMMANDS ? `, needed ${grouped(NEEDED)}` : "";
  console.log(
    `  batches of ${batch}: ${grouped(orders)} orders/s${needed} (median of ${ROUNDS}, best ${grouped(best)})`,
  );
  const [matchMs, commitMs] = [of("matchMs").toFixed(3), of("commitMs").toFixed(3)];
  console.log(`    ${matchMs} ms to match, ${commitMs} ms to number, append and commit`);
  return { batch, orders_per_s: orders, best_orders_per_s: best, match_ms: +matchMs, commit_ms: +commitMs };
}

/** Projects the whole log; returns the processor time per placement, µs. */
function measureProjector(): number {
  tables.pragma(`wal_autocheckpoint = ${WAL_PAGES}`);
  const before = process.cpuUsage();
  projectAll(projector, new JournalReader(journal));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / traffic.placements;
}

/** The size of the log's first batches in an archive, as a share of their own. */
function measureArchive(): number {
  let bytes = 0;
  function* sample(): Generator<Buffer> {
    for (const body of new JournalReader(journal).bodies(1)) {
      yield body;
      bytes += body.length;
      if (bytes >= SAMPLE_BYTES) return;
    }
  }
  const archive = writeArchive({ folder, day: dayOf(START_MS), bodies: sample(), previous: null, opening: null });
  return archive.bytes / bytes;
}

printHead("log", `${USERS} users, ${MARKETS} markets; of ten operations 5 rest, 1 takes, 4 cancel; FULL in ${folder}`);
measure(MAX_BATCH_COMMANDS, WARM_UP_SECONDS);
const results = BATCHES.map(measureRounds);
const { orders_per_s: atFullBatches } = itemAt(results, 0);
const projectorMicros = measureProjector();
console.log(
  `  projector: ${projectorMicros.toFixed(2)} µs of processor time an order, needed ${NEEDED_PROJECTOR_MICROS}`,
);
for (const db of [journal, tables]) emptyWal(db);
const mib = (name: string): number => statSync(join(folder, name)).size / 2 ** 20;
const sizes = { log: mib("journal.db"), tables: mib("exchange.db") };
const perMillion = (size: number): number => Math.round((size * 1e6) / traffic.placements);
const compressed = measureArchive();
const disk = perMillion(sizes.log * compressed + sizes.tables);
console.log(
  `  a million placements with their cancels and fills: log ${perMillion(sizes.log)} MiB, ` +
    `${perMillion(sizes.log * compressed)} in an archive, tables ${perMillion(sizes.tables)} MiB`,
);
const broken = verifyDatabase(tables).filter(({ ok }) => !ok);
assert(broken.length === 0, `the tables hold: ${JSON.stringify(broken)}`);
log.close();
tables.close();
removeFolder(folder);
const goals = [
  goal("log, orders/s in full batches", NEEDED, atFullBatches),
  goal("projector, orders/s of processor time", 1e6 / NEEDED_PROJECTOR_MICROS, 1e6 / projectorMicros),
  goal("a million placements in an archive and tables, MiB", NEEDED_MIB, disk, true),
];
printResult({ bench: "log", needed: NEEDED, batches: results, projector_us: projectorMicros, disk_mib: disk, goals });
