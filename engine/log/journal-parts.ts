/** The parts that a journal pass works with, built once from the database. Each part has one job and one file. */
import type Database from "better-sqlite3";
import { Ledger } from "../ledger.ts";
import { KEEP_UPDATES_MS, MAX_LIVE_ORDERS, MAX_OUTCOME_ID } from "../limits.ts";
import { Builders } from "../projection/builders.ts";
import { Candles } from "../projection/candles.ts";
import { IdempotencyKeys } from "../projection/idempotency-keys.ts";
import { loadUserRates } from "../projection/load/accounts.ts";
import { loadLedger } from "../projection/load/ledger.ts";
import { OrderUpdates } from "../projection/order-updates.ts";
import { RowLinks } from "../projection/row-links.ts";
import { WriteBehind } from "../projection/write-behind.ts";
import type { OrderTexts } from "../ring/order-texts.ts";
import type { RingGate } from "../ring/ring.ts";
import { BatchStamps } from "./batch-stamps.ts";
import { Counters } from "./counters.ts";
import { DirtyAccounts } from "./dirty-accounts.ts";
import { DirtyOrders } from "./dirty-orders.ts";
import { MarketRegistry } from "./market-registry.ts";
import { OrderSlots } from "./order-slots.ts";
import { RestingOrders } from "./resting-orders.ts";
import { Transaction } from "./transaction.ts";
import { UserRates } from "./user-rates.ts";

export interface JournalPartsOptions {
  readonly db: Database.Database;
  readonly gates: readonly RingGate[];
  readonly texts: OrderTexts;
  /** How long order updates are kept, ms. */
  readonly keepUpdatesMs?: number;
  /** Order updates that the orders' rows may lag behind under load. */
  readonly maxPendingUpdates?: number;
  /** The largest slot of an order, and the largest id of a market or outcome. */
  readonly capacity?: number;
  readonly largestId?: number;
}

export interface JournalParts {
  readonly db: Database.Database;
  readonly gates: readonly RingGate[];
  readonly texts: OrderTexts;
  readonly transaction: Transaction;
  readonly counters: Counters;
  readonly ledger: Ledger;
  readonly rates: UserRates;
  readonly markets: MarketRegistry;
  readonly slots: OrderSlots;
  readonly dirtyOrders: DirtyOrders;
  readonly dirtyAccounts: DirtyAccounts;
  readonly stamps: BatchStamps;
  readonly links: RowLinks;
  readonly updates: OrderUpdates;
  readonly writeBehind: WriteBehind;
  readonly resting: RestingOrders;
  readonly candles: Candles;
  readonly builders: Builders;
  readonly keys: IdempotencyKeys;
}

export function createJournalParts(options: JournalPartsOptions): JournalParts {
  const { db, gates, texts, keepUpdatesMs = KEEP_UPDATES_MS, maxPendingUpdates } = options;
  const { capacity = MAX_LIVE_ORDERS, largestId = MAX_OUTCOME_ID } = options;
  const ledger = new Ledger();
  const state = loadLedger(db, ledger);
  const markets = new MarketRegistry(largestId, state);
  const links = new RowLinks(db);
  const resting = new RestingOrders(db, state.ordersListed);
  const last = { order: state.lastOrderId, update: state.orderUpdates };
  const rates = new UserRates();
  for (const terms of loadUserRates(db)) rates.set(terms.id, terms);
  return {
    db,
    gates,
    texts,
    transaction: new Transaction(db),
    counters: new Counters(state),
    ledger,
    rates,
    markets,
    slots: new OrderSlots(db, capacity, state.lastOrderId),
    dirtyOrders: new DirtyOrders(capacity),
    dirtyAccounts: new DirtyAccounts(db, ledger, markets),
    stamps: new BatchStamps(),
    links,
    updates: new OrderUpdates(db, links, state.orderUpdates, keepUpdatesMs),
    writeBehind: new WriteBehind(db, last, (order) => resting.remove(order), maxPendingUpdates),
    resting,
    candles: new Candles(db),
    builders: new Builders(db),
    keys: new IdempotencyKeys(db),
  };
}

/** The last numbers assigned, which the write-behind tables catch up with. */
export function lastNumbers({ counters, updates }: Pick<JournalParts, "counters" | "updates">): {
  readonly order: number;
  readonly fill: number;
  readonly update: number;
} {
  return { order: counters.lastOrderId, fill: counters.lastEntryId, update: updates.count };
}
