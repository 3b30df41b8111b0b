/**
 * Step 2½ of a start where STANDBY_NATS is set: which box is active? A standby stays here: its log follows the active's, its
 * tables follow its log, and its port says who is active, until an operator promotes it.
 */
import type * as Uws from "uWebSockets.js";
import { setTimeout as delay } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import type Database from "better-sqlite3";
import { LogProgress } from "../../engine/log/progress.ts";
import { Waker } from "../../engine/ring/waker.ts";
import type { ThreadMessage } from "../../engine/thread-setup.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { createHistogram } from "../../engine/util/histogram.ts";
import { ControlSocket } from "../control/control-socket.ts";
import { createStandbyCommands } from "../control/standby-commands.ts";
import { ApiError, ConfigError, ErrorKind, overloaded, STARTING, STOPPING } from "../errors.ts";
import { Connections, roomForConnections } from "../http/connections.ts";
import { MAX_HTTP_CONNECTIONS } from "../http/limits.ts";
import { SecurityHeaders } from "../http/security-headers.ts";
import type { Logger } from "../logger.ts";
import { SUSPICION_MS } from "../replication/limits.ts";
import { Replication } from "../replication/replication.ts";
import { ReplicationStatus } from "../replication/replication-status.ts";
import { readStandbyFile } from "../replication/standby-file.ts";
import type { Promotion, ReplicationSettings, ReplicationSetup } from "../replication/types.ts";
import type { BookHistory } from "../service/book-history.ts";
import { loadedAtFirst } from "../service/paced-text.ts";
import { registerStandingBy, standbyRejection } from "../service/standing-by-server.ts";
import { archiveFolder, controlPath, journalPath, keyFolder } from "../util/data-folder.ts";
import type { LogOutput } from "../util/log-output.ts";
import type { RequestedAudit } from "../writes/types.ts";
import { createBookHistory } from "./book-history.ts";
import type { Config } from "./config.ts";
import { type ExchangeDatabase, openExchangeDatabase } from "./database.ts";
import { LOG_FLUSH_MS, SHUTDOWN_DEADLINE_MS } from "./limits.ts";
import type { PublicUrl } from "./listen.ts";
import { Port } from "./port.ts";
import { exitOnSignals, stopOnSignals, stopProjector } from "./shutdown.ts";
import { COMMIT_BOUNDS, startProjector, startThread, threadLoaded } from "./threads.ts";

/** How long a start that failed waits for the thread: a process that exits while one loads its modules can abort. */
const LOADED_MS = 5_000;
/** How long a promotion waits for the tables, and for those who asked for it to read the result. */
const PROJECTOR_MS = 5_000;
const CONTROL_MS = 1_000;
const HISTORY_TICK_MS = 60_000;
/** How long a box that started listens before it says that no box is active. */
const LISTENING_MS = 2 * SUSPICION_MS;

interface StandingByOptions {
  readonly config: Config;
  readonly uws: typeof Uws;
  readonly publicUrl: PublicUrl;
  /** The lock of the data folder. */
  readonly lock: Database.Database;
  readonly logger: Logger;
  readonly output: LogOutput;
}

/**
 * Resolves once this box is to be active; null on a single box.
 * @throws ConfigError where the folder is a standby's and STANDBY_NATS isn't set, or the stream doesn't fit the log
 */
export async function standBy(options: StandingByOptions): Promise<StandingBy | null> {
  const { config, logger } = options;
  if (config.standby === null) {
    requireNoStandby(config.dataDir);
    return null;
  }
  const standing = new StandingBy(options, config.standby);
  const loaded = threadLoaded(standing.replication.worker);
  try {
    const role = standing.replication.next("role");
    role.catch(() => {});
    await standing.open();
    if ((await role).role === "active") return standing;
    if (!config.network)
      throw new ConfigError("STANDBY_NATS: this box is a standby: run the command on the active one");
    logger.info({ box: config.standby.box, port: standing.port }, "standing by");
    await standing.untilPromoted();
    logger.info({ batch: standing.progress.committedBatch }, "promoted");
    return standing;
  } catch (error) {
    // A signal ends the process by itself.
    if (standing.isStopping) await new Promise<never>(() => {});
    await Promise.race([loaded, delay(LOADED_MS)]);
    throw error;
  }
}

/** A single box would go on where the stream doesn't follow. */
function requireNoStandby(dataDir: string): void {
  if (readStandbyFile(dataDir)?.role !== "standby") return;
  throw new ConfigError(
    "STANDBY_NATS isn't set, but this box was a standby: its log follows another box's. Set it, or delete standby.json from DATA_DIR to make this a box of its own",
  );
}

export class StandingBy {
  readonly replication: Replication;
  /** How far the log and the tables are while this box follows. */
  readonly progress = new LogProgress();
  private openedAt = Number.POSITIVE_INFINITY;
  private readonly options: StandingByOptions;
  private readonly settings: ReplicationSettings;
  private readonly projectorWaker = new Waker();
  private readonly openPort: Port;
  private readonly control: ControlSocket;
  private projector: Worker | null = null;
  private projectorEnd: Promise<void> | null = null;
  private bookHistory: BookHistory | null = null;
  private historyTimer: NodeJS.Timeout | undefined;
  isStopping = false;
  private wasPromoted = false;
  /** When the promotion was asked for, ms; null while it wasn't. */
  private promotedAt: number | null = null;
  /** Of everybody who asked for it. */
  private promotion: Promise<object> | null = null;
  private finishPromotion: (result: object) => void = () => {};
  private failPromotion: (error: ApiError) => void = () => {};

  constructor(options: StandingByOptions, settings: ReplicationSettings) {
    this.options = options;
    this.settings = settings;
    this.replication = this.startThread();
    const { config, uws, publicUrl, logger } = options;
    this.openPort = new Port(config, uws, logger);
    const facts = {
      readiness: () => this.readiness(),
      rejection: () => this.rejection(),
      activeUrl: () => this.replication.active?.url ?? null,
      metrics: async () => (await this.metrics())(),
    };
    const securityHeaders = new SecurityHeaders(publicUrl.site);
    const room = roomForConnections(MAX_HTTP_CONNECTIONS, logger);
    const [countSockets, countSocketsOf] = [() => 0, () => 0];
    const { openPort: port } = this;
    const { trustedProxies } = config;
    const connections = new Connections({ room, port, logger, trustedProxies, countSockets, countSocketsOf });
    this.openPort.onApp((app) => registerStandingBy(app, facts, { connections, securityHeaders, logger }));
    const handle = createStandbyCommands({
      replication: this.replication,
      rejection: () => this.rejection(),
      promote: (how) => this.promote(how),
      logger,
    });
    this.control = new ControlSocket(controlPath(config.dataDir), handle);
    this.control.server.on("error", (error) => logger.warn({ err: error }, "no control socket"));
  }

  /** The first scrape loads their library. */
  private readonly metrics = loadedAtFirst(async () => {
    const { createStandingByMetrics } = await import("../service/standing-by-metrics.ts");
    return createStandingByMetrics(this.replication, this.progress, () => this.bookHistory);
  });

  private startThread(): Replication {
    const { config, logger } = this.options;
    const { dataDir, durability } = config;
    const status = new ReplicationStatus();
    const waker = new Waker();
    const setup: ReplicationSetup = {
      settings: this.settings,
      dataDir,
      keys: keyFolder(dataDir),
      durability,
      journalPath: journalPath(dataDir),
      archives: archiveFolder(dataDir),
      progress: this.progress.buffer,
      waker: waker.buffer,
      projectorWaker: this.projectorWaker.buffer,
      status: status.buffer,
    };
    const worker = startThread("replication-thread", setup, []);
    const releaseMemory = createHistogram(COMMIT_BOUNDS);
    return new Replication({ worker, status, settings: this.settings, waker, releaseMemory, logger });
  }

  /** A box that has just started knows of nobody yet: it can't say that no box is active, nor that it lacks nothing. */
  private get role(): "starting" | "standby" {
    const { role, hasHeard } = this.replication;
    const isSettled = hasHeard || systemClock.elapsed() - this.openedAt >= LISTENING_MS;
    return role === "standby" && isSettled ? "standby" : "starting";
  }

  get port(): number {
    return this.openPort.number;
  }

  /** Opens the port. @throws ConfigError where it can't be */
  async open(): Promise<void> {
    this.openedAt = systemClock.elapsed();
    await this.openPort.open();
  }

  /** Follows the active box. @throws ConfigError where the log can't follow it any more, Error where a file fails */
  async untilPromoted(): Promise<void> {
    const { replication } = this;
    const promoted = replication.next("role").then(() => null);
    const synced = replication.next("synced");
    for (const each of [promoted, synced]) each.catch(() => {});
    stopOnSignals((signal) => this.stop(signal));
    const found = await Promise.race([promoted, synced, replication.refused]);
    if (found !== null) {
      // The tables include what the stream certainly has.
      const database = openExchangeDatabase(this.options.config, found.through);
      database.db.close();
      this.makeHistory(database);
      this.projector = startProjector(this.options.config, database, this.progress, {
        projector: this.projectorWaker,
        gateway: new Waker(),
        log: new Waker(),
      });
      await Promise.race([promoted, this.follow(this.projector), replication.refused]);
      await Promise.all([this.endProjector(), this.endHistory()]);
    }
    if (this.isStopping) await new Promise<never>(() => {});
    this.wasPromoted = true;
    exitOnSignals();
  }

  /** The days of book history are here as well when this box takes over. */
  private makeHistory(database: ExchangeDatabase): void {
    const { config, logger } = this.options;
    const history = createBookHistory({ config, database, logger, isFollower: true });
    this.bookHistory = history;
    history.check();
    this.historyTimer = setInterval(() => history.check(), HISTORY_TICK_MS);
  }

  private async endHistory(): Promise<void> {
    clearInterval(this.historyTimer);
    await this.bookHistory?.close();
  }

  /** Resolves once the tables include what the stream certainly has. */
  private async endProjector(): Promise<void> {
    const { projector, projectorWaker, progress } = this;
    if (projector === null) return;
    this.projectorEnd ??= stopProjector({ projector, projectorWaker, progress });
    // A lock or a full disk may keep it: the start projects the rest.
    await Promise.race([this.projectorEnd, delay(PROJECTOR_MS)]);
    await projector.terminate();
  }

  /** Lets the log go on, and rejects when the tables can't follow. */
  private follow(projector: Worker): Promise<never> {
    this.replication.follow();
    return new Promise((_resolve, reject) => {
      projector.on("message", (message: ThreadMessage) => {
        if (message.kind === "failed") reject(new ConfigError(`the tables can't follow the log: ${message.error}`));
      });
      projector.once("error", reject);
    });
  }

  /** What the audit log says of a box that followed and is active now; nothing of one that led before. */
  promotions(now: number): readonly RequestedAudit[] {
    if (!this.wasPromoted) return [];
    const details = { box: this.settings.box, epoch: this.replication.status.get("epoch") };
    const rest = { userId: null, write: 0, subject: null, requestId: null, address: null };
    return [{ at: now, action: "standby.promoted", actor: "exchange", details, ...rest }];
  }

  /** This box's own server takes the port. */
  closePort(): void {
    this.openPort.close();
  }

  /** This box's own server takes the control socket; whoever asked for the promotion gets the result. */
  async closeControl(): Promise<void> {
    const closed = this.control.close();
    const { replication, promotedAt } = this;
    const withoutMs = promotedAt === null ? null : Math.round(systemClock.elapsed() - promotedAt);
    this.finishPromotion({
      box: this.settings.box,
      role: "active",
      epoch: replication.status.get("epoch"),
      took_ms: withoutMs,
    });
    // A client may keep its end open.
    await Promise.race([closed, delay(CONTROL_MS)]);
  }

  /** Resolves once this box is active. @throws ApiError 40900 with why it stays a standby */
  private promote(how: Promotion): Promise<object> {
    this.promotion ??= new Promise<object>((resolve, reject) => {
      this.finishPromotion = resolve;
      this.failPromotion = reject;
      void this.beginPromotion(how);
    });
    return this.promotion;
  }

  private async beginPromotion(how: Promotion): Promise<void> {
    const startedAt = systemClock.elapsed();
    const reason = await this.replication.promote(how);
    if (reason === null) this.promotedAt = startedAt;
    else {
      this.failPromotion(new ApiError(ErrorKind.conflict, reason));
      this.promotion = null;
    }
  }

  private readiness(): object {
    const { replication, isStopping } = this;
    const { status, settings, active } = replication;
    const { role } = this;
    if (isStopping) return { status: "stopping" };
    if (role !== "standby") return { status: "starting" };
    return {
      status: "standby",
      role,
      epoch: status.get("epoch"),
      behind_batches: status.behindBatches,
      ack: settings.ack,
      keys_copied: status.get("keysEqual") === 1,
      active: active?.url ?? null,
    };
  }

  private rejection(): ApiError {
    const { role } = this;
    const { active } = this.replication;
    if (this.isStopping) return overloaded(STOPPING);
    return role === "standby" ? standbyRejection(active) : overloaded(STARTING);
  }

  /** Ends the process: what the log has is durable, and the next start goes on from there. */
  private async stop(signal: string): Promise<void> {
    if (this.isStopping) return;
    this.isStopping = true;
    const { logger, lock, output } = this.options;
    logger.info({ signal }, "shutting down");
    setTimeout(() => process.exit(1), SHUTDOWN_DEADLINE_MS).unref();
    const closed = this.control.close();
    this.failPromotion(overloaded(STOPPING));
    // Open connections learn that this box stops.
    this.openPort.stopListening();
    await this.replication.stop(false);
    await Promise.all([this.endProjector(), this.endHistory()]);
    await closed;
    this.closePort();
    lock.close();
    logger.info("stopped");
    await output.flush(LOG_FLUSH_MS);
    process.exit(0);
  }
}
