/**
 * Constructs what trades and what reads about trading: the exchange over its rings, order entry, market lists and feed,
 * the reads of history and the writer of account changes. The order of construction follows the flow of an order.
 */
import { Reason } from "../../engine/constants.ts";
import { loadCancelTimers } from "../../engine/projection/load/accounts.ts";
import { loadUpdateSequences } from "../../engine/projection/load/orders.ts";
import type { MicroClock } from "../../engine/util/micro-clock.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { historyFolder } from "../book-history/history-folder.ts";
import { Idempotency } from "../http/idempotency.ts";
import type { Logger } from "../logger.ts";
import { MarketCatalog } from "../markets/catalog.ts";
import { MarketFeed } from "../markets/feed.ts";
import { MarketLists } from "../markets/lists.ts";
import { MarketSearch } from "../markets/search.ts";
import { textReply } from "../orders/json-reply.ts";
import { Exports } from "../queries/exports.ts";
import { History } from "../queries/history.ts";
import { LogFaults } from "../queries/log-faults.ts";
import { ProjectedReads } from "../queries/projected-reads.ts";
import { checkLive } from "../sign-in/authenticator.ts";
import { CancelTimers } from "../trading/cancel-timers.ts";
import { ClientOrderIds } from "../trading/client-order-ids.ts";
import { Exchange } from "../trading/exchange.ts";
import { OrderEntry } from "../trading/order-entry.ts";
import type { OrderStore } from "../trading/order-store.ts";
import { OrderTimes } from "../trading/order-times.ts";
import { readTotals } from "../trading/totals.ts";
import type { GatewayLoop } from "../trading/types.ts";
import { Counters } from "../util/counters.ts";
import { TimeSlicer } from "../util/time-slicer.ts";
import { Timeline } from "../util/timeline.ts";
import { LogWriter } from "../writes/log-writer.ts";
import { PortMailbox } from "../writes/mailbox.ts";
import type { Config } from "./config.ts";
import type { ExchangeDatabase } from "./database.ts";
import type { LoadedExchange } from "./recovery.ts";
import type { Threads } from "./threads.ts";
import { ProjectionLag } from "./watches.ts";
import { createWriteRooms } from "./write-rooms.ts";

interface TradingOptions {
  readonly config: Config;
  readonly database: ExchangeDatabase;
  readonly loaded: LoadedExchange;
  readonly accounts: Accounts;
  readonly threads: Threads;
  /** Its texts are the shared memory that the threads read. */
  readonly store: OrderStore;
  readonly loop: GatewayLoop;
  readonly microClock: MicroClock;
  readonly startedAt: number;
  readonly logger: Logger;
  /** Gets the error that a thread of the pool `name` died of. */
  readonly onThreadLost: (name: string) => (error: Error) => void;
}

export type TradingServices = ReturnType<typeof createTradingServices>;

/** The threads must run: the exchange takes the gateway's ends of their rings. */
export function createTradingServices(options: TradingOptions) {
  const { config, database, accounts, threads, startedAt, loop: clock } = options;
  const { ledger, registry } = options.loaded;
  const projected = new ProjectedReads(threads.progress, threads.projectorWaker, clock.now);
  const { exchange, counters, timeline } = createExchange(options, projected);
  const bookHistory = historyFolder(config.dataDir);
  const files = { tables: database.path, journal: database.journalPath, bookHistory };
  const faults = new LogFaults(options.logger);
  for (const fault of database.logFaults) faults.report(fault);
  const history = new History(files, projected, faults, options.onThreadLost("history"));
  const exports = new Exports(history, exchange.reads);
  const search = new MarketSearch(history, registry);
  const timeSlicer = new TimeSlicer();
  const lists = new MarketLists(registry, ledger, search, timeSlicer);
  const feed = new MarketFeed(registry, ledger, search, timeSlicer);
  const entry = new OrderEntry({
    exchange,
    findEnded: (userId, orderId) => history.endedOrder(userId, orderId),
    saveCancelOnDisconnect: (orderIds, isSet) =>
      writer.write(orderIds.map((id) => ({ kind: "update", table: "orders", id, set: { tied: isSet ? 1 : 0 } }))),
    defaultMergeFeeBps: config.mergeFeeBps,
  });
  const { db } = database;
  const writer = new LogWriter({
    rooms: createWriteRooms({ db, accounts, exchange, lookups: history }),
    gate: exchange.gate,
    mailbox: new PortMailbox(threads.port, threads.mail, threads.logWaker),
    time: exchange.time,
  });
  const cancelTimers = new CancelTimers({
    save: (id, cancelsAt) => writer.write([{ kind: "update", table: "users", id, set: { cancelsAt } }]),
    lastOrderId: () => exchange.store.newestId,
    cancel: (userId, lastOrderId, now) =>
      new Promise((data, error) => {
        entry.cancelAll(
          userId,
          { lastOrderId },
          now,
          textReply(() => data(), error),
          Reason.cancelAfter,
        );
        // Into the rings, before whatever is admitted next.
        exchange.cancels.advance();
      }),
  });
  for (const [userId, state] of loadCancelTimers(db)) cancelTimers.restore(userId, state);
  exchange.switches = cancelTimers;
  const idempotency = new Idempotency(history, checkLive, clock);
  const catalog = new MarketCatalog(registry, writer);
  const services = { exchange, entry, cancelTimers, history, exports, lists, feed, catalog, idempotency, writer };
  const { progress } = threads;
  const lag = new ProjectionLag({ progress, gate: exchange.gate, logger: options.logger });
  const totals = readTotals(ledger, progress);
  return {
    ...services,
    counters,
    timeline,
    projected,
    progress,
    lag,
    faults,
    totals,
    startedAt,
    clock,
  };
}

function createExchange(
  { database, loaded, threads, store, loop, microClock, startedAt }: TradingOptions,
  projected: ProjectedReads,
) {
  const { state, ledger, registry } = loaded;
  const clientOrderIds = new ClientOrderIds(startedAt);
  const counters = new Counters();
  const timeline = new Timeline(Math.max(startedAt, state.at));
  const exchange = new Exchange({
    links: threads.links,
    projected,
    loop,
    store,
    ledger,
    registry,
    clientOrderIds,
    lastOrderId: state.lastOrderId,
    userSequences: loadUpdateSequences(database.db),
    counters,
    times: new OrderTimes(microClock),
    timeline,
  });
  return { exchange, counters, timeline };
}
