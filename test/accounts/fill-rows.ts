/** The rows of fills in a server's database, and the comparison of a user's fills with all other views of the money. */
import { expect } from "vitest";
import type { Client, OwnFillJson, TransactionJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";

export const FILLS = `SELECT fills.id, match_id, fills.user_id, order_id, side, fills.price, fills.quantity, role, fee, rebate,
  (SELECT pat FROM orders WHERE id = order_id) AS pat FROM fills`;
export interface FillRow {
  readonly id: number;
  readonly match_id: number;
  readonly user_id: number;
  readonly order_id: number;
  readonly side: number;
  readonly price: number;
  readonly quantity: number;
  readonly role: number;
  readonly fee: number;
  readonly rebate: number;
  readonly pat: number;
}

/** Expects a user's balance, fills and transactions to agree with each other and with the database. */
export async function expectOneStory(client: Client, userId: number, rows: readonly FillRow[]): Promise<void> {
  const own = rows.filter((row) => row.user_id === userId);
  const fills = await client.all<OwnFillJson>("/me/fills");
  expect(fills.map(({ id, fee, rebate }) => [id, fee, rebate])).toEqual(
    own.map(({ id, fee, rebate }) => [id, fee, rebate]).reverse(),
  );
  const transactions = await client.all<TransactionJson>("/wallet/transactions");
  const sum = (type?: string): number =>
    transactions
      .filter((each) => type === undefined || each.type === type)
      .reduce((all, { amount }) => all + amount, 0);
  expect([0 - sum("fee"), sum("rebate")]).toEqual([
    own.reduce((all, { fee }) => all + fee, 0),
    own.reduce((all, { rebate }) => all + rebate, 0),
  ]);
  const { total } = await client.balance();
  expect(sum()).toBe(total);
  const [account] = rowsOf<{ balance: number }>(
    client.server.dataDir,
    "SELECT balance FROM accounts WHERE user_id = ?",
    userId,
  );
  expect(account!.balance).toBe(total);
}
