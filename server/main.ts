/**
 * The composition root: builds every part and hands it down by parameter; the parts are in bootstrap/.
 *
 * 1. configuration  2. the data folder is ours; a standby stays here until it is promoted  3. open, migrate, check and load the files  4. threads
 * 5. listen (50300 until ready)  6. restore live orders, apply the seed  7. ready  8. on SIGTERM, the way back down
 */
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../engine/util/clock.ts";
import { createMicroClock, readClockEpoch } from "../engine/util/micro-clock.ts";
import { PlatformError } from "../engine/util/node-support.ts";
import { Accounts } from "./accounts/accounts.ts";
import type { Credential } from "./accounts/types.ts";
import { installCopy } from "./backup/install-copy.ts";
import { openAccountServices } from "./bootstrap/account-services.ts";
import { type Config, readConfig } from "./bootstrap/config.ts";
import { openControlSocket } from "./bootstrap/control.ts";
import { explainDamage, openExchangeDatabase } from "./bootstrap/database.ts";
import { misspelled } from "./bootstrap/environment.ts";
import { createGateway } from "./bootstrap/gateway.ts";
import { createHeldLog } from "./bootstrap/held-log.ts";
import { createFailureHandler, Lifecycle } from "./bootstrap/lifecycle.ts";
import { PublicUrl, printGreeting } from "./bootstrap/listen.ts";
import { createNotificationServices } from "./bootstrap/notification-services.ts";
import { createOperatorServices } from "./bootstrap/operator-services.ts";
import { openOrderSource } from "./bootstrap/order-source.ts";
import { Port } from "./bootstrap/port.ts";
import { preparePlatform } from "./bootstrap/preconditions.ts";
import {
  loadAllAccounts,
  loadExchange,
  logStart,
  namingOf,
  restoreFigures,
  restoreTrading,
} from "./bootstrap/recovery.ts";
import { applySeed, createSampleSeed, createSeedTarget, readSeed } from "./bootstrap/seed.ts";
import { createShutdown, exitOnSignals, stopOnSignals } from "./bootstrap/shutdown.ts";
import { standBy } from "./bootstrap/standing-by.ts";
import { startThreads, threadsLoaded, watchThreads } from "./bootstrap/threads.ts";
import { catchUp, OverdueDeletion, startTimers } from "./bootstrap/timers.ts";
import { createTradingServices } from "./bootstrap/trading-services.ts";
import { ConfigError } from "./errors.ts";
import { createLog, type Log } from "./logger.ts";
import { holdsLog } from "./replication/settings.ts";
import { OrderStore } from "./trading/order-store.ts";
import { nodeLoop } from "./trading/turn-loop.ts";
import { lockDataFolder, restrictToOwner } from "./util/data-folder.ts";

/** How long a start that failed waits for its threads. */
const THREADS_DEADLINE_MS = 5_000;
/** Resolves when the process may exit. */
let mayExit: Promise<void> = Promise.resolve();

async function start(config: Config, { logger, output }: Log): Promise<void> {
  // 1. The configuration was read below; the machine has to match it.
  exitOnSignals();
  for (const { name, meant } of misspelled(process.env)) {
    const text = meant === null ? "is no setting of the exchange" : `is no setting of the exchange: is it ${meant}?`;
    logger.warn(`the variable ${name} ${text}`);
  }
  const uws = await preparePlatform(logger);
  const lifecycle = new Lifecycle();
  const publicUrl = new PublicUrl(config.publicUrl);
  const onThreadLost = (thread: string) => (error: Error) =>
    logger.error({ thread, code: (error as NodeJS.ErrnoException).code }, "a thread died and is replaced");
  // The hub is constructed after the services that it serves.
  const endSockets = (credential: Credential): void => hub.endCredential(credential, systemClock.now());

  // 2. The data folder is ours.
  restrictToOwner();
  const lock = lockDataFolder(config.dataDir);
  installCopy(config.dataDir);
  const givenSeed = config.seedFile === null ? null : readSeed(config.seedFile);
  const standing = await standBy({ config, uws, publicUrl, lock, logger, output });
  const replication = standing?.replication ?? null;

  // 3. Open, migrate, check and load the files; the tables catch up with the log.
  const database = openExchangeDatabase(config);
  const { db } = database;
  const loaded = loadExchange(db, systemClock);
  const accounts = new Accounts(endSockets);
  loadAllAccounts(accounts, db, config, systemClock.now());
  const isEmpty = loaded.state.batch === 0 && loaded.state.markets.length === 0;
  const seed = givenSeed === null && isEmpty ? createSampleSeed(config.dataDir) : givenSeed;

  // 4. Threads, and the services on the gateway's side of their rings.
  const startedAt = systemClock.now();
  const store = new OrderStore();
  const clockEpoch = readClockEpoch();
  const start = logStart(config, database, loaded);
  const threads = startThreads({ config, database, start, texts: store.texts.buffer, clockEpoch, replication });
  mayExit = threadsLoaded(threads);
  const loop = nodeLoop(threads.gatewayWaker, systemClock, holdsLog(config.standby));
  const base = { config, database, accounts, startedAt, onThreadLost, logger, publicUrl, lifecycle };
  const trading = createTradingServices({
    ...base,
    loaded,
    threads,
    store,
    loop,
    microClock: createMicroClock(clockEpoch),
  });
  const { exchange, writer, history, projected } = trading;
  const orders = openOrderSource(db, database.path, namingOf(exchange, startedAt));
  mayExit = Promise.all([mayExit, orders.loaded]).then(() => {});
  const identity = await openAccountServices({ ...base, writer });
  const operators = createOperatorServices({ ...base, trading, identity, endSockets });
  const notifying = createNotificationServices({ ...base, trading, identity });
  const farewell = (): void => {
    const successor = replication?.successor ?? null;
    hub.shutDown({ reason: successor === null ? "restart" : "standby", url: successor?.url ?? null });
  };
  const fail = createFailureHandler({ ...base, exchange, writer, projected, replication, farewell });
  watchThreads(threads, lifecycle, fail);
  replication?.watch(fail);

  // 5. Listen: requests get 50300 until the exchange is ready.
  const openPort = new Port(config, uws, logger);
  const heldLog = createHeldLog({ ...base, threads });
  const services = { ...base, threads, trading, identity, operators, notifying, heldLog };
  const gateway = createGateway({ ...services, port: openPort, output });
  const { hub } = gateway;
  standing?.closePort();
  await openPort.open();
  publicUrl.resolvePort(openPort.number);
  gateway.site.load();
  identity.keys.setAudience(publicUrl.site(), publicUrl.api());

  // 6. Where other boxes get the log, the nodes must have all of it first. Restore live orders, apply the seed, and do what came due while the exchange was down.
  await replication?.opened;
  const restored = await restoreTrading(exchange, orders, startedAt);
  await restoreFigures(exchange.registry, { db, history }, startedAt);
  // The projector has opened the tables: the last connection to close would take their WAL away.
  await mayExit;
  db.close();
  if (seed !== null) {
    await applySeed(seed, createSeedTarget(accounts, writer, identity.passwords), startedAt);
    await exchange.fence();
  }
  await catchUp(trading, operators);
  await notifying.notificationMails.start(exchange.time());

  // 7. Ready. 8. From here on a signal stops the server in order.
  const overdue = new OverdueDeletion(identity.unverified, trading, lifecycle);
  const timers = startTimers({ ...services, hub, overdue, fail, deadlines: gateway.deadlines });
  await standing?.closeControl();
  const control = openControlSocket({ ...services, gateway });
  const { number: port } = openPort;
  const mayHandOver = config.network;
  const stop = createShutdown({
    ...services,
    port: openPort,
    timers,
    control,
    gateway,
    lock,
    output,
    mayHandOver,
    farewell,
  });
  stopOnSignals(stop);
  lifecycle.phase = "ready";
  replication?.ready();
  // Where acknowledgements wait for a standby, so does this.
  const promotions = standing?.promotions(startedAt) ?? [];
  if (promotions.length > 0) writer.write([], promotions).catch((err: unknown) => logger.warn({ err }, "not audited"));
  replication?.onResigning(() => void stop("handing over"));
  // The machine may have been off as the day ended. A new exchange has nothing that is overdue.
  void (isEmpty ? Promise.resolve() : overdue.begin()).then(() => {
    operators.upkeep.check();
    operators.bookHistory.check();
  });
  operators.life.refuseOverdueProposals(systemClock.now());
  logger.info({ host: config.host, port, restored, engineThreads: config.engineThreads }, "ready");
  if (config.network) printGreeting(config, publicUrl.site(), port);
}

/** No await at the top: what is loaded later imports from this file, and would wait for its end. */
async function run(): Promise<void> {
  try {
    const config = readConfig(process.env);
    await start(config, createLog(config.logLevel));
  } catch (thrown) {
    const error = explainDamage(thrown);
    const isPlain = error instanceof ConfigError || error instanceof PlatformError;
    const text = isPlain ? error.message : error instanceof Error ? error.stack : String(error);
    process.stderr.write(`cannot start: ${text}\n`);
    await Promise.race([mayExit, delay(THREADS_DEADLINE_MS)]);
    process.exit(error instanceof ConfigError ? error.exitCode : 1);
  }
}

void run();
