/**
 * Questions that many tests end with: do the database's invariants hold, do the books balance, has the server been
 * quiet and kept its secrets, have sockets ended in time. And how to wait: for an expectation, and for the clock.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { openReadOnly } from "../../engine/projection/database.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import type { Client } from "./client.ts";
import { type TestServer, within } from "./server.ts";
import type { Socket } from "./socket.ts";
import type { World } from "./world.ts";

/** What the contract gives a socket whose token is over, a second, and what a busy machine may add to it. */
export const CLOSE_DEADLINE_MS = 1_000 + 500;
/** From this level on a line of the log tells of trouble. */
const ERROR_LEVEL = 50;

/** What is listed by its id, newest first, with the time that lists show. */
const LISTED: readonly (readonly [rows: string, time: string])[] = [
  ...["orders", "order_updates", "withdrawals", "users", "sessions", "personal_access_tokens", "oauth_clients"],
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

/** Every invariant that SQL can check, on the file as it lies there; the server may run or not. */
export function expectSoundDatabase(dataDir: string): void {
  const db = openReadOnly(join(dataDir, "exchange.db"));
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

/** The server has told of no trouble. */
export function expectQuiet({ log }: TestServer): void {
  assert.deepEqual(
    log.filter(({ level }) => level >= ERROR_LEVEL),
    [],
  );
}

/** Stops the server; it must have had no trouble, and leave a sound database. */
export async function expectEndsWell(world: World): Promise<void> {
  expectQuiet(world.server);
  await world.stop();
  expectQuiet(world.server);
  expectSoundDatabase(world.server.dataDir);
}

/** None of these texts stands in what the server has written so far, log or stderr. */
export function expectUnlogged(secrets: Iterable<string>, { log, errors }: TestServer): void {
  const text = [...log.map((line) => JSON.stringify(line)), errors].join("\n");
  assert.deepEqual(
    [...secrets].filter((secret) => text.includes(secret)),
    [],
  );
}

/** The sockets' closes, which must be 4401 and in time. */
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
/** Long enough to leave the processor to the server, short beside a commit. */
const RETRY_MS = 2;

/** Retries until the expectation holds; fails with the last reason. */
export async function eventually<T>(expectation: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + EVENTUALLY_MS;
  for (;;) {
    try {
      return await expectation();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
