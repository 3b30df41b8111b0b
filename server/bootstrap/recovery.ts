/**
 * From the database back to a trading exchange: reads money, markets and counters, then puts live orders back into the
 * engines' books in the order of their priority and ends those that a crash interrupted. Writes nothing itself.
 */
import type Database from "better-sqlite3";
import { MarketStatus } from "../../engine/constants.ts";
import { Ledger } from "../../engine/ledger.ts";
import { CLIENT_ORDER_ID_MS } from "../../engine/limits.ts";
import { type LedgerState, loadLedger } from "../../engine/projection/load/ledger.ts";
import { loadEvents } from "../../engine/projection/load/markets.ts";
import { firstIdSince, loadClientOrders, loadLiveOrders } from "../../engine/projection/load/orders.ts";
import { MarketRegistry } from "../markets/registry.ts";
import type { Exchange } from "../trading/exchange.ts";

const IGNORED = { data(): void {}, error(): void {} };

/** What is there before the first thread runs. @throws where the database's sums don't add up */
export function loadExchange(db: Database.Database): {
  state: LedgerState;
  ledger: Ledger;
  registry: MarketRegistry;
} {
  const ledger = new Ledger();
  const state = loadLedger(db, ledger);
  const registry = new MarketRegistry(state.sequence + 1, state.lastEntryId);
  for (const event of loadEvents(db)) registry.addEvent(event);
  const outcomesOf = new Map<number, typeof state.outcomes>();
  for (const outcome of state.outcomes) {
    const list = outcomesOf.get(outcome.marketId);
    if (list === undefined) outcomesOf.set(outcome.marketId, [outcome]);
    else list.push(outcome);
  }
  for (const row of state.markets) registry.add(row, outcomesOf.get(row.id)!);
  return { state, ledger, registry };
}

/** Puts books, holds and client order ids back, while the engines run; resolves with how many orders came back. */
export async function restoreTrading(exchange: Exchange, db: Database.Database, now: number): Promise<number> {
  const { registry, clientOrderIds } = exchange;
  for (const market of registry.all()) {
    if (market.status !== MarketStatus.open && market.status !== MarketStatus.halted) continue;
    await exchange.roomForCommands();
    exchange.openMarket(market);
    if (market.status === MarketStatus.halted) exchange.changeMarket(market, "halt", now, IGNORED);
  }
  const since = now - CLIENT_ORDER_ID_MS;
  // Of those before it only the live ones are named: nearly always, but not after each step of the clock, the older ones.
  const firstNamed = firstIdSince(db, "orders", since);
  let restored = 0;
  for (const row of loadLiveOrders(db)) {
    while (!exchange.restore(row, firstNamed)) await exchange.roomForCommands();
    restored++;
  }
  for (const [id, userId, clientOrderId, at] of loadClientOrders(db, firstNamed, since)) {
    clientOrderIds.add(userId, clientOrderId, id, at);
  }
  await exchange.endRestore();
  await exchange.settled();
  registry.startSequences();
  return restored;
}
