/**
 * The composition root: builds everything and hands it down by parameter.
 *
 * 1. configuration  2. the data folder is ours  3. open, migrate and check the database, load it  4. threads
 * 5. listen (50300 until ready)  6. put live orders back, take the seed  7. ready  8. on SIGTERM, the way back down.
 */

import type * as Uws from "uWebSockets.js";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MessageChannel, Worker } from "node:worker_threads";
import { Reason } from "../engine/constants.ts";
import { assertLimits } from "../engine/limit-relations.ts";
import {
  CANCEL_TIMER_TICK_MS,
  COMMAND_RING_RECORDS,
  EVENT_RING_RECORDS,
  KEEP_ENDED_SESSIONS_MS,
  KNOWN_ADDRESS_MS,
  MAX_ENDED_SESSIONS,
  MAX_KNOWN_ADDRESS_USERS,
  MAX_KNOWN_ADDRESSES_PER_USER,
  MAX_LIVE_ORDERS,
  SHUTDOWN_DEADLINE_MS,
  SIGN_IN_REFUSALS_PER_SECOND,
  SOCKET_TICK_MS,
} from "../engine/limits.ts";
import type { JournalSetup } from "../engine/log/journal-stage.ts";
import { CommittedTotals } from "../engine/log/totals.ts";
import { emptyWal, migrate, openDatabase } from "../engine/projection/database.ts";
import { loadAccounts, loadCancelTimers, loadSecondFactors } from "../engine/projection/load/accounts.ts";
import { loadUpdateSequences } from "../engine/projection/load/orders.ts";
import { loadApprovals, loadPendingWithdrawals } from "../engine/projection/load/wallet.ts";
import { bringOrdersForward } from "../engine/projection/write-behind.ts";
import { createRing, RingConsumer, type RingMemory, RingProducer } from "../engine/ring/ring.ts";
import { Waker } from "../engine/ring/waker.ts";
import type { EngineThreadSetup, JournalThreadSetup, ThreadMessage } from "../engine/thread-setup.ts";
import { createHistogram, Histogram, type HistogramMemory, logBounds } from "../engine/util/histogram.ts";
import { createMicroClock, takeClockEpoch } from "../engine/util/micro-clock.ts";
import { hashFlaw, PlatformError } from "../engine/util/node-support.ts";
import { loadSqlite } from "../engine/util/sqlite.ts";
import { AccountWriter, PortMailbox } from "./accounts/account-writer.ts";
import { Accounts, TOKEN_PREFIX } from "./accounts/accounts.ts";
import { Approvals } from "./accounts/approvals.ts";
import { Authenticator } from "./accounts/authenticator.ts";
import { Kyc } from "./accounts/kyc.ts";
import { LastUse } from "./accounts/last-use.ts";
import { Notifier } from "./accounts/notifier.ts";
import { Passkeys } from "./accounts/passkeys.ts";
import { Passwords } from "./accounts/passwords.ts";
import { Pats } from "./accounts/pats.ts";
import { SECOND_FACTOR_KEYS, SecondFactorKeys } from "./accounts/second-factor-keys.ts";
import { SecondFactorSettings } from "./accounts/second-factor-settings.ts";
import { SecondFactorSignIn } from "./accounts/second-factor-sign-in.ts";
import { SecondFactors } from "./accounts/second-factors.ts";
import { Sessions } from "./accounts/sessions.ts";
import { SignInService } from "./accounts/sign-in.ts";
import { SigningKeys } from "./accounts/signing-keys.ts";
import { SocialSignIn } from "./accounts/social-sign-in.ts";
import { Suspensions } from "./accounts/suspensions.ts";
import { SCOPES } from "./accounts/types.ts";
import { UnverifiedAccounts } from "./accounts/unverified-accounts.ts";
import { changeTerms } from "./accounts/users.ts";
import { FileGuard } from "./bootstrap/file-guard.ts";
import { loadExchange, restoreTrading } from "./bootstrap/recovery.ts";
import { createRoutes } from "./bootstrap/routes.ts";
import { applySeed, readSeed, type Seed } from "./bootstrap/seed.ts";
import { Watchdog, type Watched } from "./bootstrap/watchdog.ts";
import { createControlHandlers } from "./cli/control-handlers.ts";
import { ControlSocket } from "./cli/control-socket.ts";
import { type Config, readConfig, urlOf } from "./config.ts";
import { type ApiError, ConfigError, FAILED, outcomeUnknown, overloaded, STARTING, STOPPING } from "./errors.ts";
import { createAddressReader } from "./http/client-address.ts";
import { compileRoutes } from "./http/dispatch.ts";
import { API_BASE } from "./http/envelope.ts";
import { EventLoopGuard } from "./http/event-loop-guard.ts";
import { Idempotency } from "./http/idempotency.ts";
import { RateLimiter } from "./http/rate-limiter.ts";
import { ResponseThrottle } from "./http/response-throttle.ts";
import { SecurityHeaders } from "./http/security-headers.ts";
import { registerRoutes } from "./http/server.ts";
import { StaticSite } from "./http/static-site.ts";
import { loadUws } from "./http/uws.ts";
import { createLogger, type Logger } from "./logger.ts";
import { MarketCatalog } from "./markets/catalog.ts";
import { MarketFeed } from "./markets/feed.ts";
import { MarketLife } from "./markets/lifecycle.ts";
import { MarketLists } from "./markets/lists.ts";
import { MarketSearch } from "./markets/search.ts";
import { OAuth } from "./oauth/oauth.ts";
import { Metrics } from "./operators/metrics.ts";
import { History } from "./queries/history.ts";
import { CancelTimers } from "./trading/cancel-timers.ts";
import { ClientOrderIds } from "./trading/client-order-ids.ts";
import { Exchange } from "./trading/exchange.ts";
import { nodeLoop } from "./trading/gateway-loop.ts";
import { OrderEntry } from "./trading/order-entry.ts";
import { OrderStore } from "./trading/order-store.ts";
import { OrderTimes } from "./trading/order-times.ts";
import { Counters } from "./util/counters.ts";
import { controlPath, keyFolder, lockDataFolder, restrictToOwner } from "./util/data-folder.ts";
import { TimeSlicer } from "./util/time-slicer.ts";
import { Timeline } from "./util/timeline.ts";
import { Withdrawals } from "./wallet/withdrawals.ts";
import { SocketHub } from "./websocket/hub.ts";
import { SocketTickets } from "./websocket/tickets.ts";

const SAMPLE_SEED = fileURLToPath(new URL("../data/sample-markets.json", import.meta.url));
const TICK_MS = 200;
/** How soon a socket ends whose token expired, and how often what is over is forgotten. */
const EXPIRY_TICK_MS = 500;
const FORGET_TICK_MS = 30_000;
const FILES_TICK_MS = 1_000;
/** Refused sign-ins wait so long at most: half of what uWebSockets.js lets a connection be idle. */
const MAX_WAITING_REFUSALS = 5 * SIGN_IN_REFUSALS_PER_SECOND;
const DAY_MS = 86_400_000;
/** Checking every page of a larger database at each start would take longer than recovery: `admin verify` does. */
const MAX_CHECKED_BYTES = 64 * 1024 * 1024;
/** Longer than the slowest settlement and the longest wait of a disk that recovers; no answer waits so long. */
const STILL_TICKS = 60_000 / TICK_MS;
/** How long a server whose disk failed keeps answering 50300 before it exits to be restarted. */
const FAILED_GRACE_MS = 10_000;
/** Smaller steps of the machine's clock are nobody's business. */
const CLOCK_LAG_MS = 1_000;
const SPIN_TURNS = availableParallelism() > 2 ? 2_000 : 0;
/** Of the metrics: commands of a batch and orders of a transaction, and how long one takes, µs. */
const COUNT_BOUNDS = Array.from({ length: 14 }, (_, i) => 2 ** i);
const COMMIT_BOUNDS = logBounds(10, 10_000_000);

interface Threads {
  readonly workers: readonly { name: string; worker: Worker }[];
  readonly links: { commands: RingProducer; events: RingConsumer; waker: Waker }[];
  readonly gatewayWaker: Waker;
  readonly journalWaker: Waker;
  readonly totals: CommittedTotals;
  readonly port: import("node:worker_threads").MessagePort;
  readonly posted: SharedArrayBuffer;
  readonly batchCommands: readonly HistogramMemory[];
  readonly commitTimes: HistogramMemory;
  readonly commitOrders: HistogramMemory;
}

function startThreads(config: Config, path: string, texts: SharedArrayBuffer, clockEpoch: number): Threads {
  const { port1: port, port2: journalPort } = new MessageChannel();
  const posted = new SharedArrayBuffer(4);
  const totals = new CommittedTotals();
  const gatewayWaker = new Waker();
  const rings: { commands: RingMemory; events: RingMemory; waker: Waker }[] = [];
  for (let i = 0; i < config.engineThreads; i++) {
    const commands = createRing(COMMAND_RING_RECORDS);
    rings.push({ commands, events: createRing(EVENT_RING_RECORDS), waker: new Waker() });
  }
  const batchCommands = rings.map(() => createHistogram(COUNT_BOUNDS));
  const [commitTimes, commitOrders] = [createHistogram(COMMIT_BOUNDS), createHistogram(COUNT_BOUNDS)];
  const journal: JournalSetup = {
    path,
    durability: config.durability,
    events: rings.map(({ events }) => events),
    texts,
    totals: totals.buffer,
    port: journalPort,
    posted,
    clockEpoch,
    commitTimes,
    commitOrders,
  };
  const alone = config.engineThreads === 1;
  const journalWaker = alone ? rings[0]!.waker : new Waker();
  const workers = rings.map(({ commands, events, waker }, i) => {
    const setup: EngineThreadSetup = {
      commands,
      events,
      capacity: MAX_LIVE_ORDERS,
      waker: waker.buffer,
      gatewayWaker: gatewayWaker.buffer,
      journalWaker: journalWaker.buffer,
      journal: alone ? journal : null,
      spinTurns: SPIN_TURNS,
      clockEpoch,
      batchCommands: batchCommands[i]!,
    };
    const transferList = alone ? [journalPort] : [];
    const worker = new Worker(new URL("./engine-thread.js", import.meta.url), { workerData: setup, transferList });
    return { name: `engine ${i + 1}`, worker };
  });
  if (!alone) {
    const setup: JournalThreadSetup = {
      journal,
      waker: journalWaker.buffer,
      gatewayWaker: gatewayWaker.buffer,
      spinTurns: SPIN_TURNS,
    };
    const url = new URL("./journal-thread.js", import.meta.url);
    workers.push({ name: "journal", worker: new Worker(url, { workerData: setup, transferList: [journalPort] }) });
  }
  const links = rings.map(({ commands, events, waker }) => ({
    commands: new RingProducer(commands),
    events: new RingConsumer(events, true),
    waker,
  }));
  const histograms = { batchCommands, commitTimes, commitOrders };
  return { workers, links, gatewayWaker, journalWaker, totals, port, posted, ...histograms };
}

/** What each thread has to do, and how far it is; one that carries the journal is watched in both its offices. */
function watchedThreads({ links, totals }: Threads, writer: AccountWriter): Watched[] {
  const watched: Watched[] = [
    { name: "journal", waiting: () => writer.pendingCount, position: () => totals.read().sequence },
  ];
  for (const [i, { commands, events }] of links.entries()) {
    const name = `engine ${i + 1}`;
    watched.push({ name, waiting: () => commands.depth(), position: () => (commands.head - commands.depth()) | 0 });
    const committed = (): number => (events.tail + events.available()) | 0;
    watched.push({ name: "journal", waiting: () => (events.published() - committed()) | 0, position: committed });
  }
  return watched;
}

/** Says once, each time that it happens, that the machine's clock has fallen behind the times on record. */
function createClockWatch(timeline: Timeline, logger: Logger): (now: number) => void {
  let isBehind = false;
  return (now) => {
    const behindMs = timeline.lag(now);
    const was = isBehind;
    isBehind = behindMs >= CLOCK_LAG_MS;
    if (!isBehind || was) return;
    logger.warn(
      { behindMs },
      "the machine's clock is behind the last timestamp: timestamps stand still until it has caught up",
    );
  };
}

/** The sample markets and two users to try them with, whose tokens go into files that only the owner can read. */
function sampleSeed(dataDir: string): Seed {
  const seed = readSeed(SAMPLE_SEED);
  const users = [1, 2].map((n) => {
    const token = TOKEN_PREFIX + randomBytes(32).toString("base64url");
    writeFileSync(join(dataDir, `demo-token-${n}`), `${token}\n`, { mode: 0o600 });
    const pats = [{ name: "demo", scopes: [...SCOPES], token }];
    return { email: `demo-${n}@example.com`, role: "user", kyc_tier: 2, deposit: 10_000_000_000, pats };
  });
  return { ...seed, users } as Seed;
}

const damaged = (what: string): ConfigError =>
  new ConfigError(`DATA_DIR: exchange.db is damaged (${what}): restore a back-up, see docs/operations.md`);
const DAMAGES = ["SQLITE_CORRUPT", "SQLITE_NOTADB"];

function createApp(config: Config, uws: typeof Uws): Uws.TemplatedApp {
  if (config.tls === null) return uws.App();
  try {
    return uws.SSLApp({ cert_file_name: config.tls.certFile, key_file_name: config.tls.keyFile });
  } catch {
    throw new ConfigError("TLS_CERT, TLS_KEY: not a certificate and its key in PEM");
  }
}

function listen(config: Config, uws: typeof Uws, app: Uws.TemplatedApp): Promise<Uws.us_listen_socket> {
  return new Promise((resolve, reject) => {
    const opened = (socket: Uws.us_listen_socket | false): void => {
      if (socket) resolve(socket);
      else reject(new ConfigError(`HOST, PORT: cannot listen on ${config.host}:${config.port}`));
    };
    // Without the exclusive option two servers would share the port and each answer some of the requests. The
    // published types lack both the option and the call that takes it with a host.
    const { LIBUS_LISTEN_EXCLUSIVE_PORT } = uws as unknown as { LIBUS_LISTEN_EXCLUSIVE_PORT: number };
    type Listen = (host: string, port: number, options: number, opened: (socket: Uws.us_listen_socket) => void) => void;
    (app.listen as unknown as Listen).call(app, config.host, config.port, LIBUS_LISTEN_EXCLUSIVE_PORT, opened);
  });
}

async function start(config: Config, logger: Logger): Promise<void> {
  // Until it is ready nothing was accepted, so that there is nothing to finish.
  for (const signal of STOP_SIGNALS) process.on(signal, leave);
  process.on("disconnect", leave);
  // It may have been gone before anybody listened; where there is no channel this is undefined.
  if (process.connected === false) leave();
  assertLimits();
  const uws = await loadUws();
  loadSqlite();
  const flaw = hashFlaw(process.versions.node);
  if (flaw !== null) logger.warn(flaw);
  restrictToOwner();
  const lock = lockDataFolder(config.dataDir);
  const path = join(config.dataDir, "exchange.db");
  const isNew = !existsSync(path);
  let seed = config.seedFile === null ? null : readSeed(config.seedFile);

  // One of an older version may be open to others.
  if (!isNew) chmodSync(path, 0o600);
  const db = openDatabase(path, config.durability);
  if (!isNew && statSync(path).size <= MAX_CHECKED_BYTES) {
    const found = db.pragma("quick_check(1)", { simple: true });
    if (found !== "ok") throw damaged(String(found).replace(/\s+/g, " "));
  }
  migrate(db);
  bringOrdersForward(db);
  // Now, not when the journal opens it: that would have to wait for what is being read here.
  emptyWal(db);
  const { state, ledger, registry } = loadExchange(db);
  const accounts = new Accounts((credential) => hub.endCredential(credential, Date.now()));
  const openedAt = Date.now();
  const signIns = {
    since: openedAt - KNOWN_ADDRESS_MS,
    most: MAX_KNOWN_ADDRESS_USERS * MAX_KNOWN_ADDRESSES_PER_USER,
  };
  accounts.load(loadAccounts(db, openedAt - config.accessTtlMs, MAX_ENDED_SESSIONS, signIns));
  if (seed === null && state.sequence === 0 && state.markets.length === 0) seed = sampleSeed(config.dataDir);

  const startedAt = Date.now();
  const store = new OrderStore();
  const clientOrderIds = new ClientOrderIds(startedAt);
  const clockEpoch = takeClockEpoch();
  const threads = startThreads(config, path, store.texts.buffer, clockEpoch);
  const counters = new Counters();
  const timeline = new Timeline(Math.max(startedAt, state.at));
  const exchange = new Exchange({
    links: threads.links,
    loop: nodeLoop(threads.gatewayWaker),
    store,
    ledger,
    registry,
    clientOrderIds,
    lastOrderId: state.lastOrderId,
    userSequences: loadUpdateSequences(db),
    counters,
    times: new OrderTimes(createMicroClock(clockEpoch)),
    timeline,
  });
  const lost = (thread: string) => (error: Error) =>
    logger.error({ thread, code: (error as NodeJS.ErrnoException).code }, "a thread died and is replaced");
  const history = new History(path, lost("history"));
  const search = new MarketSearch(history, registry);
  const turns = new TimeSlicer();
  const lists = new MarketLists(registry, ledger, search, turns);
  const feed = new MarketFeed(registry, ledger, search, turns);
  const entry = new OrderEntry({
    exchange,
    findEnded: (userId, orderId) => history.endedOrder(userId, orderId),
    tie: (orderIds, tied) =>
      writer.write(orderIds.map((id) => ({ kind: "update", table: "orders", id, set: { tied: tied ? 1 : 0 } }))),
    usualMergeFeeBps: config.mergeFeeBps,
  });
  const writer = new AccountWriter({
    mailbox: new PortMailbox(threads.port, threads.posted, threads.journalWaker),
    exchange,
    accounts,
    checkpoint: () => history.checkpoint(),
  });

  const cancelTimers = new CancelTimers({
    save: (id, cancelsAt) => writer.write([{ kind: "update", table: "users", id, set: { cancelsAt } }]),
    cancel: (userId, placedBefore, now) =>
      new Promise((data, error) => {
        entry.cancelAll(userId, { placedBefore }, now, { data: () => data(), error }, Reason.cancelAfter);
      }),
  });
  for (const [userId, firesAt] of loadCancelTimers(db)) cancelTimers.restore(userId, firesAt);

  // With port 0 the address is known when it listens.
  let { publicUrl } = config;
  const { accessTtlMs, refreshTtlMs } = config;
  const audience = (): string => publicUrl + API_BASE;
  const keys = await SigningKeys.open(keyFolder(config.dataDir), {
    issuer: publicUrl,
    audience: audience(),
    tokenTtlMs: accessTtlMs,
    now: startedAt,
  });
  const authenticator = new Authenticator(accounts, keys);
  const sessions = new Sessions({ accounts, authenticator, keys, writer, accessTtlMs, refreshTtlMs });
  const passwords = new Passwords(lost("password"));
  const notifier = new Notifier({
    smtpUrl: config.smtpUrl,
    smsWebhookUrl: config.smsWebhookUrl,
    outbox: join(config.dataDir, "outbox"),
    from: config.mailFrom,
    logger,
  });
  const passkeys = new Passkeys(() => publicUrl);
  const factorKeys = await SecondFactorKeys.open(join(keyFolder(config.dataDir), SECOND_FACTOR_KEYS));
  const factors = new SecondFactors({ writer, keys: factorKeys, passkeys }, loadSecondFactors(db));
  const unreadable = factors.countUnreadable();
  if (unreadable > 0)
    logger.error({ unreadable }, `${SECOND_FACTOR_KEYS} lacks the key of authenticator apps' secrets`);
  const secondStep = new SecondFactorSignIn({ factors, passkeys, writer, notifier });
  const factorSettings = new SecondFactorSettings({
    ...{ accounts, factors, passkeys, passwords, sessions, writer, notifier },
    isRequired: config.operatorsNeedSecondFactor,
  });
  const unverified = new UnverifiedAccounts(accounts, writer);
  const auth = new SignInService({
    ...{ accounts, sessions, passwords, notifier, writer, unverified, logger, secondStep },
    publicUrl: () => publicUrl,
  });
  const kyc = new Kyc(accounts, writer, notifier);
  const pats = new Pats(accounts, writer);
  const issuer = (): string => publicUrl;
  const oauth = new OAuth({ accounts, authenticator, sessions, writer, accessTtlMs, refreshTtlMs, issuer });
  const social = new SocialSignIn({
    providers: config.socialProviders,
    redirectUri: (provider) => `${audience()}/auth/social/${provider}/callback`,
  });
  const lastUse = new LastUse(authenticator, writer);
  const approvals = new Approvals(writer, accounts, config.twoPersonRule, loadApprovals(db));
  const payers = { exchange, accounts, history, writer, approvals, notifier };
  const withdrawals = new Withdrawals(payers, loadPendingWithdrawals(db));
  const idempotency = new Idempotency(history);
  const catalog = new MarketCatalog(registry, writer);
  const life = new MarketLife({ exchange, writer, approvals, accounts, notifier });
  const suspensions = new Suspensions({
    accounts,
    writer,
    endSockets: (credential) => hub.endCredential(credential, Date.now()),
    cancelOrders: (userId) =>
      new Promise((resolve) => {
        const done = (): void => resolve();
        entry.cancelAll(userId, {}, Date.now(), { data: done, error: done }, Reason.operator);
      }),
  });

  let phase: "starting" | "ready" | "failed" | "stopping" = "starting";
  const closed = (): ApiError | null => {
    if (phase === "starting") return overloaded(STARTING);
    if (phase === "stopping") return overloaded(STOPPING);
    return null;
  };
  const unready = (): string | null => (phase === "ready" ? null : phase);

  const fail = (thread: string, error: string): void => {
    if (phase === "failed" || phase === "stopping") return;
    phase = "failed";
    logger.fatal({ thread, error }, "trading has stopped: nothing more can be made durable");
    const refusal = overloaded(FAILED);
    exchange.refuse(refusal);
    exchange.failPending(outcomeUnknown(FAILED));
    writer.refuse(refusal, outcomeUnknown(FAILED));
    setTimeout(() => process.exit(1), FAILED_GRACE_MS);
  };
  const watchdog = new Watchdog(watchedThreads(threads, writer), STILL_TICKS);
  for (const { name, worker } of threads.workers) {
    worker.on("message", (message: ThreadMessage) => {
      if (message.kind === "failed") fail(name, message.error);
    });
    worker.on("error", (error) => fail(name, error.stack ?? error.message));
    worker.on("exit", () => {
      if (phase !== "stopping") fail(name, "the thread ended");
    });
  }

  const app = createApp(config, uws);
  const limiter = config.rateLimits === null ? null : new RateLimiter(config.rateLimits);
  const addressOf = createAddressReader(config.trustedProxies);
  const tickets = new SocketTickets();
  const metrics = new Metrics({
    totals: threads.totals,
    counters,
    exchange,
    history,
    dataDir: config.dataDir,
    databasePath: path,
    unready,
    batchCommands: threads.batchCommands.map((memory) => new Histogram(memory)),
    commitTimes: new Histogram(threads.commitTimes),
    commitOrders: new Histogram(threads.commitOrders),
    sockets: () => hub.counts(),
  });
  const market = { history, lists, feed, catalog, life };
  const service = {
    exchange,
    entry,
    cancelTimers,
    ...market,
    totals: threads.totals,
    writer,
    approvals,
    withdrawals,
    idempotency,
    addressRule: config.withdrawalAddress,
    suspensions,
    tickets,
    limiter,
    usualMergeFeeBps: config.mergeFeeBps,
    unready,
    metrics,
  };
  const identity = { accounts, auth, sessions, pats, kyc, oauth, social, keys, publicUrl: () => publicUrl };
  const { operatorsNeedSecondFactor } = config;
  const second = { factors, factorSettings, passkeys, notifier, operatorsNeedSecondFactor };
  const routes = compileRoutes(createRoutes({ ...service, ...identity, ...second }));
  const hasProxies = config.trustedProxies.length > 0;
  const pace = new ResponseThrottle(SIGN_IN_REFUSALS_PER_SECOND, MAX_WAITING_REFUSALS);
  const access = {
    authenticator,
    policy: new SecurityHeaders(() => publicUrl),
    turn: new EventLoopGuard(),
    logger,
    counters,
    limiter,
    pace,
    addressOf,
    hasProxies,
    isKnown: (email: string, client: string, now: number): boolean => {
      const user = accounts.userByEmail(email);
      return user !== undefined && accounts.knownAddresses.has(user.id, client, now);
    },
    closed,
    reads: exchange.reads,
    page: new StaticSite(fileURLToPath(new URL("./web", import.meta.url)), () => publicUrl),
  };
  const { maxSocketsPerAddress } = config;
  const sockets = { tickets, app, startedAt, maxSocketsPerAddress };
  const hub = new SocketHub({ exchange, entry, history, routes, ...sockets, ...access });
  exchange.setAudience(hub);
  hub.register();
  registerRoutes(app, routes, access);
  const listenSocket = config.network ? await listen(config, uws, app) : null;
  const port = listenSocket === null ? 0 : uws.us_socket_local_port(listenSocket);
  publicUrl = publicUrl.replace(/:0$/, `:${port}`);
  access.page.load();
  keys.setAudience(publicUrl, audience());

  const restored = await restoreTrading(exchange, db, startedAt);
  db.close();
  for (const [marketId, hour, volume] of await history.hourlyVolumes(startedAt - DAY_MS)) {
    registry.addHourlyVolume(registry.get(marketId)!, hour * 3_600_000, volume);
  }
  if (seed !== null) {
    await applySeed(
      seed,
      {
        write: (writes, audits) => writer.write(writes, audits),
        hasUser: (email) => accounts.userByEmail(email) !== undefined,
        isSeeded: (userId) => accounts.isSeeded(userId),
        hasSeededTerms: (userId) => accounts.hasSeededTerms(userId),
        setTerms: (userId, terms) => changeTerms(accounts.user(userId)!, terms),
        noteSeeded: (userId) => accounts.noteSeeded(userId),
        hashPassword: (password) => passwords.hashChosen(password),
      },
      startedAt,
    );
    await exchange.settled();
  }
  // What was due meanwhile is canceled before anybody can trade with it.
  cancelTimers.fireDue(Date.now());
  await exchange.cancelsDone();
  // Nothing trades in them, however long the exchange was down.
  while (!life.closeDue(Date.now())) await exchange.settled();
  await exchange.settled();
  lists.warmUp();
  feed.warmUp(startedAt);
  const watchClock = createClockWatch(timeline, logger);
  const files = new FileGuard([path, `${path}-wal`]);
  const ticking = [
    setInterval(() => {
      const still = watchdog.tick();
      if (still !== null) fail(still, `has done nothing for ${(STILL_TICKS * TICK_MS) / 1_000} s while work waits`);
      const now = Date.now();
      exchange.tick(now);
      life.closeDue(now);
      watchClock(now);
    }, TICK_MS),
    setInterval(() => {
      void files.changed().then((changed) => {
        if (changed !== null) fail("journal", `${changed} was moved or deleted: what is written to it now is lost`);
      });
    }, FILES_TICK_MS),
    setInterval(() => cancelTimers.fireDue(Date.now()), CANCEL_TIMER_TICK_MS),
    setInterval(() => hub.tick(Date.now()), SOCKET_TICK_MS),
    setInterval(() => hub.endUnauthenticated(Date.now()), EXPIRY_TICK_MS),
    setInterval(() => {
      const now = Date.now();
      const { knownAddresses } = accounts;
      const parts = [sessions, kyc, oauth, auth, secondStep, factorSettings, withdrawals, idempotency, knownAddresses];
      for (const part of parts) part.forgetExpired(now);
      // Where it can't be written the journal has failed, and says so itself.
      lastUse.write().catch(() => {});
      deleteUnverified();
      sweep();
      life.refuseForgotten(now);
    }, FORGET_TICK_MS),
  ];

  /** All whose time is over, a slice after the other. */
  const deleteUnverified = (): void => {
    unverified.deleteOverdue(Date.now()).then(
      (deleted) => void (deleted > 0 && phase === "ready" && deleteUnverified()),
      // The journal has failed, and says so itself.
      () => {},
    );
  };

  /** All rows that are over, a slice after the other. */
  const sweep = (): void => {
    const at = Date.now();
    writer.write([{ kind: "sweep", endedBefore: at - KEEP_ENDED_SESSIONS_MS, at }]).then(
      ([swept]) => void (swept!.created && phase === "ready" && sweep()),
      () => {},
    );
  };

  const stop = async (signal: string): Promise<void> => {
    if (phase === "stopping") return;
    const failed = phase === "failed";
    phase = "stopping";
    logger.info({ signal }, "shutting down");
    setTimeout(() => process.exit(1), SHUTDOWN_DEADLINE_MS).unref();
    if (listenSocket !== null) uws.us_listen_socket_close(listenSocket);
    for (const timer of ticking) clearInterval(timer);
    const asked = control.close();
    pace.close();
    // What waits for its password's turn is refused, what has had it goes on to its end.
    await passwords.close();
    await asked;
    while (!failed && exchange.pendingCount + writer.pendingCount > 0)
      await new Promise((resolve) => setTimeout(resolve, 5));
    if (!failed) {
      hub.untie();
      await exchange.cancelsDone();
    }
    const ended = Promise.all(
      threads.workers.map(({ worker }) => new Promise((resolve) => worker.once("exit", resolve))),
    );
    if (!failed) {
      await lastUse.write();
      exchange.stopEngines();
      await ended;
    }
    hub.shutDown();
    await Promise.all([history.close(), notifier.close()]);
    app.close();
    lock.close();
    logger.info("stopped");
    process.exit(0);
  };
  const control = new ControlSocket(
    controlPath(config.dataDir),
    createControlHandlers({
      ...{ routes, reads: exchange.reads, logger, closed, accounts, passwords, keys, factors, factorSettings, writer },
    }),
  );
  control.server.on("error", (error) =>
    logger.warn({ err: error }, "no control socket: commands of npm run admin can't reach this server"),
  );

  for (const signal of STOP_SIGNALS) {
    process.off(signal, leave);
    process.on(signal, () => void stop(signal));
  }
  process.off("disconnect", leave);
  process.on("disconnect", () => void stop("disconnect"));
  phase = "ready";
  deleteUnverified();
  sweep();
  life.refuseForgotten(Date.now());
  logger.info({ host: config.host, port, restored, engineThreads: config.engineThreads }, "ready");
  if (config.network) greet(config, publicUrl, port);
}

/** It also stops when the process ends that started it with a channel between the two: admin-client.ts. */
const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;
const leave = (): void => process.exit(0);

/** What is where, for whoever started this by hand; logs go to stdout as JSON lines, this to stderr. */
function greet(config: Config, publicUrl: string, port: number): void {
  const base = urlOf(config.tls !== null, config.host, port) + API_BASE;
  const token = join(config.dataDir, "demo-token-1");
  const lines = [
    `page       ${publicUrl}/   (operators: ${publicUrl}/desk)`,
    `API        ${base}   (try ${base}/markets)`,
    `WebSocket  ${base.replace(/^http/, "ws")}/ws`,
    `data       ${config.dataDir}   durability ${config.durability}`,
    `mails      ${config.smtpUrl === null ? join(config.dataDir, "outbox") : "by SMTP"}`,
  ];
  if (existsSync(token)) lines.push(`tokens     cat ${token}   (demo-token-2: a second user to trade with)`);
  else lines.push('tokens     list users with their tokens in a SEED_FILE: docs/operations.md, "Configuration"');
  process.stderr.write(`\n${lines.join("\n")}\n\n`);
}

try {
  const config = readConfig(process.env);
  await start(config, createLogger(config.logLevel));
} catch (thrown) {
  const { code, message } = thrown as { code?: unknown; message?: string };
  const isDamage = DAMAGES.some((name) => String(code).startsWith(name));
  const error = isDamage ? damaged(String(message)) : thrown;
  const isPlain = error instanceof ConfigError || error instanceof PlatformError;
  const text = isPlain ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`cannot start: ${text}\n`);
  process.exit(1);
}
