/**
 * The exchange in one thread, on a clock that its owner sets: the gateway's parts, one engine and the log, with the projector
 * in a thread of its own as always. Nothing moves unless its owner lets it, and no port is open: requests come from caller.ts.
 */
import { setImmediate, setTimeout } from "node:timers/promises";
import { MessageChannel } from "node:worker_threads";
import { warmUp } from "../../../engine/book/warm-up.ts";
import { EngineStage } from "../../../engine/engine-stage.ts";
import { COMMAND_RING_RECORDS, EVENT_RING_RECORDS, MAX_LIVE_ORDERS } from "../../../engine/limits.ts";
import { openJournal } from "../../../engine/log/database.ts";
import { LogStage } from "../../../engine/log/log-stage.ts";
import { MailCount } from "../../../engine/log/mail-count.ts";
import { LogProgress } from "../../../engine/log/progress.ts";
import { createRing, RingConsumer, RingProducer } from "../../../engine/ring/ring.ts";
import { Waker } from "../../../engine/ring/waker.ts";
import { syncPath } from "../../../engine/util/durable-file.ts";
import { createHistogram } from "../../../engine/util/histogram.ts";
import { emptyWal } from "../../../engine/util/wal-database.ts";
import { Accounts } from "../../../server/accounts/accounts.ts";
import { createAccountRoutes } from "../../../server/accounts/routes.ts";
import { openAccountServices } from "../../../server/bootstrap/account-services.ts";
import type { Config } from "../../../server/bootstrap/config.ts";
import { openExchangeDatabase } from "../../../server/bootstrap/database.ts";
import { PublicUrl } from "../../../server/bootstrap/listen.ts";
import { createOperatorServices } from "../../../server/bootstrap/operator-services.ts";
import { loadAllAccounts, loadExchange, logStart } from "../../../server/bootstrap/recovery.ts";
import { stopProjector } from "../../../server/bootstrap/shutdown.ts";
import { startProjector, type Threads } from "../../../server/bootstrap/threads.ts";
import { createTradingServices } from "../../../server/bootstrap/trading-services.ts";
import { type CompiledRoute, compileRoutes } from "../../../server/http/dispatch.ts";
import type { Logger } from "../../../server/logger.ts";
import { createMarketAdminRoutes } from "../../../server/markets/admin-routes.ts";
import { createProposalRoutes } from "../../../server/markets/proposal-routes.ts";
import { OrderStore } from "../../../server/trading/order-store.ts";
import { createOrderRoutes } from "../../../server/trading/routes.ts";
import { createMoneyAdminRoutes } from "../../../server/wallet/admin-routes.ts";
import { createWalletRoutes } from "../../../server/wallet/routes.ts";
import type { HandLoop } from "./hand-loop.ts";

const COUNT_BOUNDS = [1, 10, 100];
const ARCHIVE_POLL_MS = 20;
/** Rounds without rest for what other threads do; then the wait sleeps, or it starves their lower priorities of a busy machine. */
const EAGER_ROUNDS = 200;

export type PastExchange = Awaited<ReturnType<typeof openPastExchange>>;

/** Opens an exchange in a folder that has none. */
export async function openPastExchange(config: Config, loop: HandLoop, logger: Logger) {
  const startedAt = loop.now();
  const database = openExchangeDatabase(config);
  const loaded = loadExchange(database.db, loop);
  const accounts = new Accounts(() => {});
  loadAllAccounts(accounts, database.db, config, startedAt);
  const store = new OrderStore();
  const microClock = (): number => loop.now() * 1_000;

  const [commands, events] = [createRing(COMMAND_RING_RECORDS), createRing(EVENT_RING_RECORDS)];
  const [gatewayWaker, logWaker, projectorWaker] = [new Waker(), new Waker(), new Waker()];
  const batchCommands = createHistogram(COUNT_BOUNDS);
  const [commitTimes, commitOrders] = [createHistogram(COUNT_BOUNDS), createHistogram(COUNT_BOUNDS)];
  const progress = new LogProgress();
  const { port1: port, port2: logPort } = new MessageChannel();
  const mail = new MailCount();
  const start = logStart(config, database, loaded);
  const log = new LogStage(
    {
      ...{ start, events: [events], texts: store.texts.buffer, progress: progress.buffer, port: logPort },
      ...{ projectorWaker: projectorWaker.buffer, clockEpoch: 0, commitTimes, commitOrders },
      ...{ mail: mail.buffer, replication: null },
    },
    gatewayWaker,
    loop,
    microClock,
  );
  progress.project(progress.committed);
  const engine = new EngineStage({
    ...{ commands, events, batchCommands, clock: microClock, capacity: MAX_LIVE_ORDERS },
    waitForRoom: (hasRoom) => {
      while (!hasRoom()) log.run();
    },
  });
  warmUp(engine.matcher);
  const projector = startProjector(config, database, progress, {
    projector: projectorWaker,
    gateway: gatewayWaker,
    log: logWaker,
  });
  const links = [{ commands: new RingProducer(commands), events: new RingConsumer(events, true), waker: new Waker() }];
  const threads: Threads = {
    ...{ workers: [], links, gatewayWaker, logWaker, progress, projectorWaker, projector, port, mail },
    ...{ batchCommands: [batchCommands], commitTimes, commitOrders, replication: null },
  };

  const onThreadLost = (): ((error: Error) => void) => (error) => {
    throw error;
  };
  const publicUrl = new PublicUrl(config.publicUrl);
  const base = { config, database, accounts, startedAt, onThreadLost, logger, publicUrl };
  const trading = createTradingServices({ ...base, loaded, threads, store, loop, microClock });
  const { exchange, writer } = trading;
  const identity = await openAccountServices({ ...base, writer });
  const operators = createOperatorServices({ ...base, trading, identity, endSockets: () => {} });
  database.db.close();
  const context = {
    ...{ ...trading, ...identity, ...operators, addressRule: config.withdrawalAddress, publicUrl: publicUrl.site },
    defaultMergeFeeBps: config.mergeFeeBps,
    depositInstructions: config.depositInstructions,
  };
  const routes: readonly CompiledRoute[] = compileRoutes([
    ...createOrderRoutes(context),
    ...createProposalRoutes(context),
    ...createWalletRoutes(context),
    ...createMoneyAdminRoutes(context),
    ...createMarketAdminRoutes(context),
    ...createAccountRoutes(context),
  ]);

  /** One round of everything that this thread does. */
  function turn(): void {
    loop.turn();
    engine.run();
    log.run();
    loop.turn();
  }

  function isQuiet(): boolean {
    return exchange.pending.size === 0 && writer.pendingCount === 0 && !exchange.cancels.isBusy;
  }

  /** Goes on until something is done, be it by other threads. */
  async function turnUntil(isDone: () => boolean): Promise<void> {
    turn();
    for (let round = 0; !isDone(); round++) {
      await (round < EAGER_ROUNDS ? setImmediate() : setTimeout(1));
      turn();
    }
  }

  /** Completes what was requested, with the clock standing still. */
  const settle = (): Promise<void> => turnUntil(isQuiet);

  /** Goes on until the promise is settled. */
  async function complete<T>(promise: Promise<T>): Promise<T> {
    let isDone = false;
    const done = (): void => void (isDone = true);
    promise.then(done, done);
    await turnUntil(() => isDone);
    return promise;
  }

  /** Waits until the log's finished days are in archives, and nowhere else. */
  async function archive(): Promise<void> {
    await complete(trading.projected.caughtUp() ?? Promise.resolve());
    for (operators.upkeep.check(); operators.upkeep.isBehind; operators.upkeep.check()) {
      await complete(setTimeout(ARCHIVE_POLL_MS));
    }
    await settle();
    while (log.idle());
  }

  /** Ends it as a server stops: everything committed is in both files. */
  async function close(): Promise<void> {
    await settle();
    exchange.stopEngines();
    while (!log.stopped) turn();
    log.close();
    await stopProjector(threads);
    port.close();
    // What was archived has left room in the file.
    const journal = openJournal(database.journalPath, config.durability);
    journal.exec("VACUUM");
    emptyWal(journal);
    journal.close();
    // Nothing was synced on the way.
    for (const path of [database.path, database.journalPath]) syncPath(path);
    await Promise.all([
      trading.history.close(),
      identity.passwords.close(),
      identity.notifier.close(),
      operators.upkeep.close(),
    ]);
  }

  return { accounts, trading, identity, operators, routes, exchange, settle, complete, archive, close };
}
