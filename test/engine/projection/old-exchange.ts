/** An exchange of schema 1, which migrations bring forward, and a log that follows it. */
import { join } from "node:path";
import { LogAppender } from "../../../engine/log/append.ts";
import { openJournal } from "../../../engine/log/database.ts";
import { packRequest } from "../../../engine/log/request.ts";
import { MIGRATIONS } from "../../../engine/projection/schema.ts";
import { hashTables } from "../../../engine/projection/table-hashes.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";
import type { Config } from "../../../server/bootstrap/config.ts";
import { openExchangeDatabase } from "../../../server/bootstrap/database.ts";

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2024, 10, 5);

/** Two users; the second's sell rests with 2 of 5 left after the first took 3 in two matches; a buy of the first rests. */
export const SCHEMA_1_ROWS = `
  INSERT INTO users VALUES (1, 'a@example.com', 'user', 2, 1), (2, 'b@example.com', 'user', 2, 1);
  INSERT INTO accounts VALUES (1, 8500000, 0, 1500000), (2, 6500000, 0, 1500000);
  INSERT INTO markets VALUES (1, 'm', '?', NULL, NULL, NULL, 1, 5, NULL, NULL, 1);
  INSERT INTO outcomes VALUES (1, 1, 0, 'Yes', 5000, 3), (2, 1, 1, 'No', NULL, 0);
  INSERT INTO entries VALUES (1, 1, 'deposit', 10000000, 10000000, NULL, NULL, '1', 1),
    (2, 2, 'deposit', 10000000, 10000000, NULL, NULL, '2', 1), (3, 2, 'split', -5000000, 5000000, 1, NULL, NULL, 1);
  INSERT INTO orders VALUES (1, 2, 1, 2, 0, 0, 0, 0, 1, 5000, 5, 2, 2, 0, NULL, NULL, 'sell', 1, 3),
    (2, 1, 1, 1, 0, 0, 0, 0, 1, 5000, 1, 0, 3, 0, NULL, NULL, NULL, 2, 2),
    (3, 1, 1, 1, 0, 0, 0, 0, 1, 5000, 2, 0, 3, 0, NULL, NULL, NULL, 3, 3),
    (4, 1, 2, 1, 0, 0, 0, 0, 1, 1000, 4, 4, 1, 0, NULL, NULL, NULL, 4, 4);
  INSERT INTO fills VALUES (4, 4, 2, 1, 1, 2, 5000, 1, 0, 0, 0, 0, 5500000, 2),
    (5, 4, 1, 2, 1, 1, 5000, 1, 1, 0, 0, 0, 9500000, 2), (6, 6, 2, 1, 1, 2, 5000, 2, 0, 0, 0, 0, 6500000, 3),
    (7, 6, 1, 3, 1, 1, 5000, 2, 1, 0, 0, 0, 8500000, 3);
  INSERT INTO entries VALUES (8, 1, 'split', -1000000, 7500000, 1, NULL, NULL, 5);
  UPDATE accounts SET balance = 7500000 WHERE user_id = 1;
  UPDATE markets SET sets = 6;
  INSERT INTO positions VALUES (2, 1, 2, 0, 0), (2, 2, 5, 0, 0), (1, 1, 4, 0, 0), (1, 2, 1, 0, 0);
  UPDATE totals SET deposits = 20000000, users_total = 14000000, collateral = 6000000, sequence = 9, last_entry_id = 8,
    last_order_id = 4;
  INSERT INTO orders_by_user VALUES (2, 1);
  INSERT INTO resting_orders VALUES (1);
  UPDATE meta SET value = 1 WHERE key = 'orders_indexed';`;

/** Its tables, from before there was a log. */
export function createOldExchange(dataDir: string): void {
  const db = openSqlite(join(dataDir, "exchange.db"));
  for (const [i, migration] of MIGRATIONS.slice(0, 4).entries()) {
    db.exec(migration);
    if (i === 0) db.exec(SCHEMA_1_ROWS);
  }
  db.pragma("user_version = 4");
  db.close();
}

/** Starts on the folder's files; returns the hashes of the tables and where the log continues. */
export function openTables(dataDir: string) {
  const { db, end, archives } = openExchangeDatabase({ dataDir, durability: "off" } as Config);
  const hashes = hashTables(db);
  db.close();
  return { hashes, end, archives };
}

/** Appends deposits to the old exchange's log, one per batch and day. @param more of each one's reference, to fill files */
export function appendDeposits(dataDir: string, days: number, more = ""): void {
  const { end } = openTables(dataDir);
  const journal = openJournal(join(dataDir, "journal.db"), "off");
  const appender = new LogAppender(journal, end);
  for (let day = 0; day < days; day++) {
    const at = START_MS + day * DAY_MS;
    const write = { kind: "deposit", userId: 1, amount: 5, reference: `day ${end.batch + day}${more}`, at } as const;
    appender.begin();
    appender.addRequest(packRequest({ at, writes: [write], audits: [], kept: null }));
    // The old exchange has eight entries.
    appender.commit(at, 8 + end.batch - 9 + day);
  }
  journal.close();
}
