/** The log's upkeep: when it runs, what it tells the log, and what a server's clients see of batches that left journal.db. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { FLAG_STARTED, readHeader } from "../../engine/log/batch-format.ts";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { openLogReader } from "../../engine/log/log-files.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import { packRequest } from "../../engine/projection/logged-request.ts";
import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { LogUpkeep, type UpkeepRun } from "../../server/operators/log-upkeep.ts";
import { keepLog, type UpkeepJob } from "../../server/operators/log-upkeep-job.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectQuiet } from "../support/checks.ts";
import { Client } from "../support/client.ts";
import { rowsOf, rowsOfFile } from "../support/data-dir.ts";
import { DaysLog } from "../support/days-log.ts";
import { resume, updatesAfter } from "../support/resume.ts";
import { TestServer } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { PUBLIC_URL, tokenOf, World } from "../support/world.ts";

const DAY_MS = 86_400_000;
const CLOCK = fileURLToPath(new URL("../support/stepped-clock.mjs", import.meta.url));

let days: DaysLog | null = null;
afterEach(() => {
  days?.close();
  if (days !== null) rmSync(days.folder, { recursive: true });
  days = null;
});

/** An upkeep on a log of several days, whose runs are in this thread and can be made to fail. */
function startUpkeep(logDays = 0) {
  const log = new DaysLog();
  days = log;
  const progress = new LogProgress();
  const runs: UpkeepJob[] = [];
  const errors: object[] = [];
  const trimmed: number[] = [];
  let failure: Error | null = null;
  const start = (job: UpkeepJob): UpkeepRun => {
    runs.push(job);
    const result = failure === null ? Promise.resolve().then(() => keepLog(job)) : Promise.reject(failure);
    return { result, stop: async () => {} };
  };
  const write = async ([first]: readonly AccountWrite[]) => {
    const payload = packRequest({ at: 0, writes: [first!], audits: [], kept: null });
    log.rig.log.commit(() => [{ id: 1, at: 0, entries: 0, rates: [], payload }]);
    return [];
  };
  const writer = { write, trimLog: (through: number) => void trimmed.push(through) };
  const job = {
    journal: join(log.folder, "journal.db"),
    tables: join(log.folder, "exchange.db"),
    archives: log.archives,
    logDays,
  };
  const logger = { info: () => {}, error: (line: object) => void errors.push(line) };
  const since = log.rig.journal.prepare("SELECT min(at) FROM batches").pluck().get() as number;
  const upkeep = new LogUpkeep({ job, progress, writer, logger: logger as never, since, start });
  const check = async (): Promise<void> => {
    log.project();
    const { position } = log.rig.projector;
    progress.commit(position);
    progress.project(position);
    upkeep.check();
    await new Promise((resolve) => setTimeout(resolve, 0));
    log.rig.log.trimUpTo(trimmed.at(-1) ?? 0);
    while (log.rig.log.idle());
  };
  const setFailure = (error: Error | null): void => {
    failure = error;
  };
  return { log, upkeep, runs, errors, trimmed, check, setFailure };
}

test("a run starts when a day is over for the tables, and then lets the log delete what is archived", async () => {
  const { log, upkeep, runs, trimmed, check } = startUpkeep();
  await check();
  expect(runs.length).toBe(0);
  log.tradeDays(1);
  expect(upkeep.unarchivedMs).toBe(0);
  await check();
  expect(runs.length).toBe(1);
  expect(upkeep.unarchivedMs).toBe(0);
  expect(trimmed).toEqual([log.rig.projector.position.batch - 1]);
  expect(rowsOf(log.folder, "SELECT log_begins FROM projection")).toEqual([{ log_begins: 1 }]);
  // An hour later nothing has changed.
  await check();
  expect(runs.length).toBe(1);
});

test("a run that fails is logged, counted and repeated", async () => {
  const { log, upkeep, runs, errors, trimmed, check, setFailure } = startUpkeep();
  log.tradeDays(2);
  setFailure(new Error("ENOSPC: no space left on device"));
  await check();
  await check();
  expect([upkeep.failures, runs.length, trimmed]).toEqual([2, 2, []]);
  expect(errors[0]).toEqual({ error: "ENOSPC: no space left on device" });
  expect(upkeep.unarchivedMs).toBe(2 * DAY_MS);
  setFailure(null);
  await check();
  expect([upkeep.failures, runs.length, trimmed.length]).toEqual([2, 3, 1]);
  expect(readdirSync(log.archives).length).toBe(4);
});

test("with LOG_DAYS, the tables forget old batches before their archives are deleted", async () => {
  const { log, runs, check } = startUpkeep(7);
  log.tradeDays(9);
  await check();
  expect(readdirSync(log.archives).length).toBe(18);
  log.project();
  const [row] = rowsOf<{ log_begins: number }>(log.folder, "SELECT log_begins FROM projection");
  const first = row!.log_begins;
  expect(first).toBeGreaterThan(20);
  expect(rowsOf(log.folder, "SELECT count(*) AS old FROM update_index WHERE batch < ?", first)).toEqual([{ old: 0 }]);
  await check();
  expect(runs.length).toBe(2);
  expect(readdirSync(log.archives).length).toBe(14);
  const files = openLogReader(log.folder);
  expect(files.range()?.first).toBe(first);
  // What is indexed can be read.
  const rows = rowsOf<{ batch: number }>(log.folder, "SELECT DISTINCT batch FROM update_index");
  for (const { batch } of rows) expect([...files.bodies(batch)].length).toBeGreaterThan(0);
  expect(() => [...files.bodies(first - 1)]).toThrow(BrokenLog);
  files.close();
  log.trade();
  await check();
  expect(runs.length).toBe(2);
});

test("resume, log and verify read batches that have left a server's journal", { timeout: 60_000 }, async () => {
  const clock = (offset: number): Record<string, string> => {
    return { PUBLIC_URL, NODE_OPTIONS: `--import ${CLOCK}`, CLOCK_OFFSET_MS: String(offset) };
  };
  const world = await World.start({ users: 1, markets: [2], env: clock(-2 * DAY_MS) });
  const { dataDir } = world.server;
  const [user, market] = [world.user(), world.market()];
  const orders: number[] = [];
  for (let i = 1; i <= 5; i++) orders.push((await user.place(terms(market, 0, BUY, 100, i))).id);
  await world.stop();
  const sequences: number[][] = [];
  for (const offset of [-DAY_MS, -DAY_MS, 0]) {
    const server = await TestServer.start({ dataDir, env: clock(offset) });
    const client = new Client(server, tokenOf("user0"));
    await client.place(terms(market, 0, BUY, 100, 1));
    const socket = await Socket.open(server, client.token);
    sequences.push(updatesAfter(socket, await resume(socket, 0)).map(({ data }) => data.id));
    socket.close();
    client.close();
    if (sequences.length === 2) {
      await server.logged(({ msg }) => msg.includes("archived"));
      // The log deletes them while it is idle.
      const first = "SELECT min(number) > 1 AS is_later FROM batches";
      await eventually(async () => expect(rowsOfFile(join(dataDir, "journal.db"), first)).toEqual([{ is_later: 1 }]));
    }
    await server.stop();
    expectQuiet(server);
  }
  // The second start of each day sees that the one before is over.
  const names = readdirSync(join(dataDir, "log"));
  expect(names.length).toBe(2);
  expect(sequences.map((ids) => ids.slice(0, 5))).toEqual([orders, orders, orders]);
  const journal = openReadOnly(join(dataDir, "journal.db"));
  const first = readHeader(journal.prepare("SELECT body FROM batches ORDER BY number LIMIT 1").pluck().get() as Buffer);
  journal.close();
  expect(first.number).toBeGreaterThan(1);
  expect(first.flags & FLAG_STARTED).toBe(FLAG_STARTED);
  const { out } = await admin(dataDir, "log", "--json", "--kind", "orderPlaced");
  const placed = out
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { order: number }).order);
  expect(placed.slice(0, 5)).toEqual(orders);
  expect(placed.length).toBe(8);
  expect((await admin(dataDir, "verify")).out).toContain("tables as of batch");
  for (const name of ["exchange.db", "exchange.db-wal", "exchange.db-shm"])
    rmSync(join(dataDir, name), { force: true });
  const server = await TestServer.start({ dataDir, env: clock(0) });
  await server.stop();
  expect(existsSync(join(dataDir, "exchange.db"))).toBe(true);
  expect((await admin(dataDir, "verify")).out).toContain("tables as of batch");
});
