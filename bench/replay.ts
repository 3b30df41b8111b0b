/**
 * Command: sends a folder's recorded orders through a running exchange over HTTP, receives every fill over WebSockets
 * and compares both with the exchange's records: `npm run -s replay -- DIR`. With `--log FILE` it replays a log instead
 * (replay/log/). The last line is JSON. Exit codes: 1 if anything was lost, doesn't balance, differs or failed, 2 for
 * wrong arguments.
 *
 * Over one connection orders arrive one after the other, and every run makes the same fills (their SHA-256 is printed).
 * Over several, the order of arrival is random, and so are the trades. One limit is outside the recording: a user's
 * daily activity, which resets if a replay runs past midnight UTC.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BrokenLog } from "../engine/log/broken-log.ts";
import { verifyDatabase } from "../engine/projection/verify.ts";
import { openReadOnly } from "../engine/util/wal-database.ts";
import { type Plan, planAccounts } from "./replay/accounts.ts";
import { FolderError, type Recording, readRecording } from "./replay/folder.ts";
import { replayHistory } from "./replay/history/command.ts";
import { replayLog } from "./replay/log/command.ts";
import { type Outcome, type Rejections, Session } from "./replay/session.ts";
import { ExchangeError } from "./support/api.ts";
import { ExchangeProcess } from "./support/exchange-process.ts";
import { makeFolder, removeFolder } from "./support/folder.ts";
import { fail, grouped, printHead, printResult } from "./support/report.ts";
import { orUsage, wholeNumber } from "./support/usage.ts";

const USAGE =
  "replay DIR [--connections N] [--url URL | --write-seed FILE] | replay --log FILE | replay --history FILE";
const HELP = `usage: npm run -s ${USAGE.replaceAll("replay ", "replay -- ")}
  DIR                markets.json and orders.jsonl.gz (or orders.jsonl)
  --connections N    HTTP connections that carry the orders, 1 to 1024; 1 (the default) keeps them strictly in order
  --url URL          a running exchange instead of one of its own; it must have been started with RATE_LIMITS=off and
                     SEED_FILE set to what --write-seed made of the same DIR, best on a fresh DATA_DIR
  --write-seed FILE  only writes that file: the markets, and an account with a token for each user
  --log FILE         replays a log instead: an archive (.log.gz), a journal.db, or a DATA_DIR with both. Derives the
                     commands from its events, runs them through the matcher, and compares the events byte for byte
  --history FILE     trades a day of a market's book history again (.jsonl.gz or .jsonl, docs/history.md): an order a level
                     and an order a trade, through the matcher, and compares the trades`;
const MAX_CONNECTIONS = 1_024;
/** Errors with a message for the caller. */
const EXPECTED = [FolderError, BrokenLog, ExchangeError];

interface Arguments {
  /** The log, or the book history, to replay; both null: a folder's orders. */
  readonly log: string | null;
  readonly history: string | null;
  readonly folder: string;
  readonly connections: number;
  readonly url: string | null;
  readonly seedFile: string | null;
}

function readArguments(): Arguments {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      connections: { type: "string", default: "1" },
      url: { type: "string" },
      "write-seed": { type: "string" },
      log: { type: "string" },
      history: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    console.log(HELP);
    process.exit(0);
  }
  const [folder, ...more] = positionals;
  const { log = null, history = null } = values;
  const url = values.url ?? null;
  const seedFile = values["write-seed"] ?? null;
  if (log !== null || history !== null) {
    const isOnly = folder === undefined && url === null && seedFile === null && (log === null || history === null);
    if (!isOnly) throw new Error(`--${log === null ? "history" : "log"} FILE has no other arguments`);
    return { log, history, folder: "", connections: 1, url, seedFile };
  }
  if (folder === undefined || more.length > 0) throw new Error(`${positionals.length} folders: one is replayed`);
  if (url !== null && seedFile !== null) throw new Error("--url and --write-seed exclude each other");
  const connections = wholeNumber("connections", values.connections, 1, MAX_CONNECTIONS);
  if (url !== null && !(URL.canParse(url) && /^https?:/.test(url))) {
    throw new Error(`--url ${url}: an http or https URL`);
  }
  return { log, history, folder, connections, url, seedFile };
}

/** Runs the replay against its own exchange, on a temporary data folder, and verifies the database afterwards. */
async function runOnOwn(recording: Recording, plan: Plan, connections: number): Promise<[Outcome, string[]]> {
  const dataDir = makeFolder("replay");
  const exchange = await ExchangeProcess.start({ dataDir, seed: plan.seed });
  console.log(`  an exchange of its own, data in ${dataDir}`);
  const died = exchange.ended.then((how) => {
    throw new ExchangeError(how);
  });
  const outcome = await Promise.race([new Session(recording, plan, exchange.url, connections).run(), died]);
  await exchange.stop();
  const db = openReadOnly(join(dataDir, "exchange.db"));
  const broken = verifyDatabase(db).filter(({ ok }) => !ok);
  db.close();
  removeFolder(dataDir);
  return [outcome, broken.map(({ name, figures }) => `in the database it doesn't hold that ${name}: ${figures}`)];
}

function listed(counts: ReadonlyMap<string, number>): string {
  if (counts.size === 0) return "none";
  return [...counts].map(([name, count]) => `${grouped(count)} ${name}`).join(", ");
}

function printRefusals(what: string, rejections: ReadonlyMap<number, Rejections>): void {
  for (const [code, { count, message }] of rejections) {
    console.log(`  ${grouped(count)} ${what} refused with ${code}, the first: ${message}`);
  }
}

const milliseconds = (latency: Outcome["latency"], percentile: number): number =>
  latency.getValueAtPercentile(percentile) / 1_000;

function print(recording: Recording, connections: number, outcome: Outcome, faults: readonly string[]): void {
  const { latency, seconds, solvency, fills, matches, accepted, rejections, states } = outcome;
  const rate = recording.orders.length / seconds;
  const [p50, p99, p999] = [50, 99, 99.9].map((percentile) => milliseconds(latency, percentile));
  const fillCount = [...fills.values()].reduce((sum, count) => sum + count, 0);
  if (outcome.usedBefore) {
    console.log("  the accounts have traded before: their money may not do, and their earlier orders take part");
  }
  console.log(`  before the first order ${grouped(outcome.splits)} splits gave the accounts what their sells need`);
  printRefusals("splits", outcome.splitRejections);
  console.log(`  ${grouped(accepted)} orders accepted, of which in the end: ${listed(states)}`);
  printRefusals("orders", rejections);
  console.log(`  matches: ${listed(matches)}; fills: ${listed(fills)}`);
  console.log(`  ${grouped(rate)} orders/s in ${seconds.toFixed(1)} s, with client and exchange on this machine`);
  console.log(`  answered in p50 ${p50} ms, p99 ${p99} ms, p99.9 ${p999} ms from when a connection was free for it`);
  const { deposits, withdrawals, users_total, collateral, house, balanced } = solvency;
  console.log(
    `  deposits ${deposits} - withdrawals ${withdrawals} ${balanced ? "=" : "<>"} users ${users_total} + collateral ${collateral} + house ${house} micro-USDC: balanced ${balanced}`,
  );
  if (faults.length === 0) {
    console.log(
      `  nothing lost: ${grouped(fillCount)} fills over WebSockets, the same over REST; no gap in a sequence`,
    );
  }
  for (const fault of faults) console.log(`  FAULT: ${fault}`);
  printResult({
    orders: recording.orders.length,
    connections,
    accepted,
    refused: Object.fromEntries([...rejections].map(([code, { count }]) => [code, count])),
    states: Object.fromEntries(states),
    matches: Object.fromEntries(matches),
    fills: fillCount,
    fills_sha256: outcome.fillsHash,
    seconds: Number(seconds.toFixed(3)),
    orders_per_s: Math.round(rate),
    latency_ms: { p50, p99, p999 },
    solvency,
    balanced,
    faults,
  });
}

const { log, history, folder, connections, url, seedFile } = orUsage(USAGE, readArguments);

async function replayFolder(): Promise<void> {
  const recording = readRecording(folder);
  const plan = planAccounts(recording);
  if (seedFile !== null) {
    // It contains tokens.
    writeFileSync(seedFile, JSON.stringify(plan.seed), { mode: 0o600 });
    console.log(`wrote ${seedFile}: ${plan.slugs.length} markets, ${plan.tokens.length} users`);
  } else {
    const { markets, users, orders, name } = recording;
    const sizes = `${grouped(markets.length)} markets, ${grouped(users.length)} users, ${grouped(orders.length)} orders`;
    printHead("replay", `${name}, ${sizes}, ${connections} connection${connections === 1 ? "" : "s"}`);
    const [outcome, more] =
      url === null
        ? await runOnOwn(recording, plan, connections)
        : [await new Session(recording, plan, url, connections).run(), []];
    const faults = [...outcome.faults, ...more];
    print(recording, connections, outcome, faults);
    process.exitCode = faults.length === 0 ? 0 : 1;
  }
}

try {
  if (history !== null) process.exitCode = replayHistory(history);
  else if (log === null) await replayFolder();
  else process.exitCode = replayLog(log);
} catch (error) {
  const isExpected = EXPECTED.some((kind) => error instanceof kind) || "code" in (error as object);
  fail(`replay: ${isExpected ? (error as Error).message : (error as Error).stack}`);
}
