/** The check of a database's invariants finds each kind of damage, done to a copy of a sound database. */
import { copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { DEFAULT_TERMS } from "../../../engine/log/user-terms.ts";
import { HOUSE, type Write } from "../../../engine/log/writes.ts";
import { INVARIANTS } from "../../../engine/projection/invariants.ts";
import { verifyCopy, verifyDatabase } from "../../../engine/projection/verify.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";
import { openReadOnly } from "../../../engine/util/wal-database.ts";
import { solvencyView } from "../../../server/markets/views.ts";
import type { ExchangeTotals } from "../../../server/trading/types.ts";
import { admin } from "../../support/admin.ts";
import type { SolvencyJson } from "../../support/client.ts";
import { rowsOf } from "../../support/data-dir.ts";
import { writeInto } from "../../support/journal.ts";
import { temporaryFolder } from "../../support/server.ts";
import { post } from "../../support/trading.ts";
import { USDC, World } from "../../support/world.ts";

const at = Date.now();
const [ALICE, BOB] = [1, 2];
const [RESOLVED, VOIDED] = [3, 4];
const CLOSED_STATUS = 3;

/** Writes to the log of a stopped server and into its tables. Returns what GET /solvency would. */
function write(dataDir: string, writes: readonly Write[]): SolvencyJson {
  writeInto(dataDir, ...writes);
  const [totals] = rowsOf<ExchangeTotals>(
    dataDir,
    "SELECT deposits, withdrawals, users_total AS usersTotal, collateral, house, sequence, at FROM totals",
  );
  return solvencyView(totals!) as SolvencyJson;
}

const before: readonly Write[] = [
  { kind: "setTerms", userId: ALICE, ...DEFAULT_TERMS, tradingFee: 33, makerRebate: 21, patRebate: 27 },
  { kind: "createEvent", id: 2, slug: "event-1", title: "Event 1", category: null, closesAt: null, at },
  { kind: "deposit", userId: HOUSE, amount: 50 * USDC, reference: "loan", at },
];

const withdrawal = (id: number, amount: number, status: string): Write => {
  const decidedAt = status === "pending" || status === "paid" ? null : at;
  const row = {
    id,
    userId: BOB,
    amount,
    address: "0x1",
    status: status === "paid" ? "pending" : status,
    createdAt: at,
  };
  return { kind: "insert", table: "withdrawals", row: { ...row, decidedAt } };
};
const proposal = {
  id: 5,
  firstOutcomeId: 11,
  description: null,
  category: null,
  eventId: 1,
  opensAt: null,
  closesAt: null,
};
const close = (id: number): Write => ({
  kind: "update",
  table: "markets",
  id,
  set: { status: CLOSED_STATUS },
});

const after: readonly Write[] = [
  { kind: "deposit", userId: BOB, amount: 7 * USDC, reference: "transfer 1", at },
  { kind: "reverseDeposit", userId: BOB, depositId: 2, amount: 2 * USDC, reference: "transfer 1 back", at },
  { kind: "withdrawFromHouse", amount: 3 * USDC, reference: "transfer 2", at },
  withdrawal(1, 5 * USDC, "paid"),
  withdrawal(2, 6 * USDC, "pending"),
  withdrawal(3, 7 * USDC, "refused"),
  withdrawal(4, 8 * USDC, "canceled"),
  { kind: "payWithdrawal", id: 1, userId: BOB, amount: 5 * USDC, reference: "transfer 3", note: null, at },
  {
    kind: "insert",
    table: "identity_applications",
    row: {
      id: 1,
      userId: ALICE,
      documentType: "passport",
      documentNumber: "1",
      country: "DE",
      status: "pending",
      createdAt: at,
    },
  },
  close(RESOLVED),
  close(VOIDED),
  { kind: "settleMarket", marketId: RESOLVED, status: 4, payouts: [2_501, 7_499], holders: 4, note: "read", at },
  { kind: "settleMarket", marketId: VOIDED, status: 5, payouts: [3_334, 3_333, 3_333], holders: 6, note: null, at },
  { kind: "createMarket", slug: "proposed", question: "?", outcomes: ["a", "b"], proposedBy: ALICE, ...proposal, at },
  {
    kind: "insert",
    table: "approvals",
    row: { id: 1, action: "withdrawal.pay", subject: 2, details: "{}", actor: "operator 3", createdAt: at },
  },
  {
    kind: "insert",
    table: "approvals",
    row: {
      id: 2,
      action: "market.resolve",
      subject: 3,
      details: "{}",
      actor: "operator 3",
      createdAt: at,
      endedAt: at,
    },
  },
];

let sound: string;
let solvency: SolvencyJson;
beforeAll(async () => {
  const world = await World.start({ users: 2, markets: [2, 3, 2, 3], env: { MERGE_FEE: "25" } });
  await world.server.stop();
  const { dataDir } = world.server;
  write(dataDir, before);
  world.server = await world.server.restart();
  const [alice, bob] = [world.user(), world.user()];
  const terms = (market: (typeof world.markets)[number], outcome: number, side: number, price: number): object => {
    return { market_id: market.id, outcome_id: market.outcomes[outcome], side, price, quantity: 3 };
  };
  for (const market of world.markets) for (const user of [alice, bob]) await world.split(user, market, 20);
  for (const [two, three] of [world.markets.slice(0, 2), world.markets.slice(2)] as const) {
    // One match of each kind.
    await alice.place(terms(two!, 0, 2, 5_001));
    await post(bob, terms(two!, 0, 1, 5_001), { "X-Builder-Code": "app" });
    for (const outcome of [0, 1]) await alice.place(terms(three!, outcome, 1, 3_001));
    await bob.place(terms(three!, 2, 1, 4_000));
    for (const outcome of [0, 1]) await alice.place(terms(three!, outcome, 2, 3_001));
    await bob.place(terms(three!, 2, 2, 3_998));
  }
  await bob.data("POST", "/wallet/merge", { market_id: world.markets[1]!.id, quantity: 2 });
  // Live orders of both sides.
  await alice.place(terms(world.markets[0]!, 1, 1, 1_000));
  await alice.place(terms(world.markets[0]!, 1, 2, 9_000));
  await world.stop();
  solvency = write(dataDir, after);
  sound = join(dataDir, "exchange.db");
});

function check(damage: string): ReturnType<typeof verifyDatabase> {
  const path = join(temporaryFolder(), "exchange.db");
  copyFileSync(sound, path);
  const db = openSqlite(path);
  db.exec(damage);
  const found = verifyDatabase(db);
  db.close();
  return found;
}

const findings = (damage: string): string[] =>
  check(damage)
    .filter(({ ok }) => !ok)
    .map(({ name }) => name);

test("a sound database has no finding, and each line names the compared figures", () => {
  const all = check("");
  expect(all.filter(({ ok }) => !ok)).toEqual([]);
  for (const { name, figures } of all) if (name !== "the file is intact") expect(figures).toMatch(/\d/);
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
});

test("the totals of GET /solvency are the sums of the rows", () => {
  const { deposits, withdrawals, users_total, collateral, house, balanced } = solvency;
  expect(balanced).toBe(true);
  expect([deposits, withdrawals]).toEqual([(20_000 + 50 + 7 - 2) * USDC, 8 * USDC]);
  const line = `deposits ${deposits} - withdrawals ${withdrawals} = balances ${users_total} + collateral ${collateral} + house ${house}`;
  expect(check("").find(({ figures }) => figures === line)?.ok).toBe(true);
  // It includes the voided market's rounding and the individual fees.
  expect(house).toBeGreaterThan(47 * USDC);
});

/** A maker's fill in a mint had a rebate of 3 micro-USDC, which no fee covered. */
const MINT_REBATE = `
  CREATE TEMP TABLE old AS SELECT min(id) AS id, user_id FROM fills WHERE match_type = 1 AND role = 0;
  UPDATE fills SET rebate = rebate + 3 WHERE id = (SELECT id FROM old);
  UPDATE fills SET balance_after = balance_after + 3 WHERE user_id = (SELECT user_id FROM old) AND id >= (SELECT id FROM old);
  UPDATE entries SET balance_after = balance_after + 3 WHERE user_id = (SELECT user_id FROM old) AND id > (SELECT id FROM old);
  UPDATE accounts SET balance = balance + 3, rebates = rebates + 3 WHERE user_id = (SELECT user_id FROM old);
  UPDATE totals SET users_total = users_total + 3, house = house - 3;`;
/** Shares of the voided market were paid 3333 BPS each, and the house had the remainder. */
const EQUAL_PARTS = `
  CREATE TEMP TABLE less AS SELECT id, user_id, quantity * 100 AS amount FROM entries
    WHERE type = 'settlement' AND outcome_id = (SELECT min(id) FROM outcomes WHERE market_id = 4);
  UPDATE outcomes SET payout = 3333 WHERE market_id = 4;
  UPDATE entries SET amount = amount - (SELECT amount FROM less WHERE less.id = entries.id) WHERE id IN (SELECT id FROM less);
  UPDATE entries SET balance_after = balance_after - (SELECT amount FROM less WHERE less.user_id = entries.user_id)
    WHERE id >= (SELECT id FROM less WHERE less.user_id = entries.user_id);
  UPDATE accounts SET balance = balance - (SELECT amount FROM less WHERE less.user_id = accounts.user_id)
    WHERE user_id IN (SELECT user_id FROM less);
  UPDATE totals SET users_total = users_total - (SELECT sum(amount) FROM less), house = house + (SELECT sum(amount) FROM less);`;
const BEFORE_THE_RULES = "UPDATE meta SET value = (SELECT last_entry_id FROM totals) WHERE key = 'old_rebates';";

test("old entries may follow the old rules of rebates and voided markets, new ones may not", () => {
  expect(findings(MINT_REBATE)).toEqual(["the rebates of a match come out of its fees"]);
  expect(findings(MINT_REBATE + BEFORE_THE_RULES)).toEqual([]);
  expect(findings(EQUAL_PARTS)).toEqual([expect.stringContaining("a resolved market has no collateral")]);
  expect(findings(EQUAL_PARTS + BEFORE_THE_RULES)).toEqual([]);
});

test("a database with a negative house keeps working, but reports an imbalance until the house is funded", () => {
  const dataDir = temporaryFolder();
  for (const name of ["exchange.db", "journal.db"]) copyFileSync(join(dirname(sound), name), join(dataDir, name));
  const db = openSqlite(join(dataDir, "exchange.db"));
  // As if that much more had been withdrawn from it.
  const more = solvency.house + 3 * USDC;
  db.exec(`UPDATE entries SET amount = amount - ${more}, balance_after = balance_after - ${more} WHERE reference = 'transfer 2';
    UPDATE totals SET withdrawals = withdrawals + ${more}, house = house - ${more}`);
  expect(
    verifyDatabase(db)
      .filter(({ ok }) => !ok)
      .map(({ name, figures }) => [name, figures]),
  ).toEqual([["the house is not below zero", `house ${-3 * USDC}`]]);
  // The copy is a good copy all the same.
  expect(verifyCopy(db).filter(({ ok }) => !ok)).toEqual([]);
  db.close();
  const fund = (amount: number, reference: string): SolvencyJson => {
    const deposit = { kind: "deposit", userId: HOUSE, amount, reference, at } as const;
    return write(dataDir, [deposit]);
  };
  expect(fund(3 * USDC - 1, "a")).toMatchObject({ house: -1, balanced: false });
  expect(fund(1, "b")).toMatchObject({ house: 0, balanced: true });
});

/** Rows that are few whatever the exchange holds. */
const FEW = /^SCAN (totals|meta|projection|json_each|CONSTANT ROW|\d+ CONSTANT ROWS)/;

test("no query scans a table once per row of another", () => {
  const db = openReadOnly(sound);
  const inner = INVARIANTS.flatMap(({ name, sql }) => {
    const steps = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { id: number; parent: number; detail: string }[];
    const isScan = ({ detail }: { detail: string }): boolean => detail.startsWith("SCAN ") && !FEW.test(detail);
    const perRow = new Set(steps.filter(({ detail }) => detail.startsWith("CORRELATED")).map(({ id }) => id));
    // The plan lists a query's loops side by side, the outermost first.
    const wrong = steps.filter((step, i) => {
      const outer = steps.slice(0, i).some((each) => each.parent === step.parent && isScan(each));
      return isScan(step) && (outer || perRow.has(step.parent));
    });
    return wrong.map(({ detail }) => [name, detail]);
  });
  db.close();
  expect(inner).toEqual([]);
});

test("the command prints the error and exits with 1, also for a missing file", async () => {
  const dataDir = temporaryFolder();
  const path = join(dataDir, "exchange.db");
  expect(await admin(dataDir, "verify")).toMatchObject({ code: 1, out: "", errors: expect.stringContaining(path) });
  copyFileSync(sound, path);
  // The tables alone are no exchange: the log is missing, and all else is well.
  const alone = await admin(dataDir, "verify");
  expect(alone).toMatchObject({ code: 1, errors: "" });
  const noLog = {
    name: "the log's batches follow each other",
    ok: false,
    figures: expect.stringContaining("there is no"),
  };
  expect(JSON.parse(alone.out)).toMatchObject({ ok: false, findings: [noLog, ...check("")] });
  const db = openSqlite(path);
  db.exec("UPDATE accounts SET balance = balance + 1 WHERE user_id = 1");
  db.close();
  const bad = await admin(dataDir, "verify", path);
  expect([bad.code, bad.errors]).toEqual([1, ""]);
  expect(JSON.parse(bad.out)).toMatchObject({ ok: false });
});

test.for([
  ["deposits - withdrawals = balances", "UPDATE totals SET house = house + 1"],
  ["deposits - withdrawals = balances", "UPDATE totals SET house = house + 1, deposits = deposits + 1"],
  ["deposits - withdrawals = balances", "UPDATE totals SET withdrawals = withdrawals + 1, house = house - 1"],
  ["deposits - withdrawals = balances", "UPDATE accounts SET balance = balance + 1 WHERE user_id = 1"],
  ["deposits - withdrawals = balances", "UPDATE markets SET sets = sets + 1"],
  ["deposits - withdrawals = balances", "DELETE FROM totals"],
  ["every code, price and quantity", "UPDATE users SET role = 'root' WHERE id = 1"],
  ["every code, price and quantity", "UPDATE users SET kyc_tier = 3 WHERE id = 1"],
  ["every code, price and quantity", "UPDATE markets SET status = 7 WHERE id = 1"],
  ["every code, price and quantity", "UPDATE orders SET reason = 99 WHERE id = 1"],
  ["every code, price and quantity", "UPDATE orders SET price = 10000 WHERE id = 1"],
  ["every code, price and quantity", "UPDATE fills SET quantity = 0"],
  ["every code, price and quantity", "UPDATE entries SET type = 'gift' WHERE type = 'split'"],
  ["every code, price and quantity", "UPDATE entries SET amount = -amount WHERE type = 'withdrawal'"],
  ["every code, price and quantity", "UPDATE entries SET amount = amount - 1 WHERE type = 'split'"],
  ["every code, price and quantity", "UPDATE withdrawals SET status = 'lost' WHERE id = 2"],
  ["every code, price and quantity", "UPDATE identity_applications SET status = 'lost'"],
  ["every row refers to", "DELETE FROM users WHERE id = 1"],
  ["every row refers to", "DELETE FROM accounts WHERE user_id = 1"],
  ["every row refers to", "DELETE FROM outcomes WHERE id = 1"],
  ["every row refers to", "DELETE FROM markets WHERE id = 1"],
  ["every row refers to", "DELETE FROM orders WHERE id = 1"],
  ["every row refers to", "DELETE FROM builders"],
  ["every row refers to", "UPDATE markets SET event_id = 99 WHERE id = 1"],
  ["every row refers to", "UPDATE markets SET proposed_by = 99 WHERE id = 5"],
  ["every row refers to", "UPDATE personal_access_tokens SET user_id = 99"],
  ["every row refers to", "UPDATE withdrawals SET user_id = 99 WHERE id = 3"],
  ["the outcomes of a market", "DELETE FROM outcomes WHERE market_id = 5"],
  ["the outcomes of a market", "UPDATE outcomes SET position = 0 WHERE id = 2"],
  ["the outcomes of a market", "UPDATE outcomes SET id = 99 WHERE id = 2"],
  ["shares of every outcome", "UPDATE positions SET quantity = quantity + 1 WHERE user_id = 1 AND outcome_id = 1"],
  ["shares of every outcome", "DELETE FROM positions WHERE user_id = 2 AND outcome_id = 3"],
  ["each position = its fills", "UPDATE positions SET quantity = quantity + user_id * 2 - 3 WHERE outcome_id = 1"],
  ["each position = its fills", "DELETE FROM positions WHERE user_id = 2 AND outcome_id = 3"],
  ["each position = its fills", "UPDATE entries SET quantity = quantity + 1 WHERE type = 'settlement'"],
  ["each balance = the sum", "UPDATE fills SET fee = fee + 1 WHERE fee > 0"],
  ["each balance = the sum", "UPDATE entries SET amount = amount - 1 WHERE type = 'split'"],
  ["each balance = the sum", "UPDATE entries SET user_id = 3 - user_id WHERE type = 'settlement'"],
  [
    "each balance follows from the previous row, and",
    "UPDATE fills SET balance_after = balance_after + 1 WHERE id = (SELECT min(id) FROM fills)",
  ],
  [
    "each balance follows from the previous row, and",
    "UPDATE entries SET balance_after = 0 WHERE id = (SELECT max(id) FROM entries WHERE user_id = 2)",
  ],
  ["each balance follows from the previous row, and", "UPDATE accounts SET balance = balance + user_id * 2 - 3"],
  ["each account's fees and rebates", "UPDATE accounts SET fees = fees + 1"],
  ["each account's fees and rebates", "UPDATE accounts SET rebates = rebates + 1 WHERE user_id = 2"],
  ["the hourly balances are", "UPDATE balance_hours SET balance = balance + 1"],
  ["the hourly balances are", "DELETE FROM balance_hours WHERE user_id = 1"],
  ["the hourly balances are", "INSERT INTO balance_hours VALUES (1, 1, 0)"],
  ["the hourly positions are", "UPDATE position_hours SET quantity = quantity + 1"],
  ["the hourly positions are", "UPDATE position_hours SET hour = hour + 1 WHERE user_id = 2"],
  ["the house = fees", "UPDATE fills SET rebate = rebate + 1 WHERE role = 0"],
  ["the house = fees", "UPDATE entries SET amount = amount + 1 WHERE user_id = 0 AND type = 'deposit'"],
  ["the house = fees", "UPDATE markets SET settled_sets = settled_sets + 1 WHERE status = 5"],
  ["only sellers pay fees", "UPDATE fills SET fee = 1 WHERE side = 1"],
  ["only sellers pay fees", "UPDATE fills SET rebate = 1 WHERE role = 1"],
  ["only sellers pay fees", "UPDATE fills SET fee = price * quantity * 11 WHERE side = 2"],
  ["only sellers pay fees", "UPDATE fills SET rebate = price * quantity * 11 WHERE role = 0"],
  ["the rebates of a match", "UPDATE fills SET rebate = 1 WHERE match_type = 1 AND role = 0"],
  ["the rebates of a match", "UPDATE fills SET rebate = fee + rebate + 1 WHERE match_type = 0 AND role = 0"],
  ["the house is not below zero", "UPDATE totals SET house = -1"],
  ["each merge fee follows its merge", "UPDATE entries SET amount = amount - 1 WHERE type = 'fee'"],
  ["each merge fee follows its merge", "UPDATE entries SET user_id = 1 WHERE type = 'fee'"],
  ["each merge fee follows its merge", "UPDATE entries SET type = 'fee' WHERE type = 'withdrawal'"],
  ["each balance = the sum", "UPDATE entries SET amount = amount - 2500 WHERE type = 'fee'"],
  ["each account's activity", "UPDATE accounts SET activity_used = activity_used + 1 WHERE user_id = 2"],
  ["each account's activity", "UPDATE accounts SET activity_day = activity_day + 1"],
  ["each account's activity", "UPDATE fills SET created_at = created_at - 86400000"],
  ["each market's sets", "UPDATE markets SET sets = sets + 1 WHERE id = 1"],
  ["each market's sets", "UPDATE markets SET settled_sets = settled_sets - 1 WHERE status = 4"],
  ["each market's sets", "UPDATE entries SET market_id = 2 WHERE market_id = 1 AND user_id = 1"],
  ["a resolved market has no collateral", "UPDATE markets SET status = 4 WHERE id = 1"],
  ["a resolved market has no collateral", "UPDATE markets SET status = 3 WHERE status = 4"],
  ["a resolved market has no collateral", "UPDATE markets SET resolved_at = NULL WHERE status = 5"],
  ["a resolved market has no collateral", "UPDATE outcomes SET payout = NULL WHERE market_id = 3"],
  ["a resolved market has no collateral", "UPDATE outcomes SET payout = 3333 WHERE market_id = 3"],
  ["a resolved market has no collateral", "UPDATE outcomes SET payout = 3334 WHERE market_id = 4"],
  ["a resolved market has no collateral", "UPDATE outcomes SET payout = 3333 WHERE market_id = 4"],
  ["a resolved market has no collateral", "UPDATE outcomes SET payout = 10000 - payout WHERE market_id = 4"],
  ["a resolved market has no collateral", "UPDATE outcomes SET payout = 5000 WHERE market_id = 1"],
  ["a resolved market has no collateral", "UPDATE positions SET quantity = 1 WHERE outcome_id = 6"],
  ["a resolved market has no collateral", "UPDATE markets SET status = 3 WHERE id = 1"],
  ["each share of a resolved market", "UPDATE outcomes SET payout = 10000 - payout WHERE market_id = 3"],
  ["each share of a resolved market", "UPDATE entries SET amount = amount + 1 WHERE type = 'settlement'"],
  ["each share of a resolved market", "UPDATE entries SET market_id = 1 WHERE type = 'settlement'"],
  ["each share of a resolved market", "UPDATE entries SET user_id = 1 WHERE type = 'settlement'"],
  ["each share of a resolved market", "UPDATE entries SET quantity = NULL WHERE type = 'settlement'"],
  [
    "each share of a resolved market",
    "DELETE FROM entries WHERE id = (SELECT max(id) FROM entries WHERE type = 'settlement')",
  ],
  ["each paid withdrawal left its user's", "UPDATE withdrawals SET status = 'paid' WHERE status = 'refused'"],
  ["each paid withdrawal left its user's", "UPDATE withdrawals SET status = 'canceled' WHERE status = 'paid'"],
  ["each paid withdrawal left its user's", "UPDATE withdrawals SET amount = amount + 1 WHERE status = 'paid'"],
  ["each paid withdrawal left its user's", "UPDATE withdrawals SET user_id = 1 WHERE status = 'paid'"],
  ["a withdrawal is decided or pending", "UPDATE withdrawals SET decided_at = NULL WHERE status = 'paid'"],
  ["a withdrawal is decided or pending", "UPDATE withdrawals SET decided_at = 1 WHERE status = 'pending'"],
  ["a withdrawal is decided or pending", "UPDATE withdrawals SET reference = 'x' WHERE status = 'refused'"],
  ["each reversal takes back", "UPDATE entries SET reverses = 1 WHERE reverses = 2"],
  ["each reversal takes back", "UPDATE entries SET reverses = id WHERE reverses = 2"],
  ["each reversal takes back", "UPDATE entries SET reverses = 999 WHERE reverses = 2"],
  ["each reversal takes back", "UPDATE entries SET amount = 1999999 WHERE id = 2"],
  ["each reversal takes back", "UPDATE entries SET type = 'withdrawal' WHERE reverses = 2"],
  ["every code, price and quantity", "UPDATE entries SET reverses = NULL WHERE reverses = 2"],
  ["every code, price and quantity", "UPDATE entries SET reverses = 1 WHERE id = 2"],
  ["each approval is of", "UPDATE approvals SET subject = 99 WHERE id = 1"],
  ["each approval is of", "UPDATE approvals SET subject = 99 WHERE id = 2"],
  ["each approval is of", "UPDATE approvals SET action = 'gift'"],
  ["each approval is of", "UPDATE approvals SET action = 'house.withdraw'"],
  ["each approval is of", "UPDATE approvals SET ended_at = NULL WHERE id = 2"],
  ["each approval is of", "UPDATE approvals SET subject = 1 WHERE id = 1"],
  ["each approval is of", "UPDATE approvals SET action = 'wallet.deposit', subject = 99 WHERE id = 1"],
  ["each approval is of", "UPDATE approvals SET action = 'user.set_terms', subject = 99 WHERE id = 1"],
  [
    "each approval is of",
    `UPDATE approvals SET action = 'wallet.deposit', ended_at = NULL, (subject, reference) =
       (SELECT user_id, reference FROM entries WHERE type = 'deposit' AND user_id > 0) WHERE id = 1`,
  ],
  [
    // The reference was used for another user.
    "each approval is of",
    `UPDATE approvals SET action = 'wallet.deposit', ended_at = NULL, subject = 1, reference =
       (SELECT reference FROM entries WHERE type = 'deposit' AND user_id > 1) WHERE id = 1`,
  ],
  [
    "each approval is of",
    `UPDATE approvals SET details = (SELECT json_object('reference', reference) FROM withdrawals WHERE status = 'paid')
     WHERE id = 1`,
  ],
  ["each order's filled quantity =", "UPDATE orders SET remaining = 1 WHERE status = 5"],
  ["each order's filled quantity =", "UPDATE fills SET order_id = order_id + 1 WHERE id = (SELECT min(id) FROM fills)"],
  ["an order's status matches its", "UPDATE orders SET status = 3 WHERE status = 5"],
  ["an order's status matches its", "UPDATE orders SET status = 5 WHERE status = 3"],
  [
    "live buys and pending withdrawals are covered",
    "UPDATE orders SET quantity = 1000000000, remaining = 1000000000 WHERE status = 3",
  ],
  ["live buys and pending withdrawals are covered", "UPDATE withdrawals SET amount = 20000000000 WHERE id = 2"],
  ["live buys and pending withdrawals are covered", "DELETE FROM accounts"],
  ["live sells are covered", "UPDATE orders SET quantity = 21, remaining = 21 WHERE status = 3 AND side = 2"],
  ["each fill has its order's owner, outcome", "UPDATE orders SET user_id = 3 - user_id WHERE id = 1"],
  ["each fill has its order's owner, outcome", "UPDATE fills SET builder_id = NULL"],
  ["each fill has its order's owner, outcome", "DELETE FROM orders WHERE id = 1"],
  ["every match has one taker", "DELETE FROM fills WHERE id = (SELECT min(id) FROM fills WHERE match_type = 1)"],
  ["every match has one taker", "UPDATE fills SET role = 1 WHERE match_type = 2"],
  ["every match has one taker", "UPDATE fills SET role = 1 - role WHERE role = 1"],
  ["every match has one taker", "UPDATE fills SET side = 2 WHERE match_type = 1"],
  ["every match has one taker", "UPDATE fills SET side = 1 WHERE match_type = 0"],
  ["every match has one taker", "UPDATE fills SET price = price + 1 WHERE match_type = 2 AND role = 1"],
  ["every match has one taker", "UPDATE fills SET price = price - 1 WHERE match_type = 1 AND role = 1"],
  ["every match has one taker", "UPDATE fills SET price = price - role WHERE match_type = 0"],
  ["every match has one taker", "UPDATE fills SET match_id = match_id + 1"],
  ["every match has one taker", "UPDATE fills SET quantity = quantity + role"],
  ["every match has one taker", "UPDATE fills SET outcome_id = 3 WHERE outcome_id = 4"],
  ["each outcome's volume", "UPDATE outcomes SET volume = volume + 1 WHERE id = 2"],
  ["each outcome's volume", "UPDATE outcomes SET last_price = last_price + 1"],
  ["each outcome's volume", "UPDATE outcomes SET last_price = 1 WHERE id = 2"],
  ["numbered without a gap, and end", "DELETE FROM entries WHERE type = 'deposit'"],
  ["numbered without a gap, and end", "UPDATE totals SET last_entry_id = last_entry_id + 1"],
  ["numbered without a gap, and end", "UPDATE totals SET last_order_id = last_order_id + 1"],
  [
    "numbered without a gap, and end",
    "UPDATE entries SET id = (SELECT min(id) FROM fills) WHERE id = (SELECT min(id) FROM entries)",
  ],
  ["numbered without a gap, and end", "DELETE FROM totals"],
  ["each order links to its owner's previous", "UPDATE orders SET previous_of_user = 0"],
  ["each order links to its owner's previous", "UPDATE orders SET user_id = 3 - user_id WHERE id = 2"],
  [
    "each fill links to the previous fill",
    "UPDATE fills SET previous_of_user = previous_of_user + 1 WHERE previous_of_user > 0",
  ],
  [
    "each fill links to the previous fill",
    "UPDATE fills SET previous_of_order = 1 WHERE id = (SELECT max(id) FROM fills)",
  ],
  ["each trade links to its market's previous", "UPDATE fills SET previous_of_market = 0"],
  ["each order links to its last fill, and", "UPDATE orders SET last_fill_id = 0"],
  ["each entry links to its", "UPDATE entries SET last_fill_id = 1000"],
  ["each entry links to its", "UPDATE entries SET last_fill_id = 0 WHERE type = 'settlement'"],
  ["each recorded position is that", "UPDATE meta SET value = 65536 WHERE key = 'orders_listed'"],
  ["each recorded position is that", "DELETE FROM meta WHERE key = 'old_rebates'"],
  ["each recorded position is that", "DELETE FROM projection"],
  ["each recorded position is that", "UPDATE totals SET sequence = sequence - 1"],
  ["each recorded position is that", "UPDATE projection SET log_begins = batch + 2"],
  ["newest rows are on record", "DELETE FROM newest_of_user WHERE user_id = 1"],
  ["newest rows are on record", "UPDATE newest_of_user SET fill_id = 1"],
  ["newest rows are on record", "UPDATE newest_of_user SET order_id = order_id + 1"],
  ["newest rows are on record", "DELETE FROM newest_of_market"],
  ["newest rows are on record", "UPDATE newest_of_market SET fill_id = fill_id + 1"],
  ["every row refers to", "INSERT INTO newest_of_user VALUES (99, 0, 0, 0)"],
  ["the index of order updates rises", "UPDATE newest_of_user SET update_sequence = 0"],
  ["the index of order updates rises", "INSERT INTO update_index SELECT user_id, 2, block, batch FROM update_index"],
  ["the index of order updates rises", "UPDATE update_index SET batch = (SELECT batch + 1 FROM projection)"],
  ["the index of order updates rises", "UPDATE projection SET log_begins = batch + 1"],
  ["each change of an order's terms", "INSERT INTO term_changes VALUES (1, 100, 5000, 1, 0)"],
  ["each change of an order's terms", "INSERT INTO term_changes VALUES (1, 1, 0, 1, 0)"],
  ["every row refers to", "INSERT INTO term_changes VALUES (99, 1, 5000, 1, 0)"],
  ["an order in the middle of its matching", "INSERT INTO unfinished_orders VALUES (2, 1, 1)"],
  [
    "an order in the middle of its matching",
    "INSERT INTO unfinished_orders SELECT id, 1, 0 FROM orders WHERE remaining = quantity LIMIT 1",
  ],
  ["each builder's sums", "UPDATE builders SET notional = notional + 1"],
  ["each builder's sums", "UPDATE orders SET builder_id = NULL"],
  ["can be searched for", "DELETE FROM market_words WHERE rowid = 1"],
  ["can be searched for", "DELETE FROM event_words WHERE rowid = 1"],
  ["each candle = the sums of its", "DELETE FROM candles WHERE interval = 5"],
  ["each candle = the sums of its", "UPDATE candles SET last_fill_id = last_fill_id - 1 WHERE interval = 1440"],
  ["each candle = the sums of its", "UPDATE candles SET volume = volume + 1 WHERE interval = 60"],
  ["each candle = the sums of its", "UPDATE candles SET open = open + 1 WHERE interval = 1"],
  ["each candle = the sums of its", "UPDATE candles SET high = high + 1 WHERE interval = 1"],
  ["each candle = the sums of its", "UPDATE candles SET low = low - 1 WHERE interval = 5"],
  ["each candle = the sums of its", "UPDATE candles SET close = close + 1 WHERE interval = 1440"],
  ["each candle = the sums of its", "INSERT INTO candles SELECT 2, 1, 0, 1, 1, 1, 1, 1, max(id) FROM fills"],
  ["the older live orders are listed", "INSERT INTO resting_orders SELECT max(id) FROM orders"],
  ["the older live orders are listed", "INSERT INTO resting_orders VALUES (1)"],
  ["the older live orders are listed", "UPDATE meta SET value = 131072 WHERE key = 'orders_listed'"],
  ["the audit log", "DROP TRIGGER audit_log_keeps_rows; DELETE FROM audit_log WHERE id = 2"],
  ["the audit log", "DROP TRIGGER audit_log_keeps_rows; DELETE FROM audit_log WHERE id = 1"],
] as const)("%s: %s", ([finding, damage]) => {
  expect(findings(damage)).toContainEqual(expect.stringContaining(finding));
});
