/**
 * The two files of different moments or exchanges, as a hurried operator or half a restore leaves them: tables that are
 * older than the log or gone follow it; tables that are newer, or another exchange's, are refused with one line.
 */
import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, expect, test } from "vitest";
import { Side } from "../../engine/constants.ts";
import { openJournal } from "../../engine/log/database.ts";
import { migrate } from "../../engine/projection/database.ts";
import { type JournalState, RECOVERY, type TablesState } from "../../engine/projection/recovery-table.ts";
import { openDatabase, removeDatabase } from "../../engine/util/wal-database.ts";
import { verifyFiles } from "../../server/cli/verify.ts";
import { Client } from "../support/client.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { tokenOf } from "../support/world.ts";
import { seededTraffic, TRAFFIC_SEED, type Traffic } from "./traffic.ts";

type Name = "exchange.db" | "journal.db";

const OTHER_ORDERS = 500;

let traffic: Traffic;
/** The folder after a clean stop in the middle of the traffic, and after a kill at its end. */
let early: string;
let late: string;
let server: TestServer | null = null;

beforeAll(async () => {
  traffic = seededTraffic(Random.printed("two files"));
  const first = await TestServer.start({ seed: TRAFFIC_SEED });
  await traffic.start(first);
  await traffic.more(60);
  await traffic.end();
  await first.stop();
  early = copyOf(first.dataDir);
  const second = await first.restart();
  await traffic.start(second);
  await traffic.more(60);
  await second.kill();
  await traffic.end();
  late = second.dataDir;
});

afterEach(async () => {
  await server?.kill();
  server = null;
});

function copyOf(folder: string): string {
  const copy = temporaryFolder();
  cpSync(folder, copy, { recursive: true, filter: (path) => !path.endsWith(".sock") });
  return copy;
}

/** The late folder, with one of its files as in another folder; without the file if that is null. */
function mixed(name: Name, other: string | null): string {
  const folder = copyOf(late);
  removeDatabase(join(folder, name));
  if (other !== null) {
    for (const file of readdirSync(other)) if (file.startsWith(name)) cpSync(join(other, file), join(folder, file));
  }
  return folder;
}

/** An exchange.db with every table and no batch, beside the late log. */
function withNewTables(): string {
  const folder = mixed("exchange.db", null);
  const db = openDatabase(join(folder, "exchange.db"), "off");
  migrate(db);
  db.close();
  return folder;
}

/** The late tables, beside a log without a batch. */
function withEmptyLog(): string {
  const folder = mixed("journal.db", null);
  openJournal(join(folder, "journal.db"), "off").close();
  return folder;
}

/** The late tables, beside a log that went on from the early one with other orders, and further. */
async function withAnotherPast(): Promise<string> {
  const other = await TestServer.start({ dataDir: copyOf(early) });
  const client = new Client(other, tokenOf("user0"));
  // Each is a batch of its own: more of them than the late log has.
  for (let i = 0; i < OTHER_ORDERS; i++) {
    await client.place({ market_id: 1, outcome_id: 1, side: Side.buy, price: 1, quantity: 1, time_in_force: "ioc" });
  }
  client.close();
  await other.kill();
  return mixed("journal.db", other.dataDir);
}

type Case = readonly [journal: JournalState, tables: TablesState, folder: () => string | Promise<string>];

/** Each state of the two files that an operator can bring about. Tables from before the log: projection/base-tables. */
const CASES: readonly Case[] = [
  ["none", "none", temporaryFolder],
  ["none", "used", () => mixed("journal.db", null)],
  ["empty", "used", withEmptyLog],
  ["same", "used", () => copyOf(early)],
  ["behind", "used", () => mixed("journal.db", early)],
  ["ahead", "none", () => mixed("exchange.db", null)],
  ["ahead", "new", withNewTables],
  ["ahead", "used", () => mixed("exchange.db", early)],
  ["anotherExchange", "used", withStrangeTables],
  ["hashDiffers", "used", withAnotherPast],
];

async function withStrangeTables(): Promise<string> {
  const other = await TestServer.start({ seed: TRAFFIC_SEED });
  await other.stop();
  return mixed("exchange.db", other.dataDir);
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

test.for(CASES)("journal.db %s, exchange.db %s", async ([journal, tables, folderOf]) => {
  const decision = RECOVERY[journal][tables]!;
  const folder = await folderOf();
  if (decision.does === "refuse") {
    const { code, errors } = await TestServer.refuse({ dataDir: folder });
    const line = escaped(decision.why({ projected: 7_770_777, last: 8_880_888 }));
    const pattern = line.replace("7770777", "\\d+").replace("8880888", "\\d+");
    expect(errors).toMatch(new RegExp(`^cannot start: DATA_DIR: ${pattern}\\n$`));
    expect(code).toBe(1);
    return;
  }
  server = await TestServer.start({ dataDir: folder });
  if (journal === "ahead") await traffic.expectKept(server);
  await server.stop();
  expect(verifyFiles(join(server.dataDir, "exchange.db")).filter(({ ok }) => !ok)).toEqual([]);
});
