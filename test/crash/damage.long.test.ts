/**
 * Disk corruption and operator error: a log whose tail is damaged, a database file with a page of something else,
 * files that go away under a running server. What lies before the damage is there, nothing is made up, and what can't be
 * used is refused with one line.
 */
import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { migrate } from "../../engine/projection/database.ts";
import { recoverTables } from "../../engine/projection/recover.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openDatabase } from "../../engine/util/wal-database.ts";
import { Client } from "../support/client.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { tokenOf } from "../support/world.ts";
import { seededTraffic, TRAFFIC_SEED } from "./traffic.ts";

const LOG_HEADER = 32;
const FRAME_HEADER = 24;
const PAGE = 4_096;
const FRAME = FRAME_HEADER + PAGE;
/** Of the log's header and of each frame's: where its salts are. */
const HEADER_SALT = 16;
const FRAME_SALT = 8;

let server: TestServer | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
});

/** A server that was killed under load: its folder, and its log. */
async function killed(random: Random): Promise<{ dataDir: string; log: Buffer }> {
  server = await TestServer.start({ seed: TRAFFIC_SEED });
  const traffic = seededTraffic(random);
  await traffic.start(server);
  await traffic.more(60);
  await server.kill();
  await traffic.end();
  return { dataDir: server.dataDir, log: readFileSync(join(server.dataDir, "journal.db-wal")) };
}

test("a log that is damaged ends where its damage begins", async () => {
  const random = Random.printed("damaged log");
  const { dataDir, log } = await killed(random);
  const frames = Math.floor((log.length - LOG_HEADER) / FRAME);
  const folder = temporaryFolder();
  const copy = join(folder, "journal.db");
  /** The batch that is found last; the tables are rebuilt up to it. */
  const found = (bytes: Buffer): number => {
    for (const name of ["exchange.db", "exchange.db-wal", "exchange.db-shm"])
      rmSync(join(folder, name), { force: true });
    copyFileSync(join(dataDir, "journal.db"), copy);
    writeFileSync(`${copy}-wal`, bytes);
    rmSync(`${copy}-shm`, { force: true });
    const journal = openSqlite(copy);
    const isEmpty = journal.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'batches'").get() === undefined;
    const tables = openDatabase(join(folder, "exchange.db"), "off");
    migrate(tables);
    const { batch } = isEmpty ? { batch: 0 } : recoverTables(tables, journal);
    expect(verifyDatabase(tables).filter(({ ok }) => !ok)).toEqual([]);
    journal.close();
    tables.close();
    // The damage again: closing the connection has emptied the WAL.
    copyFileSync(join(dataDir, "journal.db"), copy);
    writeFileSync(`${copy}-wal`, bytes);
    return batch;
  };
  const startOf = (frame: number): number => LOG_HEADER + frame * FRAME;
  const whole = found(log);
  const changed = (change: (bytes: Buffer) => void): Buffer => {
    const bytes = Buffer.from(log);
    change(bytes);
    return bytes;
  };
  const flip = (bytes: Buffer, at: number): void => void (bytes[at]! ^= 1 << random.integer(0, 7));

  const seen = new Set<number>();
  for (let n = 0; n < 12; n++) {
    const frame = random.integer(0, frames - 1);
    const before = found(log.subarray(0, startOf(frame)));
    seen.add(before);
    const damages = [
      changed((bytes) => flip(bytes, startOf(frame) + random.integer(0, FRAME_HEADER - 1))),
      changed((bytes) => flip(bytes, startOf(frame) + FRAME_HEADER + random.integer(0, PAGE - 1))),
      changed((bytes) => bytes.fill(0, startOf(frame) + FRAME_HEADER, startOf(frame + 1))),
    ];
    expect(damages.map(found)).toEqual(damages.map(() => before));
  }
  expect(seen.size).toBeGreaterThan(5);

  // Behind the end: what a disk had there before, and frames of the log's life before this one.
  const older = Buffer.from(log.subarray(LOG_HEADER, startOf(Math.min(frames, 5))));
  for (let at = FRAME_SALT; at < older.length; at += FRAME) older.writeUInt32BE(log.readUInt32BE(HEADER_SALT) - 1, at);
  const garbage = Buffer.from(Array.from({ length: 2 * FRAME }, () => random.integer(0, 255)));
  expect([garbage, older].map((tail) => found(Buffer.concat([log, tail])))).toEqual([whole, whole]);
  // Without its header a log is none: what the database file holds by itself remains.
  expect(found(changed((bytes) => flip(bytes, random.integer(8, 31))))).toBe(found(Buffer.alloc(0)));

  // One of them, by the server itself.
  const frame = random.integer(1, frames - 1);
  const before = found(log.subarray(0, startOf(frame)));
  found(changed((bytes) => flip(bytes, startOf(frame) + FRAME_HEADER + random.integer(0, PAGE - 1))));
  server = await TestServer.start({ dataDir: folder });
  const client = new Client(server, null);
  expect((await client.solvency()).sequence).toBeGreaterThanOrEqual(before);
  expect((await client.solvency()).balanced).toBe(true);
  client.close();
  await server.stop();
});

test("a database file that is damaged is refused with one line", async () => {
  const random = Random.printed("damaged file");
  server = await TestServer.start({ seed: TRAFFIC_SEED });
  await server.stop();
  const path = join(server.dataDir, "exchange.db");
  const sound = readFileSync(path);
  const garbage = Buffer.from(Array.from({ length: PAGE }, () => random.integer(0, 255)));
  const pages = sound.length / PAGE;
  const root = (table: string): number => {
    const db = openSqlite(path, { readonly: true });
    const page = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").pluck().get(table) as number;
    db.close();
    return page;
  };
  const damages: Record<string, () => void> = {
    "its first page": () => write(path, garbage, 0),
    "the page of the accounts": () => write(path, garbage, (root("accounts") - 1) * PAGE),
    "its end": () => writeFileSync(path, sound.subarray(0, (pages >> 1) * PAGE)),
  };
  for (const [name, damage] of Object.entries(damages)) {
    writeFileSync(path, sound);
    damage();
    const { code, errors } = await TestServer.refuse({ dataDir: server.dataDir });
    expect([code, errors], name).toEqual([
      1,
      expect.stringMatching(/^cannot start: DATA_DIR: exchange\.db is damaged .*\n$/),
    ]);
  }
});

function write(path: string, bytes: Buffer, at: number): void {
  const file = openSync(path, "r+");
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

test("a database that goes away under the server stops its trading", async () => {
  for (const name of ["exchange.db", "exchange.db-wal", "journal.db", "journal.db-wal"]) {
    server = await TestServer.start({ seed: TRAFFIC_SEED });
    const path = join(server.dataDir, name);
    expect(statSync(path).size).toBeGreaterThan(0);
    renameSync(path, `${path}.moved`);
    const fatal = await server.logged(({ level }) => level === 60);
    expect(fatal).toMatchObject({ error: expect.stringContaining(`${name} was moved or deleted`) });
    const client = new Client(server, tokenOf("user0"));
    const body = { market_id: 1, quantity: 1 };
    expect(await client.request("POST", "/wallet/split", { body })).toMatchObject({ status: 503, code: 50300 });
    client.close();
    await server.kill();
  }
});
