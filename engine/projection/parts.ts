/** The parts that the projector works with, built once from the tables. Each part has one job and one file. */
import type Database from "better-sqlite3";
import { Ledger } from "../ledger.ts";
import { MAX_LIVE_ORDERS, MAX_OUTCOME_ID } from "../limits.ts";
import type { LogReader } from "../log/log-reader.ts";
import { Builders } from "./builders.ts";
import { Candles } from "./candles.ts";
import { Counters } from "./counters.ts";
import { DirtyAccounts } from "./dirty-accounts.ts";
import { DirtyOrders } from "./dirty-orders.ts";
import { HourlyHoldings } from "./hourly-holdings.ts";
import { IdempotencyKeys } from "./idempotency-keys.ts";
import { loadLedger } from "./load/ledger.ts";
import { MarketRegistry } from "./market-registry.ts";
import { OrderSlots } from "./order-slots.ts";
import { RestingOrders } from "./resting-orders.ts";
import { RowLinks } from "./row-links.ts";
import { UpdateIndex } from "./update-index.ts";

export interface ProjectorSizes {
  /** The largest slot of an order, and the largest id of a market or outcome. */
  readonly capacity?: number;
  readonly largestId?: number;
}

export interface ProjectorParts {
  readonly db: Database.Database;
  readonly counters: Counters;
  readonly ledger: Ledger;
  readonly markets: MarketRegistry;
  readonly slots: OrderSlots;
  readonly dirtyOrders: DirtyOrders;
  readonly dirtyAccounts: DirtyAccounts;
  readonly holdings: HourlyHoldings;
  readonly links: RowLinks;
  readonly updates: UpdateIndex;
  readonly resting: RestingOrders;
  readonly candles: Candles;
  readonly builders: Builders;
  readonly keys: IdempotencyKeys;
}

export function createProjectorParts(db: Database.Database, log: LogReader, sizes: ProjectorSizes): ProjectorParts {
  const { capacity = MAX_LIVE_ORDERS, largestId = MAX_OUTCOME_ID } = sizes;
  const ledger = new Ledger();
  const state = loadLedger(db, ledger);
  const markets = new MarketRegistry(largestId, state);
  return {
    db,
    counters: new Counters(state),
    ledger,
    markets,
    slots: new OrderSlots(db, capacity),
    dirtyOrders: new DirtyOrders(capacity),
    dirtyAccounts: new DirtyAccounts(db, ledger, markets),
    holdings: new HourlyHoldings(db, ledger),
    links: new RowLinks(db),
    updates: new UpdateIndex(db, log),
    resting: new RestingOrders(db, state.ordersListed),
    candles: new Candles(db),
    builders: new Builders(db),
    keys: new IdempotencyKeys(db),
  };
}
