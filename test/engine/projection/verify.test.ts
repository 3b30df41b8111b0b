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
import { DAMAGES } from "./damages.ts";

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

test.for(DAMAGES)("%s: %s", ([finding, damage]) => {
  expect(findings(damage)).toContainEqual(expect.stringContaining(finding));
});
