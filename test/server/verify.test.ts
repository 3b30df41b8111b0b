/** The check of a database's invariants finds what is wrong: each kind of damage, done to a copy of a sound one. */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { beforeAll, expect, test } from "vitest";
import { verifyDatabase } from "../../engine/journal/verify.ts";
import { temporaryFolder } from "./support/server.ts";
import { World } from "./support/world.ts";

let sound: string;
beforeAll(async () => {
  const world = await World.start({ users: 2, markets: [2, 3] });
  const [alice, bob] = [world.user(), world.user()];
  const [two, three] = [world.market(2), world.market(3)];
  for (const user of [alice, bob]) for (const market of [two, three]) await world.split(user, market, 20);
  const terms = (market: typeof two, outcome: number, side: number, price: number): object => {
    return { market_id: market.id, outcome_id: market.outcomes[outcome], side, price, quantity: 3 };
  };
  // One match of each kind, and live orders of both sides.
  await alice.place(terms(two, 0, 2, 5_000));
  await bob.place(terms(two, 0, 1, 5_000));
  for (const [outcome, price] of [3_000, 3_000].entries()) await alice.place(terms(three, outcome, 1, price));
  await bob.place(terms(three, 2, 1, 4_000));
  for (const [outcome, price] of [3_000, 3_000].entries()) await alice.place(terms(three, outcome, 2, price));
  await bob.place(terms(three, 2, 2, 4_000));
  await alice.place(terms(two, 1, 1, 1_000));
  await alice.place(terms(two, 1, 2, 9_000));
  await world.stop();
  sound = join(world.server.dataDir, "exchange.db");
});

function findings(damage: string): string[] {
  const path = join(temporaryFolder(), "exchange.db");
  copyFileSync(sound, path);
  const db = new Database(path);
  db.exec(damage);
  const wrong = verifyDatabase(db).filter(({ ok }) => !ok);
  db.close();
  return wrong.map(({ name }) => name);
}

test("a sound database has no finding", () => {
  expect(findings("")).toEqual([]);
});

test.for([
  ["deposits - withdrawals = balances", "UPDATE totals SET house = house + 1"],
  ["deposits - withdrawals = balances", "UPDATE accounts SET balance = balance + 1 WHERE user_id = 1"],
  ["deposits - withdrawals = balances", "UPDATE markets SET sets = sets + 1"],
  ["shares of every outcome", "UPDATE positions SET quantity = quantity + 1 WHERE user_id = 1 AND outcome_id = 1"],
  ["shares of every outcome", "DELETE FROM positions WHERE user_id = 2 AND outcome_id = 3"],
  ["each balance = the sum", "UPDATE fills SET fee = fee + 1 WHERE fee > 0"],
  ["each balance = the sum", "UPDATE entries SET amount = amount - 1 WHERE type = 'split'"],
  ["the house has", "UPDATE fills SET rebate = rebate + 1 WHERE role = 0"],
  ["what an order filled", "UPDATE orders SET remaining = 1 WHERE status = 5"],
  ["what an order filled", "UPDATE fills SET order_id = order_id + 1 WHERE id = (SELECT min(id) FROM fills)"],
  ["an order's state fits", "UPDATE orders SET status = 3 WHERE status = 5"],
  ["an order's state fits", "UPDATE orders SET status = 5 WHERE status = 3"],
  [
    "live buys and pending withdrawals are covered",
    "UPDATE orders SET quantity = 1000000000, remaining = 1000000000 WHERE status = 3",
  ],
  ["live sells are covered", "UPDATE orders SET quantity = 21, remaining = 21 WHERE status = 3 AND side = 2"],
  ["every match has one taker", "DELETE FROM fills WHERE id = (SELECT min(id) FROM fills WHERE match_type = 1)"],
  ["every match has one taker", "UPDATE fills SET role = 1 WHERE match_type = 2"],
  ["numbered without a gap", "DELETE FROM entries WHERE type = 'deposit'"],
  ["numbered without a gap", "UPDATE totals SET last_entry_id = last_entry_id + 1"],
  ["each order leads to its owner's", "UPDATE orders SET previous_of_user = 0"],
  ["each order leads to its owner's", "UPDATE orders SET user_id = 3 - user_id WHERE id = 2"],
  ["each fill leads to the one", "UPDATE fills SET previous_of_user = previous_of_user + 1 WHERE previous_of_user > 0"],
  ["each fill leads to the one", "UPDATE fills SET previous_of_order = 1 WHERE id = (SELECT max(id) FROM fills)"],
  ["each trade leads to the one", "UPDATE fills SET previous_of_market = 0"],
  ["each order leads to its last fill", "UPDATE orders SET last_fill_id = 0"],
  ["each entry leads to", "UPDATE entries SET last_fill_id = 1000"],
  ["newest rows are found", "DELETE FROM newest_of_user WHERE user_id = 1"],
  ["newest rows are found", "UPDATE newest_of_user SET fill_id = 1"],
  ["newest rows are found", "DELETE FROM newest_of_market"],
  ["can be searched for", "DELETE FROM market_words WHERE rowid = 1"],
  ["each trade is in its candles", "DELETE FROM candles WHERE interval = 5"],
  ["each trade is in its candles", "UPDATE candles SET last_fill_id = last_fill_id - 1 WHERE interval = 1440"],
  ["each candle is what its trades", "UPDATE candles SET volume = volume + 1 WHERE interval = 60"],
  ["each candle is what its trades", "UPDATE candles SET open = open + 1 WHERE interval = 1"],
  ["each candle is what its trades", "UPDATE candles SET high = high + 1 WHERE interval = 1"],
  ["each candle is what its trades", "UPDATE candles SET low = low - 1 WHERE interval = 5"],
  ["each candle is what its trades", "UPDATE candles SET close = close + 1 WHERE interval = 1440"],
  ["each candle is what its trades", "INSERT INTO candles SELECT 2, 1, 0, 1, 1, 1, 1, 1, max(id) FROM fills"],
  ["live orders are listed", "DELETE FROM resting_orders"],
] as const)("%s: %s", ([finding, damage]) => {
  expect(findings(damage)).toContainEqual(expect.stringContaining(finding));
});
