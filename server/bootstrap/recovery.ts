/**
 * From the database back to a trading exchange: loads money, markets and accounts before the threads start, then puts
 * live orders back into the engines' books in the order of their priority and ends those that a crash interrupted.
 */
import type Database from "better-sqlite3";
import { MarketStatus } from "../../engine/constants.ts";
import { Ledger } from "../../engine/ledger.ts";
import type { LogStart } from "../../engine/log/database.ts";
import { loadAccounts, loadUserRates } from "../../engine/projection/load/accounts.ts";
import { type LedgerState, loadLedger } from "../../engine/projection/load/ledger.ts";
import { loadEvents } from "../../engine/projection/load/markets.ts";
import { loadUpdateSequences } from "../../engine/projection/load/orders.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Clock } from "../../engine/util/clock.ts";
import type { Accounts } from "../accounts/accounts.ts";
import {
  KNOWN_ADDRESS_MS,
  MAX_ENDED_SESSIONS,
  MAX_KNOWN_ADDRESS_USERS,
  MAX_KNOWN_ADDRESSES_PER_USER,
} from "../accounts/limits.ts";
import { MarketRegistry } from "../markets/registry.ts";
import type { History } from "../queries/history.ts";
import type { Exchange } from "../trading/exchange.ts";
import { CLIENT_ORDER_ID_MS } from "../trading/limits.ts";
import type { Config } from "./config.ts";
import type { ExchangeDatabase } from "./database.ts";
import type { Naming } from "./order-lists.ts";
import type { OrderSource } from "./order-source.ts";

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const IGNORED = { order(): void {}, canceled(): void {}, data(): void {}, error(): void {} };

/** What memory holds before the first thread runs. */
export interface LoadedExchange {
  readonly state: LedgerState;
  readonly ledger: Ledger;
  readonly registry: MarketRegistry;
}

/** Loads money and markets. @throws Error where the database's sums don't add up */
export function loadExchange(db: Database.Database, clock: Clock): LoadedExchange {
  const ledger = new Ledger();
  const state = loadLedger(db, ledger);
  const registry = new MarketRegistry(state.batch + 1, state.lastEntryId, clock);
  for (const event of loadEvents(db)) registry.addEvent(event);
  const outcomesOf = new Map<number, typeof state.outcomes>();
  for (const outcome of state.outcomes) {
    const list = outcomesOf.get(outcome.marketId);
    if (list === undefined) outcomesOf.set(outcome.marketId, [outcome]);
    else list.push(outcome);
  }
  for (const row of state.markets) {
    const outcomes = outcomesOf.get(row.id);
    assert(outcomes !== undefined, "every market has outcomes");
    registry.add(row, outcomes);
  }
  return { state, ledger, registry };
}

/** What the log stage continues from. */
export function logStart(
  { durability }: Config,
  { db, journalPath, end }: ExchangeDatabase,
  { state }: LoadedExchange,
): LogStart {
  const last = { entry: state.lastEntryId, at: state.at, updates: loadUpdateSequences(db) };
  const rates = loadUserRates(db).map(({ id: userId, ...terms }) => ({ userId, ...terms }));
  return { path: journalPath, durability, end, last, rates };
}

/** Loads users, their credentials and their recent sign-in addresses. */
export function loadAllAccounts(accounts: Accounts, db: Database.Database, { accessTtlMs }: Config, now: number): void {
  const most = MAX_KNOWN_ADDRESS_USERS * MAX_KNOWN_ADDRESSES_PER_USER;
  const signIns = { since: now - KNOWN_ADDRESS_MS, most };
  accounts.load(loadAccounts(db, now - accessTtlMs, MAX_ENDED_SESSIONS, signIns));
}

/** Which client order ids this start enters. @param now ms */
export function namingOf({ clientOrderIds }: Exchange, now: number): Naming {
  return { since: now - CLIENT_ORDER_ID_MS, salt: clientOrderIds.keys.salt };
}

/** Puts books, holds and client order ids back while the engines run. Resolves with the number of restored orders. */
export async function restoreTrading(exchange: Exchange, source: OrderSource, now: number): Promise<number> {
  const { registry } = exchange;
  for (const market of registry.all()) {
    if (market.status !== MarketStatus.open && market.status !== MarketStatus.halted) continue;
    await exchange.turn.room();
    exchange.markets.open(market);
    if (market.status === MarketStatus.halted) exchange.markets.change(market, "halt", now, IGNORED);
  }
  const [restored] = await Promise.all([restoreOrders(exchange, source), restoreNames(exchange, source)]);
  await exchange.restore.finish();
  await exchange.fence();
  registry.startSequences();
  return restored;
}

async function restoreOrders({ restore, turn }: Exchange, source: OrderSource): Promise<number> {
  let restored = 0;
  for await (const { chunk, count } of source.orders()) {
    for (let i = 0; i < count; i++) while (!restore.add(chunk.at(i))) await turn.room();
    restored += count;
  }
  return restored;
}

async function restoreNames({ clientOrderIds }: Exchange, source: OrderSource): Promise<void> {
  for await (const { chunk, count } of source.names()) {
    for (let i = 0; i < count; i++) {
      const { key, user, order, createdAt } = chunk.at(i);
      clientOrderIds.addKey(key, user, order, createdAt);
    }
  }
}

/** Loads the volumes of the last 24 hours and the prices of the last week from the history. */
export async function restoreFigures(
  registry: MarketRegistry,
  { db, history }: { readonly db: Database.Database; readonly history: History },
  now: number,
): Promise<void> {
  // It would start a thread to learn that nobody has traded.
  const hasTraded = db.prepare("SELECT EXISTS (SELECT 1 FROM fills) OR EXISTS (SELECT 1 FROM candles)").pluck().get();
  if (hasTraded === 0) return;
  const prices = await history.hourlyPrices(now - WEEK_MS);
  for (let i = 0; i < prices.length; i += 3) registry.restorePrice(prices[i]!, prices[i + 1]!, prices[i + 2]!);
  for (const [marketId, hour, volume] of await history.hourlyVolumes(now - DAY_MS)) {
    const market = registry.get(marketId);
    assert(market !== undefined, "every fill has a market");
    registry.addHourlyVolume(market, hour, volume);
  }
}
