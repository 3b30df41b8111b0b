/** A portfolio's value over 90 days, beside one that is reckoned from transactions, fills and trades. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { Client, type MarketJson, type OwnFillJson, type TransactionJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { makePast } from "../support/past.ts";
import { TestServer } from "../support/server.ts";
import { USDC } from "../support/world.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let server: TestServer;
let seed: Seed;
beforeAll(async () => {
  const folder = makePast(31, Date.now());
  seed = JSON.parse(readFileSync(folder.seedFile, "utf8")) as Seed;
  server = await TestServer.start({ dataDir: folder.path });
}, 240_000);
afterAll(() => server.stop());

interface Change {
  readonly at: number;
  readonly outcome: number;
  readonly shares: number;
}

/** What the user's shares changed by, oldest first. */
async function changesOf(client: Client, transactions: readonly TransactionJson[]): Promise<Change[]> {
  const markets = new Map<number, MarketJson>();
  const changes: (Change & { readonly id: number })[] = [];
  for (const fill of await client.all<OwnFillJson>("/me/fills")) {
    const shares = fill.side === 1 ? fill.quantity : -fill.quantity;
    changes.push({ id: fill.id * 4, at: fill.created_at, outcome: fill.outcome_id, shares });
  }
  const paid = new Map<number, number>();
  for (const each of await client.all<{ outcome_id: number; quantity: number }>("/wallet/settlements"))
    paid.set(each.outcome_id, each.quantity);
  for (const { id, type, market_id, outcome_id, amount, created_at: at } of transactions) {
    if (type === "settlement") changes.push({ id, at, outcome: outcome_id!, shares: -paid.get(outcome_id!)! });
    if (type !== "split" && type !== "merge") continue;
    if (!markets.has(market_id!)) markets.set(market_id!, await client.get<MarketJson>(`/markets/${market_id}`));
    for (const outcome of markets.get(market_id!)!.outcomes)
      changes.push({ id, at, outcome: outcome.id, shares: -amount / USDC });
  }
  return changes.sort((a, b) => a.id - b.id);
}

test("hourly and daily values are those of transactions, fills and trades", { timeout: 180_000 }, async () => {
  const trades = new Map<number, { at: number; price: number }[]>();
  for (const { outcome, at, price } of rowsOf<{ outcome: number; at: number; price: number }>(
    server.dataDir,
    "SELECT outcome_id AS outcome, created_at AS at, price FROM fills WHERE role = 1 ORDER BY id",
  )) {
    if (!trades.has(outcome)) trades.set(outcome, []);
    trades.get(outcome)!.push({ at, price });
  }
  const priceBefore = (outcome: number, at: number): number | undefined =>
    trades.get(outcome)?.findLast((trade) => trade.at < at)?.price;
  const siblings = new Map(
    rowsOf<{ id: number; all: string }>(
      server.dataDir,
      'SELECT id, (SELECT json_group_array(o.id) FROM outcomes o WHERE o.market_id = outcomes.market_id) AS "all" FROM outcomes',
    ).map(({ id, all }) => [id, JSON.parse(all) as number[]]),
  );
  let compared = 0;
  for (const { pats } of seed.users!.filter(({ pats }) => pats !== undefined).slice(0, 3)) {
    const client = new Client(server, pats![0]!.token!);
    const { now } = await client.get<{ now: number }>("/time");
    const transactions = (await client.all<TransactionJson>("/wallet/transactions")).reverse();
    const changes = await changesOf(client, transactions);
    const valueAt = (at: number): [value: number, profit: number] => {
      const earlier = transactions.filter(({ created_at }) => created_at < at);
      const deposited = earlier
        .filter(({ type }) => type === "deposit" || type === "withdrawal")
        .reduce((sum, { amount }) => sum + amount, 0);
      const held = new Map<number, number>();
      for (const change of changes) {
        if (change.at < at) held.set(change.outcome, (held.get(change.outcome) ?? 0) + change.shares);
      }
      let value = earlier.at(-1)?.balance_after ?? 0;
      for (const [outcome, shares] of held) {
        if (shares === 0) continue;
        const own = priceBefore(outcome, at);
        const others = siblings.get(outcome)!.map((each) => priceBefore(each, at));
        const left = others.reduce<number>((sum, price) => sum - (price ?? 0), 10_000);
        const unpriced = others.filter((price) => price === undefined).length;
        value += Math.floor((shares * (own ?? left) * 100) / (own === undefined ? unpriced : 1));
      }
      return [value, value - deposited];
    };
    for (const [interval, step, most] of [
      ["1d", DAY_MS, 90],
      ["1h", HOUR_MS, 200],
    ] as const) {
      const query = `interval=${interval}&from=${now - most * step}`;
      const { items } = await client.get<{ items: number[][] }>(`/me/portfolio/history?${query}`);
      expect(items.length).toBeGreaterThan(80);
      const expected = items.map(([at]) => [at, ...valueAt(at!)]);
      expect(items.map(([at]) => at)).toEqual(items.map((_, i) => items[0]![0]! + i * step));
      expect(items).toEqual(expected);
      compared += new Set(items.map(([, value]) => value)).size;
    }
    client.close();
  }
  expect(compared).toBeGreaterThan(100);
});
