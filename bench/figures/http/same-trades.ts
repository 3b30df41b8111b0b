/**
 * Checks that the plain service does the exchange's work: the same orders to both, one after the other, must leave the
 * same orders, fills, balances and positions in both databases. Compares the databases with SQL, not the responses.
 */
import { join } from "node:path";
import { OrderStatus } from "../../../engine/constants.ts";
import { assert } from "../../../engine/util/assert.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";
import { openReadOnly } from "../../../engine/util/wal-database.ts";
import { Api, dataOf } from "../../support/api.ts";
import { ExchangeProcess } from "../../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../../support/folder.ts";
import { itemAt } from "../../support/item-at.ts";
import { Baseline } from "./baseline.ts";
import { type OrderRequest, prepare, seed } from "./workload.ts";

/** Rows that must be the same; each order is named by its number in turn. */
const OF_EXCHANGE = {
  orders: `SELECT email, outcome_id, side, price, quantity, remaining,
      CASE WHEN status IN (${OrderStatus.open}, ${OrderStatus.partiallyFilled}) THEN 'live' ELSE 'ended' END
    FROM orders JOIN users ON users.id = user_id ORDER BY orders.id`,
  fills: `SELECT price, quantity, sum(fee), sum(rebate) FROM fills GROUP BY match_id ORDER BY match_id`,
  balances: "SELECT email, balance FROM accounts JOIN users ON users.id = user_id ORDER BY email",
  positions: `SELECT email, outcome_id, quantity FROM positions JOIN users ON users.id = user_id
    WHERE quantity > 0 ORDER BY email, outcome_id`,
} as const;
const OF_PLAIN: Record<keyof typeof OF_EXCHANGE, string> = {
  orders: `SELECT email, outcome_id, side, price, quantity, remaining,
      CASE WHEN status IN ('open', 'partially_filled') THEN 'live' ELSE 'ended' END
    FROM orders JOIN users ON users.id = user_id ORDER BY orders.id`,
  fills: "SELECT price, quantity, fee, rebate FROM fills ORDER BY id",
  balances: "SELECT email, balance FROM users ORDER BY email",
  positions: OF_EXCHANGE.positions,
};

async function sendInTurn(root: string, requests: readonly OrderRequest[]): Promise<void> {
  const api = new Api(root, 1);
  await api.open();
  await api.each(requests.length, async (i, send) => {
    const { token, body } = itemAt(requests, i);
    dataOf("/orders", await send(api.bytes("POST", "/orders", token, JSON.parse(body))));
  });
  api.close();
}

/**
 * Sends the first `count` orders of the workload to both; returns the number of fills. @throws Error if the databases
 * differ
 */
export async function checkSameTrades(count: number): Promise<number> {
  const folder = makeFolder("bench-same");
  const exchange = await ExchangeProcess.start({ dataDir: folder, seed });
  const plain = await Baseline.plainService(folder, seed);
  const { requests } = await prepare(exchange.url);
  await prepare(plain.url);
  await sendInTurn(exchange.url, requests.slice(0, count));
  await sendInTurn(plain.url, requests.slice(0, count));
  await exchange.stop();
  await plain.stop();
  const ours = openReadOnly(join(folder, "exchange.db"));
  const theirs = openSqlite(join(folder, "plain.db"), { readonly: true });
  let fills = 0;
  for (const what of Object.keys(OF_PLAIN) as (keyof typeof OF_PLAIN)[]) {
    const [left, right] = [ours.prepare(OF_EXCHANGE[what]), theirs.prepare(OF_PLAIN[what])].map((rows) =>
      rows
        .raw()
        .all()
        .map((row) => JSON.stringify(row)),
    ) as [string[], string[]];
    const at = left.findIndex((row, i) => row !== right[i]);
    assert(
      left.length === right.length && at < 0,
      `${what} differ: ${left.length} and ${right.length}, ${left[at]} and ${right[at]}`,
    );
    if (what === "fills") fills = left.length;
  }
  ours.close();
  theirs.close();
  removeFolder(folder);
  return fills;
}
