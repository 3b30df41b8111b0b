/** Questions that many tests end with: do the database's invariants hold, and do the books balance. */
import { join } from "node:path";
import { expect } from "vitest";
import { openReadOnly } from "../../../engine/journal/database.ts";
import { verifyDatabase } from "../../../engine/journal/verify.ts";
import type { Client } from "./client.ts";

/** Every invariant that SQL can check, on the file as it lies there; the server may run or not. */
export function expectSoundDatabase(dataDir: string): void {
  const db = openReadOnly(join(dataDir, "exchange.db"));
  try {
    expect(verifyDatabase(db).filter(({ ok }) => !ok)).toEqual([]);
  } finally {
    db.close();
  }
}

export async function expectBalanced(client: Client): Promise<void> {
  const { deposits, withdrawals, users_total, collateral, house, balanced } = await client.solvency();
  expect(balanced).toBe(true);
  expect(deposits - withdrawals).toBe(users_total + collateral + house);
}

const EVENTUALLY_MS = 20_000;

/** Asks again, as fast as the answers come, until the expectation holds; fails with the last reason. */
export async function eventually(expectation: () => Promise<void>): Promise<void> {
  const deadline = Date.now() + EVENTUALLY_MS;
  for (;;) {
    try {
      return await expectation();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
