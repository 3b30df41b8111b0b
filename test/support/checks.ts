/**
 * Checks that many tests end with: the database's invariants hold, the books balance, the server logged no errors and no
 * secrets, sockets closed in time. Also waits for an expectation and for the clock.
 */

import assert from "node:assert/strict";
import type Database from "better-sqlite3";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { tablesPath } from "../../server/util/data-folder.ts";
import type { Client } from "./client.ts";
import { catchUp } from "./data-dir.ts";
import { type TestServer, within } from "./server.ts";
import type { Socket } from "./socket.ts";
import type { World } from "./world.ts";

/** The contract closes a socket within a second of its token's end; a busy machine may take longer. */
export const CLOSE_DEADLINE_MS = 1_000 + 500;
/** Log lines from this level on are errors. */
const ERROR_LEVEL = 50;

/** Rows that the API lists by id, newest first, and their times. */
const LISTED: readonly (readonly [rows: string, time: string])[] = [
  ...["orders", "withdrawals", "users", "sessions", "personal_access_tokens", "oauth_clients"],
  ...["oauth_grants", "identity_applications", "approvals", "markets", "events"],
  "(SELECT id, created_at FROM fills UNION ALL SELECT id, created_at FROM entries)",
].map((rows) => [rows, "created_at"] as const);

/** Time rises with the ids of each table. */
function expectTimesRise(db: Database.Database): void {
  for (const [rows, time] of [...LISTED, ["audit_log", "at"] as const]) {
    const falls = db.prepare(
      `SELECT count(*) FROM (SELECT ${time} AS t, lag(${time}) OVER (ORDER BY id) AS before FROM ${rows}) WHERE t < before`,
    );
    assert.equal(falls.pluck().get(), 0, `time falls in ${rows}`);
  }
}

/** Every invariant that SQL can check; the server may be running. */
export function expectSoundDatabase(dataDir: string): void {
  catchUp(dataDir);
  const db = openReadOnly(tablesPath(dataDir));
  try {
    expectTimesRise(db);
    assert.deepEqual(
      verifyDatabase(db).filter(({ ok }) => !ok),
      [],
    );
  } finally {
    db.close();
  }
}

export async function expectBalanced(client: Client): Promise<void> {
  const { deposits, withdrawals, users_total, collateral, house, balanced } = await client.solvency();
  assert.equal(balanced, true);
  assert.equal(deposits - withdrawals, users_total + collateral + house);
}

/** The server has logged no error. */
export function expectQuiet({ log }: TestServer): void {
  assert.deepEqual(
    log.filter(({ level }) => level >= ERROR_LEVEL),
    [],
  );
}

/** Stops the server; expects no logged error and a sound database. */
export async function expectEndsWell(world: World): Promise<void> {
  expectQuiet(world.server);
  await world.stop();
  expectQuiet(world.server);
  expectSoundDatabase(world.server.dataDir);
}

/** The server has written none of these texts to its log or stderr. */
export function expectUnlogged(secrets: Iterable<string>, { log, errors }: TestServer): void {
  const text = [...log.map((line) => JSON.stringify(line)), errors].join("\n");
  assert.deepEqual(
    [...secrets].filter((secret) => text.includes(secret)),
    [],
  );
}

/** The sockets close with 4401, in time. */
export async function expectEnded(...sockets: Socket[]): Promise<void> {
  const codes = await Promise.all(sockets.map(({ closed }) => within(closed, CLOSE_DEADLINE_MS)));
  assert.deepEqual(
    codes,
    sockets.map(() => 4401),
  );
}

/** Resolves when the clock shows that time, in ms. */
export async function clockAt(time: number): Promise<void> {
  while (Date.now() < time) await new Promise((resolve) => setTimeout(resolve, time - Date.now()));
}

const EVENTUALLY_MS = 20_000;
/** Long enough to leave the processor to the server, short compared with a commit. */
const RETRY_MS = 2;

/** Retries until the expectation holds; fails with the last reason. */
export async function eventually<T>(expectation: () => Promise<T>, timeoutMs = EVENTUALLY_MS): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await expectation();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
