/**
 * What a power cut may leave: the write-ahead log cut off at any byte. Each commit must be an exchange that balances,
 * whatever came after it: nothing is half there, and the server's own recovery takes it.
 */
import { copyFileSync, readFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { Side } from "../../engine/constants.ts";
import { Ledger } from "../../engine/ledger.ts";
import { openJournal } from "../../engine/log/database.ts";
import { migrate } from "../../engine/projection/database.ts";
import { loadLedger } from "../../engine/projection/load/ledger.ts";
import { loadLiveOrders } from "../../engine/projection/load/orders.ts";
import { recoverTables } from "../../engine/projection/recover.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { sideOf } from "../../engine/ring/records.ts";
import { openDatabase, removeDatabase } from "../../engine/util/wal-database.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { seededTraffic, TRAFFIC_SEED } from "./traffic.ts";

/** Below this many bytes the server doesn't checkpoint while it runs, so that the log holds all since the start. */
const LOG_BOUND = 1_000 * 4_096;
const CUTS = 60;

let server: TestServer | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
});

test.for(variants([1], [2]))("every cut of the log is a sound exchange, with ENGINE_THREADS=%i", async (threads) => {
  const random = Random.printed(`torn log, ${threads} engine threads`);
  server = await TestServer.start({ seed: TRAFFIC_SEED, env: { ENGINE_THREADS: String(threads) } });
  const traffic = seededTraffic(random);
  await traffic.start(server);
  await traffic.more(60);
  await server.kill();
  await traffic.end();
  const [data, log] = ["journal.db", "journal.db-wal"].map((name) => join(server!.dataDir, name)) as [string, string];
  const { size } = statSync(log);
  expect(size).toBeLessThan(LOG_BOUND);

  const folder = temporaryFolder();
  const copy = join(folder, "journal.db");
  const tables = join(folder, "exchange.db");
  const cuts = Array.from({ length: CUTS }, () => random.integer(0, size)).sort((a, b) => a - b);
  const seen: number[] = [];
  for (const cut of [...cuts, size]) {
    copyFileSync(data, copy);
    copyFileSync(log, `${copy}-wal`);
    truncateSync(`${copy}-wal`, cut);
    removeDatabase(tables);
    const journal = openJournal(copy, "off");
    const db = openDatabase(tables, "off");
    migrate(db);
    recoverTables(db, journal);
    journal.close();
    expect(verifyDatabase(db).filter(({ ok }) => !ok)).toEqual([]);
    const ledger = new Ledger();
    seen.push(loadLedger(db, ledger).batch);
    for (const { user, outcome, terms, price, remaining } of loadLiveOrders(db)) {
      if (sideOf(terms) === Side.buy) ledger.hold(user, price * remaining * 100);
      else ledger.holdShares(user, outcome, remaining);
    }
    db.close();
  }
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(new Set(seen).size).toBeGreaterThan(10);

  // One of the cuts, by the server itself, which rebuilds the tables.
  removeDatabase(tables);
  const cut = random.pick(cuts);
  copyFileSync(data, copy);
  copyFileSync(log, `${copy}-wal`);
  truncateSync(`${copy}-wal`, cut);
  expect(readFileSync(`${copy}-wal`)).toHaveLength(cut);
  server = await TestServer.start({ dataDir: folder, seed: TRAFFIC_SEED });
  await server.stop();
});
