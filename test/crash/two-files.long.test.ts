/**
 * The two files of different moments or exchanges, as a hurried operator or half a restore leaves them: tables that are
 * older than the log or gone follow it; tables that are newer, or another exchange's, are refused with one line.
 */
import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, expect, test } from "vitest";
import { removeDatabase } from "../../engine/util/wal-database.ts";
import { verifyFiles } from "../../server/cli/verify.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { seededTraffic, TRAFFIC_SEED, type Traffic } from "./traffic.ts";

type Name = "exchange.db" | "journal.db";

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

test.each([
  ["older than the log", (): string => mixed("exchange.db", early)],
  ["gone", (): string => mixed("exchange.db", null)],
])("tables that are %s follow it", async (_, folder) => {
  server = await TestServer.start({ dataDir: folder() });
  await traffic.expectKept(server);
  await server.stop();
  expect(verifyFiles(join(server.dataDir, "exchange.db")).filter(({ ok }) => !ok)).toEqual([]);
});

const RESTORE = ": restore both files from one back-up\n$";

test("tables that are newer than the log, or have none, are refused", async () => {
  const newer = await TestServer.refuse({ dataDir: mixed("journal.db", early) });
  expect(newer.code).toBe(1);
  expect(newer.errors).toMatch(
    new RegExp(`^cannot start: DATA_DIR: exchange.db contains batch \\d+, journal.db ends at \\d+${RESTORE}`),
  );
  const alone = await TestServer.refuse({ dataDir: mixed("journal.db", null) });
  expect(alone.code).toBe(1);
  expect(alone.errors).toMatch(
    new RegExp(`^cannot start: DATA_DIR: exchange.db contains batch \\d+, journal.db ends at 0${RESTORE}`),
  );
});

test("tables of another exchange are refused", async () => {
  const other = await TestServer.start({ seed: TRAFFIC_SEED });
  await other.stop();
  const found = await TestServer.refuse({ dataDir: mixed("exchange.db", other.dataDir) });
  expect(found.code).toBe(1);
  expect(found.errors).toMatch(
    new RegExp(`^cannot start: DATA_DIR: exchange.db and journal.db belong to different exchanges${RESTORE}`),
  );
});
