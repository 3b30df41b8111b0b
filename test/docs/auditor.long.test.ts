/**
 * An auditor who knows only docs/log.md: reads the log of a real exchange, recomputes each fill's fee and rebate, each ledger
 * entry, balance and position with the page's rules, and compares them with the tables. Imports nothing of the exchange's
 * arithmetic or layouts.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { decode } from "@msgpack/msgpack";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { Client } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { OPERATOR, operatorOf, setTerms, userNamed } from "../support/operator.ts";
import { Random } from "../support/random.ts";
import { RandomTrading } from "../support/random-trading.ts";
import { PUBLIC_URL, type TestMarket, tokenOf, USDC, World } from "../support/world.ts";

const MERGE_FEE_BPS = 7;
const USERS = ["user0", "user1", "user2", "dear"];
const ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

type Write = { readonly kind: string } & Readonly<Record<string, never>>;
type Numbers = Record<string, number>;

interface Market {
  readonly first: number;
  readonly outcomes: number;
  sets: number;
}

/** A position: shares, what they cost, and the realized profit. */
interface Holding {
  quantity: number;
  cost: number;
  realized: number;
}

const mulDiv = (a: number, b: number, c: number): number => Number((BigInt(a) * BigInt(b)) / BigInt(c));

/** The page's rules, over the batches in their order. */
class Auditor {
  readonly balances = new Map<number, number>();
  readonly holdings = new Map<string, Holding>();
  readonly entries: unknown[][] = [];
  readonly fills: unknown[][] = [];
  private readonly markets = new Map<number, Market>();
  private readonly marketOf = new Map<number, number>();
  private entry = 0;
  private previous: Buffer | null = null;
  private match: { id: number; fees: number } | null = null;
  batches = 0;

  read(body: Buffer): void {
    if (this.previous !== null) {
      expect(body.subarray(64, 96)).toEqual(createHash("sha256").update(this.previous).digest());
      expect(body.readDoubleLE(8)).toBe(this.previous.readDoubleLE(8) + 1);
    }
    this.previous = body;
    this.batches++;
    expect(body.readDoubleLE(32)).toBe(this.entry);
    const [records, texts] = [body.readUInt32LE(48), body.readUInt32LE(52)];
    // The requests come last in the body, and first in the order of things.
    for (let at = 96 + records * 64 + texts; at < body.length; ) {
      const length = body.readUInt32LE(at);
      const { writes } = decode(body.subarray(at + 4, at + 4 + length)) as { writes: Write[] };
      for (const write of writes) this.write(write);
      at += 4 + length;
    }
    for (let i = 0; i < records; i++) {
      const at = 96 + i * 64;
      const kind = body[at]!;
      if (kind === 2) this.fill(body, at);
      else if (kind === 10 || kind === 11) this.sets(body, at, kind === 10);
    }
  }

  private write(write: Write): void {
    const w = write as unknown as Numbers & { outcomes: string[]; payouts: number[] };
    switch (write.kind as string) {
      case "deposit":
        return this.addEntry(w["userId"]!, "deposit", w["amount"]!);
      case "reverseDeposit":
        return this.addEntry(w["userId"]!, "deposit", -w["amount"]!);
      case "withdrawFromHouse":
        return this.addEntry(0, "withdrawal", -w["amount"]!);
      case "payWithdrawal":
        return this.addEntry(w["userId"]!, "withdrawal", -w["amount"]!);
      case "createMarket":
        this.markets.set(w["id"]!, { first: w["firstOutcomeId"]!, outcomes: w.outcomes.length, sets: 0 });
        for (let i = 0; i < w.outcomes.length; i++) this.marketOf.set(w["firstOutcomeId"]! + i, w["id"]!);
        return;
      case "settleMarket":
        return this.settle(w["marketId"]!, w.payouts);
    }
  }

  private settle(id: number, payouts: readonly number[]): void {
    const market = this.markets.get(id)!;
    const paid: [user: number, outcome: number][] = [];
    for (const [key, { quantity }] of this.holdings) {
      const [user, outcome] = key.split(" ").map(Number) as [number, number];
      const isOf = outcome >= market.first && outcome < market.first + market.outcomes;
      if (isOf && quantity > 0) paid.push([user, outcome]);
    }
    paid.sort(([a, x], [b, y]) => a - b || x - y);
    for (const [user, outcome] of paid) {
      const holding = this.holding(user, outcome);
      const amount = holding.quantity * payouts[outcome - market.first]! * 100;
      dispose(holding, holding.quantity, amount);
      this.move(0, -amount);
      this.addEntry(user, "settlement", amount);
    }
    this.move(0, market.sets * 1_000_000);
    market.sets = 0;
  }

  private sets(body: Buffer, at: number, isSplit: boolean): void {
    const int = (word: number): number => body.readInt32LE(at + 4 * word);
    const [id, user, feeBps, quantity] = [int(1), int(2), int(4), int(5)];
    const market = this.markets.get(id)!;
    expect(body.readDoubleLE(at + 48)).toBe(this.entry + 1);
    const amount = quantity * 1_000_000;
    const fee = isSplit ? 0 : quantity * feeBps * 100;
    this.addEntry(user, isSplit ? "split" : "merge", isSplit ? -amount : amount);
    if (fee > 0) {
      this.addEntry(user, "fee", -fee);
      this.move(0, fee);
    }
    market.sets += isSplit ? quantity : -quantity;
    for (let i = 0; i < market.outcomes; i++) {
      const holding = this.holding(user, market.first + i);
      const partOf = (total: number): number =>
        Math.floor(total / market.outcomes) + (i < total % market.outcomes ? 1 : 0);
      const part = int(6) === 1 ? quantity * partOf(1_000_000) - partOf(fee) : partOf(amount - fee);
      if (isSplit) acquire(holding, quantity, part);
      else dispose(holding, quantity, part);
    }
  }

  private fill(body: Buffer, at: number): void {
    const { packed, user, outcome, price, quantity, word7 } = fillAt(body, at);
    const id = body.readDoubleLE(at + 48);
    expect(id).toBe(++this.entry);
    if ((word7 & 31) === 0) this.match = { id, fees: feesOf(body, at) };
    const match = this.match!;
    const isBuy = ((packed >>> 8) & 15) === 1;
    const holding = this.holding(user, outcome);
    const notional = price * quantity * 100;
    const fee = isBuy ? 0 : feeOf(price, quantity, word7);
    if (isBuy) acquire(holding, quantity, notional);
    else dispose(holding, quantity, notional - fee);
    this.move(user, isBuy ? -notional : notional - fee);
    this.move(0, isBuy ? notional : fee - notional);
    const isMaker = ((packed >>> 22) & 1) === 0;
    const rebate = isMaker ? Math.min(rebateOf(packed, price, quantity, word7), match.fees) : 0;
    match.fees -= rebate;
    this.move(user, rebate);
    this.move(0, -rebate);
    holding.realized += rebate;
    this.fills.push([id, match.id, user, fee, rebate, this.balance(user)]);
    if ((packed & (1 << 26)) === 0) return;
    const type = (packed >>> 20) & 3;
    const minted = type === 1 ? quantity : type === 2 ? -quantity : 0;
    this.markets.get(this.marketOf.get(outcome)!)!.sets += minted;
    this.move(0, -minted * 1_000_000);
  }

  private addEntry(user: number, type: string, amount: number): void {
    this.move(user, amount);
    this.entries.push([++this.entry, user, type, amount, this.balance(user)]);
  }

  private balance(user: number): number {
    return this.balances.get(user) ?? 0;
  }

  private move(user: number, amount: number): void {
    this.balances.set(user, this.balance(user) + amount);
  }

  private holding(user: number, outcome: number): Holding {
    const key = `${user} ${outcome}`;
    const found = this.holdings.get(key) ?? { quantity: 0, cost: 0, realized: 0 };
    this.holdings.set(key, found);
    return found;
  }
}

function fillAt(body: Buffer, at: number) {
  const int = (word: number): number => body.readInt32LE(at + 4 * word);
  return {
    packed: int(0),
    user: int(2),
    outcome: int(3),
    price: int(4),
    quantity: int(5),
    word7: body.readUInt32LE(at + 28),
  };
}

/** All sellers' fees of the match that begins here. */
function feesOf(body: Buffer, first: number): number {
  let fees = 0;
  for (let at = first; ; at += 64) {
    const { packed, price, quantity, word7 } = fillAt(body, at);
    if (((packed >>> 8) & 15) === 2) fees += feeOf(price, quantity, word7);
    if ((packed & (1 << 26)) !== 0) return fees;
  }
}

function feeOf(price: number, quantity: number, word7: number): number {
  const rates = word7 >>> 5;
  const bps = rates === 0 ? 150 : (rates >>> 1) & 1023;
  const notional = price * quantity * 100;
  return mulDiv(notional, bps, 10_000) + ((notional * bps) % 10_000 === 0 ? 0 : 1);
}

function rebateOf(packed: number, price: number, quantity: number, word7: number): number {
  const rates = word7 >>> 5;
  const usual = (packed & (1 << 25)) !== 0 ? 10 : 5;
  return mulDiv(price * quantity * 100, rates === 0 ? usual : rates >>> 11, 10_000);
}

function acquire(holding: Holding, quantity: number, cost: number): void {
  holding.quantity += quantity;
  holding.cost += cost;
}

function dispose(holding: Holding, quantity: number, proceeds: number): void {
  const removed = quantity === holding.quantity ? holding.cost : mulDiv(holding.cost, quantity, holding.quantity);
  holding.quantity -= quantity;
  holding.cost -= removed;
  holding.realized += proceeds - removed;
}

let world: World;
let dataDir: string;
beforeAll(async () => {
  const random = Random.printed("auditor");
  world = await World.start({
    users: 3,
    named: {
      dear: { password: PASSWORD, terms: { trading_fee: 37, maker_rebate: 3, pat_rebate: 11, merge_fee: 13 } },
      operator: OPERATOR,
    },
    markets: [2, 3, 5],
    env: { MERGE_FEE: String(MERGE_FEE_BPS), PUBLIC_URL },
  });
  ({ dataDir } = world.server);
  const trading = new RandomTrading(
    random,
    world.markets,
    USERS.map((name) => tokenOf(name)),
  );
  await trading.prepare(world.server);
  trading.start(world.server);
  await trading.more(1_500);
  await trading.stop();
  await trading.expired(world.server);
  await operate();
  await world.stop();
}, 120_000);
afterAll(() => world?.server.kill());

/** What operators do: house, withdrawals, terms, refused and approved proposals, a resolved and a void market. */
async function operate(): Promise<void> {
  const { server } = world;
  const operator = await operatorOf(server);
  const loan = await operator.data<{ id: number }>("POST", "/admin/house/deposits", {
    amount: 5 * USDC,
    reference: "loan",
  });
  await operator.data("POST", `/admin/deposits/${loan.id}/reverse`, { amount: USDC, reference: "lent too much" });
  await operator.data("POST", "/admin/house/withdrawals", { amount: 2 * USDC, reference: "loan back" });
  const { client, accessToken } = await signIn(server, "dear@example.com");
  client.close();
  const owner = new Client(server, accessToken);
  const { id } = await owner.data<{ id: number }>("POST", "/wallet/withdrawals", {
    amount: 7 * USDC,
    address: ADDRESS,
  });
  owner.close();
  await operator.data("POST", `/admin/withdrawals/${id}/pay`, { reference: "paid 1" });
  await setTerms(operator, (await userNamed(operator, "user1")).id, { trading_fee: 200 });
  const user = world.client("user0");
  for (const decision of ["refuse", "approve"]) {
    const proposal = { question: `To ${decision}?`, outcomes: ["Yes", "No"] };
    const proposed = await user.data<{ id: number }>("POST", "/markets/proposals", proposal);
    await operator.data("POST", `/admin/proposals/${proposed.id}/${decision}`, {});
    if (decision === "approve") await user.data("POST", "/wallet/split", { market_id: proposed.id, quantity: 3 });
  }
  const [, resolved, voided] = world.markets as [TestMarket, TestMarket, TestMarket];
  await user.data("POST", "/wallet/split", { market_id: resolved.id, quantity: 5 });
  await user.data("POST", "/wallet/merge", { market_id: resolved.id, quantity: 3 });
  const end = async ({ id: market }: TestMarket, how: string, body: object): Promise<void> => {
    await operator.data("POST", `/admin/markets/${market}/close`, {});
    await operator.data("POST", `/admin/markets/${market}/${how}`, body);
  };
  await end(resolved, "resolve", { payouts: [3_333, 3_333, 3_334] });
  await end(voided, "void", {});
  operator.close();
}

test("the page's rules give every fee, rebate, ledger entry, balance and position of the tables", () => {
  const auditor = new Auditor();
  // Brings the tables to the log's end.
  const [totals] = rowsOf<{ house: number }>(dataDir, "SELECT house FROM totals");
  const journal = openReadOnly(join(dataDir, "journal.db"));
  for (const body of journal.prepare("SELECT body FROM batches ORDER BY number").pluck().iterate()) {
    auditor.read(body as Buffer);
  }
  journal.close();
  const rows = (sql: string): unknown[][] => rowsOf<object>(dataDir, sql).map((row) => Object.values(row));
  const fills = rows("SELECT id, match_id, user_id, fee, rebate, balance_after FROM fills ORDER BY id");
  expect(fills.length).toBeGreaterThan(100);
  expect(auditor.fills).toEqual(fills);
  const entries = rows("SELECT id, user_id, type, amount, balance_after FROM entries ORDER BY id");
  expect(new Set(entries.map(([, , type]) => type))).toEqual(
    new Set(["deposit", "withdrawal", "split", "merge", "fee", "settlement"]),
  );
  expect(auditor.entries).toEqual(entries);
  const balances = rows("SELECT user_id, balance FROM accounts WHERE balance <> 0 ORDER BY user_id");
  expect([...auditor.balances].filter(([user, n]) => user !== 0 && n !== 0).sort(([a], [b]) => a - b)).toEqual(
    balances,
  );
  expect(auditor.balances.get(0)).toBe(totals!.house);
  const positions = rows("SELECT user_id, outcome_id, quantity, cost, realized_pnl FROM positions ORDER BY 1, 2");
  const found = [...auditor.holdings].map(([key, h]) => [
    ...key.split(" ").map(Number),
    h.quantity,
    h.cost,
    h.realized,
  ]);
  expect(found.sort(([a, x], [b, y]) => a! - b! || x! - y!)).toEqual(positions);
  // Both kinds of rates, both signs of sets, and rebates that the fees of their match cut short.
  expect(fills.some(([, , , , rebate]) => (rebate as number) > 0)).toBe(true);
});
